//! The headline of a comparison: one sentence for each command or group, with the strongest findings.

use serde::Serialize;

use super::{change, probability};
use pmc_analysis::profile::gate::{
    ComparisonVerdict, RunFailures, SideVerdict, VerdictDirection, VerdictFinding,
};

/// Maximum number of functions that the headline names.
const MOST_FUNCTIONS: usize = 2;

/// Returns the sentences. Names in them are untrusted.
pub fn headlines(verdict: &ComparisonVerdict) -> Vec<String> {
    verdict.sides.iter().map(|side| sentence(&verdict.base, side)).collect()
}

fn sentence(base: &str, of: &SideVerdict) -> String {
    let side = &of.side;
    let beginning = match of.direction {
        VerdictDirection::Failed => return failed(base, of),
        VerdictDirection::Untested => {
            return format!("Too few runs to compare {side} with {base}: make at least 5 of each.");
        }
        VerdictDirection::Slower => format!("{side} is slower"),
        VerdictDirection::Faster => format!("{side} is faster"),
        VerdictDirection::Mixed => format!("{side} differs from {base}"),
        VerdictDirection::NotShown => format!("No difference between {side} and {base} found"),
        VerdictDirection::Unclear => format!("These runs cannot tell whether {side} is slower or faster"),
    };
    let with_p = |one: &VerdictFinding| format!("{} (p {})", with_change(one), probability(one.p));
    let mut parts: Vec<String> = of.functions.iter().take(MOST_FUNCTIONS).map(with_p).collect();
    match of.functions.len().saturating_sub(MOST_FUNCTIONS) {
        0 => {}
        1 => parts.push("1 more function".to_owned()),
        more => parts.push(format!("{more} more functions")),
    }
    parts.extend(of.measures.iter().map(with_p));
    let is_unclear = of.direction == VerdictDirection::Unclear;
    // Without findings, the errors of the times state which differences are unlikely.
    let has_findings = !parts.is_empty();
    let others = || of.others.iter();
    let mut remarks: Vec<String> = Vec::new();
    for (one, _) in others().filter(|(_, is_clear)| *is_clear || is_unclear) {
        match has_findings {
            true => remarks.push(format!("no change of {} shown ({})", one.name, change(&one.change))),
            false => parts.push(with_change(one)),
        }
    }
    let unclear: Vec<&str> =
        others().filter(|(_, is_clear)| !is_clear && !is_unclear).map(|(one, _)| one.name.as_str()).collect();
    if !unclear.is_empty() {
        remarks.push(format!("{} cannot tell", unclear.join(" and ")));
    }
    let all = [parts.join(", ")].into_iter().chain(remarks).collect::<Vec<_>>().join("; ");
    // A sentence may begin with the name of the side.
    let beginning: String =
        beginning.chars().take(1).flat_map(char::to_uppercase).chain(beginning.chars().skip(1)).collect();
    format!("{beginning}: {all}.")
}

fn with_change(one: &VerdictFinding) -> String {
    format!("{} {}", one.name, change(&one.change))
}

/// Returns the sentence about commands that failed.
fn failed(base: &str, of: &SideVerdict) -> String {
    let names = [base, of.side.as_str()];
    let failed = names.iter().zip(&of.failures).filter(|(_, failures)| failures.failed > 0);
    let failed: Vec<String> = failed.map(|(name, of)| format!("{name} {}", failures(of))).collect();
    format!("{}, so that their times cannot be compared.", failed.join(" and "))
}

/// Returns how often a command failed, such as `failed with status 3 in 2 of 10 runs`.
pub(super) fn failures(of: &RunFailures) -> String {
    let plural = if of.runs == 1 { "" } else { "s" };
    format!("failed with status {} in {} of {} run{plural}", of.status, of.failed, of.runs)
}

/// The verdict as a JSON value.
#[derive(Serialize)]
pub struct VerdictJson {
    side: String,
    direction: &'static str,
    headline: String,
    /// The number of failed runs of the base, and of this side.
    failed_runs: [usize; 2],
}

impl VerdictJson {
    /// Returns the verdicts on all sides.
    pub fn all(verdict: &ComparisonVerdict) -> Vec<Self> {
        let of = |side: &SideVerdict| Self {
            side: side.side.clone(),
            direction: side.direction.word(),
            headline: sentence(&verdict.base, side),
            failed_runs: side.failures.map(|of| of.failed),
        };
        verdict.sides.iter().map(of).collect()
    }
}
