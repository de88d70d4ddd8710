//! Options that select targets and events, shared by `record`, `top`, `stat` and the tools.
//!
//! Converts the parsed options into parts of a request.

use std::str::FromStr;

use clap::Args;

use crate::values;
use crate::warning::measures_whole_machine;
use pmc_events::counter::target;
use pmc_events::event::EventSpec;
use pmc_events::event::libpfm::event_text;
use pmc_recording::recording::launch;
use pmc_recording::recording::plan::MeasurementScope;
use pmc_sys::error::{AdvisedOption, Error, Result, Warning, say};
use pmc_sys::host::{CpuList, Host};

/// Converts the events of `--pfm-events` to pmc's event syntax.
pub fn pfm_events(lists: &[String]) -> impl Iterator<Item = String> {
    lists.iter().map(|list| event_text(list))
}

/// Rejects events that cannot distinguish user mode from kernel mode. `option` is the option that requires
/// the distinction.
///
/// # Errors
/// Fails if an event cannot distinguish the two modes. The error names the first such event.
pub fn check_levels<'e>(option: &str, mut events: impl Iterator<Item = &'e EventSpec>) -> Result<()> {
    let why = "the event already selects privilege levels, or always counts at all levels, as clocks do (use user_time and system_time)";
    events.find(|event| !event.has_levels()).map_or(Ok(()), |event| Err(no_parts(option, event, why)))
}

/// Returns the error for an event that cannot be split into the parts that `option` requests.
pub fn no_parts(option: &str, event: &EventSpec, why: &str) -> Error {
    Error::usage(format!("{option}: {} cannot be split this way", event.name))
        .why(why)
        .try_this("use a separate run")
}

/// The processes that a word of `-p` selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessSelector {
    /// The process with this ID.
    Id(u32),
    /// All processes with this exact name, as `pgrep -x` finds them.
    Named(String),
}

impl FromStr for ProcessSelector {
    type Err = Error;

    fn from_str(word: &str) -> Result<Self> {
        if !word.trim().is_empty() && !word.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(Self::Named(word.to_owned()));
        }
        word.trim().parse().ok().filter(|&pid| pid > 0).map(Self::Id).ok_or_else(|| {
            Error::usage(format!("`{word}` is not a process id"))
                .try_option(AdvisedOption::Processes, "{option} 12,345, or {option} NAME")
        })
    }
}

/// Returns the IDs of the selected processes.
///
/// # Errors
/// Fails if no process has one of the names.
pub fn processes(selected: &[ProcessSelector], host: &Host) -> Result<Vec<u32>> {
    /// The kernel truncates names to this length (`TASK_COMM_LEN`).
    const MAX_COMM_BYTES: usize = 15;
    let own = std::process::id();
    let mut pids = Vec::new();
    for selector in selected {
        let word = match selector {
            ProcessSelector::Id(pid) => {
                pids.push(*pid);
                continue;
            }
            ProcessSelector::Named(word) => word,
        };
        let name = &word.as_bytes()[..word.len().min(MAX_COMM_BYTES)];
        let is_it = |pid: &u32| *pid != own && host.comm(*pid).as_bytes() == name;
        let found: Vec<u32> = host.processes().into_iter().filter(is_it).collect();
        if found.is_empty() {
            return Err(Error::usage(format!("no process is named `{word}`"))
                .why("pmc compares with the names that ps -e shows, which have at most 15 characters")
                .try_options(format!("pgrep -af {word}, then -p PID")));
        }
        pids.extend(found);
    }
    Ok(pids)
}

/// The processes, threads or CPUs to measure.
#[derive(Debug, Clone, Default, Args)]
pub struct TargetOptions {
    /// Measure system-wide, on all CPUs
    #[arg(short = 'a', long, help_heading = "Targets")]
    pub all_cpus: bool,

    /// Measure system-wide on these CPUs, such as 0-3,8
    #[arg(short = 'C', long = "cpu", value_name = "CPUS", help_heading = "Targets")]
    pub cpus: Option<CpuList>,

    /// Measure these running processes, by pid or name, with all their threads
    #[arg(short = 'p', long = "pid", value_name = "PID|NAME,…", value_delimiter = ',', conflicts_with_all = ["tids", "uid"], help_heading = "Targets")]
    pub pids: Vec<ProcessSelector>,

    /// Measure these running threads
    #[arg(short = 't', long = "tid", value_name = "TID,…", value_delimiter = ',', value_parser = values::thread_id, conflicts_with = "uid", help_heading = "Targets")]
    pub tids: Vec<u32>,

    /// Measure all processes of this user (name or uid)
    #[arg(short = 'u', long = "uid", value_name = "USER", help_heading = "Targets")]
    pub uid: Option<String>,
}

impl TargetOptions {
    /// Whether processes, threads or a user are selected.
    pub fn has_tasks(&self) -> bool {
        !self.pids.is_empty() || !self.tids.is_empty() || self.uid.is_some()
    }

    /// Whether whole CPUs are selected.
    pub fn has_cpus(&self) -> bool {
        self.all_cpus || self.cpus.is_some()
    }
}

/// Returns a warning if `-p`, `-t` or `-u` override `-a` or `-C`, as in perf.
pub fn overridden(typed: &TargetOptions) -> Option<Warning> {
    let named = [("-p", !typed.pids.is_empty()), ("-t", !typed.tids.is_empty()), ("-u", typed.uid.is_some())];
    let whole = [("-a", typed.all_cpus), ("-C", typed.cpus.is_some())];
    let (by, _) = named.into_iter().find(|(_, is_typed)| *is_typed)?;
    let (option, _) = whole.into_iter().find(|(_, is_typed)| *is_typed)?;
    Some(
        Warning::new(format!("{option} has no effect: {by} selects what to measure"))
            .advise("use only one of them"),
    )
}

/// Checks that cgroups are recorded only on whole CPUs.
///
/// # Errors
/// Fails if the scope is not a set of CPUs.
pub fn check_cgroup_scope(scope: &MeasurementScope) -> Result<()> {
    match scope {
        MeasurementScope::Cpus(_) => Ok(()),
        _ => {
            Err(Error::usage("cgroups can only be recorded on whole CPUs").try_options("add -a, or -C CPUS"))
        }
    }
}

/// Whether all of these events are persistent, so that their targets were already chosen when they were added
/// to the holder.
pub fn are_held(events: &[String]) -> bool {
    let is_held = |events: &String| events.split(',').all(|event| event.starts_with("persistent/"));
    !events.is_empty() && events.iter().all(is_held)
}

/// Returns the selected targets, or the command if no other target is selected.
///
/// # Errors
/// Fails if a process does not exist, or the list of CPUs is empty or contains none that is online.
pub fn scope(typed: &TargetOptions, host: &Host) -> Result<MeasurementScope> {
    if !typed.pids.is_empty() {
        return processes(&typed.pids, host).map(MeasurementScope::Processes);
    }
    if !typed.tids.is_empty() {
        return Ok(MeasurementScope::Threads(typed.tids.clone()));
    }
    if let Some(user) = &typed.uid {
        return Ok(MeasurementScope::User(user.clone()));
    }
    if typed.cpus.as_ref().is_some_and(CpuList::is_empty) {
        return Err(Error::usage("-C: the list of CPUs is empty").try_this("a list such as 0-3,8"));
    }
    if typed.has_cpus() {
        return Ok(MeasurementScope::Cpus(
            target::cpus(host, typed.cpus.as_ref()).map_err(launch::no_target)?,
        ));
    }
    Ok(MeasurementScope::Command)
}

/// Returns the targets of a recording: the selected ones, the command, or else the whole machine, as in perf.
/// Warns about options without effect, and about the whole machine.
///
/// # Errors
/// See [`scope`].
pub fn scope_or_machine(typed: &TargetOptions, has_command: bool, host: &Host) -> Result<MeasurementScope> {
    let scope = scope(typed, host)?;
    overridden(typed).into_iter().for_each(say::warn);
    if has_command || !matches!(scope, MeasurementScope::Command) {
        return Ok(scope);
    }
    say::warn(measures_whole_machine());
    whole_machine(host)
}

/// Returns the target if no command is given: all CPUs, as in perf.
pub fn whole_machine(host: &Host) -> Result<MeasurementScope> {
    Ok(MeasurementScope::Cpus(target::cpus(host, None).map_err(launch::no_target)?))
}
