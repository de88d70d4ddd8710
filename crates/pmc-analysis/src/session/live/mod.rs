//! Live sampling for an unlimited time: applies the side-band records of each round to the history, then
//! aggregates the round's samples.
//!
//! Takes the contents of rings ([`Batch`]) and, for each round, a timestamp before which no more records can
//! arrive. Returns the current rows ([`Live::rows`]). Memory use is bounded ([`Live`]).
//!
//! ```text
//!   rings ──► Batch ── horizon ──► side-band, sorted by time ──► History
//!               ▲          |                                       │ which space, which name
//!               '- younger-'-────► samples ──► raw stack ──► stack of locations ──► rows, decaying
//! ```

mod batch;
mod history;
mod liveness;
mod merge;
mod state;
mod table;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use self::liveness::Liveness;
use self::table::{DecayingTable, DecayingValue, Origin};
use super::history::{AddedSymbol, Epoch, History, Timestamp};
use super::intern::{Interner, bytes};
use super::location::{CodeLocation, SampledAddress};
use super::resolver::Resolver;
use super::resolver::{ResolvedStacks, StackStore};
use super::samples::{
    ANY_COMM, ChainCompleter, Occurrence, Readings, RowKey, SampleQuery, attribute_words, comm_key,
    weights_of,
};
use super::thread_time::{ThreadState, ThreadTime};
use pmc_perfdata::record::{Layouts, RawRecord, Record, Records, Sample, Thread};
use pmc_sys::abi::{CpuMode, sample_type};

pub use self::batch::Batch;
pub use self::history::LiveHistory;
pub(crate) use self::liveness::ENDED;
pub use self::merge::RecordMerge;
pub use self::state::{LiveState, SampledEvent};

/// Counters since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LiveCounts {
    pub(crate) samples: u64,
    /// Samples in the kernel.
    pub(crate) kernel: u64,
    /// Samples in user mode.
    pub(crate) user: u64,
    /// Records lost because the ring buffer was full, and samples that were dropped.
    pub(crate) lost: u64,
    /// Number of times that the kernel throttled an event.
    pub(crate) throttled: u64,
    /// Samples of an unknown event.
    pub(crate) unknown: u64,
    /// Number of rare rows that were dropped because there were too many, or that represent a dropped row.
    pub(crate) downsampled: u64,
}

/// Maximum size of the caches of raw stacks and addresses, in bytes. A cached stack needs no lookup.
const REMEMBERED: usize = 2 << 20;
/// Total size of stacks in bytes, and number of rows, above which some rare rows are dropped and others are
/// scaled up to represent them.
const MOST_STACKS: usize = 4 << 20;
const MOST_ROWS: usize = 30_000;
/// Growth of the history that triggers a cleanup; small enough to fit in a CPU's cache.
const CLEANUP_GROWTH: usize = 1 << 14;
/// Number of stacks below which removing decayed ones is not worthwhile.
const FEW_STACKS: usize = 4000;

/// The state of live sampling.
///
/// Removes ended processes and decayed stacks. If there are too many rows, drops some of the rare ones and
/// scales up others to represent them. Memory use therefore depends only on the running processes and the
/// displayed rows.
///
/// The kernel writes a record to its ring slightly after the time in the record, and pmc drains the rings of
/// the CPUs one after the other. Records after the horizon therefore wait for the next round, by which all
/// earlier ones have arrived.
pub struct Live {
    // Decoding of samples.
    layouts: Arc<Layouts>,
    /// For each event, the period of samples that do not contain one.
    periods: Vec<u64>,
    /// Period changes that override the periods in samples: timestamp, event, period.
    changed_periods: Vec<(Timestamp, usize, u64)>,
    query: SampleQuery,
    /// The last counter values, for samples that contain counts.
    readings: Option<Readings>,
    completer: ChainCompleter<'static>,
    spare: Batch,
    // Processes, threads and cgroups.
    history: LiveHistory,
    liveness: Liveness,
    cgroups: FxHashMap<u64, Vec<u8>>,
    last: CachedOwner,
    // Aggregated data.
    resolver: Resolver,
    attributes: AttributeLists,
    table: DecayingTable,
    /// Number of rows after the last collapse of ended processes and threads.
    collapsed: usize,
    /// Number of stacks or of attribute lists, whichever was larger, after the last renumbering.
    kept: usize,
    generation: u32,
    counts: LiveCounts,
    /// Timestamp up to which all samples are in the table.
    settled: Timestamp,
    /// Nanoseconds that the table covers; decays like its sums.
    elapsed: f64,
}

/// Cached owner of the previous sample, since the CPU's next sample is usually from the same thread.
#[derive(Debug, Default)]
struct CachedOwner {
    thread: Thread,
    owner: Option<LiveSampleOwner>,
}

#[derive(Debug, Clone, Copy)]
struct LiveSampleOwner {
    /// Timestamp from which the other fields are valid.
    from: Timestamp,
    /// The thread's name as in [`RowKey::comm`].
    comm: u32,
    epoch: Epoch,
    /// Whether the thread or the process has ended since then.
    is_over: bool,
}

/// The attribute lists of rows.
#[derive(Debug, Default)]
struct AttributeLists {
    all: Arc<Interner>,
    /// The most recent list and its number.
    last: Vec<u64>,
    number: Option<u32>,
    words: Vec<u64>,
    bytes: Vec<u8>,
}

impl AttributeLists {
    /// Returns the number assigned to the list in `words`, which is often the same list as last time.
    fn number(&mut self) -> u32 {
        if let Some(number) = self.number.filter(|_| self.last == self.words) {
            return number;
        }
        bytes(&self.words, &mut self.bytes);
        self.last.clone_from(&self.words);
        *self.number.insert(Arc::make_mut(&mut self.all).add(0, &self.bytes))
    }
}

/// A snapshot of the rows.
#[derive(Debug, Default)]
pub(crate) struct LiveRows {
    /// Rows and stacks.
    pub(crate) resolved: ResolvedStacks,
    /// The lists of attributes.
    pub(crate) attributes: Arc<Interner>,
    /// Generation of the numbers. Location and stack numbers have the same meaning in all snapshots of a
    /// generation.
    pub(crate) generation: u32,
    /// Nanoseconds that the rows cover.
    pub(crate) elapsed_ns: u64,
}

impl Live {
    /// Creates an empty state. `periods` has one entry per event, for samples that do not contain a period.
    /// `most` is the maximum number of addresses in a stack.
    pub fn new(layouts: Arc<Layouts>, periods: Vec<u64>, query: SampleQuery, most: usize) -> Self {
        let reads = layouts.have(sample_type::READ);
        Self {
            layouts,
            periods,
            changed_periods: Vec::new(),
            readings: reads.then(Readings::default),
            completer: ChainCompleter::new(query.ignore_stacks),
            spare: Batch::default(),
            history: LiveHistory::default(),
            liveness: Liveness::new(&query),
            cgroups: FxHashMap::default(),
            last: CachedOwner::default(),
            resolver: Resolver::new(most),
            attributes: AttributeLists::default(),
            table: DecayingTable::default(),
            collapsed: 0,
            kept: 0,
            generation: 0,
            counts: LiveCounts::default(),
            settled: Timestamp::MAX,
            elapsed: 0.0,
            query,
        }
    }

    /// Returns the events that are counted as a single event, if waits are measured.
    pub(crate) fn thread_time(&self) -> Option<&ThreadTime> {
        self.query.thread_time.as_ref()
    }

    /// Records that all samples up to this timestamp are in the table. The first call marks the start.
    pub fn settle(&mut self, timestamp: Timestamp) {
        self.elapsed += timestamp.saturating_sub(self.settled) as f64;
        self.settled = timestamp;
    }

    /// Sets the period of an event's samples from this timestamp on, regardless of the period in the samples.
    pub fn set_period(&mut self, event: usize, from: Timestamp, period: u64) {
        self.changed_periods.push((from, event, period));
    }

    /// Marks processes or threads as selected by id. Rows keep these ids when the processes or threads end.
    pub fn name(&mut self, ids: impl IntoIterator<Item = i32>) {
        self.liveness.name(ids);
    }

    /// The processes and mappings.
    pub(crate) fn history(&self) -> &History {
        self.history.get()
    }

    /// Returns the symbols and jitdump files that records have added since the last call; see
    /// [`History::ksymbols`] and [`History::jitdumps`].
    pub(crate) fn announced(&mut self) -> (Vec<AddedSymbol>, Vec<(u32, std::path::PathBuf)>) {
        self.history.announced()
    }

    /// All numbered locations, with the current generation; see [`LiveRows::generation`].
    pub(crate) fn locations(&self) -> (&[CodeLocation], u32) {
        (self.resolver.locations(), self.generation)
    }

    /// Returns the paths of cgroups by cgroup number, as untrusted bytes.
    pub(crate) fn cgroups(&self) -> &FxHashMap<u64, Vec<u8>> {
        &self.cgroups
    }

    /// Counters since the start.
    pub(crate) fn counts(&self) -> LiveCounts {
        self.counts
    }

    /// Applies synthesized records of the initial state, with the timestamp 0.
    pub fn take_synthesized(&mut self, bytes: &[u8]) {
        for raw in Records::new(bytes) {
            self.note(0, &raw);
        }
    }

    /// Completes the initial state after the last synthesized record.
    pub fn end_synthesized(&mut self) {
        self.history.complete();
    }

    fn note(&mut self, timestamp: Timestamp, raw: &RawRecord<'_>) {
        let Some(record) = raw.parse() else { return };
        match &record {
            Record::Lost(lost) => self.counts.lost = self.counts.lost.saturating_add(lost.lost),
            Record::LostSamples(lost) => self.counts.lost = self.counts.lost.saturating_add(*lost),
            Record::Throttle(_) => self.counts.throttled += 1,
            Record::Cgroup(cgroup) => {
                self.cgroups.insert(cgroup.id, cgroup.path.to_vec());
            }
            Record::Exit(task) => self.liveness.ended(task.thread, timestamp),
            Record::Fork(task) => self.liveness.began(task.thread),
            Record::Comm(comm) => self.liveness.began(comm.thread),
            _ => {}
        }
        self.history.take(timestamp, raw, &record);
    }

    /// Ends a round: processes all records in the batch up to `horizon`, and leaves later records in it.
    pub fn process_until(&mut self, batch: &mut Batch, horizon: Timestamp) {
        let mut spare = std::mem::take(&mut self.spare);
        std::mem::swap(batch, &mut spare);
        let round = spare;
        let mut sideband = round.sideband;
        // The stable sort is fast for the ordered records of each ring. Equal timestamps stay in the order of
        // the rings.
        sideband.sort();
        for &(timestamp, start) in &sideband {
            let Some(raw) = RawRecord::first(&round.bytes[start..]) else { continue };
            if timestamp <= horizon {
                self.note(timestamp, &raw);
            } else {
                batch.sideband.push((timestamp, batch.bytes.len()));
                batch.bytes.extend_from_slice(raw.bytes);
            }
        }
        // Names and address spaces may have changed.
        self.last.owner = None;
        let layouts = self.layouts.clone();
        for &(start, owner) in &round.samples {
            let Some(raw) = RawRecord::first(&round.bytes[start..]) else { continue };
            let Some((event, sample)) = layouts.sample_of(&raw, owner) else {
                self.counts.unknown += 1;
                continue;
            };
            if sample.time().is_some_and(|time| time.0 > horizon) {
                batch.samples.push((batch.bytes.len(), owner));
                batch.bytes.extend_from_slice(raw.bytes);
                continue;
            }
            self.sample(&layouts, event, &sample);
        }
        sideband.clear();
        let (mut bytes, mut samples) = (round.bytes, round.samples);
        bytes.clear();
        samples.clear();
        self.spare = Batch { bytes, sideband, samples, joint: Vec::new() };
    }

    fn sample(&mut self, layouts: &Layouts, event: usize, sample: &Sample<'_>) {
        self.counts.samples += 1;
        match sample.cpu_mode() {
            CpuMode::Kernel => self.counts.kernel += 1,
            CpuMode::User => self.counts.user += 1,
            _ => {}
        }
        if let Some(readings) = &mut self.readings
            && sample.layout().sample_type() & sample_type::READ != 0
        {
            match readings.events(layouts, event, sample) {
                Some(members) => {
                    members.into_iter().for_each(|(member, period)| self.add(member, sample, period));
                }
                None => self.counts.unknown += 1,
            }
            return;
        }
        let time = sample.time().map_or(Timestamp::MAX, |time| time.0);
        let changed = self.changed_periods.iter().rev().find(|(from, of, _)| *of == event && time >= *from);
        let said = || sample.period().or_else(|| self.periods.get(event).copied()).unwrap_or(1);
        let period = changed.map_or_else(said, |(.., period)| *period);
        self.add(event, sample, period);
    }

    fn add(&mut self, event: usize, sample: &Sample<'_>, period: u64) {
        let timestamp = sample.time().map_or(Timestamp::MAX, |time| time.0);
        let weights = weights_of(sample);
        let joint = self.query.thread_time.as_ref().map(|of| of.joint(event));
        let (event, state) = joint.unwrap_or((event, None));
        let LiveSampleOwner { comm, epoch, is_over, .. } =
            self.owner(sample.thread().unwrap_or_default(), timestamp);
        let attributes = if self.query.attributes.is_empty() {
            0
        } else {
            let occurrence = Occurrence {
                time: sample.time().map(|time| time.0),
                weight: weights[0],
                branch: None,
                running: None,
                state: state.unwrap_or(ThreadState::Running),
                process_name: self.query.process_name(self.history.get(), sample, timestamp),
            };
            let words = &mut self.attributes.words;
            attribute_words(&self.query.attributes, sample, occurrence, words, |_| u64::MAX);
            if is_over {
                self.liveness.collapse(words, |id| self.liveness.is_alive_in_records(id));
            }
            self.attributes.number()
        };
        let row = if self.query.ignore_stacks {
            self.leaf(event, epoch, comm, attributes, sample)
        } else {
            let stack = self.resolver.stack_cached(
                self.history.get(),
                epoch,
                self.completer.chain(sample, &[]).words,
            );
            self.table.row(RowKey { event: event as u32, stack, comm, attributes })
        };
        row.add(period, weights);
    }

    /// Returns the owner of a thread's sample.
    fn owner(&mut self, thread: Thread, timestamp: Timestamp) -> LiveSampleOwner {
        let Self { last, history, query, liveness, .. } = self;
        let history = history.get();
        if let Some(owner) = last.owner.filter(|owner| last.thread == thread && timestamp >= owner.from) {
            return owner;
        }
        let owner = LiveSampleOwner {
            from: history.unchanged_since(thread.pid, thread.tid),
            comm: match query.ignore_comms {
                true => ANY_COMM,
                false => comm_key(history.comm(thread.pid, thread.tid, timestamp), thread),
            },
            epoch: history.epoch(thread.pid, timestamp),
            is_over: !liveness.is_alive_in_records(thread.tid) || !liveness.is_alive_in_records(thread.pid),
        };
        last.thread = thread;
        last.owner = Some(owner).filter(|owner| timestamp >= owner.from);
        owner
    }

    /// Returns the row of a sample without callers. The location's number also serves as the stack's number.
    fn leaf(
        &mut self,
        event: usize,
        epoch: Epoch,
        comm: u32,
        attributes: u32,
        sample: &Sample<'_>,
    ) -> &mut DecayingValue {
        let Self { resolver, history, table, .. } = self;
        let level = sample.cpu_mode();
        let epoch = if level == CpuMode::Kernel { Epoch::KERNEL } else { epoch };
        let address = sample.ip().unwrap_or(0);
        let origin =
            u16::try_from(event).ok().map(|event| Origin { address, epoch, comm, attributes, event, level });
        if let Some(slot) = origin.and_then(|origin| table.slot(&origin)) {
            return table.at(slot);
        }
        let stack = resolver.location_once(history.get(), SampledAddress::code(epoch, level, address));
        // Do not cache an address without a module, because a module may be mapped there later.
        match origin.filter(|_| resolver.locations()[stack as usize].module().is_some()) {
            Some(origin) => table.remember(origin, stack),
            None => table.row(RowKey { event: event as u32, stack, comm, attributes }),
        }
    }

    /// Multiplies all sums by `keep` (0 to 1). Randomly drops some of the rows that are close to zero, and
    /// raises the others to represent them.
    pub(crate) fn decay(&mut self, keep: f64) {
        self.table.decay(keep);
        self.elapsed *= keep;
    }

    /// Removes state that is no longer needed, and returns whether the history was cleaned up. `before` is a
    /// timestamp up to which all samples are settled. `lives` returns whether a process or thread still
    /// exists.
    pub(crate) fn forget(&mut self, before: Timestamp, lives: impl Fn(i32) -> bool) -> bool {
        let needs_cleanup = self.history.needs_cleanup();
        let is_grown = self.table.len() > self.collapsed + self.collapsed / 4 + FEW_STACKS / 4;
        if needs_cleanup || is_grown {
            let mut liveness = std::mem::take(&mut self.liveness);
            liveness.end_round(self.counts.lost);
            let lives = liveness.lives(before, &lives);
            self.collapse_ended(&liveness, &lives);
            self.collapsed = self.table.len();
            if needs_cleanup {
                let moved = self.history.forget(before, &lives);
                self.table.follow(&moved);
                self.resolver.follow(&moved);
            }
            drop(lives);
            if needs_cleanup {
                liveness.forget(before, |pid| {
                    self.history.get().epoch(pid, Timestamp::MAX) != Epoch::UNKNOWN_PROCESS
                });
            }
            self.liveness = liveness;
        }
        self.resolver.forget_addresses(REMEMBERED);
        // The numbers in use are at most one per row, and at most those kept last time plus new ones.
        let used = self.kept.min(self.table.len());
        if self.stacks().max(self.attributes.all.len()) > used + used / 2 + FEW_STACKS {
            self.renumber();
        }
        let is_too_much = |live: &Self| {
            live.resolver.stacks().size() > MOST_STACKS && live.table.len() > FEW_STACKS
                || live.table.len() > MOST_ROWS
        };
        while is_too_much(self) {
            self.downsample();
        }
        needs_cleanup
    }

    /// Merges the rows of ended processes and threads under [`ENDED`], because each short-lived process would
    /// otherwise keep its own rows. A process that ends before pmc reads its samples never gets its own rows.
    fn collapse_ended(&mut self, liveness: &Liveness, lives: &impl Fn(i32) -> bool) {
        if !liveness.is_in_rows() {
            return;
        }
        let mut moved: FxHashMap<u32, u32> = FxHashMap::default();
        // Only attributes that rows still use need to be checked.
        let mut used: Vec<u32> = self.table.iter().map(|(key, _)| key.attributes).collect();
        used.sort_unstable();
        used.dedup();
        let attributes = &mut self.attributes;
        for number in used {
            attributes.words.clear();
            attributes.words.extend(super::intern::words(attributes.all.get(number).1).iter());
            if liveness.collapse(&mut attributes.words, lives) {
                moved.insert(number, attributes.number());
            }
        }
        if !moved.is_empty() {
            let number = |old: u32| moved.get(&old).copied().unwrap_or(old);
            self.table.rename(|key| RowKey { attributes: number(key.attributes), ..key });
        }
    }

    /// Drops about half of the lighter rows; see [`DecayingTable::downsample`].
    fn downsample(&mut self) {
        self.counts.downsampled += self.table.downsample();
        self.renumber();
    }

    /// Number of stacks; see [`StackStore::Leaves`].
    fn stacks(&self) -> usize {
        match self.query.ignore_stacks {
            true => self.resolver.locations().len(),
            false => self.resolver.stacks().len(),
        }
    }

    /// Keeps only the stacks, locations and attributes that rows use.
    fn renumber(&mut self) {
        let old = std::mem::take(&mut self.attributes).all;
        let attributes = Arc::make_mut(&mut self.attributes.all);
        let mut renumbering = self.resolver.renumber();
        self.table.rename(|mut key| {
            key.stack = match self.query.ignore_stacks {
                true => renumbering.location(key.stack),
                false => renumbering.stack(key.stack),
            };
            if !old.is_empty() {
                key.attributes = attributes.add(0, old.get(key.attributes).1);
            }
            key
        });
        renumbering.finish();
        self.kept = self.stacks().max(self.attributes.all.len());
        self.generation += 1;
    }

    /// Removes all samples.
    pub fn clear(&mut self) {
        self.table.clear();
        self.elapsed = 0.0;
        self.collapsed = 0;
    }

    /// Returns the current rows, grouped by event and stack. Stacks and locations are shared, and are copied
    /// only when new ones arrive.
    pub(crate) fn rows(&self) -> LiveRows {
        let stacks = match self.query.ignore_stacks {
            true => StackStore::Leaves,
            false => StackStore::Interned(self.resolver.stacks().clone()),
        };
        let rows = self.table.by_stack();
        let resolved = ResolvedStacks { locations: self.resolver.locations().clone(), stacks, rows };
        LiveRows {
            resolved,
            attributes: self.attributes.all.clone(),
            generation: self.generation,
            elapsed_ns: self.elapsed as u64,
        }
    }
}

#[cfg(test)]
mod tests;
