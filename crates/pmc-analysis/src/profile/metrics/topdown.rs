//! Top-down analysis, level 1: how the pipeline's issue slots were used.
//!
//! Receives the names of the machine's events, and later their [`StatCounts`]. Returns the events to count
//! and four shares of the slots. The method is A. Yasin's (*A Top-Down Method for Performance Analysis and
//! Counters Architecture*, ISPASS 2014).
//!
//! ```text
//!                          all issue slots
//!        micro-operation issued?  yes            no
//!            retired?      yes      no       back end stalled?  yes   no
//!                       retiring  bad spec.           backend bound  frontend bound
//! ```

use crate::profile::counts::{DerivedResult, MissingValueReason, StatCounts, TopdownBranch};

/// Intel since Ice Lake: the hardware counts the four shares and the slots in one group.
const SHARES: [&str; 5] =
    ["slots", "topdown-retiring", "topdown-bad-spec", "topdown-fe-bound", "topdown-be-bound"];

/// Intel since Sandy Bridge: the four shares are computed from five events.
const COUNTS: [&str; 5] = [
    "topdown-total-slots",
    "topdown-slots-issued",
    "topdown-slots-retired",
    "topdown-fetch-bubbles",
    "topdown-recovery-bubbles",
];

/// The four shares of the slots, each 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TopdownLevel1 {
    /// Useful work.
    pub(crate) retiring: f64,
    /// Work discarded after a misprediction.
    pub(crate) bad_speculation: f64,
    /// Slots lost because the front end delivered no instructions in time.
    pub(crate) frontend_bound: f64,
    /// Slots lost because the back end could not accept more instructions.
    pub(crate) backend_bound: f64,
}

/// Returns the events to count as one group. `has` returns whether the core PMU has an event. Returns `None`
/// if the PMU supports neither set of events.
pub fn events(has: impl Fn(&str) -> bool) -> Option<&'static [&'static str]> {
    [&SHARES, &COUNTS].into_iter().find(|set| set.iter().all(|name| has(name))).map(|set| &set[..])
}

/// Analyzes one row.
///
/// # Errors
/// Fails if an event is missing. Returns that event and the reason.
pub(crate) fn level1(counts: &StatCounts, row: usize) -> Result<TopdownLevel1, MissingValueReason> {
    let get = |name: &str| number(counts, row, name);
    if counts.events.iter().any(|e| is(&e.name, SHARES[0])) {
        let [_, retiring, bad, frontend, backend] = SHARES;
        let (r, b, f, k) = (get(retiring)?, get(bad)?, get(frontend)?, get(backend)?);
        // The four shares should add up to all slots. Dividing by their sum corrects the rounding errors in
        // the register.
        let all = r + b + f + k;
        return shares(all, r, b, f);
    }
    let [total, issued, retired, bubbles, recovery] = COUNTS;
    let total = get(total)?;
    let retired = get(retired)?;
    shares(total, retired, (get(issued)? - retired + get(recovery)?).max(0.0), get(bubbles)?)
}

/// Analyzes every row and returns the shares as named metrics, in percent. The result is for
/// [`StatCounts::derived`].
pub fn derive(counts: &StatCounts) -> Vec<Vec<DerivedResult>> {
    let row = |row| {
        let level = level1(counts, row);
        let part = |name: &str, most: f64, help: &str, pick: fn(TopdownLevel1) -> f64| DerivedResult {
            name: name.to_owned(),
            unit: "%".to_owned(),
            help: help.to_owned(),
            cgroup: None,
            crossed: level.as_ref().ok().map(|l| pick(*l) > most),
            value: level.clone().map(|l| 100.0 * pick(l)),
            inexact: false,
            error: None,
            branch: Some(TopdownBranch { level: 1, ..TopdownBranch::default() }),
        };
        // These are the thresholds from Intel's tables.
        vec![
            part("retiring", 0.7, "useful work", |l| l.retiring),
            part("bad speculation", 0.15, "work discarded after wrong speculation", |l| l.bad_speculation),
            part("frontend bound", 0.15, "waiting for instructions", |l| l.frontend_bound),
            part("backend bound", 0.2, "waiting for data or execution units", |l| l.backend_bound),
        ]
    };
    (0..counts.rows.len()).map(row).collect()
}

/// Returns the path from the top of a tree to its bottleneck. At each level, the path follows the largest
/// metric that exceeds its threshold. The result contains indices into `tree`. All metrics in `tree` must
/// belong to the same PMU.
pub fn bottleneck(tree: &[&DerivedResult]) -> Vec<usize> {
    let mut path: Vec<usize> = Vec::new();
    loop {
        let above = path.last().map(|&at: &usize| tree[at].name.as_str());
        let is_below = |derived: &DerivedResult| {
            let parent = derived.branch.as_ref().map_or("", |branch| branch.parent.as_str());
            match above {
                Some(above) => parent == above,
                None => !tree.iter().any(|other| other.name == parent),
            }
        };
        let next = (0..tree.len())
            .filter(|at| tree[*at].crossed == Some(true) && is_below(tree[*at]) && !path.contains(at))
            .filter_map(|at| Some((at, *tree[at].value.as_ref().ok()?)))
            .max_by(|(_, a), (_, b)| a.total_cmp(b));
        match next {
            Some((at, _)) => path.push(at),
            None => return path,
        }
    }
}

fn shares(all: f64, retiring: f64, bad: f64, frontend: f64) -> Result<TopdownLevel1, MissingValueReason> {
    if all <= 0.0 {
        return Err(MissingValueReason::new("no issue slots were counted", "measure a longer run"));
    }
    let (retiring, bad_speculation, frontend_bound) = (retiring / all, bad / all, frontend / all);
    let backend_bound = (1.0 - retiring - bad_speculation - frontend_bound).clamp(0.0, 1.0);
    Ok(TopdownLevel1 { retiring, bad_speculation, frontend_bound, backend_bound })
}

fn number(counts: &StatCounts, row: usize, name: &str) -> Result<f64, MissingValueReason> {
    let Some(event) = counts.events.iter().position(|e| is(&e.name, name)) else {
        return Err(MissingValueReason::new(format!("{name} is not a counted event"), ""));
    };
    let value = counts.value(row, event);
    match (value.number(), value.reason()) {
        (Some(number), _) => Ok(number * counts.events[event].scale),
        (None, Some(reason)) => Err(reason.clone()),
        (None, None) => Err(MissingValueReason::new(format!("{name} is not counted here"), "")),
    }
}

/// Whether an event as typed (`cpu/topdown-retiring/u`, `slots:u`) has this name.
fn is(typed: &str, name: &str) -> bool {
    let inner = typed.split_once('/').map_or(typed, |(_, terms)| terms);
    inner.split(['/', ':', ',']).next().is_some_and(|word| word.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::counts::{StatEvent, StatRow, StatValue};
    use pmc_text::units::Count;

    fn counts(values: &[(&str, u64)]) -> StatCounts {
        let event = |name: &str| StatEvent {
            name: name.into(),
            role: None,
            level: String::new(),
            scale: 1.0,
            unit: String::new(),
            snapshot: false,
            group: 0,
            cgroup: None,
        };
        let value = |value| StatValue::Counted {
            count: Count { value, enabled_ns: 9, running_ns: 9 },
            counters: 1,
            runs: vec![],
        };
        StatCounts {
            events: values.iter().map(|(n, _)| event(n)).collect(),
            rows: vec![StatRow {
                place: Default::default(),
                summed: 1,
                values: values.iter().map(|(_, v)| value(*v)).collect(),
            }],
            ..Default::default()
        }
    }

    #[test]
    fn bottleneck_is_the_largest_above_its_threshold() {
        let metric = |name: &str, parent: &str, value, crossed| DerivedResult {
            name: name.to_owned(),
            unit: "%".to_owned(),
            help: String::new(),
            cgroup: None,
            value: Ok(value),
            crossed,
            inexact: false,
            error: None,
            branch: Some(TopdownBranch { level: 1, parent: parent.to_owned(), ..TopdownBranch::default() }),
        };
        let all = [
            metric("retiring", "", 60.0, Some(false)),
            metric("backend", "", 25.0, Some(true)),
            metric("frontend", "", 20.0, Some(true)),
            metric("core", "backend", 5.0, Some(true)),
            metric("memory", "backend", 20.0, Some(true)),
            metric("dram", "memory", 20.0, None),
            metric("light", "retiring", 60.0, Some(true)),
        ];
        let tree: Vec<&DerivedResult> = all.iter().collect();
        assert_eq!(bottleneck(&tree), [1, 4]);
        // A metric is at the top if its parent was not requested.
        assert_eq!(bottleneck(&tree[3..5]), [1]);
        assert_eq!(bottleneck(&tree[..1]), [0usize; 0]);
    }

    #[test]
    fn shares_are_relative_to_their_sum() {
        let got = level1(
            &counts(&[
                ("slots", 1000),
                ("cpu/topdown-retiring/", 500),
                ("topdown-bad-spec:u", 100),
                ("topdown-fe-bound", 150),
                ("topdown-be-bound", 250),
            ]),
            0,
        )
        .unwrap();
        assert_eq!((got.retiring, got.bad_speculation, got.frontend_bound), (0.5, 0.1, 0.15));
        assert!((got.backend_bound - 0.25).abs() < 1e-12);
    }

    #[test]
    fn old_formula_subtracts() {
        let names = COUNTS;
        let got = level1(
            &counts(&[(names[0], 1000), (names[1], 600), (names[2], 500), (names[3], 200), (names[4], 50)]),
            0,
        )
        .unwrap();
        assert_eq!((got.retiring, got.bad_speculation, got.frontend_bound), (0.5, 0.15, 0.2));
        assert!((got.backend_bound - 0.15).abs() < 1e-12);
    }

    #[test]
    fn missing_event_is_named() {
        assert!(level1(&counts(&[("slots", 1)]), 0).unwrap_err().cause.contains("topdown-retiring"));
        assert_eq!(events(|n| n.starts_with("topdown-") || n == "slots"), Some(&SHARES[..]));
        assert_eq!(events(|_| false), None);
    }
}
