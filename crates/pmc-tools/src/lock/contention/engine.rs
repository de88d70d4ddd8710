//! Contention for kernel locks, measured by the rules of `perf lock contention`.
//!
//! ```text
//!   contention_begin   thread 7, lock A   ─┐ one wait; a second begin within it (a mutex that first spins,
//!   contention_end     thread 7, lock A   ─┘ then sleeps) is ignored
//! ```
//! The kernel does not report which thread holds a lock. A thread that releases a lock wakes the next one, so
//! it held the lock until the wake-up. A spinning thread is not woken, so the owner of its lock is unknown.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::kernel_symbols::KernelLockSymbols;
use crate::lock::contention::{
    ContentionRequest, ContentionRow, ContentionRows, KernelContention, LockFilter, is_sleeping_lock,
};
use crate::lock::tracepoints::TracepointRole;
use crate::lock::{check_times, lacks, records, tracepoints::LockTracepoints};
use pmc_analysis::analysis::ProgressSink;
use pmc_analysis::analysis::is_of_this_machine;
use pmc_analysis::analysis::script::{NamedRecording, ScriptLine};
use pmc_analysis::interval::{Interval, IntervalEngine, Overlap};
use pmc_analysis::profile::script::{AddressFunction, AddressFunctions, ScriptEntry};
use pmc_analysis::session::Session;
use pmc_sys::error::{Exit, Result};
use pmc_text::text::shell_word;

/// Maximum number of excluded waits in progress to remember.
const MOST_LEFT_OUT: usize = 1 << 18;

/// Maximum number of wake-ups to remember per waiting thread.
const MOST_WAKES: usize = 1024;

/// The command that makes the recording that [`contention`] needs.
const REMEDY: &str = "pmc lock record -a -- sleep 10 (or perf lock record)";

/// The command whose recording also contains the owners.
const OWNER_REMEDY: &str = "pmc lock contention -o -a -- sleep 10";

/// Computes the table. Also returns the exit status, and prints warnings about losses.
///
/// # Errors
/// Fails if the file cannot be read, or has no lock events.
pub(super) fn contention(
    session: Arc<Session>,
    request: &ContentionRequest,
    progress: &dyn ProgressSink,
) -> Result<(KernelContention, Exit)> {
    let tracepoints = LockTracepoints::new(&session);
    if !tracepoints.have(&[TracepointRole::ContentionBegin]) {
        let remedy = match tracepoints.have(&[TracepointRole::Futex, TracepointRole::FutexWait]) {
            true => format!("pmc lock user -i {}", shell_word(session.reader.path())),
            false => REMEDY.to_owned(),
        };
        return Err(lacks(&session, "lock:contention_begin events (waits for kernel locks)", &remedy));
    }
    if !tracepoints.have(&[TracepointRole::ContentionEnd]) {
        return Err(lacks(&session, "lock:contention_end events (the end of each wait)", REMEDY));
    }
    if request.by == ContentionRows::Owner && !tracepoints.have(&[TracepointRole::Waking]) {
        return Err(lacks(&session, "sched:sched_waking events (wake-ups of waiting threads)", OWNER_REMEDY));
    }
    check_times(&session, REMEDY)?;
    let mut wanted = records(&request.symbols, "tid,time,ip,sym", request.max_stack);
    // perf symbolizes the return addresses themselves, so offsets are relative to these.
    wanted.inlines = Some(false);
    let needs_variables = request.by == ContentionRows::Address
        || request.locks.iter().any(|lock| matches!(lock, LockFilter::Name(_)));
    let symbols = KernelLockSymbols::read(&request.symbols, is_of_this_machine(&session), needs_variables);
    let script = NamedRecording::load(session, &wanted, progress)?;
    let mut engine = ContentionEngine {
        request,
        symbols,
        places: script.places(),
        waits: IntervalEngine::new(Overlap::Replace),
        rows: FxHashMap::default(),
        left_out: FxHashSet::default(),
        wakes: FxHashMap::default(),
        result: KernelContention { by: request.by, ..KernelContention::default() },
    };
    let mut end = 0;
    script.entries(&mut |line| {
        match line {
            ScriptLine::Sample(entry) => {
                end = entry.time.unwrap_or(end);
                let event = entry.payload.and_then(|payload| tracepoints.read(entry.event, payload));
                if let Some((role, values)) = event {
                    engine.sample(entry, role, values);
                }
            }
            ScriptLine::Record(entry, ..) => engine.waits.lose(entry.time.unwrap_or(end)),
            ScriptLine::Dumped(_) | ScriptLine::Torn { .. } => {}
        }
        Ok(())
    })?;
    let mut result = engine.result;
    result.counts = engine.waits.counts();
    result.unfinished = engine.waits.in_progress() as u64;
    result.sort_by(request.key);
    Ok((result, script.warn()))
}

/// The key of a row.
///
/// By caller, there is one row per distinct stack, ignoring the frames of lock functions. As in perf, the
/// caller is the first function outside the lock functions, so several rows may show the same caller.
#[derive(Debug, PartialEq, Eq, Hash)]
enum ContentionKey {
    Stack(Box<[u64]>),
    Thread(i32),
    Address(u64),
}

/// A wait in progress.
#[derive(Debug, Clone, Copy)]
struct ContentionWait {
    /// Index of the wait's row.
    row: usize,
    flags: u32,
}

/// The wake-ups of a waiting thread.
#[derive(Debug, Default)]
struct ThreadWakes {
    /// Number of waits in progress. There may be several: a thread that waits for a mutex may spin on the
    /// lock that protects the mutex's queue.
    waits: u32,
    /// The time of each wake-up, and the row index of the waking thread.
    wakes: Vec<(u64, usize)>,
}

struct ContentionEngine<'a> {
    request: &'a ContentionRequest,
    symbols: KernelLockSymbols,
    places: &'a AddressFunctions,
    /// Waits in progress by thread and lock.
    waits: IntervalEngine<(i32, u64), ContentionWait>,
    rows: FxHashMap<ContentionKey, usize>,
    /// Waits in progress that the filters exclude.
    left_out: FxHashSet<(i32, u64)>,
    /// Wake-ups by waiting thread; filled only for [`ContentionRows::Owner`].
    wakes: FxHashMap<i32, ThreadWakes>,
    result: KernelContention,
}

impl ContentionEngine<'_> {
    fn sample(&mut self, entry: &ScriptEntry<'_>, role: TracepointRole, values: [u64; 3]) {
        let [lock, flags, _] = values;
        let time = entry.time.unwrap_or(0);
        let key = (entry.tid.unwrap_or(0), lock);
        match role {
            TracepointRole::Waking if self.request.by == ContentionRows::Owner => {
                /// The kernel's flags for interrupts. In an interrupt, the current thread does not cause the
                /// wake-up.
                const INTERRUPT: u64 = 0x18;
                let [woken, context, _] = values;
                let woken = woken as i32;
                if context & INTERRUPT == 0 && self.wakes.contains_key(&woken) {
                    let row = self.owner(entry.tid.unwrap_or(0), entry.comm);
                    let of = self.wakes.entry(woken).or_default();
                    if of.wakes.len() < MOST_WAKES {
                        of.wakes.push((time, row));
                    }
                }
            }
            TracepointRole::ContentionBegin => {
                let row = match self.request.by {
                    ContentionRows::Owner => self.owner(-1, "Unknown"),
                    _ => self.row(entry, lock, flags as u32),
                };
                if !self.is_wanted(entry, lock, flags as u32) {
                    if self.left_out.len() >= MOST_LEFT_OUT {
                        self.left_out.clear();
                    }
                    self.left_out.insert(key);
                    return;
                }
                if self.waits.current(&key).is_some() {
                    self.result.nested += 1;
                    return;
                }
                match self.request.by {
                    ContentionRows::Owner => {
                        if self.wakes.len() >= MOST_LEFT_OUT {
                            self.wakes.clear();
                        }
                        self.wakes.entry(key.0).or_default().waits += 1;
                    }
                    _ => self.result.rows[row].contended += 1,
                }
                self.waits.begin(key, time, ContentionWait { row, flags: flags as u32 });
            }
            TracepointRole::ContentionEnd => {
                if self.left_out.remove(&key) && self.waits.current(&key).is_none() {
                    return;
                }
                if let Some(wait) = self.waits.end(&key, time) {
                    match self.request.by {
                        ContentionRows::Owner => self.add_to_owners(key.0, &wait),
                        _ => self.result.rows[wait.begun.row].add(wait.duration()),
                    }
                }
            }
            _ => {}
        }
    }

    /// Divides a thread's wait among the rows of the threads that woke it. Each row gets the time up to its
    /// wake-up. The last one also gets the time until the woken thread runs.
    fn add_to_owners(&mut self, tid: i32, wait: &Interval<ContentionWait>) {
        let is_during = |(at, _): &(u64, usize)| (wait.begin..=wait.end).contains(at);
        let sleeps = is_sleeping_lock(wait.begun.flags);
        let mut wakes: Vec<(u64, usize)> = Vec::new();
        if let Some(of) = self.wakes.get_mut(&tid) {
            wakes.extend(of.wakes.iter().copied().filter(|wake| sleeps && is_during(wake)));
            of.waits = of.waits.saturating_sub(1);
            if of.waits == 0 {
                self.wakes.remove(&tid);
            }
        }
        match wakes.last_mut() {
            Some((at, _)) => *at = wait.end,
            None => wakes.push((wait.end, wait.begun.row)),
        }
        let mut from = wait.begin;
        for (to, row) in wakes {
            self.result.rows[row].contended += 1;
            self.result.rows[row].add(to.saturating_sub(from));
            from = to;
        }
    }

    /// Returns the row index of a thread that releases locks.
    fn owner(&mut self, tid: i32, name: &str) -> usize {
        let next = self.result.rows.len();
        let row = *self.rows.entry(ContentionKey::Thread(tid)).or_insert(next);
        if row == next {
            self.result.rows.push(ContentionRow { tid, name: name.to_owned(), ..ContentionRow::default() });
        }
        row
    }

    fn is_wanted(&self, entry: &ScriptEntry<'_>, lock: u64, flags: u32) -> bool {
        let ContentionRequest { types, locks, callers, .. } = self.request;
        let is_lock = |filter: &LockFilter| match filter {
            LockFilter::Address(address) => *address == lock,
            LockFilter::Name(name) => self.symbols.variable(lock) == name,
        };
        let calls =
            |name: &String| {
                entry.places.iter().flat_map(|place| self.places.at(*place)).any(|function| {
                    function.symbol.as_ref().is_some_and(|symbol| symbol.contains(name.as_str()))
                })
            };
        (types.is_empty() || types.contains(&flags))
            && (locks.is_empty() || locks.iter().any(is_lock))
            && (callers.is_empty() || callers.iter().any(calls))
    }

    /// Returns the index of the sample's row. Adds the row if necessary.
    fn row(&mut self, entry: &ScriptEntry<'_>, lock: u64, flags: u32) -> usize {
        let key = match self.request.by {
            ContentionRows::Caller => {
                // A stack without frame pointers may end with a 0, which is not a caller.
                let addresses = self.outside(entry).map(|function| function.address);
                ContentionKey::Stack(addresses.filter(|address| *address != 0).collect())
            }
            ContentionRows::Thread | ContentionRows::Owner => ContentionKey::Thread(entry.tid.unwrap_or(0)),
            ContentionRows::Address => ContentionKey::Address(lock),
        };
        if let Some(&row) = self.rows.get(&key) {
            if self.request.by == ContentionRows::Thread && self.result.rows[row].name != entry.comm {
                self.result.rows[row].name = entry.comm.to_owned();
            }
            return row;
        }
        let number = self.result.rows.len();
        self.result.rows.push(ContentionRow {
            flags,
            address: lock,
            tid: entry.tid.unwrap_or(0),
            name: match self.request.by {
                ContentionRows::Caller => self.caller(entry),
                ContentionRows::Thread | ContentionRows::Owner => entry.comm.to_owned(),
                ContentionRows::Address => self.symbols.variable(lock).to_owned(),
            },
            stack: self
                .frames(entry)
                .map(|frame| (frame.address, with_offset(frame).unwrap_or_default()))
                .collect(),
            ..ContentionRow::default()
        });
        self.rows.insert(key, number);
        number
    }

    /// Returns the outermost function at each address of a stack, innermost address first.
    fn frames(&self, entry: &ScriptEntry<'_>) -> impl Iterator<Item = &AddressFunction> {
        entry.places.iter().filter_map(|place| self.places.at(*place).last())
    }

    /// Returns the frames of a stack that are outside the lock functions.
    fn outside(&self, entry: &ScriptEntry<'_>) -> impl Iterator<Item = &AddressFunction> {
        let is_lock = |function: &AddressFunction| {
            let symbol = function.symbol.as_deref();
            symbol.is_some_and(|symbol| self.symbols.is_lock_function(function.address, symbol))
        };
        self.frames(entry).skip(self.request.stack_skip).filter(move |function| !is_lock(function))
    }

    fn caller(&self, entry: &ScriptEntry<'_>) -> String {
        self.outside(entry).find_map(with_offset).unwrap_or_else(|| "Unknown".to_owned())
    }
}

/// Returns a function's name with the offset into it.
fn with_offset(function: &AddressFunction) -> Option<String> {
    Some(format!("{}+{:#x}", function.symbol.as_ref()?, function.into))
}
