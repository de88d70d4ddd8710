//! `pmc diff`: compares recordings, and passes the result to a view.

mod plan;

pub(super) use plan::DiffPlan;
use pmc_analysis::analysis::diff::DiffSides;
use pmc_analysis::analysis::recording_quality;
use pmc_analysis::analysis::warning::AnalysisWarning;
use pmc_analysis::profile::diff::Diff;
use pmc_analysis::profile::diff::groups::{GroupComparison, compare_groups, problems};
use pmc_analysis::profile::gate::{UnusableReason, judge};
use pmc_command::gate;
use pmc_command::pager::PagedOutput;
use pmc_command::progress::Bars;
use pmc_formats::import;
use pmc_sys::error::{Error, Exit, Result, say};
use pmc_view::gate::CiFormat;

/// Runs the command.
///
/// # Errors
/// Fails if a recording cannot be read, the recordings have no event in common, or the output cannot be
/// written.
pub(super) fn run(plan: &DiffPlan) -> Result<Exit> {
    let sides =
        DiffSides::load(&plan.request, |path| import::open(path), &Bars).map_err(|error| {
            match plan.names_both {
                true => error,
                false => error.try_this("specify both recordings: pmc diff OLD NEW"),
            }
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
    let failed = |error| Error::output("the comparison", error);
    let Some(groups) = &plan.groups else {
        let mut out = PagedOutput::open();
        pmc_view::diff::write(&mut out, &comparison, &plan.layout).map_err(failed)?;
        out.finish().map_err(failed)?;
        return Ok(exit);
    };
    let compared = compare_groups(&comparison, groups.request);
    let report = groups.gate.as_ref().map(|condition| {
        let subjects = pmc_view::diff::groups::gate_subjects(&comparison, &compared);
        judge(condition, &subjects, problems(&comparison.files, groups.request.base))
    });
    let verdict = pmc_view::diff::groups::verdict(&comparison, &compared, report);
    let mut out = PagedOutput::open();
    match &verdict.gate {
        Some(report) if plan.ci == Some(CiFormat::JUnit) => pmc_view::gate::junit(&mut out, &verdict, report),
        _ => pmc_view::diff::groups::write(&mut out, &comparison, &compared, &verdict, &plan.layout),
    }
    .map_err(failed)?;
    gate::write_annotations(&mut out, &verdict, plan.ci).and_then(|()| out.finish()).map_err(failed)?;
    gate::append_summary(&verdict, plan.ci)?;
    Ok(verdict.gate.as_ref().map_or(exit, gate::exit_of))
}

/// Compares groups of recordings without printing the comparison. `labels` are
/// the names of the recordings in messages. Also returns why the comparison is unusable for a gate.
///
/// # Errors
/// Fails if a recording cannot be read, or the recordings have no event in common.
pub(super) fn compare(
    mut plan: DiffPlan,
    labels: Vec<String>,
) -> Result<(Diff, GroupComparison, Vec<UnusableReason>)> {
    plan.request.labels = labels;
    let sides = DiffSides::load(&plan.request, |path| import::open(path), &Bars)?;
    recording_quality::warn_of_names(sides.name_failures());
    let comparison = sides.compare(&plan.request)?;
    let request = plan.groups.map(|groups| groups.request).ok_or_else(|| Error::usage("no groups"))?;
    let compared = compare_groups(&comparison, request);
    let problems = problems(&comparison.files, request.base);
    Ok((comparison, compared, problems))
}
