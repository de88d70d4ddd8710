//! `pmc sched record`: which events and options of `pmc record` record what the scheduler does.

use pmc_command::record::args::{RecordArgs, RecordPreset};
use pmc_command::sampling_options::whole_machine;
use pmc_events::counter::request::sampling::Rate;
use pmc_recording::recording::plan::RecordRequest;
use pmc_recording::recording::ring_size::RingSize;
use pmc_sys::abi::sample_type;
use pmc_sys::error::{Advice, Error, Result, Warning, say};
use pmc_sys::host::Host;
use pmc_sys::host::settings::PerfEventSettings;
use pmc_sys::sys::credentials::Credentials;

/// Tracepoints that `perf sched record` records, besides wake-ups.
const EVENTS: [&str; 5] =
    ["sched_switch", "sched_stat_runtime", "sched_process_fork", "sched_wakeup_new", "sched_migrate_task"];
/// Tracepoints that exist only in kernels with scheduler statistics.
const STATISTICS: [&str; 3] = ["sched_stat_wait", "sched_stat_sleep", "sched_stat_iowait"];

/// Returns a recording of the events of `perf sched record`, with these options. For single tasks, or without
/// the privileges for tracepoints, uses the kernel's records of context switches instead. Tracepoints on a
/// single task do not show when it gets a CPU, because that event occurs in the previous task. Samples every
/// occurrence unless the options say otherwise.
///
/// # Errors
/// Fails if the options contradict each other, or request whole CPUs or other users' tasks, which require
/// privileges.
pub fn record_request(typed: RecordArgs, host: &Host) -> Result<RecordRequest> {
    let has_targets = typed.targets.has_tasks();
    let has_cpus = typed.targets.has_cpus();
    let why = refusal_reason(host);
    let mut request = if why.is_none() && !has_targets {
        let scope = match typed.targets.cpus {
            Some(_) => None,
            None => Some(whole_machine(host)?),
        };
        let mut request =
            typed.request_with(RecordPreset { first_event: Some(tracepoints(host)), scope }, host)?;
        request.sample.options.fields |= sample_type::RAW;
        request.sample.ring.get_or_insert_with(RingSize::scheduler);
        request
    } else {
        if let Some(why) = why.clone().filter(|_| has_cpus || !has_targets && typed.command.is_empty()) {
            return Err(Error::new("cannot record scheduler events on whole CPUs").why(why).try_this(
                "run it as root, or use pmc sched record -- COMMAND to record only the command's own context switches",
            ));
        }
        let remedy = match why {
            Some(_) => {
                "run as root or with CAP_PERFMON, or set kernel.perf_event_paranoid=-1, to record them".into()
            }
            None => Advice::options(
                "without -p, -t or -u, all tasks are recorded; pmc sched timehist -p selects some",
            ),
        };
        let why = why.unwrap_or_else(|| "their wake-up events occur in other tasks".to_owned());
        let what = format!(
            "recording only when these tasks are switched in or out, without wake-ups or other tasks: {why}"
        );
        say::warn(Warning::note(what).advise(remedy));
        let preset = RecordPreset { first_event: Some("dummy:u".to_owned()), scope: None };
        let mut request = typed.request_with(preset, host)?;
        request.sample.options.fields |= sample_type::CPU;
        request.sample.options.switches = true;
        request
    };
    let rate = &mut request.sample.options.rate;
    if *rate == Rate::Default {
        *rate = Rate::Period(1);
    }
    Ok(request)
}

/// Returns the scheduler's tracepoints that this kernel has, as one event text.
fn tracepoints(host: &Host) -> String {
    let is_there = |name: &str| host.tracepoint_id("sched", name).is_ok();
    let waking = if is_there("sched_waking") { "sched_waking" } else { "sched_wakeup" };
    let statistics = STATISTICS.iter().copied().filter(|name| is_there(name));
    let names = EVENTS.iter().copied().chain([waking]).chain(statistics);
    let names: Vec<String> = names.map(|name| format!("sched:{name}")).collect();
    names.join(",")
}

/// Returns the reason why this user cannot record the scheduler's tracepoints.
fn refusal_reason(host: &Host) -> Option<String> {
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
