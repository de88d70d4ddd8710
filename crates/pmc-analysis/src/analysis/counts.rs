//! The counts in a recording made by `pmc stat record` or `perf stat record`: events, threads or CPUs, and
//! the totals of each round.
//!
//! Loads the [`RecordedCounts`] of a [`Session`], and visits each [`CountsRound`] with the totals of all
//! counters at that time. The counts are shown in the same tables as live counts.

use std::collections::BTreeMap;
use std::path::PathBuf;

use rustc_hash::FxHashMap;

use crate::profile::counts::Aggregation;
use crate::profile::metrics::RequestedMetrics;
use crate::session::{Session, ThreadCount};
use pmc_perfdata::perfdata::Features;
use pmc_perfdata::record::{CpuMap, Layouts, RawRecord, Record, StatRound, Thread, Update, kind};
use pmc_sys::abi::attr::{Flag, kind::SOFTWARE};
use pmc_sys::abi::generic::{CONTEXT_SWITCHES, DUMMY};
use pmc_sys::abi::{Attr, sample_type};
use pmc_sys::error::{Error, Result};
use pmc_sys::host::CpuList;
use pmc_sys::host::cpu::{CpuLocation, Topology};
use pmc_text::text::shell_word;
use pmc_text::units::{Count, PerfTime};

/// The request of `pmc stat report`: which counts of a recording to show.
#[derive(Debug, Clone)]
pub struct StatReportRequest {
    /// The recording; `-`: standard input.
    pub input: PathBuf,
    /// How counts are grouped into rows; `None`: as in the recording.
    pub aggregation: Option<Aggregation>,
    /// The logged counts to show instead of the totals.
    pub log: Option<LoggedCounts>,
    /// Whether the instances of a PMU have separate rows.
    pub no_merge: bool,
    /// Whether the counts of multiplexed events are scaled to the full time.
    pub scale: bool,
    /// The metrics to compute from the recorded events.
    pub metrics: RequestedMetrics,
}

impl Default for StatReportRequest {
    fn default() -> Self {
        Self {
            input: PathBuf::from("perf.data"),
            aggregation: None,
            log: None,
            no_merge: false,
            scale: true,
            metrics: RequestedMetrics::default(),
        }
    }
}

/// Counts of threads that a recording contains in addition to the totals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoggedCounts {
    /// The counts of each thread at its exit.
    Exits,
    /// The counts of each thread between context switches.
    Slices,
}

/// The events, targets and settings of a recording with counts.
#[derive(Debug, Clone, Default)]
pub struct RecordedCounts {
    /// The events, in order.
    pub events: Vec<CountsEvent>,
    /// How the counts were aggregated while counting.
    pub aggregation: Aggregation,
    /// Whether counts of multiplexed events are scaled.
    pub scale: bool,
    /// Ids and names of the counted threads; empty if CPUs were counted.
    pub threads: Vec<(u32, String)>,
    /// The counted CPUs; empty if threads were counted on any CPU.
    pub cpus: Vec<u32>,
    /// Recorded CPU topology; may be incomplete.
    pub topology: Topology,
    /// The recorded counting time in nanoseconds or, if it was not recorded, the time from the first
    /// timestamp to the last.
    pub elapsed_ns: u64,
    /// The counts of each thread at its exit, ordered by exit time (`log-exit`, `record -s`). Threads that
    /// outlived their counters come last.
    pub exits: Vec<ThreadCounts>,
    /// The counts of each thread's time slices (`log-cswitch`), if requested, ordered by the end of the
    /// slice. A slice ends at a context switch or when the thread exits. The counts are not scaled, because
    /// the running time of each event in a slice is unknown.
    pub slices: Vec<ThreadCounts>,
}

/// A counted event of a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct CountsEvent {
    /// The name, as untrusted text.
    pub name: String,
    /// The attributes passed to the kernel.
    pub attr: Attr,
    /// Factor that converts a count to `unit`.
    pub scale: f64,
    /// Unit of the scaled value, as untrusted text; empty for plain counts.
    pub unit: String,
    /// Group number. Events with the same number were counted during exactly the same times.
    pub group: usize,
    /// Whether the recording contains counts for this event. Events that the kernel refused have no counts.
    pub is_counted: bool,
}

/// One counter's total.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterTotal {
    /// Index of the event.
    pub event: usize,
    /// The counted thread, if threads were counted.
    pub tid: Option<u32>,
    /// The counted CPU, if counts are per CPU.
    pub cpu: Option<u32>,
    /// The count since the start.
    pub count: Count,
}

/// The counts of a thread during part of its lifetime.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadCounts {
    /// The thread.
    pub thread: Thread,
    /// End of this part of the lifetime, in nanoseconds since the recording began.
    pub at_ns: u64,
    /// The counts by event index.
    pub counts: BTreeMap<usize, Count>,
}

/// Whether a recording is a log of time slices. If so, samples hold the running totals of threads, and `READ`
/// records hold the totals at the end of each thread's last slice.
pub fn holds_slices(session: &Session) -> bool {
    !session.reads.is_empty() && session.reader.events().iter().any(|event| leads_slices(&event.attr))
}

/// Whether the event samples every context switch and reads the counts of its group in each sample.
pub fn leads_slices(attr: &Attr) -> bool {
    let is_switch = (attr.kind(), attr.config()) == (SOFTWARE, CONTEXT_SWITCHES);
    is_switch && attr.period() == 1 && attr.sample_type() & sample_type::READ != 0
}

/// Returns a count that needs no scaling.
fn whole(value: u64) -> Count {
    Count { value, enabled_ns: 1, running_ns: 1 }
}

fn in_order(mut threads: Vec<ThreadCounts>) -> Vec<ThreadCounts> {
    threads.sort_by_key(|of| (of.at_ns, of.thread.pid, of.thread.tid));
    threads
}

/// Returns the final counts of each thread. `at` converts timestamps; `add` adds a value to a thread's count
/// of an event.
fn by_thread(
    reads: &[ThreadCount],
    at: impl Fn(u64) -> u64,
    mut add: impl FnMut(&mut Count, &ThreadCount),
) -> impl Iterator<Item = ThreadCounts> {
    let mut threads: FxHashMap<Thread, ThreadCounts> = FxHashMap::default();
    for of in reads {
        let thread = threads.entry(of.thread).or_default();
        add(thread.counts.entry(of.read.event).or_default(), of);
        (thread.thread, thread.at_ns) = (of.thread, thread.at_ns.max(at(of.timestamp)));
    }
    threads.into_values()
}

/// Splits the running totals of threads into time slices.
#[derive(Default)]
struct SliceCollector {
    /// The last total of each thread, by counter id.
    before: FxHashMap<(Thread, u64), u64>,
    /// The slices that ended with a sample; `at_ns` is the sample's timestamp.
    slices: Vec<ThreadCounts>,
}

impl SliceCollector {
    fn add(&mut self, raw: &RawRecord<'_>, layouts: &Layouts) {
        let Some((_, sample)) = layouts.sample(raw) else { return };
        let values = sample.parts().and_then(|parts| parts.read);
        let (Some(values), Some(thread), Some(time)) = (values, sample.thread(), sample.time()) else {
            return;
        };
        let mut counts = BTreeMap::new();
        for value in values.iter() {
            let Some(event) = value.id.and_then(|id| layouts.event_of(id)) else { continue };
            let before = self.before.insert((thread, value.id.unwrap_or(0)), value.value).unwrap_or(0);
            // If a counter starts over, a new thread has reused the id.
            let value = value.value.checked_sub(before).unwrap_or(value.value);
            counts.insert(event, whole(value));
        }
        self.slices.push(ThreadCounts { thread, at_ns: time.0, counts });
    }

    /// Returns all slices. Each thread's last slice ends when the thread exits.
    fn finish(mut self, reads: &[ThreadCount], at: impl Fn(u64) -> u64) -> Vec<ThreadCounts> {
        self.slices.iter_mut().for_each(|slice| slice.at_ns = at(slice.at_ns));
        let last = by_thread(reads, at, |count, ThreadCount { thread, read, .. }| {
            let before = self.before.remove(&(*thread, read.id)).unwrap_or(0);
            *count += whole(read.count.value.saturating_sub(before));
        });
        self.slices.extend(last);
        in_order(self.slices)
    }
}

/// The end of an interval or of the whole run.
#[derive(Debug)]
pub struct CountsRound<'a> {
    /// Whether this is the end of the whole run rather than of an interval.
    pub is_final: bool,
    /// Time since the start, in nanoseconds.
    pub at_ns: u64,
    /// The totals, ordered by event, thread and CPU. New counters are inserted in this order in later rounds.
    pub totals: &'a [CounterTotal],
}

/// Whether the recording contains counts and no samples.
pub fn holds_counts(session: &Session) -> bool {
    let count = |kind| session.index.count(kind);
    count(kind::SAMPLE) == 0 && count(kind::STAT) + count(kind::STAT_ROUND) + count(kind::STAT_CONFIG) > 0
}

/// Rejects a recording without rounds of counts.
///
/// # Errors
/// Fails if the recording was not made by `stat record`, or if its recorder was killed before it read the
/// first counts.
pub fn check_rounds(session: &Session) -> Result<()> {
    if session.index.count(kind::STAT_ROUND) > 0 {
        return Ok(());
    }
    let file = session.reader.path();
    let path = file.display();
    if !holds_counts(session) {
        return Err(Error::new(format!("{path} has no counts"))
            .why("it was not created by `pmc stat record`")
            .try_this(format!("pmc report -i {}", shell_word(file))));
    }
    Err(Error::new(format!("{path} has no counts yet"))
        .why("the recorder was killed before reading the first counts")
        .try_this("pmc stat record -I 1000 reads the counts every second"))
}

impl RecordedCounts {
    /// Reads everything except the rounds, in one pass.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn load(session: &Session, wants_slices: bool) -> Result<Self> {
        let reader = &session.reader;
        let layouts = reader.layouts();
        let features = reader.features();
        let mut recorded = Self { topology: topology(features), events: events(session), ..Self::default() };
        let of_id = of_ids(session);
        let mut terms = BTreeMap::new();
        let (mut first, mut last, mut elapsed) = (u64::MAX, 0, None);
        let mut slices = SliceCollector::default();
        reader.scan(|raw| {
            if let Some(PerfTime(time)) = layouts.time(raw).filter(|time| time.0 > 0) {
                (first, last) = (first.min(time), last.max(time));
            }
            match raw.parse() {
                Some(Record::Sample(_)) if wants_slices => slices.add(raw, layouts),
                Some(Record::StatRound(round)) => elapsed = Some(round.time),
                Some(Record::StatConfig(words)) => {
                    terms.extend(words.rows().map(|[term, value]| (term, value)))
                }
                Some(Record::ThreadMap(map)) => {
                    let known = map.iter().filter_map(|(tid, comm)| {
                        Some((u32::try_from(tid).ok()?, String::from_utf8_lossy(comm).into_owned()))
                    });
                    recorded.threads.extend(known);
                }
                Some(Record::CpuMap(map)) => recorded.cpus = numbers(&map),
                Some(Record::EventUpdate(update)) => {
                    let Some(event) = of_id(update.id).and_then(|event| recorded.events.get_mut(event))
                    else {
                        return;
                    };
                    match update.what {
                        Update::Unit(unit) => event.unit = String::from_utf8_lossy(unit).into_owned(),
                        Update::Scale(scale) if scale.is_finite() && scale > 0.0 => event.scale = scale,
                        Update::Scale(_) | Update::Name(_) | Update::Cpus(_) => {}
                    }
                }
                Some(Record::Stat(stat)) => {
                    if let Some(event) = of_id(stat.id).and_then(|event| recorded.events.get_mut(event)) {
                        event.is_counted = true;
                    }
                }
                _ => {}
            }
        })?;
        while recorded.events.pop_if(|event| is_tracker(event)).is_some() {}
        recorded.scale = terms.get(&SCALE) != Some(&0);
        if let Some(mode) = terms.get(&AGGREGATION) {
            recorded.aggregation = aggregation(*mode, terms.contains_key(&LEVEL), features);
        }
        // If there are rounds, the recording ends with the last one, because a process may outlive its
        // counters and leave no timestamp at their end. Records without a timestamp were written when the
        // recording ended.
        let begin = first.min(last);
        let end = elapsed.map_or(last, |elapsed| begin.saturating_add(elapsed));
        recorded.elapsed_ns = end.saturating_sub(begin);
        let at = |timestamp| (if timestamp == 0 { end } else { timestamp }).saturating_sub(begin);
        let exits = by_thread(&session.reads, at, |count, of| count.take_turns(of.read.count));
        recorded.exits = in_order(exits.collect());
        if wants_slices {
            recorded.slices = slices.finish(&session.reads, at);
        }
        Ok(recorded)
    }

    /// Calls `visit` for each round, except for a truncated one.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or if `visit` fails.
    pub fn rounds(
        &self,
        session: &Session,
        visit: &mut dyn FnMut(CountsRound<'_>) -> Result<()>,
    ) -> Result<()> {
        let of_id = of_ids(session);
        let mut all: BTreeMap<(usize, u32, u32), Count> = BTreeMap::new();
        let mut totals = Vec::new();
        let mut result = Ok(());
        session.reader.scan(|raw| match raw.parse() {
            Some(Record::Stat(stat)) => {
                let Some(event) = of_id(stat.id) else { return };
                let count = Count { value: stat.value, enabled_ns: stat.enabled, running_ns: stat.running };
                all.insert((event, stat.thread, stat.cpu.wrapping_add(1)), count);
            }
            Some(Record::StatRound(StatRound { is_final, time })) if result.is_ok() => {
                totals.clear();
                totals.extend(all.iter().map(|(&(event, thread, cpu), &count)| CounterTotal {
                    event,
                    tid: self.threads.get(thread as usize).map(|(tid, _)| *tid),
                    cpu: cpu.checked_sub(1),
                    count,
                }));
                result = visit(CountsRound { is_final, at_ns: time, totals: &totals });
            }
            _ => {}
        })?;
        result
    }
}

/// Returns the events as described in the header, before `EVENT_UPDATE` records are applied.
fn events(session: &Session) -> Vec<CountsEvent> {
    let (reader, features) = (&session.reader, session.reader.features());
    let groups = features.groups.as_deref().unwrap_or_default();
    let group = |index: usize| {
        let inside =
            |leader: usize, members: u32| (leader..leader.saturating_add(members as usize)).contains(&index);
        let own = groups.iter().find(|group| inside(group.leader as usize, group.members));
        own.map_or(index, |group| group.leader as usize)
    };
    let event = |(index, event): (usize, &pmc_perfdata::perfdata::RecordedEvent)| CountsEvent {
        name: event.name(),
        attr: event.attr.clone(),
        scale: 1.0,
        unit: String::new(),
        group: group(index),
        is_counted: false,
    };
    reader.events().iter().enumerate().map(event).collect()
}

/// Whether the recorder added the event only to track tasks and mappings. Such events come last.
fn is_tracker(event: &CountsEvent) -> bool {
    let is_dummy = (event.attr.kind(), event.attr.config()) == (SOFTWARE, DUMMY);
    is_dummy && event.attr.get(Flag::Task) && !event.is_counted
}

/// Returns a function that maps an id to its event's index. A recording with a single event needs no ids.
fn of_ids(session: &Session) -> impl Fn(u64) -> Option<usize> + use<> {
    let events = session.reader.events();
    let ids: FxHashMap<u64, usize> =
        events.iter().enumerate().flat_map(|(index, e)| e.ids.iter().map(move |&id| (id, index))).collect();
    let only = (events.len() == 1).then_some(0);
    move |id| ids.get(&id).copied().or(only)
}

fn numbers(map: &CpuMap<'_>) -> Vec<u32> {
    map.cpus().into_iter().filter_map(|cpu| u32::try_from(cpu).ok()).collect()
}

/// The numbers that perf assigns to the terms of `STAT_CONFIG`.
const AGGREGATION: u64 = 0;
const INTERVAL: u64 = 1;
const SCALE: u64 = 2;
const LEVEL: u64 = 3;

/// Returns the contents of `STAT_CONFIG` for these settings. The interval is in milliseconds; 0 means no
/// interval. Modes whose number depends on perf's version are written as `Global`; see [`MODES`].
pub fn config(aggregation: Aggregation, interval_ms: u64, scale: bool) -> Vec<[u64; 2]> {
    let steady = MODES.iter().take(CHANGING).position(|mode| *mode == Some(aggregation));
    let global = MODES.iter().position(|mode| *mode == Some(Aggregation::Global));
    let mode = steady.or(global).unwrap_or_default() as u64;
    vec![[AGGREGATION, mode], [INTERVAL, interval_ms], [SCALE, scale.into()]]
}

/// The first number in [`MODES`] whose meaning differs between versions of perf.
const CHANGING: usize = 4;

/// Aggregation modes by their number in perf since Linux 6.9 (`enum aggr_mode`); `None` for modes that pmc
/// does not support.
const MODES: [Option<Aggregation>; 10] = [
    Some(Aggregation::Cpu),
    Some(Aggregation::Global),
    Some(Aggregation::Socket),
    Some(Aggregation::Die),
    None, // cluster
    None, // cache
    Some(Aggregation::Core),
    Some(Aggregation::Thread),
    None, // unset
    Some(Aggregation::Node),
];

/// Returns the aggregation mode with this number in the version of perf that made the recording. Without the
/// cache mode (before perf 6.5) or the cluster mode (before 6.9), all later modes have lower numbers. perf
/// before 6.5 does not write a cache level either.
fn aggregation(number: u64, knows_caches: bool, features: &Features) -> Aggregation {
    let minor = features.version.as_deref().and_then(|version| {
        let rest = version.strip_prefix("6.")?;
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok()
    });
    let lacks = match (knows_caches, minor) {
        (false, _) => 2,
        (true, Some(5..9)) => 1,
        _ => 0,
    };
    let number = if number >= CHANGING as u64 { number.saturating_add(lacks) } else { number };
    let mode = usize::try_from(number).ok().and_then(|number| MODES.get(number).copied());
    mode.flatten().unwrap_or_default()
}

/// Returns the recorded CPU topology.
fn topology(features: &Features) -> Topology {
    let Some(topology) = &features.cpu_topology else { return Topology::default() };
    let count = topology.cpus.len();
    let threads = lists(topology.thread_siblings.iter().map(|text| (0, text)), count);
    let nodes = lists(features.numa_topology.iter().flatten().map(|node| (node.node, &node.cpus)), count);
    // No core is recorded for CPUs that were offline.
    let seats =
        topology.cpus.iter().zip(0..).filter(|(_, cpu)| threads.is_empty() || threads.contains_key(cpu));
    let location = |(&(core, socket), cpu): (&(u32, u32), u32)| {
        let location = CpuLocation {
            node: nodes.get(&cpu).map(|(node, _)| *node),
            socket,
            die: topology.dies.get(cpu as usize).copied().unwrap_or(0),
            cluster: None,
            core,
            thread: threads.get(&cpu).map_or(0, |(_, thread)| *thread),
        };
        (cpu, location)
    };
    Topology::from_locations(seats.map(location).collect())
}

/// Returns, for each CPU, the number of the list that contains it, and its position in that list. Each CPU is
/// in only one list, so all lists together contain at most `cpus` CPUs.
fn lists<'t>(texts: impl Iterator<Item = (u32, &'t String)>, cpus: usize) -> BTreeMap<u32, (u32, u32)> {
    let mut of = BTreeMap::new();
    let mut left = cpus;
    for (number, text) in texts {
        let Ok(list) = text.parse::<CpuList>() else { continue };
        let Some(rest) = left.checked_sub(list.len()) else { break };
        left = rest;
        of.extend(list.iter().zip(0..).map(|(cpu, before)| (cpu, (number, before))));
    }
    of
}
