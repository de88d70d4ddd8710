//! Comparison of recordings: each function's share in each recording, and whether sampling noise explains the
//! difference.
//!
//! Receives the tables and trees of several recordings with a common string table; the first recording is the
//! base. Returns a [`Diff`]. Pure. Decides whether a difference is significant; `view` decides the wording.
//!
//! ```text
//!   base   rows ─┐
//!   new 1  rows ─┼─ by sort keys ─> lines: value in each, change against the base, verdict
//!   new 2  rows ─┘                  (the same for the nodes of the trees, by their path from the root)
//! ```

pub mod groups;
pub(crate) mod rows;
pub mod streams;
pub mod tree;

use std::str::FromStr;

use super::sampled::{RowCell, SampleValue, ShareOf, SortKey, StringTable, is_clock};
use super::statistics::proportions::{self, SampledShare, ShareDifference};
use crate::session::thread_time::ThreadState;
use pmc_sys::error::Error;

pub(crate) use rows::compare;
pub(crate) use tree::DiffTree;

/// Version of the JSON document; incremented when a field changes its meaning.
pub const VERSION: u32 = 1;
/// The normal distribution's 97.5 % quantile.
const Z: f64 = 1.959_964;
/// Significance level for two recordings. Stricter than between groups of recordings, because two recordings
/// do not show how much runs vary, and because people compare two recordings many times.
pub const LEVEL: f64 = 0.001;
/// Minimum number of samples on both sides together for a test. With fewer samples, no difference would be
/// significant: `2 · 0.5^10` is 0.002.
pub const LEAST_SAMPLES: u64 = 11;

/// The quantity that is computed from two values and used for sorting.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Compute {
    /// Difference between the shares, sorted by value.
    Delta,
    /// Difference between the shares, sorted by magnitude.
    #[default]
    DeltaAbs,
    /// Difference between the periods in nanoseconds, sorted by magnitude.
    Time,
    /// New period divided by old period.
    Ratio,
    /// New period times the second weight, minus old period times the first.
    Weighted(f64, f64),
}

impl FromStr for Compute {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let bad = |text: &str| {
            Error::usage(format!("unknown comparison {text:?}"))
                .try_this("delta, delta-abs, time, ratio, or wdiff:W1,W2")
        };
        match text.split_once(':') {
            Some(("wdiff", weights)) => {
                let (first, second) = weights.split_once(',').ok_or_else(|| bad(text))?;
                let weight = |word: &str| {
                    let number: f64 = word.trim().parse().map_err(|_| bad(text))?;
                    if number.is_finite() { Ok(number) } else { Err(bad(text)) }
                };
                Ok(Self::Weighted(weight(first)?, weight(second)?))
            }
            None => match text {
                "delta" => Ok(Self::Delta),
                "delta-abs" => Ok(Self::DeltaAbs),
                "time" => Ok(Self::Time),
                "ratio" => Ok(Self::Ratio),
                "wdiff" => Err(Error::usage("wdiff requires two weights").try_options("-c wdiff:1,2")),
                "cycles" => Err(Error::usage("-c cycles is not supported")
                    .try_options("--stream compares branch streams and their cycles")),
                _ => Err(bad(text)),
            },
            _ => Err(bad(text)),
        }
    }
}

/// A comparison of recordings.
#[derive(Debug, Default)]
pub struct Diff {
    /// The string table for all recordings.
    pub texts: StringTable,
    /// Whether each line is a whole call chain. If so, a line has the cells of all frames, innermost first.
    pub by_stream: bool,
    /// The recordings, the base first.
    pub files: Vec<DiffFile>,
    /// The quantity to compute.
    pub compute: Compute,
    /// Events of the base that at least one other recording contains.
    pub events: Vec<DiffEvent>,
    /// Whether an event's costs have different units in different recordings, so that only shares are
    /// comparable.
    pub has_mixed_units: bool,
    /// Notes to the reader; untrusted text.
    pub notes: Vec<String>,
    /// What the recordings have in common, if that is not everything: sentences without text from the
    /// recordings.
    pub scope: Vec<&'static str>,
}

/// A recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiffFile {
    /// The file's path; untrusted text.
    pub path: String,
    /// Number of samples.
    pub samples: u64,
    /// Number of lost samples or records.
    pub lost: u64,
    /// The data quality statement; untrusted text.
    pub trust: String,
    /// Properties of the recorded machine, such as its CPU, as far as the recording contains them; untrusted
    /// text.
    pub machine: Vec<(&'static str, String)>,
    /// Whether samples could not be read because the file is damaged.
    pub loses_samples: bool,
    /// Times of the first and last sample on the recording's clock, in nanoseconds.
    pub sampled_ns: Option<(u64, u64)>,
}

/// An event, with its rows in all recordings.
#[derive(Debug, Default)]
pub struct DiffEvent {
    /// The event's name.
    pub name: String,
    /// The states of threads whose time the event covers, for recordings with waits; empty for other events.
    pub states: &'static [ThreadState],
    /// The threads' time in each recording. `None` for recordings without waits, and for other events.
    pub thread_times: Vec<Option<ThreadTimes>>,
    /// The sort keys: one per cell of a line.
    pub keys: Vec<SortKey>,
    /// The event's total in each recording; `None` for recordings without the event.
    pub totals: Vec<Option<SampleValue>>,
    /// The rows, sorted.
    pub lines: Vec<DiffRow>,
    /// The merged call trees.
    pub tree: Option<DiffTree>,
}

/// The time of a recording's threads, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadTimes {
    /// How long the threads ran, according to the context switches; `None` if not known exactly.
    pub running: Option<u64>,
    /// How long the threads waited for a CPU.
    pub runnable: u64,
    /// Number of idle threads, whose waits are not counted.
    pub idle: usize,
}

/// How the costs of an event were measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CostSource {
    /// By sampling, so that each cost has a sampling error.
    Sampled,
    /// Each occurrence was measured, so that only the variation between runs is noise.
    Census,
}

/// A row, with its costs in all recordings.
#[derive(Debug, Clone, PartialEq)]
pub struct DiffRow {
    /// The values of the sort keys.
    pub cells: Box<[RowCell]>,
    /// Cost in each recording; zero in recordings without this row.
    pub values: Vec<SampleValue>,
    /// The change relative to the base, for each other recording; `None` if the recording does not contain
    /// the event.
    pub changes: Vec<Option<DiffChange>>,
}

/// A recording's value compared with the base's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DiffChange {
    /// Difference between the shares.
    pub share: ShareDifference,
    /// The computed quantity; `None` if the ratio's denominator is zero.
    pub value: Option<f64>,
    /// The 95 % confidence interval of the quantity. Both ends are the quantity itself for a census.
    pub interval: (f64, f64),
    /// The p-value that determines the verdict, corrected for the number of tests.
    pub adjusted: f64,
    /// Whether the change is significant, and in which direction.
    pub verdict: ChangeVerdict,
}

/// The meaning of a change, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeVerdict {
    /// Sampling noise is enough to explain the change.
    Noise,
    /// The share is larger than in the base.
    More,
    /// The share is smaller than in the base.
    Less,
    /// The base does not contain the row.
    New,
    /// Only the base contains the row.
    Gone,
    /// There are too few samples to test.
    Rare,
    /// The costs are a census, so two recordings cannot tell.
    NotJudged,
}

impl ChangeVerdict {
    /// Returns the word for this verdict.
    pub fn word(self) -> &'static str {
        match self {
            Self::Noise => "within noise",
            Self::More => "more",
            Self::Less => "less",
            Self::New => "new",
            Self::Gone => "gone",
            Self::Rare => "too few samples",
            Self::NotJudged => "not judged",
        }
    }

    /// Whether the change is significant.
    pub fn is_significant(self) -> bool {
        matches!(self, Self::More | Self::Less | Self::New | Self::Gone)
    }
}

impl DiffChange {
    /// Whether the change has a sampling error.
    pub fn has_error(&self) -> bool {
        self.verdict != ChangeVerdict::NotJudged
    }

    /// Returns the magnitude by which branches of the tree are ordered: nanoseconds if times are compared,
    /// otherwise the difference between the shares.
    pub fn size(&self, compute: Compute) -> f64 {
        match (compute, self.value) {
            (Compute::Time, Some(value)) => value.abs(),
            _ => self.share.value.abs(),
        }
    }
}

impl DiffRow {
    /// Returns the frames of a call chain. Each frame has one cell per key of the event.
    pub fn frames(&self, keys: &[SortKey]) -> impl Iterator<Item = &[RowCell]> {
        self.cells.chunks(keys.len().max(1))
    }
}

impl DiffEvent {
    /// Returns how the event's costs were measured.
    pub fn source(&self) -> CostSource {
        source(self.states)
    }

    /// Returns the event's name for readers; untrusted text.
    pub fn title(&self) -> String {
        match self.states {
            [ThreadState::Running] => format!("running ({})", self.name),
            _ => self.name.clone(),
        }
    }

    /// Whether the event's costs are nanoseconds.
    pub fn is_time(&self) -> bool {
        !self.states.is_empty() || is_clock(&self.name)
    }

    /// Returns the exact running time in a recording, for the event of running time.
    pub fn exact_running(&self, file: usize) -> Option<u64> {
        let is_running = self.states == [ThreadState::Running];
        self.thread_times.get(file).copied().flatten().filter(|_| is_running)?.running
    }

    /// Returns a value's share of the total in a recording (0 to 1), with the number of draws from which the
    /// share was estimated.
    pub fn part(&self, file: usize, value: &SampleValue) -> SampledShare {
        match self.totals.get(file) {
            Some(Some(total)) => part(total, value),
            _ => part(&SampleValue::default(), value),
        }
    }
}

/// Returns how the time of threads in these states was measured; `states` is empty for other events.
pub(crate) fn source(states: &[ThreadState]) -> CostSource {
    let is_census = !states.is_empty() && states.iter().all(|state| state.is_off_cpu());
    if is_census { CostSource::Census } else { CostSource::Sampled }
}

fn part(total: &SampleValue, value: &SampleValue) -> SampledShare {
    let share = if total.period == 0 { 0.0 } else { value.period as f64 / total.period as f64 };
    SampledShare { share: share.min(1.0), draws: ShareOf::Period.draws(total) }
}

/// The test of one change, before the correction for the number of tests.
#[derive(Debug, Clone)]
struct ChangeTest {
    /// The p-value; `None` if the change cannot be tested.
    p: Option<f64>,
    /// Whether the change is an increase.
    rises: bool,
    old: SampleValue,
    new: SampleValue,
}

/// Computes a change before the number of tests is known.
fn change(
    (compute, source): (Compute, CostSource),
    totals: (&SampleValue, &SampleValue),
    values: (&SampleValue, &SampleValue),
) -> (DiffChange, ChangeTest) {
    let (first, second) = (part(totals.0, values.0), part(totals.1, values.1));
    let share = proportions::difference(first, second);
    let (old, new) = (values.0.period as f64, values.1.period as f64);
    // Samples occur at random, so the sum of their squared periods is the variance of the sum.
    let apart = |w1: f64, w2: f64| {
        let error = (w2 * w2 * values.1.squares + w1 * w1 * values.0.squares).sqrt();
        (new * w2 - old * w1, error)
    };
    let test = |(value, error): (f64, f64)| {
        if error > 0.0 { proportions::normal_two_sided(value / error) } else { 1.0 }
    };
    let (value, interval, p, rises) = match compute {
        Compute::Delta | Compute::DeltaAbs => {
            (Some(share.value), (share.low, share.high), share.p, share.value > 0.0)
        }
        Compute::Ratio if old > 0.0 && new > 0.0 => {
            let relative = (values.0.squares / (old * old) + values.1.squares / (new * new)).sqrt();
            let ratio = new / old;
            let factor = (Z * relative).exp();
            (Some(ratio), (ratio / factor, ratio * factor), test((ratio.ln(), relative)), ratio > 1.0)
        }
        Compute::Ratio => {
            ((old > 0.0).then_some(0.0), (0.0, f64::INFINITY), test(apart(1.0, 1.0)), new > old)
        }
        Compute::Time | Compute::Weighted(..) => {
            let (w1, w2) = match compute {
                Compute::Weighted(w1, w2) => (w1, w2),
                _ => (1.0, 1.0),
            };
            let (value, error) = apart(w1, w2);
            (Some(value), (value - Z * error, value + Z * error), test((value, error)), value > 0.0)
        }
    };
    let (old, new) = (values.0.clone(), values.1.clone());
    if source == CostSource::Census {
        let share = ShareDifference { low: share.value, high: share.value, p: 1.0, ..share };
        let interval = value.map_or((0.0, 0.0), |value| (value, value));
        let verdict = ChangeVerdict::NotJudged;
        return (
            DiffChange { share, value, interval, adjusted: 1.0, verdict },
            ChangeTest { p: None, rises, old, new },
        );
    }
    // Samples with unequal periods are worth fewer samples.
    let hits = first.share * first.draws + second.share * second.draws;
    let is_tested = old.samples + new.samples >= LEAST_SAMPLES && hits >= LEAST_SAMPLES as f64 * (1.0 - 1e-9);
    let verdict = if is_tested { ChangeVerdict::Noise } else { ChangeVerdict::Rare };
    let change = DiffChange { share, value, interval, adjusted: 1.0, verdict };
    (change, ChangeTest { p: is_tested.then_some(p), rises, old, new })
}

/// Sets the corrected p-value and the verdict of each change in a family of tests.
fn set_verdicts(family: &mut [(&mut DiffChange, ChangeTest)]) {
    let tested: Vec<f64> = family.iter().filter_map(|(_, test)| test.p).collect();
    let mut adjusted = proportions::adjusted(&tested).into_iter();
    for (change, test) in family {
        let Some(adjusted) = test.p.and_then(|_| adjusted.next()) else { continue };
        change.adjusted = adjusted;
        if adjusted < LEVEL {
            change.verdict = match (test.old.samples, test.new.samples) {
                (0, _) => ChangeVerdict::New,
                (_, 0) => ChangeVerdict::Gone,
                _ if test.rises => ChangeVerdict::More,
                _ => ChangeVerdict::Less,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computations_parse_like_perf() {
        assert_eq!("wdiff:1,-2.5".parse::<Compute>().unwrap(), Compute::Weighted(1.0, -2.5));
        assert_eq!("ratio".parse::<Compute>().unwrap(), Compute::Ratio);
        for bad in ["", "wdiff", "wdiff:1", "wdiff:a,b", "wdiff:nan,1", "cycles", "ratio:1", "deltas"] {
            assert!(bad.parse::<Compute>().is_err(), "{bad}");
        }
    }
}
