//! Options of `pmc profile`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};

use pmc_command::options::screen_options::ScreenOptions;
use pmc_command::options::settings::{RecordingSettings, ReportSettings};
use pmc_command::sampling_options::ProcessSelector;
use pmc_command::values;
use pmc_events::counter::request::sampling::{CallGraph, Rate};
use pmc_formats::export::ExportFormat;

/// Sample a command or running processes with full call chains, and show where the time went.
#[derive(Debug, Clone, Args)]
#[command(
    args_override_self = true,
    after_help = "\
Examples:
  pmc profile -- ./program              record a command, then show the profile
  pmc profile -p firefox --duration 5s  processes with that name, for five seconds
  pmc profile -a --duration 10s         the whole machine
  pmc profile -- gzip -c F >F.gz        the report goes to stderr, not to F.gz
  pmc profile -- make 2>&1 | less       the command's output, then the report
  pmc profile --html make.html -- make  a page for a colleague
Equivalent to pmc record --call-graph auto,65528 -F 999, then pmc report or pmc export, which have more options."
)]
pub struct ProfileArgs {
    /// Profile these running processes, by number or name
    #[arg(
        short = 'p',
        long = "pid",
        value_name = "PID|NAME,…",
        value_delimiter = ',',
        conflicts_with = "all_cpus"
    )]
    pub(crate) pids: Vec<ProcessSelector>,

    /// Profile everything on all CPUs
    #[arg(short = 'a', long)]
    pub(crate) all_cpus: bool,

    /// Stop after this time, in milliseconds or with a unit (10s, 2m)
    #[arg(long, visible_alias = "timeout", value_name = "TIME", value_parser = values::timeout)]
    pub(crate) duration: Option<Duration>,

    /// Sample frequency in Hz, or `max`
    #[arg(short = 'F', long = "freq", value_name = "HZ", default_value = "999", value_parser = Rate::frequency)]
    pub(crate) freq: Rate,

    /// Profile only time on a CPU, by sampling an event: cycles, or cpu-clock without hardware counters (the
    /// default with -a)
    #[arg(long, conflicts_with = "wall")]
    pub(crate) on_cpu: bool,

    /// Include waiting time, even with -a (the default for commands and processes)
    #[arg(long, conflicts_with = "event")]
    pub(crate) wall: bool,

    /// Record who wakes the waiting threads, and who runs while they wait for a CPU
    #[arg(long, conflicts_with_all = ["on_cpu", "event"])]
    pub(crate) wakers: bool,

    /// Event to sample; implies --on-cpu
    #[arg(short = 'e', long = "event", value_name = "EVENT")]
    pub(crate) event: Option<String>,

    /// Call-chain method: auto, fp, dwarf or lbr; MODE,BYTES sets the size of stack copies
    #[arg(long, value_name = "MODE", default_value = "auto,65528")]
    pub(crate) call_graph: CallGraph,

    /// Recording to write, for pmc report and perf report
    #[arg(short = 'o', long, value_name = "FILE", default_value = "perf.data")]
    pub(crate) output: PathBuf,

    /// Also write the result to this self-contained HTML page
    #[arg(long, value_name = "FILE", conflicts_with_all = ["format", "stdio"])]
    pub(crate) html: Option<PathBuf>,

    /// Also export the recording, to a file next to it: svg, folded, firefox, speedscope, pprof, callgrind, …
    /// (see pmc export)
    #[arg(long, value_name = "FORMAT", conflicts_with = "stdio")]
    pub(crate) format: Option<ExportFormat>,

    /// Print plain text even on a terminal
    #[arg(long)]
    pub(crate) stdio: bool,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub(crate) screen: ScreenOptions,

    /// Do not set environment variables that make runtimes (Python, Node.js, JVM, .NET) report the names of
    /// generated code
    #[arg(long)]
    pub(crate) no_runtime_env: bool,

    /// Print all remarks about data quality
    #[arg(short = 'v', long, action = ArgAction::Count)]
    pub(crate) verbose: u8,

    /// Print only errors and losses
    #[arg(short = 'q', long)]
    pub(crate) quiet: bool,

    /// perf's settings for the recording.
    #[command(flatten)]
    pub(crate) recording_settings: RecordingSettings,

    /// perf's settings for the report.
    #[command(flatten)]
    pub(crate) report_settings: ReportSettings,

    /// Command to run, with its arguments
    #[arg(trailing_var_arg = true, value_name = "COMMAND", value_hint = clap::ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
}
