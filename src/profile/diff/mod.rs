//! Recordings compared: what each function's share was in each, and whether sampling alone explains the
//! difference.
//!
//! Receives the tables and trees of several recordings, made with one collection of words, the first being
//! the base; hands on a [`Comparison`]. Pure. Decides what a difference means; leaves wording to `view`.
//!
//! ```text
//!   base   rows ─┐
//!   new 1  rows ─┼─ by sort keys ─> lines: value in each, change against the base, verdict
//!   new 2  rows ─┘                  (the same for the nodes of the trees, by their way from the root)
//! ```

pub mod rows;
pub mod streams;
pub mod tree;

use super::sampled::{Cell, ShareOf, SortKey, StringTable, Value};
use super::statistics::SIGNIFICANCE;
use super::statistics::proportions::{self, Difference, Part};

pub use rows::compare;
pub use tree::Tree;

/// Version of the JSON document; it grows when a field changes its meaning.
pub const VERSION: u32 = 1;
/// The normal distribution's 97.5 % quantile.
const Z: f64 = 1.959_964;
/// Fewer samples on both sides together cannot show anything, and are not tested.
const LEAST: f64 = 6.0;

/// What is computed of two values, and sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Compute {
    /// Difference of the shares, in their order.
    Delta,
    /// The same, by size.
    #[default]
    DeltaAbs,
    /// Difference of the periods, which are nanoseconds, by size.
    Time,
    /// New period by old period.
    Ratio,
    /// New period times the second weight, less old period times the first.
    Weighted(f64, f64),
}

/// Recordings compared.
#[derive(Debug, Default)]
pub struct Comparison {
    /// All words, by number.
    pub texts: StringTable,
    /// The sort keys of the lines' cells.
    pub keys: Vec<SortKey>,
    /// Lines are whole call chains: their cells are those of one frame after the other, innermost first.
    pub by_stream: bool,
    /// The recordings, the base first.
    pub files: Vec<File>,
    /// What was computed.
    pub compute: Compute,
    /// Events that the base and at least one other recording have.
    pub events: Vec<Event>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// A recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct File {
    /// Where it is; foreign text.
    pub path: String,
    /// Its samples.
    pub samples: u64,
    /// Samples or records that were lost.
    pub lost: u64,
    /// What its data are worth, in words; foreign text.
    pub trust: String,
}

/// One event in all recordings.
#[derive(Debug, Default)]
pub struct Event {
    /// Its name.
    pub name: String,
    /// All of it by recording; `None` where it was not recorded.
    pub totals: Vec<Option<Value>>,
    /// The lines.
    pub lines: Vec<Line>,
    /// The trees laid over one another.
    pub tree: Option<Tree>,
}

/// One row in all recordings.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The values of the sort keys.
    pub cells: Vec<Cell>,
    /// Its cost by recording; zero where it has none.
    pub values: Vec<Value>,
    /// Change of each recording but the base; `None` where the event was not recorded.
    pub changes: Vec<Option<Change>>,
}

/// A recording's value beside the base's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Difference of the shares.
    pub share: Difference,
    /// What was computed; `None` for a ratio to nothing.
    pub value: Option<f64>,
    /// 95 % interval of it.
    pub interval: (f64, f64),
    /// The probability behind the verdict, corrected for the number of tests.
    pub adjusted: f64,
    /// What it means.
    pub verdict: Verdict,
}

/// What a change means, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Sampling alone explains it.
    Noise,
    /// A larger part than in the base.
    More,
    /// A smaller part.
    Less,
    /// The base has none.
    New,
    /// Only the base has it.
    Gone,
}

impl Verdict {
    /// The plain word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Noise => "within noise",
            Self::More => "more",
            Self::Less => "less",
            Self::New => "new",
            Self::Gone => "gone",
        }
    }
}

impl Line {
    /// The frames of a call chain, each the cells of the comparison's keys.
    pub fn frames(&self, keys: &[SortKey]) -> impl Iterator<Item = &[Cell]> {
        self.cells.chunks(keys.len().max(1))
    }
}

impl Event {
    /// A value's part of a recording (0 to 1), with the draws behind it.
    pub fn part(&self, file: usize, value: &Value) -> Part {
        match self.totals.get(file) {
            Some(Some(total)) => part(total, value),
            _ => part(&Value::default(), value),
        }
    }
}

fn part(total: &Value, value: &Value) -> Part {
    let share = if total.period == 0 { 0.0 } else { value.period as f64 / total.period as f64 };
    Part { share: share.min(1.0), draws: ShareOf::Period.draws(total) }
}

/// What stands behind a change until it is judged together with the others.
#[derive(Debug, Clone)]
struct Test {
    /// The probability; `None` where there are too few samples to test.
    p: Option<f64>,
    /// Whether it would be a rise.
    rises: bool,
    old: Value,
    new: Value,
}

/// A change before it is known how many tests there are.
fn change(compute: Compute, totals: (&Value, &Value), values: (&Value, &Value)) -> (Change, Test) {
    let (first, second) = (part(totals.0, values.0), part(totals.1, values.1));
    let share = proportions::difference(first, second);
    let (old, new) = (values.0.period as f64, values.1.period as f64);
    // Periods of samples that come at random: the sum of the squares is the variance of the sum.
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
    let hits = first.share * first.draws + second.share * second.draws;
    let change = Change { share, value, interval, adjusted: 1.0, verdict: Verdict::Noise };
    (change, Test { p: (hits >= LEAST).then_some(p), rises, old: values.0.clone(), new: values.1.clone() })
}

/// Gives each change of a family its corrected probability and its word.
fn judge(family: &mut [(&mut Change, Test)]) {
    let tested: Vec<f64> = family.iter().filter_map(|(_, test)| test.p).collect();
    let mut adjusted = proportions::adjusted(&tested).into_iter();
    for (change, test) in family {
        let Some(adjusted) = test.p.and_then(|_| adjusted.next()) else { continue };
        change.adjusted = adjusted;
        if adjusted < SIGNIFICANCE {
            change.verdict = match (test.old.samples, test.new.samples) {
                (0, _) => Verdict::New,
                (_, 0) => Verdict::Gone,
                _ if test.rises => Verdict::More,
                _ => Verdict::Less,
            };
        }
    }
}
