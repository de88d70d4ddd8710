//! The worker threads for reading and symbolizing in parallel: one per CPU, or as many as can be started.
//!
//! rayon's default pool panics if a thread cannot be started (process limits). pmc starts the threads first
//! and then adds them to the pool. If no thread can be started, the calling thread does all the work.

use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, available_parallelism};

use pmc_sys::sys::credentials;
use rayon::{ThreadBuilder, ThreadPoolBuilder};

/// Stack size of each thread: addr2line recurses once per level of inlining.
pub const STACK: usize = 64 << 20;

/// Starts the threads, once per program. Returns whether the current thread has to do the work, on its own
/// stack.
///
/// # Errors
/// Fails if rayon fails to create the pool.
pub fn start() -> Result<bool, String> {
    static STARTED: OnceLock<Result<bool, String>> = OnceLock::new();
    STARTED.get_or_init(build).clone()
}

/// Runs `work` on a worker thread. rayon would run the first part of parallel work on the calling thread,
/// whose stack may be too small.
pub(crate) fn inside<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    rayon::scope(|_| work())
}

fn build() -> Result<bool, String> {
    let wanted = available_parallelism().map_or(1, usize::from);
    let mut threads: Vec<Sender<ThreadBuilder>> = (0..wanted).filter_map(thread).collect();
    let builder = ThreadPoolBuilder::new().num_threads(threads.len().max(1));
    let is_alone = threads.is_empty();
    let built = if is_alone {
        builder.use_current_thread().build_global()
    } else {
        let give = move |worker: ThreadBuilder| {
            let thread = threads.pop().ok_or(std::io::ErrorKind::WouldBlock)?;
            thread.send(worker).map_err(|_| std::io::ErrorKind::BrokenPipe.into())
        };
        builder.spawn_handler(give).build_global()
    };
    built.map(|()| is_alone).map_err(|error| format!("starting threads: {error}"))
}

/// Starts a thread that waits for its place in the pool; `None` if that fails.
fn thread(number: usize) -> Option<Sender<ThreadBuilder>> {
    let (place, waits) = channel::<ThreadBuilder>();
    let work = move || {
        // The threads parse files of other users, and open no events.
        credentials::keep_for_reading();
        if let Ok(worker) = waits.recv() {
            worker.run();
        }
    };
    Builder::new().name(format!("worker-{number}")).stack_size(STACK).spawn(work).ok().map(|_| place)
}
