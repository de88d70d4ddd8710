//! The verdict on a comparison: its strongest findings, from which every format takes its headline.
//!
//! Receives the same [`GateSubject`]s as the gate, and the gate's answer if there is a condition. A finding
//! is a change that the tables show as significant, or one that makes the condition hold, so that headline,
//! tables and exit status never contradict each other.

use super::{GateReport, GateSubject, MeanChange};
use crate::profile::statistics::SIGNIFICANCE;

/// Half the width of the widest confidence interval, in percent, with which a measure counts as unchanged
/// rather than as undecided, if no condition states a limit.
const MOST_UNCLEAR: f64 = 3.0;

/// The verdict on a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparisonVerdict {
    /// The name of the base, such as `A`.
    pub base: String,
    /// The verdict on each command or group after the base, in order.
    pub sides: Vec<SideVerdict>,
    /// The answer of `--fail-if`.
    pub gate: Option<GateReport>,
}

/// The verdict on one command or group.
#[derive(Debug, Clone, PartialEq)]
pub struct SideVerdict {
    /// Its name, such as `B`.
    pub side: String,
    /// The direction of the findings.
    pub direction: VerdictDirection,
    /// The functions that changed. Those that agree with the direction come first, then the largest effect
    /// on the total.
    pub functions: Vec<VerdictFinding>,
    /// The whole measures that changed.
    pub measures: Vec<VerdictFinding>,
    /// The other whole measures, with their changes and whether the noise is small enough to call them
    /// unchanged.
    pub others: Vec<(VerdictFinding, bool)>,
    /// The failed runs of the base, and of this command.
    pub failures: [RunFailures; 2],
}

/// Direction of the findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerdictDirection {
    /// The side takes more time, or costs more.
    Slower,
    /// The side takes less time, or costs less.
    Faster,
    /// Findings contradict each other.
    Mixed,
    /// There is no finding.
    NotShown,
    /// There is no finding, and the noise would hide even large changes of all whole measures.
    Unclear,
    /// A command failed, so that its time does not measure its work.
    Failed,
    /// Nothing could be tested.
    Untested,
}

impl VerdictDirection {
    /// Returns the word for this direction.
    pub fn word(self) -> &'static str {
        match self {
            Self::Slower => "slower",
            Self::Faster => "faster",
            Self::Mixed => "mixed",
            Self::NotShown => "no difference shown",
            Self::Unclear => "unclear",
            Self::Failed => "failed",
            Self::Untested => "too few runs to tell",
        }
    }
}

/// A change in the headline.
#[derive(Debug, Clone, PartialEq)]
pub struct VerdictFinding {
    /// The measure or the function; untrusted text.
    pub name: String,
    /// The change.
    pub change: MeanChange,
    /// The p-value, corrected for the number of tests.
    pub p: f64,
}

/// How often a command failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RunFailures {
    /// The number of failed runs.
    pub failed: usize,
    /// The number of runs.
    pub runs: usize,
    /// The exit status of the first failed run; 0 if none failed.
    pub status: u8,
}

impl RunFailures {
    /// Counts a run with this exit status.
    pub fn count(&mut self, status: u8) {
        self.runs += 1;
        if status != 0 {
            self.failed += 1;
            self.status = if self.status == 0 { status } else { self.status };
        }
    }

    /// Adds the runs of the same command in another step.
    #[must_use]
    pub fn and(self, more: Self) -> Self {
        let status = if self.status == 0 { more.status } else { self.status };
        Self { failed: self.failed + more.failed, runs: self.runs + more.runs, status }
    }
}

impl ComparisonVerdict {
    /// Returns the verdict on all subjects. `names` and `failures` are those of the base and of all sides;
    /// [`GateSubject::side`] is an index into both.
    pub fn new(
        names: &[String],
        failures: &[RunFailures],
        subjects: &[GateSubject],
        gate: Option<GateReport>,
    ) -> Self {
        let of = |side: usize| failures.get(side).copied().unwrap_or_default();
        let sides = names.iter().enumerate().skip(1).map(|(side, name)| {
            let own: Vec<&GateSubject> = subjects.iter().filter(|subject| subject.side == side).collect();
            side_verdict(name, &own, [of(0), of(side)], gate.as_ref())
        });
        let base = names.first().cloned().unwrap_or_default();
        Self { base, sides: sides.collect(), gate }
    }
}

fn side_verdict(
    side: &str,
    subjects: &[&GateSubject],
    failures: [RunFailures; 2],
    gate: Option<&GateReport>,
) -> SideVerdict {
    let (mut functions, mut measures, mut others) =
        (Vec::new(), Vec::new(), Vec::<(VerdictFinding, bool)>::new());
    for subject in subjects {
        let Ok(change) = subject.change else { continue };
        let row = gate.and_then(|gate| gate.rows.iter().find(|row| row.name == subject.name));
        let failing = row.filter(|row| row.fails);
        let p = failing.map_or(subject.p, |row| row.p);
        let is_finding = failing.is_some() || subject.p < SIGNIFICANCE;
        match (subject.share, &subject.headline) {
            // A function that is gone may only have another name.
            (Some(share), _) if is_finding && (failing.is_some() || change.percent > -100.0) => {
                functions.push((share, VerdictFinding { name: subject.name.clone(), change, p }));
            }
            (None, title) if is_finding && (title.is_some() || failing.is_some()) => {
                let name = title.clone().unwrap_or_else(|| subject.name.clone());
                measures.push(VerdictFinding { name, change, p });
            }
            (None, Some(title)) => {
                let is_clear = match row {
                    Some(row) => row.hidden.is_none(),
                    None => change.half_width() <= MOST_UNCLEAR,
                };
                others.push((VerdictFinding { name: title.clone(), change, p }, is_clear));
            }
            _ => {}
        }
    }
    // The same quantity may have been counted and sampled: keep its most certain result.
    let measures = most_certain(measures, |one| (&one.name, one.p));
    let mut others = most_certain(others, |(one, _)| (&one.name, one.change.error));
    others.retain(|(one, _)| measures.iter().all(|measure| measure.name != one.name));
    let direction = match failures {
        _ if failures.iter().any(|of| of.failed > 0) => VerdictDirection::Failed,
        _ if measures.is_empty() && functions.is_empty() => match others.as_slice() {
            [] => VerdictDirection::Untested,
            all if all.iter().any(|(_, is_clear)| *is_clear) => VerdictDirection::NotShown,
            _ => VerdictDirection::Unclear,
        },
        _ if measures.is_empty() => direction(functions.iter().map(|(_, one)| one)),
        _ => direction(measures.iter()),
    };
    let disagrees = |one: &VerdictFinding| match direction {
        VerdictDirection::Faster => one.change.percent > 0.0,
        _ => one.change.percent < 0.0,
    };
    let effect = |(share, one): &(f64, VerdictFinding)| share * one.change.percent.abs();
    functions.sort_by(|a, b| disagrees(&a.1).cmp(&disagrees(&b.1)).then(effect(b).total_cmp(&effect(a))));
    let functions = functions.into_iter().map(|(_, one)| one).collect();
    SideVerdict { side: side.to_owned(), direction, functions, measures, others, failures }
}

/// Keeps the result with the smallest uncertainty of each name, at the position of the first.
fn most_certain<T>(all: Vec<T>, of: impl Fn(&T) -> (&String, f64)) -> Vec<T> {
    let mut kept: Vec<T> = Vec::new();
    for one in all {
        let (name, uncertainty) = of(&one);
        match kept.iter_mut().find(|kept| of(kept).0 == name) {
            Some(first) if uncertainty < of(first).1 => *first = one,
            Some(_) => {}
            None => kept.push(one),
        }
    }
    kept
}

fn direction<'a>(findings: impl Iterator<Item = &'a VerdictFinding>) -> VerdictDirection {
    let (mut slower, mut faster) = (false, false);
    for one in findings {
        slower |= one.change.percent > 0.0;
        faster |= one.change.percent < 0.0;
    }
    match (slower, faster) {
        (true, false) => VerdictDirection::Slower,
        (false, true) => VerdictDirection::Faster,
        _ => VerdictDirection::Mixed,
    }
}

/// Returns the name of a measure of time in the headline.
pub(crate) fn headline_name(measure: &str) -> Option<String> {
    match measure.split(':').next() {
        Some("elapsed") => Some("elapsed time".to_owned()),
        Some("task-clock" | "cpu-clock") => Some("CPU time".to_owned()),
        _ => None,
    }
}
