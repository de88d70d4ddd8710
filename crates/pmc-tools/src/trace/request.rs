//! What `pmc trace` traces and shows, and how the options select it.
//!
//! Running tasks are sampled directly. A trace with stacks needs a recording first, because stacks are
//! symbolized only when a recording is read.

use std::path::PathBuf;

use super::decoder::SyscallDecoder;
use super::feed::CallFilter;
use super::options::{SummaryMode, TraceDuration, TraceOptions};
use super::selection::CallSelection;
use super::text::SummaryLayout;
use pmc_command::sampling_options;
use pmc_command::temporary::TemporaryRecording;
use pmc_command::values::{Limit, Typed};
use pmc_events::counter::request::sampling::{CallGraph, DEFAULT_STACK, SampleOptions};
use pmc_recording::recording::plan::{
    DelayOrRanges, FilePlan, MeasurementScope, RecordRequest, RunSchedule, SamplePlan, SelfExclusion,
};
use pmc_recording::recording::ring_size::RingSize;
use pmc_sys::abi::syscall::{ArgumentKind, Syscall, SyscallAbi, SyscallTable};
use pmc_sys::error::{Advice, Error, Result, Warning, say};
use pmc_sys::host::Host;
use pmc_sys::sys::clock;

/// What to trace, and what to show.
#[derive(Debug)]
pub struct TraceRequest {
    pub(super) source: TraceSource,
    /// The recording to make first, if any. Traces with stacks need one, because stacks are symbolized only
    /// when a recording is read.
    pub(super) recording: Option<Box<(RecordRequest, TemporaryRecording)>>,
    pub(super) filter: CallFilter,
    /// Threads to leave out.
    pub(super) filter_pids: Vec<u32>,
    /// Whether to print each call.
    pub(super) prints_calls: bool,
    pub(super) summary: Option<SummaryStyle>,
    pub(super) layout: SummaryLayout,
    /// Maximum number of frames per stack; `None` if no stacks are shown.
    pub(super) stacks: Option<usize>,
    /// Whether a command runs, which uses stdout.
    pub(super) has_command: bool,
    pub(super) json: bool,
    /// Real-time priority of pmc; 0 selects normal priority.
    pub(super) realtime: Option<i32>,
    /// Whether to print the clock's timestamps instead of times since the first call.
    pub(super) full_time: bool,
    /// Maximum number of bytes to print of a buffer or string.
    pub(super) most_bytes: usize,
    /// Number of calls after which to stop.
    pub(super) most_calls: Option<u64>,
    pub(super) output: Option<PathBuf>,
    /// Whether to print only calls, errors and losses.
    pub(super) quiet: bool,
}

/// What to trace.
#[derive(Debug)]
pub(super) enum TraceSource {
    /// Running tasks or a command.
    Live(Box<SamplePlan>),
    /// A recording.
    File(PathBuf),
}

/// Which tables to print at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SummaryStyle {
    /// One table per thread, then one for all threads.
    Threads,
    /// Only one table for all threads, like `strace -c`.
    Totals,
}

/// The events at the start and the end of every call.
const EVENTS: [&str; 2] = ["raw_syscalls:sys_enter", "raw_syscalls:sys_exit"];

/// Returns the events for those selected calls that have events with string arguments (since Linux 6.19).
fn events_with_texts(host: &Host, selection: &CallSelection) -> Vec<String> {
    let has_text = |call: &&Syscall| {
        let is_text = |kind| matches!(kind, ArgumentKind::Path | ArgumentKind::Text);
        selection.has(Some(call.name)) && call.arguments().iter().any(|argument| is_text(argument.kind))
    };
    let has_texts = |name: &str| {
        let fields = host.tracepoint_fields("syscalls", name).unwrap_or_default();
        SyscallDecoder::new(&format!("syscalls:{name}"), &fields, false)
            .is_some_and(|decoder| decoder.has_texts())
    };
    // A kernel that records any strings also records the strings of this call.
    if !has_texts("sys_enter_openat") {
        return Vec::new();
    }
    let calls = SyscallTable::get().calls().iter().filter(has_text);
    let names = calls.map(|call| format!("sys_enter_{}", call.tracepoint_name()));
    names.filter(|name| has_texts(name)).map(|name| format!("syscalls:{name}")).collect()
}

impl TraceOptions {
    /// # Errors
    /// Fails if an option is invalid, or there is nothing to trace.
    pub fn request(self, host: &Host) -> Result<TraceRequest> {
        let typed = &with_duration_applied(self)?;
        let filter = CallFilter {
            selection: CallSelection::new(&typed.calls),
            least_ns: typed.min_duration.map_or(0, |least| least.as_nanos() as u64),
            only_failed: typed.failure,
        };
        let summary = match (typed.summary || typed.with_summary, typed.summary_only) {
            (true, _) => Some(SummaryStyle::Threads),
            (_, true) => Some(SummaryStyle::Totals),
            _ => None,
        };
        // With -S and --json, the document does not contain calls.
        let prints_calls = summary.is_none() || typed.with_summary && !typed.json;
        let has_stacks = typed.stacks || typed.call_graph.is_some();
        let mut recording = None;
        let source = match &typed.input {
            Some(path) => TraceSource::File(path.clone()),
            None if has_stacks => {
                let file = TemporaryRecording::new()
                    .map_err(|error| Error::io("creating a temporary recording", error))?;
                let path = file.path();
                let record = temporary_recording(typed, &filter.selection, path.clone(), host)?;
                recording = Some(Box::new((record, file)));
                TraceSource::File(path)
            }
            None => {
                let selection = &filter.selection;
                let recorded = if prints_calls { selection.with_descriptors() } else { selection.clone() };
                let texts = if prints_calls { events_with_texts(host, selection) } else { Vec::new() };
                TraceSource::Live(Box::new(sampling(typed, &recorded, texts, host)?))
            }
        };
        Ok(TraceRequest {
            source,
            recording,
            filter,
            filter_pids: typed.filter_pids.clone(),
            prints_calls,
            summary,
            layout: SummaryLayout {
                by_errno: typed.errno_summary,
                by_thread: typed.summary_mode == SummaryMode::Thread,
                most_rows: Limit::rows(typed.max_summary, false, 0),
            },
            stacks: has_stacks.then_some(typed.max_stack),
            has_command: !typed.command.is_empty(),
            json: typed.json,
            realtime: typed.realtime,
            full_time: typed.time,
            most_bytes: typed.string_limit as usize,
            most_calls: typed.max_events,
            output: typed.output.clone(),
            quiet: typed.quiet,
        })
    }
}

/// Replaces `--duration` by the option that it means: `--timeout` or `--min-duration`.
///
/// # Errors
/// Fails if both options of such a pair are given, or if a recording is to end after a time.
fn with_duration_applied(mut typed: TraceOptions) -> Result<TraceOptions> {
    let Some(Typed { text, value }) = typed.duration.take() else { return Ok(typed) };
    let (option, same, time) = match value {
        TraceDuration::Trace(time) => ("--timeout", &mut typed.timeout, time),
        TraceDuration::Calls(time) => ("--min-duration", &mut typed.min_duration, time),
    };
    if same.replace(time).is_some() {
        return Err(Error::usage(format!("--duration {text} cannot be used with {option}"))
            .why(format!("with this value, it means {option}"))
            .try_options("--duration 10s for the run time, and --min-duration 10ms for the calls to show"));
    }
    match value {
        TraceDuration::Trace(_) if typed.input.is_some() => {
            Err(Error::usage(format!("--duration {text}: a recording (-i) has no run time"))
                .try_options(format!("--min-duration {text}, to show only calls that take this long")))
        }
        TraceDuration::Trace(_) => Ok(typed),
        TraceDuration::Calls(_) => {
            let can_end = typed.timeout.is_some() || typed.max_events.is_some();
            if !can_end && typed.input.is_none() && typed.command.is_empty() {
                let what = format!(
                    "--duration {text} shows only calls of at least {text} ms, as in perf; the trace continues until \
                     Ctrl-C"
                );
                say::warn(Warning::note(what).advise(Advice::options(format!(
                    "--duration {text}s ends it after {text} s; --min-duration {text} omits this note"
                ))));
            }
            Ok(typed)
        }
    }
}

/// Returns the temporary recording for a trace with stacks.
fn temporary_recording(
    typed: &TraceOptions,
    selection: &CallSelection,
    path: PathBuf,
    host: &Host,
) -> Result<RecordRequest> {
    let scope = sampling_options::scope(&typed.targets, host)?;
    if matches!(scope, MeasurementScope::Command) && typed.command.is_empty() {
        return Err(nothing());
    }
    if typed.cgroup.is_some() {
        sampling_options::check_cgroup_scope(&scope)?;
    }
    sampling_options::overridden(&typed.targets).into_iter().for_each(say::warn);
    let abis = abis(host);
    let DelayOrRanges { delay, switches } = typed.delay.clone().unwrap_or_default();
    delay.check_control(false)?;
    let options = SampleOptions {
        call_graph: Some(typed.call_graph.unwrap_or(CallGraph::Auto(DEFAULT_STACK))),
        user_callchains: true,
        inherit: !typed.no_inherit && !matches!(scope, MeasurementScope::Threads(_)),
        ..SampleOptions::default()
    };
    let is_system = typed.targets.has_cpus();
    let usual = RecordRequest::default();
    Ok(RecordRequest {
        sample: SamplePlan {
            // The stack does not change during a call, so record it only at the start of the call.
            events: vec![EVENTS[0].to_owned(), format!("{}/call-graph=no/", EVENTS[1])],
            filters: filters(typed, selection, &abis),
            scope,
            options,
            cgroups: typed.cgroup.iter().cloned().collect(),
            excludes_self: if is_system { SelfExclusion::Tracepoints } else { SelfExclusion::Never },
            ring: Some(typed.mmap_pages.unwrap_or(RingSize::PAIRS)),
            run_schedule: RunSchedule {
                command: typed.command.clone(),
                delay,
                switches,
                timeout: typed.timeout,
                ..RunSchedule::default()
            },
            ..usual.sample
        },
        file: FilePlan { path, ..usual.file },
        realtime: typed.realtime.filter(|priority| *priority > 0),
        ..usual
    })
}

/// Returns the filter expressions for the kernel, each with the index of its event.
fn filters(typed: &TraceOptions, selection: &CallSelection, abis: &[SyscallAbi]) -> Vec<(usize, String)> {
    let others: Vec<String> = typed.filter_pids.iter().map(|tid| format!("common_pid != {tid}")).collect();
    let of_event = |event: usize| {
        let calls = selection.filter(abis, event == 1).map(move |filter| (event, filter));
        calls.into_iter().chain((!others.is_empty()).then(|| (event, others.join(" && "))))
    };
    (0..EVENTS.len()).flat_map(of_event).collect()
}

fn nothing() -> Error {
    Error::usage("nothing to trace: no command, process or CPU given")
        .try_this("pmc trace -- COMMAND, pmc trace -p PID or NAME, or pmc trace -a")
}

fn sampling(
    typed: &TraceOptions,
    recorded: &CallSelection,
    texts: Vec<String>,
    host: &Host,
) -> Result<SamplePlan> {
    sampling_options::overridden(&typed.targets).into_iter().for_each(say::warn);
    let scope = sampling_options::scope(&typed.targets, host)?;
    let is_command = matches!(scope, MeasurementScope::Command);
    if is_command && typed.command.is_empty() {
        return Err(nothing());
    }
    let DelayOrRanges { delay, switches } = typed.delay.clone().unwrap_or_default();
    delay.check_control(false)?;
    if !switches.is_empty() {
        return Err(Error::usage("-D: time ranges require stacks (-g)").try_options("-D 500ms or -D 2s"));
    }
    let is_system = matches!(scope, MeasurementScope::Cpus(_));
    let events = EVENTS.map(str::to_owned).into_iter().chain(texts).collect();
    let abis = abis(host);
    let options = SampleOptions {
        inherit: !typed.no_inherit && !matches!(scope, MeasurementScope::Threads(_)),
        // Each call is one sample, so periods contain no information.
        period: Some(false),
        // A sample with registers also shows whether the process is 32-bit. One register is enough for this.
        user_regs: (abis.len() > 1).then_some(1),
        clock: clock::number("monotonic"),
        build_ids: false,
        ..SampleOptions::default()
    };
    Ok(SamplePlan {
        events,
        filters: filters(typed, recorded, &abis),
        cgroups: typed.cgroup.iter().cloned().collect(),
        excludes_self: if is_system { SelfExclusion::Tracepoints } else { SelfExclusion::Never },
        includes_exec: is_command,
        ring: Some(typed.mmap_pages.unwrap_or(RingSize::PAIRS)),
        verbose: typed.verbose > 0,
        run_schedule: RunSchedule {
            command: typed.command.clone(),
            delay,
            timeout: typed.timeout,
            ..RunSchedule::default()
        },
        ..SamplePlan::on(scope, options)
    })
}

/// Returns the system call ABIs that this machine supports.
fn abis(host: &Host) -> Vec<SyscallAbi> {
    let native = SyscallAbi::NATIVE;
    let mut abis = vec![native];
    abis.extend(host.runs_32_bit_programs().then(|| native.of_32_bits()));
    abis
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_from_the_events_of_kernels_that_record_them() {
        let root = tempfile::tempdir().unwrap();
        let host = Host::rooted(root.path());
        let write = |name: &str, text: &str| {
            let folder = root.path().join("sys/kernel/tracing/events/syscalls").join(name);
            std::fs::create_dir_all(&folder).unwrap();
            let field = |declaration: &str, offset, size| {
                format!("\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:0;\n")
            };
            let number = field("int __syscall_nr", 8, 4);
            let format =
                format!("name: {name}\nID: 7\n{number}{}{text}", field("const char * filename", 16, 8));
            std::fs::write(folder.join("format"), format).unwrap();
        };
        let all = CallSelection::default();
        for name in ["sys_enter_openat", "sys_enter_newstat", "sys_enter_mkdir"] {
            write(name, "");
        }
        assert!(events_with_texts(&host, &all).is_empty(), "an older kernel");
        for name in ["sys_enter_openat", "sys_enter_newstat"] {
            write(name, "\tfield:__data_loc char[] __filename_val;\toffset:24;\tsize:4;\tsigned:0;\n");
        }
        assert_eq!(
            events_with_texts(&host, &all),
            ["syscalls:sys_enter_openat", "syscalls:sys_enter_newstat"]
        );
        let one = CallSelection::new(&["stat".parse().unwrap()]);
        assert_eq!(events_with_texts(&host, &one), ["syscalls:sys_enter_newstat"]);
    }
}
