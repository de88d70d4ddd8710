//! What a gate must be able to show, and how many samples and runs that takes.
//!
//! ```text
//! condition ──> limit, level ──> change to find in a function with the share s
//!                                    │
//!   CPU time of a run ───────────────┼──> samples per side ──> sampling frequency
//!   noise of the runs so far ────────┴──> runs per side
//! ```
//! The number of runs follows from the *noise* of the runs so far, never from the change between them (Stein,
//! *A two-sample test for a linear hypothesis whose power is independent of the variance*, Annals of
//! Mathematical Statistics 16, 1945). A change that looks large by chance therefore cannot end the runs
//! early, and the probability of a false alarm stays as stated.

use super::condition::{ConditionSubject, GateCondition};
use super::{GateSubject, LEAST_PAIRS, MeanChange};
use crate::profile::statistics::SIGNIFICANCE;
use crate::profile::statistics::distribution::t_quantile;

/// The probability with which the change to find is found.
const POWER: f64 = 0.95;

/// The smallest share of the cost for which functions are to be measured precisely.
const SMALL_SHARE: f64 = 0.02;

/// Number of tested functions that is assumed before the first runs.
const USUAL_FUNCTIONS: usize = 50;

/// Number of tests of whole measures: elapsed time and total, in one of two families.
const WHOLE_TESTS: f64 = 4.0;

/// The estimate of the noise from a few runs may be too small by this factor.
const NOISE_ERROR: f64 = 1.15;

/// Maximum number of runs of each side.
pub const MOST_RUNS: usize = 1000;

/// What a gate must be able to show.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GateGoal {
    /// The smallest change in the condition, in percent.
    pub limit: f64,
    /// The significance level in the condition.
    pub level: f64,
}

impl GateGoal {
    /// What a comparison without a condition should show.
    pub const USUAL: Self = Self { limit: 3.0, level: SIGNIFICANCE };

    /// Returns the goal of a condition on the cost that profiles measure. `names` are the names of this cost.
    /// Returns `None` if the condition does not refer to it, or has no limit above 0.
    pub fn from_condition(condition: &GateCondition, names: &[String]) -> Option<Self> {
        let subject = ConditionSubject { names, is_cost: true };
        let limits = condition.selects(subject).then(|| condition.changes_beyond_limits(subject))?;
        let limit = limits
            .into_iter()
            .filter(|limit| limit.abs() > 1e-6)
            .min_by(|a, b| a.abs().total_cmp(&b.abs()))?;
        let holds = |p: f64| condition.holds(subject, limit, p);
        // Without `p`, one false alarm in 20 comparisons is a usual risk.
        let level = if holds(1.0) { SIGNIFICANCE } else { bisected_level(holds)? };
        Some(Self { limit: limit.abs(), level })
    }

    /// Returns the change, in percent, that is to be found in a function with this share of the cost (0 to
    /// 1). For a limit of 3 %: 10 % of a fiftieth, and 5 % of a fifth or more.
    pub fn change_to_find(&self, share: f64) -> f64 {
        let by_share = 10.0 / 3.0 * (SMALL_SHARE / share.max(1e-9)).sqrt();
        self.limit * by_share.max(5.0 / 3.0)
    }

    /// Returns the standard error, in percentage points, with which a change of this size is found.
    fn error_to_find(&self, percent: f64, tests: f64, df: f64) -> f64 {
        percent / (t_quantile(1.0 - self.level / tests / 2.0, df) + t_quantile(POWER, df))
    }

    /// Returns how many samples each side needs, if only sampling limits the precision.
    pub fn samples(&self) -> f64 {
        let tests = 2.0 * USUAL_FUNCTIONS as f64;
        let error = self.error_to_find(self.change_to_find(SMALL_SHARE), tests, 1e3) / 100.0;
        2.0 / (error * error) / SMALL_SHARE
    }

    /// Returns how many runs each side needs, according to the noise of the runs so far, of which there are
    /// `made` of each side. Returns at most [`MOST_RUNS`], and `made` if nothing could be measured.
    pub fn runs(&self, subjects: &[GateSubject], made: usize) -> usize {
        let tested = || subjects.iter().filter_map(|of| Some((of.share, of.change.as_ref().ok()?)));
        let functions: Vec<(f64, &MeanChange)> =
            tested().filter_map(|(share, change)| Some((share?, change))).collect();
        let tests = 2.0 * functions.len() as f64;
        let whole = tested().filter(|(share, _)| share.is_none()).map(|(_, change)| {
            runs_for(made, change.error * NOISE_ERROR, |df| {
                self.limit / t_quantile(1.0 - self.level / WHOLE_TESTS / 2.0, df)
            })
        });
        let large = functions.iter().filter(|(share, _)| *share >= SMALL_SHARE);
        let mut runs: Vec<usize> = large
            .map(|(share, change)| {
                let error = change.error * NOISE_ERROR;
                runs_for(made, error, |df| self.error_to_find(self.change_to_find(*share), tests, df))
            })
            .collect();
        // The noise of single functions in a few runs is itself noisy; their median is not.
        runs.sort_unstable();
        let function = runs.get(runs.len() / 2).copied();
        let runs = whole.chain(function).max().unwrap_or(made);
        // A few more runs make pairs, whose common noise cancels. Very few more runs do not change much.
        if runs > made { runs.max(LEAST_PAIRS).max(made + made.div_ceil(10)).min(MOST_RUNS) } else { made }
    }
}

/// Returns the number of runs after which the standard error, which is `error` after `made` runs, is at most
/// `wanted` for the degrees of freedom of these runs.
fn runs_for(made: usize, error: f64, wanted: impl Fn(f64) -> f64) -> usize {
    let is_enough = |runs: usize| error * (made as f64 / runs as f64).sqrt() <= wanted(runs as f64 - 1.0);
    let (mut low, mut high) = (made.max(2), MOST_RUNS);
    while low < high {
        let middle = usize::midpoint(low, high);
        if is_enough(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// Returns the largest p-value for which a condition holds.
fn bisected_level(holds: impl Fn(f64) -> bool) -> Option<f64> {
    let (mut low, mut high) = (1e-12f64, 1.0f64);
    if !holds(low) {
        return None;
    }
    for _ in 0..60 {
        let middle = (low * high).sqrt();
        *(if holds(middle) { &mut low } else { &mut high }) = middle;
    }
    Some(low)
}
