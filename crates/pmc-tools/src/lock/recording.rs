//! The recordings that `pmc lock` needs: which events, with which stacks, and which locks to read meanwhile.

use std::path::PathBuf;

use super::target_options::LockTargetOptions;
use super::user::owner_reader::WatchedProcesses;
use pmc_command::sampling_options::{TargetOptions, processes, scope_or_machine};
use pmc_events::counter::request::sampling::{CallGraph, Rate};
use pmc_recording::recording::plan::{FilePlan, MeasurementScope, RecordRequest};
use pmc_sys::error::{Error, Result};
use pmc_sys::host::Host;
use pmc_sys::host::tracepoint::TracepointError;
use pmc_sys::sys::clock;

/// Size of stack copies in bytes. It can be small, because the functions that take locks are near the
/// innermost end of the stack.
const COPIED: u32 = 2048;

/// Returns the request to record kernel locks. As in `perf lock contention -b`, stacks end at the entry
/// to the kernel, so that a caller has one row, not one for each address in a program. `with_owners` adds the
/// threads that release locks.
///
/// # Errors
/// Fails if the kernel lacks the events.
pub(super) fn of_kernel(
    targets: LockTargetOptions,
    output: PathBuf,
    max_stack: u16,
    with_owners: bool,
    host: &Host,
) -> Result<RecordRequest> {
    check_tracepoint(host, "lock", "contention_begin")?;
    let owners = with_owners.then_some("sched:sched_waking/call-graph=no/");
    let events = ["lock:contention_begin", "lock:contention_end"].into_iter().chain(owners);
    let mut request = recording(targets, output, host)?;
    request.sample.events = events.map(str::to_owned).collect();
    request.sample.options.call_graph = Some(CallGraph::Fp);
    request.sample.options.max_stack = Some(max_stack);
    request.sample.options.kernel_callchains = true;
    Ok(request)
}

/// Returns the request to record user-space locks.
///
/// # Errors
/// Fails if the kernel lacks the events.
pub(super) fn of_programs(targets: LockTargetOptions, output: PathBuf, host: &Host) -> Result<RecordRequest> {
    let mut request = recording(targets, output, host)?;
    request.sample.events = futex_events(host)?;
    // The lock words are read with timestamps of this clock.
    request.sample.options.clock = Some(clock::MONOTONIC);
    Ok(request)
}

/// Returns the events that show waits for user-space locks: each `futex` call with a stack copy, and its end.
///
/// # Errors
/// Fails if the kernel lacks the events.
pub fn futex_events(host: &Host) -> Result<Vec<String>> {
    check_tracepoint(host, "syscalls", "sys_enter_futex")?;
    let has = |call: &str| host.tracepoint_id("syscalls", &format!("sys_enter_{call}")).is_ok();
    let calls = ["futex", "futex_wait", "futex_wake", "futex_waitv"];
    // With `:u`, the events do not require access to kernel data. The recorded stacks are user stacks anyway.
    let event = |call: &str| {
        [
            format!("syscalls:sys_enter_{call}/call-graph=dwarf,stack-size={COPIED},period=1/u"),
            format!("syscalls:sys_exit_{call}/call-graph=no,period=1/u"),
        ]
    };
    Ok(calls.into_iter().filter(|call| has(call)).flat_map(event).collect())
}

/// Returns the request to record each occurrence of events.
fn recording(targets: LockTargetOptions, output: PathBuf, host: &Host) -> Result<RecordRequest> {
    let selected = TargetOptions {
        pids: targets.pids,
        tids: targets.tids,
        cpus: targets.cpus,
        all_cpus: targets.all_cpus,
        uid: None,
    };
    let scope = scope_or_machine(&selected, !targets.command.is_empty(), host)?;
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

/// Returns the processes whose lock words are read while recording.
pub(super) fn watched(targets: &LockTargetOptions, host: &Host) -> Result<WatchedProcesses> {
    if targets.all_cpus || targets.cpus.is_some() {
        return Ok(WatchedProcesses::Named(vec![1]));
    }
    let mut pids = processes(&targets.pids, host)?;
    let of_thread = |tid: &u32| Some(host.thread(*tid)?.pid);
    pids.extend(targets.tids.iter().filter_map(of_thread));
    Ok(if pids.is_empty() { WatchedProcesses::Command } else { WatchedProcesses::Named(pids) })
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
