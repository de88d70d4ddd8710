//! `pmc diff` as text, CSV, separated fields and JSON.
//!
//! Receives a [`Diff`] and a [`DiffLayout`], and chooses wording, column widths, and which rows to dim.

mod fields;
pub mod groups;
mod json;
mod text;

use std::io::{self, Write};

use pmc_analysis::profile::diff::{ChangeVerdict, Compute, Diff, DiffChange, DiffEvent, DiffRow};
use pmc_analysis::profile::gate::GateCondition;
use pmc_analysis::profile::sampled::SampleValue;
use pmc_text::terminal::Paint;
use pmc_text::units::duration;

use crate::gate::CiFormat;
pub use crate::report::ReportFormat;

/// Options for displaying a comparison.
#[derive(Debug, Clone)]
pub struct DiffLayout {
    /// The output format.
    pub form: ReportFormat,
    /// Maximum number of rows.
    pub rows: usize,
    /// Minimum share (0 to 1). Rows below it in all recordings are omitted.
    pub limit: f64,
    /// Whether to show a column of periods.
    pub period: bool,
    /// Whether to show how each value was computed.
    pub formula: bool,
    /// Whether to show only rows that occur in the baseline.
    pub baseline_only: bool,
    /// Maximum line width for human readers, in columns. Longer names are shortened. `None` if the output is
    /// for programs.
    pub width: Option<usize>,
    /// Maximum number of branches of the tree, largest changes first; `None` for no limit.
    pub tree_lines: Option<usize>,
    /// Text styles.
    pub paint: Paint,
}

/// How to print a comparison, and when it fails.
#[derive(Debug, Clone)]
pub struct DiffOutput {
    pub layout: DiffLayout,
    /// The condition under which the comparison of groups fails.
    pub gate: Option<GateCondition>,
    /// The CI system for which to print the answer of the condition.
    pub ci: Option<CiFormat>,
}

/// Writes the comparison in the format of `layout`.
pub fn write(out: &mut dyn Write, comparison: &Diff, layout: &DiffLayout) -> io::Result<()> {
    match &layout.form {
        ReportFormat::Text => text::write(out, comparison, layout),
        ReportFormat::Separated(separator) => fields::separated(out, comparison, layout, separator),
        ReportFormat::Csv => fields::csv(out, comparison, layout),
        ReportFormat::Json => json::write(out, comparison, layout),
    }
}

/// Returns all rows that pass the layout's filters, even if there are more than `layout.rows`.
fn selected_rows<'a>(event: &'a DiffEvent, layout: &DiffLayout) -> Vec<&'a DiffRow> {
    let largest = |line: &DiffRow| {
        let shares = line.values.iter().enumerate().map(|(file, value)| event.part(file, value).share);
        shares.fold(0.0, f64::max)
    };
    let keep = |line: &&DiffRow| {
        (!layout.baseline_only || line.values[0].samples > 0) && largest(line) >= layout.limit
    };
    event.lines.iter().filter(keep).collect()
}

/// Formats a computed value with its sign and unit.
fn value(compute: Compute, change: &DiffChange) -> String {
    match (compute, change.value) {
        (Compute::Delta | Compute::DeltaAbs, Some(value)) => format!("{:+.1}", value * 100.0),
        (Compute::Time, Some(value)) => format!("{}{}", if value < 0.0 { "" } else { "+" }, duration(value)),
        (Compute::Ratio, Some(value)) => format!("{value:.3}"),
        (Compute::Weighted(..), Some(value)) => format!("{value:+.0}"),
        (_, None) => "-".to_owned(),
    }
}

/// Formats one recording's value in a row: a time if times are compared, otherwise a share.
fn part(comparison: &Diff, event: &DiffEvent, values: &[SampleValue], file: usize) -> String {
    match (values[file].samples, comparison.compute) {
        (0, _) => "-".to_owned(),
        (_, Compute::Time) => duration(values[file].period as f64),
        _ => format!("{:.1}%", event.part(file, &values[file]).share * 100.0),
    }
}

/// Formats a change in the tree: a time if times are compared, otherwise always a share.
fn delta(compute: Compute, change: Option<&DiffChange>) -> String {
    change.map_or_else(
        || "-".to_owned(),
        |change| match compute {
            Compute::Time => {
                format!("{} {}", value(compute, change), error(compute, change)).trim_end().to_owned()
            }
            _ if !change.has_error() => format!("{:+.1}", change.share.value * 100.0),
            _ => format!("{:+.1} ±{:.1}", change.share.value * 100.0, change.share.error() * 100.0),
        },
    )
}

/// Formats the error: half the width of the confidence interval. Empty for a census, which has none.
fn error(compute: Compute, change: &DiffChange) -> String {
    let half = (change.interval.1 - change.interval.0) / 2.0;
    match compute {
        _ if !half.is_finite() || change.value.is_none() || !change.has_error() => String::new(),
        Compute::Delta | Compute::DeltaAbs => format!("±{:.1}", half * 100.0),
        Compute::Time => format!("±{}", duration(half)),
        Compute::Ratio => format!("±{half:.3}"),
        Compute::Weighted(..) => format!("±{half:.0}"),
    }
}

/// Returns the formula of a value, with the numbers filled in.
fn formula(compute: Compute, event: &DiffEvent, line: &DiffRow, file: usize) -> String {
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

/// Returns the title of a column with changes of this kind.
fn heading(compute: Compute) -> &'static str {
    match compute {
        Compute::Delta | Compute::DeltaAbs => "Delta",
        Compute::Time => "Time",
        Compute::Ratio => "Ratio",
        Compute::Weighted(..) => "Weighted diff",
    }
}

/// Whether a change is explained by noise, or cannot be tested. Waits are never noise.
fn is_noise(change: &Option<DiffChange>) -> bool {
    change.is_none_or(|change| matches!(change.verdict, ChangeVerdict::Noise | ChangeVerdict::Rare))
}
