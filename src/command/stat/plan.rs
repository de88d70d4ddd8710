//! Converts the parsed options of `pmc stat` into a [`StatPlan`] without clap's types.
//!
//! Checks the rules that clap cannot express. Does not open any files. All errors are usage errors (exit
//! status 2).

use std::ffi::OsString;
use std::path::PathBuf;

use crate::cli::stat::{
    CountArgs, OutputFileArgs, StatArgs, StatDisplayArgs, StatRecordArgs, StatReportArgs,
};
use pmc_analysis::profile::counts::Aggregation;
use pmc_analysis::profile::gate::GateCondition;
use pmc_command::input;
use pmc_command::plan::{self, delay, duration};
use pmc_command::sampling_options::{self, TargetArgs, overridden, pfm_events};
use pmc_command::warning::CommandWarning;
use pmc_events::counter::Levels;
use pmc_events::counter::metric_events::MetricEventGrouping;
use pmc_events::counter::reservation::Policy;
use pmc_recording::recording::plan::{Delay, MeasurementScope};
use pmc_sys::error::{Error, Result};
use pmc_sys::host::Host;
use pmc_text::terminal::Stream;
use pmc_text::units::MS;
use pmc_view::gate::CiFormat;

/// Settings of `pmc stat`.
pub(in crate::command) struct StatPlan {
    pub(super) selection: EventSelection,
    pub(super) scope: MeasurementScope,
    /// A warning about the target.
    pub(super) warning: Option<CommandWarning>,
    pub(super) cgroups: CgroupChoice,
    pub(super) levels: Levels,
    pub(super) inherit: bool,
    pub(super) command: Vec<OsString>,
    pub(super) timing: StatTiming,
    pub(super) repeat: Repeat,
    pub(super) aggregation: Aggregation,
    /// Whether `-a` was given instead of a list of CPUs.
    pub(super) all_cpus: bool,
    pub(super) no_merge: bool,
    pub(super) control: Option<String>,
    pub(super) reserve: Policy,
    pub(super) verbose: u8,
    pub(super) output: StatOutput,
    /// The file that also receives the counts.
    pub(super) recording: Option<PathBuf>,
    /// Whether every event logs its counts when threads exit (`log-exit`) and at context switches
    /// (`log-cswitch`).
    pub(super) logs: [bool; 2],
    /// An option on the command line that cannot be combined with logging counts.
    pub(super) no_log: Option<&'static str>,
}

/// The events and metrics to count.
pub(super) struct EventSelection {
    /// The events as the user typed them. If empty, the default set is counted.
    pub(super) events: Vec<String>,
    /// A configuration file of PCP's agent, whose events are added.
    pub(super) perfevent_conf: Option<PathBuf>,
    /// Tracepoint filters, each with the index of its event text.
    pub(super) filters: Vec<(usize, String)>,
    /// The type of cores to count on, on a hybrid machine.
    pub(super) core_kind: Option<String>,
    /// The PMU to use for events that several PMUs provide.
    pub(super) pmu: Option<String>,
    /// How to group the events of metrics.
    pub(super) grouping: MetricEventGrouping,
    pub(super) detailed: u8,
    /// Whether to measure only time.
    pub(super) null: bool,
    /// The metrics, whose events are added.
    pub(super) metrics: RequestedMetrics,
}

#[derive(Debug)]
pub(super) struct RequestedMetrics {
    /// Metric names.
    pub(super) names: Vec<String>,
    /// `name=expression`.
    pub(super) expressions: Vec<String>,
    /// Level of the top-down analysis.
    pub(super) topdown: Option<u8>,
    /// Whether to also count events that only thresholds need.
    pub(super) thresholds: bool,
}

impl RequestedMetrics {
    fn new(typed: &StatDisplayArgs) -> Self {
        Self {
            names: typed.metrics.iter().flat_map(|m| m.split(',')).map(str::to_owned).collect(),
            expressions: typed.expressions.clone(),
            topdown: typed.topdown.then_some(typed.td_level.max(1)),
            thresholds: !typed.metric_no_threshold,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty() && self.expressions.is_empty() && self.topdown.is_none()
    }
}

/// The cgroups of the events.
pub(super) enum CgroupChoice {
    None,
    /// One cgroup per event, in order. A single name applies to all events; an empty name means no cgroup.
    InOrder(Vec<String>),
    /// Every event is counted in each of these cgroups.
    Each(Vec<String>),
}

/// When to start, print and stop.
pub(super) struct StatTiming {
    pub(super) interval_ns: Option<u64>,
    pub(super) interval_count: Option<u32>,
    pub(super) timeout_ns: Option<u64>,
    pub(super) delay: Delay,
}

/// Repetition and comparison of runs.
pub(super) struct Repeat {
    /// Number of runs; 0 repeats until interrupted.
    pub(super) runs: u32,
    /// Whether `-r` was given.
    pub(super) asked: bool,
    pub(super) exact: bool,
    /// Shell commands to compare with each other, and with COMMAND if it is given.
    pub(super) versus: Vec<String>,
    /// The condition under which the comparison fails.
    pub(super) gate: Option<GateCondition>,
    /// The commands of `versus` as lists of arguments, if they must not be interpreted; otherwise empty.
    pub(super) argument_lists: Vec<Vec<OsString>>,
    /// Set if another command shows the comparison and evaluates the condition: the names that it measures
    /// in addition.
    pub(super) measured_elsewhere: Option<&'static [&'static str]>,
    /// Whether the commands' output is shown only in the first run.
    pub(super) hushes: bool,
    /// Number of uncounted runs before the first counted one.
    pub(super) warm_ups: u32,
    /// Whether to call `sync(2)` before each run.
    pub(super) sync: bool,
    pub(super) pre: Option<String>,
    pub(super) post: Option<String>,
}

/// Where to write the results, and in which format.
#[derive(Debug, Clone)]
pub(super) struct StatOutput {
    pub(super) form: StatFormat,
    pub(super) to: OutputTarget,
    pub(super) append: bool,
    pub(super) big_num: bool,
    pub(super) scale: bool,
    pub(super) metric_only: bool,
    pub(super) interval_clear: bool,
    pub(super) summary: bool,
    pub(super) csv_summary: bool,
    pub(super) quiet: bool,
    pub(super) table: bool,
    /// The CI system for which to print the answer of `--fail-if`.
    pub(super) ci: Option<CiFormat>,
    /// Scrape file; `-` makes OpenMetrics the format of the result.
    pub(super) openmetrics: Option<PathBuf>,
    pub(super) listen: Option<String>,
}

impl StatOutput {
    /// Creates the settings that `stat` and `stat report` have in common.
    fn new(typed: StatDisplayArgs, to: OutputFileArgs) -> Result<Self> {
        if to.append && to.output.is_none() {
            return Err(Error::usage("--append requires a file").try_this("add -o FILE"));
        }
        Ok(Self {
            form: match (typed.field_separator, typed.json) {
                (Some(separator), _) => StatFormat::Csv(unescape_tab(separator)),
                (_, Some(2)) => StatFormat::Document,
                (_, Some(_)) => StatFormat::JsonLines,
                _ => StatFormat::Text,
            },
            to: match (to.output, typed.log_fd) {
                (Some(path), _) => OutputTarget::File(path),
                (_, Some(fd)) => OutputTarget::Descriptor(fd),
                _ => OutputTarget::Stderr,
            },
            append: to.append,
            big_num: !typed.no_big_num,
            scale: !typed.no_scale,
            metric_only: typed.metric_only,
            interval_clear: false,
            summary: typed.summary,
            csv_summary: !typed.no_csv_summary,
            quiet: typed.quiet,
            table: false,
            ci: None,
            openmetrics: typed.openmetrics,
            listen: None,
        })
    }

    /// Whether the result is printed in OpenMetrics format (`--openmetrics` without a file).
    pub(super) fn openmetrics_is_the_form(&self) -> bool {
        self.openmetrics.as_ref().is_some_and(|path| path.as_os_str() == "-")
    }

    /// Whether the result is machine-readable. If so, it also contains all warnings.
    pub(super) fn is_data(&self) -> bool {
        self.form != StatFormat::Text || self.openmetrics_is_the_form() || self.ci == Some(CiFormat::JUnit)
    }

    /// Whether data is written to stderr and stderr is not a terminal. If so, pmc's messages would be mixed
    /// with the data.
    pub(super) fn takes_stderr(&self) -> bool {
        let to_stderr = matches!(self.to, OutputTarget::Stderr | OutputTarget::Descriptor(2));
        self.is_data() && to_stderr && !Stream::Error.is_terminal()
    }
}

/// Format of the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StatFormat {
    Text,
    /// CSV with this separator.
    Csv(String),
    JsonLines,
    Document,
}

/// Where to write the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OutputTarget {
    Stderr,
    File(PathBuf),
    Descriptor(i32),
}

impl StatPlan {
    /// Converts the parsed options.
    pub(in crate::command) fn new(typed: StatArgs, host: &Host) -> Result<Self> {
        Self::make(typed.counted, typed.shown, typed.to, None, host)
    }

    /// Converts the options of `stat record`, which does one run and also writes the counts to a file.
    pub(in crate::command) fn recording(typed: StatRecordArgs, host: &Host) -> Result<Self> {
        let StatRecordArgs { counted, output, shown } = typed;
        if let Some((_, option)) = part_options(&counted).into_iter().find(|(is_asked, _)| *is_asked) {
            return Err(Error::usage(format!(
                "{option} splits counts into rows, which a recording does not support"
            ))
            .why("perf's records identify only events, CPUs and threads")
            .try_this(format!("pmc stat {option} with -x, or -j")));
        }
        let several =
            [(counted.repeat.is_some(), "-r"), (counted.exact, "--exact"), (!counted.vs.is_empty(), "--vs")];
        if let Some((_, option)) = several.iter().find(|(is_asked, _)| *is_asked) {
            return Err(Error::usage(format!(
                "{option} repeats the run, but a recording contains only one run"
            ))
            .try_this("make a recording for each run, or use -r without `record`"));
        }
        if counted.cgroups.is_some() || counted.for_each_cgroup.is_some() {
            return Err(Error::usage("a recording cannot contain events limited to a cgroup")
                .why("perf's records identify only events, CPUs and threads")
                .try_this("pmc stat -I TIME -x, or -j, which print them"));
        }
        if output.as_os_str() == "-" && Stream::Output.is_terminal() {
            return Err(Error::usage("a recording is binary, and standard output is a terminal")
                .try_this("-o FILE, or: pmc stat record -o - … | pmc stat report"));
        }
        Self::make(counted, shown, OutputFileArgs { output: None, append: false }, Some(output), host)
    }

    fn make(
        typed: CountArgs,
        shown: StatDisplayArgs,
        to: OutputFileArgs,
        recording: Option<PathBuf>,
        host: &Host,
    ) -> Result<Self> {
        let mut scope = scope(&typed, shown.per_thread, host)?;
        let mut warning = overridden(target_args(&typed));
        let no_command = typed.command.is_empty() && typed.vs.is_empty();
        if no_command && (typed.repeat.is_some() || typed.exact) {
            let option = if typed.exact { "--exact" } else { "-r" };
            return Err(Error::usage(format!("{option} requires a command")));
        }
        if no_command && matches!(scope, MeasurementScope::Command) {
            scope = sampling_options::whole_machine(host)?;
            warning = Some(CommandWarning::WholeMachine);
        }
        let cgroups = cgroups(&typed)?;
        let aggregation = parts(&typed)?.map_or_else(|| aggregation(&shown), Ok)?;
        check(&typed, &shown, &scope, aggregation)?;
        let runs = typed.repeat.unwrap_or(1);
        let no_log = [
            (typed.repeat.is_some(), "-r"),
            (typed.exact, "--exact"),
            (!typed.vs.is_empty(), "--vs"),
            (typed.interval.is_some(), "-I"),
            (typed.null, "-n"),
            (typed.children, "--children"),
            (typed.user_kernel, "--user-kernel"),
            (
                matches!(scope, MeasurementScope::Cpus(_) | MeasurementScope::AllThreads),
                "-a, -C and --per-thread",
            ),
        ];
        let delay = delay(typed.delay.as_deref(), typed.control.is_some())?;
        Ok(Self {
            warning,
            selection: EventSelection {
                filters: plan::tracepoint_filters(typed.filter_places, typed.filter)?,
                perfevent_conf: typed.perfevent_conf,
                core_kind: typed.cputype,
                pmu: typed.pmu_filter,
                grouping: MetricEventGrouping {
                    grouped: !typed.metric_no_group,
                    merged: !typed.metric_no_merge,
                },
                events: typed.events.into_iter().chain(pfm_events(&typed.pfm_events)).collect(),
                detailed: typed.detailed,
                null: typed.null,
                metrics: RequestedMetrics::new(&shown),
            },
            scope,
            cgroups,
            levels: match (typed.all_user, typed.all_kernel) {
                (true, _) => Levels::User,
                (_, true) => Levels::Kernel,
                _ => Levels::AsWritten,
            },
            inherit: !typed.no_inherit,
            command: typed.command,
            timing: StatTiming {
                interval_ns: typed.interval.map(|text| duration("-I", &text, MS, MS)).transpose()?,
                interval_count: typed.interval_count,
                timeout_ns: plan::timeout(typed.timeout.as_deref())?,
                delay,
            },
            repeat: Repeat {
                runs,
                asked: typed.repeat.is_some(),
                exact: typed.exact,
                versus: typed.vs,
                gate: typed.fail_if.as_deref().map(str::parse::<GateCondition>).transpose()?,
                argument_lists: Vec::new(),
                measured_elsewhere: None,
                hushes: !typed.show_output,
                warm_ups: typed.warmup,
                sync: typed.sync,
                pre: typed.pre,
                post: typed.post,
            },
            aggregation,
            all_cpus: typed.cpus.is_none(),
            no_merge: shown.no_merge,
            control: typed.control,
            reserve: typed.reserve.parse()?,
            verbose: shown.verbose,
            output: StatOutput {
                interval_clear: typed.interval_clear,
                table: typed.table,
                listen: typed.listen,
                ci: typed.format.as_deref().and_then(CiFormat::named),
                ..StatOutput::new(shown, to)?
            },
            recording,
            logs: [typed.log_exit, typed.log_cswitch],
            no_log: no_log.into_iter().find_map(|(is_asked, option)| is_asked.then_some(option)),
        })
    }
}

/// Rejects mutually exclusive options, and options without another option that they require.
fn check(
    typed: &CountArgs,
    shown: &StatDisplayArgs,
    scope: &MeasurementScope,
    aggregation: Aggregation,
) -> Result<()> {
    if (typed.cgroups.is_some() || typed.for_each_cgroup.is_some())
        && !matches!(scope, MeasurementScope::Cpus(_))
    {
        return Err(Error::usage("cgroups can only be counted on whole CPUs").try_this("add -a, or -C CPUS"));
    }
    let per_cpu =
        !matches!(aggregation, Aggregation::Global | Aggregation::Thread) && !aggregation.is_parted();
    if per_cpu && !matches!(scope, MeasurementScope::Cpus(_)) {
        return Err(Error::usage(
            "per-CPU, core, cache, die, socket or node rows require counting whole CPUs",
        )
        .try_this("add -a, or -C CPUS"));
    }
    if aggregation == Aggregation::Thread
        && matches!(scope, MeasurementScope::Command | MeasurementScope::Cpus(_))
    {
        return Err(Error::usage("--per-thread requires running threads")
            .try_this("-p PID, -t TID, -u USER, -a, or only --per-thread for all threads"));
    }
    if typed.warmup > 0 && typed.repeat.is_none() && typed.vs.is_empty() {
        return Err(Error::usage("--warmup requires -r or --vs").try_this("add -r N"));
    }
    if typed.table && typed.repeat.is_none() {
        return Err(Error::usage("--table requires -r").try_this("add -r N"));
    }
    if !typed.vs.is_empty() && typed.vs.len() + usize::from(!typed.command.is_empty()) < 2 {
        return Err(Error::usage("--vs requires two commands")
            .try_this("--vs 'OLD' --vs 'NEW', or --vs 'OLD' -- NEW"));
    }
    if !typed.vs.is_empty() && typed.interval.is_some() {
        return Err(Error::usage("--vs cannot be combined with -I"));
    }
    if !typed.vs.is_empty() && shown.field_separator.is_some() {
        return Err(Error::usage("--vs does not support CSV").try_this("--json"));
    }
    if shown.summary && typed.interval.is_none() {
        return Err(Error::usage("--summary requires -I").try_this("add -I TIME"));
    }
    Ok(())
}

/// Settings of `pmc stat report`.
pub(in crate::command) struct StatReportPlan {
    pub(super) input: PathBuf,
    /// `None` keeps the recording's aggregation.
    pub(super) aggregation: Option<Aggregation>,
    /// The logged counts to show, if any: counts at the exit of each thread, or between context switches.
    pub(super) log: Option<LogPart>,
    pub(super) no_merge: bool,
    pub(super) metrics: RequestedMetrics,
    pub(super) output: StatOutput,
}

impl StatReportPlan {
    /// Converts the parsed options.
    pub(in crate::command) fn new(typed: StatReportArgs) -> Result<Self> {
        let StatReportArgs { file, input, to, shown, log_exit, log_cswitch } = typed;
        Ok(Self {
            log: match (log_exit, log_cswitch) {
                (true, _) => Some(LogPart::Exits),
                (_, true) => Some(LogPart::Slices),
                _ => None,
            },
            input: input::input(input.as_ref().or(file.as_ref())),
            aggregation: Some(aggregation(&shown)?).filter(|asked| *asked != Aggregation::Global),
            no_merge: shown.no_merge,
            metrics: RequestedMetrics::new(&shown),
            output: StatOutput::new(shown, to)?,
        })
    }
}

/// Which logged counts to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LogPart {
    Exits,
    Slices,
}

fn target_args(typed: &CountArgs) -> TargetArgs<'_> {
    TargetArgs {
        pids: &typed.pids,
        tids: &typed.tids,
        user: typed.uid.as_deref(),
        cpus: typed.cpus.as_deref(),
        all_cpus: typed.all_cpus,
    }
}

fn scope(typed: &CountArgs, per_thread: bool, host: &Host) -> Result<MeasurementScope> {
    let names_nobody = typed.pids.is_empty() && typed.tids.is_empty() && typed.uid.is_none();
    let is_free = typed.all_cpus || typed.cpus.is_none() && typed.command.is_empty();
    if per_thread && names_nobody && is_free {
        return Ok(MeasurementScope::AllThreads);
    }
    sampling_options::scope(target_args(typed), host)
}

fn cgroups(typed: &CountArgs) -> Result<CgroupChoice> {
    let list = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
    match (&typed.cgroups, &typed.for_each_cgroup) {
        (Some(names), _) => Ok(CgroupChoice::InOrder(list(names))),
        (_, Some(names)) if names.split(',').any(str::is_empty) => {
            Err(Error::usage(format!("--for-each-cgroup {names}: a name is empty")))
        }
        (_, Some(names)) => Ok(CgroupChoice::Each(list(names))),
        _ => Ok(CgroupChoice::None),
    }
}

fn part_options(typed: &CountArgs) -> [(bool, &'static str); 2] {
    [(typed.children, "--children"), (typed.user_kernel, "--user-kernel")]
}

/// Returns the aggregation for `--children` or `--user-kernel`, if one of them is given.
fn parts(typed: &CountArgs) -> Result<Option<Aggregation>> {
    let Some((_, option)) = part_options(typed).into_iter().find(|(is_asked, _)| *is_asked) else {
        return Ok(None);
    };
    if typed.exact || !typed.vs.is_empty() {
        let other = if typed.exact { "--exact" } else { "--vs" };
        return Err(Error::usage(format!("{option} cannot be combined with {other}"))
            .why("it splits the counts of a single run")
            .try_this(format!("use only one of them; {option} -r N for several runs")));
    }
    if typed.user_kernel {
        return Ok(Some(Aggregation::Levels));
    }
    if typed.all_cpus || typed.cpus.is_some() {
        return Err(Error::usage("--children requires processes, not CPUs")
            .try_this("pmc stat --children -- COMMAND, or -p PID"));
    }
    Ok(Some(Aggregation::Children))
}

fn aggregation(typed: &StatDisplayArgs) -> Result<Aggregation> {
    if let Some(level) = &typed.per_cache {
        return cache_level(level).map(Aggregation::Cache);
    }
    let chosen = [
        (typed.no_aggr, Aggregation::Cpu),
        (typed.per_thread, Aggregation::Thread),
        (typed.per_core, Aggregation::Core),
        (typed.per_cluster, Aggregation::Cluster),
        (typed.per_die, Aggregation::Die),
        (typed.per_socket, Aggregation::Socket),
        (typed.per_node, Aggregation::Node),
    ];
    Ok(chosen.into_iter().find(|(on, _)| *on).map_or(Aggregation::Global, |(_, aggregation)| aggregation))
}

/// Parses `L2`, `l2` or `2`. An empty string selects the last level.
fn cache_level(text: &str) -> Result<Option<u32>> {
    if text.is_empty() {
        return Ok(None);
    }
    let number = text.trim_start_matches(['L', 'l']).parse().ok().filter(|level| (1..=4).contains(level));
    number.map(Some).ok_or_else(|| {
        Error::usage(format!("--per-cache={text}: not a cache level")).try_this("L1, L2, L3 or L4")
    })
}

/// Converts `-x '\t'` to a tab, as perf does.
fn unescape_tab(separator: String) -> String {
    if separator == "\\t" { "\t".to_owned() } else { separator }
}
