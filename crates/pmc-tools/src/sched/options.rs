//! The options of `pmc sched` for showing a recording, and the requests that they become.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use pmc_analysis::analysis::request::TimeSpan;
use pmc_command::input::input as input_of;
use pmc_command::options::symbol_files::SymbolFiles;
use pmc_command::values::Limit;
use pmc_symbols::symbol::SymbolOptions;
use pmc_sys::error::{Error, Result};
use pmc_sys::host::cpulist::CpuList;
use pmc_text::terminal::Stream;

use super::latency::{LatencyKey, SchedLatencyRequest};
use super::map::MapRequest;
use super::timehist::{Priorities, TimehistRequest};
use super::{SchedRequest, SchedView};

/// Options before the subcommand.
#[derive(Debug, Args)]
pub struct SchedGroupOptions {
    /// Recording to read [default: perf.data]
    #[arg(short, long, value_name = "FILE")]
    pub input: Option<PathBuf>,

    #[command(flatten)]
    common: CommonSchedOptions,
}

impl SchedGroupOptions {
    /// Rejects the options of perf that pmc does not support, for a subcommand that has its own options.
    ///
    /// # Errors
    /// Fails if there is such an option.
    pub fn check(&self) -> Result<()> {
        self.common.check("pmc sched")
    }
}

/// perf's options that apply to all subcommands which show a recording.
#[derive(Debug, Args)]
struct CommonSchedOptions {
    /// No effect: pmc reads recordings of any owner
    #[arg(short, long)]
    force: bool,

    /// No effect: damage and losses are always reported
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,

    /// Not supported: pmc script -D dumps all records
    #[arg(short = 'D', long)]
    dump_raw_trace: bool,
}

impl CommonSchedOptions {
    fn check(&self, command: &str) -> Result<()> {
        if !self.dump_raw_trace {
            return Ok(());
        }
        Err(Error::usage(format!("{command} has no --dump-raw-trace"))
            .why("it shows scheduler events, not all records")
            .try_this("pmc script -D"))
    }
}

/// The subcommands that show a recording.
#[derive(Debug, Subcommand)]
pub enum SchedViewOptions {
    /// Show the delays of each task between waking and running
    Latency(SchedLatencyOptions),
    /// Show each time that a task ran, and how long it had waited
    Timehist(Box<TimehistOptions>),
    /// Show which task each CPU runs after each switch
    Map(MapOptions),
}

impl SchedViewOptions {
    /// Returns the request. `group` contains the options before the subcommand.
    ///
    /// # Errors
    /// Fails if an option is not supported, or debuginfod has no server.
    pub fn request(self, group: SchedGroupOptions) -> Result<SchedRequest> {
        let (command, common) = match &self {
            Self::Latency(typed) => ("pmc sched latency", &typed.common),
            Self::Timehist(typed) => ("pmc sched timehist", &typed.common),
            Self::Map(typed) => ("pmc sched map", &typed.common),
        };
        group.common.check(command)?;
        common.check(command)?;
        let (input, view) = match self {
            Self::Latency(typed) => (typed.input.clone(), SchedView::Latency(typed.request())),
            Self::Timehist(typed) => (typed.input.clone(), SchedView::Timehist(Box::new(typed.request()?))),
            Self::Map(typed) => (typed.input.clone(), SchedView::Map(typed.request())),
        };
        Ok(SchedRequest { input: input_of(input.or(group.input).as_ref()), view })
    }
}

/// Show the delays of each task.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmc sched latency                   per name, longest average delay first
  pmc sched latency -p -s max         per task, longest delay first
  pmc sched latency --json            delays in nanoseconds, with quantiles")]
pub struct SchedLatencyOptions {
    /// Recording to read; `-` is stdin [default: stdin if it is a pipe or file, else perf.data]
    #[arg(short, long, value_name = "FILE")]
    input: Option<PathBuf>,

    /// Show each task instead of each name
    #[arg(short, long)]
    pids: bool,

    /// Sort by these keys, highest first: avg, max, switch, runtime, p99, pid
    #[arg(
        short,
        long,
        value_name = "KEY,…",
        value_delimiter = ',',
        default_value = "avg,max,switch,runtime"
    )]
    sort: Vec<LatencyKey>,

    /// Include only delays that ended on these CPUs, such as 0-3,8
    #[arg(short = 'C', long = "cpu", alias = "CPU", value_name = "CPUS")]
    cpus: Option<CpuList>,

    /// Maximum number of rows; 0 prints all [default: all]
    #[arg(long, value_name = "N")]
    limit: Option<Limit>,

    /// Print a JSON document
    #[arg(short = 'j', long)]
    json: bool,

    #[command(flatten)]
    common: CommonSchedOptions,
}

impl SchedLatencyOptions {
    fn request(self) -> SchedLatencyRequest {
        SchedLatencyRequest {
            by_task: self.pids,
            keys: self.sort,
            cpus: self.cpus,
            limit: self.limit.map_or(usize::MAX, Limit::get),
            json: self.json,
        }
    }
}

/// Show each time that a task ran.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmc sched timehist                  one line for each time that a task ran
  pmc sched timehist -w --state       with wake-ups and the state in which the task left its CPU
  pmc sched timehist --blame          with the tasks that ran during each delay
  pmc sched timehist -S               all lines, then each task's totals
  pmc sched timehist --time 12.5,13   half a second of it")]
pub struct TimehistOptions {
    /// Recording to read; `-` is stdin [default: stdin if it is a pipe or file, else perf.data]
    #[arg(short, long, value_name = "FILE")]
    input: Option<PathBuf>,

    /// Show wake-ups
    #[arg(short, long)]
    wakeups: bool,

    /// Show migrations
    #[arg(short = 'M', long)]
    migrations: bool,

    /// Show the next task
    #[arg(short, long)]
    next: bool,

    /// Mark the CPU of each line in a column per CPU
    #[arg(short = 'V', long)]
    cpu_visual: bool,

    /// Show call chains, if recorded (default)
    #[arg(short = 'g', long, overrides_with = "no_call_graph")]
    call_graph: bool,

    /// Do not show call chains
    #[arg(short = 'G', long)]
    no_call_graph: bool,

    /// Maximum number of functions in a call chain
    #[arg(long, value_name = "FRAMES", default_value_t = 5)]
    max_stack: usize,

    /// Show the state in which each task left its CPU
    #[arg(long)]
    state: bool,

    /// Show the time between waking and migration
    #[arg(short = 'P', long)]
    pre_migrations: bool,

    /// Show priorities
    #[arg(long)]
    show_prio: bool,

    /// Show which tasks ran on the CPU during each delay
    #[arg(long)]
    blame: bool,

    /// Show only each task's totals
    #[arg(short, long, conflicts_with_all = ["wakeups", "next"])]
    summary: bool,

    /// Show all lines, then each task's totals
    #[arg(short = 'S', long)]
    with_summary: bool,

    /// Show only the times when a CPU was idle
    #[arg(short = 'I', long)]
    idle_hist: bool,

    /// Include only these processes
    #[arg(short, long, value_name = "PID,…", value_delimiter = ',')]
    pid: Vec<i32>,

    /// Include only these threads
    #[arg(short, long, value_name = "TID,…", value_delimiter = ',')]
    tid: Vec<i32>,

    /// Include only these CPUs, such as 0-3,8
    #[arg(short = 'C', long = "cpu", value_name = "CPUS")]
    cpus: Option<CpuList>,

    /// Include only tasks with these kernel priorities, such as 0-99,120
    #[arg(long, value_name = "PRIO,…")]
    prio: Option<Priorities>,

    /// Include only this time range: FROM,TO in seconds of the recording's clock, or 10%-20%
    #[arg(long, value_name = "SPAN")]
    time: Option<TimeSpan>,

    /// Maximum number of lines; with --json, also of tasks in the totals; 0 prints all [default: all]
    #[arg(long, value_name = "N")]
    limit: Option<Limit>,

    /// Print one JSON object per line
    #[arg(short = 'j', long)]
    json: bool,

    #[command(flatten)]
    symbol_files: SymbolFiles,

    #[command(flatten)]
    common: CommonSchedOptions,
}

impl TimehistOptions {
    fn request(self) -> Result<TimehistRequest> {
        // perf does not print names for code without symbols.
        let symbols = SymbolOptions { placeholders: false, ..self.symbol_files.symbol_options()? };
        let has_chains = !self.no_call_graph && !self.summary;
        Ok(TimehistRequest {
            pids: self.pid.into_iter().collect(),
            tids: self.tid.into_iter().collect(),
            cpus: self.cpus,
            priorities: self.prio,
            time: self.time,
            idle: self.idle_hist,
            wakeups: self.wakeups,
            migrations: self.migrations,
            chains: has_chains.then_some((self.max_stack, symbols)),
            next: self.next,
            cpu_visual: self.cpu_visual,
            state: self.state,
            pre_migrations: self.pre_migrations,
            show_prio: self.show_prio,
            blame: self.blame,
            lines: !self.summary,
            summary: self.summary || self.with_summary,
            limit: self.limit.map_or(usize::MAX, Limit::get),
            json: self.json,
        })
    }
}

/// Show which task each CPU runs.
#[derive(Debug, Args)]
pub struct MapOptions {
    /// Recording to read; `-` is stdin [default: stdin if it is a pipe or file, else perf.data]
    #[arg(short, long, value_name = "FILE")]
    input: Option<PathBuf>,

    /// Show a column only for CPUs that have switched
    #[arg(long)]
    compact: bool,

    /// Show only switches on these CPUs
    #[arg(long, value_name = "CPUS")]
    cpus: Option<CpuList>,

    /// Highlight these CPUs
    #[arg(long, value_name = "CPUS")]
    color_cpus: Option<CpuList>,

    /// Highlight these threads
    #[arg(long, value_name = "TID,…", value_delimiter = ',')]
    color_pids: Vec<i32>,

    /// Show only switches of tasks with these names
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    task_name: Vec<String>,

    /// Match parts of names
    #[arg(long, requires = "task_name")]
    fuzzy_name: bool,

    #[command(flatten)]
    common: CommonSchedOptions,
}

impl MapOptions {
    fn request(self) -> MapRequest {
        MapRequest {
            compact: self.compact,
            cpus: self.cpus,
            names: self.task_name,
            fuzzy: self.fuzzy_name,
            marked_cpus: self.color_cpus.unwrap_or_default(),
            marked_tids: self.color_pids,
            has_colour: Stream::Output.has_colour(),
        }
    }
}
