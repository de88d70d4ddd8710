//! User-space locks: which threads wait for which lock, and which threads hold it in the meantime.

mod agent;
mod engine;
mod futex;
mod json;
pub(super) mod owner_reader;
mod parked;
mod sums;
mod text;
mod uses;
mod wait_tree;

use std::path::PathBuf;
use std::sync::Arc;

use pmc_command::pager::PagedOutput;
use pmc_command::progress::Bars;
use pmc_symbols::symbol::SymbolOptions;
use pmc_sys::error::{Error, Exit, Result};
use pmc_sys::host::futex::FutexReading;
use pmc_text::terminal::Stream;

use pmc_analysis::interval::{DurationHistogram, PairingCounts};
use pmc_analysis::profile::sampled::futex_functions::{FutexUse, OwnerField};
use pmc_analysis::session::Session;

/// Default maximum number of frames in a call chain.
pub(super) const MAX_STACK: usize = 127;

/// Which recording to show, and how.
#[derive(Debug)]
pub(super) struct UserLockRequest {
    /// The recording to read.
    pub(super) input: PathBuf,
    /// Maximum length of a call chain, in frames.
    pub(super) max_stack: usize,
    /// Where to look for symbols.
    pub(super) symbols: SymbolOptions,
    /// Maximum number of locks.
    pub(super) rows: usize,
    /// Maximum number of waiting threads, and of lock holders, to show for each lock.
    pub(super) parties: usize,
    /// Whether to print JSON.
    pub(super) json: bool,
    pub(super) stream: Stream,
}

/// Shows the user-space locks in a recording. `readings` are the futexes that pmc read while it recorded.
pub(super) fn show(request: &UserLockRequest, readings: &[FutexReading]) -> Result<Exit> {
    let session = super::open(&request.input)?;
    let (locks, exit) = engine::user_locks(session, &request.symbols, request.max_stack, readings, &Bars)?;
    let mut out = PagedOutput::to(request.stream);
    let written = match request.json {
        true => json::write(&mut out, &locks, request.rows),
        false => text::write(&mut out, &locks, request.rows, request.parties),
    };
    written.and_then(|()| out.finish()).map_err(|error| Error::output("the locks", error))?;
    Ok(exit)
}

/// The user-space locks of a recording, for AI agents.
#[derive(Debug)]
pub struct AgentLocks {
    /// What the rows have in common.
    pub head: serde_json::Map<String, serde_json::Value>,
    /// One row per lock, longest wait first. All names are untrusted text.
    pub rows: Vec<serde_json::Value>,
    /// The quality of the data.
    pub trust: serde_json::Value,
}

/// Returns the user-space locks of a recording.
///
/// # Errors
/// Fails if the recording cannot be read or has no calls of `futex`.
pub fn agent_locks(session: Arc<Session>, symbols: &SymbolOptions) -> Result<AgentLocks> {
    let (locks, _) = engine::user_locks(session, symbols, MAX_STACK, &[], &())?;
    Ok(AgentLocks {
        head: agent::head(&locks),
        rows: agent::rows(&locks).collect(),
        trust: agent::trust(&locks),
    })
}

/// A function in which threads wait for a lock or release it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct LockSite {
    /// The function's name; untrusted text.
    pub(super) function: Option<Arc<str>>,
    /// Source file and line; untrusted text.
    pub(super) source: Option<(Arc<str>, u32)>,
}

impl LockSite {
    /// The source file.
    pub(super) fn file(&self) -> Option<&str> {
        self.source.as_ref().map(|(file, _)| &**file)
    }

    /// The source line.
    pub(super) fn line(&self) -> Option<u32> {
        self.source.as_ref().map(|(_, line)| *line)
    }
}

/// A thread in a function, and the time for which it waited for a lock or held it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LockThread {
    /// The thread.
    pub(super) tid: i32,
    /// The thread's name; untrusted text.
    pub(super) comm: String,
    /// Where the thread waited, or where it released the lock. If the release was not recorded, where the
    /// thread last called `futex` for any reason.
    pub(super) site: LockSite,
    /// Whether the site is known to be where the thread waited or released the lock.
    pub(super) is_exact: bool,
    /// Nanoseconds.
    pub(super) time: u64,
    /// Number of waits. For a holder, the number of other threads' waits during which it held the lock.
    pub(super) waits: u64,
}

/// A lock, or all locks of a library whose addresses are unknown.
#[derive(Debug, Clone)]
pub(super) struct UserLock {
    /// The process.
    pub(super) pid: i32,
    /// The process's name; untrusted text.
    pub(super) comm: String,
    /// Address of the lock in the process. `None` for the locks of a library that parks threads, as far as
    /// their addresses are unknown.
    pub(super) address: Option<u64>,
    /// The variable that contains the lock, with the lock's offset in it; untrusted text.
    pub(super) variable: Option<(String, u64)>,
    /// Kind of lock.
    pub(super) purpose: FutexUse,
    /// Where the lock stores its holder.
    pub(super) owner_field: OwnerField,
    /// The waits.
    pub(super) waits: DurationHistogram,
    /// Number of waits that ended with a timeout.
    pub(super) timed_out: u64,
    /// Number of waits that had not ended when the recording or their thread ended.
    pub(super) unfinished: u64,
    /// Number of waits during which records were lost.
    pub(super) with_loss: u64,
    /// The threads that waited, longest wait first.
    pub(super) waiters: Vec<LockThread>,
    /// The threads that held the lock while others waited, longest time first.
    pub(super) holders: Vec<LockThread>,
    /// If the address is unknown, the threads that woke the waiting ones, longest time first. They released
    /// one of the locks, but may not have held it during the whole wait.
    pub(super) wakers: Vec<LockThread>,
    /// The holders that were themselves waiting in the meantime, longest first.
    pub(super) tree: Vec<WaitingHolder>,
    /// Waiting time during which the holder is unknown, in nanoseconds.
    pub(super) unknown: u64,
    /// Number of times that pmc read the owner from memory during a wait for which the releasing thread is
    /// also known.
    pub(super) readings: u64,
    /// Number of these readings in which the owner was the releasing thread.
    pub(super) agreeing: u64,
}

/// A thread that holds a lock, and what it waits for meanwhile. All times are waiting times of the threads
/// that wait for the lock, so they add up.
#[derive(Debug, Clone)]
pub(super) struct WaitingHolder {
    /// The thread.
    pub(super) tid: i32,
    /// The thread's name; untrusted text.
    pub(super) comm: String,
    /// Nanoseconds for which it held the lock while others waited.
    pub(super) time: u64,
    /// Whether it waits for a lock at a higher level of the tree, so that none of these threads can continue.
    pub(super) is_deadlock: bool,
    /// What it waited for, longest first.
    pub(super) waits: Vec<HolderWait>,
}

/// Something that the holder of a lock waits for.
#[derive(Debug, Clone)]
pub(super) struct HolderWait {
    /// The purpose of the futex.
    pub(super) what: FutexUse,
    /// Index of the lock in [`UserLocks::locks`]; `None` if the holder waits for something other than a lock.
    pub(super) lock: Option<usize>,
    /// Where the holder waited most of the time.
    pub(super) site: LockSite,
    /// Nanoseconds.
    pub(super) time: u64,
    /// The threads that held this lock, longest first.
    pub(super) holders: Vec<WaitingHolder>,
}

/// Waits for something other than a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OtherWaits {
    /// The purpose of the futex.
    pub(super) what: FutexUse,
    /// Nanoseconds.
    pub(super) time: u64,
    /// Number of waits.
    pub(super) waits: u64,
}

/// The result of `pmc lock user`.
#[derive(Debug, Clone, Default)]
pub(super) struct UserLocks {
    /// Nanoseconds from the first to the last event.
    pub(super) elapsed: u64,
    /// Number of threads that used a futex.
    pub(super) threads: usize,
    /// The locks, longest total wait first.
    pub(super) locks: Vec<UserLock>,
    /// Waits for things other than locks, longest first.
    pub(super) others: Vec<OtherWaits>,
    /// Counts of matched and unmatched events.
    pub(super) counts: PairingCounts,
    /// Number of `futex` calls that returned without waiting because the lock had been released in the
    /// meantime.
    pub(super) did_not_wait: u64,
    /// Whether waits are missing from the trees because there are too many.
    pub(super) has_partial_trees: bool,
    /// Whether there are Go programs, whose goroutines wait without calling the kernel. Their locks are
    /// missing here.
    pub(super) has_goroutines: bool,
}

impl UserLocks {
    /// Returns the time for which threads waited for locks, in nanoseconds.
    pub(super) fn waited(&self) -> u64 {
        self.locks.iter().fold(0, |sum, lock| sum.saturating_add(lock.waits.sum()))
    }

    /// Returns the part of this time during which the holder is unknown, in nanoseconds.
    pub(super) fn unknown(&self) -> u64 {
        self.locks.iter().fold(0, |sum, lock| sum.saturating_add(lock.unknown))
    }
}
