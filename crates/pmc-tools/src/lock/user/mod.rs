//! User-space locks: which threads wait for which lock, and which threads hold it in the meantime.

pub mod engine;
mod futex;
pub mod owner_reader;
mod parked;
mod sums;
pub mod text;
mod uses;
mod wait_tree;

use std::sync::Arc;

use pmc_analysis::interval::{DurationHistogram, PairingCounts};
use pmc_analysis::profile::sampled::futex_functions::{FutexUse, OwnerField};

/// A function in which threads wait for a lock or release it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LockSite {
    /// The function's name; untrusted text.
    pub function: Option<Arc<str>>,
    /// Source file and line; untrusted text.
    pub source: Option<(Arc<str>, u32)>,
}

impl LockSite {
    /// The source file.
    pub fn file(&self) -> Option<&str> {
        self.source.as_ref().map(|(file, _)| &**file)
    }

    /// The source line.
    pub fn line(&self) -> Option<u32> {
        self.source.as_ref().map(|(_, line)| *line)
    }
}

/// A thread in a function, and the time for which it waited for a lock or held it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockParty {
    /// The thread.
    pub tid: i32,
    /// The thread's name; untrusted text.
    pub comm: String,
    /// Where the thread waited, or where it released the lock. If the release was not recorded, where the
    /// thread last called `futex` for any reason.
    pub site: LockSite,
    /// Whether the site is known to be where the thread waited or released the lock.
    pub is_exact: bool,
    /// Nanoseconds.
    pub time: u64,
    /// Number of waits. For a holder, the number of other threads' waits during which it held the lock.
    pub waits: u64,
}

/// A lock, or all locks of a library whose addresses are unknown.
#[derive(Debug, Clone)]
pub struct UserLock {
    /// The process.
    pub pid: i32,
    /// The process's name; untrusted text.
    pub comm: String,
    /// Address of the lock in the process. `None` for the locks of a library that parks threads, as far as
    /// their addresses are unknown.
    pub address: Option<u64>,
    /// The variable that contains the lock, with the lock's offset in it; untrusted text.
    pub variable: Option<(String, u64)>,
    /// Kind of lock.
    pub is: FutexUse,
    /// Where the lock stores its holder.
    pub owner_field: OwnerField,
    /// The waits.
    pub waits: DurationHistogram,
    /// Number of waits that ended with a timeout.
    pub timed_out: u64,
    /// Number of waits that had not ended when the recording or their thread ended.
    pub unfinished: u64,
    /// Number of waits during which records were lost.
    pub with_loss: u64,
    /// The threads that waited, longest wait first.
    pub waiters: Vec<LockParty>,
    /// The threads that held the lock while others waited, longest time first.
    pub holders: Vec<LockParty>,
    /// If the address is unknown, the threads that woke the waiting ones, longest time first. They released
    /// one of the locks, but may not have held it during the whole wait.
    pub wakers: Vec<LockParty>,
    /// The holders that were themselves waiting in the meantime, longest first.
    pub tree: Vec<WaitingHolder>,
    /// Waiting time during which the holder is unknown, in nanoseconds.
    pub unknown: u64,
    /// Number of times that pmc read the owner from memory during a wait for which the releasing thread is
    /// also known.
    pub readings: u64,
    /// Number of these readings in which the owner was the releasing thread.
    pub agreeing: u64,
}

/// A thread that holds a lock, and what it waits for meanwhile. All times are waiting times of the threads
/// that wait for the lock, so they add up.
#[derive(Debug, Clone)]
pub struct WaitingHolder {
    /// The thread.
    pub tid: i32,
    /// The thread's name; untrusted text.
    pub comm: String,
    /// Nanoseconds for which it held the lock while others waited.
    pub time: u64,
    /// Whether it waits for a lock at a higher level of the tree, so that none of these threads can continue.
    pub is_deadlock: bool,
    /// What it waited for, longest first.
    pub waits: Vec<HolderWait>,
}

/// Something that the holder of a lock waits for.
#[derive(Debug, Clone)]
pub struct HolderWait {
    /// The purpose of the futex.
    pub what: FutexUse,
    /// Index of the lock in [`UserLocks::locks`]; `None` if the holder waits for something other than a lock.
    pub lock: Option<usize>,
    /// Where the holder waited most of the time.
    pub site: LockSite,
    /// Nanoseconds.
    pub time: u64,
    /// The threads that held this lock, longest first.
    pub holders: Vec<WaitingHolder>,
}

/// Waits for something other than a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OtherWaits {
    /// The purpose of the futex.
    pub what: FutexUse,
    /// Nanoseconds.
    pub time: u64,
    /// Number of waits.
    pub waits: u64,
}

/// The result of `pmc lock user`.
#[derive(Debug, Clone, Default)]
pub struct UserLocks {
    /// Nanoseconds from the first to the last event.
    pub elapsed: u64,
    /// Number of threads that used a futex.
    pub threads: usize,
    /// The locks, longest total wait first.
    pub locks: Vec<UserLock>,
    /// Waits for things other than locks, longest first.
    pub others: Vec<OtherWaits>,
    /// Counts of matched and unmatched events.
    pub counts: PairingCounts,
    /// Number of `futex` calls that returned without waiting because the lock had been released in the
    /// meantime.
    pub did_not_wait: u64,
    /// Whether waits are missing from the trees because there are too many.
    pub has_partial_trees: bool,
    /// Whether there are Go programs, whose goroutines wait without calling the kernel. Their locks are
    /// missing here.
    pub has_goroutines: bool,
}

impl UserLocks {
    /// Returns the time for which threads waited for locks, in nanoseconds.
    pub fn waited(&self) -> u64 {
        self.locks.iter().fold(0, |sum, lock| sum.saturating_add(lock.waits.sum()))
    }

    /// Returns the part of this time during which the holder is unknown, in nanoseconds.
    pub fn unknown(&self) -> u64 {
        self.locks.iter().fold(0, |sum, lock| sum.saturating_add(lock.unknown))
    }
}
