//! Converts the options of `pmc lock` into plans for recording and for the report.

use std::path::PathBuf;

use crate::cli::lock::{
    LockArgs, LockCommand, LockContentionArgs, LockRecordArgs, LockSources, LockTargets, LockUserArgs,
};
use pmc_analysis::analysis::request::SampleSelection;
use pmc_command::input;
use pmc_command::options::symbol_files::SymbolFiles;
use pmc_command::sampling_options::{TargetArgs, processes, scope_or_machine};
use pmc_command::values::Limit;
use pmc_events::counter::request::sampling::{CallGraph, Rate};
use pmc_recording::recording::plan::{FilePlan, MeasurementScope, RecordRequest};
use pmc_symbols::symbol::SymbolOptions;
use pmc_sys::error::{Error, Result};
use pmc_sys::host::Host;
use pmc_sys::host::tracepoint::TracepointError;
use pmc_sys::sys::clock;
use pmc_text::terminal::Stream;
use pmc_text::text;
use pmc_tools::lock::contention::engine::{ContentionRequest, LockFilter};
use pmc_tools::lock::contention::text::ContentionLayout;
use pmc_tools::lock::contention::{ContentionField, ContentionRows, LOCK_TYPES, types_named};
use pmc_tools::lock::user::engine::UserLockRequest;
use pmc_tools::lock::user::owner_reader::WatchedProcesses;
use pmc_tools::lock::user::text::UserLockLayout;

/// Size of stack copies in bytes. It can be small, because the functions that take locks are near the
/// innermost end of the stack.
const COPIED: u32 = 2048;

/// Settings of `pmc lock`.
pub(in crate::command) struct LockPlan {
    /// The recording to make first.
    pub(super) record: Option<RecordRequest>,
    /// Whether to print only errors and losses.
    pub(super) quiet: bool,
    /// What to print.
    pub(super) answer: LockAnswer,
}

/// The result that `pmc lock` prints.
pub(super) enum LockAnswer {
    /// No result, because the subcommand only records.
    Nothing,
    Contention(Box<ContentionPlan>),
    User(Box<UserLockPlan>),
}

/// Settings of `pmc lock contention`.
pub(super) struct ContentionPlan {
    pub(super) input: PathBuf,
    pub(super) request: ContentionRequest,
    pub(super) layout: ContentionLayout,
    /// The file to which the table is written.
    pub(super) output: Option<PathBuf>,
    pub(super) stream: Stream,
}

/// Settings of `pmc lock user`.
pub(super) struct UserLockPlan {
    pub(super) input: PathBuf,
    /// The processes whose locks are read while recording.
    pub(super) watched: Option<WatchedProcesses>,
    pub(super) request: UserLockRequest,
    pub(super) layout: UserLockLayout,
    pub(super) stream: Stream,
}

impl LockPlan {
    /// # Errors
    /// Fails if an option is invalid, or the kernel lacks the events to record.
    pub(in crate::command) fn new(typed: LockArgs, host: &Host) -> Result<Self> {
        match typed.command {
            LockCommand::Record(typed) => {
                let LockRecordArgs { user, output, max_stack, quiet, targets } = *typed;
                let record = match user {
                    true => of_programs(targets, output, host)?,
                    false => of_kernel(targets, output, max_stack, host)?,
                };
                Ok(Self { record: Some(record), quiet, answer: LockAnswer::Nothing })
            }
            LockCommand::Contention(typed) => contention(*typed, host),
            LockCommand::User(typed) => user(*typed, host),
        }
    }
}

impl LockTargets {
    /// Whether the options select targets to record, so that no existing recording is read.
    fn are_given(&self) -> bool {
        self.all_cpus
            || self.cpus.is_some()
            || !(self.pids.is_empty() && self.tids.is_empty() && self.command.is_empty())
    }
}

/// Returns the request to record kernel locks. As in `perf lock contention -b`, stacks end at the entry
/// to the kernel, so that a caller has one row, not one for each address in a program.
fn of_kernel(targets: LockTargets, output: PathBuf, max_stack: u16, host: &Host) -> Result<RecordRequest> {
    check_tracepoint(host, "lock", "contention_begin")?;
    let events = ["lock:contention_begin", "lock:contention_end"];
    let mut request = recording(targets, output, host)?;
    request.sample.events = events.map(str::to_owned).into();
    request.sample.options.call_graph = Some(CallGraph::Fp);
    request.sample.options.max_stack = Some(max_stack);
    request.sample.options.kernel_callchains = true;
    Ok(request)
}

/// Returns the request to record user-space locks.
fn of_programs(targets: LockTargets, output: PathBuf, host: &Host) -> Result<RecordRequest> {
    check_tracepoint(host, "syscalls", "sys_enter_futex")?;
    let has = |call: &str| host.tracepoint_id("syscalls", &format!("sys_enter_{call}")).is_ok();
    let calls = ["futex", "futex_wait", "futex_wake", "futex_waitv"];
    // With `:u`, the events do not require access to kernel data. The recorded stacks are user stacks anyway.
    let event = |call: &str| {
        [
            format!("syscalls:sys_enter_{call}/call-graph=dwarf,stack-size={COPIED}/u"),
            format!("syscalls:sys_exit_{call}/call-graph=no/u"),
        ]
    };
    let mut request = recording(targets, output, host)?;
    request.sample.events = calls.into_iter().filter(|call| has(call)).flat_map(event).collect();
    // The lock words are read with timestamps of this clock.
    request.sample.options.clock = Some(clock::MONOTONIC);
    Ok(request)
}

/// Returns the request to record each occurrence of events.
fn recording(targets: LockTargets, output: PathBuf, host: &Host) -> Result<RecordRequest> {
    let selected = TargetArgs {
        pids: &targets.pids,
        tids: &targets.tids,
        user: None,
        cpus: targets.cpus.as_ref(),
        all_cpus: targets.all_cpus,
    };
    let scope = scope_or_machine(selected, !targets.command.is_empty(), host)?;
    let mut request = RecordRequest::default();
    request.file = FilePlan { path: output, ..request.file };
    let sample = &mut request.sample;
    sample.options.rate = Rate::Period(1);
    sample.options.inherit = !matches!(scope, MeasurementScope::Threads(_));
    sample.scope = scope;
    sample.ring = targets.mmap_pages;
    sample.run_schedule.timeout = targets.duration;
    sample.run_schedule.command = targets.command;
    Ok(request)
}

/// Checks that the kernel has a tracepoint.
fn check_tracepoint(host: &Host, system: &str, name: &str) -> Result<()> {
    let Err(problem) = host.tracepoint_id(system, name) else { return Ok(()) };
    let error = Error::new(format!("cannot record {system}:{name}: {problem}"));
    let remedy = problem.remedy().unwrap_or_default();
    Err(match (problem, system) {
        (TracepointError::NotMounted, _) => error.why("event IDs are read from tracefs").try_this(remedy),
        (TracepointError::Denied(_), _) => {
            error.why("by default, only root may read event IDs").try_this(remedy)
        }
        (TracepointError::Absent, "lock") => error
            .why("kernels before Linux 5.19 do not report waits for kernel locks")
            .try_this("pmc lock user -- COMMAND, for user-space locks"),
        (TracepointError::Absent, _) => error
            .why("the kernel was built without CONFIG_FTRACE_SYSCALLS")
            .try_this("pmc lock contention -a, for kernel locks"),
    })
}

/// Returns the options for finding symbols.
fn symbols(typed: &LockSources) -> Result<SymbolOptions> {
    let LockSources { symfs, kallsyms, vmlinux, .. } = typed.clone();
    SymbolFiles { symfs, kallsyms, vmlinux, ..SymbolFiles::default() }.symbol_options()
}

/// Returns the recording to read: the one that was just made, or else the one that the user named.
fn input(typed: Option<&PathBuf>, is_made: bool, made: &str) -> Result<PathBuf> {
    match typed {
        Some(file) if is_made => Err(Error::usage(format!(
            "-i {} reads a recording, but the command or target requires a new one",
            file.display()
        ))
        .try_this("omit -i, or omit the target")),
        _ if is_made => Ok(made.into()),
        _ => Ok(input::input(typed)),
    }
}

/// If standard output is a pipe or a file, leave it to the command.
fn stream(has_command: bool, is_document: bool) -> Stream {
    match has_command && !is_document && !Stream::Output.is_terminal() {
        true => Stream::Error,
        false => Stream::Output,
    }
}

fn contention(typed: LockContentionArgs, host: &Host) -> Result<LockPlan> {
    let key = field(&typed.key)?;
    let mut columns = typed.field.iter().map(|name| field(name)).collect::<Result<Vec<_>>>()?;
    if columns.is_empty() {
        columns = ContentionField::USUAL.into();
    }
    if !columns.contains(&key) {
        columns.push(key);
    }
    let by = match (typed.threads, typed.lock_addr, typed.lock_owner) {
        (true, ..) => ContentionRows::Thread,
        (_, true, _) => ContentionRows::Address,
        (.., true) => ContentionRows::Owner,
        _ => ContentionRows::Caller,
    };
    let types = typed.type_filter.iter().map(|name| types(name)).collect::<Result<Vec<_>>>()?;
    let symbols = symbols(&typed.sources)?;
    let LockSources { targets, quiet, .. } = typed.sources;
    let is_made = targets.are_given();
    let is_document = typed.json || typed.field_separator.is_some();
    let stream = stream(!targets.command.is_empty(), is_document);
    let made = "perf.data";
    let mut record = is_made.then(|| of_kernel(targets, made.into(), typed.max_stack, host)).transpose()?;
    if let Some(record) = record.as_mut().filter(|_| typed.lock_owner) {
        record.sample.events.push("sched:sched_waking/call-graph=no/".to_owned());
    }
    let plan = ContentionPlan {
        input: input(typed.input.as_ref(), is_made, made)?,
        request: ContentionRequest {
            selection: SampleSelection::default(),
            by,
            key,
            types: types.concat(),
            locks: typed.lock_filter.iter().map(|lock| lock_filter(lock)).collect(),
            callers: typed.callstack_filter,
            max_stack: typed.max_stack.into(),
            stack_skip: typed.stack_skip,
            symbols,
        },
        layout: ContentionLayout {
            columns,
            rows: Limit::rows(typed.entries.map(Limit::from), false, 0),
            stacks: typed.verbose > 0,
            separator: typed.field_separator,
            json: typed.json,
        },
        output: typed.output,
        stream,
    };
    Ok(LockPlan { record, quiet, answer: LockAnswer::Contention(Box::new(plan)) })
}

fn user(typed: LockUserArgs, host: &Host) -> Result<LockPlan> {
    let symbols = symbols(&typed.sources)?;
    let LockSources { targets, quiet, .. } = typed.sources;
    let is_made = targets.are_given();
    let stream = stream(!targets.command.is_empty(), typed.json);
    let input = input(typed.input.as_ref(), is_made, &typed.output.to_string_lossy())?;
    let watched = is_made.then(|| watched(&targets, host)).transpose()?;
    let record = is_made.then(|| of_programs(targets, typed.output, host)).transpose()?;
    let plan = UserLockPlan {
        input,
        watched,
        request: UserLockRequest {
            selection: SampleSelection::default(),
            readings: Vec::new(),
            max_stack: typed.max_stack.into(),
            symbols,
        },
        layout: UserLockLayout {
            rows: Limit::rows(typed.entries.map(Limit::from), !typed.json, 10),
            parties: if typed.verbose { usize::MAX } else { 3 },
            json: typed.json,
        },
        stream,
    };
    Ok(LockPlan { record, quiet, answer: LockAnswer::User(Box::new(plan)) })
}

/// Returns the processes whose lock words are read while recording.
fn watched(targets: &LockTargets, host: &Host) -> Result<WatchedProcesses> {
    if targets.all_cpus || targets.cpus.is_some() {
        return Ok(WatchedProcesses::Named(vec![1]));
    }
    let mut pids = processes(&targets.pids, host)?;
    let of_thread = |tid: &u32| Some(host.thread(*tid)?.pid);
    pids.extend(targets.tids.iter().filter_map(of_thread));
    Ok(if pids.is_empty() { WatchedProcesses::Command } else { WatchedProcesses::Named(pids) })
}

fn field(name: &str) -> Result<ContentionField> {
    let known = ContentionField::ALL.into_iter().find(|field| field.name() == name.trim());
    known.ok_or_else(|| {
        Error::usage(format!("unknown field {name:?}"))
            .try_this(format!("one of {}", ContentionField::ALL.map(ContentionField::name).join(", ")))
    })
}

fn types(name: &str) -> Result<Vec<u32>> {
    let types = types_named(name.trim());
    if !types.is_empty() {
        return Ok(types);
    }
    let mut names: Vec<&str> = LOCK_TYPES.iter().map(|(_, with, _)| *with).collect();
    names.dedup();
    let near = text::nearest(name, names.iter().copied(), 1);
    let advice = near
        .first()
        .map_or_else(|| format!("one of {}", names.join(", ")), |near| format!("did you mean {near}?"));
    Err(Error::usage(format!("-Y {name}: unknown lock type")).try_this(advice))
}

/// Parses an argument of `-L`. As in perf, a hexadecimal number, with or without `0x`, is an address.
fn lock_filter(typed: &str) -> LockFilter {
    let typed = typed.trim();
    let digits = typed.strip_prefix("0x").unwrap_or(typed);
    u64::from_str_radix(digits, 16).map_or_else(|_| LockFilter::Name(typed.to_owned()), LockFilter::Address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_tracepoints_are_explained() {
        let root = tempfile::tempdir().unwrap();
        let host = Host::rooted(root.path());
        let refused = |system: &str, name: &str| {
            let error = check_tracepoint(&host, system, name).unwrap_err();
            format!("{error} {error:?}")
        };
        let has = |text: String, words: &[&str]| words.iter().all(|word| text.contains(word));
        assert!(has(refused("lock", "contention_begin"), &["tracefs is not mounted", "mount -t tracefs"]));
        std::fs::create_dir_all(root.path().join("sys/kernel/tracing/events/sched")).unwrap();
        let of_lock = refused("lock", "contention_begin");
        assert!(has(of_lock, &["does not exist", "kernels before Linux 5.19", "pmc lock user -- COMMAND"]));
        assert!(has(
            refused("syscalls", "sys_enter_futex"),
            &["CONFIG_FTRACE_SYSCALLS", "pmc lock contention -a"]
        ));
    }
}
