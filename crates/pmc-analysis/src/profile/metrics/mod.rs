//! Metrics derived from counts: cycles become GHz, misses become a share of accesses, other counts become
//! rates.
//!
//! Receives [`StatCounts`]. For one cell, [`shadow`] returns [`ComputedMetric`]s: perf's metrics with perf's
//! wording. For a row, [`derive`] returns [`DerivedResult`]s: named and user-defined metrics. Combines only
//! events in the same row and cgroup, with the same privilege level (`:u` with `:u`). Does not format
//! numbers; [`MetricFormat`] names perf's number format for a metric.

mod expression;
pub mod formula;
mod grammar;
pub mod library;
pub mod literals;
pub mod named;
mod role;
pub mod topdown;

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use super::counts::{DerivedResult, EventRole, MissingValueReason, StatCounts, StatValue, TopdownBranch};
use super::sharing::relative_error;
use formula::{Formula, Operand};
use library::UserMetric;

/// The metrics that the user asks for.
#[derive(Debug, Clone)]
pub struct RequestedMetrics {
    /// Names of metrics and of groups of metrics.
    pub names: Vec<String>,
    /// Metrics that the user defines.
    pub expressions: Vec<UserMetric>,
    /// Level of the top-down analysis.
    pub topdown: Option<u8>,
    /// Whether to also count events that only thresholds need.
    pub thresholds: bool,
}

impl RequestedMetrics {
    /// Whether no metric is requested.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.expressions.is_empty() && self.topdown.is_none()
    }
}

impl Default for RequestedMetrics {
    fn default() -> Self {
        Self { names: Vec::new(), expressions: Vec::new(), topdown: None, thresholds: true }
    }
}

/// A number that is derived from counts.
#[derive(Debug, Clone, PartialEq)]
pub struct ComputedMetric {
    /// The name, as one word for programs: `cpus_utilized`.
    pub name: &'static str,
    /// The value in `unit`.
    pub value: f64,
    /// perf's text for the unit: `insn per cycle`, `K/sec`.
    pub unit: Cow<'static, str>,
    /// The value without a prefix, for example in events per second if `unit` is `K/sec`. Otherwise equal to
    /// `value`.
    pub plain: f64,
    /// perf's number format.
    pub format: MetricFormat,
    /// Severity of the value.
    pub concern: Concern,
    /// Whether the events were counted at different times, which makes their ratio an estimate.
    pub inexact: bool,
}

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

/// Severity of a ratio, which perf shows as a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord)]
pub enum Concern {
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

/// perf's thresholds in percent. A value above the first has the severity `High`, above the second `Middle`,
/// and above the third `Low`.
const MISSES: [f64; 3] = [20.0, 10.0, 5.0];
const FRONTEND: [f64; 3] = [50.0, 30.0, 10.0];
const BACKEND: [f64; 3] = [75.0, 50.0, 20.0];

fn concern(percent: f64, [high, middle, low]: [f64; 3]) -> Concern {
    match percent {
        p if p > high => Concern::High,
        p if p > middle => Concern::Middle,
        p if p > low => Concern::Low,
        _ => Concern::None,
    }
}

/// Returns the metrics that perf prints after the count of `event` in `row`, in perf's order. Returns no
/// metrics if an event that they need is missing.
pub fn shadow(counts: &StatCounts, row: usize, event: usize) -> Vec<ComputedMetric> {
    let Some(cell) = CountCell::of(counts, row, event) else { return Vec::new() };
    let Some(role) = counts.events[event].role else { return Vec::new() };
    let misses = |of: EventRole, name, unit| cell.percent(of, name, unit, MISSES);
    let metric = match role {
        EventRole::TaskClock | EventRole::CpuClock => cell.cpus_utilized(),
        EventRole::Cycles => cell.clock().map(|c| cell.over(c, "ghz", "GHz", MetricFormat::Fixed)),
        EventRole::Instructions => return cell.instructions(),
        EventRole::BranchMisses => misses(EventRole::Branches, "branch_miss_rate", "of all branches"),
        EventRole::CacheMisses => misses(EventRole::CacheReferences, "cache_miss_rate", "of all cache refs")
            .map(|m| ComputedMetric { format: MetricFormat::FinePercent, concern: Concern::None, ..m }),
        EventRole::L1dLoadMisses => misses(EventRole::L1dLoads, "l1d_miss_rate", "of all L1-dcache accesses"),
        EventRole::L1iLoadMisses => misses(EventRole::L1iLoads, "l1i_miss_rate", "of all L1-icache accesses"),
        EventRole::LlcLoadMisses => misses(EventRole::LlcLoads, "llc_miss_rate", "of all LL-cache accesses"),
        EventRole::DtlbLoadMisses => {
            misses(EventRole::DtlbLoads, "dtlb_miss_rate", "of all dTLB cache accesses")
        }
        EventRole::ItlbLoadMisses => {
            misses(EventRole::ItlbLoads, "itlb_miss_rate", "of all iTLB cache accesses")
        }
        EventRole::StalledFrontend => cell
            .percent(EventRole::Cycles, "frontend_idle", "frontend cycles idle", FRONTEND)
            .filter(|m| m.value != 0.0),
        EventRole::StalledBackend => {
            cell.percent(EventRole::Cycles, "backend_idle", "backend cycles idle", BACKEND)
        }
        EventRole::Energy => cell.watts(),
        _ => cell.rate(),
    };
    metric.into_iter().collect()
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
    fn of(counts: &'a StatCounts, row: usize, event: usize) -> Option<Self> {
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
                Some((e.group != own.group, e.level != own.level, Self::of(self.counts, self.row, at)?))
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

    fn over(
        &self,
        other: Self,
        name: &'static str,
        unit: &'static str,
        format: MetricFormat,
    ) -> ComputedMetric {
        let value = if other.number == 0.0 { 0.0 } else { self.number / other.number };
        let inexact = self.inexact_with(&other);
        ComputedMetric {
            name,
            value,
            unit: unit.into(),
            plain: value,
            format,
            concern: Concern::None,
            inexact,
        }
    }

    fn percent(
        &self,
        of: EventRole,
        name: &'static str,
        unit: &'static str,
        thresholds: [f64; 3],
    ) -> Option<ComputedMetric> {
        let mut metric = self.over(self.partner(of, true)?, name, unit, MetricFormat::Percent);
        metric.value *= 100.0;
        metric.plain = metric.value;
        metric.concern = concern(metric.value, thresholds);
        Some(metric)
    }

    fn instructions(&self) -> Vec<ComputedMetric> {
        let ipc = self
            .partner(EventRole::Cycles, true)
            .map(|c| self.over(c, "ipc", "insn per cycle", MetricFormat::Ratio));
        let stalled = [EventRole::StalledFrontend, EventRole::StalledBackend]
            .into_iter()
            .filter_map(|role| self.partner(role, true))
            .max_by(|a, b| a.number.total_cmp(&b.number))
            .filter(|stalled| stalled.number != 0.0 && self.number != 0.0)
            .map(|stalled| {
                stalled.over(*self, "stalled_per_insn", "stalled cycles per insn", MetricFormat::Ratio)
            });
        ipc.into_iter().chain(stalled).collect()
    }

    fn cpus_utilized(&self) -> Option<ComputedMetric> {
        (self.counts.elapsed_ns > 0).then(|| {
            let value = self.number / self.counts.elapsed_ns as f64;
            self.alone("cpus_utilized", value, value, "CPUs utilized")
        })
    }

    fn watts(&self) -> Option<ComputedMetric> {
        let seconds = self.counts.elapsed_seconds();
        (seconds > 0.0).then(|| {
            let watts = self.number * self.counts.events[self.event].scale / seconds;
            self.alone("power", watts, watts, "Watts")
        })
    }

    /// Returns the number of events per second of CPU time, with perf's prefixes.
    fn rate(&self) -> Option<ComputedMetric> {
        let clock = self.clock()?;
        let plain = if clock.number == 0.0 {
            0.0
        } else {
            1e9 * self.number * self.counts.events[self.event].scale / clock.number
        };
        let (value, unit) = match plain {
            p if p > 1e9 => (p / 1e9, "G/sec"),
            p if p > 1e6 => (p / 1e6, "M/sec"),
            p if p > 1e3 => (p / 1e3, "K/sec"),
            p => (p, "/sec"),
        };
        Some(self.alone("rate", value, plain, unit))
    }

    fn alone(&self, name: &'static str, value: f64, plain: f64, unit: &'static str) -> ComputedMetric {
        ComputedMetric {
            name,
            value,
            unit: unit.into(),
            plain,
            format: MetricFormat::Fixed,
            concern: Concern::None,
            inexact: false,
        }
    }
}

/// Computes formulas for each row and each cgroup in the row. The result is for [`StatCounts::derived`].
pub fn derive(counts: &StatCounts, formulas: &[Formula]) -> Vec<Vec<DerivedResult>> {
    let mut cgroups: Vec<Option<&str>> = Vec::new();
    for event in &counts.events {
        if !cgroups.contains(&event.cgroup.as_deref()) {
            cgroups.push(event.cgroup.as_deref());
        }
    }
    let each = |formula| cgroups.iter().map(move |cgroup| CountedFormula::of(counts, *cgroup, formula));
    let counted: Vec<CountedFormula<'_>> = formulas.iter().flat_map(each).collect();
    (0..counts.rows.len()).map(|row| counted.iter().map(|own| own.derive(row)).collect()).collect()
}

/// A formula, with the counted events that are its operands.
struct CountedFormula<'a> {
    counts: &'a StatCounts,
    cgroup: Option<&'a str>,
    formula: &'a Formula,
    events: HashMap<&'a Operand, usize>,
}

impl<'a> CountedFormula<'a> {
    fn of(counts: &'a StatCounts, cgroup: Option<&'a str>, formula: &'a Formula) -> Self {
        // Find the privilege level that all events share: `cycles:u` is combined with `instructions:u`. An
        // event whose name matches exactly can have any level.
        let mut levels: Vec<&str> = vec![""];
        for event in &counts.events {
            if !levels.contains(&event.level.as_str()) {
                levels.push(&event.level);
            }
        }
        let complete = |level: &&str| {
            let is_here = |name: &str| name == DURATION || find(counts, name, cgroup, level).is_some();
            formula.operands().iter().all(|operand| is_here(&operand.name))
        };
        let level = levels.iter().copied().find(complete).unwrap_or_default();
        let operands = formula.operands().iter().chain(formula.threshold_operands());
        let place = |of: &'a Operand| Some((of, find(counts, &of.name, cgroup, level)?));
        Self { counts, cgroup, formula, events: operands.filter_map(place).collect() }.side_by_side()
    }

    /// If an event is counted several times for different metrics, selects the count whose group contains
    /// most of the other operands.
    fn side_by_side(mut self) -> Self {
        let all = &self.counts.events;
        let is_twin = |a: usize, b: usize| all[a].name == all[b].name && all[a].cgroup == all[b].cgroup;
        let twins = |event: usize| (0..all.len()).filter(move |&other| is_twin(event, other));
        let mut sizes: HashMap<usize, usize> = HashMap::new();
        for twin in self.events.values().flat_map(|&event| twins(event)) {
            *sizes.entry(all[twin].group).or_default() += 1;
        }
        for event in self.events.values_mut() {
            let best = twins(*event).max_by_key(|&twin| (sizes[&all[twin].group], Reverse(twin)));
            *event = best.unwrap_or(*event);
        }
        self
    }

    fn derive(&self, row: usize) -> DerivedResult {
        let Self { counts, cgroup, formula, events } = self;
        let mut lookup = |operand: &Operand| self.number(row, operand);
        let used: Vec<usize> = formula.operands().iter().filter_map(|of| events.get(of).copied()).collect();
        let shared = used.iter().any(|&e| counts.value(row, e).share() < 1.0);
        let group = |e: &usize| counts.events[*e].group;
        let value = formula.evaluate(&mut lookup);
        DerivedResult {
            name: formula.name.clone(),
            unit: formula.unit.clone(),
            help: formula.help.clone(),
            cgroup: cgroup.map(str::to_owned),
            crossed: formula.crossed(&mut lookup),
            inexact: shared && used.iter().any(|e| group(e) != group(&used[0])),
            error: value.as_ref().ok().and_then(|value| self.error(row, &used, *value)),
            value,
            branch: formula.level.map(|level| TopdownBranch {
                pmu: formula.pmu.clone(),
                level,
                parent: formula.parent.clone(),
                locate: formula.locate.clone(),
            }),
        }
    }

    /// Returns half the width of the 95 % confidence interval for a value whose events were multiplexed, to
    /// first order. The error of a group affects all counts in the group equally. The errors of different
    /// groups are independent.
    fn error(&self, row: usize, used: &[usize], value: f64) -> Option<f64> {
        let counts = self.counts;
        let mut errors: BTreeMap<usize, f64> = BTreeMap::new();
        for &event in used {
            let StatValue::Counted { count, .. } = counts.value(row, event) else { continue };
            if let Some(error) = relative_error(*count) {
                let own = errors.entry(counts.events[event].group).or_default();
                *own = own.max(error);
            }
        }
        let moved = |(group, error): (&usize, &f64)| {
            let with = self.formula.evaluate(&mut |operand: &Operand| {
                let is_of_group = |&event: &usize| counts.events[event].group == *group;
                let is_moved = !operand.counters && self.events.get(operand).is_some_and(is_of_group);
                Ok(self.number(row, operand)? * if is_moved { 1.0 + error } else { 1.0 })
            });
            with.map_or(0.0, |with| with - value)
        };
        (!errors.is_empty()).then(|| errors.iter().map(moved).fold(0.0, f64::hypot))
    }

    fn number(&self, row: usize, operand: &Operand) -> Result<f64, MissingValueReason> {
        let Self { counts, events, .. } = self;
        let name = &operand.name;
        if name == DURATION {
            return Ok(counts.elapsed_seconds());
        }
        let Some(&event) = events.get(operand) else {
            return Err(MissingValueReason::new(
                format!("`{name}` is not a counted event"),
                format!("add it: -e {name}"),
            ));
        };
        let value = counts.value(row, event);
        match value.number() {
            Some(_) if operand.counters => Ok(f64::from(value.counters())),
            Some(number) if operand.raw => Ok(number),
            Some(number) => Ok(number * counts.events[event].scale),
            None => Err(match value.reason() {
                Some(reason) => MissingValueReason {
                    cause: format!("{name} has no count: {}", reason.cause),
                    ..reason.clone()
                },
                None => MissingValueReason::new(format!("{name} is not counted here"), ""),
            }),
        }
    }
}

/// The only operand that is not an event's count: the elapsed time of the measurement, in seconds.
const DURATION: &str = "duration_time";

/// Returns the event to which `name` refers in an expression: the event with exactly this name, or the
/// generic event with this role at `level`.
fn find(counts: &StatCounts, name: &str, cgroup: Option<&str>, level: &str) -> Option<usize> {
    let events = || counts.events.iter().enumerate().filter(|(_, e)| e.cgroup.as_deref() == cgroup);
    let role = role::role_of(name);
    events()
        .find(|(_, e)| e.name.eq_ignore_ascii_case(name))
        .or_else(|| {
            events().find(|(_, e)| {
                let is_clock = matches!(e.role, Some(EventRole::TaskClock | EventRole::CpuClock));
                let base = e.name.strip_suffix(level).and_then(|n| n.strip_suffix(':'));
                (e.level == level || is_clock)
                    && (role.is_some() && e.role == role
                        || base.is_some_and(|b| b.eq_ignore_ascii_case(name)))
            })
        })
        .map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::library::{Binder, MetricDefinition, MetricLibrary};
    use super::literals::MetricEnvironment;
    use super::*;
    use crate::profile::counts::{StatEvent, StatRow, StatValue};
    use pmc_text::units::Count;

    fn event(name: &str, scale: f64, unit: &str) -> StatEvent {
        StatEvent {
            name: name.into(),
            role: None,
            level: String::new(),
            scale,
            unit: unit.into(),
            snapshot: false,
            group: 0,
            cgroup: None,
        }
    }

    #[test]
    fn vendor_metrics_use_counts_and_others_use_shown_values() {
        let event = event("power/energy-pkg/", 0.25, "Joules");
        let value = StatValue::Counted {
            count: Count { value: 80, enabled_ns: 9, running_ns: 9 },
            counters: 4,
            runs: vec![],
        };
        let counts = StatCounts {
            events: vec![event],
            rows: vec![StatRow { place: Default::default(), summed: 1, values: vec![value] }],
            elapsed_ns: 2_000_000_000,
            ..Default::default()
        };
        let watts = MetricDefinition {
            name: "watts",
            expression: r"power@energy\-pkg@ / duration_time",
            threshold: "watts > 20 & missing > 1 | watts > 30",
            ..MetricDefinition::default()
        };
        let made = MetricDefinition { raw: true, pmu: "cpu", ..watts };
        let library = MetricLibrary::new([watts, made]);
        let mut binder = Binder::new(&library, &MetricEnvironment::UNKNOWN);
        let formulas: Vec<_> = library.definitions().map(|one| binder.formula(one).unwrap()).collect();
        let [row] = &derive(&counts, &formulas)[..] else { panic!() };
        assert_eq!(row.iter().map(|own| own.value.clone()).collect::<Vec<_>>(), [Ok(10.0), Ok(40.0)]);
        // The second metric is unknown, because an event that it needs was not counted.
        assert_eq!(row.iter().map(|own| own.crossed).collect::<Vec<_>>(), [Some(false), None]);
    }

    #[test]
    fn counters_of_a_sum_are_known() {
        let event = event("UNC_X", 1.0, "");
        let count = Count { value: 80, enabled_ns: 18, running_ns: 9 };
        let values = vec![StatValue::Counted { count, counters: 4, runs: vec![] }];
        let row = StatRow { place: Default::default(), summed: 2, values };
        let counts = StatCounts { events: vec![event], rows: vec![row], ..StatCounts::default() };
        let expression = "UNC_X / aggr_nr(UNC_X)";
        let library = MetricLibrary::new([MetricDefinition {
            name: "each",
            expression,
            raw: true,
            ..Default::default()
        }]);
        let mut binder = Binder::new(&library, &MetricEnvironment::UNKNOWN);
        let formula = binder.formula(library.definitions().next().unwrap()).unwrap();
        let [row] = &derive(&counts, &[formula])[..] else { panic!() };
        assert_eq!(row[0].value, Ok(40.0), "twice 80 on four counters");
        let error = 40.0 * relative_error(count).unwrap();
        assert!(row[0].error.is_some_and(|own| (own - error).abs() < 1e-9), "their number has no error");
    }
}
