//! Converts the parsed options of `pmc trace` into a [`TraceCommandPlan`].

use std::path::PathBuf;

use crate::cli::defaults;
use crate::cli::record::RecordArgs;
use crate::cli::trace::TraceArgs;
use pmc_command::options::recording_options::RecordingOptions;
use pmc_command::plan;
use pmc_command::sampling_options::{self, TargetArgs};
use pmc_command::temporary::TemporaryRecording;
use pmc_command::values::Limit;
use pmc_command::warning::CommandWarning;
use pmc_events::counter::request::sampling::SampleOptions;
use pmc_events::counter::rings::pages_of;
use pmc_recording::recording::plan::{MeasurementScope, RunSchedule, SamplePlan, SelfExclusion};
use pmc_sys::abi::syscall::{ArgumentKind, Syscall, SyscallAbi, SyscallTable};
use pmc_sys::error::{Error, Result, say};
use pmc_sys::host::Host;
use pmc_sys::sys::clock;
use pmc_text::units::MS;
use pmc_tools::trace::SummaryLayout;
use pmc_tools::trace::SyscallDecoder;
use pmc_tools::trace::{CallFilter, CallSelection, UnknownCall};

/// Settings of `pmc trace`.
#[derive(Debug)]
pub(in crate::command) struct TraceCommandPlan {
    pub(super) source: TraceSource,
    /// The recording to make first, if any. Traces with stacks need one, because stacks are symbolized only
    /// when a recording is read.
    recording: Option<Box<(RecordArgs, TemporaryRecording)>>,
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

/// Bytes per ring buffer: enough for 100 ms at 400,000 calls per second, so that pmc can keep up on a busy
/// machine.
const RING: u64 = 8 << 20;

/// The events at the start and the end of every call.
pub(super) const EVENTS: [&str; 2] = ["raw_syscalls:sys_enter", "raw_syscalls:sys_exit"];

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

impl TraceCommandPlan {
    pub(in crate::command) fn new(typed: &TraceArgs, host: &Host) -> Result<Self> {
        let typed = &with_duration_applied(typed.clone())?;
        let filter = CallFilter {
            selection: CallSelection::parse(&typed.calls).map_err(unknown)?,
            least_ns: typed
                .min_duration
                .as_deref()
                .map(|text| plan::duration("--min-duration", text, MS, 0))
                .transpose()?
                .unwrap_or(0),
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
        Ok(Self {
            source,
            recording,
            filter,
            filter_pids: typed.filter_pids.clone(),
            prints_calls,
            summary,
            layout: SummaryLayout {
                by_errno: typed.errno_summary,
                by_thread: typed.summary_mode == "thread",
                most_rows: Limit::rows(typed.max_summary.map(Limit::from), false, 0),
            },
            stacks: has_stacks.then_some(typed.max_stack),
            has_command: !typed.command.is_empty(),
            json: typed.json,
            realtime: typed.realtime,
            full_time: typed.time,
            most_bytes: typed.string_limit as usize,
            most_calls: typed.max_events,
            output: typed.output.clone(),
        })
    }

    /// Returns the recording to make before the calls can be shown, and its file, which must be kept until
    /// then.
    pub(in crate::command) fn take_recording(&mut self) -> Option<(RecordArgs, TemporaryRecording)> {
        self.recording.take().map(|both| *both)
    }
}

/// Replaces `--duration` by `--timeout`, or by `--min-duration` if its value is a bare number, as in perf.
///
/// # Errors
/// Fails if both options of such a pair are given, or if a recording is to end after a time.
fn with_duration_applied(mut typed: TraceArgs) -> Result<TraceArgs> {
    let Some(text) = typed.duration.take() else { return Ok(typed) };
    let is_filter = text.parse::<f64>().is_ok();
    let (option, same) = match is_filter {
        true => ("--min-duration", &mut typed.min_duration),
        false => ("--timeout", &mut typed.timeout),
    };
    if same.replace(text.clone()).is_some() {
        return Err(Error::usage(format!("--duration {text} cannot be used with {option}"))
            .why(format!("with this value, it means {option}"))
            .try_this("--duration 10s for the run time, and --min-duration 10ms for the calls to show"));
    }
    if !is_filter && typed.input.is_some() {
        return Err(Error::usage(format!("--duration {text}: a recording (-i) has no run time"))
            .try_this(format!("--min-duration {text}, to show only calls that take this long")));
    }
    let can_end = typed.timeout.is_some() || typed.max_events.is_some();
    if is_filter && !can_end && typed.input.is_none() && typed.command.is_empty() {
        say::warn(CommandWarning::DurationIsFilter { text });
    }
    Ok(typed)
}

fn unknown(unknown: UnknownCall) -> Error {
    let error = Error::usage(format!("-e: unknown system call or class {:?}", unknown.name));
    let class = if unknown.name.starts_with('%') { "%" } else { "" };
    match unknown.similar.as_slice() {
        [] => error.try_this("-e openat,read, -e '!futex', or a class such as -e %file"),
        similar => {
            let similar: Vec<String> = similar.iter().map(|name| format!("{class}{name}")).collect();
            error.try_this(format!("did you mean {}?", similar.join(" or ")))
        }
    }
}

/// Returns the options of the temporary recording for a trace with stacks.
fn temporary_recording(
    typed: &TraceArgs,
    selection: &CallSelection,
    path: PathBuf,
    host: &Host,
) -> Result<RecordArgs> {
    let targets = typed.pids.len() + typed.tids.len() + typed.command.len();
    if targets == 0 && typed.uid.is_none() && !typed.all_cpus && typed.cpus.is_none() {
        return Err(nothing());
    }
    let is_system = typed.all_cpus || typed.cpus.is_some();
    let abis = abis(host);
    let filters = filters(typed, selection, &abis);
    let (filter_places, filter) = filters.into_iter().map(|(event, filter)| (event + 1, filter)).unzip();
    Ok(RecordArgs {
        // The stack does not change during a call, so record it only at the start of the call.
        events: vec![EVENTS[0].to_owned(), format!("{}/call-graph=no/", EVENTS[1])],
        filter,
        filter_places,
        call_graph: Some(typed.call_graph.clone().unwrap_or_else(|| "auto".to_owned())),
        user_callchains: true,
        exclude_perf: is_system,
        pids: typed.pids.clone(),
        tids: typed.tids.clone(),
        uid: typed.uid.clone(),
        all_cpus: typed.all_cpus,
        cpus: typed.cpus.clone(),
        no_inherit: typed.no_inherit,
        cgroups: typed.cgroup.clone(),
        delay: typed.delay.clone(),
        mmap_pages: typed.mmap_pages.clone().or_else(|| Some("8M".to_owned())),
        recording: RecordingOptions {
            output: path,
            timeout: typed.timeout.clone(),
            realtime: typed.realtime.filter(|priority| *priority > 0),
            quiet: true,
            ..defaults()
        },
        command: typed.command.clone(),
        ..defaults()
    })
}

/// Returns the filter expressions for the kernel, each with the index of its event.
fn filters(typed: &TraceArgs, selection: &CallSelection, abis: &[SyscallAbi]) -> Vec<(usize, String)> {
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
    typed: &TraceArgs,
    recorded: &CallSelection,
    texts: Vec<String>,
    host: &Host,
) -> Result<SamplePlan> {
    let targets = TargetArgs {
        pids: &typed.pids,
        tids: &typed.tids,
        user: typed.uid.as_deref(),
        cpus: typed.cpus.as_deref(),
        all_cpus: typed.all_cpus,
    };
    sampling_options::overridden(targets).into_iter().for_each(say::warn);
    let scope = sampling_options::scope(targets, host)?;
    let is_command = matches!(scope, MeasurementScope::Command);
    if is_command && typed.command.is_empty() {
        return Err(nothing());
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
        ring_pages: Some(match &typed.mmap_pages {
            Some(text) => sampling_options::ring_pages(text)?,
            None => pages_of(RING),
        }),
        verbose: typed.verbose > 0,
        run_schedule: RunSchedule {
            command: typed.command.clone(),
            delay: plan::delay(typed.delay.as_deref(), false)?,
            timeout_ns: plan::timeout(typed.timeout.as_deref())?,
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
        let one = CallSelection::parse(&["stat".to_owned()]).unwrap();
        assert_eq!(events_with_texts(&host, &one), ["syscalls:sys_enter_newstat"]);
    }
}
