//! The options of `pmc latency`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};

use pmc_analysis::analysis::request::TimeSpan;
use pmc_command::options::filter_places::FilterPlaces;
use pmc_command::sampling_options::TargetOptions;
use pmc_command::values;
use pmc_events::counter::request::sampling::CallGraph;
use pmc_recording::recording::ring_size::RingSize;
use pmc_sys::error::Result;
use pmc_text::units::MS;

use super::rules::KeyPair;

/// Measure the time between two events: its distribution, the longest intervals, and where they begin.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmc latency syscall:fsync -p 1234              how long fsync takes in a process
  pmc latency func:./server:handle_request -p 1234
                                                 calls of a function, from entry to return
  pmc latency runq --timeout 10s                 how long threads wait for a CPU
  pmc latency block --heatmap --timeout 10s      disk requests, with durations over time
  pmc latency runq block --timeout 10s           both
  pmc latency irq:softirq_raise irq:softirq_entry -k cpu,vec -a --timeout 5s
  pmc latency sched:sched_waking sched:sched_switch -k pid=next_pid -a -- make
  pmc latency syscall:read -g --flamegraph reads.svg -- ./program
  pmc latency syscall:read -i perf.data          from a pmc or perf recording
Presets: block, runq, irq, softirq, fault, syscall:NAME, func:PATH:NAME.
docs/latency.md explains keys, columns and numbers.")]
pub struct LatencyOptions {
    #[command(flatten)]
    pub(super) filter_places: FilterPlaces,

    /// The begin event and the end event (as in pmc record -e, including lists and patterns), or presets
    #[arg(id = "events", value_name = "EVENT")]
    pub(super) events: Vec<String>,

    /// Filter expression for the preceding event (tracepoints only) or both events of the preceding preset
    #[arg(long, value_name = "EXPR", action = ArgAction::Append, allow_hyphen_values = true)]
    pub(super) filter: Vec<String>,

    /// What pairs a begin event with its end event: tid, process, cpu, or tracepoint fields; BEGIN=END if the
    /// fields have different names [default: tid]
    #[arg(short = 'k', long, value_name = "KEY,…", value_delimiter = ',')]
    pub(super) key: Vec<KeyPair>,

    /// Nest intervals with equal keys, as for recursive functions; by default, a second begin event replaces
    /// the first
    #[arg(long)]
    pub(super) nest: bool,

    /// Read a pmc or perf recording that contains both events; `-` is stdin
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["command", "all_cpus", "uid", "interval_print", "timeout"])]
    pub(super) input: Option<PathBuf>,

    /// Include only this time range: FROM,TO in seconds of the recording's clock, or 10%-20%
    #[arg(long, value_name = "SPAN", requires = "input")]
    pub(super) time: Option<TimeSpan>,

    #[command(flatten)]
    pub(super) targets: TargetOptions,

    /// Do not measure child processes
    #[arg(long, help_heading = "Targets")]
    pub(super) no_inherit: bool,

    /// Stop after this time, in milliseconds or with a unit (30s, 5m)
    #[arg(long, visible_alias = "duration", value_name = "TIME", value_parser = values::timeout)]
    pub(super) timeout: Option<Duration>,

    /// Also print the durations at this interval, in milliseconds or with a unit
    #[arg(short = 'I', long, value_name = "TIME", value_parser = period)]
    pub(super) interval_print: Option<Duration>,

    /// Number of slowest intervals to show
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(super) slowest: usize,

    /// Show the durations over time
    #[arg(long)]
    pub(super) heatmap: bool,

    /// Sample call chains of begin events (--call-graph auto); the slowest intervals show them
    #[arg(short = 'g')]
    pub(super) stacks: bool,

    /// Sample call chains with this method: auto, dwarf or fp; dwarf,2048 sets the size of stack copies
    #[arg(long, value_name = "MODE")]
    pub(super) call_graph: Option<CallGraph>,

    /// Maximum number of frames in a call chain
    #[arg(long, value_name = "N", default_value_t = 127)]
    pub(super) max_stack: u16,

    /// Draw the call chains of begin events as a flame graph, weighted by time (SVG; implies -g)
    #[arg(long, value_name = "FILE")]
    pub(super) flamegraph: Option<PathBuf>,

    /// Write the call chains of begin events as folded stacks; `-` writes them to stdout instead of the text
    #[arg(long, value_name = "FILE")]
    pub(super) folded: Option<PathBuf>,

    /// Print JSON: one object for the whole measurement; with -I, also one per period, each on its own line
    #[arg(long)]
    pub(super) json: bool,

    /// Size of each ring buffer: pages, or bytes with B, K, M or G (a power of two)
    #[arg(short = 'm', long, value_name = "SIZE")]
    pub(super) mmap_pages: Option<RingSize>,

    /// Root directory of the recorded machine, for programs
    #[arg(long, value_name = "DIR")]
    pub(super) symfs: Option<PathBuf>,

    /// Copy of the recorded machine's /proc/kallsyms
    #[arg(long, value_name = "FILE")]
    pub(super) kallsyms: Option<PathBuf>,

    /// Kernel image with symbols (vmlinux)
    #[arg(long, value_name = "FILE")]
    pub(super) vmlinux: Option<PathBuf>,

    /// Print details about the opened events
    #[arg(short = 'v', long, action = ArgAction::Count)]
    pub(super) verbose: u8,

    /// Print only durations, errors and losses
    #[arg(short = 'q', long)]
    pub(super) quiet: bool,

    /// Command to run and measure, with its arguments
    #[arg(last = true, value_name = "COMMAND", value_hint = clap::ValueHint::CommandWithArguments)]
    pub(super) command: Vec<OsString>,
}

/// Parses the time between two printed lines.
fn period(text: &str) -> Result<Duration> {
    values::duration(text, MS, 10 * MS)
}
