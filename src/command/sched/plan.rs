//! Converts the parsed options of `pmc sched` into plans without clap's types, and those of `sched record`
//! into options of `pmc record`.

use std::path::PathBuf;

use crate::cli::record::RecordArgs;
use crate::cli::sched::{MapArgs, SchedArgs, SchedCommand, SchedLatencyArgs, TimehistArgs};
use crate::cli::script::ScriptArgs;
use pmc_analysis::analysis::sched::{MapRequest, SchedLatencyRequest, TimehistRequest};
use pmc_analysis::profile::sched::latency::LatencyKey;
use pmc_command::plan;
use pmc_command::time_span::time_span;
use pmc_command::warning::CommandWarning;
use pmc_symbols::symbol::SymbolOptions;
use pmc_sys::error::{Error, Result, say};
use pmc_sys::host::Host;
use pmc_sys::host::cpulist::CpuList;
use pmc_sys::host::settings::PerfEventSettings;
use pmc_sys::sys::credentials::Credentials;
use pmc_text::terminal::Stream;
use pmc_view::sched::{MapLayout, TimehistColumns};

/// Tracepoints that `perf sched record` records, besides wake-ups.
const EVENTS: [&str; 5] =
    ["sched_switch", "sched_stat_runtime", "sched_process_fork", "sched_wakeup_new", "sched_migrate_task"];
/// Tracepoints that exist only in kernels with scheduler statistics.
const STATISTICS: [&str; 3] = ["sched_stat_wait", "sched_stat_sleep", "sched_stat_iowait"];
/// Pages per ring buffer, as in perf.
const PAGES: &str = "1024";

/// The parsed subcommand.
#[derive(Debug)]
pub(in crate::command) enum SchedPlan {
    Record(Box<RecordArgs>),
    Script(Box<ScriptArgs>),
    Show(ShownPlan),
}

/// A recording, and the view of it to show.
#[derive(Debug)]
pub(in crate::command) struct ShownPlan {
    pub(super) input: PathBuf,
    pub(super) view: SchedView,
}

/// What to show.
#[derive(Debug)]
pub(super) enum SchedView {
    /// Also the maximum number of rows.
    Latency {
        request: SchedLatencyRequest,
        limit: usize,
        json: bool,
    },
    Timehist(Box<TimehistPlan>),
    Map {
        request: MapRequest,
        layout: MapLayout,
    },
}

/// How to show a history.
#[derive(Debug)]
pub(super) struct TimehistPlan {
    pub(super) request: TimehistRequest,
    pub(super) columns: TimehistColumns,
    /// Whether to print the lines.
    pub(super) lines: bool,
    /// Whether to print each task's totals.
    pub(super) summary: bool,
    /// Maximum number of lines and, in JSON, of tasks in the totals.
    pub(super) limit: usize,
    pub(super) json: bool,
}

impl SchedPlan {
    /// # Errors
    /// Fails if an option is invalid, or if the user lacks permission for the requested recording.
    pub(in crate::command) fn new(typed: SchedArgs, host: &Host) -> Result<Self> {
        let (name, common) = match &typed.command {
            SchedCommand::Latency(typed) => (" latency", Some(&typed.common)),
            SchedCommand::Timehist(typed) => (" timehist", Some(&typed.common)),
            SchedCommand::Map(typed) => (" map", Some(&typed.common)),
            SchedCommand::Record(_) | SchedCommand::Script(_) => ("", None),
        };
        if [Some(&typed.common), common].into_iter().flatten().any(|common| common.dump_raw_trace) {
            return Err(Error::usage(format!("pmc sched{name} has no --dump-raw-trace"))
                .why("it shows scheduler events, not all records")
                .try_this("pmc script -D"));
        }
        let input = typed.input;
        let shown = |own: Option<&PathBuf>, view| {
            Self::Show(ShownPlan { input: plan::input(own.or(input.as_ref())), view })
        };
        Ok(match typed.command {
            SchedCommand::Record(record) => Self::Record(Box::new(recording(*record, host)?)),
            SchedCommand::Script(mut script) => {
                if script.file.is_none() {
                    script.input = script.input.or(input);
                }
                Self::Script(script)
            }
            SchedCommand::Latency(typed) => shown(typed.input.as_ref(), latency(&typed)?),
            SchedCommand::Timehist(typed) => shown(typed.input.as_ref(), timehist(&typed)?),
            SchedCommand::Map(typed) => shown(typed.input.as_ref(), map(&typed)?),
        })
    }
}

fn latency(typed: &SchedLatencyArgs) -> Result<SchedView> {
    let key = |name: &String| match name.trim() {
        "avg" => Ok(LatencyKey::Average),
        "max" => Ok(LatencyKey::Max),
        "switch" => Ok(LatencyKey::Switches),
        "runtime" => Ok(LatencyKey::Runtime),
        "pid" => Ok(LatencyKey::Tid),
        "p99" => Ok(LatencyKey::P99),
        name => Err(Error::usage(format!("unknown sort key {name:?}"))
            .try_this("avg, max, switch, runtime, p99 or pid")),
    };
    Ok(SchedView::Latency {
        request: SchedLatencyRequest {
            by_task: typed.pids,
            keys: typed.sort.iter().map(key).collect::<Result<_>>()?,
            cpus: typed.cpus.as_deref().map(plan::cpus).transpose()?,
        },
        limit: plan::rows(typed.limit, false, 0),
        json: typed.json,
    })
}

fn timehist(typed: &TimehistArgs) -> Result<SchedView> {
    // perf does not print names for code without symbols.
    let symbols = SymbolOptions { placeholders: false, ..plan::symbol_options(&typed.symbol_files)? };
    let has_chains = !typed.no_call_graph && !typed.summary;
    let request = TimehistRequest {
        pids: typed.pid.clone(),
        tids: typed.tid.clone(),
        cpus: typed.cpus.as_deref().map(plan::cpus).transpose()?,
        prios: priorities(typed.prio.as_deref())?,
        time: typed.time.as_deref().map(time_span).transpose()?,
        idle: typed.idle_hist,
        wakeups: typed.wakeups,
        migrations: typed.migrations,
        runners: typed.blame,
        chains: has_chains.then_some((typed.max_stack, symbols)),
    };
    let columns = TimehistColumns {
        wakeups: typed.wakeups,
        next: typed.next,
        cpu_visual: typed.cpu_visual,
        state: typed.state,
        pre_migrations: typed.pre_migrations,
        prio: typed.show_prio,
        blame: typed.blame,
        idle: typed.idle_hist,
        ..TimehistColumns::default()
    };
    Ok(SchedView::Timehist(Box::new(TimehistPlan {
        request,
        columns,
        lines: !typed.summary,
        summary: typed.summary || typed.with_summary,
        limit: plan::rows(typed.limit, false, 0),
        json: typed.json,
    })))
}

fn map(typed: &MapArgs) -> Result<SchedView> {
    let colored = typed.color_cpus.as_deref().map(plan::cpus).transpose()?;
    Ok(SchedView::Map {
        request: MapRequest {
            compact: typed.compact,
            cpus: typed.cpus.as_deref().map(plan::cpus).transpose()?,
            names: typed.task_name.clone(),
            fuzzy: typed.fuzzy_name,
        },
        layout: MapLayout {
            cpus: colored.map_or_else(Vec::new, |cpus| cpus.iter().collect()),
            tids: typed.color_pids.clone(),
            has_colour: Stream::Output.has_colour(),
        },
    })
}

/// Parses a list of the kernel's priorities, 0 to 139.
fn priorities(list: Option<&str>) -> Result<Vec<i64>> {
    let Some(list) = list else { return Ok(Vec::new()) };
    let bad =
        || Error::usage(format!("{list:?} is not a list of priorities")).try_this("a list such as 0-99,120");
    let list: CpuList = list.parse().map_err(|_| bad())?;
    let all: Vec<i64> = (0..140).filter(|prio| list.contains(*prio)).map(i64::from).collect();
    if all.is_empty() { Err(bad()) } else { Ok(all) }
}

/// Adds the events and options of `perf sched record`. For single tasks, or without the privileges for
/// tracepoints, uses the kernel's records of context switches instead. Tracepoints on a single task do not
/// show when it gets a CPU, because that event occurs in the previous task.
///
/// # Errors
/// Fails if the options request whole CPUs or other users' tasks, which require privileges.
fn recording(mut typed: RecordArgs, host: &Host) -> Result<RecordArgs> {
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
        typed.mmap_pages.get_or_insert_with(|| PAGES.to_owned());
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
    typed.count.get_or_insert_with(|| "1".to_owned());
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
