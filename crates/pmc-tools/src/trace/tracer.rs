//! Matches the begin and end events of the system calls of each thread.
//!
//! Receives the events of all CPUs in time order; returns a [`TracedCall`] for each end event. Some events
//! are unmatched although no event was lost: a child's first return from `fork`, calls in progress when
//! tracing began, and calls that never return. The counts distinguish these from events whose counterpart was
//! lost.

use std::sync::Arc;

use pmc_perfdata::record::{Record, Thread};
use pmc_sys::abi::syscall::{Syscall, SyscallAbi, SyscallSignature, SyscallTable};
use rustc_hash::FxHashMap;

use super::memory::CallMemory;
use super::tasks::{TaskLookup, TracedTasks};
use pmc_analysis::interval::{Interval, IntervalEngine, Overlap};

/// A system call in progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EnteredCall {
    /// The calling thread.
    pub(super) thread: Thread,
    /// The ABI.
    pub(super) abi: SyscallAbi,
    /// The number in this ABI.
    pub(super) number: u64,
    /// The arguments.
    pub(super) arguments: [u64; 6],
    /// Time at which the call began, in nanoseconds of the recording's clock.
    pub(super) begin: u64,
    /// The memory to which the arguments point.
    pub(super) memory: CallMemory,
    /// The call's stack, innermost first, as address numbers that the caller can resolve to functions. Empty
    /// if stacks are not recorded.
    pub(super) stack: Box<[u32]>,
}

impl EnteredCall {
    /// Returns the call's entry in the table; `None` for an unknown number.
    pub(super) fn call(&self) -> Option<&'static Syscall> {
        SyscallTable::get().by_number(self.abi, self.number)
    }

    /// Returns the kinds of the call's arguments and result; `None` if they are unknown.
    pub(super) fn signature(&self) -> Option<&'static SyscallSignature> {
        self.call()?.signature(&self.arguments)
    }
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallResult {
    /// It returned this value.
    Value(i64),
    /// The call failed with this error number.
    Error(i32),
    /// The call had not returned when tracing or its thread ended.
    Unfinished,
}

impl CallResult {
    fn new(result: i64, abi: SyscallAbi) -> Self {
        let result = if abi.is_32_bit() { i64::from(result as i32) } else { result };
        match result {
            // The kernel's largest error number is 4095.
            -4095..=-1 => Self::Error(-result as i32),
            _ => Self::Value(result),
        }
    }
}

/// A finished system call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TracedCall {
    /// The call.
    pub(super) entered: EnteredCall,
    /// Time at which the call, its thread or tracing ended.
    pub(super) end: u64,
    /// How the call ended.
    pub(super) result: CallResult,
    /// The thread's name at the end of the call.
    pub(super) comm: Arc<str>,
    /// Whether records were lost during the call.
    pub(super) has_loss: bool,
}

impl TracedCall {
    /// Returns the duration in nanoseconds.
    pub(super) fn duration(&self) -> u64 {
        self.end.saturating_sub(self.entered.begin)
    }
}

/// Counts of calls and of unmatched events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct TraceCounts {
    /// Number of calls that returned.
    pub(super) returned: u64,
    /// Number of calls that had not returned when tracing or their thread ended.
    pub(super) unfinished: u64,
    /// Number of calls that were in progress when tracing began, so that only their end was recorded.
    pub(super) begun_before: u64,
    /// Number of other end events without a begin event.
    pub(super) without_begin: u64,
    /// Number of begin events whose end event is missing although the thread continued.
    pub(super) without_end: u64,
    /// Number of calls whose end event is earlier than their begin event.
    pub(super) backwards: u64,
    /// Number of calls during which records were lost.
    pub(super) with_loss: u64,
    /// Number of records that the kernel reported as lost.
    pub(super) lost: u64,
}

/// Pairs events.
#[derive(Debug)]
pub(super) struct SyscallTracer {
    engine: IntervalEngine<i32, EnteredCall>,
    /// Calls of threads that have had no event yet. The threads were in these calls when tracing began.
    attached: FxHashMap<i32, EnteredCall>,
    /// The traced threads.
    pub(super) tasks: TracedTasks,
    /// The process that pmc has forked, until it executes the command.
    starting: Option<i32>,
    /// The thread of each process that is executing another program.
    executing: FxHashMap<i32, i32>,
    counts: TraceCounts,
}

/// Maximum number of processes that can be executing another program at the same time.
const MOST_EXECUTING: usize = 1 << 16;

impl SyscallTracer {
    /// Returns a tracer. `command` is the process that will execute the traced command. Its calls before the
    /// exec are omitted, because they are pmc's own.
    pub(super) fn new(command: Option<i32>, lookup: TaskLookup) -> Self {
        Self {
            engine: IntervalEngine::new(Overlap::Replace),
            attached: FxHashMap::default(),
            tasks: TracedTasks::new(lookup),
            starting: command,
            executing: FxHashMap::default(),
            counts: TraceCounts::default(),
        }
    }

    /// Adds a call that a thread was in when tracing began. `begin` is the time at which this was known. Call
    /// this before any event of the thread.
    pub(super) fn attach(&mut self, call: EnteredCall) {
        self.attached.insert(call.thread.tid, call);
    }

    /// Begins the call that the thread was in when tracing began, if its first event is the end of this call.
    /// An event from before the call was known belongs to an earlier call.
    fn resume(&mut self, tid: i32, time: u64, ended: Option<u64>) {
        let Some(call) = self.attached.remove(&tid) else { return };
        if time >= call.begin && ended.is_some_and(|number| ends(call.number, number)) {
            self.engine.begin(tid, call.begin, call);
        }
    }

    /// Begins a call.
    pub(super) fn enter(&mut self, call: EnteredCall) {
        let Thread { pid, tid } = call.thread;
        self.resume(tid, call.begin, None);
        if self.starting != Some(pid) {
            self.tasks.may_be_in_call(call.thread);
        }
        if is_exec(call.call()) && self.executing.len() < MOST_EXECUTING {
            self.executing.insert(pid, tid);
        }
        self.engine.begin(tid, call.begin, call);
    }

    /// Adds the memory to which the arguments of a thread's current call point.
    pub(super) fn add_memory(&mut self, thread: Thread, number: u64, memory: CallMemory) {
        if let Some(call) = self.engine.current(&thread.tid).filter(|call| call.number == number) {
            call.memory.merge(memory);
        }
    }

    /// Ends a thread's call, and returns the call if its start is known. A thread has only one call at a
    /// time, so the number matters only if the begin event is missing.
    pub(super) fn exit(
        &mut self,
        thread: Thread,
        time: u64,
        abi: SyscallAbi,
        number: u64,
        result: i64,
    ) -> Option<TracedCall> {
        if self.starting == Some(thread.pid) {
            self.engine.forget(&thread.tid);
            return None;
        }
        self.resume(thread.tid, time, Some(number));
        let may_be_in_call = self.tasks.may_be_in_call(thread);
        let mut begun_by = thread.tid;
        if !self.executing.is_empty() && self.executing.contains_key(&thread.pid) {
            begun_by = self.end_exec(thread, number, result);
        }
        // The end event is for another call, so the begin event of that call was lost.
        if self.engine.current(&begun_by).is_some_and(|begun| !ends(begun.number, number)) {
            self.engine.forget(&begun_by);
            self.counts.without_end += 1;
        }
        let backwards = self.engine.counts().backwards;
        let Some(Interval { end, begun: entered, has_loss, .. }) = self.engine.end(&begun_by, time) else {
            if self.engine.counts().backwards == backwards {
                self.end_without_begin(abi, number, result, may_be_in_call);
            }
            return None;
        };
        self.counts.returned += 1;
        let result = CallResult::new(result, entered.abi);
        Some(TracedCall { entered, end, result, comm: self.tasks.comm(thread), has_loss })
    }

    /// Returns the thread that began the call. If a thread other than the main thread executes a program, the
    /// call returns in the main thread, and all other threads have ended.
    fn end_exec(&mut self, thread: Thread, number: u64, result: i64) -> i32 {
        let Some(&tid) = self.executing.get(&thread.pid) else { return thread.tid };
        let is_it = self.engine.current(&tid).is_some_and(|begun| begun.number == number);
        if tid == thread.tid || !is_it || result != 0 {
            if tid == thread.tid {
                self.executing.remove(&thread.pid);
            }
            return thread.tid;
        }
        self.executing.remove(&thread.pid);
        self.counts.unfinished += self.engine.forget(&thread.tid) as u64;
        tid
    }

    fn end_without_begin(&mut self, abi: SyscallAbi, number: u64, result: i64, may_be_in_call: bool) {
        let call = SyscallTable::get().by_number(abi, number);
        let is_child = result == 0
            && call.is_some_and(|call| matches!(call.name, "clone" | "clone3" | "fork" | "vfork"));
        match (is_child, may_be_in_call) {
            // A child's first event is the return from its parent's call.
            (true, _) => {}
            (false, true) => self.counts.begun_before += 1,
            (false, false) => self.counts.without_begin += 1,
        }
    }

    /// Processes a record other than a sample. If a thread has ended during a call, returns that call.
    pub(super) fn apply(&mut self, time: u64, record: &Record<'_>) -> Option<TracedCall> {
        let mut interrupted = None;
        match record {
            Record::Comm(comm) if comm.is_exec && self.starting == Some(comm.thread.pid) => {
                self.starting = None;
            }
            Record::Lost(lost) => self.lose(time, lost.lost),
            // The recorder writes it at the end, with losses that `LOST` records also contain.
            Record::LostSamples(_) => self.lose(time, 0),
            Record::Exit(exit) => {
                let tid = exit.thread.tid;
                // If a thread executes a program, its call may return in another thread.
                let goes_on = self.executing.get(&exit.thread.pid) == Some(&tid) && tid != exit.thread.pid;
                let attached = self.attached.remove(&tid);
                if !goes_on && let Some(entered) = self.engine.current(&tid).cloned().or(attached) {
                    self.engine.forget(&tid);
                    interrupted = Some(self.unfinished(entered, time));
                }
                if tid == exit.thread.pid {
                    self.executing.remove(&tid);
                }
            }
            _ => {}
        }
        self.tasks.apply(record);
        interrupted
    }

    /// Returns the calls that began before `limit` and had not returned by `now`, earliest first. Calls that
    /// were in progress when tracing began are among them whenever that was.
    pub(super) fn in_progress(&mut self, limit: u64, now: u64) -> Vec<TracedCall> {
        let Self { engine, attached, tasks, starting, .. } = self;
        let is_late = |call: &&EnteredCall| call.begin < limit && Some(call.thread.pid) != *starting;
        let mut late: Vec<TracedCall> = engine
            .open()
            .filter(is_late)
            .chain(attached.values())
            .map(|call| TracedCall {
                entered: call.clone(),
                end: now,
                result: CallResult::Unfinished,
                comm: tasks.comm(call.thread),
                has_loss: false,
            })
            .collect();
        late.sort_by_key(|call| call.entered.begin);
        late
    }

    fn unfinished(&mut self, entered: EnteredCall, end: u64) -> TracedCall {
        self.counts.unfinished += 1;
        let comm = self.tasks.comm(entered.thread);
        TracedCall { entered, end, result: CallResult::Unfinished, comm, has_loss: false }
    }

    fn lose(&mut self, time: u64, records: u64) {
        self.counts.lost = self.counts.lost.saturating_add(records);
        self.engine.lose(time);
    }

    /// Raises the number of lost records to the kernel's count, which includes losses after the last record.
    pub(super) fn lost_at_least(&mut self, records: u64) {
        self.counts.lost = self.counts.lost.max(records);
    }

    /// Ends all calls in progress.
    pub(super) fn finish(&mut self, time: u64) -> Vec<TracedCall> {
        let attached = std::mem::take(&mut self.attached).into_values().map(|call| (call, time));
        let mut rest: Vec<(EnteredCall, u64)> = attached.collect();
        rest.sort_unstable_by_key(|(call, _)| (call.begin, call.thread.tid));
        rest.extend(self.engine.finish(time).into_iter().map(|(_, rest)| (rest.begun, rest.end)));
        rest.into_iter().map(|(call, end)| self.unfinished(call, end)).collect()
    }

    /// Returns the counts so far.
    pub(super) fn counts(&self) -> TraceCounts {
        let engine = self.engine.counts();
        TraceCounts {
            without_end: self.counts.without_end + engine.replaced + engine.expired,
            backwards: engine.backwards,
            with_loss: engine.with_loss,
            ..self.counts
        }
    }
}

fn is_exec(call: Option<&Syscall>) -> bool {
    call.is_some_and(|call| matches!(call.name, "execve" | "execveat"))
}

/// Whether a call with the number `begun` may end with the number `ended`. `rt_sigreturn` ends with -1 or the
/// number of the interrupted call, and `execve` with its number in the new program's ABI.
fn ends(begun: u64, ended: u64) -> bool {
    let table = SyscallTable::get();
    let is = |name: &str| {
        let all = [SyscallAbi::X86_64, SyscallAbi::I386, SyscallAbi::Arm64, SyscallAbi::Arm];
        all.iter().any(|abi| table.by_number(*abi, begun).is_some_and(|call| call.name == name))
    };
    begun == ended || is("rt_sigreturn") || is("sigreturn") || is("execve") || is("execveat")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmc_perfdata::record::{Comm, Lost, Task};
    use pmc_text::units::PerfTime;

    const ABI: SyscallAbi = SyscallAbi::X86_64;
    const READ: u64 = 0;
    const CLONE: u64 = 56;
    const EXECVE: u64 = 59;
    const FUTEX: u64 = 202;

    fn tracer(command: Option<i32>) -> SyscallTracer {
        SyscallTracer::new(command, Box::new(|tid| Some(format!("task-{tid}"))))
    }

    fn thread(pid: i32, tid: i32) -> Thread {
        Thread { pid, tid }
    }

    fn call(thread: Thread, begin: u64, number: u64) -> EnteredCall {
        EnteredCall {
            thread,
            abi: ABI,
            number,
            arguments: [0; 6],
            begin,
            memory: CallMemory::default(),
            stack: Box::default(),
        }
    }

    fn enter(tracer: &mut SyscallTracer, thread: Thread, begin: u64, number: u64) {
        tracer.enter(call(thread, begin, number));
    }

    fn exit(
        tracer: &mut SyscallTracer,
        thread: Thread,
        time: u64,
        number: u64,
        result: i64,
    ) -> Option<TracedCall> {
        tracer.exit(thread, time, ABI, number, result)
    }

    fn task(thread: Thread, parent: Thread) -> Task {
        Task { thread, parent, time: PerfTime(0) }
    }

    #[test]
    fn calls_are_paired_by_thread() {
        let mut tracer = tracer(None);
        enter(&mut tracer, thread(1, 1), 10, READ);
        enter(&mut tracer, thread(1, 2), 11, FUTEX);
        let read = exit(&mut tracer, thread(1, 1), 14, READ, -2).unwrap();
        assert_eq!((read.duration(), read.result, &*read.comm), (4, CallResult::Error(2), "task-1"));
        assert_eq!(read.entered.call().unwrap().name, "read");
        let rest = tracer.finish(20);
        assert_eq!(rest.len(), 1);
        assert_eq!((rest[0].duration(), rest[0].result), (9, CallResult::Unfinished));
        let counts = tracer.counts();
        assert_eq!((counts.returned, counts.unfinished, counts.without_begin), (1, 1, 0));
    }

    #[test]
    fn ends_without_begin_are_classified() {
        let mut tracer = tracer(None);
        // A call that was in progress when tracing began.
        assert_eq!(exit(&mut tracer, thread(1, 1), 5, READ, 1), None);
        // The first return of a child.
        tracer.apply(6, &Record::Fork(task(thread(3, 3), thread(1, 1))));
        assert_eq!(exit(&mut tracer, thread(3, 3), 7, CLONE, 0), None);
        assert_eq!(&*tracer.tasks.comm(thread(3, 3)), "task-1");
        // A lost begin event.
        assert_eq!(exit(&mut tracer, thread(1, 1), 8, READ, 1), None);
        // First an end event is lost, then a begin event.
        enter(&mut tracer, thread(1, 1), 9, READ);
        assert_eq!(exit(&mut tracer, thread(1, 1), 12, FUTEX, 0), None);
        let counts = tracer.counts();
        assert_eq!((counts.begun_before, counts.without_begin, counts.without_end), (1, 2, 1));
        assert_eq!(counts.returned, 0);
    }

    #[test]
    fn own_calls_before_the_command_are_left_out() {
        let mut tracer = tracer(Some(7));
        let own = thread(7, 7);
        assert_eq!(exit(&mut tracer, own, 1, READ, 1), None);
        enter(&mut tracer, own, 2, EXECVE);
        assert_eq!(exit(&mut tracer, own, 3, EXECVE, -2), None);
        enter(&mut tracer, own, 4, EXECVE);
        tracer.apply(5, &Record::Comm(Comm { thread: own, is_exec: true, comm: b"ls" }));
        let call = exit(&mut tracer, own, 6, EXECVE, 0).unwrap();
        assert_eq!((call.duration(), &*call.comm), (2, "ls"));
        let counts = tracer.counts();
        assert_eq!((counts.returned, counts.begun_before, counts.without_begin), (1, 0, 0));
    }

    #[test]
    fn an_exec_returns_in_the_first_thread() {
        let mut tracer = tracer(None);
        enter(&mut tracer, thread(1, 1), 10, FUTEX);
        enter(&mut tracer, thread(1, 2), 11, EXECVE);
        tracer.apply(12, &Record::Exit(task(thread(1, 2), thread(0, 0))));
        let call = exit(&mut tracer, thread(1, 1), 15, EXECVE, 0).unwrap();
        assert_eq!((call.duration(), call.entered.thread.tid), (4, 2));
        assert_eq!(tracer.finish(20).len(), 0);
        assert_eq!(tracer.counts().unfinished, 1, "the first thread's futex never returns");
    }

    #[test]
    fn the_end_of_a_thread_ends_its_call() {
        let mut tracer = tracer(None);
        enter(&mut tracer, thread(1, 1), 10, FUTEX);
        let call = tracer.apply(17, &Record::Exit(task(thread(1, 1), thread(0, 0)))).unwrap();
        assert_eq!((call.duration(), call.result), (7, CallResult::Unfinished));
        assert!(tracer.finish(20).is_empty());
    }

    #[test]
    fn calls_in_progress_are_those_that_began_before_the_limit() {
        let mut tracer = tracer(Some(9));
        for (tid, begin) in [(1, 30), (2, 10), (3, 50)] {
            enter(&mut tracer, thread(1, tid), begin, READ);
        }
        // pmc's own call before the command.
        enter(&mut tracer, thread(9, 9), 5, READ);
        let late: Vec<(i32, u64)> = tracer
            .in_progress(50, 70)
            .iter()
            .map(|call| (call.entered.thread.tid, call.duration()))
            .collect();
        assert_eq!(late, [(2, 60), (1, 40)]);
        assert_eq!(exit(&mut tracer, thread(1, 2), 80, READ, 0).unwrap().duration(), 70);
    }

    #[test]
    fn losses_are_counted_and_mark_calls() {
        let mut tracer = tracer(None);
        enter(&mut tracer, thread(1, 1), 10, READ);
        tracer.apply(11, &Record::Lost(Lost { id: 0, lost: 5 }));
        assert!(exit(&mut tracer, thread(1, 1), 12, READ, 0).unwrap().has_loss);
        tracer.lost_at_least(7);
        let counts = tracer.counts();
        assert_eq!((counts.lost, counts.with_loss), (7, 1));
    }

    #[test]
    fn calls_in_progress_when_tracing_begins_are_known() {
        let mut tracer = tracer(None);
        [1, 2, 3, 4, 5, 6].into_iter().for_each(|tid| tracer.attach(call(thread(1, tid), 10, READ)));
        let begun =
            |calls: Vec<TracedCall>| calls.iter().map(|call| call.entered.thread.tid).collect::<Vec<_>>();
        let mut now = begun(tracer.in_progress(0, 20));
        now.sort_unstable();
        assert_eq!(now, [1, 2, 3, 4, 5, 6]);
        assert_eq!(exit(&mut tracer, thread(1, 1), 30, READ, 0).unwrap().duration(), 20);
        // Thread 2 was in another call when the call was known, thread 3 has ended it before, and thread 4
        // has begun it after its events were on.
        assert_eq!(exit(&mut tracer, thread(1, 2), 30, FUTEX, 0), None);
        assert_eq!(exit(&mut tracer, thread(1, 3), 9, READ, 0), None);
        enter(&mut tracer, thread(1, 4), 9, READ);
        assert_eq!(exit(&mut tracer, thread(1, 4), 30, READ, 0).unwrap().duration(), 21);
        let ended = tracer.apply(40, &Record::Exit(task(thread(1, 5), thread(1, 1)))).unwrap();
        assert_eq!((ended.duration(), ended.result), (30, CallResult::Unfinished));
        assert_eq!(begun(tracer.finish(50)), [6]);
        let counts = tracer.counts();
        assert_eq!((counts.returned, counts.unfinished, counts.begun_before), (2, 2, 2));
        assert_eq!((counts.without_begin, counts.without_end), (0, 0));
    }
}
