//! `pmc inject`: rewrites a recording.

mod plan;

pub(super) use plan::InjectPlan;

use pmc_analysis::analysis::inject;
use pmc_command::progress::Bars;
use pmc_formats::import;
use pmc_sys::error::{Error, Exit, Result};
use pmc_text::terminal::Stream;

/// Runs the command.
///
/// # Errors
/// Fails if the recording cannot be read or converted, or the new recording cannot be written.
pub(super) fn run(plan: &InjectPlan) -> Result<Exit> {
    if plan.request.output.as_os_str() == "-" && Stream::Output.is_terminal() {
        return Err(Error::usage("a recording is binary, and standard output is a terminal")
            .try_this("-o FILE, or a pipe: pmc inject … | pmc report"));
    }
    inject::inject(import::open(&plan.input)?, &plan.request, &Bars)
}
