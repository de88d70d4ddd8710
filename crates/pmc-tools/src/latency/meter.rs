//! Pairs events, and collects the data for the report in bounded memory.
//!
//! ```text
//!   sample ── rules ── begin: stack, thread ──┐
//!                 └─── end ── IntervalEngine ─┴── durations, heat map, slowest, time by stack
//! ```

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::heat::HeatMap;
use super::request::LatencyRequest;
use super::result::{DurationSums, LatencyCounts, LatencySlice};
use super::rules::{BoundRules, EventRole, IntervalKey};
use pmc_analysis::interval::{Interval, IntervalEngine, Overlap};
use pmc_analysis::session::resolver::Resolver;
use pmc_analysis::session::samples::{RowKey, comm_key};
use pmc_analysis::session::{CommId, History, ResolvedStacks, SampleValue, StackStore, Timestamp};
use pmc_perfdata::record::{RecordWords, Sample, Thread};

/// Maximum size of all stacks in bytes, and maximum number of sums by stack. Beyond these limits, intervals
/// with new stacks are only counted.
const MAX_STACKS: usize = 64 << 20;
const MAX_ROWS: usize = 200_000;
/// Maximum size of the address caches, in bytes.
const ADDRESS_CACHE: usize = 4 << 20;

/// The data that an interval keeps from its begin event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IntervalBegin {
    pub(super) thread: Thread,
    pub(super) comm: Option<CommId>,
    pub(super) cpu: Option<u32>,
    pub(super) stack: Option<u32>,
}

/// An interval that may be among the slowest. Ordered by duration; if two durations are equal, the earlier
/// interval is greater.
#[derive(Debug)]
pub(super) struct SlowCandidate {
    pub(super) interval: Interval<IntervalBegin>,
    pub(super) key: IntervalKey,
    pub(super) cpu: Option<u32>,
}

impl SlowCandidate {
    fn rank(&self) -> (u64, Reverse<u64>) {
        (self.interval.duration(), Reverse(self.interval.begin))
    }
}

impl PartialEq for SlowCandidate {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl Eq for SlowCandidate {}

impl PartialOrd for SlowCandidate {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for SlowCandidate {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank().cmp(&other.rank())
    }
}

/// Measures several kinds of intervals. Each event belongs to at most one of them.
#[derive(Debug)]
pub(super) struct LatencyMeters(Vec<LatencyMeter>);

impl LatencyMeters {
    /// `bound` contains the rules of each kind.
    pub(super) fn new(bound: Vec<BoundRules>, request: &LatencyRequest) -> Self {
        let kinds = bound.into_iter().zip(&request.intervals);
        Self(kinds.map(|(rules, interval)| LatencyMeter::new(rules, interval.nests, request)).collect())
    }

    /// Adds a sample. Samples must be added in time order. `chain` is its call chain; `timestamp` is its time
    /// in the history.
    pub(super) fn sample<'c>(
        &mut self,
        history: &History,
        event: usize,
        sample: &Sample<'_>,
        timestamp: Timestamp,
        chain: impl FnOnce() -> Option<RecordWords<'c>>,
    ) {
        if let Some(meter) = self.0.iter_mut().find(|meter| meter.rules.has(event)) {
            meter.sample(history, event, sample, timestamp, chain);
        }
    }

    /// Records that `count` records were lost, and marks the intervals in progress as affected.
    pub(super) fn lose(&mut self, time: u64, count: u64) {
        self.0.iter_mut().for_each(|meter| meter.lose(time, count));
    }

    /// Sets the number of lost records to at least this, for losses that no record reports.
    pub(super) fn lost_at_least(&mut self, count: u64) {
        self.0.iter_mut().for_each(|meter| meter.counts.lost = meter.counts.lost.max(count));
    }

    /// Applies new epoch numbers; see [`History::forget`].
    pub(super) fn follow(
        &mut self,
        moved: &FxHashMap<pmc_analysis::session::Epoch, pmc_analysis::session::Epoch>,
    ) {
        self.0.iter_mut().for_each(|meter| meter.resolver.follow(moved));
    }

    /// Returns the durations of each kind since the previous call.
    pub(super) fn slices(&mut self, until: u64) -> Vec<LatencySlice> {
        self.0.iter_mut().map(|meter| meter.slice(until)).collect()
    }

    /// Ends the measurement at this time; `None` ends it at the last event. Returns the result of each kind.
    pub(super) fn finish(self, end: Option<u64>) -> Vec<MeteredLatency> {
        self.0.into_iter().map(|meter| meter.finish(end)).collect()
    }
}

/// Measures one kind of interval.
#[derive(Debug)]
struct LatencyMeter {
    rules: BoundRules,
    engine: IntervalEngine<IntervalKey, IntervalBegin>,
    overlap: Overlap,
    counts: LatencyCounts,
    durations: DurationSums,
    /// The durations since the previous call of [`LatencyMeter::slice`].
    slice: DurationSums,
    heat: Option<HeatMap>,
    wants_heat: bool,
    slowest: BinaryHeap<Reverse<SlowCandidate>>,
    most_slowest: usize,
    /// Time by stack and thread name; `None` if no stacks are requested.
    sums: Option<FxHashMap<(u32, u32), SampleValue>>,
    resolver: Resolver,
    /// Times of the first and the last event.
    span: Option<(u64, u64)>,
}

impl LatencyMeter {
    fn new(rules: BoundRules, nests: bool, request: &LatencyRequest) -> Self {
        let overlap = if nests { Overlap::Nest } else { Overlap::Replace };
        Self {
            rules,
            engine: IntervalEngine::new(overlap),
            overlap,
            counts: LatencyCounts::default(),
            durations: DurationSums::default(),
            slice: DurationSums::default(),
            heat: None,
            wants_heat: request.heat,
            slowest: BinaryHeap::new(),
            most_slowest: request.slowest,
            sums: request.stacks.then(FxHashMap::default),
            resolver: Resolver::new(request.max_stack),
            span: None,
        }
    }

    fn sample<'c>(
        &mut self,
        history: &History,
        event: usize,
        sample: &Sample<'_>,
        timestamp: Timestamp,
        chain: impl FnOnce() -> Option<RecordWords<'c>>,
    ) {
        let Self { rules, .. } = self;
        let mut meanings: smallvec::SmallVec<[(EventRole, Option<IntervalKey>); 2]> =
            smallvec::SmallVec::new();
        rules.each(event, sample, |role, key| meanings.push((role, key)));
        if meanings.is_empty() {
            return;
        }
        let time = sample.time().map_or(timestamp, |time| time.0);
        let (first, last) = self.span.unwrap_or((time, time));
        self.span = Some((first.min(time), last.max(time)));
        let thread = sample.thread().unwrap_or(Thread { pid: -1, tid: -1 });
        let begins = meanings.iter().any(|(role, key)| *role == EventRole::Begin && key.is_some());
        let begun = begins.then(|| IntervalBegin {
            thread,
            comm: history.comm(thread.pid, thread.tid, timestamp),
            cpu: sample.cpu(),
            stack: if self.sums.is_some() { chain() } else { None }
                .and_then(|chain| self.stack(history, thread, timestamp, chain)),
        });
        for (role, key) in meanings {
            let Some(key) = key else {
                self.counts.keyless += 1;
                continue;
            };
            match role {
                EventRole::Begin => {
                    self.counts.begins += 1;
                    if self.overlap == Overlap::Nest && self.engine.current(&key).is_some() {
                        self.counts.nested += 1;
                    }
                    if let Some(begun) = begun.clone() {
                        self.engine.begin(key, time, begun);
                    }
                }
                EventRole::End => {
                    self.counts.ends += 1;
                    if let Some(interval) = self.engine.end(&key, time) {
                        self.add(key, interval, sample.cpu());
                    }
                }
            }
        }
    }

    fn stack(
        &mut self,
        history: &History,
        thread: Thread,
        timestamp: Timestamp,
        chain: RecordWords<'_>,
    ) -> Option<u32> {
        if self.resolver.stacks().size() > MAX_STACKS {
            return None;
        }
        self.resolver.forget_addresses(ADDRESS_CACHE);
        Some(self.resolver.stack_cached(history, history.epoch(thread.pid, timestamp), chain))
    }

    fn add(&mut self, key: IntervalKey, interval: Interval<IntervalBegin>, cpu: Option<u32>) {
        let (duration, end) = (interval.duration(), interval.end);
        self.durations.add(duration);
        self.slice.add(duration);
        if self.wants_heat {
            let from = self.span.map_or(end, |(first, _)| first);
            self.heat.get_or_insert_with(|| HeatMap::new(from)).add(end, duration);
        }
        if let Some(sums) = &mut self.sums {
            let comm = comm_key(interval.begun.comm, interval.begun.thread);
            let key = interval.begun.stack.map(|stack| (stack, comm));
            match key.filter(|key| sums.len() < MAX_ROWS || sums.contains_key(key)) {
                Some(key) => {
                    *sums.entry(key).or_default() +=
                        SampleValue { samples: 1, period: duration, ..SampleValue::default() };
                }
                None => self.counts.stackless += 1,
            }
        }
        if self.most_slowest == 0 {
            return;
        }
        let is_full = self.slowest.len() >= self.most_slowest;
        let candidate = SlowCandidate { interval, key, cpu };
        if is_full && self.slowest.peek().is_some_and(|Reverse(least)| candidate <= *least) {
            return;
        }
        if is_full {
            self.slowest.pop();
        }
        self.slowest.push(Reverse(candidate));
    }

    fn lose(&mut self, time: u64, count: u64) {
        self.counts.lost = self.counts.lost.saturating_add(count);
        self.engine.lose(time);
    }

    fn counts(&self) -> LatencyCounts {
        LatencyCounts {
            pairing: self.engine.counts(),
            in_progress: self.engine.in_progress() as u64,
            ..self.counts
        }
    }

    fn slice(&mut self, until: u64) -> LatencySlice {
        LatencySlice { until, durations: std::mem::take(&mut self.slice), counts: self.counts() }
    }

    fn finish(mut self, end: Option<u64>) -> MeteredLatency {
        let counts = self.counts();
        let (first, last) = self.span.unwrap_or_default();
        let oldest = self.engine.finish(end.unwrap_or(last)).first().map(|(_, open)| open.duration());
        let mut slowest: Vec<SlowCandidate> = self.slowest.into_iter().map(|Reverse(slow)| slow).collect();
        slowest.sort_by(|a, b| b.cmp(a));
        let has_stacks = self.sums.is_some();
        let row = |((stack, comm), value)| (RowKey { event: 0, stack, comm, attributes: 0 }, value);
        let mut resolved = ResolvedStacks {
            locations: self.resolver.locations().clone(),
            stacks: StackStore::Interned(self.resolver.stacks().clone()),
            rows: self.sums.into_iter().flatten().map(row).collect(),
        };
        resolved.merge_equal_rows();
        MeteredLatency {
            counts,
            durations: self.durations,
            heat: self.heat,
            elapsed: last - first,
            oldest,
            slowest,
            resolved,
            has_stacks,
            rules: self.rules,
        }
    }
}

/// A finished measurement that has not been symbolized.
#[derive(Debug)]
pub(super) struct MeteredLatency {
    pub(super) counts: LatencyCounts,
    pub(super) durations: DurationSums,
    pub(super) heat: Option<HeatMap>,
    pub(super) elapsed: u64,
    pub(super) oldest: Option<u64>,
    pub(super) slowest: Vec<SlowCandidate>,
    pub(super) resolved: ResolvedStacks,
    pub(super) has_stacks: bool,
    pub(super) rules: BoundRules,
}
