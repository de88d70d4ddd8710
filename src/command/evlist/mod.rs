//! `pmc evlist`: prints the events in a recording's header.
//!
//! Connects the reader, the header and the view.

mod plan;

pub(super) use plan::EvlistPlan;

use pmc_analysis::analysis::{header, recording_quality};
use pmc_command::pager::PagedOutput;
use pmc_formats::import;
use pmc_sys::error::{Error, Exit, Result};

/// Runs the command.
///
/// # Errors
/// Fails if the file cannot be read, or a write fails.
pub(super) fn run(plan: &EvlistPlan) -> Result<Exit> {
    let reader = import::open(&plan.file)?;
    let recording = header::of(&reader);
    let mut out = PagedOutput::open();
    pmc_view::header::events(&mut out, &recording, plan.form)
        .and_then(|()| out.finish())
        .map_err(|error| Error::output("the list of events", error))?;
    recording_quality::warn_of_header(&reader)
}
