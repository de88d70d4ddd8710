//! The unwind-table cache: a separate thread reads the tables of each file once.
//!
//! Receives modules; finds their files as `report` does (through the process's root, checked by build-id) and
//! extracts the tables. This takes seconds for a huge program. Until then, the cache returns
//! [`TableState::Reading`].

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use pmc_analysis::session::Module;
use pmc_symbols::symbol::{self, SymbolOptions, locate};
use pmc_symbols::unwind::UnwindTables;
use pmc_sys::error::{Warning, say};
use pmc_sys::sys::{clock, memory};

/// Maximum size of the cached tables in bytes. If they exceed it, all tables are dropped and read again as
/// needed.
const MAX_TABLE_BYTES: usize = 1 << 30;

/// Interval between checks whether waiting for tables is still worthwhile.
const LOOK: Duration = Duration::from_millis(50);

/// The state of a file's tables.
#[derive(Clone)]
pub(crate) enum TableState {
    /// The tables are being read.
    Reading,
    /// The tables, or `None` if the file has no tables.
    Read(Option<Arc<UnwindTables>>),
}

#[derive(Default)]
struct CacheContents {
    slots: FxHashMap<u32, TableState>,
    bytes: usize,
    /// Number of files being read.
    reading: usize,
    /// Number of files read.
    read: u64,
    /// CPU time for reading the files, in nanoseconds.
    cpu_ns: u64,
}

#[derive(Default)]
struct SharedCache {
    cached: Mutex<CacheContents>,
    done: Condvar,
}

impl SharedCache {
    fn lock(&self) -> MutexGuard<'_, CacheContents> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) struct TableCache {
    shared: Arc<SharedCache>,
    requests: Option<Sender<(u32, symbol::SymbolModule)>>,
    /// Whether files have been requested since the last [`wait_once`](Self::wait_once).
    new: bool,
}

impl TableCache {
    /// Creates an empty cache. Its thread starts with the first request and ends with the cache.
    pub(crate) fn new() -> Self {
        Self { shared: Arc::default(), requests: None, new: false }
    }

    /// Returns the tables of the module with this number. The first call for a module requests its tables.
    pub(crate) fn get(&mut self, number: u32, module: &Module) -> TableState {
        let mut known = self.shared.lock();
        if let Some(slot) = known.slots.get(&number) {
            return slot.clone();
        }
        let Some(request) = module.for_symbols(true) else {
            return TableState::Read(None);
        };
        known.slots.insert(number, TableState::Reading);
        known.reading += 1;
        self.new = true;
        drop(known);
        let reader = self.requests.get_or_insert_with(|| reader(Arc::clone(&self.shared)));
        if reader.send((number, request)).is_err() {
            // The thread could not be started, so treat the file as if it had no tables.
            let mut known = self.shared.lock();
            known.slots.insert(number, TableState::Read(None));
            known.reading -= 1;
            return TableState::Read(None);
        }
        TableState::Reading
    }

    /// Like [`wait`](Self::wait). Returns immediately if no files have been requested since the last call.
    pub(crate) fn wait_once(&mut self, deadline: Instant) {
        if std::mem::take(&mut self.new) {
            self.wait(deadline, || false);
        }
    }

    /// Waits until all requested tables have been read, until `deadline`, or until `gives_up`, which is asked
    /// at intervals of [`LOOK`].
    pub(crate) fn wait(&self, deadline: Instant, gives_up: impl Fn() -> bool) {
        let mut known = self.shared.lock();
        while known.reading > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left == Duration::ZERO || gives_up() {
                return;
            }
            known = self
                .shared
                .done
                .wait_timeout(known, left.min(LOOK))
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Returns the number of files read. The results of [`get`](Self::get) change only when this number
    /// changes.
    pub(crate) fn age(&self) -> u64 {
        self.shared.lock().read
    }

    /// Returns the CPU time for reading the files, in nanoseconds. This time is spent once per file, not per
    /// sample.
    pub(crate) fn cpu_ns(&self) -> u64 {
        self.shared.lock().cpu_ns
    }

    /// Drops all tables if they exceed the size limit. Returns whether they did.
    pub(crate) fn drop_if_too_large(&mut self) -> bool {
        let mut known = self.shared.lock();
        let is_much = known.bytes > MAX_TABLE_BYTES;
        if is_much {
            known.slots.retain(|_, slot| matches!(slot, TableState::Reading));
            known.bytes = 0;
        }
        is_much
    }
}

fn no_room(limit: u64) -> Warning {
    Warning::note_once(format!(
        "stacks of large programs will be unwound when the file is read: the address space is limited to {} KiB",
        limit >> 10
    ))
    .advise("ulimit -v unlimited, to unwind them while recording")
}

fn reader(shared: Arc<SharedCache>) -> Sender<(u32, symbol::SymbolModule)> {
    let (requests, taken) = channel::<(u32, symbol::SymbolModule)>();
    let read = move || {
        // Disable lookups that are slow or should not happen during a measurement.
        let options = SymbolOptions { cache: None, ..SymbolOptions::from_environment() };
        while let Ok((number, module)) = taken.recv() {
            let found = locate::locate(&module, &options);
            let debug = found.debug.as_deref();
            // The tables take at most half the size of their file.
            let bytes = found.binary.as_ref().map_or(0, |binary| binary.len()) + debug.map_or(0, <[u8]>::len);
            if let Some(limit) = memory::address_space_limit().filter(|_| !memory::has_room(bytes as u64 / 2))
            {
                say::warn(no_room(limit));
                // The state stays, so that the samples keep their stack copies.
                shared.lock().reading -= 1;
                shared.done.notify_all();
                continue;
            }
            let tables = found.binary.as_ref().and_then(|binary| {
                Some(UnwindTables::read(binary, debug)?.with_program(Arc::new(binary.clone())))
            });
            let mut known = shared.lock();
            known.bytes += tables.as_ref().map_or(0, UnwindTables::bytes);
            known.slots.insert(number, TableState::Read(tables.map(Arc::new)));
            known.reading -= 1;
            known.read += 1;
            known.cpu_ns = clock::thread_cpu_ns();
            shared.done.notify_all();
        }
    };
    // If the thread cannot be started, the channel closes, and sending fails.
    let _ = std::thread::Builder::new().name("tables".to_owned()).spawn(read);
    requests
}
