//! `pmc archive`: writes a recording and its symbols into one file for other machines.

mod plan;
mod tar;

pub(super) use plan::ArchivePlan;

use super::progress::Bars;
use pmc_analysis::analysis::archive::{self, ArchiveSizes};
use pmc_perfdata::perfdata::Reader;
use pmc_sys::error::{Exit, Result, say};
use pmc_sys::text::clean;
use pmc_sys::units::bytes;

/// Runs the command.
///
/// # Errors
/// Fails if the recording cannot be read, or the archive cannot be written. With `--perf`, also fails if
/// there is no build-id cache, or tar fails.
pub(super) fn run(plan: &ArchivePlan) -> Result<Exit> {
    match plan {
        ArchivePlan::Portable { recording, request } => {
            let (ArchiveSizes { file, section }, exit) =
                archive::write(Reader::open(recording)?, request, &Bars)?;
            let name = request.output.to_string_lossy();
            let (file, section) = (bytes(file), bytes(section));
            say::note(format!("{}: {file}, with {section} of symbols and code", clean(&name)));
            return Ok(exit);
        }
        ArchivePlan::Pack { recording, all, excluded, symbols } => {
            tar::pack(recording, *all, excluded, symbols, &tar::cache()?)?;
        }
        ArchivePlan::Unpack { archive } => tar::unpack(archive, &tar::cache()?)?,
    }
    Ok(Exit::Done)
}
