//! Reads the system calls in a recording.

use std::sync::Arc;

use pmc_command::progress::Bars;
use pmc_formats::import;
use pmc_perfdata::perfdata::RecordedEvent;
use pmc_perfdata::record::tracepoint::TracingData;
use pmc_perfdata::record::{RawRecord, Thread, kind};
use pmc_symbols::symbol::SymbolOptions;
use pmc_sys::abi::attr::{self, Flag};
use pmc_sys::abi::syscall::SyscallAbi;
use pmc_sys::error::{Error, Exit, Result};

use super::decoder::SyscallDecoder;
use super::feed::{EventPayload, SyscallFeed};
use super::memory::CallMemory;
use super::output::TraceOutput;
use super::request::TraceRequest;
use super::tracer::{SyscallTracer, TraceCounts, TracedCall};
use pmc_analysis::analysis::recording_quality;
use pmc_analysis::analysis::script::{NamedRecording, ScriptLine, ScriptRequest};
use pmc_analysis::profile::script::ScriptEntry;
use pmc_analysis::session::{Session, order};
use std::path::Path;

/// Reads the recording and prints its calls.
pub(super) fn run(request: &TraceRequest, input: &Path) -> Result<Exit> {
    let session = Arc::new(Session::open(import::open_recording(input, "system calls")?)?);
    // The recorded processes no longer run, so their descriptors cannot be looked up.
    let mut output = TraceOutput::open(request, Box::new(|_, _| None))?;
    let (counts, elapsed_ns) = match request.stacks.filter(|_| output.prints_calls()) {
        None => recorded(&session, &mut |call| output.call(call, None))?,
        Some(max_stack) => {
            let request = with_functions(max_stack);
            let script = NamedRecording::load(Arc::clone(&session), &request, &Bars)?;
            let functions = script.places();
            recorded_with_stacks(&session, &script, &mut |call| output.call(call, Some(functions)))?
        }
    };
    output.finish(elapsed_ns, counts)?;
    Ok(recording_quality::warn_of_damage(&session))
}

/// Returns the request for the data to read in addition to the calls: the functions in their stacks, and the
/// tasks.
fn with_functions(max_stack: usize) -> ScriptRequest {
    ScriptRequest {
        fields: vec!["comm,tid,time,event,ip,sym,dso".parse().expect("these fields exist")],
        records: TASK_RECORDS.to_vec(),
        ..ScriptRequest::with_callers(max_stack, SymbolOptions::from_environment())
    }
}

/// Records about tasks and losses.
const TASK_RECORDS: [u32; 5] = [kind::COMM, kind::FORK, kind::EXIT, kind::LOST, kind::LOST_SAMPLES];

/// Called for each call.
type CallVisitor<'a> = &'a mut dyn FnMut(&TracedCall) -> Result<()>;

/// Counts, and the nanoseconds between the first and the last event.
type RecordedTrace = (TraceCounts, u64);

/// Passes the calls in a recording to `visit`, in the order in which they end.
///
/// # Errors
/// Fails if the recording has no events of system calls, if it cannot be read, or if `visit` fails.
fn recorded(session: &Session, visit: CallVisitor<'_>) -> Result<RecordedTrace> {
    let mut feed = feed(session)?;
    let mut span = EventSpan::default();
    let layouts = session.reader.layouts();
    let wants = |number| number == kind::SAMPLE || TASK_RECORDS.contains(&number);
    order::records(session, true, wants, |raw: &RawRecord<'_>, _| {
        let time = layouts.time(raw).map_or(0, |time| time.0);
        if raw.kind == kind::SAMPLE {
            span.add(time);
        }
        feed.record(time, raw, CallMemory::default()).map_or(Ok(()), |call| visit(&call))
    })?;
    finish(session, feed, span, visit)
}

/// Like [`recorded`], but with the stacks of the calls. `script` resolves their functions; it must have been
/// loaded with [`TASK_RECORDS`] and callers.
///
/// # Errors
/// Fails in the same cases as [`recorded`].
fn recorded_with_stacks(
    session: &Session,
    script: &NamedRecording<'_>,
    visit: CallVisitor<'_>,
) -> Result<RecordedTrace> {
    let mut feed = feed(session)?;
    let mut span = EventSpan::default();
    script.entries(&mut |line| {
        let call = match line {
            ScriptLine::Sample(entry) => sample(&mut feed, &mut span, entry),
            ScriptLine::Record(entry, _, record) => feed.tracer.apply(entry.time.unwrap_or(0), record),
            ScriptLine::Dumped(_) | ScriptLine::Torn { .. } => None,
        };
        call.map_or(Ok(()), |call| visit(&call))
    })?;
    finish(session, feed, span, visit)
}

fn sample(feed: &mut SyscallFeed, span: &mut EventSpan, entry: &ScriptEntry<'_>) -> Option<TracedCall> {
    let (time, payload) = (entry.time.unwrap_or(0), entry.payload?);
    let registers = entry.parts.user_regs.map(|registers| registers.abi);
    let thread = Thread { pid: entry.pid?, tid: entry.tid? };
    span.add(time);
    let sample = EventPayload { event: entry.event, payload, registers };
    feed.handle(time, thread, sample, CallMemory::default(), || Box::from(entry.places))
}

/// Times of the first and the last event.
struct EventSpan(u64, u64);

impl Default for EventSpan {
    fn default() -> Self {
        Self(u64::MAX, 0)
    }
}

impl EventSpan {
    fn add(&mut self, time: u64) {
        *self = Self(self.0.min(time), self.1.max(time));
    }
}

fn finish(
    session: &Session,
    mut feed: SyscallFeed,
    EventSpan(first, last): EventSpan,
    visit: CallVisitor<'_>,
) -> Result<RecordedTrace> {
    feed.tracer.lost_at_least(recording_quality::lost(session));
    feed.tracer.finish(last).iter().try_for_each(visit)?;
    Ok((feed.counts(), last.saturating_sub(first)))
}

/// Checks that the events for all system calls include kernel mode. Without permission to measure the kernel,
/// these events can be opened, but they never occur.
///
/// # Errors
/// Fails if the events are restricted to user mode.
pub(super) fn check_kernel(events: &[RecordedEvent]) -> Result<()> {
    let is_silent = |event: &RecordedEvent| {
        event.attr.get(Flag::ExcludeKernel) && event.name().starts_with("raw_syscalls:")
    };
    if !events.iter().any(is_silent) {
        return Ok(());
    }
    Err(Error::new("cannot trace system calls: no permission to measure the kernel")
        .why("the events raw_syscalls:sys_enter and raw_syscalls:sys_exit never occur in user mode")
        .try_this("sudo pmc trace …, or sysctl kernel.perf_event_paranoid=-1")
        .try_this("pmc latency syscall:NAME, which measures one call without this permission"))
}

/// Returns a feed for the events of a recording.
fn feed(session: &Session) -> Result<SyscallFeed> {
    let reader = &session.reader;
    let tracing = reader.features().tracing_data.as_ref().and_then(|raw| TracingData::parse(&raw.0));
    let decoders: Vec<Option<SyscallDecoder>> = reader
        .events()
        .iter()
        .map(|event| {
            let tracing = tracing.as_ref().filter(|_| event.attr.kind() == attr::kind::TRACEPOINT)?;
            let format = tracing.format(event.attr.config())?;
            let name = format!("{}:{}", format.system, format.name);
            SyscallDecoder::new(&name, &format.fields, tracing.is_byte_swapped)
        })
        .collect();
    if decoders.iter().all(Option::is_none) {
        return Err(Error::new("the recording has no system calls")
            .why("it lacks the events raw_syscalls:sys_enter and raw_syscalls:sys_exit, or their formats")
            .try_this("pmc trace record -- COMMAND, or perf trace record -- COMMAND"));
    }
    check_kernel(reader.events())?;
    for (is_end, missing) in [(true, "raw_syscalls:sys_exit"), (false, "raw_syscalls:sys_enter")] {
        if decoders.iter().flatten().all(|decoder| decoder.is_of_end() != is_end) {
            return Err(Error::new(format!("the recording lacks the event {missing}"))
                .why("pmc trace requires the start and the end of each system call")
                .try_this("pmc trace record -- COMMAND, or perf trace record -- COMMAND"));
        }
    }
    let machine = reader.features().arch.as_deref();
    let abi = machine.and_then(SyscallAbi::of_machine).unwrap_or(SyscallAbi::NATIVE);
    // Names that no record contains stay unknown, because this machine's threads are unrelated to the
    // recorded ones.
    let tracer = SyscallTracer::new(None, Box::new(|_| None));
    Ok(SyscallFeed::new(Arc::new(reader.layouts().clone()), decoders, abi, tracer))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmc_sys::abi::Attr;

    #[test]
    fn events_of_all_calls_must_occur_in_the_kernel() {
        let check = |name: &str, is_user: bool| {
            let mut attr = Attr::new(attr::kind::TRACEPOINT, 7);
            attr.set(Flag::ExcludeKernel, is_user);
            check_kernel(&[RecordedEvent { attr, ids: vec![1], name: Some(name.to_owned()) }])
        };
        assert!(check("raw_syscalls:sys_enter", false).is_ok());
        // Events for a single system call have the program's registers.
        assert!(check("syscalls:sys_enter_read:u", true).is_ok());
        let refused = check("raw_syscalls:sys_enter:u", true).unwrap_err().to_string();
        assert!(refused.contains("no permission to measure the kernel"), "{refused}");
    }
}
