//! Options of `pmc sched`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::record::RecordArgs;
use super::script::ScriptArgs;
use pmc_command::options::symbol_files::SymbolFiles;

/// Record and explain what the scheduler does: which tasks wait for a CPU, how long, and which run meanwhile.
#[derive(Debug, Args)]
#[command(
    infer_subcommands = true,
    after_help = "\
Examples:
  pmc sched record -- make            record the scheduler on all CPUs while make runs
  pmc sched latency                   which tasks wait longest for a CPU, when, and which run meanwhile
  pmc sched timehist -w --state       each time that a task ran, with wake-ups
  pmc sched map                       which CPU runs which task
Without privileges, record sees only the command's own tasks: times on and off CPUs, but no wake-ups.
More: docs/sched.md."
)]
pub struct SchedArgs {
    /// Recording to read [default: perf.data]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub(crate) common: CommonSchedOptions,

    /// The subcommand.
    #[command(subcommand)]
    pub(crate) command: SchedCommand,
}

/// perf's options that apply to all subcommands which show a recording.
#[derive(Debug, Args)]
pub(crate) struct CommonSchedOptions {
    /// No effect: pmc reads recordings of any owner
    #[arg(short, long)]
    pub(crate) force: bool,

    /// No effect: damage and losses are always reported
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,

    /// Not supported: pmc script -D dumps all records
    #[arg(short = 'D', long)]
    pub(crate) dump_raw_trace: bool,
}

/// The subcommands: one records, the others show a recording.
#[derive(Debug, Subcommand)]
pub(crate) enum SchedCommand {
    /// Record the scheduler's events; options as for pmc record
    Record(Box<RecordArgs>),
    /// Show the delays of each task between waking and running
    Latency(SchedLatencyArgs),
    /// Show each time that a task ran, and how long it had waited
    Timehist(Box<TimehistArgs>),
    /// Show which task each CPU runs after each switch
    Map(MapArgs),
    /// Print the events one by one; options as for pmc script
    Script(Box<ScriptArgs>),
}

/// Show the delays of each task.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmc sched latency                   per name, longest average delay first
  pmc sched latency -p -s max         per task, longest delay first
  pmc sched latency --json            delays in nanoseconds, with quantiles")]
pub(crate) struct SchedLatencyArgs {
    /// Recording to read; `-` is stdin [default: stdin if it is a pipe or file, else perf.data]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,

    /// Show each task instead of each name
    #[arg(short, long)]
    pub(crate) pids: bool,

    /// Sort by these keys, highest first: avg, max, switch, runtime, p99, pid
    #[arg(
        short,
        long,
        value_name = "KEY,…",
        value_delimiter = ',',
        default_value = "avg,max,switch,runtime"
    )]
    pub(crate) sort: Vec<String>,

    /// Include only delays that ended on these CPUs, such as 0-3,8
    #[arg(short = 'C', long = "cpu", alias = "CPU", value_name = "CPUS")]
    pub(crate) cpus: Option<String>,

    /// Maximum number of rows; 0 prints all [default: all]
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,

    /// Print a JSON document
    #[arg(short = 'j', long)]
    pub(crate) json: bool,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub(crate) common: CommonSchedOptions,
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
pub(crate) struct TimehistArgs {
    /// Recording to read; `-` is stdin [default: stdin if it is a pipe or file, else perf.data]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,

    /// Show wake-ups
    #[arg(short, long)]
    pub(crate) wakeups: bool,

    /// Show migrations
    #[arg(short = 'M', long)]
    pub(crate) migrations: bool,

    /// Show the next task
    #[arg(short, long)]
    pub(crate) next: bool,

    /// Mark the CPU of each line in a column per CPU
    #[arg(short = 'V', long)]
    pub(crate) cpu_visual: bool,

    /// Show call chains, if recorded (default)
    #[arg(short = 'g', long, overrides_with = "no_call_graph")]
    pub(crate) call_graph: bool,

    /// Do not show call chains
    #[arg(short = 'G', long)]
    pub(crate) no_call_graph: bool,

    /// Maximum number of functions in a call chain
    #[arg(long, value_name = "FRAMES", default_value_t = 5)]
    pub(crate) max_stack: usize,

    /// Show the state in which each task left its CPU
    #[arg(long)]
    pub(crate) state: bool,

    /// Show the time between waking and migration
    #[arg(short = 'P', long)]
    pub(crate) pre_migrations: bool,

    /// Show priorities
    #[arg(long)]
    pub(crate) show_prio: bool,

    /// Show which tasks ran on the CPU during each delay
    #[arg(long)]
    pub(crate) blame: bool,

    /// Show only each task's totals
    #[arg(short, long, conflicts_with_all = ["wakeups", "next"])]
    pub(crate) summary: bool,

    /// Show all lines, then each task's totals
    #[arg(short = 'S', long)]
    pub(crate) with_summary: bool,

    /// Show only the times when a CPU was idle
    #[arg(short = 'I', long)]
    pub(crate) idle_hist: bool,

    /// Include only these processes
    #[arg(short, long, value_name = "PID,…", value_delimiter = ',')]
    pub(crate) pid: Vec<i32>,

    /// Include only these threads
    #[arg(short, long, value_name = "TID,…", value_delimiter = ',')]
    pub(crate) tid: Vec<i32>,

    /// Include only these CPUs, such as 0-3,8
    #[arg(short = 'C', long = "cpu", value_name = "CPUS")]
    pub(crate) cpus: Option<String>,

    /// Include only tasks with these kernel priorities, such as 0-99,120
    #[arg(long, value_name = "PRIO,…")]
    pub(crate) prio: Option<String>,

    /// Include only this time range: FROM,TO in seconds of the recording's clock, or 10%-20%
    #[arg(long, value_name = "SPAN")]
    pub(crate) time: Option<String>,

    /// Maximum number of lines; with --json, also of tasks in the totals; 0 prints all [default: all]
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,

    /// Print one JSON object per line
    #[arg(short = 'j', long)]
    pub(crate) json: bool,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub(crate) symbol_files: SymbolFiles,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub(crate) common: CommonSchedOptions,
}

/// Show which task each CPU runs.
#[derive(Debug, Args)]
pub(crate) struct MapArgs {
    /// Recording to read; `-` is stdin [default: stdin if it is a pipe or file, else perf.data]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,

    /// Show a column only for CPUs that have switched
    #[arg(long)]
    pub(crate) compact: bool,

    /// Show only switches on these CPUs
    #[arg(long, value_name = "CPUS")]
    pub(crate) cpus: Option<String>,

    /// Highlight these CPUs
    #[arg(long, value_name = "CPUS")]
    pub(crate) color_cpus: Option<String>,

    /// Highlight these threads
    #[arg(long, value_name = "TID,…", value_delimiter = ',')]
    pub(crate) color_pids: Vec<i32>,

    /// Show only switches of tasks with these names
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) task_name: Vec<String>,

    /// Match parts of names
    #[arg(long, requires = "task_name")]
    pub(crate) fuzzy_name: bool,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub(crate) common: CommonSchedOptions,
}
