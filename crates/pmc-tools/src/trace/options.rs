//! Options of `pmc trace`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{ArgAction, Args};

use super::selection::CallList;
use pmc_command::sampling_options::TargetOptions;
use pmc_command::values::{self, Limit, Typed, one_of};
use pmc_events::counter::request::sampling::CallGraph;
use pmc_recording::recording::plan::DelayOrRanges;
use pmc_recording::recording::ring_size::RingSize;
use pmc_sys::error::Error;
use pmc_text::units::MS;

/// The tables of `--summary`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SummaryMode {
    /// One for each thread, and one for all threads.
    Thread,
    /// Only one for all threads.
    Total,
}

const SUMMARY_MODES: &[(&str, SummaryMode)] =
    &[("thread", SummaryMode::Thread), ("total", SummaryMode::Total)];

/// The two meanings of `--duration`.
#[derive(Debug, Clone, Copy)]
pub(super) enum TraceDuration {
    /// With a unit: how long to trace.
    Trace(Duration),
    /// A bare number, in milliseconds, as in perf: the minimum duration of the calls to show.
    Calls(Duration),
}

impl FromStr for TraceDuration {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text.parse::<f64>() {
            Ok(_) => min_duration(text).map(Self::Calls),
            Err(_) => values::timeout(text).map(Self::Trace),
        }
    }
}

/// Show the system calls of a command, running processes or the whole machine.
#[derive(Debug, Clone, Args)]
#[command(
    args_override_self = true,
    after_help = "\
Examples:
  pmc trace -- ls                       each system call of a command, as it returns
  pmc trace -s -- make                  counts, errors and times of all calls, per thread and in total
  pmc trace -c -p 1234 --timeout 10s    one table for a running process, like strace -c
  pmc trace -e %file --failure -- sh    failed calls that take a path
  pmc trace -e '!futex' -a              all calls of the machine except futex
  pmc trace --min-duration 10ms -p nginx  calls that take 10 ms or longer
  pmc trace -s -i perf.data             calls in a recording (pmc trace record, perf trace record)
docs/trace.md explains the lines and the columns."
)]
pub struct TraceOptions {
    /// Trace only these calls: names, %CLASS as in strace, /REGEX/, NAME*; a leading ! excludes them
    #[arg(short = 'e', long = "expr", visible_alias = "event", value_name = "CALL,…", action = ArgAction::Append, help_heading = "Calls")]
    pub(super) calls: Vec<CallList>,

    /// Show only calls that fail
    #[arg(long, help_heading = "Calls")]
    pub(super) failure: bool,

    /// Show only calls that take at least this long, in milliseconds or with a unit (50us)
    #[arg(long, value_name = "TIME", value_parser = min_duration, help_heading = "Calls")]
    pub(super) min_duration: Option<Duration>,

    /// Print only tables: one of each thread's calls, and one of all calls
    #[arg(short = 's', long, conflicts_with_all = ["with_summary", "summary_only"], help_heading = "Tables")]
    pub(super) summary: bool,

    /// Print each call, then the tables of -s
    #[arg(short = 'S', long, conflicts_with = "summary_only", help_heading = "Tables")]
    pub(super) with_summary: bool,

    /// Print only one table of all calls, with the columns of strace -c
    #[arg(short = 'c', long, help_heading = "Tables")]
    pub(super) summary_only: bool,

    /// Print timestamps of the clock, in milliseconds, instead of times since the first call
    #[arg(short = 'T', long, help_heading = "Calls", hide_short_help = true)]
    pub(super) time: bool,

    /// Maximum number of bytes to print of a string or buffer; paths are printed in full
    #[arg(long, value_name = "BYTES", default_value_t = 32, value_parser = clap::value_parser!(u64).range(..=16 << 20), help_heading = "Calls", hide_short_help = true)]
    pub(super) string_limit: u64,

    /// Stop after this many calls
    #[arg(long, value_name = "N", help_heading = "Duration", hide_short_help = true)]
    pub(super) max_events: Option<u64>,

    /// Tables that -s prints: one per thread plus one for all threads, or only the latter
    #[arg(long, value_name = "MODE", default_value = "thread", value_parser = one_of(SUMMARY_MODES), help_heading = "Tables", hide_short_help = true)]
    pub(super) summary_mode: SummaryMode,

    /// Maximum number of rows of each table, and of calls printed with --json; 0 prints all [default: all]
    #[arg(long, visible_alias = "limit", value_name = "N", help_heading = "Tables", hide_short_help = true)]
    pub(super) max_summary: Option<Limit>,

    /// In tables, show how often each error occurred
    #[arg(long, help_heading = "Tables")]
    pub(super) errno_summary: bool,

    /// Print the stack of each call, after tracing has ended; short for --call-graph auto
    #[arg(short = 'g', help_heading = "Calls")]
    pub(super) stacks: bool,

    /// Print the stack of each call, unwound with this method: auto, dwarf or fp; dwarf,16384 sets the size
    /// of stack copies
    #[arg(long, value_name = "MODE", help_heading = "Calls", hide_short_help = true)]
    pub(super) call_graph: Option<CallGraph>,

    /// Maximum number of frames in a stack
    #[arg(long, value_name = "N", default_value_t = 127, help_heading = "Calls", hide_short_help = true)]
    pub(super) max_stack: usize,

    #[command(flatten)]
    pub(super) targets: TargetOptions,

    /// Trace only processes in this cgroup (with -a)
    #[arg(
        short = 'G',
        long = "cgroup",
        value_name = "NAME",
        help_heading = "Targets",
        hide_short_help = true
    )]
    pub(super) cgroup: Option<String>,

    /// Exclude these threads
    #[arg(
        long,
        value_name = "TID,…",
        value_delimiter = ',',
        help_heading = "Targets",
        hide_short_help = true
    )]
    pub(super) filter_pids: Vec<u32>,

    /// Do not trace child processes
    #[arg(long, help_heading = "Targets", hide_short_help = true)]
    pub(super) no_inherit: bool,

    /// Read this recording instead of tracing; `-` reads standard input
    #[arg(short = 'i', long, value_name = "FILE", conflicts_with_all = ["pids", "tids", "uid", "all_cpus", "cpus", "command"], help_heading = "Targets")]
    pub(super) input: Option<PathBuf>,

    /// Write to this file instead of stderr (stdout if no command is run)
    #[arg(short = 'o', long, value_name = "FILE", help_heading = "Output")]
    pub(super) output: Option<PathBuf>,

    /// Delay before tracing, in milliseconds or with a unit (2s)
    #[arg(short = 'D', long, value_name = "TIME", help_heading = "Duration", hide_short_help = true)]
    pub(super) delay: Option<DelayOrRanges>,

    /// Stop after this time, in milliseconds or with a unit (10s, 2m)
    #[arg(long, value_name = "TIME", value_parser = values::timeout, help_heading = "Duration")]
    pub(super) timeout: Option<Duration>,

    /// With a unit (10s), the same as --timeout; a bare number is perf's option and means --min-duration
    #[arg(long, value_name = "TIME", help_heading = "Duration", hide_short_help = true)]
    pub(super) duration: Option<Typed<TraceDuration>>,

    /// Size of each ring buffer: pages, or bytes with B, K, M or G (a power of two) [default: 8M]
    #[arg(short = 'm', long, value_name = "SIZE", help_heading = "Resources", hide_short_help = true)]
    pub(super) mmap_pages: Option<RingSize>,

    /// Real-time priority of pmc, which avoids losing calls on a busy machine; 0: none [default: 1, if
    /// permitted]
    #[arg(short = 'r', long, value_name = "PRIORITY", value_parser = clap::value_parser!(i32).range(0..=99), help_heading = "Resources", hide_short_help = true)]
    pub(super) realtime: Option<i32>,

    /// Print one JSON object per call; with -s or -c, one document
    #[arg(long, help_heading = "Output")]
    pub(super) json: bool,

    /// Print details about the opened events
    #[arg(short = 'v', long, action = ArgAction::Count, help_heading = "Output", hide_short_help = true)]
    pub(super) verbose: u8,

    /// Print only calls, errors and losses
    #[arg(short = 'q', long, help_heading = "Output", hide_short_help = true)]
    pub(super) quiet: bool,

    /// Command to run and trace, with its arguments
    #[arg(trailing_var_arg = true, value_name = "COMMAND", value_hint = clap::ValueHint::CommandWithArguments)]
    pub(super) command: Vec<OsString>,
}

/// Parses `--min-duration`, by default in milliseconds.
fn min_duration(text: &str) -> Result<Duration, Error> {
    values::duration(text, MS, 0)
}
