//! The interval engine: pairs begin events with end events.
//!
//! Waiting times, system calls, scheduler delays, lock waits and `latency A B` all ask the same question: how
//! long after event A did event B follow, for the same thread, lock or request? Each of them supplies the
//! events and the key, and receives [`Interval`]s. [`DurationHistogram`] summarizes them.
//!
//! ```text
//!   key 7   begin ──────────────── end                          one interval
//!   key 8             begin  begin ───── end                    Replace: the first begin event is unpaired
//!                     begin ─────────────────── end             Nest: two intervals, inner first
//!                            begin ───── end
//!   key 9   end                                                 an end event without a begin event
//!   lost                       ▒▒▒▒                             marks the intervals of keys 7 and 8
//! ```

mod durations;

use std::hash::Hash;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

pub use durations::DurationHistogram;

/// How to handle a begin event if an earlier one with the same key is still waiting for its end event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overlap {
    /// Assumes that the end event of the earlier interval was lost. For example, a thread makes only one
    /// system call at a time.
    #[default]
    Replace,
    /// Keeps both intervals in progress, as in a recursive function. The next end event ends the later one.
    Nest,
}

/// A pair of events with the same key. Times are in nanoseconds of the recording's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interval<B> {
    /// Time of the begin event.
    pub begin: u64,
    /// Time of the end event; at least `begin`.
    pub end: u64,
    /// Data that the caller stored at the begin event, such as its stack.
    pub begun: B,
    /// Whether records were lost during the interval, so that it may span several actual intervals.
    pub has_loss: bool,
}

impl<B> Interval<B> {
    /// Returns the duration in nanoseconds.
    pub fn duration(&self) -> u64 {
        self.end - self.begin
    }
}

/// Counts of matched and unmatched events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PairingCounts {
    /// Number of intervals.
    pub paired: u64,
    /// Number of begin events that were replaced by another begin event with the same key.
    pub replaced: u64,
    /// Number of end events without a begin event.
    pub ends_only: u64,
    /// Number of end events that are earlier than their begin event, because clocks differ between CPUs.
    pub backwards: u64,
    /// Number of begin events that were forgotten, because too many were waiting for their end events.
    pub expired: u64,
    /// Number of intervals during which records were lost.
    pub with_loss: u64,
}

#[derive(Debug)]
struct OpenInterval<B> {
    time: u64,
    begun: B,
}

impl<B> OpenInterval<B> {
    /// Returns the interval that ends now. `last_loss` is the time of the last loss.
    fn until(self, end: u64, last_loss: Option<u64>) -> Interval<B> {
        let Self { time: begin, begun } = self;
        Interval { begin, end, begun, has_loss: last_loss >= Some(begin) }
    }
}

/// Pairs events. `K` is the key, and `B` is the data that the caller stores at the begin event.
///
/// Callers pass the events of all CPUs in time order (see [`crate::session`]), since an interval may begin on
/// one CPU and end on another. The engine never guesses: it counts unmatched events, and marks intervals
/// during which records were lost. Memory is bounded; see [`IntervalEngine::with_limit`].
#[derive(Debug)]
pub struct IntervalEngine<K, B> {
    open: FxHashMap<K, SmallVec<[OpenInterval<B>; 1]>>,
    /// Number of begin events in `open`.
    in_progress: usize,
    limit: usize,
    overlap: Overlap,
    /// Time of the last loss.
    last_loss: Option<u64>,
    counts: PairingCounts,
}

impl<K: Hash + Eq + Clone, B> IntervalEngine<K, B> {
    /// Default maximum number of begin events that wait for their end events.
    pub const LIMIT: usize = 1 << 18;

    /// Returns an empty engine with the default limit.
    pub fn new(overlap: Overlap) -> Self {
        Self::with_limit(overlap, Self::LIMIT)
    }

    /// Returns an engine that keeps at most `limit` begin events. If there are more, it forgets the older
    /// half, and counts them as [`expired`](PairingCounts::expired).
    pub fn with_limit(overlap: Overlap, limit: usize) -> Self {
        Self {
            open: FxHashMap::default(),
            in_progress: 0,
            limit: limit.max(2),
            overlap,
            last_loss: None,
            counts: PairingCounts::default(),
        }
    }

    /// Begins an interval.
    pub fn begin(&mut self, key: K, time: u64, begun: B) {
        let stack = self.open.entry(key).or_default();
        if self.overlap == Overlap::Replace && !stack.is_empty() {
            self.counts.replaced += stack.len() as u64;
            self.in_progress -= stack.len();
            stack.clear();
        }
        stack.push(OpenInterval { time, begun });
        self.in_progress += 1;
        if self.in_progress > self.limit {
            self.expire();
        }
    }

    /// Ends the latest interval of this key, and returns it. Returns `None` if the key has no begin event, or
    /// if the end event is earlier than the begin event.
    pub fn end(&mut self, key: &K, time: u64) -> Option<Interval<B>> {
        let Some(begun) = self.take(key) else {
            self.counts.ends_only += 1;
            return None;
        };
        if time < begun.time {
            self.counts.backwards += 1;
            return None;
        }
        let interval = begun.until(time, self.last_loss);
        self.counts.paired += 1;
        self.counts.with_loss += u64::from(interval.has_loss);
        Some(interval)
    }

    /// Returns the data of the interval in progress, for events between its start and its end.
    pub fn current(&mut self, key: &K) -> Option<&mut B> {
        self.open.get_mut(key)?.last_mut().map(|begun| &mut begun.begun)
    }

    /// Returns the data of all intervals in progress, in any order.
    pub fn open(&self) -> impl Iterator<Item = &B> {
        self.open.values().flatten().map(|begun| &begun.begun)
    }

    /// Visits all intervals in progress, in any order: key, time of the begin event, whether records were
    /// lost since then, and data. Forgets those for which `keep` returns `false`.
    pub fn retain(&mut self, mut keep: impl FnMut(&K, u64, bool, &mut B) -> bool) {
        let Self { open, in_progress, last_loss, .. } = self;
        open.retain(|key, stack| {
            let before = stack.len();
            stack.retain(|begun| keep(key, begun.time, *last_loss >= Some(begun.time), &mut begun.begun));
            *in_progress -= before - stack.len();
            !stack.is_empty()
        });
    }

    /// Forgets all intervals of a key because they can no longer end, for example because the thread has
    /// exited. Returns the number of forgotten intervals.
    pub fn forget(&mut self, key: &K) -> usize {
        let count = self.open.remove(key).map_or(0, |stack| stack.len());
        self.in_progress -= count;
        count
    }

    /// Marks every interval that is in progress at this time, because records were lost.
    pub fn lose(&mut self, time: u64) {
        self.last_loss = self.last_loss.max(Some(time));
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> PairingCounts {
        self.counts
    }

    /// Returns the number of begin events that are waiting for their end events.
    pub fn in_progress(&self) -> usize {
        self.in_progress
    }

    /// Ends all intervals that are still in progress at this time, and returns them in the order in which
    /// they began. They are not counted as paired.
    pub fn finish(&mut self, time: u64) -> Vec<(K, Interval<B>)> {
        self.in_progress = 0;
        let mut rest: Vec<(K, Interval<B>)> = Vec::new();
        for (key, stack) in self.open.drain() {
            rest.extend(stack.into_iter().map(|begun| {
                let end = time.max(begun.time);
                (key.clone(), begun.until(end, self.last_loss))
            }));
        }
        rest.sort_by_key(|(_, interval)| interval.begin);
        rest
    }

    fn take(&mut self, key: &K) -> Option<OpenInterval<B>> {
        let stack = self.open.get_mut(key)?;
        let last = stack.pop();
        if stack.is_empty() {
            self.open.remove(key);
        }
        self.in_progress -= usize::from(last.is_some());
        last
    }

    /// Forgets the older half of the begin events.
    fn expire(&mut self) {
        let mut times: Vec<u64> = self.open.values().flatten().map(|begun| begun.time).collect();
        let middle = times.len() / 2;
        let (_, &mut limit, _) = times.select_nth_unstable(middle);
        // If several begin events have the same time, forgets only as many of them as necessary, so that they
        // do not all expire together.
        let mut excess = middle + 1;
        self.open.retain(|_, stack| {
            stack.retain(|begun| {
                let goes = excess > 0 && begun.time <= limit;
                excess -= usize::from(goes);
                !goes
            });
            !stack.is_empty()
        });
        let left: usize = self.open.values().map(|stack| stack.len()).sum();
        self.counts.expired += (self.in_progress - left) as u64;
        self.in_progress = left;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn durations<B>(intervals: impl IntoIterator<Item = Option<Interval<B>>>) -> Vec<u64> {
        intervals.into_iter().flatten().map(|interval| interval.duration()).collect()
    }

    #[test]
    fn keys_are_paired_separately_and_events_without_partner_are_counted() {
        let mut engine = IntervalEngine::new(Overlap::Replace);
        engine.begin(7, 10, "a");
        engine.begin(8, 11, "b");
        engine.begin(8, 13, "c");
        assert_eq!(engine.end(&9, 14), None);
        let ends = [engine.end(&8, 15), engine.end(&7, 30), engine.end(&7, 31)];
        assert_eq!(ends.iter().flatten().map(|interval| interval.begun).collect::<Vec<_>>(), ["c", "a"]);
        assert_eq!(durations(ends), [2, 20]);
        let want = PairingCounts { paired: 2, replaced: 1, ends_only: 2, ..PairingCounts::default() };
        assert_eq!(engine.counts(), want);
        assert_eq!(engine.in_progress(), 0);
    }

    #[test]
    fn nested_intervals_end_innermost_first() {
        let mut engine = IntervalEngine::new(Overlap::Nest);
        engine.begin(1, 10, ());
        engine.begin(1, 20, ());
        assert_eq!(durations([engine.end(&1, 25), engine.end(&1, 40)]), [5, 30]);
    }

    #[test]
    fn loss_marks_the_intervals_that_it_overlaps_and_no_others() {
        let mut engine = IntervalEngine::new(Overlap::Replace);
        engine.begin(1, 10, ());
        engine.begin(2, 20, ());
        let before = engine.end(&2, 25).unwrap();
        engine.lose(30);
        engine.begin(2, 35, ());
        let (during, after) = (engine.end(&1, 40).unwrap(), engine.end(&2, 45).unwrap());
        assert_eq!([before.has_loss, during.has_loss, after.has_loss], [false, true, false]);
        assert_eq!(engine.counts().with_loss, 1);
    }

    #[test]
    fn an_end_before_its_begin_is_no_interval() {
        let mut engine = IntervalEngine::new(Overlap::Replace);
        engine.begin(1, 10, ());
        assert_eq!(engine.end(&1, 9), None);
        assert_eq!((engine.counts().backwards, engine.in_progress()), (1, 0));
    }

    #[test]
    fn begin_events_without_end_expire_oldest_first() {
        let mut engine = IntervalEngine::with_limit(Overlap::Replace, 100);
        for key in 0..1000u64 {
            engine.begin(key, key, ());
        }
        assert!(engine.in_progress() <= 100);
        assert!(engine.end(&999, 2000).is_some());
        assert_eq!(engine.end(&0, 2000), None);
        assert_eq!(engine.counts().expired as usize + engine.in_progress() + 1, 1000);
        // All intervals begin at the same time, and half of them are kept.
        let mut engine = IntervalEngine::with_limit(Overlap::Nest, 100);
        (0..101).for_each(|_| engine.begin(1u64, 5, ()));
        assert_eq!(engine.in_progress(), 50);
    }

    #[test]
    fn intervals_in_progress_end_with_the_recording() {
        let mut engine = IntervalEngine::new(Overlap::Replace);
        engine.begin(1, 30, ());
        engine.begin(2, 10, ());
        let rest: Vec<_> = engine.finish(50).into_iter().map(|(key, rest)| (key, rest.duration())).collect();
        assert_eq!(rest, [(2, 40), (1, 20)]);
    }

    proptest! {
        /// For any order of events, every event is accounted for exactly once.
        #[test]
        fn every_event_is_counted_once(
            events in prop::collection::vec((0u8..4, any::<bool>(), 0u64..1000), 0..400),
            nests in any::<bool>(),
            limit in 2usize..20,
        ) {
            let overlap = if nests { Overlap::Nest } else { Overlap::Replace };
            let mut engine = IntervalEngine::with_limit(overlap, limit);
            let (mut begins, mut ends) = (0, 0);
            for (key, begins_here, time) in events {
                if begins_here {
                    engine.begin(key, time, ());
                    begins += 1;
                } else {
                    engine.end(&key, time);
                    ends += 1;
                }
                prop_assert!(engine.in_progress() <= limit);
            }
            let counts = engine.counts();
            let left = engine.in_progress() as u64;
            prop_assert_eq!(begins, counts.paired + counts.backwards + counts.replaced + counts.expired + left);
            prop_assert_eq!(ends, counts.paired + counts.backwards + counts.ends_only);
            prop_assert_eq!(engine.finish(2000).len() as u64, left);
        }
    }
}
