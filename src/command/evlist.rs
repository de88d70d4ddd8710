//! `pmc evlist`: prints the events in a recording's header.
//!
//! Connects the reader, the header and the view.

use std::path::PathBuf;

use crate::cli::evlist::EvlistArgs;
use pmc_analysis::analysis::{header, recording_quality};
use pmc_command::pager::PagedOutput;
use pmc_formats::import;
use pmc_sys::error::{Error, Exit, Result};
use pmc_view::header::EventDetail;

/// Which events to list, and how.
pub(super) struct EvlistRequest {
    file: PathBuf,
    form: EventDetail,
}

impl EvlistArgs {
    pub(super) fn request(&self) -> EvlistRequest {
        EvlistRequest {
            file: self.recording.path(),
            form: match self {
                Self { verbose: true, .. } => EventDetail::Attrs,
                Self { freq: true, .. } => EventDetail::Rate,
                Self { group: true, .. } => EventDetail::Groups,
                Self { trace_fields: true, .. } => EventDetail::TraceFields,
                _ => EventDetail::Names,
            },
        }
    }
}

/// Runs the command.
///
/// # Errors
/// Fails if the file cannot be read, or a write fails.
pub(super) fn run(request: &EvlistRequest) -> Result<Exit> {
    let reader = import::open(&request.file)?;
    let recording = header::read(&reader);
    let mut out = PagedOutput::open();
    pmc_view::header::events(&mut out, &recording, request.form)
        .and_then(|()| out.finish())
        .map_err(|error| Error::output("the list of events", error))?;
    recording_quality::warn_of_header(&reader)
}
