//! Options of `pmc latency`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Args};

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
pub struct LatencyArgs {
    /// The begin event and the end event (as in pmc record -e, including lists and patterns), or presets
    #[arg(id = "events", value_name = "EVENT")]
    pub(crate) events: Vec<String>,

    /// Filter expression for the preceding event (tracepoints only) or both events of the preceding preset
    #[arg(long, value_name = "EXPR", action = ArgAction::Append, allow_hyphen_values = true)]
    pub(crate) filter: Vec<String>,

    /// Number of events before each --filter; filled in by the caller of the parser
    #[arg(skip)]
    pub(crate) filter_places: Vec<usize>,

    /// What pairs a begin event with its end event: tid, process, cpu, or tracepoint fields; BEGIN=END if the
    /// fields have different names [default: tid]
    #[arg(short = 'k', long, value_name = "KEY,…", value_delimiter = ',')]
    pub(crate) key: Vec<String>,

    /// Nest intervals with equal keys, as for recursive functions; by default, a second begin event replaces
    /// the first
    #[arg(long)]
    pub(crate) nest: bool,

    /// Read a pmc or perf recording that contains both events; `-` is stdin
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["command", "all_cpus", "interval_print", "timeout"])]
    pub(crate) input: Option<PathBuf>,

    /// Include only this time range: FROM,TO in seconds of the recording's clock, or 10%-20%
    #[arg(long, value_name = "SPAN", requires = "input")]
    pub(crate) time: Option<String>,

    /// Measure on all CPUs
    #[arg(short = 'a', long)]
    pub(crate) all_cpus: bool,

    /// Measure on these CPUs, such as 0-3,8
    #[arg(short = 'C', long = "cpu", value_name = "CPUS")]
    pub(crate) cpus: Option<String>,

    /// Measure these running processes, by pid or name, with all their threads
    #[arg(
        short = 'p',
        long = "pid",
        value_name = "PID|NAME,…",
        value_delimiter = ',',
        conflicts_with = "tids"
    )]
    pub(crate) pids: Vec<String>,

    /// Measure these running threads
    #[arg(short = 't', long = "tid", value_name = "TID,…", value_delimiter = ',', conflicts_with = "uid")]
    pub(crate) tids: Vec<String>,

    /// Measure all processes of this user (name or uid)
    #[arg(short = 'u', long = "uid", value_name = "USER", conflicts_with = "input")]
    pub(crate) uid: Option<String>,

    /// Do not measure child processes
    #[arg(long)]
    pub(crate) no_inherit: bool,

    /// Stop after this time, in milliseconds or with a unit (30s, 5m)
    #[arg(long, visible_alias = "duration", value_name = "TIME")]
    pub(crate) timeout: Option<String>,

    /// Also print the durations once per period of this length, in milliseconds or with a unit
    #[arg(short = 'I', long, value_name = "TIME")]
    pub(crate) interval_print: Option<String>,

    /// Number of slowest intervals to show
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) slowest: usize,

    /// Show the durations over time
    #[arg(long)]
    pub(crate) heatmap: bool,

    /// Sample call chains of begin events (--call-graph auto); the slowest intervals show them
    #[arg(short = 'g')]
    pub(crate) stacks: bool,

    /// The same, with this method: auto, dwarf or fp, and the size of stack copies as in dwarf,2048
    #[arg(long, value_name = "MODE")]
    pub(crate) call_graph: Option<String>,

    /// Maximum number of frames in a call chain
    #[arg(long, value_name = "N", default_value_t = 127)]
    pub(crate) max_stack: u16,

    /// Draw the call chains of begin events as a flame graph, weighted by time (SVG; implies -g)
    #[arg(long, value_name = "FILE")]
    pub(crate) flamegraph: Option<PathBuf>,

    /// Write these call chains as folded stacks; `-` writes them to stdout instead of the text
    #[arg(long, value_name = "FILE")]
    pub(crate) folded: Option<PathBuf>,

    /// Print JSON: one object for the whole measurement; with -I, also one per period, each on its own line
    #[arg(long)]
    pub(crate) json: bool,

    /// Size of each ring buffer: pages, or bytes with B, K, M or G (a power of two)
    #[arg(short = 'm', long, value_name = "SIZE")]
    pub(crate) mmap_pages: Option<String>,

    /// Root directory of the recorded machine, for programs
    #[arg(long, value_name = "DIR")]
    pub(crate) symfs: Option<PathBuf>,

    /// Copy of the recorded machine's /proc/kallsyms
    #[arg(long, value_name = "FILE")]
    pub(crate) kallsyms: Option<PathBuf>,

    /// Kernel image with symbols (vmlinux)
    #[arg(long, value_name = "FILE")]
    pub(crate) vmlinux: Option<PathBuf>,

    /// Print details about the opened events
    #[arg(short = 'v', long, action = ArgAction::Count)]
    pub(crate) verbose: u8,

    /// Print only durations, errors and losses
    #[arg(short = 'q', long)]
    pub(crate) quiet: bool,

    /// Command to run and measure, with its arguments
    #[arg(last = true, value_name = "COMMAND", value_hint = clap::ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
}
