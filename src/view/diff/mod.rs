//! `pmc diff` as text, CSV, separated fields and JSON.
//!
//! Receives a [`Comparison`] and a [`Layout`]; decides words, widths and which rows are dimmed.

mod fields;
mod json;
mod text;

use std::io::{self, Write};

use crate::profile::diff::{Change, Comparison, Compute, Event, Line, Verdict};
use crate::profile::sampled::Value;
use crate::terminal::Paint;
use crate::units::duration;

pub use crate::view::report::Form;

/// How a comparison is shown.
#[derive(Debug, Clone)]
pub struct Layout {
    /// In which form.
    pub form: Form,
    /// At most so many rows.
    pub rows: usize,
    /// Rows whose share (0 to 1) is below this everywhere are left out.
    pub limit: f64,
    /// Periods as columns.
    pub period: bool,
    /// How each value was computed.
    pub formula: bool,
    /// Only rows that the base has.
    pub baseline_only: bool,
    /// For a person: names of functions as one reads them, in lines of at most so many columns.
    pub width: Option<usize>,
    /// At most so many branches of the tree, those with the largest changes; `None`: all of them.
    pub tree_lines: Option<usize>,
    /// The looks of the text.
    pub paint: Paint,
}

/// Writes all of it.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, comparison: &Comparison, layout: &Layout) -> io::Result<()> {
    match &layout.form {
        Form::Text => text::write(out, comparison, layout),
        Form::Separated(separator) => fields::separated(out, comparison, layout, separator),
        Form::Csv => fields::csv(out, comparison, layout),
        Form::Json => json::write(out, comparison, layout),
    }
}

/// The lines that are wanted, before `rows` cuts them.
fn wanted<'a>(event: &'a Event, layout: &Layout) -> Vec<&'a Line> {
    let largest = |line: &Line| {
        let shares = line.values.iter().enumerate().map(|(file, value)| event.part(file, value).share);
        shares.fold(0.0, f64::max)
    };
    let keep =
        |line: &&Line| (!layout.baseline_only || line.values[0].samples > 0) && largest(line) >= layout.limit;
    event.lines.iter().filter(keep).collect()
}

/// A computed value with its sign, and what follows it.
fn value(compute: Compute, change: &Change) -> String {
    match (compute, change.value) {
        (Compute::Delta | Compute::DeltaAbs, Some(value)) => format!("{:+.1}", value * 100.0),
        (Compute::Time, Some(value)) => format!("{}{}", if value < 0.0 { "" } else { "+" }, duration(value)),
        (Compute::Ratio, Some(value)) => format!("{value:.3}"),
        (Compute::Weighted(..), Some(value)) => format!("{value:+.0}"),
        (_, None) => "-".to_owned(),
    }
}

/// A recording's part of a line: its time where times are compared, else its share.
fn part(comparison: &Comparison, event: &Event, values: &[Value], file: usize) -> String {
    match (values[file].samples, comparison.compute) {
        (0, _) => "-".to_owned(),
        (_, Compute::Time) => duration(values[file].period as f64),
        _ => format!("{:.1}%", event.part(file, &values[file]).share * 100.0),
    }
}

/// In the tree it is the times that are compared, or else always the shares.
fn delta(compute: Compute, change: Option<&Change>) -> String {
    change.map_or_else(
        || "-".to_owned(),
        |change| match compute {
            Compute::Time => format!("{} {}", value(compute, change), error(compute, change)),
            _ => format!("{:+.1} ±{:.1}", change.share.value * 100.0, change.share.error() * 100.0),
        },
    )
}

/// Columns of a recording's part, and of a difference.
fn tree_widths(comparison: &Comparison) -> (usize, usize) {
    if comparison.compute == Compute::Time { (7, 17) } else { (6, 12) }
}

/// Half the width of its interval.
fn error(compute: Compute, change: &Change) -> String {
    let half = (change.interval.1 - change.interval.0) / 2.0;
    match compute {
        _ if !half.is_finite() || change.value.is_none() => String::new(),
        Compute::Delta | Compute::DeltaAbs => format!("±{:.1}", half * 100.0),
        Compute::Time => format!("±{}", duration(half)),
        Compute::Ratio => format!("±{half:.3}"),
        Compute::Weighted(..) => format!("±{half:.0}"),
    }
}

/// How a value came about.
fn formula(compute: Compute, event: &Event, line: &Line, file: usize) -> String {
    let total = |file: usize| event.totals[file].as_ref().map_or(0, |total| total.period);
    let (old, new) = (line.values[0].period, line.values[file].period);
    match compute {
        Compute::Delta | Compute::DeltaAbs => {
            format!("({new} * 100 / {}) - ({old} * 100 / {})", total(file), total(0))
        }
        Compute::Time => format!("{new} - {old}"),
        Compute::Ratio => format!("{new} / {old}"),
        Compute::Weighted(w1, w2) => format!("({new} * {w2}) - ({old} * {w1})"),
    }
}

/// What changes of this kind are called.
fn heading(compute: Compute) -> &'static str {
    match compute {
        Compute::Delta | Compute::DeltaAbs => "Delta",
        Compute::Time => "Time",
        Compute::Ratio => "Ratio",
        Compute::Weighted(..) => "Weighted diff",
    }
}

fn is_noise(change: &Option<Change>) -> bool {
    change.is_none_or(|change| change.verdict == Verdict::Noise)
}
