//! The answer of `--fail-if`: as text, as a JSON value, and for CI systems.
//!
//! Receives a [`GateReport`] and chooses the wording. Names of functions, files and commands are untrusted;
//! each format escapes them in its own way.

mod github;
mod headline;
mod junit;

use std::io::{self, Write};

use serde::Serialize;

use super::remarks::Remarks;
use pmc_analysis::profile::gate::{
    ComparisonVerdict, GateReport, GateRow, GateVerdict, LEAST_RUNS, MeanChange, UnusableReason,
};
use pmc_text::text::clean;

pub use github::{annotations, step_summary};
pub use headline::{VerdictJson, headlines};
pub use junit::junit;

/// Maximum number of failing measures in text and annotations. GitHub shows at most ten annotations per step.
const MOST_SHOWN: usize = 10;

/// A CI system for which pmc prints the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CiFormat {
    /// Workflow commands for GitHub Actions after the text, and a step summary.
    GitHub,
    /// A JUnit report instead of the text.
    JUnit,
}

impl CiFormat {
    /// The formats' names on the command line.
    pub const WORDS: &[(&str, Self)] = &[("github", Self::GitHub), ("junit", Self::JUnit)];

    /// Returns the format of this name on the command line.
    pub fn named(name: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(word, _)| *word == name).map(|(_, format)| *format)
    }
}

/// Writes the headline as text, wrapped to `width` columns.
pub fn headline_text(
    out: &mut dyn Write,
    verdict: &ComparisonVerdict,
    width: Option<usize>,
) -> io::Result<()> {
    let out = &mut Remarks::new(out, width, false);
    headlines(verdict).iter().try_for_each(|line| writeln!(out, " {}", clean(line)))
}

/// Writes the answer of `--fail-if` as text, wrapped to `width` columns.
pub fn text(out: &mut dyn Write, report: &GateReport, width: Option<usize>) -> io::Result<()> {
    let out = &mut Remarks::new(out, width, false);
    let word = report.verdict.word();
    writeln!(out, " {word}: {}", clean(&answer(report)))?;
    for row in failing(report).take(MOST_SHOWN) {
        let at = row.location.as_ref().map(|at| format!("  {}:{}", at.file, at.line)).unwrap_or_default();
        writeln!(out, "   {}  {}{}", clean(&row.name), statement(row), clean(&at))?;
    }
    if let Some(more) = more_failing(report) {
        writeln!(out, "   {more}")?;
    }
    for reason in &report.reasons {
        let (why, remedy) = explain(reason);
        writeln!(out, "   {}", clean(&why))?;
        writeln!(out, "   try: {}", clean(&remedy))?;
    }
    if let Some(covered) = coverage(report) {
        writeln!(out, "   {covered}")?;
    }
    Ok(())
}

fn failing(report: &GateReport) -> impl Iterator<Item = &GateRow> {
    report.rows.iter().filter(|row| row.fails)
}

/// Returns a line that counts the failing measures that are not shown.
fn more_failing(report: &GateReport) -> Option<String> {
    let more = failing(report).count().saturating_sub(MOST_SHOWN);
    (more > 0).then(|| format!("… and {more} more"))
}

/// Returns the answer in one sentence, without the verdict.
fn answer(report: &GateReport) -> String {
    let (tested, fails) = (report.rows.len(), failing(report).count());
    match report.verdict {
        GateVerdict::Pass => format!("`{}` holds for none of {tested} measures", report.condition),
        GateVerdict::Regression => format!("`{}` holds for {fails} of {tested} measures", report.condition),
        GateVerdict::Unusable => format!("these runs cannot tell whether `{}` holds", report.condition),
    }
}

/// Formats a change with half the width of its confidence interval, such as `+2.7% ±0.6`.
pub(super) fn change(change: &MeanChange) -> String {
    format!("{:+.1}% ±{:.1}", change.percent, change.half_width())
}

/// Formats a p-value, such as `< 0.001` or `= 0.012`.
pub(super) fn probability(p: f64) -> String {
    if p < 0.001 { "< 0.001".to_owned() } else { format!("= {p:.3}") }
}

/// Returns the change of a measure, with its error and p-value.
fn statement(row: &GateRow) -> String {
    let share = row.share.map(|share| format!(", {:.1}% of the cost", share * 100.0)).unwrap_or_default();
    format!("{}, p {}{share}", change(&row.change), probability(row.p))
}

/// Returns how much of the cost is in functions that could be tested precisely.
fn coverage(report: &GateReport) -> Option<String> {
    let covered = report.covered.filter(|_| report.verdict == GateVerdict::Pass)?;
    Some(match (covered * 100.0).round() {
        0.0 => "No single function is measured precisely enough to find a change of that size: use a higher -F, or \
                more runs."
            .to_owned(),
        percent => format!(
            "Functions with {percent:.0}% of the cost are measured precisely enough to find a change of that size."
        ),
    })
}

/// Returns how many more runs would show a change of `limit`, if the runs so far show one of `shown`.
fn more_runs(shown: f64, limit: f64) -> String {
    let times = (shown / limit).powi(2).ceil();
    format!("about {times:.0} times as many runs (-r, or --budget of pmc compare), or a quieter machine")
}

/// Returns the text of a reason, and a remedy.
fn explain(reason: &UnusableReason) -> (String, String) {
    match reason {
        UnusableReason::TooFewRuns { command, runs } => (
            format!("too few runs: `{command}` ran {runs} times; the minimum is {LEAST_RUNS}"),
            "-r 10".to_owned(),
        ),
        UnusableReason::TooFewRecordings { recordings: [old, new] } => (
            format!("too few recordings: {old} old, {new} new; the minimum is {LEAST_RUNS} of each"),
            "pmc diff OLD… --vs NEW…, with about 10 recordings of each, made alternately".to_owned(),
        ),
        UnusableReason::TooNoisy { name, limit, shown: Some(shown) } => (
            format!(
                "too noisy: {name} would have to change by {:.1}% to be noticed, but the limit is {:.1}%",
                shown.abs(),
                limit.abs()
            ),
            // The error decreases with the square root of the number of runs.
            match name == "elapsed" {
                // Other programs on the same CPUs affect the CPU time least.
                true => {
                    format!("a measure of CPU time, such as task-clock, or {}", more_runs(*shown, *limit))
                }
                false => more_runs(*shown, *limit),
            },
        ),
        UnusableReason::TooNoisy { name, limit, shown: None } => (
            format!("too noisy: no change of {name} would be noticed, but the limit is {:.1}%", limit.abs()),
            "more runs, or a quieter machine".to_owned(),
        ),
        UnusableReason::FewFunctionsTested { share } => (
            format!(
                "too noisy: only functions with {:.0}% of the cost are measured precisely enough",
                share * 100.0
            ),
            "more recordings, longer runs, or a higher frequency (record -F)".to_owned(),
        ),
        UnusableReason::NotMeasured { name, why } => {
            (format!("{name}: {why}"), "pmc info shows what this machine can count".to_owned())
        }
        UnusableReason::NothingSelected { names } => (
            "the condition refers to nothing that was measured".to_owned(),
            match names.is_empty() {
                true => "measure something: -e EVENTS".to_owned(),
                false => format!("one of {}", names.join(", ")),
            },
        ),
        UnusableReason::CommandFailed { command, failures } => (
            format!("`{command}` {}", headline::failures(failures)),
            format!("fix the command; if this status is no failure: '{command} || true'"),
        ),
        UnusableReason::OtherMachine { path, property, values: [here, first] } => (
            format!("{path} is from another machine: its {property} is {here}, not {first}"),
            "record both versions in the same job".to_owned(),
        ),
        UnusableReason::LostSamples { path, lost } => (
            match lost {
                Some(lost) => format!("{path} lacks {lost} samples"),
                None => format!("{path} is damaged"),
            },
            "record it again, at a lower frequency or with larger ring buffers (record -m)".to_owned(),
        ),
    }
}

/// The answer as a JSON value.
#[derive(Serialize)]
pub struct GateJson<'a> {
    condition: &'a str,
    verdict: &'static str,
    reasons: Vec<GateReasonJson>,
    /// For functions: the percentage of the cost in functions that could be tested.
    covered_percent: Option<f64>,
    measures: Vec<GateRowJson<'a>>,
}

#[derive(Serialize)]
struct GateReasonJson {
    reason: String,
    remedy: String,
}

#[derive(Serialize)]
struct GateRowJson<'a> {
    name: &'a str,
    change_percent: f64,
    /// Half the width of the 95 % confidence interval.
    error: f64,
    p_adjusted: f64,
    fails: bool,
    /// The smallest change that these runs can show, if it exceeds the limit.
    smallest_shown_percent: Option<f64>,
    share_percent: Option<f64>,
    file: Option<&'a str>,
    line: Option<u64>,
}

impl<'a> From<&'a GateReport> for GateJson<'a> {
    fn from(report: &'a GateReport) -> Self {
        let reason = |reason: &UnusableReason| {
            let (reason, remedy) = explain(reason);
            GateReasonJson { reason, remedy }
        };
        let row = |row: &'a GateRow| GateRowJson {
            name: &row.name,
            change_percent: row.change.percent,
            error: row.change.half_width(),
            p_adjusted: row.p,
            fails: row.fails,
            smallest_shown_percent: row.hidden.and_then(|(_, shown)| shown),
            share_percent: row.share.map(|share| share * 100.0),
            file: row.location.as_ref().map(|at| at.file.as_str()),
            line: row.location.as_ref().map(|at| at.line),
        };
        Self {
            condition: &report.condition,
            verdict: report.verdict.word(),
            reasons: report.reasons.iter().map(reason).collect(),
            covered_percent: report.covered.map(|covered| covered * 100.0),
            measures: report.rows.iter().map(row).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
