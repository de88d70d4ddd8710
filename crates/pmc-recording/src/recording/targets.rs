//! Determines the targets on which events are opened: the running threads, and a slot for each thread and
//! CPU.
//!
//! Receives a [`SamplePlan`]; returns [`TargetSlot`]s. Raises the limit on open descriptors as needed, and
//! explains refusals. Does not open any events.

use super::launch;
use super::plan::{MeasurementScope, SamplePlan};
use pmc_events::counter::facts::MachineFacts;
use pmc_events::counter::refusal::Refusal;
use pmc_events::counter::rings::Rings;
use pmc_events::counter::target::{self, TargetSlot};
use pmc_events::event::EventSpec;
use pmc_sys::abi::attr::Flag;
use pmc_sys::error::{AdvisedOption, Error, Result};
use pmc_sys::host::process::ThreadInfo as Alive;
use pmc_sys::host::{CpuList, Host};
use pmc_sys::sys::process::PausedChild;
use pmc_sys::sys::{limits, signal};

/// Returns the measured threads that are already running.
pub(super) fn threads(scope: &MeasurementScope, host: &Host) -> Result<Vec<Alive>> {
    let threads = match scope {
        MeasurementScope::Processes(pids) => target::threads_of_processes(host, pids),
        MeasurementScope::Families(pids) => target::threads_of_families(host, pids),
        MeasurementScope::Threads(tids) => target::threads(host, tids),
        MeasurementScope::User(user) => target::threads_of_user(host, user),
        MeasurementScope::AllThreads => Ok(target::all_threads(host)),
        MeasurementScope::Command | MeasurementScope::Cpus(_) => Ok(Vec::new()),
    };
    threads.map_err(launch::no_target)
}

/// Adds existing descendants of the processes to the targets, if the events request it (`descendants`).
///
/// # Errors
/// Fails if only some of the events request descendants.
pub fn include_descendants<'a>(
    scope: &mut MeasurementScope,
    events: impl Iterator<Item = &'a EventSpec>,
) -> Result<()> {
    let MeasurementScope::Processes(pids) = scope else { return Ok(()) };
    let kernel = events.filter(|event| event.attr().is_some() && !event.qualifiers.system);
    let (said, others): (Vec<_>, Vec<_>) = kernel.partition(|event| event.qualifiers.descendants);
    match (said.first(), others.first()) {
        (Some(_), None) => *scope = MeasurementScope::Families(std::mem::take(pids)),
        (Some(one), Some(other)) => {
            return Err(Error::usage(format!("{} has `descendants`, but {} does not", one.name, other.name))
                .why("existing children must be included for all events or for none")
                .try_this("add descendants to every event"));
        }
        _ => {}
    }
    Ok(())
}

/// Checks that the events' flags are valid for their targets.
///
/// # Errors
/// Fails if the command's exec would remove an event, or if an event's signal would kill a task.
pub(super) fn check_flags<'a>(
    events: impl Iterator<Item = &'a EventSpec>,
    scope: &MeasurementScope,
    threads: &[Alive],
    host: &Host,
) -> Result<()> {
    for (event, attr) in events.filter_map(|event| Some((event, event.attr()?))) {
        let error = |words: &str| Error::usage(format!("{}: {words}", event.name));
        let flag = [Flag::Sigtrap, Flag::RemoveOnExec].into_iter().find(|&flag| attr.get(flag));
        if let (Some(flag), MeasurementScope::Cpus(_)) = (flag, scope) {
            return Err(error(&format!("{} applies only to tasks, not to whole CPUs", flag.name()))
                .try_options("select tasks: -p PID, or -t TID"));
        }
        if attr.get(Flag::RemoveOnExec) && matches!(scope, MeasurementScope::Command) {
            return Err(error("remove_on_exec would remove the event at the exec that starts the command")
                .try_option(
                    AdvisedOption::Processes,
                    "measure a running process ({option}), or omit remove_on_exec",
                ));
        }
        let killed = threads.iter().find(|thread| !host.catches(thread.tid, signal::TRAP));
        if let Some(thread) = killed.filter(|_| attr.get(Flag::Sigtrap)) {
            return Err(error(&format!("sigtrap would kill {} ({})", thread.tid, thread.comm))
                .why("each sample sends SIGTRAP to the thread, which has no handler")
                .try_this("omit sigtrap: pmc record -d also records the address"));
        }
    }
    Ok(())
}

/// Returns a slot for each thread (or for the waiting command) on each CPU for which `rings` has events.
pub(super) fn slots(
    plan: &SamplePlan,
    host: &Host,
    threads: &[Alive],
    held: Option<&PausedChild>,
    rings: &Rings,
) -> Vec<TargetSlot> {
    let cpus: Vec<Option<u32>> = match &plan.scope {
        MeasurementScope::Cpus(cpus) => cpus.iter().map(Some).collect(),
        _ if plan.per_thread => [None].into_iter().chain(rings.named_cpus().iter().map(Some)).collect(),
        _ => host.online_cpus().iter().map(Some).collect(),
    };
    let tids: Vec<Option<u32>> = match &plan.scope {
        MeasurementScope::Cpus(_) => vec![None],
        MeasurementScope::Command => held.iter().map(|held| Some(held.pid())).collect(),
        _ => threads.iter().map(|thread| Some(thread.tid)).collect(),
    };
    tids.iter().flat_map(|&tid| cpus.iter().map(move |&cpu| TargetSlot { tid, cpu })).collect()
}

/// Returns slots for whole CPUs, if `rings` has events on whole CPUs in addition to events on tasks.
pub(super) fn slots_of_cpus(host: &Host, rings: &Rings) -> Vec<TargetSlot> {
    let cpus = if rings.has_cpu_events() { host.online_cpus() } else { CpuList::default() };
    cpus.iter().map(|cpu| TargetSlot { tid: None, cpu: Some(cpu) }).collect()
}

/// Raises the limit on open descriptors if it is too low for this number. The error states `what` is being
/// opened, `why` it needs that many descriptors, and the options with which it needs `less`.
pub(super) fn make_room(descriptors: u64, what: &str, why: &str, less: &str) -> Result<()> {
    // Number of descriptors that pmc itself needs: the usual number, which includes those for the files of
    // recorded programs, and the minimum.
    const OWN: u64 = 64;
    const LEAST: u64 = 12;
    let raise = |own| limits::raise_open_files(descriptors + own);
    raise(OWN).or_else(|_| raise(LEAST)).map_err(|error| {
        Error::io(format!("opening {what} on {descriptors} file descriptors"), error)
            .why(format!("{why}, and the total exceeds the limit on open files"))
            .try_this(format!("ulimit -n {}", descriptors + OWN))
            .try_options(less)
    })
}

/// Calls [`make_room`] for sampled events.
pub(super) fn make_room_for_events(descriptors: u64) -> Result<()> {
    let why = "each event requires one file descriptor per CPU and thread";
    make_room(descriptors, "events", why, "--per-thread, fewer events, or fewer threads (-t)")
}

/// Converts a refusal to an error that explains it.
pub fn explain(refusal: Refusal, host: &Host) -> Error {
    let doing = format!("opening {}{}", refusal.event, refusal.on_cpu());
    refusal.isolate().explain(&MachineFacts::own(host)).into_error(doing)
}
