//! Options of `pmc evlist`, as a plan.

use std::path::PathBuf;

use crate::cli::evlist::Evlist;
use crate::command::plan::input;
use crate::view::header::EventForm;

/// Settings of `pmc evlist`.
pub(in crate::command) struct Plan {
    pub(super) file: PathBuf,
    pub(super) form: EventForm,
}

impl Plan {
    /// Converts the parsed options.
    pub(in crate::command) fn new(typed: &Evlist) -> Self {
        Self {
            file: input(typed.file.as_ref().or(typed.input.as_ref())),
            form: match typed {
                Evlist { verbose: true, .. } => EventForm::Attrs,
                Evlist { freq: true, .. } => EventForm::Rate,
                Evlist { group: true, .. } => EventForm::Groups,
                Evlist { trace_fields: true, .. } => EventForm::TraceFields,
                _ => EventForm::Names,
            },
        }
    }
}
