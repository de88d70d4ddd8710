//! The result of counting, ready to be shown: which events, in which places, with which values.
//!
//! A command fills it from counters, one [`Counts`] for each printing (the whole run, or an interval);
//! `view` only reads it. Decides nothing about format.

use crate::units::Count;

/// One printing's worth of counts.
///
/// `rows` hold, place by place, one [`Value`] for each event of `events`, in that order.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    /// The events, in the order they were asked for.
    pub events: Vec<Event>,
    /// One row for each place: a single one without aggregation.
    pub rows: Vec<Row>,
    /// How the rows were formed.
    pub aggregation: Aggregation,
    /// Nanoseconds since the start at the end of this interval; `None` for a whole run.
    pub timestamp_ns: Option<u64>,
    /// Wall-clock nanoseconds that these counts cover.
    pub elapsed_ns: u64,
    /// Nanoseconds of them in which the hardware events were off, since somebody else had reserved the
    /// counters; with `-r N` of all runs.
    pub yielded_ns: u64,
    /// User and system CPU nanoseconds of the command, where there is one.
    pub cpu_time: Option<CpuTime>,
    /// With `-r N` the times of each run, in order; `elapsed_ns` and `cpu_time` are then their means. Empty
    /// otherwise.
    pub runs: Vec<RunTime>,
    /// Named and user-defined metrics, row by row, as [`derive`](super::metrics::derive) computes them; empty
    /// when none was asked for.
    pub derived: Vec<Vec<Derived>>,
}

/// The times of one run of `-r N`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunTime {
    /// Wall-clock nanoseconds.
    pub elapsed_ns: u64,
    /// User and system CPU nanoseconds, where a command ran.
    pub cpu_time: Option<CpuTime>,
}

/// What `wait4(2)` said of the command and its children.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// Nanoseconds in user mode.
    pub user_ns: u64,
    /// Nanoseconds in the kernel.
    pub system_ns: u64,
}

/// What places are summed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Aggregation {
    /// Everything in one row.
    #[default]
    Global,
    /// A row for each CPU (`-A`).
    Cpu,
    /// A row for each core (`--per-core`).
    Core,
    /// A row for each cluster of cores (`--per-cluster`).
    Cluster,
    /// A row for each cache of this level, or of the last (`--per-cache`).
    Cache(Option<u32>),
    /// A row for each die (`--per-die`).
    Die,
    /// A row for each socket (`--per-socket`).
    Socket,
    /// A row for each NUMA node (`--per-node`).
    Node,
    /// A row for each thread (`--per-thread`).
    Thread,
    /// Rows of the processes themselves, of what they started, and of both (`--children`).
    Children,
    /// Rows of user mode and of the kernel (`--user-kernel`).
    Levels,
}

impl Aggregation {
    /// Whether its rows are parts of one count, shown side by side.
    pub fn is_parted(self) -> bool {
        matches!(self, Self::Children | Self::Levels)
    }
}

/// A part, in the order of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// The processes themselves, with all their threads.
    Own,
    /// What they started.
    Children,
    /// Both.
    Sum,
    /// In user mode.
    User,
    /// In the kernel.
    Kernel,
}

impl Part {
    /// Its name, as tables and machine-readable forms have it.
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

/// An event as the tables need it.
#[derive(Debug, Clone)]
pub struct Event {
    /// Name shown.
    pub name: String,
    /// What derived metrics know it as; `None` for events no metric uses.
    pub role: Option<Role>,
    /// Level shown by its modifiers: metrics combine only events of the same level (`u`, `k`, `uk`, …; empty
    /// for all).
    pub level: String,
    /// Factor from the count to `unit`.
    pub scale: f64,
    /// Unit of the scaled value; empty for plain counts.
    pub unit: String,
    /// The value is a level, not a sum.
    pub snapshot: bool,
    /// Events with the same number are on the hardware together, so that their ratio is exact.
    pub group: usize,
    /// The cgroup it is counted in, as it was given.
    pub cgroup: Option<String>,
}

/// What an event means to a derived metric, whatever it was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names of perf's generic events")]
pub enum Role {
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
    /// Any other plain count: gets a per-second rate.
    Other,
}

impl Role {
    /// The factor and unit that perf shows a clock in (`Event::scale`, `Event::unit`): task-clock counts
    /// nanoseconds and is shown in `msec`. `None` for everything that is no clock.
    pub fn shown_in(self) -> Option<(f64, &'static str)> {
        match self {
            Self::TaskClock | Self::CpuClock => Some((1e-6, "msec")),
            Self::DurationTime | Self::UserTime | Self::SystemTime => Some((1.0, "ns")),
            _ => None,
        }
    }
}

/// One place's counts.
#[derive(Debug, Clone)]
pub struct Row {
    /// Where: filled as the aggregation needs.
    pub place: PlaceLabel,
    /// How many CPUs (or threads) were summed into this row; shown by perf in aggregated rows.
    pub summed: u32,
    /// One for each event.
    pub values: Vec<Value>,
}

/// Where a row was counted. Fields that the aggregation does not use are `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlaceLabel {
    /// NUMA node.
    pub node: Option<u32>,
    /// Socket (physical package).
    pub socket: Option<u32>,
    /// Die in the socket.
    pub die: Option<u32>,
    /// Cluster of cores in the die.
    pub cluster: Option<u32>,
    /// Cache in the die: level and number.
    pub cache: Option<(u32, u32)>,
    /// Core in the die.
    pub core: Option<u32>,
    /// CPU.
    pub cpu: Option<u32>,
    /// Thread: its name and id.
    pub thread: Option<(String, u32)>,
    /// Part of the count.
    pub part: Option<Part>,
}

/// What one event gave in one place.
#[derive(Debug, Clone)]
pub enum Value {
    /// A count (of this interval, or of the whole run).
    Counted {
        /// The sum over the places of the row, not scaled; with `runs`, also the sum over the runs.
        count: Count,
        /// How many counters' counts were added up to it: of CPUs, threads, PMUs of one kind.
        counters: u32,
        /// Over the runs of `-r N`: one scaled value (in events, before `Event::scale`) for each run, in
        /// order; empty otherwise.
        runs: Vec<f64>,
    },
    /// Opened, but never on a counter while enabled (`<not counted>`), and why.
    NotCounted(Reason),
    /// The machine cannot count it (`<not supported>`), and why.
    NotSupported(Reason),
    /// This place does not have the event (a socket's event on another CPU): printed as nothing.
    Absent,
}

/// Why there is no number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reason {
    /// The name of the kernel's error, such as `ENOENT`, where there was one.
    pub errno: Option<&'static str>,
    /// Why: one clause without a full stop.
    pub cause: String,
    /// What to try: an imperative clause; empty where nothing helps.
    pub remedy: String,
}

impl Value {
    /// The number of occurrences: the mean of the runs, or the scaled count; before [`Event::scale`].
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Counted { count, runs, .. } if runs.is_empty() => count.scaled(),
            Self::Counted { runs, .. } => Some(runs.iter().sum::<f64>() / runs.len() as f64),
            _ => None,
        }
    }

    /// How many counters' counts were added up to it.
    pub fn counters(&self) -> u32 {
        match self {
            Self::Counted { counters, .. } => *counters,
            _ => 0,
        }
    }

    /// The value of each run of `-r N`, before [`Event::scale`].
    pub fn runs(&self) -> &[f64] {
        match self {
            Self::Counted { runs, .. } => runs,
            _ => &[],
        }
    }

    /// The part of the enabled time in which the event was counted, 0 to 1.
    pub fn share(&self) -> f64 {
        match self {
            Self::Counted { count, .. } => count.share(),
            _ => 1.0,
        }
    }

    /// Nanoseconds on a counter, of one run on average.
    pub fn running_ns(&self) -> u64 {
        match self {
            Self::Counted { count, runs, .. } => count.running_ns / (runs.len().max(1) as u64),
            _ => 0,
        }
    }

    /// Why there is no number, if there should be one.
    pub fn reason(&self) -> Option<&Reason> {
        match self {
            Self::NotCounted(reason) | Self::NotSupported(reason) => Some(reason),
            _ => None,
        }
    }
}

impl Reason {
    /// A reason that no kernel error stands behind.
    pub fn new(cause: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { errno: None, cause: cause.into(), remedy: remedy.into() }
    }
}

impl Counts {
    /// The wall-clock seconds that these counts cover: what "CPUs utilized" and watts are measured by.
    pub fn elapsed_seconds(&self) -> f64 {
        self.elapsed_ns as f64 / 1e9
    }

    /// What an event gave in a row; nothing past the end of either.
    pub fn value(&self, row: usize, event: usize) -> &Value {
        self.rows.get(row).and_then(|r| r.values.get(event)).unwrap_or(&Value::Absent)
    }

    /// Whether the events are counted in cgroups, so that a column names them.
    pub fn has_cgroups(&self) -> bool {
        self.events.iter().any(|event| event.cgroup.is_some())
    }
}

/// What a named or user-defined metric gave in one row.
#[derive(Debug, Clone, PartialEq)]
pub struct Derived {
    /// The definition's name.
    pub name: String,
    /// The definition's unit.
    pub unit: String,
    /// The definition's help.
    pub help: String,
    /// The cgroup whose events were used, where events are counted in cgroups.
    pub cgroup: Option<String>,
    /// The value, or why there is none.
    pub value: Result<f64, Reason>,
    /// Whether it is past its threshold; `None` where there is none, or what it needs was not counted.
    pub crossed: Option<bool>,
    /// The parts were counted at different times, so that the value is an estimate.
    pub inexact: bool,
    /// Half the 95 % interval of the value, in its unit, as far as events took turns on counters; `None`
    /// where all were counted all the time.
    pub error: Option<f64>,
    /// Where it stands in the tree of the top-down analysis.
    pub branch: Option<Branch>,
}

/// A metric's place in the tree of the top-down analysis.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Branch {
    /// The kind of cores whose tree it is; empty where there is one kind.
    pub pmu: String,
    /// 1 at the top.
    pub level: u8,
    /// The metric above it; empty at the top.
    pub parent: String,
    /// The events to sample with where it alarms, with `;` between them.
    pub locate: String,
}
