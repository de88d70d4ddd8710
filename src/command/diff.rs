//! `pmc diff`: compares recordings, and passes the result to a view.

use std::path::Path;

use pmc_analysis::analysis::diff::{DiffRequest, DiffSides};
use pmc_analysis::analysis::recording_quality;
use pmc_analysis::profile::diff::Diff;
use pmc_analysis::profile::diff::groups::{GroupComparison, GroupRequest, compare_groups, problems};
use pmc_analysis::profile::gate::{UnusableReason, judge};
use pmc_command::gate;
use pmc_command::pager::PagedOutput;
use pmc_command::progress::Bars;
use pmc_formats::import;
use pmc_sys::error::{Error, Exit, Result, Warning, say};
use pmc_view::diff::DiffOutput;
use pmc_view::gate::CiFormat;

/// Runs the command.
///
/// # Errors
/// Fails if a recording cannot be read, the recordings have no event in common, or the output cannot be
/// written.
pub(super) fn run(request: &DiffRequest, output: &DiffOutput) -> Result<Exit> {
    let has_usual_base = request.files.first().is_some_and(|base| base == Path::new("perf.data.old"));
    let sides =
        DiffSides::load(request, |path| import::open(path), &Bars).map_err(|error| match has_usual_base {
            true => error.try_this("specify both recordings: pmc diff OLD NEW"),
            false => error,
        })?;
    let (damage, exit) = (sides.damage(), if sides.lose_samples() { Exit::Failure } else { Exit::Done });
    recording_quality::warn_of_names(sides.name_failures());
    let comparison = sides.compare(request)?;
    for what in damage.iter().cloned() {
        say::warn(Warning::new(what));
    }
    if output.layout.form.is_bare() {
        comparison.notes.iter().filter(|note| !damage.contains(note)).for_each(say::note);
    }
    let failed = |error| Error::output("the comparison", error);
    let Some(groups) = request.groups else {
        let mut out = PagedOutput::open();
        pmc_view::diff::write(&mut out, &comparison, &output.layout).map_err(failed)?;
        out.finish().map_err(failed)?;
        return Ok(exit);
    };
    let compared = compare_groups(&comparison, groups);
    let report = output.gate.as_ref().map(|condition| {
        let subjects = pmc_view::diff::groups::gate_subjects(&comparison, &compared);
        judge(condition, &subjects, problems(&comparison.files, groups.base))
    });
    let verdict = pmc_view::diff::groups::verdict(&comparison, &compared, report);
    let mut out = PagedOutput::open();
    match &verdict.gate {
        Some(report) if output.ci == Some(CiFormat::JUnit) => {
            pmc_view::gate::junit(&mut out, &verdict, report)
        }
        _ => pmc_view::diff::groups::write(&mut out, &comparison, &compared, &verdict, &output.layout),
    }
    .map_err(failed)?;
    gate::write_annotations(&mut out, &verdict, output.ci).and_then(|()| out.finish()).map_err(failed)?;
    gate::append_summary(&verdict, output.ci)?;
    Ok(verdict.gate.as_ref().map_or(exit, gate::exit_of))
}

/// Compares groups of recordings without printing the comparison. Also returns why the comparison is unusable
/// for a gate.
///
/// # Errors
/// Fails if a recording cannot be read, or the recordings have no event in common.
pub(super) fn compare(
    request: &DiffRequest,
    groups: GroupRequest,
) -> Result<(Diff, GroupComparison, Vec<UnusableReason>)> {
    let sides = DiffSides::load(request, |path| import::open(path), &Bars)?;
    recording_quality::warn_of_names(sides.name_failures());
    let comparison = sides.compare(request)?;
    let compared = compare_groups(&comparison, groups);
    let problems = problems(&comparison.files, groups.base);
    Ok((comparison, compared, problems))
}
