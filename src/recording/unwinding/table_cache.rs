//! The unwind-table cache: tables of the files that samples need, each read once, by a thread of its own.
//!
//! Receives modules; finds their files (as `report` does: through the process's eyes, checked by build-id)
//! and takes the tables out. A huge program takes seconds: whoever asks meanwhile learns that they are being
//! read.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use crate::session::Module;
use crate::symbol::{self, Options, locate};
use crate::sys::clock;
use crate::unwind::Tables;

/// Bytes of tables kept: beyond, all are forgotten and read again as needed.
const MOST: usize = 1 << 30;

/// What is known of a file's tables.
#[derive(Clone)]
pub(crate) enum Slot {
    /// Somebody is at it.
    Reading,
    /// It has tables, or none.
    Read(Option<Arc<Tables>>),
}

#[derive(Default)]
struct Cached {
    slots: FxHashMap<u32, Slot>,
    bytes: usize,
    /// Files that are being read.
    reading: usize,
    /// Files that were read.
    read: u64,
    /// CPU time that reading them took, in nanoseconds.
    cpu_ns: u64,
}

#[derive(Default)]
struct SharedCache {
    cached: Mutex<Cached>,
    done: Condvar,
}

impl SharedCache {
    fn lock(&self) -> MutexGuard<'_, Cached> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All tables.
pub(crate) struct TableCache {
    shared: Arc<SharedCache>,
    requests: Option<Sender<(u32, symbol::Module)>>,
    /// Files that were asked for since anybody waited.
    new: bool,
}

impl TableCache {
    /// An empty cache. Its thread begins with the first question, and ends with the cache.
    pub(crate) fn new() -> Self {
        Self { shared: Arc::default(), requests: None, new: false }
    }

    /// The tables of the module with this number; asked for if nobody has yet.
    pub(crate) fn get(&mut self, number: u32, module: &Module) -> Slot {
        let mut known = self.shared.lock();
        if let Some(slot) = known.slots.get(&number) {
            return slot.clone();
        }
        let Some(request) = symbol::Module::of(module, true) else {
            return Slot::Read(None);
        };
        known.slots.insert(number, Slot::Reading);
        known.reading += 1;
        self.new = true;
        drop(known);
        let reader = self.requests.get_or_insert_with(|| reader(Arc::clone(&self.shared)));
        if reader.send((number, request)).is_err() {
            // No thread could be had: such files have no tables.
            let mut known = self.shared.lock();
            known.slots.insert(number, Slot::Read(None));
            known.reading -= 1;
            return Slot::Read(None);
        }
        Slot::Reading
    }

    /// Waits until all that was asked for is there, but not beyond `deadline`, and for the same files only
    /// once.
    pub(crate) fn wait(&mut self, deadline: Instant) {
        if !std::mem::take(&mut self.new) {
            return;
        }
        let mut known = self.shared.lock();
        while known.reading > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left == Duration::ZERO {
                return;
            }
            known = self.shared.done.wait_timeout(known, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// How many files have been read: as long as it stays the same, so do the answers.
    pub(crate) fn age(&self) -> u64 {
        self.shared.lock().read
    }

    /// CPU time that reading the files has taken, in nanoseconds: once for each, however many samples follow.
    pub(crate) fn cpu_ns(&self) -> u64 {
        self.shared.lock().cpu_ns
    }

    /// Forgets everything when it has become too much; whether it has.
    pub(crate) fn tidy(&mut self) -> bool {
        let mut known = self.shared.lock();
        let is_much = known.bytes > MOST;
        if is_much {
            known.slots.retain(|_, slot| matches!(slot, Slot::Reading));
            known.bytes = 0;
        }
        is_much
    }
}

fn reader(shared: Arc<SharedCache>) -> Sender<(u32, symbol::Module)> {
    let (requests, taken) = channel::<(u32, symbol::Module)>();
    let read = move || {
        // What is slow or not ours to ask for while something else is measured stays out.
        let options = Options { cache: None, ..Options::from_environment() };
        while let Ok((number, module)) = taken.recv() {
            let found = locate::locate(&module, &options);
            let debug = found.debug.as_deref();
            let tables = found
                .binary
                .as_ref()
                .and_then(|binary| Some(Tables::read(binary, debug)?.with_program(Arc::new(binary.clone()))));
            let mut known = shared.lock();
            known.bytes += tables.as_ref().map_or(0, Tables::bytes);
            known.slots.insert(number, Slot::Read(tables.map(Arc::new)));
            known.reading -= 1;
            known.read += 1;
            known.cpu_ns = clock::thread_cpu_ns();
            shared.done.notify_all();
        }
    };
    // Without a thread the channel closes at once, and the asker sees it.
    let _ = std::thread::Builder::new().name("tables".to_owned()).spawn(read);
    requests
}
