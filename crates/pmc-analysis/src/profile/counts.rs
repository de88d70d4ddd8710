//! The result of counting, ready to print: events, places and values.
//!
//! For each table to print (a whole run or an interval), a command fills in one [`StatCounts`] from its
//! counters. `view` reads it and decides the format.

use std::str::FromStr;

use pmc_sys::error::{Error, Result};
use pmc_text::units::{Count, seconds};

/// The counts for one printed table.
///
/// `rows` contains one row per place, such as a CPU, a socket or a thread. Each row has one [`StatValue`] per
/// event, in the order of `events`.
#[derive(Debug, Clone, Default)]
pub struct StatCounts {
    /// The events, in the requested order.
    pub events: Vec<StatEvent>,
    /// One row per place; a single row without aggregation.
    pub rows: Vec<StatRow>,
    /// How places are grouped into rows.
    pub aggregation: Aggregation,
    /// End of this interval, in nanoseconds since the start; `None` for a whole run.
    pub timestamp_ns: Option<u64>,
    /// Wall-clock time of these counts, in nanoseconds.
    pub elapsed_ns: u64,
    /// The part of `elapsed_ns` during which the hardware events were off because another program had
    /// reserved the counters. With `-r N`, the sum over all runs.
    pub yielded_ns: u64,
    /// User and system CPU time of the command, if there is one.
    pub cpu_time: Option<CpuTime>,
    /// With `-r N`, the times of each run, in order; `elapsed_ns` and `cpu_time` are then their means.
    /// Otherwise empty.
    pub runs: Vec<RunTime>,
    /// Named and user-defined metrics by row, as computed by [`derive`](super::metrics::derive). Empty if no
    /// metric was requested.
    pub derived: Vec<Vec<DerivedResult>>,
}

/// The times of one run with `-r N`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunTime {
    /// Wall-clock time in nanoseconds.
    pub elapsed_ns: u64,
    /// User and system CPU time, if a command ran.
    pub cpu_time: Option<CpuTime>,
}

/// CPU time of the command and its children, from `wait4(2)`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// User mode time in nanoseconds.
    pub user_ns: u64,
    /// Kernel time in nanoseconds.
    pub system_ns: u64,
}

/// How places are grouped into rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Aggregation {
    /// A single row.
    #[default]
    Global,
    /// One row per CPU (`-A`).
    Cpu,
    /// One row per core (`--per-core`).
    Core,
    /// One row per cluster of cores (`--per-cluster`).
    Cluster,
    /// One row per cache of this level, or of the last level (`--per-cache`).
    Cache(Option<u32>),
    /// One row per die (`--per-die`).
    Die,
    /// One row per socket (`--per-socket`).
    Socket,
    /// One row per NUMA node (`--per-node`).
    Node,
    /// One row per thread (`--per-thread`).
    Thread,
    /// One row each for the processes themselves, their children, and both together (`--children`).
    Children,
    /// One row each for user mode and for the kernel (`--user-kernel`).
    Levels,
}

impl Aggregation {
    /// Whether the rows are the parts of a count; see [`CountPart`].
    pub fn is_parted(self) -> bool {
        matches!(self, Self::Children | Self::Levels)
    }
}

/// A level of CPU caches: 1 to 4, or `None` for the last level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheLevel(pub Option<u32>);

impl FromStr for CacheLevel {
    type Err = Error;

    /// Parses `L2`, `l2` or `2`. An empty string selects the last level.
    fn from_str(text: &str) -> Result<Self> {
        let number =
            || text.trim_start_matches(['L', 'l']).parse().ok().filter(|level| (1..=4).contains(level));
        match text.is_empty() {
            true => Ok(Self(None)),
            false => number()
                .map(|level| Self(Some(level)))
                .ok_or_else(|| Error::usage("not a cache level").try_this("L1, L2, L3 or L4")),
        }
    }
}

/// A part of a count, in the order of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CountPart {
    /// The measured processes themselves, with all their threads.
    Own,
    /// The child processes of the measured processes.
    Children,
    /// The measured processes and their children together.
    Sum,
    /// User mode.
    User,
    /// The kernel.
    Kernel,
}

impl CountPart {
    /// Returns the part's name in tables and machine-readable output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Own => "self",
            Self::Children => "children",
            Self::Sum => "sum",
            Self::User => "user",
            Self::Kernel => "kernel",
        }
    }
}

/// An event, with all properties that tables need.
#[derive(Debug, Clone)]
pub struct StatEvent {
    /// The displayed name.
    pub name: String,
    /// The event's role in derived metrics.
    pub role: Option<EventRole>,
    /// The privilege level from the modifiers (`u`, `k`, `uk`, …; empty for all). A metric combines only
    /// events with the same level.
    pub level: String,
    /// Factor that converts the count to `unit`.
    pub scale: f64,
    /// Unit of the scaled value; empty for plain counts.
    pub unit: String,
    /// Whether the value is a current level, such as a cache occupancy, instead of a sum.
    pub snapshot: bool,
    /// Index of the event's group. Events in the same group are scheduled together, so their ratio is exact.
    pub group: usize,
    /// The cgroup in which the event is counted, as the user typed it.
    pub cgroup: Option<String>,
}

/// An event's meaning for derived metrics, independent of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "perf's generic event names")]
pub enum EventRole {
    TaskClock,
    CpuClock,
    Cycles,
    RefCycles,
    BusCycles,
    Instructions,
    Branches,
    BranchMisses,
    CacheReferences,
    CacheMisses,
    StalledFrontend,
    StalledBackend,
    L1dLoads,
    L1dLoadMisses,
    L1iLoads,
    L1iLoadMisses,
    LlcLoads,
    LlcLoadMisses,
    DtlbLoads,
    DtlbLoadMisses,
    ItlbLoads,
    ItlbLoadMisses,
    Energy,
    DurationTime,
    UserTime,
    SystemTime,
    /// Any other plain count, which is shown with a rate per second.
    Other,
}

impl EventRole {
    /// Returns the factor and the unit that perf uses to print a clock event (`StatEvent::scale`,
    /// `StatEvent::unit`). For example, task-clock counts nanoseconds and is printed in `msec`. Returns
    /// `None` for other events.
    pub fn shown_in(self) -> Option<(f64, &'static str)> {
        match self {
            Self::TaskClock | Self::CpuClock => Some((1e-6, "msec")),
            Self::DurationTime | Self::UserTime | Self::SystemTime => Some((1.0, "ns")),
            _ => None,
        }
    }

    /// Whether the event counts nanoseconds.
    pub fn is_time(self) -> bool {
        self.shown_in().is_some()
    }
}

/// A row of the table: the counts for one place.
#[derive(Debug, Clone)]
pub struct StatRow {
    /// The place, with the fields that the aggregation uses.
    pub place: PlaceLabel,
    /// Number of CPUs or threads that this row sums up; perf prints this number in aggregated rows.
    pub summed: u32,
    /// One value per event.
    pub values: Vec<StatValue>,
}

/// The place of a row. Fields that the aggregation does not use are `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlaceLabel {
    /// NUMA node.
    pub node: Option<u32>,
    /// Socket (physical package).
    pub socket: Option<u32>,
    /// Die within the socket.
    pub die: Option<u32>,
    /// Cluster of cores within the die.
    pub cluster: Option<u32>,
    /// Cache within the die: level and index.
    pub cache: Option<(u32, u32)>,
    /// Core within the die.
    pub core: Option<u32>,
    /// CPU.
    pub cpu: Option<u32>,
    /// Thread: name and id.
    pub thread: Option<(String, u32)>,
    /// Part of the count.
    pub part: Option<CountPart>,
}

/// The result of counting one event in one place.
#[derive(Debug, Clone)]
pub enum StatValue {
    /// A count of this interval or of the whole run.
    Counted {
        /// The sum over the row's places, not scaled. With `runs`, also the sum over the runs.
        count: Count,
        /// Number of counters in the sum: one per CPU, thread, or PMU of the same kind.
        counters: u32,
        /// With `-r N`, one scaled value (in events, before `StatEvent::scale`) per run, in order. Otherwise
        /// empty.
        runs: Vec<f64>,
    },
    /// The event was opened and enabled, but never ran on a counter (`<not counted>`), with the reason.
    NotCounted(MissingValueReason),
    /// The machine does not support the event (`<not supported>`), with the reason.
    NotSupported(MissingValueReason),
    /// The event does not exist in this place, such as an event of one socket on a CPU of another socket. The
    /// value is not printed.
    Absent,
}

/// Why a value is missing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MissingValueReason {
    /// Name of the kernel's error, such as `ENOENT`, if the kernel returned an error.
    pub errno: Option<&'static str>,
    /// The cause: one clause without a full stop.
    pub cause: String,
    /// Suggested remedy: an imperative clause; empty if there is no remedy.
    pub remedy: String,
}

impl StatValue {
    /// Returns the number of events before [`StatEvent::scale`]: the mean of the runs, or the scaled count.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Counted { count, runs, .. } if runs.is_empty() => count.scaled(),
            Self::Counted { runs, .. } => Some(runs.iter().sum::<f64>() / runs.len() as f64),
            _ => None,
        }
    }

    /// Returns the number of counters in the sum.
    pub(crate) fn counters(&self) -> u32 {
        match self {
            Self::Counted { counters, .. } => *counters,
            _ => 0,
        }
    }

    /// Returns the value of each run of `-r N`, before [`StatEvent::scale`].
    pub fn runs(&self) -> &[f64] {
        match self {
            Self::Counted { runs, .. } => runs,
            _ => &[],
        }
    }

    /// Returns the fraction of the enabled time during which the event was counted, 0 to 1.
    pub(crate) fn share(&self) -> f64 {
        match self {
            Self::Counted { count, .. } => count.share(),
            _ => 1.0,
        }
    }

    /// Returns how long the event was on a counter, in nanoseconds, averaged over the runs.
    pub fn running_ns(&self) -> u64 {
        match self {
            Self::Counted { count, runs, .. } => count.running_ns / (runs.len().max(1) as u64),
            _ => 0,
        }
    }

    /// Returns why the number is missing. Returns `None` if there is a number, or if the event does not exist
    /// in this place.
    pub fn reason(&self) -> Option<&MissingValueReason> {
        match self {
            Self::NotCounted(reason) | Self::NotSupported(reason) => Some(reason),
            _ => None,
        }
    }
}

impl MissingValueReason {
    /// Creates a reason without a kernel error.
    pub fn new(cause: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { errno: None, cause: cause.into(), remedy: remedy.into() }
    }
}

impl StatCounts {
    /// Returns the wall-clock time of these counts in seconds. "CPUs utilized" and watts are computed from
    /// it.
    pub fn elapsed_seconds(&self) -> f64 {
        seconds(self.elapsed_ns)
    }

    /// Returns an event's value in a row, or [`StatValue::Absent`] if an index is out of range.
    pub fn value(&self, row: usize, event: usize) -> &StatValue {
        self.rows.get(row).and_then(|r| r.values.get(event)).unwrap_or(&StatValue::Absent)
    }

    /// Whether the events are counted in cgroups. If so, the table needs a column for cgroups.
    pub fn has_cgroups(&self) -> bool {
        self.events.iter().any(|event| event.cgroup.is_some())
    }
}

/// The result of a named or user-defined metric for one row.
#[derive(Debug, Clone, PartialEq)]
pub struct DerivedResult {
    /// The metric's name.
    pub name: String,
    /// The metric's unit.
    pub unit: String,
    /// The metric's help text.
    pub help: String,
    /// The cgroup of the events, if they are counted in cgroups.
    pub cgroup: Option<String>,
    /// The value, or why it is missing.
    pub value: Result<f64, MissingValueReason>,
    /// Whether the value crosses its threshold. `None` if there is no threshold, or if the events that it
    /// needs were not counted.
    pub crossed: Option<bool>,
    /// Whether the events were counted at different times, which makes the value an estimate.
    pub inexact: bool,
    /// Half the width of the value's 95 % confidence interval, in the metric's unit. Covers only the
    /// uncertainty caused by multiplexing. `None` if all events were counted all the time.
    pub error: Option<f64>,
    /// The metric's position in the tree of the top-down analysis, if it has one.
    pub branch: Option<TopdownBranch>,
}

/// A metric's position in the tree of the top-down analysis.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TopdownBranch {
    /// PMU of the kind of core that the tree describes; empty if all cores are of the same kind.
    pub pmu: String,
    /// Level in the tree; 1 is the top level.
    pub level: u8,
    /// The parent metric; empty at the top level.
    pub parent: String,
    /// The events to sample when the metric exceeds its threshold, separated by `;`.
    pub locate: String,
}
