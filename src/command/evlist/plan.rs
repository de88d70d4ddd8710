//! Converts the parsed options of `pmc evlist` into a plan.

use std::path::PathBuf;

use crate::cli::evlist::EvlistArgs;
use pmc_command::input::input;
use pmc_view::header::EventDetail;

/// Settings of `pmc evlist`.
pub(in crate::command) struct EvlistPlan {
    pub(super) file: PathBuf,
    pub(super) form: EventDetail,
}

impl EvlistPlan {
    /// Converts the parsed options.
    pub(in crate::command) fn new(typed: &EvlistArgs) -> Self {
        Self {
            file: input(typed.file.as_ref().or(typed.input.as_ref())),
            form: match typed {
                EvlistArgs { verbose: true, .. } => EventDetail::Attrs,
                EvlistArgs { freq: true, .. } => EventDetail::Rate,
                EvlistArgs { group: true, .. } => EventDetail::Groups,
                EvlistArgs { trace_fields: true, .. } => EventDetail::TraceFields,
                _ => EventDetail::Names,
            },
        }
    }
}
