//! `pmc diff`: compares recordings, and passes the result to a view.

mod plan;

use super::pager::PagedOutput;
use super::progress::Bars;
use crate::view;
pub(super) use plan::DiffPlan;
use pmc_analysis::analysis::diff::DiffSides;
use pmc_analysis::analysis::recording_quality;
use pmc_analysis::analysis::warning::AnalysisWarning;
use pmc_sys::error::{Error, Exit, Result, say};

/// Runs the command.
///
/// # Errors
/// Fails if a recording cannot be read, the recordings have no event in common, or the output cannot be
/// written.
pub(super) fn run(plan: &DiffPlan) -> Result<Exit> {
    let sides = DiffSides::load(&plan.request, &Bars).map_err(|error| match plan.names_both {
        true => error,
        false => error.try_this("specify both recordings: pmc diff OLD NEW"),
    })?;
    let (damage, exit) = (sides.damage(), if sides.lose_samples() { Exit::Failure } else { Exit::Done });
    recording_quality::warn_of_names(sides.name_failures());
    let comparison = sides.compare(&plan.request)?;
    for what in damage.iter().cloned() {
        say::warn(AnalysisWarning::DamagedRecording { what });
    }
    if plan.layout.form.is_bare() {
        for what in comparison.notes.iter().filter(|note| !damage.contains(note)).cloned() {
            say::warn(AnalysisWarning::Recording { what });
        }
    }
    let mut out = PagedOutput::new();
    view::diff::write(&mut out, &comparison, &plan.layout)
        .and_then(|()| out.finish())
        .map_err(|error| Error::output("the comparison", error))?;
    Ok(exit)
}
