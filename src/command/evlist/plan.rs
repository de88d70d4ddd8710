//! Options of `pmc evlist`, as a plan.

use std::path::PathBuf;

use crate::cli::evlist::Evlist;
use crate::command::plan::input;
use crate::view::header::EventDetail;

/// Settings of `pmc evlist`.
pub(in crate::command) struct Plan {
    pub(super) file: PathBuf,
    pub(super) form: EventDetail,
}

impl Plan {
    /// Converts the parsed options.
    pub(in crate::command) fn new(typed: &Evlist) -> Self {
        Self {
            file: input(typed.file.as_ref().or(typed.input.as_ref())),
            form: match typed {
                Evlist { verbose: true, .. } => EventDetail::Attrs,
                Evlist { freq: true, .. } => EventDetail::Rate,
                Evlist { group: true, .. } => EventDetail::Groups,
                Evlist { trace_fields: true, .. } => EventDetail::TraceFields,
                _ => EventDetail::Names,
            },
        }
    }
}
