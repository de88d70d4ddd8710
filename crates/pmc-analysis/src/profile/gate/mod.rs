//! The gate of `--fail-if`: whether a comparison of repeated runs passes, fails, or cannot tell.
//!
//! Receives the condition and a [`GateSubject`] for each measure: a time, a count, or the cost of a function,
//! with its change between two sets of runs. Returns a [`GateReport`], which `view` prints. [`judge`]
//! describes the statistics.
//!
//! ```text
//! runs of both sides ──> change ± error of each measure ──> p, corrected for the number of measures
//!                                                            │
//!      condition ──> holds for one of them? ── yes ──────────┴──> regression
//!                          └── no ──> would it hold for a change beyond its limits? ─ yes ──> pass
//!                                                                                   └ no ───> unusable
//! ```

mod condition;
mod goal;
mod verdict;

use super::statistics::distribution::{t_quantile, t_two_sided};
use super::statistics::{MeasurementSummary, holm, welch};
use condition::ConditionSubject;
pub use condition::{GateCondition, selects_name};
pub use goal::{GateGoal, MOST_RUNS};
pub(crate) use verdict::headline_name;
pub use verdict::{ComparisonVerdict, RunFailures, SideVerdict, VerdictDirection, VerdictFinding};

/// Minimum number of runs on each side.
pub const LEAST_RUNS: usize = 3;

/// Minimum number of pairs for [`MeanChange::paired`]. With fewer pairs, the loss of degrees of freedom
/// outweighs the smaller noise.
pub const LEAST_PAIRS: usize = 20;

/// Fraction of the differences between the runs of pairs that is omitted at each end.
const TRIMMED: f64 = 0.1;

/// Change between the means of two sets of runs, in percent of the base.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanChange {
    /// The change; positive if the new mean is larger.
    pub percent: f64,
    /// Standard error of the change, in percentage points.
    pub error: f64,
    /// Degrees of freedom of the error.
    pub df: f64,
}

impl MeanChange {
    /// Compares two sets of runs. Returns `None` if the base's mean is 0, or a side has fewer than two runs.
    pub fn between(base: &MeasurementSummary, new: &MeasurementSummary) -> Option<Self> {
        let test = welch(new, base).filter(|_| base.mean != 0.0)?;
        let percent = |difference: f64| 100.0 * difference / base.mean.abs();
        Some(Self { percent: percent(new.mean - base.mean), error: percent(test.error), df: test.df })
    }

    /// Compares runs that were made in pairs, one of each side after the other, so that both runs of a pair
    /// meet the same load. The change is the mean of the differences without the [`TRIMMED`] smallest and
    /// largest, which a disturbance of a single run cannot affect (Yuen, *The two-sample trimmed t for
    /// unequal population variances*, Biometrika 61, 1974). If the sides do not differ, the differences are
    /// symmetric, and so the trimmed mean is unbiased. `least_stdev` is the least standard deviation of a
    /// difference. Returns `None` if there are fewer than [`LEAST_PAIRS`] pairs, or the base's mean is 0.
    pub(crate) fn paired(base: &[f64], new: &[f64], least_stdev: f64) -> Option<Self> {
        let mean = base.iter().sum::<f64>() / base.len() as f64;
        if base.len() != new.len() || base.len() < LEAST_PAIRS || mean == 0.0 {
            return None;
        }
        let mut differences: Vec<f64> = base.iter().zip(new).map(|(base, new)| new - base).collect();
        differences.sort_by(f64::total_cmp);
        let pairs = differences.len();
        let cut = (pairs as f64 * TRIMMED) as usize;
        let kept = &differences[cut..pairs - cut];
        let trimmed = kept.iter().sum::<f64>() / kept.len() as f64;
        // The variance of a trimmed mean follows from the winsorized values.
        let (low, high) = (kept[0], kept[kept.len() - 1]);
        let winsorized: Vec<f64> = differences.iter().map(|one| one.clamp(low, high)).collect();
        let stdev = MeasurementSummary::from_values(&winsorized)?.stdev;
        let error =
            (stdev * (pairs as f64).sqrt() / kept.len() as f64).max(least_stdev / (pairs as f64).sqrt());
        let percent = |difference: f64| 100.0 * difference / mean.abs();
        Some(Self { percent: percent(trimmed), error: percent(error), df: (kept.len() - 1) as f64 })
    }

    /// Returns the two-sided probability of a change of this size if there is no real change.
    pub(crate) fn probability_of(&self, percent: f64) -> f64 {
        match (percent == 0.0, self.error > 0.0) {
            (true, _) => 1.0,
            (false, false) => 0.0,
            (false, true) => t_two_sided(percent / self.error, self.df),
        }
    }

    /// Returns half the width of the 95 % confidence interval, in percentage points.
    pub fn half_width(&self) -> f64 {
        t_quantile(0.975, self.df) * self.error
    }
}

/// Corrects the p-values of whole measures and of functions for the number of tests.
pub(crate) fn corrected(whole: &[f64], functions: &[f64]) -> [Vec<f64>; 2] {
    let families = families(whole.len(), functions.len());
    [whole, functions].map(|all| holm(all).into_iter().map(|p| (p * families).min(1.0)).collect())
}

/// Returns the number of families of tests.
fn families(whole: usize, functions: usize) -> f64 {
    if whole > 0 && functions > 0 { 2.0 } else { 1.0 }
}

/// A measure that a condition may refer to.
#[derive(Debug, Clone, PartialEq)]
pub struct GateSubject {
    /// The measure or the function; untrusted text.
    pub name: String,
    /// The names by which a condition can select it.
    pub selectors: Vec<String>,
    /// Index of the command or group whose measure it is; 0 is the base, with which it is compared.
    pub side: usize,
    /// Whether `worse` and `better` refer to it.
    pub is_cost: bool,
    /// Whether the comparison is usable even if the noise hides a change of this measure, because another one
    /// measures the same more precisely.
    pub is_optional: bool,
    /// For a whole measure of time or cost, its name in the headline, such as `CPU time`.
    pub headline: Option<String>,
    /// For a function, its fraction of the base's cost. `None` for a whole measure.
    pub share: Option<f64>,
    /// Where the function is, if known.
    pub location: Option<GateLocation>,
    /// The change, or the reason for which it is unknown.
    pub change: Result<MeanChange, String>,
    /// The p-value in the table that shows this measure, corrected for the number of tests there.
    pub p: f64,
}

/// A source line; untrusted text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateLocation {
    /// The source file.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
}

/// The answer of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateVerdict {
    /// The condition holds for no measure.
    Pass,
    /// The condition holds for at least one measure.
    Regression,
    /// The data cannot answer the question.
    Unusable,
}

impl GateVerdict {
    /// Returns the word for this verdict.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Regression => "regression",
            Self::Unusable => "unusable",
        }
    }
}

/// The reason for which a comparison is unusable. Texts are untrusted.
#[derive(Debug, Clone, PartialEq)]
pub enum UnusableReason {
    /// A command ran less often than [`LEAST_RUNS`] times.
    TooFewRuns {
        /// The command.
        command: String,
        /// The number of runs.
        runs: usize,
    },
    /// A side has fewer than [`LEAST_RUNS`] recordings.
    TooFewRecordings {
        /// The number of recordings of the base and of the new version.
        recordings: [usize; 2],
    },
    /// A change of the size in the condition would be missed.
    TooNoisy {
        /// The measure.
        name: String,
        /// The smallest change in the condition, in percent.
        limit: f64,
        /// The smallest change that these runs can show, in percent. `None` if they cannot show any.
        shown: Option<f64>,
    },
    /// Most of the cost is in functions for which a change of the size in the condition would be missed.
    FewFunctionsTested {
        /// The fraction of the cost in functions that can be tested.
        share: f64,
    },
    /// A selected measure has no value.
    NotMeasured {
        /// The measure.
        name: String,
        /// The reason.
        why: String,
    },
    /// The condition selects no measure.
    NothingSelected {
        /// The available names.
        names: Vec<String>,
    },
    /// A command failed, so its runs do not measure its work.
    CommandFailed {
        /// The command.
        command: String,
        /// Its failed runs.
        failures: RunFailures,
    },
    /// The recordings are from different machines.
    OtherMachine {
        /// The recording that differs from the first.
        path: String,
        /// The property that differs, such as `CPU`.
        property: &'static str,
        /// The value in that recording, and in the first.
        values: [String; 2],
    },
    /// A recording is damaged or lacks samples.
    LostSamples {
        /// The recording.
        path: String,
        /// The number of lost samples, if known.
        lost: Option<u64>,
    },
}

/// The answer of a gate, with its reasons.
#[derive(Debug, Clone, PartialEq)]
pub struct GateReport {
    /// The condition as typed.
    pub condition: String,
    /// The answer.
    pub verdict: GateVerdict,
    /// Why the comparison is unusable; empty for other answers.
    pub reasons: Vec<UnusableReason>,
    /// The tested measures, those for which the condition holds first.
    pub rows: Vec<GateRow>,
    /// If functions were tested: the fraction of the cost in functions for which a change of the size in the
    /// condition would be found.
    pub covered: Option<f64>,
}

/// A tested measure.
#[derive(Debug, Clone, PartialEq)]
pub struct GateRow {
    /// The measure or the function; untrusted text.
    pub name: String,
    /// Where the function is, if known.
    pub location: Option<GateLocation>,
    /// For a function, its fraction of the base's cost.
    pub share: Option<f64>,
    /// The change.
    pub change: MeanChange,
    /// The p-value, corrected for the number of tested measures.
    pub p: f64,
    /// Whether the condition holds.
    pub fails: bool,
    /// Whether the comparison is usable even if the noise hides a change of this measure.
    pub is_optional: bool,
    /// If the noise hides a change of the size in the condition: that size, and for whole measures the
    /// smallest change that these runs can show, in percent.
    pub hidden: Option<(f64, Option<f64>)>,
}

/// Evaluates the condition for all measures. `problems` are reasons that make any answer meaningless.
///
/// # Statistics
///
/// - The unit of observation is a run, not a sample: the samples of one run share its memory layout, its CPU
///   frequency and its neighbours, so they say nothing about other runs. Each side's runs give a mean and a
///   variance, and Welch's t-test (*The generalization of "Student's" problem*, Biometrika 34, 1947) compares
///   the means. Georges, Buytaert and Eeckhout (*Statistically rigorous Java performance evaluation*, OOPSLA
///   2007) and Kalibera and Jones (*Rigorous benchmarking in reasonable time*, ISMM 2013) recommend this
///   design.
/// - The cost of a function in a run is an estimate from a number of samples. Few runs can be equal by
///   chance, so the variance is at least the variance from sampling (`diff/groups.rs`).
/// - Runs in pairs of A and B, one after the other, meet the same load. With enough pairs, their differences
///   are compared instead, without the most extreme ones ([`MeanChange::paired`]).
/// - [`GateGoal`] chooses the number of runs by the noise of the runs so far, never by the change between
///   them.
/// - Every measure that the condition selects is one test. Holm's correction ([`holm`]) limits the
///   probability of any false alarm. Benjamini and Hochberg's correction does not: many real improvements
///   would let a chance result pass as a regression. Whole measures and functions each get half of that
///   probability, so that many functions do not hide a change of the total.
/// - A comparison that would miss a change of the size in the condition is unusable. Otherwise, noisy
///   comparisons would always pass.
pub fn judge(
    condition: &GateCondition,
    subjects: &[GateSubject],
    problems: Vec<UnusableReason>,
) -> GateReport {
    let selected: Vec<&GateSubject> =
        subjects.iter().filter(|subject| condition.selects(subject_of(subject))).collect();
    let tested: Vec<(&GateSubject, MeanChange)> =
        selected.iter().filter_map(|subject| Some((*subject, *subject.change.as_ref().ok()?))).collect();
    let (whole, functions): (Vec<_>, Vec<_>) =
        tested.into_iter().partition(|(subject, _)| subject.share.is_none());
    let raw = [&whole, &functions].map(|family| {
        family.iter().map(|(_, change)| change.probability_of(change.percent)).collect::<Vec<f64>>()
    });
    let [of_whole, of_functions] = corrected(&raw[0], &raw[1]);
    let families = families(whole.len(), functions.len());
    let row = |((subject, change), p): (&(&GateSubject, MeanChange), f64)| {
        let size = if subject.share.is_none() { whole.len() } else { functions.len() };
        GateRow {
            name: subject.name.clone(),
            location: subject.location.clone(),
            share: subject.share,
            change: *change,
            p,
            fails: condition.holds(subject_of(subject), change.percent, p),
            is_optional: subject.is_optional,
            hidden: hidden(condition, subject, change, families * size as f64),
        }
    };
    let mut rows: Vec<GateRow> =
        whole.iter().zip(of_whole).chain(functions.iter().zip(of_functions)).map(row).collect();
    let covered = rows.iter().any(|row| row.share.is_some()).then(|| {
        // Shares do not sum to 1 if filters or rare functions leave some out.
        rows.iter()
            .filter(|row| row.fails || row.hidden.is_none())
            .filter_map(|row| row.share)
            .fold(0.0, |sum, share| sum + share)
    });
    let mut reasons = problems;
    let fails = rows.iter().any(|row| row.fails);
    if reasons.is_empty() && !fails {
        reasons = unusable_reasons(&selected, &rows, covered);
        if selected.is_empty() {
            let mut names: Vec<String> = subjects.iter().flat_map(|one| one.selectors.clone()).collect();
            names.sort();
            names.dedup();
            reasons.push(UnusableReason::NothingSelected { names });
        }
    }
    // Failing measures first, then the costliest; whole measures before functions.
    let rank = |row: &GateRow| row.share.unwrap_or(f64::INFINITY);
    rows.sort_by(|a, b| b.fails.cmp(&a.fails).then(rank(b).total_cmp(&rank(a))));
    let verdict = match (reasons.is_empty(), fails) {
        (false, _) => GateVerdict::Unusable,
        (true, true) => GateVerdict::Regression,
        (true, false) => GateVerdict::Pass,
    };
    GateReport { condition: condition.text().to_owned(), verdict, reasons, rows, covered }
}

fn subject_of(subject: &GateSubject) -> ConditionSubject<'_> {
    ConditionSubject { names: &subject.selectors, is_cost: subject.is_cost }
}

/// Minimum fraction of the cost that must be in functions for which a change would be found, if the condition
/// selects only functions.
const LEAST_COVERED: f64 = 0.5;

/// Returns why a comparison without a regression cannot pass either. Whole measures must be measured, and
/// precisely enough. Functions need not be: rarely sampled functions never are, and their sum is a whole
/// measure. If only functions are selected, those with most of the cost must be precise enough.
fn unusable_reasons(
    selected: &[&GateSubject],
    rows: &[GateRow],
    covered: Option<f64>,
) -> Vec<UnusableReason> {
    let mut reasons = Vec::new();
    let mut whole = selected.iter().filter(|subject| subject.share.is_none()).peekable();
    if whole.peek().is_none() && !selected.is_empty() {
        let share = covered.unwrap_or(0.0);
        reasons.extend((share < LEAST_COVERED).then_some(UnusableReason::FewFunctionsTested { share }));
    }
    reasons.extend(whole.filter_map(|subject| {
        let why = subject.change.as_ref().err()?.clone();
        Some(UnusableReason::NotMeasured { name: subject.name.clone(), why })
    }));
    reasons.extend(rows.iter().filter(|row| row.share.is_none() && !row.is_optional).filter_map(|row| {
        let (limit, shown) = row.hidden?;
        Some(UnusableReason::TooNoisy { name: row.name.clone(), limit, shown })
    }));
    reasons
}

/// Returns the smallest change in the condition that would be missed, and for whole measures the smallest
/// change that would be found. Returns `None` if no change is missed.
fn hidden(
    condition: &GateCondition,
    measure: &GateSubject,
    change: &MeanChange,
    tests: f64,
) -> Option<(f64, Option<f64>)> {
    let subject = subject_of(measure);
    let found =
        |percent: f64| condition.holds(subject, percent, (tests * change.probability_of(percent)).min(1.0));
    // A limit of 0 states no size that should be found.
    let is_hidden =
        |percent: &f64| percent.abs() > 1e-6 && condition.holds(subject, *percent, 0.0) && !found(*percent);
    let beyond = condition.changes_beyond_limits(subject);
    let limit = beyond.into_iter().filter(is_hidden).min_by(|a, b| a.abs().total_cmp(&b.abs()))?;
    if measure.share.is_some() {
        return Some((limit, None));
    }
    let mut high = limit;
    while !found(high) {
        high *= 2.0;
        // No program becomes a million times slower.
        if high.abs() > 1e8 {
            return Some((limit, None));
        }
    }
    let mut low = limit;
    for _ in 0..20 {
        let middle = f64::midpoint(low, high);
        *(if found(middle) { &mut high } else { &mut low }) = middle;
    }
    Some((limit, Some(high)))
}

#[cfg(test)]
mod tests;
