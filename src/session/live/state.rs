//! What a sampling thread and those who look at its samples have in common.
//!
//! Holds [`Live`] behind its lock, and what is said of the sampling itself. One side settles batches, the
//! other takes snapshots; neither knows the other.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::Live;
use crate::abi::Attr;

/// Samples are settled at least so often, in nanoseconds, and twice a table.
const SETTLE_NS: u64 = 500_000_000;

/// An event that is sampled.
#[derive(Debug, Clone)]
pub struct SampledEvent {
    /// As it was typed.
    pub name: String,
    /// As the kernel took it.
    pub attr: Attr,
    /// Index of the leader of its group.
    pub leader: usize,
}

/// What is known of now, and how the sampling goes.
pub struct LiveState {
    live: Mutex<Live>,
    /// Sampled events by number. What only tracks is not among them.
    pub events: Vec<SampledEvent>,
    is_over: AtomicBool,
    is_yielding: AtomicBool,
    settled: AtomicU64,
    settle_ns: AtomicU64,
}

fn settle_ns(delay: Duration) -> u64 {
    SETTLE_NS.min(u64::try_from(delay.as_nanos() / 2).unwrap_or(u64::MAX))
}

impl LiveState {
    /// Nothing has come yet; a table is made once a `delay`.
    pub fn new(live: Live, events: Vec<SampledEvent>, delay: Duration) -> Self {
        Self {
            live: Mutex::new(live),
            events,
            is_over: AtomicBool::new(false),
            is_yielding: AtomicBool::new(false),
            settled: AtomicU64::new(0),
            settle_ns: AtomicU64::new(settle_ns(delay)),
        }
    }

    /// What is known of now.
    pub fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody is left to be sampled, or sampling failed: nothing more will come.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Says that nothing more will come.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    /// Somebody else has reserved the hardware, and the plan is to yield.
    pub fn is_yielding(&self) -> bool {
        self.is_yielding.load(Ordering::Relaxed)
    }

    /// Says whether the hardware is left to somebody else.
    pub fn set_yielding(&self, is_yielding: bool) {
        self.is_yielding.store(is_yielding, Ordering::Relaxed);
    }

    /// A table is made so often from now on.
    pub fn set_delay(&self, delay: Duration) {
        self.settle_ns.store(settle_ns(delay), Ordering::Relaxed);
    }

    /// Nanoseconds after which samples are settled at the latest.
    pub fn settle_ns(&self) -> u64 {
        self.settle_ns.load(Ordering::Relaxed)
    }

    /// All that is older has been settled: a timestamp of the monotonic clock, in nanoseconds.
    pub fn settled(&self) -> u64 {
        self.settled.load(Ordering::Relaxed)
    }

    /// Says that all that is older has been settled.
    pub fn set_settled(&self, timestamp: u64) {
        self.settled.store(timestamp, Ordering::Relaxed);
    }
}
