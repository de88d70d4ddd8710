//! `pmc inject`: rewrites a recording.

use std::path::Path;

use pmc_analysis::analysis::inject::{self, InjectRequest};
use pmc_command::progress::Bars;
use pmc_formats::import;
use pmc_sys::error::{Error, Exit, Result};
use pmc_text::terminal::Stream;

/// Runs the command.
///
/// # Errors
/// Fails if the recording cannot be read or converted, or the new recording cannot be written.
pub(super) fn run(input: &Path, request: &InjectRequest) -> Result<Exit> {
    if request.output.as_os_str() == "-" && Stream::Output.is_terminal() {
        return Err(Error::usage("a recording is binary, and standard output is a terminal")
            .try_options("-o FILE, or a pipe: pmc inject … | pmc report"));
    }
    inject::inject(import::open(input)?, request, &Bars)
}
