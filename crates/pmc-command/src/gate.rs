//! The answer of `--fail-if`, outside of a command's own output: the exit status, and GitHub's step summary.

use std::io::{self, Write};

use pmc_analysis::profile::gate::{ComparisonVerdict, GateReport, GateVerdict};
use pmc_sys::error::{Error, Exit, Result};
use pmc_sys::sys::output_file;
use pmc_view::gate::{CiFormat, annotations, step_summary};

/// Returns the exit status: 0 for a pass, 1 for a regression, 2 if the runs cannot tell. Status 2 is also the
/// status of invalid command lines; in both cases, CI must not treat the change as tested.
pub fn exit_of(report: &GateReport) -> Exit {
    match report.verdict {
        GateVerdict::Pass => Exit::Done,
        GateVerdict::Regression => Exit::Failure,
        GateVerdict::Unusable => Exit::Usage,
    }
}

/// Gives an error the exit status 2 if there is a condition: a command that cannot be started, or a recording
/// that cannot be read, is neither a pass nor a regression.
pub fn unusable_if_failed(has_condition: bool, result: Result<Exit>) -> Result<Exit> {
    result.map_err(|error| {
        match has_condition && !error.is_quiet() && !error.exit_status().is_interruption() {
            true => error.exit(Exit::Usage),
            false => error,
        }
    })
}

/// Writes GitHub's workflow commands, if the CI system is GitHub.
pub fn write_annotations(
    out: &mut dyn Write,
    verdict: &ComparisonVerdict,
    ci: Option<CiFormat>,
) -> io::Result<()> {
    let Some(report) = verdict.gate.as_ref().filter(|_| ci == Some(CiFormat::GitHub)) else { return Ok(()) };
    let workspace = std::env::var("GITHUB_WORKSPACE").ok();
    let here = || std::env::current_dir().map(|folder| folder.display().to_string()).unwrap_or_default();
    annotations(out, verdict, report, &workspace.unwrap_or_else(here))
}

/// Appends the answer to the step summary of GitHub Actions, if there is one.
///
/// # Errors
/// Fails if the file of the summary cannot be written.
pub fn append_summary(verdict: &ComparisonVerdict, ci: Option<CiFormat>) -> Result<()> {
    let Some(report) = verdict.gate.as_ref().filter(|_| ci == Some(CiFormat::GitHub)) else { return Ok(()) };
    let path = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty());
    let Some(path) = path else { return Ok(()) };
    let opened = output_file::create(path.as_ref(), 0o666, true);
    let written = opened.and_then(|mut file| file.write_all(step_summary(verdict, report).as_bytes()));
    written.map_err(|error| Error::output(format_args!("the step summary to {}", path.display()), error))
}
