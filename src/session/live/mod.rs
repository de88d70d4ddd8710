//! Samples as they come, without an end: the history is told of each round's side-band, then the round's samples are added up.
//!
//! Receives the bytes of rings ([`Batch`]) and, round by round, a moment before which nothing can come any more; hands on
//! the rows of this moment ([`Live::look`]). Forgets: processes that have ended, stacks that have faded, and, where there
//! are too many, some of the rare ones, for which others stand. So memory follows what lives and what is shown.
//!
//! ```text
//!   rings ──► Batch ── horizon ──► side-band, sorted by time ──► History
//!               ▲          |                                       │ which space, which name
//!               '- younger-'-────► samples ──► raw stack ──► stack of locations ──► rows, fading
//! ```
//! A record is written into its ring a little after the time that stands in it, and one CPU's records are read before
//! another's: what is younger than the horizon therefore waits for the next round, when all that is older is there.

mod batch;
mod ended;
mod heat;
mod rows;
mod state;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use self::ended::{Asked, Ended};
use self::heat::{Dice, Heat};
use self::rows::{Origin, Rows};
use super::intern::{Interner, bytes};
use super::location::{Location, SampledAddress};
use super::module::Modules;
use super::resolver::Resolver;
use super::samples::{
    ANY_COMM, Key, Occurrence, Readings, SampleQuery, Stacker, attribute_words, comm_key, weight_of,
};
use super::{Epoch, History, Resolved, Stacks, Timestamp};
use crate::abi::{CpuMode, sample_type};
use crate::record::{Layouts, RawRecord, Record, Records, Sample, Thread};

pub use self::batch::Batch;
pub use self::ended::ENDED;
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
    pub thinned: u64,
}

/// Raw stacks and addresses that are remembered, in bytes and in number: recognising one again saves looking it up.
const REMEMBERED: usize = 2 << 20;
/// Bytes of stacks, and number of rows, beyond which rare rows stand for others like them.
const MOST_STACKS: usize = 4 << 20;
const MOST_ROWS: usize = 30_000;
/// What a history may grow by before it is searched for what can be forgotten: few enough to stay in a processor's cache.
const BURDEN: usize = 1 << 14;
/// Samples that are warmed up for together.
const WARMED: usize = 32;
/// Stacks among which searching for faded ones does not pay.
const FEW_STACKS: usize = 4000;

/// What is going on.
pub struct Live {
    layouts: Arc<Layouts>,
    /// By event: the period of samples that do not say theirs.
    periods: Vec<u64>,
    query: SampleQuery,
    reads: bool,
    readings: Readings,
    history: History,
    ended: Ended,
    asked: Asked,
    burden: usize,
    stacker: Stacker<'static>,
    resolver: Resolver,
    attributes: Arc<Interner>,
    kept: usize,
    rows: Rows,
    /// Rows that were left when those of the dead were last joined.
    buried: usize,
    dice: Dice,
    counts: Counts,
    cgroups: FxHashMap<u64, Vec<u8>>,
    generation: u32,
    spare: Batch,
    last: Last,
    words: Vec<u64>,
    scratch: Vec<u8>,
}

/// What was found out for the sample before: the next one of its CPU mostly is of the same thread.
#[derive(Debug, Default)]
struct Last {
    thread: Thread,
    /// From when on the thread has this name, as rows have it, and its process this epoch, and whether one of them is over.
    known: Option<(Timestamp, u32, Epoch, bool)>,
    /// The attributes, and their number.
    words: Vec<u64>,
    attributes: Option<u32>,
}

/// The rows of a moment.
#[derive(Debug, Default)]
pub struct Look {
    /// Rows and stacks.
    pub resolved: Resolved,
    /// The lists of attributes.
    pub attributes: Arc<Interner>,
    /// Numbers of locations and stacks are the same as those of another look of this generation.
    pub generation: u32,
}

impl Live {
    /// Nothing has happened yet. `periods`: one an event, for samples without a period; `most`: addresses of a stack.
    pub fn new(layouts: Arc<Layouts>, periods: Vec<u64>, query: SampleQuery, most: usize) -> Self {
        let reads = layouts.iter().any(|layout| layout.sample_type() & sample_type::READ != 0);
        Self {
            stacker: Stacker::new(&query, None),
            asked: Asked::new(&query),
            layouts,
            periods,
            query,
            reads,
            readings: Readings::default(),
            history: History::new(Modules::default()),
            ended: Ended::default(),
            burden: 0,
            resolver: Resolver::new(most),
            attributes: Arc::default(),
            kept: 0,
            rows: Rows::default(),
            buried: 0,
            dice: Dice(0x9e37_79b9_7f4a_7c15),
            counts: Counts::default(),
            cgroups: FxHashMap::default(),
            generation: 0,
            spare: Batch::default(),
            last: Last::default(),
            words: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Who ran and what was mapped.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Symbols and generated code that records announced since the last call: see [`History::ksymbols`] and
    /// [`History::jitdumps`].
    #[allow(clippy::type_complexity, reason = "the history's own lists")]
    pub fn announced(
        &mut self,
    ) -> (Vec<(crate::address::Avma, u64, String)>, Vec<(u32, std::path::PathBuf)>) {
        (std::mem::take(&mut self.history.ksymbols), std::mem::take(&mut self.history.jitdumps))
    }

    /// All places in the code that have a number; see [`Look::generation`].
    pub fn locations(&self) -> (&[Location], u32) {
        (self.resolver.locations(), self.generation)
    }

    /// Paths of cgroups by their number; foreign bytes.
    pub fn cgroups(&self) -> &FxHashMap<u64, Vec<u8>> {
        &self.cgroups
    }

    /// What came since the start.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Tells what was there before: records of our own making, whose moment is 0.
    pub fn tell(&mut self, bytes: &[u8]) {
        for raw in Records::new(bytes) {
            self.note(0, &raw);
        }
    }

    /// No more is told of what was there before.
    pub fn told(&mut self) {
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
            Record::Exit(task) => self.ended.ended(task.thread, timestamp),
            Record::Fork(task) => self.ended.began(task.thread),
            Record::Comm(comm) => self.ended.began(comm.thread),
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
        // One ring's records come in order, and this sort looks for such runs. Equal moments stay in the rings' order.
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
        self.last.known = None;
        let layouts = self.layouts.clone();
        for (at, &(start, owner)) in round.samples.iter().enumerate() {
            if at % WARMED == 0 && self.query.ignore_stacks {
                let next = round.samples[at..].iter().take(WARMED).map(|(start, _)| *start);
                self.warm(&layouts, &round.bytes, next);
            }
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

    /// Warms up for the samples that start at these places.
    fn warm(&self, layouts: &Layouts, bytes: &[u8], starts: impl Iterator<Item = usize>) {
        let address = |start: usize| {
            layouts.sample(&RawRecord::first(&bytes[start..])?).and_then(|(_, sample)| sample.ip())
        };
        let mut addresses = [0; WARMED];
        for (slot, start) in addresses.iter_mut().zip(starts) {
            *slot = address(start).unwrap_or(0);
        }
        self.rows.warm(&addresses);
    }

    fn sample(&mut self, layouts: &Layouts, event: usize, sample: &Sample<'_>) {
        self.counts.samples += 1;
        match sample.cpu_mode() {
            CpuMode::Kernel => self.counts.kernel += 1,
            CpuMode::User => self.counts.user += 1,
            _ => {}
        }
        if self.reads && sample.layout().sample_type() & sample_type::READ != 0 {
            match self.readings.of(layouts, event, sample) {
                Some(members) => {
                    members.into_iter().for_each(|(member, period)| self.add(member, sample, period));
                }
                None => self.counts.unknown += 1,
            }
            return;
        }
        let period = sample.period().unwrap_or_else(|| self.periods.get(event).copied().unwrap_or(1));
        self.add(event, sample, period);
    }

    fn add(&mut self, event: usize, sample: &Sample<'_>, period: u64) {
        let timestamp = sample.time().map_or(Timestamp::MAX, |time| time.0);
        let thread = sample.thread().unwrap_or_default();
        let weight = weight_of(sample);
        let (comm, epoch, is_over) = self.whose(thread, timestamp);
        let attributes = if self.query.attributes.is_empty() {
            0
        } else {
            let occurrence =
                Occurrence { time: sample.time().map(|time| time.0), period, weight, branch: None };
            attribute_words(&self.query.attributes, sample, occurrence, &mut self.words, |_| u64::MAX);
            if is_over {
                self.asked.bury(&mut self.words, |id| self.ended.says_lives(id));
            }
            match self.last.attributes.filter(|_| self.last.words == self.words) {
                Some(attributes) => attributes,
                None => {
                    bytes(&self.words, &mut self.scratch);
                    let attributes = Arc::make_mut(&mut self.attributes).add(0, &self.scratch);
                    self.last.words.clone_from(&self.words);
                    *self.last.attributes.insert(attributes)
                }
            }
        };
        let heat = if self.query.ignore_stacks {
            self.leaf(event, epoch, comm, attributes, sample)
        } else {
            let stack = self.stack(epoch, sample);
            self.rows.of(Key { event: event as u32, stack, comm, attributes })
        };
        heat.add(period, weight);
    }

    /// The name of a thread at a moment, as rows have it, the epoch that its process was in, and whether one of them has
    /// ended since.
    fn whose(&mut self, thread: Thread, timestamp: Timestamp) -> (u32, Epoch, bool) {
        let Self { last, history, query, ended, .. } = self;
        if let Some((from, comm, epoch, is_over)) = last.known
            && last.thread == thread
            && timestamp >= from
        {
            return (comm, epoch, is_over);
        }
        let comm = match query.ignore_comms {
            true => ANY_COMM,
            false => comm_key(history.comm(thread.pid, thread.tid, timestamp), thread),
        };
        let epoch = history.epoch(thread.pid, timestamp);
        let since = history.unchanged_since(thread.pid, thread.tid);
        let is_over = !ended.says_lives(thread.tid) || !ended.says_lives(thread.pid);
        last.thread = thread;
        last.known = (timestamp >= since).then_some((since, comm, epoch, is_over));
        (comm, epoch, is_over)
    }

    /// The row of a sample where nobody asks for callers: its location stands for its stack.
    fn leaf(
        &mut self,
        event: usize,
        epoch: Epoch,
        comm: u32,
        attributes: u32,
        sample: &Sample<'_>,
    ) -> &mut Heat {
        let Self { resolver, history, rows, .. } = self;
        let level = sample.cpu_mode().into();
        let epoch = if level == CpuMode::Kernel { Epoch::KERNEL } else { epoch };
        let address = sample.ip().unwrap_or(0);
        let origin =
            u16::try_from(event).ok().map(|event| Origin { address, epoch, comm, attributes, event, level });
        if let Some(place) = origin.and_then(|origin| rows.place(&origin)) {
            return rows.at(place);
        }
        let stack = resolver.location_once(history, SampledAddress::code(epoch, level, address));
        // Something may yet be mapped where nothing is.
        match origin.filter(|_| resolver.locations()[stack as usize].module().is_some()) {
            Some(origin) => rows.remember(origin, stack),
            None => rows.of(Key { event: event as u32, stack, comm, attributes }),
        }
    }

    fn stack(&mut self, epoch: Epoch, sample: &Sample<'_>) -> u32 {
        self.resolver.stack_again(&self.history, epoch, self.stacker.chain(sample, epoch))
    }

    /// Everything that was added up so far counts `keep` (0 to 1) as much.
    ///
    /// A row that would fall below one sample is kept as one sample, or goes: with the chance that leaves its expected weight
    /// what it should be. So nothing is biased against what is rare, and what is rare does not linger for ever.
    pub fn fade(&mut self, keep: f64) {
        let Self { rows, dice, .. } = self;
        rows.retain(|heat| {
            heat.scale(keep);
            if heat.samples >= 1.0 {
                return true;
            }
            let chance = heat.samples;
            let stays = dice.roll() < chance;
            if stays {
                heat.scale(1.0 / chance);
            }
            stays
        });
    }

    /// Forgets what is no longer needed; `true` when that was much. `before` is a moment that was settled; `lives` says
    /// whether a process or thread is still there.
    pub fn tidy(&mut self, before: Timestamp, lives: impl Fn(i32) -> bool) -> bool {
        let is_burdened = self.history.burden() > 2 * self.burden + BURDEN;
        let is_grown = self.rows.len() > self.buried + self.buried / 4 + FEW_STACKS / 4;
        if is_burdened || is_grown {
            let mut ended = std::mem::take(&mut self.ended);
            let lives = ended.judge(before, self.counts.lost, &lives);
            self.bury(&lives);
            self.buried = self.rows.len();
            if is_burdened {
                let moved = self.history.forget(before, &lives);
                self.burden = self.history.burden();
                self.rows.follow(&moved);
                self.resolver.follow(&moved);
            }
            drop(lives);
            if is_burdened {
                ended.forget(before, |pid| self.history.epoch(pid, Timestamp::MAX) != Epoch::NOBODY);
            }
            self.ended = ended;
        }
        self.resolver.forget_addresses(REMEMBERED);
        // No more can be in use than there are rows, and no more than there were and have come since.
        let used = self.kept.min(self.rows.len());
        let stacks = match self.query.ignore_stacks {
            true => self.resolver.locations().len(),
            false => self.resolver.stacks().len(),
        };
        if stacks.max(self.attributes.len()) > used + used / 2 + FEW_STACKS {
            self.renumber();
        }
        while self.resolver.stacks().size() > MOST_STACKS && self.rows.len() > FEW_STACKS
            || self.rows.len() > MOST_ROWS
        {
            self.thin();
        }
        is_burdened
    }

    /// The rows of processes and threads that have ended become those of nobody in particular ([`ENDED`]): where processes
    /// are short, each would otherwise have rows of its own. Most are over when their samples come, and never have any.
    fn bury(&mut self, lives: &impl Fn(i32) -> bool) {
        if self.asked.is_nothing() {
            return;
        }
        let mut moved: FxHashMap<u32, u32> = FxHashMap::default();
        // Extras that no row has any more were asked about before.
        let mut used: Vec<u32> = self.rows.iter().map(|(key, _)| key.attributes).collect();
        used.sort_unstable();
        used.dedup();
        for number in used {
            self.words.clear();
            self.words.extend(super::intern::words(self.attributes.get(number).1).iter());
            if self.asked.bury(&mut self.words, lives) {
                bytes(&self.words, &mut self.scratch);
                moved.insert(number, Arc::make_mut(&mut self.attributes).add(0, &self.scratch));
            }
        }
        if moved.is_empty() {
            return;
        }
        self.rows.rename(|key| Key {
            attributes: moved.get(&key.attributes).copied().unwrap_or(key.attributes),
            ..key
        });
    }

    /// Of the lighter half of the rows every second one goes, by chance, and the others count twice: expected sums stay
    /// what they were, with a larger error, which the squares of the periods tell.
    fn thin(&mut self) {
        let mut weights: Vec<f64> = self.rows.iter().map(|(_, heat)| heat.period).collect();
        let middle = weights.len() / 2;
        if weights.is_empty() {
            return;
        }
        let (_, middle, _) = weights.select_nth_unstable_by(middle, f64::total_cmp);
        let middle = *middle;
        drop(weights);
        let Self { rows, dice, counts, .. } = self;
        rows.retain(|heat| {
            if heat.period > middle {
                return true;
            }
            counts.thinned += 1;
            let stays = dice.roll() < 0.5;
            if stays {
                heat.scale(2.0);
            }
            stays
        });
        rows.shrink();
        self.renumber();
    }

    /// Keeps those stacks, locations and attributes that a row has.
    fn renumber(&mut self) {
        let mut attributes = Interner::default();
        let mut renumbering = self.resolver.renumber();
        self.rows.rename(|mut key| {
            key.stack = match self.query.ignore_stacks {
                true => renumbering.location(key.stack),
                false => renumbering.stack(key.stack),
            };
            if !self.attributes.is_empty() {
                key.attributes = attributes.add(0, self.attributes.get(key.attributes).1);
            }
            key
        });
        renumbering.finish();
        let stacks = match self.query.ignore_stacks {
            true => self.resolver.locations().len(),
            false => self.resolver.stacks().len(),
        };
        self.kept = stacks.max(attributes.len());
        self.attributes = Arc::new(attributes);
        self.generation += 1;
        self.last.attributes = None;
    }

    /// Forgets all samples.
    pub fn zero(&mut self) {
        self.rows.clear();
        self.buried = 0;
    }

    /// The rows as they are now, by event and stack. Stacks and locations are shared, not copied, until more of them come.
    pub fn look(&self) -> Look {
        let stacks = match self.query.ignore_stacks {
            true => Stacks::Leaves,
            false => Stacks::Interned(self.resolver.stacks().clone()),
        };
        let rows = self.rows.by_stack();
        let resolved = Resolved { locations: self.resolver.locations().clone(), stacks, rows };
        Look { resolved, attributes: self.attributes.clone(), generation: self.generation }
    }
}

#[cfg(test)]
mod tests;
