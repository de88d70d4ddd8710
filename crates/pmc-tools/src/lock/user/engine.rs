//! Waits for user-space locks, found through the system call `futex`.
//!
//! A thread waits from the start of its futex call until the call returns. [`FutexEngine`] determines which
//! threads held the lock in the meantime:
//!
//! ```text
//!   waiter    wait ────────────────────────────────────── return
//!   others              wake by A            wake by B
//!   holder    ──── A ────│────────── B ───────│── B ──
//! ```

use std::cell::OnceCell;
use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::futex::{self, FutexAction, WaitEnd};
use super::parked::ParkedWaits;
use super::sums::{FutexKey, LockSums, LockWait, MOST_WAKES, PartyKey, PartySums, Wake, join_halves};
use super::uses::{self, StackFutexUse};
use super::wait_tree::{Awaited, AwaitedNode, HolderNode, WaitForest, WaitSpan, WaitSpans};
use crate::lock::tracepoints::{LockTracepoints, TracepointRole};
use crate::lock::user::{HolderWait, LockSite, LockThread, OtherWaits, UserLock, UserLocks, WaitingHolder};
use crate::lock::{check_times, lacks, records};
use pmc_analysis::analysis::ProgressSink;
use pmc_analysis::analysis::script::{NamedRecording, ScriptLine};
use pmc_analysis::interval::{Interval, IntervalEngine, Overlap};
use pmc_analysis::profile::sampled::futex_functions::{FutexUse, OwnerField, ParkingLibrary};
use pmc_analysis::profile::script::ScriptEntry;
use pmc_analysis::session::Session;
use pmc_perfdata::record::{Record, kind};
use pmc_symbols::symbol::SymbolOptions;
use pmc_sys::error::{Exit, Result};
use pmc_sys::host::futex::FutexReading;
use pmc_text::text::shell_word;

/// The command that makes the recording that [`user_locks`] needs.
const REMEDY: &str = "pmc lock user -- COMMAND";

/// A thread whose wait times out, and that waits again after at most this time, in nanoseconds, is still
/// waiting for the same release.
const LONGEST_PAUSE: u64 = 1_000_000;

/// Maximum number of futexes with waiting threads to track, and of threads whose last call is remembered.
const MOST_KEYS: usize = 1 << 18;

/// Computes the table. Also returns the exit status, and prints warnings about losses. `all_readings` are the
/// futexes that pmc read while the program ran, in time order; empty for an existing recording.
///
/// # Errors
/// Fails if the file cannot be read, or has no futex events.
pub(super) fn user_locks(
    session: Arc<Session>,
    symbols: &SymbolOptions,
    max_stack: usize,
    all_readings: &[FutexReading],
    progress: &dyn ProgressSink,
) -> Result<(UserLocks, Exit)> {
    let tracepoints = LockTracepoints::new(&session);
    if !tracepoints.have(&[TracepointRole::Futex, TracepointRole::FutexWait]) {
        let remedy = match tracepoints.have(&[TracepointRole::ContentionBegin]) {
            true => format!("pmc lock contention -i {}", shell_word(session.reader.path())),
            false => REMEDY.to_owned(),
        };
        return Err(lacks(&session, "futex calls (syscalls:sys_enter_futex)", &remedy));
    }
    if !tracepoints.have(&[TracepointRole::FutexExit]) {
        return Err(lacks(&session, "returns from futex calls (syscalls:sys_exit_futex)", REMEDY));
    }
    check_times(&session, REMEDY)?;
    let mut wanted = records(symbols, "pid,tid,time,ip,sym,srcline", max_stack);
    wanted.records.push(kind::EXIT);
    let script = NamedRecording::load(session.clone(), &wanted, progress)?;
    let mut readings: FxHashMap<i32, VecDeque<FutexReading>> = FxHashMap::default();
    for reading in all_readings {
        readings.entry(reading.tid).or_default().push_back(*reading);
    }
    let mut engine = FutexEngine {
        script: &script,
        session: &session,
        calls: IntervalEngine::new(Overlap::Replace),
        keys: FxHashMap::default(),
        stacks: Vec::new(),
        stack_numbers: FxHashMap::default(),
        last_call: FxHashMap::default(),
        readings,
        sums: FxHashMap::default(),
        parked: ParkedWaits::default(),
        of_libraries: FxHashMap::default(),
        timed_out: FxHashMap::default(),
        others: FxHashMap::default(),
        spans: WaitSpans::default(),
        result: UserLocks::default(),
    };
    let (mut first, mut last) = (None, 0);
    script.entries(&mut |line| {
        match line {
            ScriptLine::Sample(entry) => {
                last = entry.time.unwrap_or(last);
                first = first.or(entry.time);
                let event = entry.payload.and_then(|payload| tracepoints.read(entry.event, payload));
                if let Some((role, values)) = event {
                    engine.sample(entry, role, values);
                }
            }
            ScriptLine::Record(entry, _, Record::Exit(task)) => {
                engine.end(task.thread.tid, entry.time.unwrap_or(last), WaitEnd::Unfinished);
            }
            ScriptLine::Record(entry, ..) => engine.calls.lose(entry.time.unwrap_or(last)),
            ScriptLine::Dumped(_) | ScriptLine::Torn { .. } => {}
        }
        Ok(())
    })?;
    // A hung program makes no calls, so the last reading may be later than the last event.
    let last = all_readings.last().map_or(last, |reading| reading.time.max(last));
    engine.result.elapsed = last.saturating_sub(first.unwrap_or(last));
    Ok((engine.finish(last), script.warn()))
}

/// The index of each lock in the result, and its kind.
type LockNumbers = FxHashMap<FutexKey, (usize, FutexUse)>;

/// A call in progress.
#[derive(Debug)]
struct FutexCall {
    action: FutexAction,
    key: FutexKey,
    stack: u32,
}

/// A futex on which threads wait.
#[derive(Debug, Default)]
struct WaitedFutex {
    waiting: u32,
    wakes: VecDeque<Wake>,
}

/// Successive waits of a thread that timed out.
#[derive(Debug)]
struct TimedWaits {
    key: FutexKey,
    stack: u32,
    /// When the waits began and ended.
    spans: Vec<(u64, u64)>,
}

impl TimedWaits {
    /// Whether a wait for this lock that began at this time continues these waits.
    fn continues(&self, key: FutexKey, from: u64) -> bool {
        let end = self.spans.last().map_or(0, |(_, to)| *to);
        self.key == key && from.saturating_sub(end) <= LONGEST_PAUSE
    }
}

/// The stack of a futex call.
struct CallStack {
    places: Box<[u32]>,
    /// The futex use that the stack implies.
    usage: StackFutexUse,
    site: OnceCell<LockSite>,
}

/// A wake-up is the last step of releasing the lock, so the thread that wakes another one held the lock until
/// then. If there is no wake-up because the wait timed out or has not ended, the words of the lock identify
/// the holder, provided that they contain its thread id and that pmc read them during the wait. A timeout is
/// not a wake-up: it makes the call return an error.
struct FutexEngine<'a> {
    script: &'a NamedRecording<'a>,
    session: &'a Session,
    /// Calls in progress by thread.
    calls: IntervalEngine<i32, FutexCall>,
    keys: FxHashMap<FutexKey, WaitedFutex>,
    /// The distinct stacks.
    stacks: Vec<CallStack>,
    stack_numbers: FxHashMap<Box<[u32]>, u32>,
    /// The stack of each thread's last call.
    last_call: FxHashMap<i32, u32>,
    /// The readings, by waiting thread.
    readings: FxHashMap<i32, VecDeque<FutexReading>>,
    sums: FxHashMap<FutexKey, LockSums>,
    parked: ParkedWaits,
    /// The unknown locks of libraries that park threads, by process.
    of_libraries: FxHashMap<(i32, ParkingLibrary), LockSums>,
    /// The waits of each thread that timed out while the holder was unknown, if the thread may still wait.
    timed_out: FxHashMap<i32, TimedWaits>,
    others: FxHashMap<FutexUse, OtherWaits>,
    spans: WaitSpans,
    result: UserLocks,
}

impl FutexEngine<'_> {
    fn sample(&mut self, entry: &ScriptEntry<'_>, role: TracepointRole, [first, second, _]: [u64; 3]) {
        let (tid, time) = (entry.tid.unwrap_or(0), entry.time.unwrap_or(0));
        let action = match role {
            TracepointRole::Futex => futex::action(second),
            TracepointRole::FutexWait => FutexAction::Wait { is_pi: false },
            TracepointRole::FutexWaitAny => FutexAction::WaitAny,
            TracepointRole::FutexWake => FutexAction::Wake,
            TracepointRole::FutexExit => return self.end(tid, time, futex::wait_end(first)),
            TracepointRole::ContentionBegin | TracepointRole::ContentionEnd | TracepointRole::Waking => {
                return;
            }
        };
        let stack = self.stack(entry.places);
        let key = (entry.pid.unwrap_or(0), first);
        self.result.has_goroutines |= self.stacks[stack as usize].usage.is_go;
        if self.last_call.len() >= MOST_KEYS {
            self.last_call.clear();
        }
        if !self.last_call.contains_key(&tid) {
            self.earlier_wait(tid, Some(time));
        }
        self.last_call.insert(tid, stack);
        // The end of the earlier call was lost, or the call does not return.
        if let Some(FutexCall { action: FutexAction::Wait { .. }, key, .. }) = self.calls.current(&tid) {
            let key = *key;
            self.leave(key);
        }
        match action {
            FutexAction::Wait { .. } => {
                if self.keys.len() >= MOST_KEYS {
                    self.keys.clear();
                }
                self.keys.entry(key).or_default().waiting += 1;
            }
            FutexAction::Wake => {
                if let Some(futex) = self.keys.get_mut(&key) {
                    if futex.wakes.len() == MOST_WAKES {
                        futex.wakes.pop_front();
                    }
                    futex.wakes.push_back(Wake { time, tid, stack });
                }
            }
            FutexAction::WaitAny | FutexAction::Other => {}
        }
        self.calls.begin(tid, time, FutexCall { action, key, stack });
    }

    /// Counts a thread's wait that began before the recording and ended before `until`. Since its system call
    /// was not recorded, only readings show the wait, and whether the futex is a lock.
    fn earlier_wait(&mut self, tid: i32, until: Option<u64>) {
        let history = &self.session.history;
        let Some(readings) = self.readings.get(&tid) else { return };
        let is_earlier = |reading: &&FutexReading| until.is_none_or(|until| reading.time < until);
        let mut earlier = readings.iter().take_while(is_earlier);
        let (Some(first), Some(pid)) = (earlier.next().copied(), history.process(tid)) else {
            return;
        };
        let same = earlier.take_while(|reading| reading.address == first.address);
        let last = same.last().copied().unwrap_or(first);
        let duration = until.unwrap_or(last.time).saturating_sub(first.time);
        let owner = futex::owner_by_words(&last);
        let is_of_process = |owner: i32| history.process(owner) == Some(pid);
        let is_valid = |owner: i32| owner != tid && is_of_process(owner);
        let owner = owner.filter(|(owner, _)| is_valid(*owner));
        let awaited = match owner {
            Some(_) => Awaited::Lock(pid, first.address),
            None => Awaited::Other(FutexUse::Other),
        };
        let (from, to, stack) = (first.time, first.time.saturating_add(duration), self.stack(&[]));
        self.spans.add(tid, WaitSpan { awaited, holder: owner.map(|(owner, _)| owner), from, to, stack });
        let Some((owner, owner_field)) = owner else {
            self.count_other(FutexUse::Other, duration);
            return;
        };
        let usage = StackFutexUse { purpose: FutexUse::Mutex, owner_field, is_go: false };
        let sums = self.sums.entry((pid, first.address)).or_insert_with(|| LockSums::new(usage, last.time));
        sums.waits.add(duration);
        sums.unfinished += u64::from(until.is_none());
        sums.waiters.add((tid, Some(stack), true), duration, 1);
        sums.holders.add((owner, self.last_call.get(&owner).copied(), false), duration, 1);
    }

    fn stack(&mut self, places: &[u32]) -> u32 {
        if let Some(&number) = self.stack_numbers.get(places) {
            return number;
        }
        let functions = uses::functions(self.script.places(), places);
        let usage = uses::classify(functions.filter_map(|function| function.symbol.as_deref()));
        let number = self.stacks.len() as u32;
        self.stacks.push(CallStack { places: places.into(), usage, site: OnceCell::new() });
        self.stack_numbers.insert(places.into(), number);
        number
    }

    /// Decrements the number of threads waiting on a futex.
    fn leave(&mut self, key: FutexKey) {
        if let Some(futex) = self.keys.get_mut(&key) {
            futex.waiting = futex.waiting.saturating_sub(1);
            if futex.waiting == 0 {
                self.keys.remove(&key);
            }
        }
    }

    /// Ends the call of a thread.
    fn end(&mut self, tid: i32, time: u64, how: WaitEnd) {
        if self.calls.current(&tid).is_none() {
            if !self.last_call.contains_key(&tid) && self.readings.contains_key(&tid) {
                self.earlier_wait(tid, Some(time));
                let unknown = self.stack(&[]);
                self.last_call.insert(tid, unknown);
                return;
            }
            if how == WaitEnd::Unfinished {
                return;
            }
        }
        if let Some(call) = self.calls.end(&tid, time) {
            self.count(tid, &call, how);
        }
    }

    fn count(&mut self, tid: i32, call: &Interval<FutexCall>, how: WaitEnd) {
        let FutexCall { action, key, stack } = call.begun;
        let mut usage = self.stacks[stack as usize].usage;
        let is_pi = match action {
            FutexAction::Wait { is_pi } => is_pi,
            FutexAction::WaitAny => {
                self.count_other(FutexUse::Several, call.duration());
                return;
            }
            FutexAction::Wake | FutexAction::Other => return,
        };
        if is_pi {
            usage.owner_field = OwnerField::Futex;
            if !usage.purpose.is_lock() {
                usage.purpose = FutexUse::Mutex;
            }
        }
        match how {
            WaitEnd::DidNotWait => self.result.did_not_wait += 1,
            // Only the threads that wait for it and post it show what a semaphore is used for.
            _ if !usage.may_be_lock() => {
                let awaited = Awaited::Other(usage.purpose);
                let span = WaitSpan { awaited, holder: None, from: call.begin, to: call.end, stack };
                self.spans.add(tid, span);
                self.count_other(usage.purpose, call.duration());
            }
            _ => self.count_lock(tid, call, how, usage, is_pi),
        }
        self.leave(key);
    }

    fn count_other(&mut self, what: FutexUse, duration: u64) {
        self.count_others(what, duration, 1);
    }

    fn count_others(&mut self, what: FutexUse, time: u64, waits: u64) {
        let sum = self.others.entry(what).or_insert(OtherWaits { what, time: 0, waits: 0 });
        sum.time = sum.time.saturating_add(time);
        sum.waits += waits;
    }

    fn count_lock(
        &mut self,
        tid: i32,
        call: &Interval<FutexCall>,
        how: WaitEnd,
        usage: StackFutexUse,
        is_pi: bool,
    ) {
        let FutexCall { key: (pid, address), stack, .. } = call.begun;
        let lock = futex::lock_address(address, usage.purpose, usage.owner_field);
        let readings = self.readings_of(tid, call);
        let history = &self.session.history;
        let is_of_process = |owner: i32| history.process(owner) == Some(pid);
        let owner = |reading: &FutexReading| {
            let (owner, _) = futex::owner(reading, usage.purpose, usage.owner_field, is_pi)?;
            (owner != tid && is_of_process(owner)).then_some((reading.time, owner))
        };
        let owners = readings.iter().filter_map(owner).collect();
        let wakes = self.keys.get(&(pid, address)).map(|futex| {
            let first = futex.wakes.partition_point(|wake| wake.time <= call.begin);
            let during = futex.wakes.range(first..).take_while(|wake| wake.time <= call.end);
            during.filter(|wake| wake.tid != tid).copied().collect()
        });
        let wakes = wakes.unwrap_or_default();
        let (from, to, has_loss) = (call.begin, call.end, call.has_loss);
        let wait = LockWait { pid, tid, lock, from, to, stack, usage, how, has_loss, wakes, owners };
        match usage.owner_field {
            OwnerField::Parked(library) if self.parked.is_full() => self.add_unknown(library, &wait),
            OwnerField::Parked(library) => {
                let is_readable = library == ParkingLibrary::ParkingLot;
                let key = readings.iter().rev().find_map(futex::parking_lot_lock);
                self.parked.add(library, wait, key.filter(|_| is_readable));
            }
            _ => self.add_wait(&wait),
        }
    }

    /// Adds a wait for an unknown lock of a library.
    fn add_unknown(&mut self, library: ParkingLibrary, wait: &LockWait) {
        let new = || LockSums::new(wait.usage, wait.to);
        self.of_libraries.entry((wait.pid, library)).or_insert_with(new).count_unknown(wait);
        let LockWait { from, to, stack, .. } = *wait;
        self.spans.add(
            wait.tid,
            WaitSpan { awaited: Awaited::Other(wait.usage.purpose), holder: None, from, to, stack },
        );
    }

    /// Adds a wait, and attributes its time to the threads that held the lock meanwhile.
    fn add_wait(&mut self, wait: &LockWait) {
        let LockWait { tid, stack, how, to, .. } = *wait;
        let key = (wait.pid, wait.lock);
        let mut spans = match self.timed_out.remove(&tid) {
            Some(earlier) if earlier.continues(key, wait.from) => earlier.spans,
            Some(earlier) => {
                self.hold(tid, earlier, None);
                Vec::new()
            }
            None => Vec::new(),
        };
        self.sums.entry(key).or_insert_with(|| LockSums::new(wait.usage, to)).count(wait);
        let mut from = wait.from;
        for wake in &wait.wakes {
            // In a damaged file, times may go backwards.
            spans.push((from, wake.time.max(from)));
            let waits = TimedWaits { key, stack, spans: std::mem::take(&mut spans) };
            self.hold(tid, waits, Some((wake.tid, Some(wake.stack), true)));
            from = from.max(wake.time);
        }
        let last_owner = wait.owners.iter().rev().find(|(time, _)| *time >= from);
        match (how, wait.wakes.last(), last_owner) {
            // The time from the wake-up until the woken thread runs.
            (WaitEnd::Woken, Some(wake), _) => {
                if let Some(sums) = self.sums.get_mut(&key) {
                    sums.holders.add((wake.tid, Some(wake.stack), true), to.saturating_sub(from), 0);
                }
            }
            (_, _, Some((_, owner))) => {
                spans.push((from, to));
                let holder = (*owner, self.last_call.get(owner).copied(), false);
                self.hold(tid, TimedWaits { key, stack, spans }, Some(holder));
            }
            _ => {
                spans.push((from, to));
                let waits = TimedWaits { key, stack, spans };
                match how {
                    WaitEnd::TimedOut => _ = self.timed_out.insert(tid, waits),
                    _ => self.hold(tid, waits, None),
                }
            }
        }
        let Some(sums) = self.sums.get_mut(&key) else { return };
        for (time, owner) in &wait.owners {
            if let Some(wake) = wait.wakes.iter().find(|wake| wake.time >= *time) {
                sums.readings += 1;
                sums.agreeing += u64::from(wake.tid == *owner);
            }
        }
    }

    /// Attributes the time of a thread's waits to the holder of the lock, if it is known.
    fn hold(&mut self, tid: i32, TimedWaits { key, stack, spans }: TimedWaits, holder: Option<PartyKey>) {
        let Some(sums) = self.sums.get_mut(&key) else { return };
        let time = spans.iter().fold(0u64, |sum, (from, to)| sum.saturating_add(to.saturating_sub(*from)));
        match holder {
            Some(holder) => sums.holders.add(holder, time, 1),
            None => sums.unknown = sums.unknown.saturating_add(time),
        }
        let (awaited, holder) = (Awaited::Lock(key.0, key.1), holder.map(|(holder, ..)| holder));
        for (from, to) in spans {
            self.spans.add(tid, WaitSpan { awaited, holder, from, to, stack });
        }
    }

    /// Ends the waits that timed out and whose holder remains unknown.
    fn forget_timed_out(&mut self) {
        for (tid, waits) in std::mem::take(&mut self.timed_out) {
            self.hold(tid, waits, None);
        }
    }

    /// Returns what pmc read at the futex during a call.
    fn readings_of(&mut self, tid: i32, call: &Interval<FutexCall>) -> Vec<FutexReading> {
        let Some(readings) = self.readings.get_mut(&tid) else { return Vec::new() };
        let earlier = readings.partition_point(|reading| reading.time < call.begin);
        readings.drain(..earlier);
        let during = readings.partition_point(|reading| reading.time <= call.end);
        readings.drain(..during).filter(|reading| reading.address == call.begun.key.1).collect()
    }

    /// Finds the locks of libraries that park threads.
    fn resolve_parked(&mut self) {
        let (known, unknown) = std::mem::take(&mut self.parked).resolve();
        for wait in &known {
            self.add_wait(wait);
        }
        for (library, wait) in &unknown {
            self.add_unknown(*library, wait);
        }
    }

    /// Decides which semaphores are locks, and counts the waits for the others separately.
    fn classify_semaphores(&mut self) {
        let (mut sums, mut others) = (std::mem::take(&mut self.sums), FxHashSet::default());
        for (key, of) in sums.iter_mut().filter(|(_, of)| of.usage.purpose == FutexUse::Semaphore) {
            if of.is_posted_by_waiters() {
                of.usage.purpose = FutexUse::SemaphoreLock;
            } else {
                others.insert(*key);
            }
        }
        for (_, of) in sums.extract_if(|key, _| others.contains(key)) {
            self.count_others(FutexUse::Semaphore, of.waits.sum(), of.waits.count());
        }
        self.sums = sums;
        self.spans.release(&others, FutexUse::Semaphore);
    }

    fn finish(mut self, end: u64) -> UserLocks {
        let counts = self.calls.counts();
        for (tid, call) in self.calls.finish(end) {
            self.count(tid, &call, WaitEnd::Unfinished);
        }
        self.forget_timed_out();
        self.resolve_parked();
        self.forget_timed_out();
        self.classify_semaphores();
        // Threads that waited during the whole recording made no call.
        let mut waiting: Vec<i32> =
            self.readings.keys().filter(|tid| !self.last_call.contains_key(tid)).copied().collect();
        waiting.sort_unstable();
        for tid in &waiting {
            self.earlier_wait(*tid, None);
        }
        let mut result = std::mem::take(&mut self.result);
        result.counts = counts;
        result.threads = self.last_call.len() + waiting.len();
        result.others = self.others.values().copied().collect();
        result.others.sort_by_key(|other| (std::cmp::Reverse(other.time), other.what));
        let known = join_halves(std::mem::take(&mut self.sums)).into_iter();
        let unknown = std::mem::take(&mut self.of_libraries).into_iter();
        let mut locks: Vec<(i32, Option<u64>, LockSums)> = known
            .map(|((pid, address), sums)| (pid, Some(address), sums))
            .chain(unknown.map(|((pid, _), sums)| (pid, None, sums)))
            .collect();
        locks.sort_by_key(|(pid, address, sums)| (std::cmp::Reverse(sums.waits.sum()), *pid, *address));
        let number = |(at, (pid, address, sums)): (usize, &(i32, Option<u64>, LockSums))| {
            address.map(|address| ((*pid, address), (at, sums.usage.purpose)))
        };
        let numbers: LockNumbers = locks.iter().enumerate().filter_map(number).collect();
        result.locks = locks.into_iter().map(|(pid, address, sums)| self.lock(pid, address, sums)).collect();
        let (forest, is_complete) = std::mem::take(&mut self.spans).forest();
        result.has_partial_trees = !is_complete;
        for lock in &mut result.locks {
            let held = lock.address.and_then(|address| forest.get(&Awaited::Lock(lock.pid, address)));
            lock.tree = held.map_or_else(Vec::new, |held| self.holders(lock.pid, held, &numbers));
            lock.tree.retain(|holder| !holder.waits.is_empty());
        }
        result
    }

    /// Returns the holders of an awaited lock or other resource, longest time first.
    fn holders(&self, pid: i32, of: &AwaitedNode, numbers: &LockNumbers) -> Vec<WaitingHolder> {
        let holder = |(tid, node): (&i32, &HolderNode)| WaitingHolder {
            tid: *tid,
            comm: self.comm(pid, *tid),
            time: node.time,
            is_deadlock: node.is_deadlock,
            waits: self.holder_waits(pid, &node.waits, numbers),
        };
        let mut all: Vec<WaitingHolder> = of.holders.iter().map(holder).collect();
        all.sort_by_key(|holder| (std::cmp::Reverse(holder.time), holder.tid));
        all
    }

    fn holder_waits(&self, pid: i32, waits: &WaitForest, numbers: &LockNumbers) -> Vec<HolderWait> {
        let wait = |(awaited, node): (&Awaited, &AwaitedNode)| {
            let (what, lock) = match *awaited {
                Awaited::Other(what) => (what, None),
                // This may be the second futex of one of Rust's reader-writer locks.
                Awaited::Lock(pid, address) => {
                    let found = numbers
                        .get(&(pid, address))
                        .or_else(|| numbers.get(&(pid, address.wrapping_sub(4))))?;
                    (found.1, Some(found.0))
                }
            };
            let stack = node.stacks.iter().max_by_key(|(stack, time)| (**time, **stack))?;
            let holders = self.holders(pid, node, numbers);
            Some(HolderWait { what, lock, site: self.site(*stack.0), time: node.time, holders })
        };
        let mut all: Vec<HolderWait> = waits.iter().filter_map(wait).collect();
        all.sort_by_key(|wait| (std::cmp::Reverse(wait.time), wait.lock, wait.what));
        all
    }

    fn site(&self, stack: u32) -> LockSite {
        let CallStack { places, site, .. } = &self.stacks[stack as usize];
        site.get_or_init(|| uses::site(uses::functions(self.script.places(), places))).clone()
    }

    fn lock(&self, pid: i32, address: Option<u64>, sums: LockSums) -> UserLock {
        let comm = |tid| self.comm(pid, tid);
        let site = |stack: u32| self.site(stack);
        let parties = |all: &PartySums<PartyKey>| {
            let mut by_site = PartySums::default();
            for ((tid, stack, is_exact), (time, waits)) in &all.0 {
                by_site.add((*tid, stack.map(site).unwrap_or_default(), *is_exact), *time, *waits);
            }
            let party = |((tid, site, is_exact), (time, waits))| LockThread {
                tid,
                comm: comm(tid),
                site,
                is_exact,
                time,
                waits,
            };
            let mut all: Vec<LockThread> = by_site.0.into_iter().map(party).collect();
            all.sort_by(|a, b| (b.time, a.tid, &a.site).cmp(&(a.time, b.tid, &b.site)));
            all
        };
        UserLock {
            pid,
            comm: comm(pid),
            address,
            variable: address.and_then(|address| self.script.variable(pid, address, sums.seen)),
            purpose: sums.usage.purpose,
            owner_field: sums.usage.owner_field,
            waits: sums.waits,
            timed_out: sums.timed_out,
            unfinished: sums.unfinished,
            with_loss: sums.with_loss,
            waiters: parties(&sums.waiters),
            holders: parties(&sums.holders),
            wakers: parties(&sums.wakers),
            tree: Vec::new(),
            unknown: sums.unknown,
            readings: sums.readings,
            agreeing: sums.agreeing,
        }
    }

    fn comm(&self, pid: i32, tid: i32) -> String {
        let history = &self.session.history;
        let name = history.comm(pid, tid, u64::MAX).and_then(|comm| history.comm_name(comm));
        name.map_or_else(|| format!(":{tid}"), |name| String::from_utf8_lossy(name).into_owned())
    }
}
