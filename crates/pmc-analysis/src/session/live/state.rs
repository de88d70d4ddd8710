//! The state shared by the sampling thread and the viewers of its samples.
//!
//! Contains [`Live`] behind a lock, and the status of sampling. The sampling thread settles batches, and the
//! viewers take snapshots; neither depends on the other.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use super::Live;
use pmc_sys::abi::Attr;
use pmc_sys::sys::clock::monotonic_ns;

/// Maximum time in nanoseconds until samples are settled. They are also settled twice per displayed table.
const SETTLE_NS: u64 = 500_000_000;

/// A sampled event.
#[derive(Debug, Clone)]
pub struct SampledEvent {
    /// The name, as the user typed it.
    pub name: String,
    /// The attributes, as the kernel accepted them.
    pub attr: Attr,
    /// Index of its group leader.
    pub leader: usize,
}

/// The live data and the status of the sampling.
pub struct LiveState {
    live: Mutex<Live>,
    /// Sampled events, indexed by number, except for events that only track the side-band.
    pub(crate) events: Vec<SampledEvent>,
    ended_ns: OnceLock<u64>,
    is_yielding: AtomicBool,
    warnings: Mutex<Vec<String>>,
    settled: AtomicU64,
    settle_ns: AtomicU64,
}

fn settle_ns(delay: Duration) -> u64 {
    SETTLE_NS.min(u64::try_from(delay.as_nanos() / 2).unwrap_or(u64::MAX))
}

impl LiveState {
    /// Creates a state without samples. `delay` is the interval between tables.
    pub fn new(live: Live, events: Vec<SampledEvent>, delay: Duration) -> Self {
        Self {
            live: Mutex::new(live),
            events,
            ended_ns: OnceLock::new(),
            is_yielding: AtomicBool::new(false),
            warnings: Mutex::default(),
            settled: AtomicU64::new(0),
            settle_ns: AtomicU64::new(settle_ns(delay)),
        }
    }

    /// Locks the live data.
    pub fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether sampling has ended, because all targets have exited or sampling failed.
    pub fn is_over(&self) -> bool {
        self.ended_ns.get().is_some()
    }

    /// Returns when sampling ended, in nanoseconds of the monotonic clock.
    pub(crate) fn ended_ns(&self) -> Option<u64> {
        self.ended_ns.get().copied()
    }

    /// Marks sampling as ended.
    pub fn end(&self) {
        self.ended_ns.get_or_init(monotonic_ns);
    }

    /// Whether sampling is paused, because another process has reserved the hardware.
    pub fn is_yielding(&self) -> bool {
        self.is_yielding.load(Ordering::Relaxed)
    }

    /// Sets whether sampling is paused for a reservation.
    pub fn set_yielding(&self, is_yielding: bool) {
        self.is_yielding.store(is_yielding, Ordering::Relaxed);
    }

    /// Returns the warnings about the sampling so far. Untrusted text.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the warnings about the sampling so far.
    pub fn set_warnings(&self, warnings: Vec<String>) {
        *self.warnings.lock().unwrap_or_else(PoisonError::into_inner) = warnings;
    }

    /// Sets the interval between tables.
    pub fn set_delay(&self, delay: Duration) {
        self.settle_ns.store(settle_ns(delay), Ordering::Relaxed);
    }

    /// Maximum interval between settling samples, in nanoseconds.
    pub fn settle_ns(&self) -> u64 {
        self.settle_ns.load(Ordering::Relaxed)
    }

    /// Timestamp up to which all samples are settled, in nanoseconds of the monotonic clock.
    pub(crate) fn settled(&self) -> u64 {
        self.settled.load(Ordering::Relaxed)
    }

    /// Sets the timestamp up to which all samples are settled.
    pub fn set_settled(&self, timestamp: u64) {
        self.settled.store(timestamp, Ordering::Relaxed);
    }
}
