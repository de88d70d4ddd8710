//! Traces running tasks: passes records from the rings to the code that pairs them, and the finished calls to
//! the output.

use super::decoder::{SyscallDecoder, SyscallEvent};
use super::feed::SyscallFeed;
use super::memory::CallMemory;
use super::memory_reader::MemoryReader;
use super::output::TraceOutput;
use super::recorded::check_kernel;
use super::request::TraceRequest;
use super::tracer::{EnteredCall, SyscallTracer};
use pmc_perfdata::record::{RawRecord, Thread, kind};
use pmc_recording::recording::open;
use pmc_recording::recording::plan::SamplePlan;
use pmc_recording::recording::stream::{self, DRAIN_NS, RecordHandler, StreamEvents};
use pmc_sys::abi::syscall::SyscallAbi;
use pmc_sys::error::{Error, Exit, Result};
use pmc_sys::host::Host;
use pmc_sys::host::process::ThreadInfo;
use pmc_sys::host::tracepoint::TracepointError;
use pmc_sys::sys::clock::monotonic_ns;
use pmc_sys::sys::process::Streams;
use pmc_text::units::MS;

/// Returns the time until the next drain, after this number of consecutive drains without records. Used only
/// if calls are printed. While calls arrive, the time is short, so that the memory to which arguments point
/// is read before it changes. Unlike wake-ups, polling from another CPU does not disturb the traced threads.
fn drain_after(idle_drains: u32) -> u64 {
    match idle_drains {
        0..100 => MS / 10,
        100..200 => MS,
        _ => 4 * MS,
    }
}

/// Nanoseconds after which a call is shown even though it has not returned, and the interval between searches
/// for such calls.
const LATE: u64 = 1000 * MS;
const SEARCH: u64 = 200 * MS;

struct LiveTrace {
    feed: SyscallFeed,
    output: TraceOutput,
    /// Reads the memory to which arguments point; `None` if no calls are printed.
    memory: Option<MemoryReader>,
    /// Number of consecutive drains without records.
    idle_drains: u32,
    /// The threads to trace that existed before, except those that the kernel's filter leaves out.
    threads: Vec<ThreadInfo>,
    /// Time of the next search for calls that have not returned for a long time.
    next_search: u64,
}

/// Traces until the command ends, or until a signal or a limit stops the trace.
pub(super) fn run(request: &TraceRequest, sample: &SamplePlan) -> Result<Exit> {
    let host = Host::live();
    let decoders = decoders(&sample.events, &host)?;
    let running = Host::live();
    let lookup = move |pid: i32, fd: i32| running.descriptor(pid as u32, fd as u32);
    let output = TraceOutput::open(request, Box::new(lookup))?;
    let groups = open::groups(sample, &host)?;
    let (mut trace, result) = stream::run(sample, &host, groups, Streams::Shared, |opened| {
        check_kernel(&opened.events)?;
        let mut trace = LiveTrace::new(request, output, decoders, &opened);
        trace.read_descriptors(&host, &opened);
        // The command has already been forked, so it keeps the normal priority.
        match request.realtime {
            Some(0) => {}
            Some(priority) => open::run_in_real_time(Some(priority))?,
            // Without permission for real-time priority, pmc may read records too late on a busy machine, and
            // then reports the loss.
            None => drop(open::run_in_real_time(Some(1))),
        }
        Ok(trace)
    })?;
    let (start, end) = result.span;
    trace.feed.tracer.lost_at_least(result.lost);
    for call in trace.feed.tracer.finish(end) {
        trace.output.call(&call, None)?;
    }
    trace.output.finish(end.saturating_sub(start), trace.feed.counts())?;
    Ok(result.exit())
}

/// Returns a decoder for each event.
fn decoders(events: &[String], host: &Host) -> Result<Vec<SyscallDecoder>> {
    let decoder = |event: &String| {
        let (system, name) = event.split_once(':').unwrap_or_default();
        let fields = host.tracepoint_fields(system, name).map_err(missing)?;
        SyscallDecoder::new(event, &fields, false)
            .ok_or_else(|| Error::new(format!("{event}: its format file does not describe a system call")))
    };
    events.iter().map(decoder).collect()
}

/// Explains why the events for system calls are not available.
fn missing(error: TracepointError) -> Error {
    let fault = Error::new(format!("cannot trace system calls: {error}"));
    let remedy = error.remedy().unwrap_or_default();
    match error {
        TracepointError::NotMounted => {
            fault.why("system call events are tracepoints, which are described in tracefs").try_this(remedy)
        }
        TracepointError::Denied(_) => fault
            .why("only root may read tracefs unless it is mounted with other permissions")
            .try_this("sudo pmc trace …")
            .try_this(format!("{remedy}, and set kernel.perf_event_paranoid=-1")),
        TracepointError::Absent => fault
            .why("raw_syscalls:sys_enter and sys_exit require a kernel with CONFIG_FTRACE_SYSCALLS")
            .try_this("strace, which works on every kernel"),
    }
}

impl LiveTrace {
    fn new(
        request: &TraceRequest,
        output: TraceOutput,
        decoders: Vec<SyscallDecoder>,
        opened: &StreamEvents,
    ) -> Self {
        // The events after the sampled ones only track tasks.
        let mut decoders: Vec<Option<SyscallDecoder>> = decoders.into_iter().map(Some).collect();
        decoders.resize(opened.events.len(), None);
        let running = Host::live();
        let comm = move |tid: i32| Some(running.comm(tid as u32)).filter(|comm| !comm.is_empty());
        let tracer = SyscallTracer::new(opened.command.map(|pid| pid as i32), Box::new(comm));
        let feed = SyscallFeed::new(opened.layouts.clone(), decoders, SyscallAbi::NATIVE, tracer);
        let memory = output.prints_calls().then(|| MemoryReader::new(request.most_bytes));
        let is_traced = |thread: &&ThreadInfo| !request.filter_pids.contains(&thread.tid);
        let threads = opened.threads.iter().filter(is_traced).cloned().collect();
        Self { feed, output, memory, idle_drains: 0, threads, next_search: 0 }
    }

    /// Reads the system call that a thread is in. From now on, the thread's events are recorded.
    fn current_call(&mut self, host: &Host, ThreadInfo { pid, tid, .. }: &ThreadInfo) -> Option<EnteredCall> {
        let at = host.blocked_at(*tid)?;
        let begin = monotonic_ns();
        let (number, arguments) = at.call?;
        // The stack of a 64-bit process is at the end of its much larger address space.
        let is_32_bit = at.sp.max(at.ip) <= u64::from(u32::MAX);
        let abi = if is_32_bit { SyscallAbi::NATIVE.of_32_bits() } else { SyscallAbi::NATIVE };
        let thread = Thread { pid: *pid as i32, tid: *tid as i32 };
        let stack = Box::default();
        let mut call =
            EnteredCall { thread, abi, number, arguments, begin, memory: CallMemory::default(), stack };
        if !self.output.selects(&call) {
            return None;
        }
        if let Some(memory) = &mut self.memory {
            call.memory = memory.read(thread.tid, abi, SyscallEvent::Enter(number, arguments));
        }
        Some(call)
    }

    /// Finds the descriptors that are open before the first call.
    fn read_descriptors(&mut self, host: &Host, opened: &StreamEvents) {
        if self.memory.is_none() {
            return;
        }
        // The command inherits only these descriptors from pmc.
        let standard = opened.command.into_iter().flat_map(|pid| (0..=2).map(move |fd| (pid, fd)));
        let pids = opened.threads.iter().filter(|thread| thread.tid == thread.pid).map(|thread| thread.pid);
        let others = pids.flat_map(|pid| host.descriptors(pid).into_iter().map(move |fd| (pid, fd)));
        for (pid, fd) in standard.chain(others) {
            if let Some(name) = host.descriptor(pid, fd) {
                self.output.set_descriptor(pid as i32, fd as i32, &name);
            }
        }
    }
}

impl RecordHandler for LiveTrace {
    type Note = CallMemory;

    fn begun(&mut self) {
        let host = Host::live();
        for thread in std::mem::take(&mut self.threads) {
            if let Some(call) = self.current_call(&host, &thread) {
                self.feed.tracer.attach(call);
            }
        }
        // The first search finds these calls.
        self.next_search = monotonic_ns();
    }

    fn pace(&mut self, had_records: bool) -> u64 {
        if self.memory.is_none() {
            return DRAIN_NS;
        }
        self.idle_drains = if had_records { 0 } else { self.idle_drains.saturating_add(1) };
        drain_after(self.idle_drains)
    }

    fn read(&mut self, sample: &RawRecord<'_>) -> Option<CallMemory> {
        let memory = self.memory.as_mut()?;
        let (thread, abi, event) = self.feed.decode(sample)?;
        Some(memory.read(thread.tid, abi, event))
    }

    fn record(
        &mut self,
        time: u64,
        record: &RawRecord<'_>,
        _: Option<usize>,
        memory: Option<CallMemory>,
    ) -> Result<()> {
        let call = self.feed.record(time, record, memory.unwrap_or_default());
        if let Some(call) = call {
            self.output.call(&call, None)?;
        }
        if record.kind != kind::SAMPLE
            && let Some(record) = record.parse()
        {
            self.output.apply(&record);
        }
        Ok(())
    }

    fn settled(&mut self, horizon: u64, _: &Host) -> Result<bool> {
        // In the last call, `horizon` is `u64::MAX` instead of a time.
        if self.output.prints_late_calls() && horizon >= self.next_search && horizon < u64::MAX {
            self.next_search = horizon + SEARCH;
            let late = self.feed.tracer.in_progress(horizon.saturating_sub(LATE), horizon);
            self.output.late_calls(&late)?;
        }
        self.output.flush()?;
        Ok(!self.output.is_full())
    }
}
