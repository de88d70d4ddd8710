//! Options of `pmc stat`.

use std::path::PathBuf;

use clap::{ArgAction, Args};

/// Count events while a command runs, in running processes, or on whole CPUs.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmc stat -- make -j4                          the default events
  pmc stat -e cycles:u,instructions:u -- ls     chosen events, user mode
  pmc stat -a -I 1000                           the whole machine, every second
  pmc stat -r 10 -- ./bench                     ten runs, with mean and spread
  pmc stat --vs './old' --vs './new' -r 20      which command is faster, beyond noise?
  pmc stat --vs './old' --vs './new' --fail-if 'worse > 3% and p < 0.01'   in CI: exit with 1 if slower
Event syntax: docs/event-syntax.md, or `pmc list`.")]
pub struct StatArgs {
    /// The events and targets to count.
    #[command(flatten)]
    pub(crate) counted: CountArgs,

    /// Where to write the text output.
    #[command(flatten)]
    pub(crate) to: OutputFileArgs,

    /// Output options.
    #[command(flatten)]
    pub(crate) shown: StatDisplayArgs,
}

/// Count events into a file, for `pmc stat report`, `pmc script` and perf.
#[derive(Debug, Args)]
#[command(
    override_usage = "pmc stat record [OPTIONS] [COMMAND]...",
    after_help = "\
Examples:
  pmc stat record -- make -j4                   print the counts and write them to perf.data
  pmc stat record -a -I 1000 -o day.data        the whole machine, every second, until Ctrl-C
  pmc stat record --log-exit -o make.data make  counts per process and thread, for stat report --log-exit
  pmc stat report -i day.data -A                one row per CPU
  pmc stat record -o - -a sleep 1 | pmc stat report --per-socket"
)]
pub struct StatRecordArgs {
    /// The events and targets to count.
    #[command(flatten)]
    pub(crate) counted: CountArgs,

    /// Write the counts to this file; `-` is stdout
    #[arg(short = 'o', long, value_name = "FILE", default_value = "perf.data", help_heading = "Output")]
    pub(crate) output: PathBuf,

    /// Output options.
    #[command(flatten)]
    pub(crate) shown: StatDisplayArgs,
}

/// Show the counts of a recording made by `pmc stat record` or `perf stat record`.
#[derive(Debug, Args)]
#[command(override_usage = "pmc stat report [OPTIONS] [FILE]")]
pub struct StatReportArgs {
    /// Recording to read (also -i); `-` is stdin [default: stdin if it is a pipe or file, else perf.data]
    #[arg(value_name = "FILE", conflicts_with = "input")]
    pub(crate) file: Option<PathBuf>,

    /// The recording
    #[arg(short, long, value_name = "FILE", hide = true)]
    pub(crate) input: Option<PathBuf>,

    /// Where to write the text output.
    #[command(flatten)]
    pub(crate) to: OutputFileArgs,

    /// Show each thread's counts when it exits (recorded by stat --log-exit or record -s)
    #[arg(long, conflicts_with_all = ["aggregation", "log_cswitch"], help_heading = "Output", hide_short_help = true)]
    pub(crate) log_exit: bool,

    /// Show each thread's counts between context switches (recorded by stat --log-cswitch)
    #[arg(long, conflicts_with = "aggregation", help_heading = "Output", hide_short_help = true)]
    pub(crate) log_cswitch: bool,

    /// Output options.
    #[command(flatten)]
    pub(crate) shown: StatDisplayArgs,
}

/// Output file for text.
#[derive(Debug, Args)]
pub(crate) struct OutputFileArgs {
    /// Write to this file instead of stderr
    #[arg(short = 'o', long, value_name = "FILE", conflicts_with = "log_fd", help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,

    /// With -o: append to the file
    #[arg(long, help_heading = "Output", hide_short_help = true)]
    pub(crate) append: bool,
}

/// Aggregation and display of counts.
#[derive(Debug, Args)]
pub(crate) struct StatDisplayArgs {
    /// Print one row per CPU instead of the sum (with -a or -C)
    #[arg(short = 'A', long = "no-aggr", group = "aggregation", help_heading = "Rows")]
    pub(crate) no_aggr: bool,

    /// Print one row per thread
    #[arg(long, group = "aggregation", help_heading = "Rows")]
    pub(crate) per_thread: bool,

    /// Print one row per core
    #[arg(long, group = "aggregation", help_heading = "Rows")]
    pub(crate) per_core: bool,

    /// Print one row per cluster of cores
    #[arg(long, group = "aggregation", help_heading = "Rows", hide_short_help = true)]
    pub(crate) per_cluster: bool,

    /// Print one row per cache of this level (L2) [default: the last level]
    #[arg(long, value_name = "LEVEL", group = "aggregation", num_args = 0..=1, require_equals = true, default_missing_value = "", help_heading = "Rows", hide_short_help = true)]
    pub(crate) per_cache: Option<String>,

    /// Print one row per die
    #[arg(long, group = "aggregation", help_heading = "Rows", hide_short_help = true)]
    pub(crate) per_die: bool,

    /// Print one row per socket
    #[arg(long, group = "aggregation", help_heading = "Rows")]
    pub(crate) per_socket: bool,

    /// Print one row per NUMA node
    #[arg(long, group = "aggregation", help_heading = "Rows", hide_short_help = true)]
    pub(crate) per_node: bool,

    /// Print details: opened events, unscaled counts
    #[arg(short = 'v', long, action = ArgAction::Count, help_heading = "Output", hide_short_help = true)]
    pub(crate) verbose: u8,

    /// Omit the counts of the whole run; print only intervals (-I), the comparison (--vs) or the output file
    #[arg(short = 'q', long, help_heading = "Output", hide_short_help = true)]
    pub(crate) quiet: bool,

    /// Group the digits of large numbers as the locale does (default; see --no-big-num)
    #[arg(short = 'B', long, overrides_with = "no_big_num", help_heading = "Output", hide_short_help = true)]
    pub(crate) big_num: bool,

    /// Do not group digits
    #[arg(long, overrides_with = "big_num", help_heading = "Output", hide_short_help = true)]
    pub(crate) no_big_num: bool,

    /// Scale counts of multiplexed events to the full time (default; see --no-scale)
    #[arg(long, overrides_with = "no_scale", help_heading = "Output", hide_short_help = true)]
    pub(crate) scale: bool,

    /// Show raw counts
    #[arg(short = 'c', long, overrides_with = "scale", help_heading = "Output", hide_short_help = true)]
    pub(crate) no_scale: bool,

    /// Print CSV with this separator and perf's fields
    #[arg(
        short = 'x',
        long = "field-separator",
        value_name = "SEP",
        conflicts_with = "json",
        help_heading = "Output"
    )]
    pub(crate) field_separator: Option<String>,

    /// Print JSON: one object per line with perf's fields (1), or one document with numbers (2)
    #[arg(short = 'j', long, alias = "json-output", value_name = "VERSION", num_args = 0..=1, require_equals = true, default_missing_value = "1",
          value_parser = clap::value_parser!(u8).range(1..=2), help_heading = "Output")]
    pub(crate) json: Option<u8>,

    /// Write to this open descriptor instead of stderr
    #[arg(long, value_name = "FD", help_heading = "Output", hide_short_help = true)]
    pub(crate) log_fd: Option<i32>,

    /// With -I: also print totals at the end
    #[arg(long, help_heading = "Time", hide_short_help = true)]
    pub(crate) summary: bool,

    /// Do not prefix the CSV lines of totals with `summary`
    #[arg(long, help_heading = "Output", hide_short_help = true)]
    pub(crate) no_csv_summary: bool,

    /// Print one row per PMU instance instead of their sum
    #[arg(long, help_heading = "Rows", hide_short_help = true)]
    pub(crate) no_merge: bool,

    /// Print only metrics, no counts
    #[arg(long, help_heading = "Metrics", hide_short_help = true)]
    pub(crate) metric_only: bool,

    /// Metrics by name or group, such as IPC, GHz, TopdownL1 or tma_memory_bound (see pmc list metric)
    #[arg(short = 'M', long = "metrics", value_name = "NAME|GROUP,…", action = ArgAction::Append, help_heading = "Metrics")]
    pub(crate) metrics: Vec<String>,

    /// Define a metric: 'name=expression over events'
    #[arg(long = "metric", value_name = "NAME=EXPR", action = ArgAction::Append, help_heading = "Metrics", hide_short_help = true)]
    pub(crate) expressions: Vec<String>,

    /// Show how pipeline slots are used, as a top-down tree (see --td-level)
    #[arg(long, help_heading = "Metrics")]
    pub(crate) topdown: bool,

    /// Number of --topdown levels to measure; each needs more counters [default: 1]
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        hide_default_value = true,
        requires = "topdown",
        help_heading = "Metrics",
        hide_short_help = true
    )]
    pub(crate) td_level: u8,

    /// Do not count events that only metric thresholds need
    #[arg(long, help_heading = "Metrics", hide_short_help = true)]
    pub(crate) metric_no_threshold: bool,

    /// Update an OpenMetrics scrape file (with -I); without a file, print the result in OpenMetrics format
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-", help_heading = "Output", hide_short_help = true)]
    pub(crate) openmetrics: Option<PathBuf>,
}

/// What to count: events, targets, times, and repetitions of the run.
#[derive(Debug, Args)]
pub(crate) struct CountArgs {
    /// Events to count: names with qualifiers, PMU terms, groups in braces (repeatable)
    #[arg(short = 'e', long = "event", value_name = "EVENTS", action = ArgAction::Append, help_heading = "Events")]
    pub(crate) events: Vec<String>,

    /// Events by libpfm4 name, such as inst_retired:any_p:u (repeatable)
    #[arg(long, value_name = "EVENTS", action = ArgAction::Append, help_heading = "Events", hide_short_help = true)]
    pub(crate) pfm_events: Vec<String>,

    /// Count the events in this configuration file of PCP's pmdaperfevent (perfevent.conf)
    #[arg(long, value_name = "FILE", help_heading = "Events", hide_short_help = true)]
    pub(crate) perfevent_conf: Option<PathBuf>,

    /// Filter expression for the tracepoints of the preceding -e
    #[arg(long, value_name = "EXPR", action = ArgAction::Append, allow_hyphen_values = true, help_heading = "Events", hide_short_help = true)]
    pub(crate) filter: Vec<String>,

    /// Number of `-e` options before each filter. The parsed struct contains no positions, so the caller
    /// takes them from clap's matches.
    #[arg(skip)]
    pub(crate) filter_places: Vec<usize>,

    /// On hybrid machines, count only on cores of this type, such as core or atom
    #[arg(long, value_name = "KIND", help_heading = "Events", hide_short_help = true)]
    pub(crate) cputype: Option<String>,

    /// For events that several PMUs provide, count only on this PMU
    #[arg(long, value_name = "PMU", help_heading = "Events", hide_short_help = true)]
    pub(crate) pmu_filter: Option<String>,

    /// Count the events of a metric individually, not as a group
    #[arg(long, help_heading = "Metrics", hide_short_help = true)]
    pub(crate) metric_no_group: bool,

    /// Count all events of each metric, even if other metrics count the same events
    #[arg(long, help_heading = "Metrics", hide_short_help = true)]
    pub(crate) metric_no_merge: bool,

    /// Do not count child processes
    #[arg(short = 'i', long, help_heading = "Targets", hide_short_help = true)]
    pub(crate) no_inherit: bool,

    /// Show separate counts for the command (or processes), for its child processes, and the sum
    #[arg(long, conflicts_with_all = ["no_inherit", "user_kernel", "aggregation", "no_merge", "cgroups", "for_each_cgroup"], help_heading = "Rows")]
    pub(crate) children: bool,

    /// Show separate counts for user mode and kernel
    #[arg(long, conflicts_with_all = ["aggregation", "no_merge", "all_user", "all_kernel"], help_heading = "Rows", hide_short_help = true)]
    pub(crate) user_kernel: bool,

    /// Count in these running processes, by pid or name, with all their threads
    #[arg(short = 'p', long = "pid", value_name = "PID|NAME,…", value_delimiter = ',', conflicts_with_all = ["tids", "uid"], help_heading = "Targets")]
    pub(crate) pids: Vec<String>,

    /// Count in these running threads
    #[arg(
        short = 't',
        long = "tid",
        value_name = "TID,…",
        value_delimiter = ',',
        conflicts_with = "uid",
        help_heading = "Targets",
        hide_short_help = true
    )]
    pub(crate) tids: Vec<String>,

    /// Count in all processes of this user (name or uid)
    #[arg(short = 'u', long = "uid", value_name = "USER", help_heading = "Targets", hide_short_help = true)]
    pub(crate) uid: Option<String>,

    /// Count system-wide, on all CPUs
    #[arg(short = 'a', long, help_heading = "Targets")]
    pub(crate) all_cpus: bool,

    /// Count system-wide on these CPUs, such as 0-3,8
    #[arg(short = 'C', long = "cpu", value_name = "CPUS", help_heading = "Targets")]
    pub(crate) cpus: Option<String>,

    /// Count only in this cgroup; a list assigns one cgroup to each event (requires -a or -C)
    #[arg(
        short = 'G',
        long = "cgroup",
        value_name = "NAME,…",
        conflicts_with = "for_each_cgroup",
        help_heading = "Targets",
        hide_short_help = true
    )]
    pub(crate) cgroups: Option<String>,

    /// Count every event in each of these cgroups
    #[arg(long, value_name = "NAME,…", help_heading = "Targets", hide_short_help = true)]
    pub(crate) for_each_cgroup: Option<String>,

    /// Count in user mode only
    #[arg(long, conflicts_with = "all_kernel", help_heading = "Events", hide_short_help = true)]
    pub(crate) all_user: bool,

    /// Count in the kernel only
    #[arg(long, help_heading = "Events", hide_short_help = true)]
    pub(crate) all_kernel: bool,

    /// Add cache events; -dd and -ddd add more
    #[arg(short = 'd', long = "detailed", action = ArgAction::Count, help_heading = "Events")]
    pub(crate) detailed: u8,

    /// Run the command N times and show mean and spread; 0 repeats until interrupted
    #[arg(short = 'r', long = "repeat", value_name = "N", help_heading = "Runs")]
    pub(crate) repeat: Option<u32>,

    /// With -r or --vs: run the command N times without counting first
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        hide_default_value = true,
        conflicts_with = "interval",
        help_heading = "Runs"
    )]
    pub(crate) warmup: u32,

    /// Call sync(2) before each run
    #[arg(short = 'S', long, help_heading = "Runs", hide_short_help = true)]
    pub(crate) sync: bool,

    /// With -r: show a table with the time of each run
    #[arg(long, help_heading = "Runs", hide_short_help = true)]
    pub(crate) table: bool,

    /// Measure only the time, without events
    #[arg(short = 'n', long, help_heading = "Events", hide_short_help = true)]
    pub(crate) null: bool,

    /// Run this shell command before each run
    #[arg(long, visible_alias = "prepare", value_name = "COMMAND", help_heading = "Runs")]
    pub(crate) pre: Option<String>,

    /// Run this shell command after each run
    #[arg(long, value_name = "COMMAND", help_heading = "Runs", hide_short_help = true)]
    pub(crate) post: Option<String>,

    /// Print counts at this interval, in milliseconds or with a unit (1s)
    #[arg(short = 'I', long = "interval-print", value_name = "TIME", help_heading = "Time")]
    pub(crate) interval: Option<String>,

    /// With -I: stop after this many intervals
    #[arg(long, value_name = "N", requires = "interval", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Time", hide_short_help = true)]
    pub(crate) interval_count: Option<u32>,

    /// With -I: clear the screen before each interval
    #[arg(long, requires = "interval", help_heading = "Time", hide_short_help = true)]
    pub(crate) interval_clear: bool,

    /// Stop counting after this time, in milliseconds or with a unit (10s, 2m)
    #[arg(long, visible_alias = "duration", value_name = "TIME", help_heading = "Time")]
    pub(crate) timeout: Option<String>,

    /// Delay before counting, in milliseconds or with a unit (2s); -1 waits for a --control command
    #[arg(
        short = 'D',
        long,
        value_name = "TIME",
        allow_hyphen_values = true,
        help_heading = "Time",
        hide_short_help = true
    )]
    pub(crate) delay: Option<String>,

    /// Never scale counts: if there are more events than counters, spread the events over several runs
    #[arg(long, help_heading = "Runs", hide_short_help = true)]
    pub(crate) exact: bool,

    /// Compare commands, run alternately (repeatable)
    #[arg(long, value_name = "COMMAND", action = ArgAction::Append, help_heading = "Runs")]
    pub(crate) vs: Vec<String>,

    /// With --vs: exit with status 1 if this condition holds, such as 'worse > 3% and p < 0.01', and with
    /// status 2 if the runs cannot tell
    #[arg(long, value_name = "CONDITION", requires = "vs", help_heading = "Runs")]
    pub(crate) fail_if: Option<String>,

    /// With --fail-if, print the answer as annotations and a step summary for GitHub Actions, or as a JUnit
    /// report
    #[arg(long, value_name = "CI", value_parser = ["github", "junit"], requires = "fail_if", conflicts_with_all = ["json", "field_separator"], help_heading = "Runs", hide_short_help = true)]
    pub(crate) format: Option<String>,

    /// Show the command's output in every run of -r, --vs and --exact, not only in the first
    #[arg(long, help_heading = "Runs", hide_short_help = true)]
    pub(crate) show_output: bool,

    /// Record each thread's counts when it exits (to perf.data, or with `stat record` to -o FILE)
    #[arg(long, help_heading = "Output", hide_short_help = true)]
    pub(crate) log_exit: bool,

    /// Record each thread's counts between context switches and when it exits
    #[arg(long, help_heading = "Output", hide_short_help = true)]
    pub(crate) log_cswitch: bool,

    /// Serve OpenMetrics over HTTP at this address (with -I)
    #[arg(long, value_name = "ADDR", requires = "interval", help_heading = "Output", hide_short_help = true)]
    pub(crate) listen: Option<String>,

    /// Read commands (enable, disable, ping, stop) from a descriptor or FIFO: fd:CTL[,ACK] or fifo:CTL[,ACK]
    #[arg(long, value_name = "fd:…|fifo:…", help_heading = "Time", hide_short_help = true)]
    pub(crate) control: Option<String>,

    /// Whether to reserve the hardware counters, or to yield to other reservations: auto, check, require,
    /// yield, off
    #[arg(long, value_name = "POLICY", default_value = "auto", value_parser = ["auto", "check", "require", "yield", "off"], help_heading = "Events", hide_short_help = true)]
    pub(crate) reserve: String,

    /// Command to run, with its arguments
    #[arg(trailing_var_arg = true, value_name = "COMMAND", value_hint = clap::ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<std::ffi::OsString>,
}
