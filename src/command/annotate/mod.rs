//! `pmc annotate`: opens a recording, lists the code of the sampled functions, and passes the listings to a
//! view.

mod plan;

use std::sync::Arc;

pub(super) use plan::AnnotatePlan;
use pmc_analysis::analysis::{Analysis, recording_quality};
use pmc_analysis::session::Session;
use pmc_command::pager::PagedOutput;
use pmc_command::progress::Bars;
use pmc_command::{recording_screen, screen};
use pmc_formats::import;
use pmc_sys::error::{Error, Exit, Result};
use pmc_view::annotate::AnnotateFacts;

/// Runs the command.
///
/// # Errors
/// Fails if the recording cannot be read, if no function with the given name has samples, or if the output
/// cannot be written.
pub(super) fn run(plan: AnnotatePlan) -> Result<Exit> {
    let reader = import::open(&plan.input)?;
    if plan.browses && screen::is_there() {
        return recording_screen::run(plan.screen(), reader);
    }
    let session = Arc::new(Session::open(reader)?);
    let mut analysis = Analysis::load(session.clone(), &plan.request, &Bars)?;
    let code = analysis.annotate(&plan.code, &Bars)?;
    let facts = AnnotateFacts {
        samples: analysis.sample_count(),
        lost: recording_quality::lost(&session),
        is_damaged: recording_quality::is_damaged(&session),
        functions: code.functions,
        left_out: code.left_out,
        notes: recording_quality::notes(&session),
    };
    let mut out = PagedOutput::open();
    pmc_view::annotate::write(&mut out, &code.listings, &facts, &plan.layout)
        .and_then(|()| out.finish())
        .map_err(|error| Error::output("the listing", error))?;
    recording_quality::warn_of_names(analysis.name_failures());
    Ok(recording_quality::warn_of_damage(&session))
}
