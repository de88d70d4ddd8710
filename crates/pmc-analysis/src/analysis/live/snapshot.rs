//! Snapshots of the live state, which combine rows with names, separate idle samples, and answer queries.
//!
//! Combines the rows of [`Live`](crate::session::live::Live) with the names known so far, to answer queries
//! and to fill in the header. Decides when samples decay. Never blocks.

use std::borrow::Cow;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::{FxHashMap, FxHashSet};

use super::names::{CopiedNames, NameLookup};
use crate::analysis::request::NamePattern;
use crate::profile::sampled::callers;
use crate::profile::sampled::event_totals::EventTotals;
use crate::profile::sampled::idle::{self, IdleInput, IdleWaits, MeasuredThread};
use crate::profile::sampled::query;
use crate::profile::sampled::table_input::{RowStrings, TableInput};
use crate::profile::sampled::waits::{self, ThreadTimeSums};
use crate::profile::sampled::{
    FunctionRef, LiveHeader, LocationCalls, Query, QueryAnswer, SampleValue, StackProfile, StringId,
    StringTable,
};
use crate::session::CodeLocation;
use crate::session::intern::words;
use crate::session::live::{LiveCounts, LiveRows, LiveState};
use crate::session::samples::{RowKey, SampleAttribute, unnamed_thread};
use pmc_sys::abi::CpuMode;
use pmc_sys::host::Host;
use pmc_sys::host::cpu::Topology;
use pmc_sys::sys::clock::{monotonic_ns, process_cpu_ns};
use pmc_sys::sys::memory;
use pmc_sys::sys::process::exists;
use pmc_text::units::seconds;

/// The kernel's idle functions, from perf's list.
const IDLE: &[&str] = &[
    "acpi_idle_do_entry",
    "acpi_processor_ffh_cstate_enter",
    "acpi_safe_halt",
    "arch_cpu_idle",
    "cpu_do_idle",
    "cpu_idle",
    "cpu_startup_entry",
    "default_idle",
    "default_idle_call",
    "enter_idle",
    "exit_idle",
    "idle_cpu",
    "intel_idle",
    "intel_idle_ibrs",
    "intel_idle_irq",
    "mwait_idle",
    "mwait_idle_with_hints",
    "mwait_idle_with_hints.constprop.0",
    "native_safe_halt",
    "poll_idle",
    "pv_native_safe_halt",
];

/// How older samples are treated when an interval ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retention {
    /// The weight of older samples is reduced to 7/8 with each new table, as in perf.
    Decays,
    /// Older samples have the same weight as new ones.
    Lasts,
    /// Older samples are dropped.
    None,
}

impl Retention {
    /// Returns the fraction of all costs that remains after an interval.
    pub fn keep(self) -> f64 {
        match self {
            Self::Decays => 7.0 / 8.0,
            Self::Lasts => 1.0,
            Self::None => 0.0,
        }
    }
}

/// Options for snapshots.
#[derive(Debug, Clone)]
pub struct SnapshotOptions {
    /// The attributes to request from [`Live`](crate::session::live::Live).
    pub attributes: Vec<SampleAttribute>,
    /// Whether to look up the socket of each CPU.
    pub with_sockets: bool,
    /// Whether to keep idle samples.
    pub with_idle: bool,
    /// Functions whose callees count as part of the function itself.
    pub ignore_callees: Option<NamePattern>,
}

/// Minimum time between returns of freed memory to the kernel. Returning it more often would be slow, because
/// the kernel zeroes memory before it allocates it again.
const GIVE_BACK: Duration = Duration::from_secs(8);

/// Takes snapshots, and answers queries from them.
pub struct SnapshotMaker {
    pub(super) shared: Arc<LiveState>,
    pub(super) names: NameLookup,
    pub(super) options: SnapshotOptions,
    sockets: FxHashMap<u32, i64>,
    start: u64,
    before: PreviousCounters,
    given_back: Instant,
    pub(super) host: Host,
}

/// Counters at the time of the previous header.
#[derive(Clone, Copy)]
struct PreviousCounters {
    at: u64,
    cpu: u64,
    counts: LiveCounts,
}

/// The rows at one point in time, with the names known by then. Answers any number of queries.
pub struct LiveSnapshot {
    /// Empty once the snapshot has been released.
    live_rows: LiveRows,
    is_released: bool,
    code: LocationCalls,
    followed: CopiedNames,
    texts: StringTable,
    comms: Vec<String>,
    /// Names of the processes and threads that occur in the rows.
    task_names: FxHashMap<i32, String>,
    cgroups: FxHashMap<u64, Vec<u8>>,
    events_totals: Vec<EventTotals>,
    /// For each event, the sums of periods in the kernel, in user space, and idle.
    splits: Vec<(u64, u64, u64)>,
    /// Waits of idle threads, which the rows leave out.
    idle_waits: IdleWaits,
}

impl SnapshotMaker {
    /// Creates a snapshot maker that reads the given live state.
    pub fn new(shared: Arc<LiveState>, names: NameLookup, options: SnapshotOptions) -> Self {
        let host = Host::live();
        let sockets = match options.with_sockets {
            true => sockets(&host),
            false => FxHashMap::default(),
        };
        let now = monotonic_ns();
        let before = PreviousCounters { at: now, cpu: process_cpu_ns(), counts: LiveCounts::default() };
        Self { shared, names, options, sockets, start: now, before, given_back: Instant::now(), host }
    }

    /// Takes a snapshot. Reuses the names that the previous snapshot has already looked up.
    pub fn take(&self, last: Option<LiveSnapshot>) -> LiveSnapshot {
        let (mut code, mut followed, mut known) = match last {
            Some(last) => (last.code, last.followed, last.task_names),
            None => Default::default(),
        };
        let kinds = self.options.attributes.iter().enumerate();
        let is_id = |(_, kind): &(usize, &SampleAttribute)| {
            matches!(kind, SampleAttribute::Pid | SampleAttribute::Tid)
        };
        let ids_at: Vec<usize> = kinds.filter(is_id).map(|(at, _)| at).collect();
        let (mut live_rows, comms, task_names, measured, cgroups, thread_time) = {
            let live = self.shared.live();
            let comms = live.history().comms().map(|comm| String::from_utf8_lossy(comm).into_owned());
            let comms = comms.collect();
            let rows = live.rows();
            let mut ids = FxHashSet::default();
            for list in (0..rows.attributes.len() as u32).filter(|_| !ids_at.is_empty()) {
                let all = words(rows.attributes.get(list).1);
                ids.extend(ids_at.iter().filter_map(|at| Some(all.get(*at)? as i32)));
            }
            let measured: FxHashMap<i32, MeasuredThread> = match live.thread_time() {
                Some(_) => {
                    ids.iter().map(|id| (*id, MeasuredThread::from_history(live.history(), *id))).collect()
                }
                None => FxHashMap::default(),
            };
            // A task that has exited keeps its last name.
            let names = ids.into_iter().filter_map(|id| {
                let name = live.history().task_name(id);
                let name = name.map(|name| String::from_utf8_lossy(name).into_owned());
                Some((id, name.or_else(|| known.remove(&id))?))
            });
            let task_names = names.collect();
            (rows, comms, task_names, measured, live.cgroups().clone(), live.thread_time().cloned())
        };
        let texts = {
            let mut named = self.names.table();
            named.code(&live_rows.resolved.locations, live_rows.generation, &mut code, &mut followed);
            named.texts.clone()
        };
        let kinds = &self.options.attributes;
        let mut idle_waits = IdleWaits::default();
        if thread_time.is_some() {
            waits::mark(&mut live_rows.resolved, &live_rows.attributes, kinds);
            if let Some(marked) =
                waits::classify(&mut live_rows.resolved, &live_rows.attributes, kinds, &code, &texts)
            {
                live_rows.attributes = marked.into();
            }
            let thread = |tid: i32| measured.get(&tid).cloned().unwrap_or_default();
            let (attributes, texts) = (&live_rows.attributes, &texts);
            let input = IdleInput { attributes, kinds, code: &code, texts, thread: &thread };
            idle_waits = idle::remove_idle(&mut live_rows.resolved, input);
        }
        let idle: FxHashSet<StringId> = IDLE.iter().filter_map(|name| texts.find(name)).collect();
        let mut events_totals: Vec<EventTotals> = self
            .shared
            .events
            .iter()
            .enumerate()
            .map(|(index, event)| {
                let joint_name = thread_time.as_ref().and_then(|of| of.name(index));
                EventTotals {
                    name: joint_name.map_or_else(|| event.name.clone(), str::to_owned),
                    leader: event.leader,
                    thread_time: joint_name.map(|_| {
                        let rows = live_rows.resolved.rows.iter().chain(&idle_waits.rows);
                        let threads = waits::threads(rows, &live_rows.attributes, kinds);
                        ThreadTimeSums::live(live_rows.elapsed_ns, threads, &idle_waits)
                    }),
                    ..EventTotals::default()
                }
            })
            .collect();
        let mut splits = vec![(0, 0, 0); events_totals.len()];
        let mut rows = std::mem::take(&mut live_rows.resolved.rows);
        rows.retain(|(key, value)| {
            let event = key.event as usize;
            let Some(leaf) = live_rows.resolved.stack(key.stack).next() else { return false };
            let call = &code.calls()[code.own(leaf)];
            let in_kernel = call.level == CpuMode::Kernel;
            let is_idle = in_kernel && idle.contains(&call.symbol);
            let split = &mut splits[event];
            let part = match (is_idle, in_kernel) {
                (true, _) => &mut split.2,
                (_, true) => &mut split.0,
                _ => &mut split.1,
            };
            *part += value.ran();
            let is_shown = !is_idle || self.options.with_idle;
            if is_shown {
                events_totals[event].total += value;
            }
            is_shown
        });
        live_rows.resolved.rows = rows;
        if let Some(pattern) = &self.options.ignore_callees {
            let idle = &mut idle_waits.rows;
            callers::ignore_callees(&mut live_rows.resolved, idle, &code, &texts, &|name| {
                pattern.finds(name)
            });
        }
        LiveSnapshot {
            live_rows,
            is_released: false,
            code,
            followed,
            texts,
            comms,
            task_names,
            cgroups,
            events_totals,
            splits,
            idle_waits,
        }
    }

    /// Answers a query from a snapshot.
    pub fn answer(&self, snapshot: &LiveSnapshot, query: &Query) -> QueryAnswer {
        let words = SnapshotStrings { snapshot, sockets: &self.sockets, names: &self.names };
        let (rows, totals) = (snapshot.selected_rows(query), snapshot.totals_of(query));
        let input = self.input(snapshot, &rows, &words);
        query::answer(&input, &totals, query, snapshot.texts.clone())
    }

    /// Calls `visit` with the samples that pass the query's filter, grouped by stack; used for exports.
    pub fn with_stacks<R>(
        &self,
        snapshot: &LiveSnapshot,
        query: &Query,
        visit: impl FnOnce(&StackProfile<'_>) -> R,
    ) -> R {
        let words = SnapshotStrings { snapshot, sockets: &self.sockets, names: &self.names };
        let modules = self.names.table().modules().to_vec();
        let (rows, totals) = (snapshot.selected_rows(query), snapshot.totals_of(query));
        let input = self.input(snapshot, &rows, &words);
        visit(&StackProfile::new(&input, &modules, &totals, query, &snapshot.texts))
    }

    fn input<'a>(
        &'a self,
        snapshot: &'a LiveSnapshot,
        rows: &'a [(RowKey, SampleValue)],
        words: &'a SnapshotStrings<'a>,
    ) -> TableInput<'a> {
        TableInput {
            rows,
            resolved: &snapshot.live_rows.resolved,
            attributes: &snapshot.live_rows.attributes,
            attribute_kinds: &self.options.attributes,
            code: &snapshot.code,
            words,
        }
    }

    /// Returns the header's data, and starts the next interval. `event` selects the event whose periods are
    /// split into kernel, user and idle.
    pub fn head(&mut self, snapshot: &LiveSnapshot, event: usize) -> LiveHeader {
        let counts = self.shared.live().counts();
        let now = PreviousCounters { at: monotonic_ns(), cpu: process_cpu_ns(), counts };
        // The viewer may have waited for names since sampling ended.
        let sampled_until = self.shared.ended_ns().unwrap_or(now.at);
        let sampled = seconds(sampled_until.saturating_sub(self.before.at).max(1));
        let elapsed = seconds((now.at - self.before.at).max(1));
        let split = snapshot.splits.get(event).map(|&(kernel, user, idle)| {
            let all = (kernel + user + idle).max(1) as f64;
            (kernel as f64 / all, user as f64 / all, idle as f64 / all)
        });
        let mut notes = self.shared.warnings();
        let warnings = notes.len();
        if self.shared.is_yielding() {
            notes.push("another program has reserved the hardware counters: counting is paused".to_owned());
        }
        if counts.downsampled > 0 {
            notes.push(
                "too many distinct stacks: some rare stacks represent others (so the ± is larger)".to_owned(),
            );
        }
        let head = LiveHeader {
            since_ns: sampled_until.saturating_sub(self.start),
            rate: (counts.samples - self.before.counts.samples) as f64 / sampled,
            events: self.shared.events.iter().map(|event| event.name.clone()).collect(),
            lost: counts.lost,
            samples: counts.samples,
            throttled: counts.throttled,
            unknown: counts.unknown,
            split,
            own_cpu: seconds(now.cpu - self.before.cpu) / elapsed,
            own_memory: self.own_memory(),
            warnings,
            notes,
        };
        self.before = now;
        head
    }

    fn own_memory(&self) -> u64 {
        let statm = self.host.text("/proc/self/statm").unwrap_or_default();
        let pages: u64 = statm.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        pages * pmc_sys::sys::page_size() as u64
    }

    /// Ends an interval: decays, keeps or clears the sums, and drops unused data.
    pub fn end_interval(&mut self, retention: Retention) {
        let before = self.shared.settled();
        let mut live = self.shared.live();
        match retention {
            Retention::Decays => live.decay(retention.keep()),
            Retention::Lasts => {}
            Retention::None => live.clear(),
        }
        let has_forgotten = live.forget(before, exists);
        drop(live);
        if has_forgotten && self.given_back.elapsed() > GIVE_BACK {
            self.given_back = Instant::now();
            memory::give_back();
        }
    }
}

impl LiveSnapshot {
    /// Returns the rows, with or without the waits of idle threads.
    fn selected_rows(&self, query: &Query) -> Cow<'_, [(RowKey, SampleValue)]> {
        self.idle_waits.select(&self.live_rows.resolved.rows, query.idle)
    }

    /// Returns the totals of the rows that `selected_rows` returns.
    fn totals_of(&self, query: &Query) -> Vec<EventTotals> {
        let mut totals = self.events_totals.clone();
        if query.idle {
            EventTotals::add_idle(&mut totals, &self.idle_waits);
        }
        totals
    }

    /// Releases the data shared with the sampling thread, which must copy shared data before it can add
    /// samples. The names are kept for the next snapshot.
    pub fn release(&mut self) {
        self.live_rows = LiveRows::default();
        self.idle_waits = IdleWaits::default();
        self.is_released = true;
    }

    /// Whether the snapshot has been released.
    pub fn is_released(&self) -> bool {
        self.is_released
    }

    /// Returns each function's own cost, by module and name.
    pub(crate) fn own(&self, event: usize) -> FxHashMap<(StringId, StringId), u64> {
        let mut by_leaf = vec![0u64; self.code.len()];
        for (key, value) in self.live_rows.resolved.rows.iter().filter(|(key, _)| key.event as usize == event)
        {
            if let Some(leaf) = self.live_rows.resolved.stack(key.stack).next() {
                let sum = &mut by_leaf[leaf as usize];
                *sum = sum.saturating_add(value.period);
            }
        }
        let mut sums: FxHashMap<_, u64> = FxHashMap::default();
        for (leaf, period) in (0..).zip(by_leaf).filter(|(_, period)| *period > 0) {
            let call = &self.code.calls()[self.code.own(leaf)];
            let sum = sums.entry((call.dso, call.symbol)).or_default();
            *sum = sum.saturating_add(period);
        }
        sums
    }

    /// Returns the samples in a function: location, event index and cost. For an inlined function, returns
    /// the samples of the function that contains it, or of the costliest one if there are several.
    pub(crate) fn samples_of(&self, function: &FunctionRef) -> Vec<(CodeLocation, usize, SampleValue)> {
        let (Some(dso), Some(symbol)) = (self.texts.find(&function.dso), self.texts.find(&function.symbol))
        else {
            return Vec::new();
        };
        let resolved = &self.live_rows.resolved;
        let own = |leaf| {
            let call = &self.code.calls()[self.code.own(leaf)];
            (call.dso, call.symbol)
        };
        let samples_of = |function| -> Vec<(CodeLocation, usize, SampleValue)> {
            let rows = resolved.rows.iter().filter_map(|(key, value)| {
                let leaf = resolved.stack(key.stack).next().filter(|leaf| own(*leaf) == function)?;
                Some((resolved.locations[leaf as usize], key.event as usize, value.clone()))
            });
            rows.collect()
        };
        let samples = samples_of((dso, symbol));
        if !samples.is_empty() {
            return samples;
        }
        let mut hosts: FxHashMap<_, u64> = FxHashMap::default();
        for (key, value) in &resolved.rows {
            let Some(leaf) = resolved.stack(key.stack).next() else { continue };
            let mut calls = self.code.calls()[self.code.range(leaf)].iter();
            if calls.any(|call| call.inlined && (call.dso, call.symbol) == (dso, symbol)) {
                let sum = hosts.entry(own(leaf)).or_default();
                *sum = sum.saturating_add(value.period);
            }
        }
        let host = hosts.into_iter().max_by_key(|(function, period)| (*period, *function));
        host.map_or_else(Vec::new, |(function, _)| samples_of(function))
    }

    pub(crate) fn rows(&self) -> &[(RowKey, SampleValue)] {
        &self.live_rows.resolved.rows
    }

    /// Returns the code locations to which rows refer.
    pub(crate) fn locations(&self) -> &[CodeLocation] {
        &self.live_rows.resolved.locations
    }

    /// Returns the locations of a row's stack, innermost first.
    pub(crate) fn stack(&self, number: u32) -> impl Iterator<Item = CodeLocation> + '_ {
        self.live_rows.resolved.stack(number).map(|number| self.live_rows.resolved.locations[number as usize])
    }

    /// Returns a row's attributes.
    pub(crate) fn attributes(&self, number: u32) -> &[u8] {
        if self.live_rows.attributes.is_empty() { &[] } else { self.live_rows.attributes.get(number).1 }
    }

    /// Returns the thread name with this number in the rows.
    pub(crate) fn comm(&self, comm: u32) -> String {
        match self.comms.get(comm as usize) {
            Some(name) => name.clone(),
            None => unnamed_thread(comm),
        }
    }

    /// Returns the total of each event.
    pub(crate) fn totals(&self) -> Vec<SampleValue> {
        self.events_totals.iter().map(|source| source.total.clone()).collect()
    }

    pub(crate) fn text(&self, id: StringId) -> &str {
        self.texts.get(id)
    }
}

fn sockets(host: &Host) -> FxHashMap<u32, i64> {
    Topology::read(host).iter().map(|(cpu, location)| (cpu, i64::from(location.socket))).collect()
}

/// Resolves the numeric ids in rows to text.
struct SnapshotStrings<'a> {
    snapshot: &'a LiveSnapshot,
    sockets: &'a FxHashMap<u32, i64>,
    names: &'a NameLookup,
}

impl RowStrings for SnapshotStrings<'_> {
    fn comm(&self, comm: u32) -> String {
        self.snapshot.comm(comm)
    }

    fn task_name(&self, tid: i32) -> Option<String> {
        self.snapshot.task_names.get(&tid).cloned()
    }

    fn cgroup(&self, id: u64) -> String {
        match self.snapshot.cgroups.get(&id) {
            Some(path) => String::from_utf8_lossy(path).into_owned(),
            None => id.to_string(),
        }
    }

    fn socket(&self, cpu: u64) -> Option<i64> {
        self.sockets.get(&u32::try_from(cpu).ok()?).copied()
    }

    fn mapped(&self, module: u32) -> Option<u64> {
        self.names.table().modules().get(module as usize)?.mapped.map(NonZeroU64::get)
    }

    fn payload(&self, _number: u64) -> String {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::names::{self, NameOptions};
    use super::*;
    use crate::session::live::Live;
    use crate::session::samples::SampleQuery;
    use pmc_perfdata::record::Layouts;
    use pmc_symbols::symbol::{Depth, SymbolOptions};

    #[test]
    fn time_after_the_end_of_sampling_does_not_count() {
        let live = Live::new(Arc::new(Layouts::new([])), Vec::new(), SampleQuery::default(), 1);
        let shared = Arc::new(LiveState::new(live, Vec::new(), Duration::from_secs(1)));
        let symbols = SymbolOptions { cache: None, ..SymbolOptions::from_environment() };
        let named = NameOptions { options: symbols, depth: Depth::Names, raw_names: false };
        let (_requests, names) = names::start(named).unwrap();
        let options = SnapshotOptions {
            attributes: Vec::new(),
            with_sockets: false,
            with_idle: false,
            ignore_callees: None,
        };
        let mut maker = SnapshotMaker::new(shared.clone(), names, options);
        let snapshot = maker.take(None);
        let running = maker.head(&snapshot, 0).since_ns;
        shared.end();
        let ended = maker.head(&snapshot, 0);
        let later = maker.head(&snapshot, 0);
        assert!(running < ended.since_ns);
        assert_eq!((later.since_ns, later.rate), (ended.since_ns, 0.0));
    }
}
