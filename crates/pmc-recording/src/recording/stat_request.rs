//! The request of `pmc stat`: which events and metrics to count, for which targets, how long, and in how many
//! runs.
//!
//! A plain value with defaults. The command line, the personalities and other commands fill it in. `pmc stat`
//! carries it out: it resolves the events, and passes each run to [`counting`](super::counting).

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::control::ControlChannel;
use super::plan::{Delay, MeasurementScope};
use pmc_analysis::profile::counts::Aggregation;
use pmc_analysis::profile::gate::GateCondition;
use pmc_analysis::profile::metrics::RequestedMetrics;
use pmc_events::counter::Levels;
use pmc_events::counter::metric_events::MetricEventGrouping;
use pmc_events::counter::reservation::Policy;
use pmc_sys::error::Warning;

/// What `pmc stat` counts. The default counts the default events of a command that is still to be named.
#[derive(Debug, Clone)]
pub struct StatRequest {
    /// The events and metrics.
    pub selection: EventSelection,
    /// The targets.
    pub scope: MeasurementScope,
    /// Whether `scope` is the whole machine, and not a list of CPUs that the user chose.
    pub is_whole_machine: bool,
    /// The cgroups of the events.
    pub cgroups: CgroupChoice,
    /// The privilege levels to count.
    pub levels: Levels,
    /// Whether children are counted with their parents.
    pub inherit: bool,
    /// The command to run; may be empty.
    pub command: Vec<OsString>,
    /// When to start, print and stop.
    pub timing: StatTiming,
    /// How often to run the command, or which commands to compare.
    pub repeat: Repeat,
    /// How counts are grouped into rows.
    pub aggregation: Aggregation,
    /// Whether the instances of a PMU have separate rows.
    pub no_merge: bool,
    /// Whether the counts of multiplexed events are scaled to the full time.
    pub scale: bool,
    /// The control channel: `fd:CTL[,ACK]` or `fifo:CTL[,ACK]`.
    pub control: Option<ControlChannel>,
    /// How to treat reservations of the hardware counters by other programs.
    pub reserve: Policy,
    /// Whether to print details: the opened events and unscaled counts.
    pub verbose: bool,
    /// The file that also receives the counts (`stat record`).
    pub recording: Option<PathBuf>,
    /// Whether every event logs its counts when threads exit.
    pub log_exit: bool,
    /// Whether every event logs its counts at context switches.
    pub log_cswitch: bool,
    /// Warnings about the request itself.
    pub warnings: Vec<Warning>,
}

impl Default for StatRequest {
    fn default() -> Self {
        Self {
            selection: EventSelection::default(),
            scope: MeasurementScope::Command,
            is_whole_machine: false,
            cgroups: CgroupChoice::None,
            levels: Levels::default(),
            inherit: true,
            command: Vec::new(),
            timing: StatTiming::default(),
            repeat: Repeat::default(),
            aggregation: Aggregation::Global,
            no_merge: false,
            scale: true,
            control: None,
            reserve: Policy::default(),
            verbose: false,
            recording: None,
            log_exit: false,
            log_cswitch: false,
            warnings: Vec::new(),
        }
    }
}

/// The events and metrics to count.
#[derive(Debug, Clone, Default)]
pub struct EventSelection {
    /// The events as the user typed them. If empty, the default set is counted.
    pub events: Vec<String>,
    /// A configuration file of PCP's agent, whose events are added.
    pub perfevent_conf: Option<PathBuf>,
    /// Tracepoint filters, each with the index of its event text.
    pub filters: Vec<(usize, String)>,
    /// The type of cores to count on, on a hybrid machine.
    pub core_kind: Option<String>,
    /// The PMU to use for events that several PMUs provide.
    pub pmu: Option<String>,
    /// How to group the events of metrics.
    pub grouping: MetricEventGrouping,
    /// How many sets of cache events to add, at most 3.
    pub detailed: u8,
    /// Whether to measure only time.
    pub null: bool,
    /// The metrics, whose events are added.
    pub metrics: RequestedMetrics,
}

/// The cgroups of the events.
#[derive(Debug, Clone, Default)]
pub enum CgroupChoice {
    /// Counts are not limited to cgroups.
    #[default]
    None,
    /// One cgroup per event, in order. A single name applies to all events; an empty name means no cgroup.
    InOrder(Vec<String>),
    /// Every event is counted in each of these cgroups.
    Each(Vec<String>),
}

/// When to start, print and stop.
#[derive(Debug, Clone, Default)]
pub struct StatTiming {
    /// Length of an interval; `None`: no intervals.
    pub interval: Option<Duration>,
    /// Number of intervals after which to stop.
    pub interval_count: Option<u32>,
    /// Maximum duration of a run.
    pub timeout: Option<Duration>,
    /// When counting starts.
    pub delay: Delay,
}

/// Repetition of the command, and comparison of commands.
#[derive(Debug, Clone, Default)]
pub struct Repeat {
    /// Number of runs: 0 repeats until interrupted, `None` leaves the choice to `pmc stat`.
    pub runs: Option<u32>,
    /// Whether to run the command several times instead of sharing counters between events.
    pub exact: bool,
    /// The commands to compare; empty: nothing is compared.
    pub versus: Vec<ComparedCommand>,
    /// The condition under which the comparison fails.
    pub gate: Option<GateCondition>,
    /// Whether the commands' output is shown in every run, and not only in the first.
    pub shows_output: bool,
    /// Number of uncounted runs before the first counted one.
    pub warm_ups: u32,
    /// Whether to call `sync(2)` before each run.
    pub sync: bool,
    /// Shell command to run before each run.
    pub pre: Option<String>,
    /// Shell command to run after each run.
    pub post: Option<String>,
}

/// A command to compare with others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComparedCommand {
    /// The command's text in tables and messages.
    pub text: String,
    /// The program and its arguments.
    pub words: Vec<OsString>,
}

impl ComparedCommand {
    /// Returns a command that no shell interprets.
    pub fn of_words(words: Vec<OsString>) -> Self {
        let shown: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        Self { text: shown.join(" "), words }
    }

    /// Returns the commands in these texts. `first`, if it is not empty, is an additional command that no
    /// shell interprets. Starting a shell takes time, so either all commands run in a shell or none of them.
    pub fn all(first: Vec<OsString>, texts: &[String]) -> Vec<Self> {
        let in_shell = texts.iter().any(|text| needs_shell(text));
        let mut all = Vec::new();
        if !first.is_empty() {
            let mut command = Self::of_words(first);
            if in_shell {
                command.words.splice(0..0, ["sh", "-c", "\"$@\"", "sh"].map(OsString::from));
            }
            all.push(command);
        }
        let words = |text: &str| match in_shell {
            true => ["sh", "-c", text].map(OsString::from).to_vec(),
            false => text.split_whitespace().map(OsString::from).collect(),
        };
        all.extend(texts.iter().map(|text| Self { text: text.clone(), words: words(text) }));
        all
    }
}

/// Whether a command line contains shell syntax.
fn needs_shell(text: &str) -> bool {
    text.contains(|c: char| !(c.is_alphanumeric() || c.is_whitespace() || "-_./=:,+@%^".contains(c)))
        || text.split_whitespace().next().is_none_or(|first| first.contains('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_commands_run_in_a_shell_or_none() {
        let words = |first: &[&str], texts: &[&str]| {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            let all = ComparedCommand::all(first.iter().map(OsString::from).collect(), &texts);
            let words = |one: ComparedCommand| {
                one.words.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>()
            };
            all.into_iter().map(words).collect::<Vec<_>>()
        };
        assert_eq!(words(&[], &["a -b", "c"]), [vec!["a", "-b"], vec!["c"]]);
        assert_eq!(words(&[], &["a | b", "c"]), [["sh", "-c", "a | b"], ["sh", "-c", "c"]]);
        assert_eq!(words(&["x", "y z"], &["X=1 a"])[0], ["sh", "-c", "\"$@\"", "sh", "x", "y z"]);
    }
}
