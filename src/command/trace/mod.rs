//! `pmc trace`: shows the system calls of a command, of running processes or in a recording.
//!
//! ```text
//! plan ─┬─► live: rings ─► stream ──► SyscallFeed ─┬─► TraceOutput: lines, then tables
//!       └─► recorded: a recording ─► SyscallFeed ──┘
//! ```
//! [`plan`] interprets the options, [`pmc_tools::trace`] pairs the events, and [`output`] passes
//! the calls to the view.

mod live;
mod output;
mod plan;
mod recorded;

pub(super) use self::plan::TraceCommandPlan;
use self::plan::TraceSource;
use pmc_sys::error::{Exit, Result};

/// Runs the command.
///
/// # Errors
/// Fails if an event cannot be opened, if the recording cannot be read, or if the output cannot be written.
pub(super) fn run(plan: &TraceCommandPlan) -> Result<Exit> {
    match &plan.source {
        TraceSource::Live(sample) => live::run(plan, sample),
        TraceSource::File(path) => recorded::run(plan, path),
    }
}
