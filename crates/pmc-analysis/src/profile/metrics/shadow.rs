//! The metrics that perf prints after a count, one row of [`METRICS`] each: `GHz` after cycles, `insn per
//! cycle` after instructions, a rate after most other events.
//!
//! [`shadow`] computes them for one cell of [`StatCounts`]. [`MetricFormat`] names perf's number format; the
//! views format the numbers.

use std::borrow::Cow;

use crate::profile::counts::{EventRole, StatCounts};

/// A metric that perf prints after the count of an event.
#[derive(Debug)]
pub struct ShadowMetric {
    /// The name, as one word for programs: `cpus_utilized`.
    pub name: &'static str,
    /// The unit of [`ComputedMetric::plain`]; empty for a ratio.
    pub unit: &'static str,
    /// perf's text for the unit: `insn per cycle`.
    pub perf_unit: &'static str,
    /// perf's number format.
    pub format: MetricFormat,
    /// Whether it has a column in tables that show only metrics.
    pub column: MetricColumnRule,
    /// The events after whose counts it is printed. If empty, it is printed after all events that have no
    /// metric of their own.
    after: &'static [EventRole],
    /// Computes the value; `None` if another count that it needs is missing.
    value: fn(CountCell<'_>) -> Option<MetricValue>,
}

/// Every metric, in the order in which they are printed after a count.
static METRICS: &[ShadowMetric] = &[
    ShadowMetric {
        name: "cpus_utilized",
        unit: "CPUs",
        perf_unit: "CPUs utilized",
        format: MetricFormat::Fixed,
        column: MetricColumnRule::OnlyInText,
        after: &[EventRole::TaskClock, EventRole::CpuClock],
        value: |clock| clock.cpus_utilized(),
    },
    ShadowMetric {
        name: "ghz",
        unit: "GHz",
        perf_unit: "GHz",
        format: MetricFormat::Fixed,
        column: MetricColumnRule::Always,
        after: &[EventRole::Cycles],
        value: |cycles| Some(cycles.over(cycles.clock()?)),
    },
    ShadowMetric {
        name: "ipc",
        unit: "",
        perf_unit: "insn per cycle",
        format: MetricFormat::Ratio,
        column: MetricColumnRule::Always,
        after: &[EventRole::Instructions],
        value: |instructions| Some(instructions.over(instructions.partner(EventRole::Cycles, true)?)),
    },
    ShadowMetric {
        name: "stalled_per_insn",
        unit: "",
        perf_unit: "stalled cycles per insn",
        format: MetricFormat::Ratio,
        column: MetricColumnRule::IfCounted,
        after: &[EventRole::Instructions],
        value: |instructions| instructions.stalled_per_instruction(),
    },
    ShadowMetric {
        name: "branch_miss_rate",
        unit: "%",
        perf_unit: "of all branches",
        format: MetricFormat::Percent,
        column: MetricColumnRule::Always,
        after: &[EventRole::BranchMisses],
        value: |misses| misses.percent(EventRole::Branches, MISSES),
    },
    ShadowMetric {
        name: "cache_miss_rate",
        unit: "%",
        perf_unit: "of all cache refs",
        format: MetricFormat::FinePercent,
        column: MetricColumnRule::Always,
        after: &[EventRole::CacheMisses],
        // perf does not colour this metric.
        value: |misses| misses.percent(EventRole::CacheReferences, [f64::INFINITY; 3]),
    },
    ShadowMetric {
        name: "l1d_miss_rate",
        unit: "%",
        perf_unit: "of all L1-dcache accesses",
        format: MetricFormat::Percent,
        column: MetricColumnRule::IfCounted,
        after: &[EventRole::L1dLoadMisses],
        value: |misses| misses.percent(EventRole::L1dLoads, MISSES),
    },
    ShadowMetric {
        name: "l1i_miss_rate",
        unit: "%",
        perf_unit: "of all L1-icache accesses",
        format: MetricFormat::Percent,
        column: MetricColumnRule::IfCounted,
        after: &[EventRole::L1iLoadMisses],
        value: |misses| misses.percent(EventRole::L1iLoads, MISSES),
    },
    ShadowMetric {
        name: "llc_miss_rate",
        unit: "%",
        perf_unit: "of all LL-cache accesses",
        format: MetricFormat::Percent,
        column: MetricColumnRule::IfCounted,
        after: &[EventRole::LlcLoadMisses],
        value: |misses| misses.percent(EventRole::LlcLoads, MISSES),
    },
    ShadowMetric {
        name: "dtlb_miss_rate",
        unit: "%",
        perf_unit: "of all dTLB cache accesses",
        format: MetricFormat::Percent,
        column: MetricColumnRule::IfCounted,
        after: &[EventRole::DtlbLoadMisses],
        value: |misses| misses.percent(EventRole::DtlbLoads, MISSES),
    },
    ShadowMetric {
        name: "itlb_miss_rate",
        unit: "%",
        perf_unit: "of all iTLB cache accesses",
        format: MetricFormat::Percent,
        column: MetricColumnRule::IfCounted,
        after: &[EventRole::ItlbLoadMisses],
        value: |misses| misses.percent(EventRole::ItlbLoads, MISSES),
    },
    ShadowMetric {
        name: "frontend_idle",
        unit: "%",
        perf_unit: "frontend cycles idle",
        format: MetricFormat::Percent,
        column: MetricColumnRule::Always,
        after: &[EventRole::StalledFrontend],
        value: |stalled| stalled.percent(EventRole::Cycles, FRONTEND).filter(|percent| percent.value != 0.0),
    },
    ShadowMetric {
        name: "backend_idle",
        unit: "%",
        perf_unit: "backend cycles idle",
        format: MetricFormat::Percent,
        column: MetricColumnRule::Always,
        after: &[EventRole::StalledBackend],
        value: |stalled| stalled.percent(EventRole::Cycles, BACKEND),
    },
    ShadowMetric {
        name: "power",
        unit: "W",
        perf_unit: "Watts",
        format: MetricFormat::Fixed,
        column: MetricColumnRule::IfCounted,
        after: &[EventRole::Energy],
        value: |energy| energy.watts(),
    },
    ShadowMetric {
        name: "rate",
        unit: "/s",
        perf_unit: "/sec",
        format: MetricFormat::Fixed,
        column: MetricColumnRule::Never,
        after: &[],
        value: |events| events.rate(),
    },
];

/// perf's number formats for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricFormat {
    /// `%8.3f`
    Fixed,
    /// `%7.2f ` (with a trailing blank)
    Ratio,
    /// `%7.2f%%`
    Percent,
    /// `%8.3f %%`
    FinePercent,
}

/// Whether a metric has a column in tables that show only metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricColumnRule {
    /// Never: its unit differs between rows.
    Never,
    /// In the table for people, but not in CSV and JSON, as in perf.
    OnlyInText,
    /// If a row has a value.
    IfCounted,
    /// Even if the event could not be counted, as in perf.
    Always,
}

/// Severity of a ratio, which perf shows as a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord)]
pub enum RatioSeverity {
    /// Normal.
    #[default]
    None,
    /// Worth a look.
    Low,
    /// Probably a problem.
    Middle,
    /// A problem.
    High,
}

/// A number that is derived from counts.
#[derive(Debug, Clone)]
pub struct ComputedMetric {
    /// The metric.
    pub metric: &'static ShadowMetric,
    /// The value in `unit`.
    pub value: f64,
    /// perf's text for the unit: `insn per cycle`, `K/sec`.
    pub unit: Cow<'static, str>,
    /// The value without a prefix, for example in events per second if `unit` is `K/sec`. Otherwise equal to
    /// `value`.
    pub plain: f64,
    /// Severity of the value.
    pub severity: RatioSeverity,
    /// Whether the events were counted at different times, which makes their ratio an estimate.
    pub inexact: bool,
}

/// Returns the metrics that perf prints after the count of `event` in `row`, in perf's order. Returns no
/// metrics if an event that they need is missing.
pub fn shadow(counts: &StatCounts, row: usize, event: usize) -> Vec<ComputedMetric> {
    let Some(cell) = CountCell::at(counts, row, event) else { return Vec::new() };
    let Some(role) = counts.events[event].role else { return Vec::new() };
    let computed = |metric: &'static ShadowMetric| {
        let MetricValue { value, prefix: (prefix, size), severity, inexact } = (metric.value)(cell)?;
        let unit = match prefix {
            "" => metric.perf_unit.into(),
            _ => format!("{prefix}{}", metric.perf_unit).into(),
        };
        Some(ComputedMetric { metric, value: value / size, unit, plain: value, severity, inexact })
    };
    after(role).filter_map(computed).collect()
}

/// Returns the metric for whose values a table has a column even if the event could not be counted.
pub fn expected(role: EventRole) -> Option<&'static ShadowMetric> {
    after(role).find(|metric| metric.column == MetricColumnRule::Always)
}

/// Returns the metrics that are printed after the count of an event with this role.
fn after(role: EventRole) -> impl Iterator<Item = &'static ShadowMetric> {
    let has_own = METRICS.iter().any(|metric| metric.after.contains(&role));
    METRICS.iter().filter(move |metric| match has_own {
        true => metric.after.contains(&role),
        false => metric.after.is_empty(),
    })
}

/// perf's thresholds in percent. A value above the first has the severity `High`, above the second `Middle`,
/// and above the third `Low`.
const MISSES: [f64; 3] = [20.0, 10.0, 5.0];
const FRONTEND: [f64; 3] = [50.0, 30.0, 10.0];
const BACKEND: [f64; 3] = [75.0, 50.0, 20.0];

fn severity(percent: f64, [high, middle, low]: [f64; 3]) -> RatioSeverity {
    match percent {
        p if p > high => RatioSeverity::High,
        p if p > middle => RatioSeverity::Middle,
        p if p > low => RatioSeverity::Low,
        _ => RatioSeverity::None,
    }
}

/// The value of a metric.
struct MetricValue {
    value: f64,
    /// The prefix of the unit with which perf prints the value, and its factor.
    prefix: (&'static str, f64),
    severity: RatioSeverity,
    inexact: bool,
}

impl MetricValue {
    fn new(value: f64) -> Self {
        Self { value, prefix: ("", 1.0), severity: RatioSeverity::None, inexact: false }
    }
}

/// A counted cell in the table, with access to the other cells in its row.
#[derive(Clone, Copy)]
struct CountCell<'a> {
    counts: &'a StatCounts,
    row: usize,
    event: usize,
    number: f64,
}

impl<'a> CountCell<'a> {
    fn at(counts: &'a StatCounts, row: usize, event: usize) -> Option<Self> {
        let number = counts.value(row, event).number()?;
        Some(Self { counts, row, event, number })
    }

    /// Returns a counted event with this role that can be combined with this cell. Prefers an event in the
    /// same group.
    fn partner(&self, role: EventRole, same_level: bool) -> Option<Self> {
        let events = &self.counts.events;
        let own = &events[self.event];
        events
            .iter()
            .enumerate()
            .filter(|(_, e)| {
                e.role == Some(role) && e.cgroup == own.cgroup && (!same_level || e.level == own.level)
            })
            .filter_map(|(at, e)| {
                Some((e.group != own.group, e.level != own.level, Self::at(self.counts, self.row, at)?))
            })
            .min_by_key(|(other_group, other_level, _)| (*other_level, *other_group))
            .map(|(_, _, cell)| cell)
    }

    /// Returns the clock event to compute rates with. Its privilege level does not matter, because it
    /// measures time.
    fn clock(&self) -> Option<Self> {
        self.partner(EventRole::TaskClock, false).or_else(|| self.partner(EventRole::CpuClock, false))
    }

    fn inexact_with(&self, other: &Self) -> bool {
        let events = &self.counts.events;
        let share = |cell: &Self| cell.counts.value(cell.row, cell.event).share();
        events[self.event].group != events[other.event].group && (share(self) < 1.0 || share(other) < 1.0)
    }

    /// Returns the quotient of two counts.
    fn over(&self, other: Self) -> MetricValue {
        let value = if other.number == 0.0 { 0.0 } else { self.number / other.number };
        MetricValue { inexact: self.inexact_with(&other), ..MetricValue::new(value) }
    }

    /// Returns the count as a percentage of another one.
    fn percent(&self, of: EventRole, thresholds: [f64; 3]) -> Option<MetricValue> {
        let ratio = self.over(self.partner(of, true)?);
        let value = ratio.value * 100.0;
        Some(MetricValue { value, severity: severity(value, thresholds), ..ratio })
    }

    fn stalled_per_instruction(self) -> Option<MetricValue> {
        let stalled = [EventRole::StalledFrontend, EventRole::StalledBackend]
            .into_iter()
            .filter_map(|role| self.partner(role, true))
            .max_by(|a, b| a.number.total_cmp(&b.number))?;
        (stalled.number != 0.0 && self.number != 0.0).then(|| stalled.over(self))
    }

    fn cpus_utilized(self) -> Option<MetricValue> {
        let elapsed_ns = self.counts.elapsed_ns;
        (elapsed_ns > 0).then(|| MetricValue::new(self.number / elapsed_ns as f64))
    }

    fn watts(self) -> Option<MetricValue> {
        let seconds = self.counts.elapsed_seconds();
        let joules = self.number * self.counts.events[self.event].scale;
        (seconds > 0.0).then(|| MetricValue::new(joules / seconds))
    }

    /// Returns the number of events per second of CPU time, with perf's prefixes.
    fn rate(self) -> Option<MetricValue> {
        let clock = self.clock()?;
        let number = 1e9 * self.number * self.counts.events[self.event].scale;
        let value = if clock.number == 0.0 { 0.0 } else { number / clock.number };
        let prefix = match value {
            rate if rate > 1e9 => ("G", 1e9),
            rate if rate > 1e6 => ("M", 1e6),
            rate if rate > 1e3 => ("K", 1e3),
            _ => ("", 1.0),
        };
        Some(MetricValue { prefix, ..MetricValue::new(value) })
    }
}
