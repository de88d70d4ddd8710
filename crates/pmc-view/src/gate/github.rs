//! The answer for GitHub Actions: workflow commands that become annotations, and a step summary in Markdown.
//!
//! GitHub describes both in *Workflow commands for GitHub Actions*. In a workflow command, `%`, CR and LF are
//! escaped, in its properties also `:` and `,`. In Markdown, every punctuation mark of a name is written as a
//! character reference, so that no name can contain markup or mention a user.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::headline::headlines;
use super::{answer, coverage, explain, failing, more_failing, statement};
use pmc_analysis::profile::gate::{ComparisonVerdict, GateReport, GateVerdict};
use pmc_text::text::clean;

/// Maximum number of rows of the step summary's table.
const MOST_ROWS: usize = 50;

/// Writes the workflow commands. `workspace` is the directory of the repository; annotations refer to files
/// in it.
pub fn annotations(
    out: &mut dyn Write,
    verdict: &ComparisonVerdict,
    report: &GateReport,
    workspace: &str,
) -> io::Result<()> {
    let title = property(&format!("pmc: {}", report.verdict.word()));
    match report.verdict {
        GateVerdict::Pass => {
            let lines = [vec![answer(report)], headlines(verdict)].concat();
            writeln!(out, "::notice title={title}::{}", data(&lines.join("\n")))
        }
        GateVerdict::Regression => {
            for row in failing(report).take(super::MOST_SHOWN) {
                let location = row.location.as_ref().and_then(|at| {
                    let file = within(&at.file, workspace)?;
                    Some(format!("file={},line={},", property(file), at.line))
                });
                let text = format!("{}: {} (fails if {})", row.name, statement(row), report.condition);
                let location = location.unwrap_or_default();
                writeln!(out, "::error {location}title={title}::{}", data(&text))?;
            }
            Ok(())
        }
        GateVerdict::Unusable => report.reasons.iter().try_for_each(|reason| {
            let (why, remedy) = explain(reason);
            writeln!(out, "::warning title={title}::{}", data(&format!("{why}\ntry: {remedy}")))
        }),
    }
}

/// Returns the path relative to the workspace; `None` for a file outside of it.
fn within<'a>(file: &'a str, workspace: &str) -> Option<&'a str> {
    if !file.starts_with('/') {
        return Some(file);
    }
    let workspace = workspace.trim_end_matches('/');
    file.strip_prefix(workspace).filter(|_| !workspace.is_empty())?.strip_prefix('/')
}

/// Escapes the text of a workflow command.
fn data(text: &str) -> String {
    let lines: Vec<_> = text.split('\n').map(|line| clean(line).replace('%', "%25")).collect();
    lines.join("%0A")
}

/// Escapes a property of a workflow command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// Returns the step summary.
pub fn step_summary(verdict: &ComparisonVerdict, report: &GateReport) -> String {
    let mut page = format!("### pmc: {}\n\n{}\n", report.verdict.word(), markdown(&answer(report)));
    for line in headlines(verdict) {
        let _ = writeln!(page, "\n**{}**", markdown(&line));
    }
    if !report.rows.is_empty() {
        page.push_str("\n| | measure | change | ± | p | cost |\n|---|---|---:|---:|---:|---:|\n");
    }
    for row in report.rows.iter().take(MOST_ROWS) {
        let mark = if row.fails { "**fails**" } else { "" };
        let share = row.share.map(|share| format!("{:.1}%", share * 100.0)).unwrap_or_default();
        let (name, change) = (markdown(&row.name), row.change.percent);
        let half = row.change.half_width();
        let _ = writeln!(page, "| {mark} | {name} | {change:+.1}% | {half:.1} | {:.3} | {share} |", row.p);
    }
    if let Some(more) = report.rows.len().checked_sub(MOST_ROWS).filter(|more| *more > 0) {
        let _ = writeln!(page, "\n… and {more} more rows");
    }
    for reason in &report.reasons {
        let (why, remedy) = explain(reason);
        let _ = writeln!(page, "\n- {}  \n  try: {}", markdown(&why), markdown(&remedy));
    }
    for line in more_failing(report).into_iter().chain(coverage(report)) {
        let _ = writeln!(page, "\n{line}");
    }
    page.push('\n');
    page
}

/// Escapes text for Markdown.
fn markdown(text: &str) -> String {
    let escape = |c: char| match c {
        c if c.is_alphanumeric() || c == ' ' => c.to_string(),
        c => format!("&#{};", u32::from(c)),
    };
    clean(text).chars().map(escape).collect()
}
