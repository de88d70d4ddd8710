//! Pass 2: samples become rows, one for each distinct combination of event, stack, name and what else is asked for.
//!
//! Receives chunks in any order on any number of threads; each thread adds up into rows of its own, which are merged at
//! the end. Stacks are interned as the kernel wrote them, before any address is looked at, so memory and most of the
//! work follow distinct stacks, not samples.
//!
//! ```text
//!   chunk 0  chunk 2  …  -> worker A: rows --+--> one set of rows
//!   chunk 1  chunk 3  …  -> worker B: rows --'
//!                            '-- both --> stacks, extras, payloads (intern::Shared)
//! ```

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use super::deferred::Deferred;
use super::intern::{Lists, Shared, bytes};
use super::{CommId, Layer, Moment, Session};
use crate::perfdata::{self, Buffer, Chunk};
use crate::record::layout::bits;
use crate::record::sample::{Branch, CONTEXT_MAX};
use crate::record::{CpuMode, Layouts, Parts, RawRecord, Sample, Thread, Words, kind};

/// A property of samples that rows are told apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extra {
    /// The process.
    Pid,
    /// The thread.
    Tid,
    /// The CPU.
    Cpu,
    /// The time, in slices of so many nanoseconds.
    Time(u64),
    /// The cgroup's number.
    Cgroup,
    /// The cost that the hardware told.
    Weight,
    /// The period.
    Period,
    /// The address of the data.
    Addr,
    /// The tracepoint's payload: a number in [`Samples::payloads`], or `u64::MAX`.
    Payload,
    /// Where a branch came from: an address, then the number of its location.
    From,
    /// The flags of a branch.
    BranchFlags,
    /// The data: an address, then the number of its location.
    Data,
    /// The line of the cache that the data are in, the same way.
    DataLine,
    /// The bare address that a branch came from.
    FromAddr,
    /// The bare address that a branch went to.
    ToAddr,
    /// Where the data came from.
    DataSrc,
    /// The physical address of the data.
    PhysAddr,
    /// Bytes of the data's page.
    DataPage,
    /// Bytes of the code's page.
    CodePage,
    /// Cycles from dispatch to retirement.
    InsLatency,
    /// Cycles in a stage of the pipeline.
    StageCycles,
    /// Transaction flags.
    Transaction,
    /// The function that `--parent` looks for. Not the sample's: `profile` fills it in.
    Parent,
}

impl Extra {
    /// Whether it is an address that becomes a location.
    pub fn is_place(self) -> bool {
        matches!(self, Self::From | Self::Data | Self::DataLine)
    }

    /// Whether it lies behind a sample's first fields.
    fn is_late(self) -> bool {
        matches!(
            self,
            Self::Cgroup
                | Self::Payload
                | Self::DataSrc
                | Self::PhysAddr
                | Self::DataPage
                | Self::CodePage
                | Self::InsLatency
                | Self::StageCycles
                | Self::Transaction
        )
    }
}

/// What is asked of pass 2.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// What rows are told apart by, besides event, stack and name.
    pub extras: Vec<Extra>,
    /// Take no notice of names: all rows have the same.
    pub ignore_comms: bool,
    /// Take no notice of callers.
    pub ignore_stacks: bool,
    /// Each branch of a sample counts, once, at its target; the sample itself does not.
    pub branches: bool,
    /// A sample counts for its weight, at least 1, not for its period.
    pub by_weight: bool,
    /// Only these spans of time (nanoseconds, ends included); empty: all.
    pub times: Vec<(u64, u64)>,
    /// Only these CPUs.
    pub cpus: Option<FxHashSet<u32>>,
    /// Only these processes; the others are counted as filtered.
    pub pids: Option<FxHashSet<i32>>,
    /// Only these threads.
    pub tids: Option<FxHashSet<i32>>,
    /// Only these names.
    pub comms: Option<FxHashSet<CommId>>,
}

impl Wanted {
    /// Whether time and CPU of a sample are asked for.
    pub fn takes(&self, sample: &Sample<'_>, time: Option<u64>) -> bool {
        let at = time.unwrap_or(0);
        (self.times.is_empty() || self.times.iter().any(|(from, to)| (*from..=*to).contains(&at)))
            && self.cpus.as_ref().is_none_or(|cpus| sample.cpu().is_some_and(|cpu| cpus.contains(&cpu)))
    }

    /// Whether its thread is.
    pub fn takes_thread(&self, thread: Thread, comm: Option<CommId>) -> bool {
        self.pids.as_ref().is_none_or(|pids| pids.contains(&thread.pid))
            && self.tids.as_ref().is_none_or(|tids| tids.contains(&thread.tid))
            && self.comms.as_ref().is_none_or(|comms| comm.is_some_and(|comm| comms.contains(&comm)))
    }
}

/// What was added up.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Value {
    /// Number of samples.
    pub samples: u64,
    /// Sum of their periods: occurrences of the event.
    pub period: u64,
    /// Sum of the squares of the periods: what the sampling error follows from.
    pub squares: f64,
    /// Sum of their weights.
    pub weight: u64,
}

impl Value {
    fn of(period: u64, weight: u64) -> Self {
        Self { samples: 1, period, squares: (period as f64) * (period as f64), weight }
    }
}

impl std::ops::AddAssign for Value {
    fn add_assign(&mut self, other: Self) {
        self.samples += other.samples;
        self.period = self.period.saturating_add(other.period);
        self.squares += other.squares;
        self.weight = self.weight.saturating_add(other.weight);
    }
}

/// The bit in [`Key::comm`] of threads whose name is not known.
pub const NAMELESS: u32 = 1 << 31;
/// The [`Key::comm`] of all rows where names do not matter. No thread has this number.
pub const ANY_COMM: u32 = NAMELESS - 1;

/// What a row is told apart by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Index of the event.
    pub event: u32,
    /// Number of the stack.
    pub stack: u32,
    /// The thread's name ([`CommId`]); [`NAMELESS`] and the thread's number where nobody said it; [`ANY_COMM`] where
    /// names are not wanted.
    pub comm: u32,
    /// Number of the list of extras.
    pub extra: u32,
}

/// What pass 2 found.
#[derive(Debug, Default)]
pub struct Samples {
    /// The sums.
    pub rows: Vec<(Key, Value)>,
    /// The stacks: tag is the layer, words are as in a record (context markers and addresses, innermost first). Numbers
    /// count through all parts.
    pub stacks: Vec<Lists>,
    /// The extras of rows, in the order of [`Wanted::extras`]. The tag is the layer where one is an address.
    pub extras: Lists,
    /// Which of the extras are addresses that become locations.
    pub places: Vec<(usize, Extra)>,
    /// Payloads of tracepoints; the tag is their event.
    pub payloads: Lists,
    /// Sums of each event, filtered samples included.
    pub totals: Vec<Value>,
    /// What the filters of pid, tid and name took out.
    pub filtered: Vec<Value>,
    /// Samples that belong to no known event, or are cut short.
    pub unknown: u64,
    /// Samples that events said they lost, in the counts that samples hold.
    pub lost: u64,
    /// First and last time, in nanoseconds; `None` without times.
    pub span: Option<(u64, u64)>,
}

/// Makes [`Walk`]s.
pub trait Unwind: Sync {
    /// One for a thread.
    fn walker(&self) -> Box<dyn Walk + '_>;
}

/// Turns registers and a copy of the stack into a call chain.
pub trait Walk {
    /// Appends the chain, innermost first, return addresses as they are.
    fn walk(&mut self, layer: Layer, parts: &Parts<'_>, chain: &mut Vec<u64>);
}

/// Runs pass 2. `progress` is told how many samples more are done, from several threads.
///
/// # Errors
/// When the file cannot be read.
pub fn collect(
    session: &Session,
    wanted: &Wanted,
    unwind: Option<&dyn Unwind>,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Samples, perfdata::Error> {
    let reads = session.reader.layouts().iter().any(|layout| layout.sample_type() & bits::READ != 0);
    // Counter values are differences to the reading before: those need the file's order.
    let workers = if reads { 1 } else { rayon::current_num_threads().min(session.index.chunks.len()).max(1) };
    let mut start = 0;
    let chunks: Vec<(Moment, &Chunk)> = session
        .index
        .chunks
        .iter()
        .map(|chunk| {
            let here = start;
            start += chunk.bytes();
            (here, chunk)
        })
        .collect();
    let next = AtomicUsize::new(0);
    let shared = Interned::default();
    let work = |_| {
        let mut worker = Worker::new(session, wanted, unwind, reads, &shared);
        let mut buffer = Buffer::default();
        while let Some((position, chunk)) = chunks.get(next.fetch_add(1, Ordering::Relaxed)) {
            if chunk.samples == 0 {
                continue;
            }
            let mut at = *position;
            for raw in session.reader.load(chunk, &mut buffer)? {
                if raw.kind == kind::SAMPLE {
                    worker.sample(&raw, at);
                }
                at += raw.bytes.len() as u64;
            }
            progress(chunk.samples.into());
        }
        Ok(worker.finish())
    };
    let parts: Result<Vec<Samples>, _> = (0..workers).into_par_iter().map(work).collect();
    Ok(merge(parts?, shared, wanted))
}

/// What all workers intern.
#[derive(Default)]
struct Interned {
    stacks: Shared,
    extras: Shared,
    payloads: Shared,
}

/// Bytes that a cache fetches together, on the machines that pmc knows.
const CACHE_LINE: u64 = 64;

/// Which event a sample is of, and when it was taken.
struct About {
    event: usize,
    time: Option<u64>,
    moment: Moment,
}

/// What is remembered of the thread whose sample came last: the next is often its too.
#[derive(Clone, Copy)]
struct Last {
    pid: i32,
    layer: Layer,
    /// The span in which `layer` holds.
    from: Moment,
}

/// Makes a sample's chain whole: markers where they are missing, the user part unwound where the stack was copied.
pub struct Stacker<'a> {
    walker: Option<Box<dyn Walk + 'a>>,
    deferred: Option<&'a Deferred>,
    ignore_callers: bool,
    chain: Vec<u64>,
    scratch: Vec<u8>,
}

impl<'a> Stacker<'a> {
    /// One for a thread.
    pub fn new(wanted: &Wanted, unwind: Option<&'a dyn Unwind>) -> Self {
        Self {
            walker: unwind.map(Unwind::walker),
            deferred: None,
            ignore_callers: wanted.ignore_stacks,
            chain: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Joins chains with their parts that came later.
    pub fn joining(self, deferred: &'a Deferred) -> Self {
        Self { deferred: (!deferred.is_empty()).then_some(deferred), ..self }
    }

    /// Context markers and addresses, innermost first; without a copy where the record has them so.
    pub fn chain<'s>(&'s mut self, sample: &Sample<'s>, layer: Layer) -> Words<'s> {
        let mode = sample.cpu_mode();
        let ip = sample.ip();
        let chain = if self.ignore_callers { None } else { sample.callchain() };
        let has_copy = sample.layout().sample_type() & bits::STACK_USER != 0 && !self.ignore_callers;
        let awaited = chain.and_then(Deferred::awaited);
        if !has_copy
            && awaited.is_none()
            && let Some(chain) = chain
        {
            let starts_well = chain.get(0).is_some_and(|word| word >= CONTEXT_MAX)
                && chain.get(1).is_some_and(|word| word < CONTEXT_MAX && ip.is_none_or(|ip| ip == word));
            if starts_well {
                return chain;
            }
        }
        self.chain.clear();
        self.chain.extend([marker(mode), ip.unwrap_or(0)]);
        if let Some(chain) = chain {
            // The last two words are then no addresses.
            let own = if awaited.is_some() { chain.first(chain.len() - 2) } else { chain };
            self.append(own, ip);
        }
        if let (Some(cookie), Some(deferred)) = (awaited, self.deferred) {
            let tid = sample.thread().map_or(0, |thread| thread.tid);
            if let Some(part) = deferred.part(tid, cookie) {
                let first = part.iter().position(|word| word < CONTEXT_MAX).unwrap_or(part.len());
                if mode == CpuMode::User {
                    // The sample was taken in the process: its part begins with the sampled address.
                    self.chain.extend(part.iter().skip(first + 1));
                } else {
                    self.chain.push(marker(CpuMode::User));
                    self.chain.extend(part.iter().skip(first));
                }
            }
        }
        if has_copy && let (Some(walker), Some(parts)) = (&mut self.walker, sample.parts()) {
            unwound(walker.as_mut(), layer, &parts, mode, &mut self.chain);
        }
        bytes(&self.chain, &mut self.scratch);
        Words::new(&self.scratch)
    }

    /// Puts a chain behind the sampled address, which stands in it again (or, with precise events, nearly so).
    fn append(&mut self, chain: Words<'_>, ip: Option<u64>) {
        let first = chain.iter().position(|word| word < CONTEXT_MAX);
        let Some(first) = first else { return };
        let same_context = first == 0 || chain.get(first - 1) == self.chain.first().copied();
        let mut rest = chain.iter().skip(first);
        if same_context || ip.is_none() {
            if ip.is_none() {
                self.chain.clear();
                self.chain.extend(first.checked_sub(1).and_then(|at| chain.get(at)));
                self.chain.push(chain.get(first).unwrap_or(0));
            }
            rest.next();
        } else {
            // The sample is in another context than its chain begins with.
            self.chain.extend(first.checked_sub(1).and_then(|at| chain.get(at)));
        }
        self.chain.extend(rest);
    }
}

/// The last value of each counter, for recordings whose samples hold counts: a sample then stands for what each
/// member of its group counted since the sample before.
#[derive(Debug, Default)]
pub struct Readings {
    values: FxHashMap<u64, u64>,
    /// Samples that each event said it had lost (`PERF_FORMAT_LOST`).
    lost: FxHashMap<u64, u64>,
}

impl Readings {
    /// The events that a sample stands for, with what each counted. `None` when its counts cannot be read.
    pub fn of(&mut self, layouts: &Layouts, event: usize, sample: &Sample<'_>) -> Option<Vec<(usize, u64)>> {
        let values = sample.parts()?.read?;
        let mut members = Vec::new();
        for value in values.iter() {
            let id = value.id.or(sample.id()).unwrap_or(0);
            let before = self.values.insert(id, value.value).unwrap_or(0);
            if let Some(lost) = value.lost.filter(|lost| *lost > 0) {
                self.lost.insert(id, lost);
            }
            let period = value.value.wrapping_sub(before);
            let member = if value.id.is_some() { layouts.event_of(id) } else { Some(event) };
            members.extend(member.filter(|_| period > 0).map(|member| (member, period)));
        }
        Some(members)
    }
}

struct Worker<'a> {
    session: &'a Session,
    wanted: &'a Wanted,
    layouts: &'a Layouts,
    stacker: Stacker<'a>,
    reads: bool,
    readings: Readings,
    last: Option<Last>,
    interned: &'a Interned,
    rows: FxHashMap<Key, Value>,
    out: Samples,
    scratch: Vec<u8>,
    words: Vec<u64>,
}

/// The marker that stands before addresses of this mode.
fn marker(mode: CpuMode) -> u64 {
    let number: i64 = match mode {
        CpuMode::Unknown => -4000,
        CpuMode::Kernel => -128,
        CpuMode::User => -512,
        CpuMode::Hypervisor => -32,
        CpuMode::GuestKernel => -2176,
        CpuMode::GuestUser => -2560,
    };
    number as u64
}

impl<'a> Worker<'a> {
    fn new(
        session: &'a Session,
        wanted: &'a Wanted,
        unwind: Option<&'a dyn Unwind>,
        reads: bool,
        interned: &'a Interned,
    ) -> Self {
        let events = session.reader.events().len();
        let out = Samples {
            totals: vec![Value::default(); events],
            filtered: vec![Value::default(); events],
            ..Samples::default()
        };
        Self {
            session,
            wanted,
            layouts: session.reader.layouts(),
            stacker: Stacker::new(wanted, unwind).joining(&session.deferred),
            reads,
            readings: Readings::default(),
            last: None,
            interned,
            rows: FxHashMap::default(),
            out,
            scratch: Vec::new(),
            words: Vec::new(),
        }
    }

    fn sample(&mut self, raw: &RawRecord<'_>, position: Moment) {
        let Some((event, sample)) = self.layouts.sample(raw) else {
            self.out.unknown += 1;
            return;
        };
        let time = sample.time().map(|time| time.0);
        if !self.wanted.takes(&sample, time) {
            return;
        }
        if let Some(time) = time {
            let (first, last) = self.out.span.unwrap_or((time, time));
            self.out.span = Some((first.min(time), last.max(time)));
        }
        if self.wanted.branches {
            self.branches(event, &sample, time, position);
            return;
        }
        if self.reads && sample.layout().sample_type() & bits::READ != 0 {
            let Some(members) = self.readings.of(self.layouts, event, &sample) else {
                self.out.unknown += 1;
                return;
            };
            for (member, period) in members {
                self.add(member, &sample, time, position, period);
            }
            return;
        }
        let period = sample.period().unwrap_or_else(|| self.session.reader.events()[event].attr.period());
        self.add(event, &sample, time, position, period);
    }

    /// Each branch counts once, as a stack of its target alone.
    fn branches(&mut self, event: usize, sample: &Sample<'_>, time: Option<u64>, position: Moment) {
        let Some(branches) = sample.parts().and_then(|parts| parts.branches) else { return };
        let about = About { event, time, moment: self.moment(time, position) };
        for branch in branches.iter() {
            let value = Value::of(1, branch.flags.cycles().into());
            let Some((comm, layer)) = self.owner(&about, sample, value) else { continue };
            let mode = if branch.to >> 63 == 1 { CpuMode::Kernel } else { CpuMode::User };
            bytes(&[marker(mode), branch.to], &mut self.scratch);
            let stack = self.interned.stacks.add(layer.0, &self.scratch);
            let extra = self.extra(&about, sample, value, Some(branch));
            let key = Key { event: event as u32, stack, comm, extra };
            *self.rows.entry(key).or_default() += value;
        }
    }

    fn moment(&self, time: Option<u64>, position: Moment) -> Moment {
        if self.session.has_time { time.unwrap_or(0) } else { position }
    }

    fn add(&mut self, event: usize, sample: &Sample<'_>, time: Option<u64>, position: Moment, period: u64) {
        let about = About { event, time, moment: self.moment(time, position) };
        let weight = if sample.layout().sample_type() & (bits::WEIGHT | bits::WEIGHT_STRUCT) != 0 {
            sample.parts().and_then(|parts| parts.weight).map_or(0, |weight| weight.value())
        } else {
            0
        };
        let value = Value::of(if self.wanted.by_weight { weight.max(1) } else { period }, weight);
        let Some((comm, layer)) = self.owner(&about, sample, value) else { return };
        let stack = self.interned.stacks.add(layer.0, self.stacker.chain(sample, layer).as_bytes());
        let extra = self.extra(&about, sample, value, None);
        let key = Key { event: event as u32, stack, comm, extra };
        *self.rows.entry(key).or_default() += value;
    }

    /// Counts the sample; whose it is, and in which layer, unless a filter takes it out.
    fn owner(&mut self, about: &About, sample: &Sample<'_>, value: Value) -> Option<(u32, Layer)> {
        let thread = sample.thread().unwrap_or_default();
        self.out.totals[about.event] += value;
        let comm = if self.wanted.ignore_comms && self.wanted.comms.is_none() {
            None
        } else {
            self.session.history.comm(thread.pid, thread.tid, about.moment)
        };
        if !self.wanted.takes_thread(thread, comm) {
            self.out.filtered[about.event] += value;
            return None;
        }
        let comm = match comm {
            _ if self.wanted.ignore_comms => ANY_COMM,
            Some(comm) => comm.0,
            None => NAMELESS | thread.tid as u32 & !NAMELESS,
        };
        Some((comm, self.layer(thread.pid, about.moment)))
    }

    fn layer(&mut self, pid: i32, moment: Moment) -> Layer {
        match self.last {
            // Within a chunk time goes on: asking again for the same moment is common, for an earlier one rare.
            Some(last) if last.pid == pid && last.from == moment => last.layer,
            _ => {
                let layer = self.session.history.layer(pid, moment);
                self.last = Some(Last { pid, layer, from: moment });
                layer
            }
        }
    }

    fn extra(&mut self, about: &About, sample: &Sample<'_>, value: Value, branch: Option<Branch>) -> u32 {
        if self.wanted.extras.is_empty() {
            return 0;
        }
        self.words.clear();
        let thread = sample.thread().unwrap_or_default();
        let asks_parts = self.wanted.extras.iter().any(|extra| extra.is_late());
        let parts = if asks_parts { sample.parts() } else { None }.unwrap_or_default();
        for extra in &self.wanted.extras {
            let word = match extra {
                Extra::Pid => thread.pid as u64,
                Extra::Tid => thread.tid as u64,
                Extra::Cpu => sample.cpu().map_or(u64::MAX, u64::from),
                Extra::Time(slice) => about.time.unwrap_or(0) / (*slice).max(1),
                Extra::Cgroup => parts.cgroup.unwrap_or(0),
                Extra::Weight => value.weight,
                Extra::Period => value.period,
                Extra::Addr => sample.addr().unwrap_or(0),
                Extra::Payload => match parts.raw {
                    Some(raw) => u64::from(self.interned.payloads.add(about.event as u32, raw)),
                    None => u64::MAX,
                },
                Extra::From => branch.map_or(u64::MAX, |branch| branch.from),
                Extra::BranchFlags => branch.map_or(u64::MAX, |branch| branch.flags.0),
                Extra::FromAddr => branch.map_or(u64::MAX, |branch| branch.from),
                Extra::ToAddr => branch.map_or(u64::MAX, |branch| branch.to),
                Extra::DataLine => sample.addr().map_or(u64::MAX, |addr| addr & !(CACHE_LINE - 1)),
                Extra::Data => sample.addr().unwrap_or(u64::MAX),
                Extra::DataSrc => parts.data_src.unwrap_or(u64::MAX),
                Extra::PhysAddr => parts.phys_addr.unwrap_or(u64::MAX),
                Extra::DataPage => parts.data_page_size.unwrap_or(u64::MAX),
                Extra::CodePage => parts.code_page_size.unwrap_or(u64::MAX),
                Extra::InsLatency => {
                    parts.weight.and_then(|weight| weight.more()).map_or(0, |(latency, _)| latency.into())
                }
                Extra::StageCycles => {
                    parts.weight.and_then(|weight| weight.more()).map_or(0, |(_, cycles)| cycles.into())
                }
                Extra::Transaction => parts.transaction.unwrap_or(0),
                Extra::Parent => u64::MAX,
            };
            self.words.push(word);
        }
        let has_places = self.wanted.extras.iter().any(|extra| extra.is_place());
        // The layer of data knows code too.
        let layer = has_places.then(|| self.session.history.data_layer(thread.pid, about.moment));
        bytes(&self.words, &mut self.scratch);
        self.interned.extras.add(layer.map_or(0, |layer| layer.0), &self.scratch)
    }

    fn finish(mut self) -> Samples {
        self.out.rows = self.rows.into_iter().collect();
        self.out.lost = self.readings.lost.values().fold(0, |sum, lost| sum.saturating_add(*lost));
        self.out
    }
}

/// Adds the user part, unwound from the copied stack, behind the kernel's.
fn unwound(walker: &mut dyn Walk, layer: Layer, parts: &Parts<'_>, mode: CpuMode, chain: &mut Vec<u64>) {
    if mode == CpuMode::User {
        // The walk begins with the sampled address itself.
        let ip = chain.get(1).copied().unwrap_or(0);
        chain.truncate(1);
        walker.walk(layer, parts, chain);
        if chain.len() == 1 {
            chain.push(ip);
        }
    } else {
        chain.push(marker(CpuMode::User));
        let before = chain.len();
        walker.walk(layer, parts, chain);
        if chain.len() == before {
            chain.pop();
        }
    }
}

/// Joins what the workers found.
fn merge(parts: Vec<Samples>, interned: Interned, wanted: &Wanted) -> Samples {
    let mut parts = parts.into_iter();
    let mut all = parts.next().unwrap_or_default();
    for part in parts {
        all.rows.extend(part.rows);
        let sums = all.totals.iter_mut().zip(&part.totals).chain(all.filtered.iter_mut().zip(&part.filtered));
        sums.for_each(|(sum, more)| *sum += *more);
        all.unknown += part.unknown;
        all.lost += part.lost;
        all.span = match (all.span, part.span) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (one, other) => one.or(other),
        };
    }
    let (stacks, stack_place) = interned.stacks.finish();
    let (payloads, payload_place) = interned.payloads.finish();
    for (tag, payload) in payloads.iter().flat_map(Lists::iter) {
        all.payloads.add(tag, payload);
    }
    let (extras, extra_place) = interned.extras.finish();
    let payload_at = wanted.extras.iter().position(|extra| *extra == Extra::Payload);
    let mut scratch = Vec::new();
    for (tag, list) in extras.iter().flat_map(Lists::iter) {
        let mut words: Vec<u64> = Words::new(list).iter().collect();
        if let Some(word) = payload_at.and_then(|at| words.get_mut(at)).filter(|word| **word != u64::MAX) {
            *word = payload_place(*word as u32).into();
        }
        bytes(&words, &mut scratch);
        all.extras.add(tag, &scratch);
    }
    all.stacks = stacks;
    let kinds = wanted.extras.iter().copied().enumerate();
    all.places = kinds.filter(|(_, extra)| extra.is_place()).collect();
    let has_extras = !wanted.extras.is_empty();
    for (key, _) in &mut all.rows {
        key.stack = stack_place(key.stack);
        key.extra = if has_extras { extra_place(key.extra) } else { 0 };
    }
    join(&mut all.rows);
    all
}

/// Sorts rows and adds up those with the same key.
pub(super) fn join(rows: &mut Vec<(Key, Value)>) {
    rows.par_sort_unstable_by_key(|(key, _)| *key);
    rows.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 += next.1;
        }
        same
    });
}
