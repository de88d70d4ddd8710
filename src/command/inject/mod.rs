//! `pmc inject`: has a recording written anew.

mod plan;

pub(super) use plan::Plan;

use super::progress::Bars;
use crate::analysis::inject;
use crate::error::{Error, Exit, Result};
use crate::perfdata::Reader;
use crate::terminal::Stream;

/// Runs it.
///
/// # Errors
/// When the recording cannot be read or carried over, or the new one not be written.
pub(super) fn run(plan: &Plan) -> Result<Exit> {
    if plan.request.output.as_os_str() == "-" && Stream::Output.is_terminal() {
        return Err(Error::usage("a recording is binary, and standard output is a terminal")
            .try_this("-o FILE, or a pipe: pmc inject … | pmc report"));
    }
    inject::inject(Reader::open(&plan.input)?, &plan.request, &Bars)
}
