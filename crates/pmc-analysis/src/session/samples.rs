//! Pass 2: aggregates samples into rows, one per distinct combination of event, stack, name and requested
//! attributes.
//!
//! Processes chunks in any order on any number of threads. Each thread has its own rows, which are merged at
//! the end. Stacks are interned as the kernel wrote them, before any address is looked up, so memory use and
//! most of the work depend on the number of distinct stacks, not on the number of samples.
//!
//! ```text
//!   chunk 0  chunk 2  …  -> worker A: rows --+--> one set of rows
//!   chunk 1  chunk 3  …  -> worker B: rows --'
//!                            '-- both --> stacks, attributes, payloads (intern::SharedInterner)
//! ```

pub use super::call_chain::{CallChain, ChainCompleter};
use super::location::level;
pub(super) use super::sample_attribute::{Occurrence, attribute_words, weights_of};
pub use super::sample_attribute::{SampleAttribute, TimeBuckets};

use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use super::call_chain::Unwind;
use super::history::{CommId, Epoch, History, Timestamp};
use super::intern::{InOrder, Interner, SharedInterner, bytes};
use super::order::SampleUnwinding;
use super::parallelism::Parallelism;
use super::thread_time::{ThreadSpan, ThreadState, ThreadTime};
use super::{Session, chunks};
use pmc_perfdata::perfdata;
use pmc_perfdata::record::layouts::CounterRead;
use pmc_perfdata::record::sample::BranchEntry;
use pmc_perfdata::record::{Layouts, RawRecord, RecordWords, Sample, Thread};
use pmc_sys::abi::{context, sample_type};

/// The parameters of pass 2.
#[derive(Debug, Clone, Default)]
pub struct SampleQuery {
    /// Attributes that distinguish rows, in addition to event, stack and name.
    pub attributes: Vec<SampleAttribute>,
    /// Whether to ignore thread names, so that all rows have the same name.
    pub ignore_comms: bool,
    /// Whether to ignore callers.
    pub ignore_stacks: bool,
    /// Whether to count each branch of a sample, at its target, instead of the sample.
    pub branches: bool,
    /// Whether to add a sample's branches to its stack, and to use their cycles as its weight.
    pub branch_history: bool,
    /// Whether to count a sample by its weight (at least 1) instead of its period.
    pub by_weight: bool,
    /// Number of running threads over time, which determines the wall-clock cost of a sample.
    pub parallelism: Option<Arc<Parallelism>>,
    /// If the recording has off-CPU time, the states that its events measure.
    pub thread_time: Option<ThreadTime>,
    /// Include only samples with one of these numbers of running threads; others count as filtered.
    pub levels: Option<FxHashSet<u32>>,
    /// Include only samples in these time spans (in nanoseconds, both ends inclusive); empty for all.
    pub times: Vec<(u64, u64)>,
    /// Include only samples on these CPUs.
    pub cpus: Option<FxHashSet<u32>>,
    /// Include only samples of these processes; others count as filtered.
    pub pids: Option<FxHashSet<i32>>,
    /// Include only samples of these threads.
    pub tids: Option<FxHashSet<i32>>,
    /// Include only samples with these thread names.
    pub comms: Option<FxHashSet<CommId>>,
}

impl SampleQuery {
    /// Whether the time and CPU filters accept a sample.
    pub(crate) fn takes(&self, sample: &Sample<'_>, time: Option<u64>) -> bool {
        let at = time.unwrap_or(0);
        (self.times.is_empty() || self.times.iter().any(|(from, to)| (*from..=*to).contains(&at)))
            && self.cpus.as_ref().is_none_or(|cpus| sample.cpu().is_some_and(|cpu| cpus.contains(&cpu)))
    }

    /// Whether the filters accept a sample of this recording with this timestamp.
    pub fn accepts_sample_of(&self, session: &Session, sample: &Sample<'_>, timestamp: Timestamp) -> bool {
        let thread = sample.thread().unwrap_or_default();
        let comm = || session.history.comm(thread.pid, thread.tid, timestamp);
        self.takes(sample, sample.time().map(|time| time.0))
            && self.takes_thread(thread, self.comms.as_ref().and_then(|_| comm()))
    }

    /// Whether the recording has off-CPU time, and the filters accept either all or none of a thread's
    /// samples.
    fn takes_whole_threads(&self) -> bool {
        let Self { thread_time, levels, cpus, comms, .. } = self;
        let has_filter = levels.is_some() || cpus.is_some() || comms.is_some();
        thread_time.is_some() && !has_filter && self.times.is_empty()
    }

    /// Returns the number of the name of a sample's process, if it distinguishes rows.
    pub(super) fn process_name(&self, history: &History, sample: &Sample<'_>, timestamp: Timestamp) -> u32 {
        if !self.attributes.contains(&SampleAttribute::ProcessName) {
            return ANY_COMM;
        }
        let thread = sample.thread().unwrap_or_default();
        // Imported threads may have names although their process has none.
        let name = history.comm(thread.pid, thread.pid, timestamp);
        comm_key(name.or_else(|| history.comm(thread.pid, thread.tid, timestamp)), thread)
    }

    /// Whether the filters accept a thread.
    pub(crate) fn takes_thread(&self, thread: Thread, comm: Option<CommId>) -> bool {
        self.pids.as_ref().is_none_or(|pids| pids.contains(&thread.pid))
            && self.tids.as_ref().is_none_or(|tids| tids.contains(&thread.tid))
            && self.comms.as_ref().is_none_or(|comms| comm.is_some_and(|comm| comms.contains(&comm)))
    }
}

/// Aggregated values of samples.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SampleValue {
    /// Number of samples.
    pub samples: u64,
    /// Sum of the periods, which is the number of events.
    pub period: u64,
    /// Sum of the squared periods, for estimating the sampling error.
    pub squares: f64,
    /// Sums that only a few recordings need. Boxed, because there is one value per row.
    pub more: Option<Box<MoreSums>>,
}

const _: () = assert!(size_of::<(RowKey, SampleValue)>() == 48);

/// Sums that only a few recordings need.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct MoreSums {
    /// See [`SampleValue::weights`].
    pub(crate) weights: [u64; 3],
    /// See [`SampleValue::off_cpu`].
    pub(crate) off_cpu: [u64; 2],
    /// See [`SampleValue::latency`].
    pub latency: u64,
    /// See [`SampleValue::latency_squares`].
    pub(crate) latency_squares: f64,
}

impl SampleValue {
    fn new(period: u64, weights: [u64; 3]) -> Self {
        let value = Self { samples: 1, period, squares: (period as f64) * (period as f64), more: None };
        value.weighing(weights)
    }

    /// Sets the sums of weights.
    #[must_use]
    pub(super) fn weighing(self, weights: [u64; 3]) -> Self {
        if weights == [0; 3] { self } else { self.with(|more| more.weights = weights) }
    }

    /// Adds the latency for this number of running threads.
    fn shared(self, running: u32) -> Self {
        let latency = self.period.saturating_mul(1000) / u64::from(running.max(1));
        self.with(|more| {
            (more.latency, more.latency_squares) = (latency, (latency as f64) * (latency as f64))
        })
    }

    /// Marks the value as a wait. Waits are measured exactly, so they have no sampling error.
    #[must_use]
    pub fn waiting(mut self, state: ThreadState) -> Self {
        self.squares = 0.0;
        let period = self.period;
        self.with(|more| more.off_cpu[usize::from(state == ThreadState::Blocked)] = period)
    }

    /// Parts of the period during which the threads were runnable, and during which they were blocked.
    pub fn off_cpu(&self) -> [u64; 2] {
        self.more.as_ref().map_or([0; 2], |more| more.off_cpu)
    }

    /// Part of the period during which the threads waited.
    pub fn waited(&self) -> u64 {
        let [runnable, blocked] = self.off_cpu();
        runnable.saturating_add(blocked)
    }

    /// Part of the period during which the threads ran.
    pub fn ran(&self) -> u64 {
        self.period.saturating_sub(self.waited())
    }

    /// Returns the state in which the threads spent more than half of the period. If they mostly waited, this
    /// is the longer of the two waiting states.
    pub fn main_state(&self) -> ThreadState {
        let [runnable, blocked] = self.off_cpu();
        match self.waited() > self.period / 2 {
            true if runnable > blocked => ThreadState::Runnable,
            true => ThreadState::Blocked,
            false => ThreadState::Running,
        }
    }

    fn with(mut self, change: impl FnOnce(&mut MoreSums)) -> Self {
        change(self.more.get_or_insert_default());
        self
    }

    /// Sums of the weights: the cost that the hardware measured, then the two values of [`Weight::more`].
    ///
    /// [`Weight::more`]: pmc_perfdata::record::sample::Weight::more
    pub fn weights(&self) -> [u64; 3] {
        self.more.as_ref().map_or([0; 3], |more| more.weights)
    }

    /// Sum of the periods, each divided by the number of threads running at that time; 0 if unknown. In units
    /// of 1/1000, so that a period of 1 can be divided.
    pub fn latency(&self) -> u64 {
        self.more.as_ref().map_or(0, |more| more.latency)
    }

    /// Sum of the squared terms of [`SampleValue::latency`].
    pub(crate) fn latency_squares(&self) -> f64 {
        self.more.as_ref().map_or(0.0, |more| more.latency_squares)
    }

    /// Subtracts other values.
    #[must_use]
    pub fn without(&self, others: &Self) -> Self {
        let mut left = Self {
            samples: self.samples.saturating_sub(others.samples),
            period: self.period.saturating_sub(others.period),
            squares: (self.squares - others.squares).max(0.0),
            more: self.more.clone(),
        };
        if let (Some(own), Some(others)) = (&mut left.more, &others.more) {
            own.weights
                .iter_mut()
                .zip(others.weights)
                .for_each(|(own, other)| *own = own.saturating_sub(other));
            own.off_cpu
                .iter_mut()
                .zip(others.off_cpu)
                .for_each(|(own, other)| *own = own.saturating_sub(other));
            own.latency = own.latency.saturating_sub(others.latency);
            own.latency_squares = (own.latency_squares - others.latency_squares).max(0.0);
        }
        left
    }
}

impl std::ops::AddAssign for SampleValue {
    fn add_assign(&mut self, other: Self) {
        *self += &other;
    }
}

impl std::ops::AddAssign<&Self> for SampleValue {
    fn add_assign(&mut self, other: &Self) {
        self.samples += other.samples;
        self.period = self.period.saturating_add(other.period);
        self.squares += other.squares;
        let Some(more) = &other.more else { return };
        let own = self.more.get_or_insert_default();
        own.weights.iter_mut().zip(more.weights).for_each(|(own, other)| *own = own.saturating_add(other));
        own.off_cpu.iter_mut().zip(more.off_cpu).for_each(|(own, other)| *own = own.saturating_add(other));
        own.latency = own.latency.saturating_add(more.latency);
        own.latency_squares += more.latency_squares;
    }
}

/// Bit in [`RowKey::comm`] that marks threads with an unknown name.
pub(crate) const NAMELESS: u32 = 1 << 31;
/// Value of [`RowKey::comm`] for all rows if names are ignored. No name or thread has this number.
pub(crate) const ANY_COMM: u32 = NAMELESS - 1;

/// The properties that identify a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowKey {
    /// Index of the event.
    pub event: u32,
    /// Number of the stack.
    pub stack: u32,
    /// The thread's name ([`CommId`]); the thread's id with the bit [`NAMELESS`] if the name is unknown;
    /// [`ANY_COMM`] if names are ignored.
    pub comm: u32,
    /// Number of the attribute list.
    pub attributes: u32,
}

/// The result of pass 2.
#[derive(Debug, Default)]
pub struct Samples {
    pub(crate) rows: Vec<(RowKey, SampleValue)>,
    /// The stacks. The tag is the epoch, and the words are as in a record (context markers and addresses,
    /// innermost first). Stack numbers continue from part to part.
    pub(crate) stacks: Vec<InOrder>,
    /// Whether stacks consist only of the sampled address, because callers are ignored.
    pub(crate) are_leaves: bool,
    /// The attributes of rows, in the order of [`SampleQuery::attributes`]. The tag is the epoch if any
    /// attribute is an address.
    pub(crate) attributes: Interner,
    /// The attributes that are addresses and are resolved to locations, with their positions.
    pub(crate) places: Vec<(usize, SampleAttribute)>,
    /// Payloads of tracepoints, tagged with their event.
    pub(crate) payloads: Interner,
    /// Sums per event, including filtered samples.
    pub(crate) totals: Vec<SampleValue>,
    /// Sums per event of the samples that the pid, tid and name filters rejected.
    pub(crate) filtered: Vec<SampleValue>,
    /// Number of lost samples, according to the counts in samples.
    pub(crate) lost: u64,
    /// The time of each thread with samples, if the recording has off-CPU time.
    pub(crate) threads: FxHashMap<i32, ThreadSpan>,
    /// First and last time, in nanoseconds; `None` if samples have no times.
    pub(crate) span: Option<(u64, u64)>,
}

/// Runs pass 2. `unwind` unwinds stack copies in time order. Calls `progress` with the number of newly
/// processed samples, from several threads.
///
/// # Errors
/// Fails if the file cannot be read.
pub(crate) fn collect(
    session: &Session,
    query: &SampleQuery,
    unwind: Option<&mut dyn Unwind>,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Samples, perfdata::PerfdataError> {
    let reads = session.reader.layouts().have(sample_type::READ);
    let shared = SampleInterners::default();
    let new = || Worker::new(session, query, reads, &shared);
    // Counter values are computed as differences from the previous reading, so samples must be read in order.
    let workers = if reads { 1 } else { rayon::current_num_threads() };
    let look = |worker: &mut Worker<'_>, raw: &RawRecord<'_>, at, unwound: &[u64]| {
        worker.sample(raw, at, unwound);
    };
    let wants = |sample: &Sample<'_>, timestamp| query.accepts_sample_of(session, sample, timestamp);
    let unwind = unwind.filter(|_| !query.ignore_stacks);
    let unwinding = unwind.map(|unwinder| SampleUnwinding { unwinder, wants: &wants });
    let parts = chunks::walk(session, unwinding, workers, new, look, progress)?;
    let parts = parts.into_iter().map(Worker::finish).collect();
    let mut all = merge(parts, shared, query);
    if let Some(span) = all.span.filter(|_| query.takes_whole_threads()) {
        let times = session.switches.running_times(span);
        for (tid, thread) in &mut all.threads {
            times.get(tid).into_iter().for_each(|time| thread.ran_exactly(time));
        }
    }
    Ok(all)
}

/// The interners shared by all workers.
#[derive(Default)]
struct SampleInterners {
    stacks: SharedInterner,
    attributes: SharedInterner,
    payloads: SharedInterner,
}

/// The event and time of a sample.
struct SampleContext {
    event: usize,
    time: Option<u64>,
    timestamp: Timestamp,
    /// The sample's unique position in the recording.
    position: u64,
    /// Number of running threads, if requested.
    running: Option<u32>,
    /// The state of the thread, for events that measure thread time.
    state: Option<ThreadState>,
}

impl SampleContext {
    fn value(&self, period: u64, weights: [u64; 3]) -> SampleValue {
        let value = SampleValue::new(period, weights);
        let value = match self.state {
            Some(state) if state.is_off_cpu() => value.waiting(state),
            _ => value,
        };
        match self.running {
            Some(running) => value.shared(running),
            None => value,
        }
    }
}

/// Cached epoch of the previous sample's thread, since the next sample is often from the same thread.
#[derive(Clone, Copy)]
struct CachedEpoch {
    pid: i32,
    epoch: Epoch,
    /// The timestamp at which `epoch` was determined.
    from: Timestamp,
}

/// The last value of each counter, for recordings whose samples contain counts. Such a sample represents the
/// counts of each group member since the previous sample. For inherited events, each thread has its own
/// counter with the same id; for other events, the thread in the key is 0.
#[derive(Debug, Default)]
pub(crate) struct Readings {
    values: FxHashMap<(u64, i32), u64>,
    /// Number of samples that each event lost (`PERF_FORMAT_LOST`).
    lost: FxHashMap<(u64, i32), u64>,
}

impl Readings {
    /// Returns the events that a sample represents, with the count of each; `None` if the counts cannot be
    /// read.
    pub(crate) fn events(
        &mut self,
        layouts: &Layouts,
        event: usize,
        sample: &Sample<'_>,
    ) -> Option<Vec<(usize, u64)>> {
        let values = sample.parts()?.read?;
        let thread = sample.thread().filter(|_| sample.layout().counts_by_thread());
        let tid = thread.map_or(0, |thread| thread.tid);
        let mut members = Vec::new();
        for value in values.iter() {
            let id = value.id.or(sample.id()).unwrap_or(0);
            let before = self.values.insert((id, tid), value.value).unwrap_or(0);
            if let Some(lost) = value.lost.filter(|lost| *lost > 0) {
                self.lost.insert((id, tid), lost);
            }
            // A smaller value means that a new thread has reused the thread id, so that the counter has
            // started from 0.
            let period = value.value.checked_sub(before).unwrap_or(value.value);
            let member = if value.id.is_some() { layouts.event_of(id) } else { Some(event) };
            members.extend(member.filter(|_| period > 0).map(|member| (member, period)));
        }
        Some(members)
    }

    /// Returns the part of a thread's final count that was counted after its last sample.
    pub(crate) fn last(&mut self, thread: Thread, read: &CounterRead) -> u64 {
        let own = self.values.remove(&(read.id, thread.tid)).or_else(|| self.values.remove(&(read.id, 0)));
        read.count.value.saturating_sub(own.unwrap_or(0))
    }
}

struct Worker<'a> {
    session: &'a Session,
    query: &'a SampleQuery,
    layouts: &'a Layouts,
    completer: ChainCompleter<'a>,
    reads: bool,
    readings: Readings,
    last: Option<CachedEpoch>,
    interned: &'a SampleInterners,
    rows: FxHashMap<RowKey, SampleValue>,
    out: Samples,
    scratch: Vec<u8>,
    words: Vec<u64>,
}

impl<'a> Worker<'a> {
    fn new(session: &'a Session, query: &'a SampleQuery, reads: bool, interned: &'a SampleInterners) -> Self {
        let events = session.reader.events().len();
        let out = Samples {
            totals: vec![SampleValue::default(); events],
            filtered: vec![SampleValue::default(); events],
            ..Samples::default()
        };
        Self {
            session,
            query,
            layouts: session.reader.layouts(),
            completer: ChainCompleter::new(query.ignore_stacks)
                .joining(&session.deferred)
                .with_history(query.branch_history),
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

    /// Processes a sample. `unwound` is the chain unwound from its stack copy.
    fn sample(&mut self, raw: &RawRecord<'_>, position: Timestamp, unwound: &[u64]) {
        let Some((event, sample)) = self.layouts.sample(raw) else { return };
        let time = sample.time().map(|time| time.0);
        if !self.query.takes(&sample, time) {
            return;
        }
        if let Some(time) = time {
            let state = self.query.thread_time.as_ref().and_then(|of| of.state(event));
            let begin = state.map_or(time, |state| state.since(time, sample.period().unwrap_or(0)));
            let (first, last) = self.out.span.unwrap_or((begin, time));
            self.out.span = Some((first.min(begin), last.max(time)));
        }
        if self.query.branches {
            self.branches(event, &sample, position);
            return;
        }
        if self.reads && sample.layout().sample_type() & sample_type::READ != 0 {
            let Some(members) = self.readings.events(self.layouts, event, &sample) else { return };
            for (member, period) in members {
                self.add(member, &sample, position, period, unwound);
            }
            return;
        }
        let period = sample.period().unwrap_or_else(|| self.session.reader.events()[event].attr.period());
        self.add(event, &sample, position, period, unwound);
    }

    /// Counts each branch once, as a stack that consists only of its target.
    fn branches(&mut self, event: usize, sample: &Sample<'_>, position: Timestamp) {
        let Some(branches) = sample.parts().and_then(|parts| parts.branches) else { return };
        let mut about = self.about(event, sample, position);
        for branch in branches.iter() {
            // Each branch takes more than one byte of the record, so positions stay unique.
            about.position += 1;
            let value = about.value(1, [branch.flags.cycles().into(), 0, 0]);
            let Some((comm, epoch)) = self.owner(&about, sample, &value) else { continue };
            bytes(&[context::marker(level(branch.to)), branch.to], &mut self.scratch);
            let stack = self.interned.stacks.add(about.position, epoch.0, &self.scratch);
            let attributes = self.attributes(&about, sample, &value, Some(branch));
            let key = RowKey { event: event as u32, stack, comm, attributes };
            *self.rows.entry(key).or_default() += value;
        }
    }

    fn about(&self, event: usize, sample: &Sample<'_>, position: Timestamp) -> SampleContext {
        let time = sample.time().map(|time| time.0);
        let timestamp = self.session.timestamp(time, position);
        let running = self.query.parallelism.as_ref().map(|parallelism| parallelism.at(timestamp));
        let state = self.query.thread_time.as_ref().and_then(|of| of.state(event));
        SampleContext { event, time, timestamp, position, running, state }
    }

    fn add(&mut self, event: usize, sample: &Sample<'_>, position: Timestamp, period: u64, unwound: &[u64]) {
        let about = self.about(event, sample, position);
        let weights = match self.query.branch_history {
            true => [cycles(sample), 0, 0],
            false => weights_of(sample),
        };
        let value = about.value(if self.query.by_weight { weights[0].max(1) } else { period }, weights);
        let Some((comm, epoch)) = self.owner(&about, sample, &value) else { return };
        let chain = self.completer.chain(sample, unwound);
        let stack = self.interned.stacks.add(position, epoch.0, chain.words.as_bytes());
        let attributes = self.attributes(&about, sample, &value, None);
        let key = RowKey { event: about.event as u32, stack, comm, attributes };
        *self.rows.entry(key).or_default() += value;
    }

    /// Counts the sample. Returns its [`RowKey::comm`] and its epoch, unless a filter rejects the sample.
    fn owner(
        &mut self,
        about: &SampleContext,
        sample: &Sample<'_>,
        value: &SampleValue,
    ) -> Option<(u32, Epoch)> {
        let thread = sample.thread().unwrap_or_default();
        self.out.totals[about.event] += value;
        let comm = if self.query.ignore_comms && self.query.comms.is_none() {
            None
        } else {
            self.session.history.comm(thread.pid, thread.tid, about.timestamp)
        };
        let levels = self.query.levels.as_ref().zip(about.running);
        let has_level = levels.is_none_or(|(levels, running)| levels.contains(&running));
        if !(has_level && self.query.takes_thread(thread, comm)) {
            self.out.filtered[about.event] += value;
            return None;
        }
        if let (Some(state), Some(end)) = (about.state, about.time) {
            let begin = state.since(end, value.period);
            let waited = if state.is_off_cpu() { value.period } else { 0 };
            let span = ThreadSpan { begin, end, waited, ran: value.period - waited, is_exact: false };
            self.out.threads.entry(thread.tid).and_modify(|known| known.include(span)).or_insert(span);
        }
        let comm = match comm {
            _ if self.query.ignore_comms => ANY_COMM,
            comm => comm_key(comm, thread),
        };
        Some((comm, self.epoch(thread.pid, about.timestamp)))
    }

    fn epoch(&mut self, pid: i32, timestamp: Timestamp) -> Epoch {
        match self.last {
            // Repeated lookups at the same timestamp are common within a chunk.
            Some(last) if last.pid == pid && last.from == timestamp => last.epoch,
            _ => {
                let epoch = self.session.history.epoch(pid, timestamp);
                self.last = Some(CachedEpoch { pid, epoch, from: timestamp });
                epoch
            }
        }
    }

    fn attributes(
        &mut self,
        about: &SampleContext,
        sample: &Sample<'_>,
        value: &SampleValue,
        branch: Option<BranchEntry>,
    ) -> u32 {
        if self.query.attributes.is_empty() {
            return 0;
        }
        let running = about.running;
        let occurrence = Occurrence {
            time: about.time,
            weight: value.weights()[0],
            branch,
            running,
            state: about.state.unwrap_or(ThreadState::Running),
            process_name: self.query.process_name(&self.session.history, sample, about.timestamp),
        };
        let payloads = &self.interned.payloads;
        attribute_words(&self.query.attributes, sample, occurrence, &mut self.words, |raw| {
            u64::from(payloads.add(about.position, about.event as u32, raw))
        });
        let has_places = self.query.attributes.iter().any(|attribute| attribute.is_place());
        // The data epoch also covers code.
        let thread = sample.thread().unwrap_or_default();
        let epoch = has_places.then(|| self.session.history.data_epoch(thread.pid, about.timestamp));
        bytes(&self.words, &mut self.scratch);
        self.interned.attributes.add(about.position, epoch.map_or(0, |epoch| epoch.0), &self.scratch)
    }

    fn finish(mut self) -> Samples {
        self.out.rows = self.rows.into_iter().collect();
        self.out.lost = self.readings.lost.values().fold(0, |sum, lost| sum.saturating_add(*lost));
        self.out
    }
}

/// Returns the [`RowKey::comm`] of a thread.
pub fn comm_key(comm: Option<CommId>, thread: Thread) -> u32 {
    comm.map_or(NAMELESS | thread.tid as u32 & !NAMELESS, |comm| comm.0)
}

/// Returns perf's name for an unnamed thread, from its [`RowKey::comm`].
pub fn unnamed_thread(comm: u32) -> String {
    // `NAMELESS` replaced the sign bit of the thread id; the shifts restore it.
    format!(":{}", (comm << 1) as i32 >> 1)
}

/// Merges the results of the workers.
fn merge(parts: Vec<Samples>, interned: SampleInterners, query: &SampleQuery) -> Samples {
    let mut parts = parts.into_iter();
    let mut all = parts.next().unwrap_or_default();
    for part in parts {
        all.rows.extend(part.rows);
        let sums = all.totals.iter_mut().zip(&part.totals).chain(all.filtered.iter_mut().zip(&part.filtered));
        sums.for_each(|(sum, more)| *sum += more);
        all.lost = all.lost.saturating_add(part.lost);
        for (tid, span) in part.threads {
            all.threads.entry(tid).and_modify(|known| known.include(span)).or_insert(span);
        }
        all.span = match (all.span, part.span) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (one, other) => one.or(other),
        };
    }
    let (stacks, stack_place) = interned.stacks.finish();
    let (payloads, payload_place) = interned.payloads.finish();
    for (tag, payload) in payloads.iter().flat_map(InOrder::iter) {
        all.payloads.add(tag, payload);
    }
    let (attributes, attributes_place) = interned.attributes.finish();
    let payload_at = query.attributes.iter().position(|attribute| *attribute == SampleAttribute::Payload);
    let mut scratch = Vec::new();
    for (tag, list) in attributes.iter().flat_map(InOrder::iter) {
        let mut words: Vec<u64> = RecordWords::new(list).iter().collect();
        if let Some(word) = payload_at.and_then(|at| words.get_mut(at)).filter(|word| **word != u64::MAX) {
            *word = payload_place(*word as u32).into();
        }
        bytes(&words, &mut scratch);
        all.attributes.add(tag, &scratch);
    }
    all.stacks = stacks;
    all.are_leaves = query.ignore_stacks && !query.branches;
    let kinds = query.attributes.iter().copied().enumerate();
    all.places = kinds.filter(|(_, attribute)| attribute.is_place()).collect();
    let has_attributes = !query.attributes.is_empty();
    for (key, _) in &mut all.rows {
        key.stack = stack_place(key.stack);
        key.attributes = if has_attributes { attributes_place(key.attributes) } else { 0 };
    }
    join(&mut all.rows);
    all
}

/// Returns the total CPU cycles of a sample's branches.
fn cycles(sample: &Sample<'_>) -> u64 {
    let branches = sample.parts().and_then(|parts| parts.branches);
    branches.map_or(0, |branches| branches.iter().map(|branch| u64::from(branch.flags.cycles())).sum())
}

/// Sorts rows, and merges rows with equal keys.
pub(super) fn join(rows: &mut Vec<(RowKey, SampleValue)>) {
    rows.par_sort_unstable_by_key(|(key, _)| *key);
    rows.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 += &next.1;
        }
        same
    });
}
