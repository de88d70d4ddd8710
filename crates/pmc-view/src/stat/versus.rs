//! `--vs`: several commands side by side, as a table and as a JSON document.
//!
//! Receives a [`CommandComparison`], which contains all results and verdicts, and only lays it out.
//!
//! ```text
//!   A  'sleep 0.1'
//!   B  'sleep 0.2'
//!
//!  elapsed ms           A          101.204 ± 0.312
//!                       B          201.300 ± 0.200   +98.9%  p < 0.001  slower
//! ```

use std::io::{self, Write};

use serde::Serialize;

use super::document::{HeaderJson, StatisticsJson, header};
use super::{StatStyle, first_fitting, fitting_unit, mean_digits, noted_outliers, quantity, safe};
use crate::gate::{self, GateJson, VerdictJson};
use crate::remarks::Remarks;
use pmc_analysis::profile::gate::ComparisonVerdict;
use pmc_analysis::profile::statistics::{MeasurementSummary, SIGNIFICANCE};
use pmc_analysis::profile::versus::{
    CommandComparison, ComparedMeasure, ComparedSide, DifferenceVerdict, command_letter as letter,
};
use pmc_text::table::{self as columns, left, right};
use pmc_text::text as words;

/// Writes the table, with the headline in its last lines.
pub fn text(
    out: &mut dyn Write,
    comparison: &CommandComparison,
    verdict: &ComparisonVerdict,
    style: &StatStyle,
) -> io::Result<()> {
    table(out, comparison, style)?;
    gate::headline_text(out, verdict, style.width)?;
    remarks(out, comparison, style)?;
    writeln!(out)
}

/// Writes the table.
pub fn table(out: &mut dyn Write, comparison: &CommandComparison, style: &StatStyle) -> io::Result<()> {
    let out = &mut Remarks::new(out, style.width, false);
    writeln!(out)?;
    let runs = comparison
        .lines
        .first()
        .and_then(|l| l.sides.iter().filter_map(|s| s.summary.as_ref()).map(|s| s.count).max());
    writeln!(out, " {} commands, {} runs each, in turn:\n", comparison.commands.len(), runs.unwrap_or(0))?;
    for (at, command) in comparison.commands.iter().enumerate() {
        writeln!(out, "   {}  '{}'", letter(at), safe(command))?;
    }
    writeln!(out)?;
    let usual = [left(1, 20), left(2, 0), right(2, 18), left(0, 18), right(1, 8), left(2, 9), left(2, 0)];
    let narrow = [left(1, 0), left(2, 0), right(2, 0), left(0, 0), right(2, 0), left(2, 0), left(2, 0)];
    let rows = rows(comparison, style);
    // If space is short, put measure names on separate lines. If that is not enough, also omit p.
    let texts = (0..4).map(|fit| {
        let (mut rows, mut own_lines) = (rows.clone(), Vec::new());
        for row in &mut rows {
            own_lines
                .push(Some(&mut row[0]).filter(|title| fit > 1 && !title.is_empty()).map(std::mem::take));
            if fit == 3 {
                row.remove(5);
            }
        }
        let lines = columns::lines(if fit == 0 { &usual } else { &narrow }, rows);
        let with_own = own_lines.into_iter().zip(lines);
        with_own.flat_map(|(own, line)| own.map(|own| format!(" {own}")).into_iter().chain([line])).collect()
    });
    for line in first_fitting(texts, style.width) {
        writeln!(out, "{line}")?;
    }
    writeln!(out)?;
    let has_intervals = comparison
        .lines
        .iter()
        .flat_map(|line| &line.sides)
        .filter_map(|side| side.summary.as_ref())
        .any(|s| s.interval.is_some());
    if has_intervals {
        let corrected =
            if comparison.lines.len() > 1 { " p is corrected for the number of measures." } else { "" };
        writeln!(out, " ± is half of the 95% confidence interval of the mean.{corrected}")?;
    }
    Ok(())
}

/// Returns the rows of the table: for each measure, one row per command. The cells are the measure's name in
/// its first row, the command's letter, the mean, its error, the difference, p and the verdict.
pub fn rows(comparison: &CommandComparison, style: &StatStyle) -> Vec<Vec<String>> {
    // For each measure, use the same unit for all commands.
    let lines = comparison.lines.iter().map(in_fitting_unit);
    let title =
        |line: &ComparedMeasure| format!("{} {}", safe(&line.name), safe(&line.unit)).trim_end().to_owned();
    let rows = lines.flat_map(|line| {
        let row = |(at, side): (usize, &ComparedSide)| {
            let mut row = vec![if at == 0 { title(&line) } else { String::new() }, letter(at)];
            row.extend(cells(&line, side, style));
            row
        };
        line.sides.iter().enumerate().map(row).collect::<Vec<_>>()
    });
    rows.collect()
}

/// Converts a measure of time to a unit that suits all commands; returns other measures unchanged.
fn in_fitting_unit(line: &ComparedMeasure) -> ComparedMeasure {
    let means = line.sides.iter().filter_map(|side| side.summary.as_ref()).map(|summary| summary.mean);
    let Some((factor, unit)) = fitting_unit(&line.unit, means) else { return line.clone() };
    let side = |side: &ComparedSide| ComparedSide {
        summary: side.summary.as_ref().map(|summary| summary.in_unit(factor)),
        ..side.clone()
    };
    ComparedMeasure { unit: unit.to_owned(), sides: line.sides.iter().map(side).collect(), ..line.clone() }
}

/// Returns the cells for the mean, its error (half the width of its interval), the difference, p and the
/// verdict.
fn cells(line: &ComparedMeasure, side: &ComparedSide, style: &StatStyle) -> [String; 5] {
    let Some(summary) = &side.summary else {
        let mut row: [String; 5] = Default::default();
        "not counted".clone_into(&mut row[0]);
        return row;
    };
    // Use the same number of digits for all commands, so that they are easy to compare. For times, use the
    // smallest number of digits that any command's error justifies. For counts, use the largest.
    let summaries = line.sides.iter().filter_map(|s| s.summary.as_ref());
    let digits = summaries.map(|s| mean_digits(s, line.fractional));
    let digits = if line.fractional { digits.min() } else { digits.max() }.unwrap_or(0);
    let mean = quantity(summary.mean, digits, style.big_num);
    let half = summary.interval.map(|(_, high)| high - summary.mean);
    let half = half.map(|h| format!(" ± {}", quantity(h, digits, style.big_num))).unwrap_or_default();
    let difference = side.difference.map(|d| format!("{d:+.1}%")).unwrap_or_default();
    let p = side.test.map(|_| format!("p {}", gate::probability(side.adjusted))).unwrap_or_default();
    let word = if side.verdict == DifferenceVerdict::Base { "" } else { side.verdict.word() };
    let code = match side.verdict {
        DifferenceVerdict::Faster => "\x1b[32m",
        DifferenceVerdict::Slower => "\x1b[31m",
        _ => "",
    };
    let word =
        if style.colour && !code.is_empty() { format!("{code}{word}\x1b[0m") } else { word.to_owned() };
    [mean, half, difference, p, word]
}

/// Returns the ratio of two means and its error: half the width of the 95 % interval. The relative errors of
/// both means are combined in quadrature. The error determines the number of digits.
fn ratio(of: &MeasurementSummary, to: &MeasurementSummary) -> String {
    let ratio = of.mean / to.mean;
    let part = |side: &MeasurementSummary| side.interval.map(|(_, high)| (high - side.mean) / side.mean);
    let error = part(of).zip(part(to)).map(|(of, to)| ratio * of.hypot(to));
    match error.filter(|error| *error > 0.0) {
        Some(error) => {
            let digits = (-error.log10()).ceil().clamp(0.0, 4.0) as usize;
            format!("{ratio:.digits$} ± {error:.digits$}")
        }
        None => format!("{ratio:.2}"),
    }
}

/// Writes the ratios of elapsed times that differ, and the outliers.
pub fn remarks(out: &mut dyn Write, comparison: &CommandComparison, style: &StatStyle) -> io::Result<()> {
    let out = &mut Remarks::new(out, style.width, false);
    let Some(elapsed) = comparison.lines.first() else { return Ok(()) };
    let Some(base) = elapsed.sides.first().and_then(|s| s.summary.as_ref()) else { return Ok(()) };
    for (at, side) in elapsed.sides.iter().enumerate().skip(1) {
        let Some(summary) = &side.summary else { continue };
        let who = letter(at);
        match side.verdict {
            DifferenceVerdict::Faster if summary.mean > 0.0 => {
                writeln!(out, " {who} is {} times as fast as A.", ratio(base, summary))?;
            }
            DifferenceVerdict::Slower if base.mean > 0.0 => {
                writeln!(out, " {who} takes {} times as long as A.", ratio(summary, base))?;
            }
            _ => {}
        }
    }
    for (at, side) in elapsed.sides.iter().enumerate() {
        let runs: Vec<String> =
            side.summary.iter().flat_map(noted_outliers).map(|run| (run + 1).to_string()).collect();
        if !runs.is_empty() {
            let (who, runs) = (letter(at), runs.join(", "));
            writeln!(
                out,
                " Outliers: elapsed time of {who} in run {runs}; something disturbed these runs, so use more runs (-r)."
            )?;
        }
    }
    Ok(())
}

#[derive(Serialize)]
struct ComparisonJson<'a> {
    pmc: HeaderJson,
    commands: &'a [String],
    significance: f64,
    measures: Vec<MeasureJson<'a>>,
    /// The verdict on each command except the base, if it is not part of another document.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdicts: Option<Vec<VerdictJson>>,
    /// The answer of `--fail-if`.
    #[serde(skip_serializing_if = "Option::is_none")]
    gate: Option<GateJson<'a>>,
}

#[derive(Serialize)]
struct MeasureJson<'a> {
    name: &'a str,
    unit: &'a str,
    sides: Vec<SideJson>,
}

#[derive(Serialize)]
struct SideJson {
    /// Index into `commands`.
    command: usize,
    statistics: Option<StatisticsJson>,
    difference_percent: Option<f64>,
    /// The t statistic; `null` if the values have no spread.
    t: Option<f64>,
    df: Option<f64>,
    p: Option<f64>,
    p_adjusted: Option<f64>,
    verdict: &'static str,
}

/// Writes the comparison as one JSON document.
pub fn json(
    out: &mut dyn Write,
    comparison: &CommandComparison,
    verdict: Option<&ComparisonVerdict>,
) -> io::Result<()> {
    let document = ComparisonJson {
        pmc: header(),
        commands: &comparison.commands,
        significance: SIGNIFICANCE,
        measures: comparison.lines.iter().map(measure).collect(),
        verdicts: verdict.map(VerdictJson::all),
        gate: verdict.and_then(|verdict| verdict.gate.as_ref()).map(GateJson::from),
    };
    writeln!(out, "{}", words::as_json(&document))
}

fn measure(line: &ComparedMeasure) -> MeasureJson<'_> {
    let side = |(command, side): (usize, &ComparedSide)| SideJson {
        command,
        statistics: side.summary.as_ref().map(StatisticsJson::from),
        difference_percent: side.difference,
        t: side.test.map(|w| w.t).filter(|t| t.is_finite()),
        df: side.test.map(|w| w.df),
        p: side.test.map(|w| w.p),
        p_adjusted: side.test.map(|_| side.adjusted),
        verdict: side.verdict.word(),
    };
    MeasureJson {
        name: &line.name,
        unit: &line.unit,
        sides: line.sides.iter().enumerate().map(side).collect(),
    }
}
