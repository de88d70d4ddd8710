//! The live state as the thread that samples and those who look share it.
//!
//! Receives what each side says of itself; hands it to the other. Decides nothing.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::Live;
use crate::abi::Attr;
use crate::session::Timestamp;

/// An event that is sampled.
#[derive(Debug, Clone)]
pub struct LiveEvent {
    /// Its name as the user wrote it.
    pub name: String,
    /// How it was opened.
    pub attr: Attr,
    /// Index of the leader of its group.
    pub leader: usize,
}

/// What the sampling thread and those who look have in common.
pub struct SharedLive {
    live: Mutex<Live>,
    /// Sampled events by number. What only tracks comes last in the rings and is not among them.
    pub events: Vec<LiveEvent>,
    over: AtomicBool,
    yielding: AtomicBool,
    settled: AtomicU64,
    delay_ns: AtomicU64,
}

impl SharedLive {
    /// Nothing has happened yet. `delay`: from one table to the next.
    pub fn new(live: Live, events: Vec<LiveEvent>, delay: Duration) -> Self {
        let shared = Self {
            live: Mutex::new(live),
            events,
            over: AtomicBool::new(false),
            yielding: AtomicBool::new(false),
            settled: AtomicU64::new(0),
            delay_ns: AtomicU64::new(0),
        };
        shared.set_delay(delay);
        shared
    }

    /// The state, for as long as nobody else needs it.
    pub fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nobody is left to be sampled, or sampling failed: nothing more will come.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Nothing more will come.
    pub fn end(&self) {
        self.over.store(true, Ordering::Release);
    }

    /// Whether somebody else has reserved the hardware, and the plan is to yield.
    pub fn is_yielding(&self) -> bool {
        self.yielding.load(Ordering::Relaxed)
    }

    /// Somebody else has reserved the hardware, or no longer has.
    pub fn set_yielding(&self, yields: bool) {
        self.yielding.store(yields, Ordering::Relaxed);
    }

    /// The last timestamp that was settled.
    pub fn settled(&self) -> Timestamp {
        self.settled.load(Ordering::Relaxed)
    }

    /// All up to a timestamp was settled.
    pub fn set_settled(&self, settled: Timestamp) {
        self.settled.store(settled, Ordering::Relaxed);
    }

    /// From one table to the next.
    pub fn delay(&self) -> Duration {
        Duration::from_nanos(self.delay_ns.load(Ordering::Relaxed))
    }

    /// A table is made so often from now on.
    pub fn set_delay(&self, delay: Duration) {
        self.delay_ns.store(u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}
