//! Samples as they come, without an end: the history is told of each round's side-band, then the round's
//! samples are added up.
//!
//! Receives the bytes of rings ([`Batch`]) and, round by round, a timestamp before which nothing can come any
//! more; hands on the rows of this moment ([`Live::rows`]). Forgets: processes that have ended, stacks that
//! have decayed, and, where there are too many, some of the rare ones, for which others stand. So memory
//! follows what lives and what is shown.
//!
//! ```text
//!   rings ──► Batch ── horizon ──► side-band, sorted by time ──► History
//!               ▲          |                                       │ which space, which name
//!               '- younger-'-────► samples ──► raw stack ──► stack of locations ──► rows, decaying
//! ```
//! A record is written into its ring a little after the time that stands in it, and one CPU's records are
//! read before another's: what is younger than the horizon therefore waits for the next round, when all that
//! is older is there.

mod batch;
mod liveness;
mod state;
mod table;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use self::liveness::Liveness;
use self::table::{DecayingTable, Origin, Weight};
use super::intern::{Interner, bytes};
use super::location::{Location, SampledAddress};
use super::module::Modules;
use super::resolver::Resolver;
use super::samples::{
    ANY_COMM, Key, Occurrence, Readings, SampleQuery, Stacker, attribute_words, comm_key, weights_of,
};
use super::{AddedSymbol, Epoch, History, Resolved, Stacks, Timestamp};
use crate::abi::{CpuMode, sample_type};
use crate::record::{Layouts, RawRecord, Record, Records, Sample, Thread};

pub use self::batch::Batch;
pub use self::liveness::ENDED;
pub use self::state::{LiveState, SampledEvent};

/// What came, since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Samples.
    pub samples: u64,
    /// Those in the kernel.
    pub kernel: u64,
    /// Those in programs.
    pub user: u64,
    /// Records that found the ring full, and samples that were dropped.
    pub lost: u64,
    /// How often an event was stopped because it came too fast.
    pub throttled: u64,
    /// Samples of no known event.
    pub unknown: u64,
    /// How often a rare stack went, or stood for another that did, since there were too many.
    pub downsampled: u64,
}

/// Raw stacks and addresses that are remembered, in bytes and in number: recognising one again saves looking
/// it up.
const REMEMBERED: usize = 2 << 20;
/// Bytes of stacks, and number of rows, beyond which rare rows stand for others like them.
const MOST_STACKS: usize = 4 << 20;
const MOST_ROWS: usize = 30_000;
/// What a history may grow by before it is searched for what can be forgotten: few enough to stay in a
/// processor's cache.
const BURDEN: usize = 1 << 14;
/// Stacks among which searching for decayed ones does not pay.
const FEW_STACKS: usize = 4000;

/// What is going on.
pub struct Live {
    // How samples are read.
    layouts: Arc<Layouts>,
    /// By event: the period of samples that do not say theirs.
    periods: Vec<u64>,
    /// From when on samples of an event stand for another period than they say: timestamp, event, period.
    changed_periods: Vec<(Timestamp, usize, u64)>,
    query: SampleQuery,
    /// Where samples hold counts.
    readings: Option<Readings>,
    stacker: Stacker<'static>,
    spare: Batch,
    // Who they are of.
    history: History,
    /// [`History::burden`] after it last forgot.
    burden: usize,
    liveness: Liveness,
    cgroups: FxHashMap<u64, Vec<u8>>,
    last: Last,
    // What they became.
    resolver: Resolver,
    attributes: AttributeLists,
    table: DecayingTable,
    /// Rows that were left when those of the ended were last collapsed.
    collapsed: usize,
    /// The most numbers of stacks or attributes that were left when they were last given anew.
    kept: usize,
    generation: u32,
    counts: Counts,
}

/// What was found out for the sample before: the next one of its CPU mostly is of the same thread.
#[derive(Debug, Default)]
struct Last {
    thread: Thread,
    owner: Option<Owner>,
}

/// Whose a sample is.
#[derive(Debug, Clone, Copy)]
struct Owner {
    /// From when on this holds.
    from: Timestamp,
    /// The thread's name as rows have it.
    comm: u32,
    /// The process's epoch.
    epoch: Epoch,
    /// The thread or the process has ended since.
    is_over: bool,
}

/// The lists of attributes that rows have.
#[derive(Debug, Default)]
struct AttributeLists {
    all: Arc<Interner>,
    /// The list that was asked for last, and its number.
    last: Vec<u64>,
    number: Option<u32>,
    words: Vec<u64>,
    bytes: Vec<u8>,
}

impl AttributeLists {
    /// The number of the list in `words`: often the one that was asked for last.
    fn number(&mut self) -> u32 {
        if let Some(number) = self.number.filter(|_| self.last == self.words) {
            return number;
        }
        bytes(&self.words, &mut self.bytes);
        self.last.clone_from(&self.words);
        *self.number.insert(Arc::make_mut(&mut self.all).add(0, &self.bytes))
    }
}

/// The rows of a moment.
#[derive(Debug, Default)]
pub struct LiveRows {
    /// Rows and stacks.
    pub resolved: Resolved,
    /// The lists of attributes.
    pub attributes: Arc<Interner>,
    /// Numbers of locations and stacks are the same as those of other rows of this generation.
    pub generation: u32,
}

impl Live {
    /// Nothing has happened yet. `periods`: one an event, for samples without a period; `most`: addresses of
    /// a stack.
    pub fn new(layouts: Arc<Layouts>, periods: Vec<u64>, query: SampleQuery, most: usize) -> Self {
        let reads = layouts.have(sample_type::READ);
        Self {
            layouts,
            periods,
            changed_periods: Vec::new(),
            readings: reads.then(Readings::default),
            stacker: Stacker::new(query.ignore_stacks),
            spare: Batch::default(),
            history: History::new(Modules::default()),
            burden: 0,
            liveness: Liveness::new(&query),
            cgroups: FxHashMap::default(),
            last: Last::default(),
            resolver: Resolver::new(most),
            attributes: AttributeLists::default(),
            table: DecayingTable::default(),
            collapsed: 0,
            kept: 0,
            generation: 0,
            counts: Counts::default(),
            query,
        }
    }

    /// From this timestamp on each sample of an event stands for `period`, whatever it says.
    pub fn set_period(&mut self, event: usize, from: Timestamp, period: u64) {
        self.changed_periods.push((from, event, period));
    }

    /// These processes or threads were asked for by their numbers, which rows keep when they have ended.
    pub fn name(&mut self, ids: impl IntoIterator<Item = i32>) {
        self.liveness.name(ids);
    }

    /// Who ran and what was mapped.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Symbols and generated code that records announced since the last call: see [`History::ksymbols`] and
    /// [`History::jitdumps`].
    pub fn announced(&mut self) -> (Vec<AddedSymbol>, Vec<(u32, std::path::PathBuf)>) {
        (std::mem::take(&mut self.history.ksymbols), std::mem::take(&mut self.history.jitdumps))
    }

    /// All locations that have a number; see [`LiveRows::generation`].
    pub fn locations(&self) -> (&[Location], u32) {
        (self.resolver.locations(), self.generation)
    }

    /// Paths of cgroups by their number; untrusted bytes.
    pub fn cgroups(&self) -> &FxHashMap<u64, Vec<u8>> {
        &self.cgroups
    }

    /// What came since the start.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Takes records of what was there before: of our own making, with the timestamp 0.
    pub fn take_synthesized(&mut self, bytes: &[u8]) {
        for raw in Records::new(bytes) {
            self.note(0, &raw);
        }
    }

    /// No more comes of what was there before.
    pub fn end_synthesized(&mut self) {
        self.history.complete();
        self.burden = self.history.burden();
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

    /// Ends a round: everything in the batch that is not younger than `horizon` is taken from it.
    pub fn settle(&mut self, batch: &mut Batch, horizon: Timestamp) {
        let mut spare = std::mem::take(&mut self.spare);
        std::mem::swap(batch, &mut spare);
        let round = spare;
        let mut sideband = round.sideband;
        // One ring's records come in order, and this sort looks for such runs. Equal timestamps stay in the
        // rings' order.
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
        // Names and spaces may be others now.
        self.last.owner = None;
        let layouts = self.layouts.clone();
        for &(start, owner) in &round.samples {
            let Some(raw) = RawRecord::first(&round.bytes[start..]) else { continue };
            let of_owner = || {
                let event = owner?;
                Some((event, layouts.iter().nth(event)?.sample(&raw)?))
            };
            let Some((event, sample)) = layouts.sample(&raw).or_else(of_owner) else {
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
            match readings.of(layouts, event, sample) {
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
        let Owner { comm, epoch, is_over, .. } = self.owner(sample.thread().unwrap_or_default(), timestamp);
        let attributes = if self.query.attributes.is_empty() {
            0
        } else {
            let occurrence = Occurrence {
                time: sample.time().map(|time| time.0),
                period,
                weight: weights[0],
                branch: None,
                running: None,
            };
            let words = &mut self.attributes.words;
            attribute_words(&self.query.attributes, sample, occurrence, words, |_| u64::MAX);
            if is_over {
                self.liveness.collapse(words, |id| self.liveness.says_lives(id));
            }
            self.attributes.number()
        };
        let row = if self.query.ignore_stacks {
            self.leaf(event, epoch, comm, attributes, sample)
        } else {
            let stack =
                self.resolver.stack_again(&self.history, epoch, self.stacker.chain(sample, &[]).words);
            self.table.row(Key { event: event as u32, stack, comm, attributes })
        };
        row.add(period, weights);
    }

    /// Whose a sample of a thread is.
    fn owner(&mut self, thread: Thread, timestamp: Timestamp) -> Owner {
        let Self { last, history, query, liveness, .. } = self;
        if let Some(owner) = last.owner.filter(|owner| last.thread == thread && timestamp >= owner.from) {
            return owner;
        }
        let owner = Owner {
            from: history.unchanged_since(thread.pid, thread.tid),
            comm: match query.ignore_comms {
                true => ANY_COMM,
                false => comm_key(history.comm(thread.pid, thread.tid, timestamp), thread),
            },
            epoch: history.epoch(thread.pid, timestamp),
            is_over: !liveness.says_lives(thread.tid) || !liveness.says_lives(thread.pid),
        };
        last.thread = thread;
        last.owner = Some(owner).filter(|owner| timestamp >= owner.from);
        owner
    }

    /// The row of a sample where nobody asks for callers: its location stands for its stack.
    fn leaf(
        &mut self,
        event: usize,
        epoch: Epoch,
        comm: u32,
        attributes: u32,
        sample: &Sample<'_>,
    ) -> &mut Weight {
        let Self { resolver, history, table, .. } = self;
        let level = sample.cpu_mode();
        let epoch = if level == CpuMode::Kernel { Epoch::KERNEL } else { epoch };
        let address = sample.ip().unwrap_or(0);
        let origin =
            u16::try_from(event).ok().map(|event| Origin { address, epoch, comm, attributes, event, level });
        if let Some(slot) = origin.and_then(|origin| table.slot(&origin)) {
            return table.at(slot);
        }
        let stack = resolver.location_once(history, SampledAddress::code(epoch, level, address));
        // Something may yet be mapped where nothing is.
        match origin.filter(|_| resolver.locations()[stack as usize].module().is_some()) {
            Some(origin) => table.remember(origin, stack),
            None => table.row(Key { event: event as u32, stack, comm, attributes }),
        }
    }

    /// Everything that was added up so far counts `keep` (0 to 1) as much; what is nearly nothing goes, or
    /// stands for its like.
    pub fn decay(&mut self, keep: f64) {
        self.table.decay(keep);
    }

    /// Forgets what is no longer needed; `true` when that was much. `before` is a timestamp that was settled;
    /// `lives` says whether a process or thread is still there.
    pub fn forget(&mut self, before: Timestamp, lives: impl Fn(i32) -> bool) -> bool {
        let is_burdened = self.history.burden() > 2 * self.burden + BURDEN;
        let is_grown = self.table.len() > self.collapsed + self.collapsed / 4 + FEW_STACKS / 4;
        if is_burdened || is_grown {
            let mut liveness = std::mem::take(&mut self.liveness);
            liveness.end_turn(self.counts.lost);
            let lives = liveness.lives(before, &lives);
            self.collapse_ended(&liveness, &lives);
            self.collapsed = self.table.len();
            if is_burdened {
                let moved = self.history.forget(before, &lives);
                self.burden = self.history.burden();
                self.table.follow(&moved);
                self.resolver.follow(&moved);
            }
            drop(lives);
            if is_burdened {
                liveness.forget(before, |pid| self.history.epoch(pid, Timestamp::MAX) != Epoch::NOBODY);
            }
            self.liveness = liveness;
        }
        self.resolver.forget_addresses(REMEMBERED);
        // No more can be in use than there are rows, and no more than there were and have come since.
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
        is_burdened
    }

    /// The rows of processes and threads that have ended become those of nobody in particular ([`ENDED`]):
    /// where processes are short, each would otherwise have rows of its own. Most are over when their samples
    /// come, and never have any.
    fn collapse_ended(&mut self, liveness: &Liveness, lives: &impl Fn(i32) -> bool) {
        if !liveness.is_in_rows() {
            return;
        }
        let mut moved: FxHashMap<u32, u32> = FxHashMap::default();
        // Attributes that no row has any more were asked about before.
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
            self.table.rename(|key| Key { attributes: number(key.attributes), ..key });
        }
    }

    /// Makes do with half as many of the lighter rows.
    fn downsample(&mut self) {
        self.counts.downsampled += self.table.downsample();
        self.renumber();
    }

    /// Numbers of stacks: see [`Stacks::Leaves`].
    fn stacks(&self) -> usize {
        match self.query.ignore_stacks {
            true => self.resolver.locations().len(),
            false => self.resolver.stacks().len(),
        }
    }

    /// Keeps those stacks, locations and attributes that a row has.
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

    /// Forgets all samples.
    pub fn clear(&mut self) {
        self.table.clear();
        self.collapsed = 0;
    }

    /// The rows as they are now, by event and stack. Stacks and locations are shared, not copied, until more
    /// of them come.
    pub fn rows(&self) -> LiveRows {
        let stacks = match self.query.ignore_stacks {
            true => Stacks::Leaves,
            false => Stacks::Interned(self.resolver.stacks().clone()),
        };
        let rows = self.table.by_stack();
        let resolved = Resolved { locations: self.resolver.locations().clone(), stacks, rows };
        LiveRows { resolved, attributes: self.attributes.all.clone(), generation: self.generation }
    }
}

#[cfg(test)]
mod tests;
