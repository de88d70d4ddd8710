//! Chains of waits: the holder of a lock may itself wait for another lock while other threads wait for the
//! first.
//!
//! ```text
//!   A   waits for L, held by B ──────────────────
//!   B         waits for M, held by C ─────
//!   C                waits for N ──────
//!
//!   L: B 10 ms, for M 6 ms: C 6 ms, for N 4 ms
//! ```
//! The input consists of time spans, in each of which one thread waits for one lock or other resource. At
//! most one thread holds it. Each level counts the time that it shares with the level above, for each waiting
//! thread.

use std::collections::hash_map::Entry;

use rustc_hash::{FxHashMap, FxHashSet};

use pmc_analysis::profile::sampled::futex_functions::FutexUse;

/// Maximum number of spans to remember.
const MOST_SPANS: usize = 1 << 20;
/// Maximum number of threads on a path. A deadlock ends a path earlier.
const MOST_LEVELS: usize = 16;
/// Maximum number of nodes, and of spans to visit.
const MOST_NODES: u64 = 1 << 16;
const MOST_VISITS: u64 = 1 << 26;

/// The lock or other resource that a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Awaited {
    /// A lock: the process and the address.
    Lock(i32, u64),
    /// Another resource.
    Other(FutexUse),
}

/// A time span in which a thread waits for one resource that one thread holds.
#[derive(Debug, Clone, Copy)]
pub(super) struct WaitSpan {
    pub(super) awaited: Awaited,
    /// The holder, if it is known.
    pub(super) holder: Option<i32>,
    pub(super) from: u64,
    pub(super) to: u64,
    /// The waiting thread's stack.
    pub(super) stack: u32,
}

/// A thread that holds an awaited resource.
#[derive(Debug, Default)]
pub(super) struct HolderNode {
    /// Time that threads waited for the resource while this thread held it, added up over the waiting
    /// threads, in nanoseconds.
    pub(super) time: u64,
    /// Whether the thread waits at a higher level of this path.
    pub(super) is_deadlock: bool,
    pub(super) waits: FxHashMap<Awaited, AwaitedNode>,
}

/// A resource that threads wait for.
#[derive(Debug, Default)]
pub(super) struct AwaitedNode {
    /// Time waited, in nanoseconds.
    pub(super) time: u64,
    /// Time waited in each stack, in nanoseconds.
    pub(super) stacks: FxHashMap<u32, u64>,
    pub(super) holders: FxHashMap<i32, HolderNode>,
}

/// The holders of each lock.
pub(super) type WaitForest = FxHashMap<Awaited, AwaitedNode>;

/// Collects spans.
#[derive(Debug, Default)]
pub(super) struct WaitSpans {
    threads: FxHashMap<i32, Vec<WaitSpan>>,
    count: usize,
}

impl WaitSpans {
    /// Adds a span of a thread.
    pub(super) fn add(&mut self, tid: i32, span: WaitSpan) {
        if span.from < span.to && self.count < MOST_SPANS {
            self.threads.entry(tid).or_default().push(span);
            self.count += 1;
        }
    }

    /// Turns waits for these locks, given by process and address, into waits for another resource.
    pub(super) fn release(&mut self, locks: &FxHashSet<(i32, u64)>, what: FutexUse) {
        for span in self.threads.values_mut().flatten() {
            if let Awaited::Lock(pid, address) = span.awaited
                && locks.contains(&(pid, address))
            {
                (span.awaited, span.holder) = (Awaited::Other(what), None);
            }
        }
    }

    /// Returns the holders of each lock, and whether the result is complete.
    pub(super) fn forest(mut self) -> (WaitForest, bool) {
        self.threads.values_mut().for_each(|spans| spans.sort_by_key(|span| span.from));
        let mut walk = SpanWalk { threads: &self.threads, path: Vec::new(), nodes: 0, visits: 0 };
        let mut forest = WaitForest::default();
        let mut tids: Vec<i32> = self.threads.keys().copied().collect();
        tids.sort_unstable();
        for tid in tids {
            walk.path = vec![tid];
            for span in &self.threads[&tid] {
                if matches!(span.awaited, Awaited::Lock(..)) {
                    walk.wait(&mut forest, span, span.from, span.to);
                }
            }
        }
        let is_complete = self.count < MOST_SPANS && walk.is_complete();
        (forest, is_complete)
    }
}

struct SpanWalk<'a> {
    threads: &'a FxHashMap<i32, Vec<WaitSpan>>,
    /// The threads from the root to the current level.
    path: Vec<i32>,
    nodes: u64,
    visits: u64,
}

impl SpanWalk<'_> {
    fn is_complete(&self) -> bool {
        self.nodes < MOST_NODES && self.visits < MOST_VISITS
    }

    /// Adds the part of a span between `from` and `to`, and the holder's own waits during that time.
    fn wait(&mut self, into: &mut WaitForest, span: &WaitSpan, from: u64, to: u64) {
        self.visits += 1;
        if !self.is_complete() {
            return;
        }
        let node = into.entry(span.awaited);
        self.nodes += u64::from(matches!(node, Entry::Vacant(_)));
        let node = node.or_default();
        node.time = node.time.saturating_add(to - from);
        let by_stack = node.stacks.entry(span.stack).or_default();
        *by_stack = by_stack.saturating_add(to - from);
        let Some(holder) = span.holder else { return };
        let held = node.holders.entry(holder);
        self.nodes += u64::from(matches!(held, Entry::Vacant(_)));
        let held = held.or_default();
        held.time = held.time.saturating_add(to - from);
        if self.path.contains(&holder) {
            held.is_deadlock = true;
            return;
        }
        let Some(spans) = self.threads.get(&holder).filter(|_| self.path.len() < MOST_LEVELS) else { return };
        self.path.push(holder);
        let first = spans.partition_point(|span| span.to <= from);
        // Skip the holder's wait for this lock: a new holder waits until it has woken up.
        let meanwhile = spans[first..].iter().take_while(|own| own.from < to);
        for own in meanwhile.filter(|own| own.awaited != span.awaited) {
            let (from, to) = (own.from.max(from), own.to.min(to));
            if from < to {
                self.wait(&mut held.waits, own, from, to);
            }
        }
        self.path.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const L: Awaited = Awaited::Lock(1, 0x10);
    const M: Awaited = Awaited::Lock(1, 0x20);
    const N: Awaited = Awaited::Other(FutexUse::Condition);

    fn forest(all: &[(i32, Awaited, Option<i32>, u64, u64)]) -> WaitForest {
        let mut spans = WaitSpans::default();
        for &(tid, awaited, holder, from, to) in all {
            spans.add(tid, WaitSpan { awaited, holder, from, to, stack: 0 });
        }
        let (forest, is_complete) = spans.forest();
        assert!(is_complete);
        forest
    }

    #[test]
    fn each_level_counts_the_time_in_common_with_the_level_above() {
        // Threads 1 and 5 wait for L, which thread 2 holds. Thread 2 waits for M, which thread 3 holds.
        // Thread 3 waits for something else. Later, thread 2 waits for M again, when no thread waits for L.
        let all = [
            (1, L, Some(2), 10, 30),
            (5, L, Some(2), 20, 40),
            (2, M, Some(3), 15, 25),
            (2, M, Some(3), 50, 60),
            (3, N, None, 22, 24),
        ];
        let forest = forest(&all);
        let held = &forest[&L].holders[&2];
        assert_eq!((forest[&L].time, held.time, held.is_deadlock), (40, 40, false));
        let next = &held.waits[&M];
        // Thread 1 contributes 10, and thread 5 contributes 5.
        assert_eq!((next.time, next.holders[&3].time), (15, 15));
        assert_eq!(next.holders[&3].waits[&N].time, 4);
        assert!(next.holders[&3].waits[&N].holders.is_empty());
        assert_eq!((forest[&M].time, forest.len()), (20, 2));
    }

    #[test]
    fn a_thread_that_wakes_up_does_not_wait_for_the_lock_that_it_holds() {
        // Thread 3 releases L to thread 2 at time 20, but thread 2 does not run until 22.
        let forest = forest(&[(1, L, Some(3), 10, 20), (1, L, Some(2), 20, 30), (2, L, Some(3), 5, 22)]);
        assert!(forest[&L].holders[&2].waits.is_empty());
        assert_eq!(forest[&L].holders[&3].time, 10 + 17);
    }

    #[test]
    fn deadlocks_end_the_path() {
        let forest = forest(&[(1, L, Some(2), 10, 20), (2, M, Some(1), 12, 20)]);
        let held = &forest[&L].holders[&2];
        assert!(!held.is_deadlock);
        let back = &held.waits[&M].holders[&1];
        assert!(back.is_deadlock && back.waits.is_empty());
        assert_eq!(back.time, 8);
    }

    #[test]
    fn hostile_spans_end_early() {
        let mut spans = WaitSpans::default();
        for tid in 0..400 {
            for at in 0..400 {
                let awaited = Awaited::Lock(1, u64::from(at as u32 % 40));
                spans.add(
                    tid,
                    WaitSpan { awaited, holder: Some((tid + at) % 400), from: 0, to: 1000, stack: 0 },
                );
            }
        }
        assert!(!spans.forest().1);
    }
}
