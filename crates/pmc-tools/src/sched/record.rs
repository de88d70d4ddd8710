//! `pmc sched record`: which events and options of `pmc record` record what the scheduler does.

use pmc_command::record::args::RecordArgs;
use pmc_command::warning::CommandWarning;
use pmc_events::counter::request::sampling::Rate;
use pmc_recording::recording::ring_size::RingSize;
use pmc_sys::error::{Error, Result, say};
use pmc_sys::host::Host;
use pmc_sys::host::settings::PerfEventSettings;
use pmc_sys::sys::credentials::Credentials;

/// Tracepoints that `perf sched record` records, besides wake-ups.
const EVENTS: [&str; 5] =
    ["sched_switch", "sched_stat_runtime", "sched_process_fork", "sched_wakeup_new", "sched_migrate_task"];
/// Tracepoints that exist only in kernels with scheduler statistics.
const STATISTICS: [&str; 3] = ["sched_stat_wait", "sched_stat_sleep", "sched_stat_iowait"];

/// Adds the events and options of `perf sched record` to those on the command line. For single tasks, or
/// without the privileges for tracepoints, uses the kernel's records of context switches instead. Tracepoints
/// on a single task do not show when it gets a CPU, because that event occurs in the previous task.
///
/// # Errors
/// Fails if the options request whole CPUs or other users' tasks, which require privileges.
pub fn record_args(mut typed: RecordArgs, host: &Host) -> Result<RecordArgs> {
    let has_targets = !(typed.pids.is_empty() && typed.tids.is_empty()) || typed.uid.is_some();
    let has_cpus = typed.all_cpus || typed.cpus.is_some();
    let is_there = |name: &str| host.tracepoint_id("sched", name).is_ok();
    let why = obstacle(host);
    if why.is_none() && !has_targets {
        let waking = if is_there("sched_waking") { "sched_waking" } else { "sched_wakeup" };
        let statistics = STATISTICS.iter().copied().filter(|name| is_there(name));
        let names = EVENTS.iter().copied().chain([waking]).chain(statistics);
        let names: Vec<String> = names.map(|name| format!("sched:{name}")).collect();
        prepend(&mut typed, names.join(","));
        typed.all_cpus |= typed.cpus.is_none();
        typed.raw_samples = true;
        let sizes = typed.mmap_pages.get_or_insert_default();
        sizes.ring.get_or_insert_with(RingSize::scheduler);
        return Ok(typed);
    }
    if let Some(why) = why.clone().filter(|_| has_cpus || !has_targets && typed.command.is_empty()) {
        return Err(Error::new("cannot record scheduler events on whole CPUs")
            .why(why)
            .try_this("run it as root, or use pmc sched record -- COMMAND to record only the command's own context switches"));
    }
    let remedy = match why {
        Some(_) => "run as root or with CAP_PERFMON, or set kernel.perf_event_paranoid=-1, to record them",
        None => "without -p, -t or -u, all tasks are recorded; pmc sched timehist -p selects some",
    };
    let why = why.unwrap_or_else(|| "their wake-up events occur in other tasks".to_owned());
    say::warn(CommandWarning::SwitchesOnly { why, remedy });
    prepend(&mut typed, "dummy:u".to_owned());
    typed.switch_events = true;
    typed.sample_cpu = true;
    Ok(typed)
}

/// Adds events in front of the others. Samples every occurrence unless the options say otherwise.
fn prepend(typed: &mut RecordArgs, events: String) {
    typed.events.insert(0, events);
    // Filters refer to events by position, so shift the positions.
    typed.filter_places.iter_mut().for_each(|place| *place += 1);
    typed.count.get_or_insert(Rate::Period(1));
}

/// Returns the reason why this user cannot record the scheduler's tracepoints.
fn obstacle(host: &Host) -> Option<String> {
    let settings = PerfEventSettings::read(host);
    if !settings.allowance(Credentials::own().perfmon()).raw_tracepoint {
        let level = settings.paranoid.map_or_else(|| "missing".to_owned(), |level| level.to_string());
        return Some(format!(
            "kernel.perf_event_paranoid is {level}, and this user has no CAP_PERFMON: tracepoints need -1 or \
             the capability"
        ));
    }
    host.tracepoint_id("sched", "sched_switch").err().map(|error| error.to_string())
}
