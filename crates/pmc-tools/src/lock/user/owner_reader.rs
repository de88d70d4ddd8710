//! Repeatedly reads the futexes on which threads wait while a recording runs.
//!
//! Many libraries store a lock's holder in the lock itself. Kernel events cannot report the holder, because
//! the kernel does not know who holds a lock in user space. Receives the processes to watch; returns the
//! readings with their times. The analysis matches the readings with the waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pmc_events::counter::target;
use pmc_recording::recording::launch;
use pmc_sys::host::Host;
use pmc_sys::host::futex::FutexReading;
use pmc_sys::sys::signal;

/// Time between two rounds of readings.
const PERIOD: Duration = Duration::from_millis(5);
/// Limit on the time for rounds, and on the time for searches: each may take at most 1/N of the running time,
/// where N is this number.
const SHARE: u32 = 50;
/// Time between two searches for new processes. It is shorter until the first process has been found.
const SEARCH: Duration = Duration::from_millis(200);
/// Maximum number of readings. If there are more, every other reading is dropped, and the period is doubled.
const MAX_READINGS: usize = 1 << 18;
/// Maximum number of threads per process and round.
const MOST_THREADS: usize = 1024;

/// The processes to watch.
#[derive(Debug, Clone)]
pub(in crate::lock) enum WatchedProcesses {
    /// The command that this process starts, and its descendants.
    Command,
    /// These processes, with their descendants.
    Named(Vec<u32>),
}

/// A thread that reads futexes until it is told to stop.
#[derive(Debug)]
pub(in crate::lock) struct LockOwnerReader {
    ends: Arc<AtomicBool>,
    thread: JoinHandle<Vec<FutexReading>>,
}

impl LockOwnerReader {
    /// Starts reading. Returns `None` if the thread cannot be started; the recording is complete even without
    /// the readings.
    ///
    /// Call this before the recording starts.
    pub(in crate::lock) fn start(watched: WatchedProcesses) -> Option<Self> {
        // The thread inherits the signal mask. Otherwise it might receive signals that are meant for the
        // recording, such as SIGCHLD.
        launch::signals(&[signal::USR1, signal::USR2]).ok()?;
        let ends = Arc::new(AtomicBool::new(false));
        let told = ends.clone();
        let thread = std::thread::Builder::new().name("lock-owners".into());
        let thread = thread.spawn(move || read(&watched, &told)).ok()?;
        Some(Self { ends, thread })
    }

    /// Stops the thread, and returns the readings sorted by time.
    pub(in crate::lock) fn finish(self) -> Vec<FutexReading> {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        self.thread.join().unwrap_or_default()
    }
}

fn read(watched: &WatchedProcesses, ends: &AtomicBool) -> Vec<FutexReading> {
    let host = Host::live();
    let own = std::process::id();
    let mut pids = match watched {
        WatchedProcesses::Command => vec![own],
        WatchedProcesses::Named(pids) => pids.clone(),
    };
    pids.sort_unstable();
    pids.dedup();
    let mut readings = Vec::new();
    // When the last search for descendants was made, and how long it took.
    let mut search: Option<(Instant, Duration)> = None;
    let mut period = PERIOD;
    while !ends.load(Ordering::Relaxed) && !pids.is_empty() {
        let is_known = pids.iter().any(|pid| *pid != own);
        if search.is_none_or(|(at, took)| !is_known || at.elapsed() > SEARCH.max(took * SHARE)) {
            let began = Instant::now();
            // A process whose parent has ended can no longer be found as a child of that parent.
            pids.retain(|pid| host.lives(*pid));
            pids = target::families(&host, &pids);
            search = Some((Instant::now(), began.elapsed()));
        }
        let began = Instant::now();
        for pid in pids.iter().filter(|pid| **pid != own) {
            host.futex_readings(*pid, MOST_THREADS, &mut readings);
        }
        if readings.len() > MAX_READINGS {
            let mut is_kept = false;
            readings.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
            period *= 2;
        }
        std::thread::park_timeout(period.max(began.elapsed() * SHARE));
    }
    readings
}
