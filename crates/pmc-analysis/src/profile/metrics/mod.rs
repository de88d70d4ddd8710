//! Metrics derived from counts: cycles become GHz, misses become a share of accesses, other counts become
//! rates.
//!
//! Receives [`StatCounts`]. For one cell, [`shadow`](shadow::shadow) returns perf's metrics with perf's
//! wording. For a row, [`derive()`] returns named and user-defined metrics. `view` formats the numbers.

mod expression;
pub mod formula;
mod grammar;
pub mod library;
pub mod literals;
pub mod named;
mod role;
pub mod shadow;
pub mod topdown;

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

/// Computes formulas for each row and each cgroup in the row. The result is for [`StatCounts::derived`].
///
/// Combines only events in the same row and cgroup, with the same privilege level (`:u` with `:u`).
pub fn derive(counts: &StatCounts, formulas: &[Formula]) -> Vec<Vec<DerivedResult>> {
    let mut cgroups: Vec<Option<&str>> = Vec::new();
    for event in &counts.events {
        if !cgroups.contains(&event.cgroup.as_deref()) {
            cgroups.push(event.cgroup.as_deref());
        }
    }
    let each = |formula| cgroups.iter().map(move |cgroup| CountedFormula::new(counts, *cgroup, formula));
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
    fn new(counts: &'a StatCounts, cgroup: Option<&'a str>, formula: &'a Formula) -> Self {
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
