//! On whom events are opened: threads that run already, and a slot for each thread and CPU.
//!
//! Receives a [`SamplePlan`]; hands on [`TargetSlot`]s, room for as many descriptors, and the words for what
//! was refused on one of them. Opens nothing.

use super::launch;
use super::plan::{SamplePlan, Scope};
use crate::abi::attr::Flag;
use crate::counter::facts::Facts;
use crate::counter::refusal::Refusal;
use crate::counter::rings::Rings;
use crate::counter::target::{self, TargetSlot};
use crate::error::{Error, Result};
use crate::event::EventSpec;
use crate::host::process::Thread as Alive;
use crate::host::{CpuList, Host};
use crate::sys::process::Held;
use crate::sys::{limits, signal};

/// The threads that are measured and run already.
pub(super) fn threads(scope: &Scope, host: &Host) -> Result<Vec<Alive>> {
    let threads = match scope {
        Scope::Processes(pids) => target::threads_of_processes(host, pids),
        Scope::Families(pids) => target::threads_of_families(host, pids),
        Scope::Threads(tids) => target::threads(host, tids),
        Scope::User(user) => target::threads_of_user(host, user),
        Scope::AllThreads => Ok(target::all_threads(host)),
        Scope::Command | Scope::Cpus(_) => Ok(Vec::new()),
    };
    threads.map_err(launch::no_target)
}

/// Takes the descendants in that processes have already, where that is said of the events (`descendants`).
///
/// # Errors
/// When it is said of some of them only.
pub(crate) fn settle<'a>(scope: &mut Scope, events: impl Iterator<Item = &'a EventSpec>) -> Result<()> {
    let Scope::Processes(pids) = scope else { return Ok(()) };
    let kernel = events.filter(|event| event.attr().is_some() && !event.qualifiers.system);
    let (said, others): (Vec<_>, Vec<_>) = kernel.partition(|event| event.qualifiers.descendants);
    match (said.first(), others.first()) {
        (Some(_), None) => *scope = Scope::Families(std::mem::take(pids)),
        (Some(one), Some(other)) => {
            return Err(Error::usage(format!("{} has `descendants`, but {} does not", one.name, other.name))
                .why("all events must either include or exclude existing children")
                .try_this("add descendants to every event"));
        }
        _ => {}
    }
    Ok(())
}

/// Whether the events' flags suit whom they are opened on.
///
/// # Errors
/// An event that the command's exec would take away, and one whose signal would kill a task.
pub(super) fn check_flags<'a>(
    events: impl Iterator<Item = &'a EventSpec>,
    scope: &Scope,
    threads: &[Alive],
    host: &Host,
) -> Result<()> {
    for (event, attr) in events.filter_map(|event| Some((event, event.attr()?))) {
        let error = |words: &str| Error::usage(format!("{}: {words}", event.name));
        let flag = [Flag::Sigtrap, Flag::RemoveOnExec].into_iter().find(|&flag| attr.get(flag));
        if let (Some(flag), Scope::Cpus(_)) = (flag, scope) {
            return Err(error(&format!("{} is for tasks, and whole CPUs are measured", flag.name()))
                .try_this("select tasks: -p PID, or -t TID"));
        }
        if attr.get(Flag::RemoveOnExec) && matches!(scope, Scope::Command) {
            return Err(error("remove_on_exec takes the event away at the exec that starts the command")
                .try_this("measure a running process (-p), or omit remove_on_exec"));
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

/// A slot for each of these threads, or the held command, and each CPU where `rings` have events for it.
pub(super) fn slots(
    plan: &SamplePlan,
    host: &Host,
    threads: &[Alive],
    held: Option<&Held>,
    rings: &Rings,
) -> Vec<TargetSlot> {
    let cpus: Vec<Option<u32>> = match &plan.scope {
        Scope::Cpus(cpus) => cpus.iter().map(Some).collect(),
        _ if plan.per_thread => [None].into_iter().chain(rings.named_cpus().iter().map(Some)).collect(),
        _ => host.online_cpus().iter().map(Some).collect(),
    };
    let tids: Vec<Option<u32>> = match &plan.scope {
        Scope::Cpus(_) => vec![None],
        Scope::Command => held.iter().map(|held| Some(held.pid())).collect(),
        _ => threads.iter().map(|thread| Some(thread.tid)).collect(),
    };
    tids.iter().flat_map(|&tid| cpus.iter().map(move |&cpu| TargetSlot { tid, cpu })).collect()
}

/// The CPUs themselves, where `rings` have events of whole CPUs beside those of tasks.
pub(super) fn slots_of_cpus(host: &Host, rings: &Rings) -> Vec<TargetSlot> {
    let cpus = if rings.is_mixed() { host.online_cpus() } else { CpuList::default() };
    cpus.iter().map(|cpu| TargetSlot { tid: None, cpu: Some(cpu) }).collect()
}

/// Raises the limit of open descriptors if so many more `what` would not fit. `why` says what each takes,
/// `less` how fewer would do.
pub(super) fn make_room(descriptors: u64, what: &str, why: &str, less: &str) -> Result<()> {
    // What pmc has open besides: with room for files of the recorded programs, and the least that works.
    const OWN: u64 = 64;
    const LEAST: u64 = 12;
    let raise = |own| limits::raise_open_files(descriptors + own);
    raise(OWN).or_else(|_| raise(LEAST)).map_err(|error| {
        Error::io(format!("making room for {descriptors} open {what}"), error)
            .why(format!("{why}, which exceeds the limit of open files"))
            .try_this(format!("ulimit -n {}", descriptors + OWN))
            .try_this(less)
    })
}

/// The same for sampled events.
pub(super) fn make_room_for_events(descriptors: u64) -> Result<()> {
    let why = "each event needs a descriptor on every CPU for every thread";
    make_room(descriptors, "events", why, "--per-thread, fewer events, or fewer threads (-t)")
}

/// A refusal, in words.
pub(crate) fn explain(refusal: Refusal, host: &Host) -> Error {
    let doing = format!("opening {}{}", refusal.event, refusal.on_cpu());
    refusal.isolate().explain(&Facts::own(host)).into_error(doing)
}
