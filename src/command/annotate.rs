//! `pmc annotate`: opens a recording, lists the code of the sampled functions, and passes the listings to a
//! view.

use std::path::Path;
use std::sync::Arc;

use pmc_analysis::analysis::annotate::AnnotationRequest;
use pmc_analysis::analysis::request::CostMeasure;
use pmc_analysis::analysis::{Analysis, AnalysisRequest, recording_quality};
use pmc_analysis::session::Session;
use pmc_command::input::input;
use pmc_command::pager::PagedOutput;
use pmc_command::progress::Bars;
use pmc_command::recording_screen::{self, ScreenPlan};
use pmc_command::screen;
use pmc_formats::import;
use pmc_sys::error::{Error, Exit, Result};
use pmc_view::annotate::{AnnotateFacts, AnnotateRequest};

/// Runs the command.
///
/// # Errors
/// Fails if the recording cannot be read, if no function with the given name has samples, or if the output
/// cannot be written.
pub(super) fn run(request: AnnotateRequest) -> Result<Exit> {
    let input = input(request.input.as_ref());
    let reader = import::open(&input)?;
    if request.browses && screen::is_there() {
        return recording_screen::run(screen_of(request, &input), reader);
    }
    let session = Arc::new(Session::open(reader)?);
    let mut analysis = Analysis::load(session.clone(), &request.samples, &Bars)?;
    let code = analysis.annotate(&request.code, &Bars)?;
    let facts = AnnotateFacts {
        samples: analysis.sample_count(),
        lost: recording_quality::lost(&session),
        is_damaged: recording_quality::is_damaged(&session),
        functions: code.functions,
        left_out: code.left_out,
        notes: recording_quality::notes(&session),
    };
    let mut out = PagedOutput::open();
    pmc_view::annotate::write(&mut out, &code.listings, &facts, &request.layout)
        .and_then(|()| out.finish())
        .map_err(|error| Error::output("the listing", error))?;
    recording_quality::warn_of_names(analysis.name_failures());
    Ok(recording_quality::warn_of_damage(&session))
}

/// Returns the request for the full-screen interface of `pmc report`, which then starts with the function's
/// code.
fn screen_of(request: AnnotateRequest, input: &Path) -> ScreenPlan {
    let samples = AnalysisRequest {
        usual_keys: true,
        measure: CostMeasure::BranchesIfRecorded,
        callers: true,
        ..request.samples
    };
    let opening = AnnotationRequest { most: 1, ..request.code };
    ScreenPlan { opening: Some(opening), background: request.background, ..ScreenPlan::new(input, samples) }
}
