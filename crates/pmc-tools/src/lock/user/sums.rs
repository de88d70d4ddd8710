//! The sums of a lock: how long each thread waited for it, and how long each thread held it meanwhile.
//!
//! The engine of `lock user` adds waits; at the end, it turns the sums into the rows of the result.

use std::hash::Hash;

use rustc_hash::{FxHashMap, FxHashSet};

use super::futex::WaitEnd;
use super::uses::StackFutexUse;
use pmc_analysis::interval::DurationHistogram;
use pmc_analysis::profile::sampled::futex_functions::{FutexUse, OwnerField};

/// A process id, and an address in that process.
pub(super) type FutexKey = (i32, u64);

/// A thread, its stack, and whether it released the lock there or waited for it.
pub(super) type PartyKey = (i32, Option<u32>, bool);

/// Nanoseconds and number of waits, by thread and stack or site.
#[derive(Debug)]
pub(super) struct PartySums<K>(pub(super) FxHashMap<K, (u64, u64)>);

impl<K> Default for PartySums<K> {
    fn default() -> Self {
        Self(FxHashMap::default())
    }
}

impl<K: Clone + Eq + Hash> PartySums<K> {
    pub(super) fn add(&mut self, key: K, time: u64, waits: u64) {
        let sum = self.0.entry(key).or_default();
        *sum = (sum.0.saturating_add(time), sum.1 + waits);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (key, (time, waits)) in &other.0 {
            self.add(key.clone(), *time, *waits);
        }
    }
}

/// A call that wakes threads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wake {
    pub(super) time: u64,
    pub(super) tid: i32,
    pub(super) stack: u32,
}

/// Maximum number of wake-ups to remember per lock with waiting threads, and per wait.
pub(super) const MOST_WAKES: usize = 1024;

/// A wait for a lock.
#[derive(Debug)]
pub(super) struct LockWait {
    pub(super) pid: i32,
    pub(super) tid: i32,
    /// The address of the lock.
    pub(super) lock: u64,
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) stack: u32,
    pub(super) usage: StackFutexUse,
    pub(super) how: WaitEnd,
    /// Whether records were lost in the meantime.
    pub(super) has_loss: bool,
    /// The wake-ups by other threads in the meantime, in time order.
    pub(super) wakes: Vec<Wake>,
    /// The holders that were read in the meantime, with the time.
    pub(super) owners: Vec<(u64, i32)>,
}

/// The totals of a lock, with separate sums for each thread and stack.
#[derive(Debug)]
pub(super) struct LockSums {
    pub(super) usage: StackFutexUse,
    pub(super) waits: DurationHistogram,
    pub(super) timed_out: u64,
    pub(super) unfinished: u64,
    pub(super) with_loss: u64,
    pub(super) waiters: PartySums<PartyKey>,
    pub(super) holders: PartySums<PartyKey>,
    /// The threads that ended waits for unknown locks.
    pub(super) wakers: PartySums<PartyKey>,
    pub(super) unknown: u64,
    pub(super) readings: u64,
    pub(super) agreeing: u64,
    /// A time at which the lock existed.
    pub(super) seen: u64,
}

impl LockSums {
    pub(super) fn new(usage: StackFutexUse, seen: u64) -> Self {
        Self {
            usage,
            seen,
            waits: DurationHistogram::default(),
            timed_out: 0,
            unfinished: 0,
            with_loss: 0,
            waiters: PartySums::default(),
            holders: PartySums::default(),
            wakers: PartySums::default(),
            unknown: 0,
            readings: 0,
            agreeing: 0,
        }
    }

    /// Whether a thread that waited for this semaphore also posted it. Posts while no thread waits need no
    /// system call, so they are not recorded.
    pub(super) fn is_posted_by_waiters(&self) -> bool {
        let waiters: FxHashSet<i32> = self.waiters.0.keys().map(|(tid, ..)| *tid).collect();
        self.holders.0.keys().any(|(tid, ..)| waiters.contains(tid))
    }

    /// Adds the duration and the end of a wait.
    pub(super) fn count(&mut self, wait: &LockWait) {
        let duration = wait.to.saturating_sub(wait.from);
        self.waits.add(duration);
        self.timed_out += u64::from(wait.how == WaitEnd::TimedOut);
        self.unfinished += u64::from(wait.how == WaitEnd::Unfinished);
        self.with_loss += u64::from(wait.has_loss);
        self.waiters.add((wait.tid, Some(wait.stack), true), duration, 1);
    }

    /// Adds a wait for an unknown lock: only the thread that ended it is known.
    pub(super) fn count_unknown(&mut self, wait: &LockWait) {
        self.count(wait);
        let duration = wait.to.saturating_sub(wait.from);
        self.unknown = self.unknown.saturating_add(duration);
        if let Some(wake) = wait.wakes.last().filter(|_| wait.how == WaitEnd::Woken) {
            self.wakers.add((wake.tid, Some(wake.stack), true), duration, 1);
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.waits.merge(&other.waits);
        self.timed_out += other.timed_out;
        self.unfinished += other.unfinished;
        self.with_loss += other.with_loss;
        self.unknown = self.unknown.saturating_add(other.unknown);
        self.readings += other.readings;
        self.agreeing += other.agreeing;
        self.waiters.merge(&other.waiters);
        self.holders.merge(&other.holders);
        self.wakers.merge(&other.wakers);
    }
}

/// Merges the two futexes of each of Rust's reader-writer locks. Writers wait on the second one, 4 bytes
/// after the first.
pub(super) fn join_halves(mut all: FxHashMap<FutexKey, LockSums>) -> FxHashMap<FutexKey, LockSums> {
    let is_rust = |sums: &LockSums| {
        (sums.usage.purpose, sums.usage.owner_field) == (FutexUse::RwLock, OwnerField::Nowhere)
    };
    let mut keys: Vec<FutexKey> = all.iter().filter(|(_, sums)| is_rust(sums)).map(|(key, _)| *key).collect();
    keys.sort_unstable();
    for pair in keys.chunk_by(|a, b| a.0 == b.0 && b.1 - a.1 == 4).filter(|pair| pair.len() == 2) {
        if let (Some(second), Some(first)) = (all.remove(&pair[1]), all.get_mut(&pair[0])) {
            first.merge(&second);
        }
    }
    all
}
