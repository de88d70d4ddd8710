//! Options of `pmc stat`, `pmc stat record` and `pmc stat report`, and their conversion to requests.
//!
//! The conversion checks the rules that clap cannot express. It does not open any files. All errors are usage
//! errors (exit status 2).

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};

use pmc_analysis::analysis::counts::{LoggedCounts, StatReportRequest};
use pmc_analysis::profile::counts::{Aggregation, CacheLevel};
use pmc_analysis::profile::gate::GateCondition;
use pmc_analysis::profile::metrics::RequestedMetrics;
use pmc_analysis::profile::metrics::library::UserMetric;
use pmc_command::options::filter_places::FilterPlaces;
use pmc_command::options::recording_file::RecordingFile;
use pmc_command::sampling_options::{self, TargetOptions, overridden, pfm_events};
use pmc_command::values::{self, one_of};
use pmc_command::warning::measures_whole_machine;
use pmc_events::counter::Levels;
use pmc_events::counter::metric_events::MetricEventGrouping;
use pmc_events::counter::reservation::Policy;
use pmc_recording::recording::control::ControlChannel;
use pmc_recording::recording::plan::{Delay, MeasurementScope};
use pmc_recording::recording::stat_request::{
    CgroupChoice, ComparedCommand, EventSelection, Repeat, StatRequest, StatTiming,
};
use pmc_sys::error::{Error, Result};
use pmc_sys::host::Host;
use pmc_text::terminal::Stream;
use pmc_view::gate::CiFormat;
use pmc_view::stat::{StatDestination, StatFormat, StatLayout};

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
    #[command(flatten)]
    pub(crate) recording: RecordingFile,

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
    pub(crate) per_cache: Option<CacheLevel>,

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
        value_parser = separator,
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
    #[arg(short = 'M', long = "metrics", value_name = "NAME|GROUP,…", value_delimiter = ',', action = ArgAction::Append, help_heading = "Metrics")]
    pub(crate) metrics: Vec<String>,

    /// Define a metric: 'name=expression over events'
    #[arg(long = "metric", value_name = "NAME=EXPR", action = ArgAction::Append, help_heading = "Metrics", hide_short_help = true)]
    pub(crate) expressions: Vec<UserMetric>,

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
#[command(mut_args(|option| {
    let is_rare = matches!(option.get_id().as_str(), "tids" | "uid");
    if is_rare { option.hide_short_help(true) } else { option }
}))]
pub(crate) struct CountArgs {
    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub(crate) filter_places: FilterPlaces,

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

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub(crate) targets: TargetOptions,

    /// Count only in this cgroup; a list assigns one cgroup to each event (requires -a or -C)
    #[arg(
        short = 'G',
        long = "cgroup",
        value_name = "NAME,…",
        conflicts_with = "for_each_cgroup",
        value_parser = cgroups_in_order,
        help_heading = "Targets",
        hide_short_help = true
    )]
    pub(crate) cgroups: Option<CgroupChoice>,

    /// Count every event in each of these cgroups
    #[arg(long, value_name = "NAME,…", value_parser = each_cgroup, help_heading = "Targets", hide_short_help = true)]
    pub(crate) for_each_cgroup: Option<CgroupChoice>,

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
    #[arg(short = 'I', long = "interval-print", value_name = "TIME", value_parser = values::timeout, help_heading = "Time")]
    pub(crate) interval: Option<Duration>,

    /// With -I: stop after this many intervals
    #[arg(long, value_name = "N", requires = "interval", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Time", hide_short_help = true)]
    pub(crate) interval_count: Option<u32>,

    /// With -I: clear the screen before each interval
    #[arg(long, requires = "interval", help_heading = "Time", hide_short_help = true)]
    pub(crate) interval_clear: bool,

    /// Stop counting after this time, in milliseconds or with a unit (10s, 2m)
    #[arg(long, visible_alias = "duration", value_name = "TIME", value_parser = values::timeout, help_heading = "Time")]
    pub(crate) timeout: Option<Duration>,

    /// Delay before counting, in milliseconds or with a unit (2s); -1 waits for a --control command
    #[arg(
        short = 'D',
        long,
        value_name = "TIME",
        allow_hyphen_values = true,
        help_heading = "Time",
        hide_short_help = true
    )]
    pub(crate) delay: Option<Delay>,

    /// Never scale counts: if there are more events than counters, spread the events over several runs
    #[arg(long, help_heading = "Runs", hide_short_help = true)]
    pub(crate) exact: bool,

    /// Compare commands, run alternately (repeatable)
    #[arg(long, value_name = "COMMAND", action = ArgAction::Append, help_heading = "Runs")]
    pub(crate) vs: Vec<String>,

    /// With --vs: exit with status 1 if this condition holds, such as 'worse > 3% and p < 0.01', and with
    /// status 2 if the runs cannot tell
    #[arg(long, value_name = "CONDITION", requires = "vs", help_heading = "Runs")]
    pub(crate) fail_if: Option<GateCondition>,

    /// With --fail-if, print the result as annotations and a step summary for GitHub Actions, or as a JUnit
    /// report
    #[arg(long, value_name = "CI", value_parser = one_of(CiFormat::WORDS), requires = "fail_if", conflicts_with_all = ["json", "field_separator"], help_heading = "Runs", hide_short_help = true)]
    pub(crate) format: Option<CiFormat>,

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
    pub(crate) control: Option<ControlChannel>,

    /// Whether to reserve the hardware counters, or to yield to other reservations: auto, check, require,
    /// yield, off
    #[arg(long, value_name = "POLICY", default_value = "auto", value_parser = one_of(&Policy::NAMED), help_heading = "Events", hide_short_help = true)]
    pub(crate) reserve: Policy,

    /// Command to run, with its arguments
    #[arg(trailing_var_arg = true, value_name = "COMMAND", value_hint = clap::ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<std::ffi::OsString>,
}

impl StatArgs {
    /// Returns what to count, and how to print it.
    ///
    /// # Errors
    /// Fails if options cannot be combined, or a target does not exist.
    pub(crate) fn request(self, host: &Host) -> Result<(StatRequest, StatLayout)> {
        let Self { counted, to, shown } = self;
        let layout = StatLayout {
            interval_clear: counted.interval_clear,
            table: counted.table,
            listen: counted.listen.clone(),
            ci: counted.format,
            ..layout(&shown, to)?
        };
        Ok((counted.request(shown, host)?, layout))
    }
}

impl StatRecordArgs {
    /// Returns what to count and to write to a file, and how to print it.
    ///
    /// # Errors
    /// Fails if options cannot be combined, or a target does not exist.
    pub(crate) fn request(self, host: &Host) -> Result<(StatRequest, StatLayout)> {
        let Self { counted, output, shown } = self;
        if let Some(option) = counted.part_option() {
            return Err(Error::usage(format!(
                "{option} splits counts into rows, which a recording does not support"
            ))
            .why("perf's records identify only events, CPUs and threads")
            .try_options(format!("pmc stat {option} with -x, or -j")));
        }
        let several =
            [(counted.repeat.is_some(), "-r"), (counted.exact, "--exact"), (!counted.vs.is_empty(), "--vs")];
        if let Some((_, option)) = several.iter().find(|(is_typed, _)| *is_typed) {
            return Err(Error::usage(format!(
                "{option} repeats the run, but a recording contains only one run"
            ))
            .try_options("make a recording for each run, or use -r without `record`"));
        }
        if counted.cgroups.is_some() || counted.for_each_cgroup.is_some() {
            return Err(Error::usage("a recording cannot contain events limited to a cgroup")
                .why("perf's records identify only events, CPUs and threads")
                .try_options("pmc stat -I TIME -x, or -j, which print them"));
        }
        if output.as_os_str() == "-" && Stream::Output.is_terminal() {
            return Err(Error::usage("a recording is binary, and standard output is a terminal")
                .try_options("-o FILE, or: pmc stat record -o - … | pmc stat report"));
        }
        let layout = StatLayout {
            interval_clear: counted.interval_clear,
            table: counted.table,
            listen: counted.listen.clone(),
            ci: counted.format,
            ..layout(&shown, OutputFileArgs { output: None, append: false })?
        };
        Ok((StatRequest { recording: Some(output), ..counted.request(shown, host)? }, layout))
    }
}

impl StatReportArgs {
    /// Returns which counts to show, and how.
    ///
    /// # Errors
    /// Fails if `--append` is given without a file.
    pub(crate) fn request(self) -> Result<(StatReportRequest, StatLayout)> {
        let Self { recording, to, shown, log_exit, log_cswitch } = self;
        let request = StatReportRequest {
            log: match (log_exit, log_cswitch) {
                (true, _) => Some(LoggedCounts::Exits),
                (_, true) => Some(LoggedCounts::Slices),
                _ => None,
            },
            input: recording.path(),
            aggregation: Some(shown.aggregation()).filter(|typed| *typed != Aggregation::Global),
            no_merge: shown.no_merge,
            scale: !shown.no_scale,
            metrics: shown.requested_metrics(),
        };
        Ok((request, layout(&shown, to)?))
    }
}

/// Returns the layout that `stat` and `stat report` have in common.
fn layout(shown: &StatDisplayArgs, to: OutputFileArgs) -> Result<StatLayout> {
    if to.append && to.output.is_none() {
        return Err(Error::usage("--append requires a file").try_options("add -o FILE"));
    }
    Ok(StatLayout {
        format: match (&shown.field_separator, shown.json) {
            (Some(separator), _) => StatFormat::Csv(separator.clone()),
            (_, Some(2)) => StatFormat::Document,
            (_, Some(_)) => StatFormat::JsonLines,
            _ => StatFormat::Text,
        },
        to: match (to.output, shown.log_fd) {
            (Some(path), _) => StatDestination::File(path),
            (_, Some(fd)) => StatDestination::Descriptor(fd),
            _ => StatDestination::Stderr,
        },
        append: to.append,
        big_num: !shown.no_big_num,
        metric_only: shown.metric_only,
        summary: shown.summary,
        csv_summary: !shown.no_csv_summary,
        quiet: shown.quiet,
        openmetrics: shown.openmetrics.clone(),
        ..StatLayout::default()
    })
}

impl StatDisplayArgs {
    fn requested_metrics(&self) -> RequestedMetrics {
        RequestedMetrics {
            names: self.metrics.clone(),
            expressions: self.expressions.clone(),
            topdown: self.topdown.then_some(self.td_level.max(1)),
            thresholds: !self.metric_no_threshold,
        }
    }

    fn aggregation(&self) -> Aggregation {
        if let Some(CacheLevel(level)) = self.per_cache {
            return Aggregation::Cache(level);
        }
        let options = [
            (self.no_aggr, Aggregation::Cpu),
            (self.per_thread, Aggregation::Thread),
            (self.per_core, Aggregation::Core),
            (self.per_cluster, Aggregation::Cluster),
            (self.per_die, Aggregation::Die),
            (self.per_socket, Aggregation::Socket),
            (self.per_node, Aggregation::Node),
        ];
        let typed = options.into_iter().find(|(is_typed, _)| *is_typed);
        typed.map_or(Aggregation::Global, |(_, aggregation)| aggregation)
    }
}

impl CountArgs {
    fn request(self, shown: StatDisplayArgs, host: &Host) -> Result<StatRequest> {
        let mut scope = self.scope(shown.per_thread, host)?;
        let mut warning = overridden(&self.targets);
        let no_command = self.command.is_empty() && self.vs.is_empty();
        if no_command && (self.repeat.is_some() || self.exact) {
            let option = if self.exact { "--exact" } else { "-r" };
            return Err(Error::usage(format!("{option} requires a command")));
        }
        if no_command && matches!(scope, MeasurementScope::Command) {
            scope = sampling_options::whole_machine(host)?;
            warning = Some(measures_whole_machine());
        }
        let aggregation = self.parts()?.unwrap_or_else(|| shown.aggregation());
        self.check(&shown, &scope, aggregation)?;
        let delay = self.delay.unwrap_or_default();
        delay.check_control(self.control.is_some())?;
        let versus = match self.vs.is_empty() {
            true => Vec::new(),
            false => ComparedCommand::all(self.command.clone(), &self.vs),
        };
        Ok(StatRequest {
            warnings: warning.into_iter().collect(),
            selection: EventSelection {
                filters: self.filter_places.assign(self.filter)?,
                perfevent_conf: self.perfevent_conf,
                core_kind: self.cputype,
                pmu: self.pmu_filter,
                grouping: MetricEventGrouping {
                    grouped: !self.metric_no_group,
                    merged: !self.metric_no_merge,
                },
                events: self.events.into_iter().chain(pfm_events(&self.pfm_events)).collect(),
                detailed: self.detailed,
                null: self.null,
                metrics: shown.requested_metrics(),
            },
            scope,
            is_whole_machine: self.targets.cpus.is_none(),
            cgroups: self.cgroups.or(self.for_each_cgroup).unwrap_or_default(),
            levels: match (self.all_user, self.all_kernel) {
                (true, _) => Levels::User,
                (_, true) => Levels::Kernel,
                _ => Levels::AsWritten,
            },
            inherit: !self.no_inherit,
            command: self.command,
            timing: StatTiming {
                interval: self.interval,
                interval_count: self.interval_count,
                timeout: self.timeout,
                delay,
            },
            repeat: Repeat {
                runs: self.repeat,
                exact: self.exact,
                versus,
                gate: self.fail_if,
                shows_output: self.show_output,
                warm_ups: self.warmup,
                sync: self.sync,
                pre: self.pre,
                post: self.post,
            },
            aggregation,
            no_merge: shown.no_merge,
            scale: !shown.no_scale,
            control: self.control,
            reserve: self.reserve,
            verbose: shown.verbose > 0,
            recording: None,
            log_exit: self.log_exit,
            log_cswitch: self.log_cswitch,
        })
    }

    fn scope(&self, per_thread: bool, host: &Host) -> Result<MeasurementScope> {
        let targets = &self.targets;
        let is_free = targets.all_cpus || targets.cpus.is_none() && self.command.is_empty();
        if per_thread && !targets.has_tasks() && is_free {
            return Ok(MeasurementScope::AllThreads);
        }
        sampling_options::scope(targets, host)
    }

    /// Returns the option that splits counts into parts, if there is one.
    fn part_option(&self) -> Option<&'static str> {
        match (self.children, self.user_kernel) {
            (true, _) => Some("--children"),
            (_, true) => Some("--user-kernel"),
            _ => None,
        }
    }

    /// Returns the aggregation for `--children` or `--user-kernel`, if one of them is given.
    fn parts(&self) -> Result<Option<Aggregation>> {
        let Some(option) = self.part_option() else { return Ok(None) };
        if self.exact || !self.vs.is_empty() {
            let other = if self.exact { "--exact" } else { "--vs" };
            return Err(Error::usage(format!("{option} cannot be combined with {other}"))
                .why("it splits the counts of a single run")
                .try_options(format!("use only one of them; {option} -r N for several runs")));
        }
        if self.user_kernel {
            return Ok(Some(Aggregation::Levels));
        }
        if self.targets.has_cpus() {
            return Err(Error::usage("--children requires processes, not CPUs")
                .try_options("pmc stat --children -- COMMAND, or -p PID"));
        }
        Ok(Some(Aggregation::Children))
    }

    /// Rejects mutually exclusive options, and options without another option that they require.
    fn check(
        &self,
        shown: &StatDisplayArgs,
        scope: &MeasurementScope,
        aggregation: Aggregation,
    ) -> Result<()> {
        if (self.cgroups.is_some() || self.for_each_cgroup.is_some())
            && !matches!(scope, MeasurementScope::Cpus(_))
        {
            return Err(
                Error::usage("cgroups can only be counted on whole CPUs").try_options("add -a, or -C CPUS")
            );
        }
        let per_cpu =
            !matches!(aggregation, Aggregation::Global | Aggregation::Thread) && !aggregation.is_parted();
        if per_cpu && !matches!(scope, MeasurementScope::Cpus(_)) {
            return Err(Error::usage(
                "per-CPU, core, cache, die, socket or node rows require counting whole CPUs",
            )
            .try_options("add -a, or -C CPUS"));
        }
        if aggregation == Aggregation::Thread
            && matches!(scope, MeasurementScope::Command | MeasurementScope::Cpus(_))
        {
            return Err(Error::usage("--per-thread requires running threads")
                .try_options("-p PID, -t TID, -u USER, -a, or only --per-thread for all threads"));
        }
        if self.warmup > 0 && self.repeat.is_none() && self.vs.is_empty() {
            return Err(Error::usage("--warmup requires -r or --vs").try_options("add -r N"));
        }
        if self.table && self.repeat.is_none() {
            return Err(Error::usage("--table requires -r").try_options("add -r N"));
        }
        if !self.vs.is_empty() && self.vs.len() + usize::from(!self.command.is_empty()) < 2 {
            return Err(Error::usage("--vs requires two commands")
                .try_options("--vs 'OLD' --vs 'NEW', or --vs 'OLD' -- NEW"));
        }
        if !self.vs.is_empty() && self.interval.is_some() {
            return Err(Error::usage("--vs cannot be combined with -I"));
        }
        if !self.vs.is_empty() && shown.field_separator.is_some() {
            return Err(Error::usage("--vs does not support CSV").try_options("--json"));
        }
        if shown.summary && self.interval.is_none() {
            return Err(Error::usage("--summary requires -I").try_options("add -I TIME"));
        }
        Ok(())
    }
}

/// Parses the names of cgroups, one per event. An empty name means no cgroup.
fn cgroups_in_order(text: &str) -> Result<CgroupChoice> {
    Ok(CgroupChoice::InOrder(text.split(',').map(str::to_owned).collect()))
}

/// Parses the names of cgroups in which every event is counted.
fn each_cgroup(text: &str) -> Result<CgroupChoice> {
    let names: Vec<String> = text.split(',').map(str::to_owned).collect();
    if names.iter().any(String::is_empty) {
        return Err(Error::usage("a name is empty"));
    }
    Ok(CgroupChoice::Each(names))
}

/// Parses the separator of CSV fields: `\t` is a tab, as in perf.
fn separator(text: &str) -> Result<String> {
    Ok(if text == "\\t" { "\t" } else { text }.to_owned())
}
