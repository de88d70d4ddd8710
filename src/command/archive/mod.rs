//! `pmc archive`: writes a recording and its symbols into one file for other machines.

mod plan;
mod tar;

pub(super) use plan::ArchivePlan;

use pmc_analysis::analysis::archive::{self, ArchiveSizes};
use pmc_command::progress::Bars;
use pmc_formats::import;
use pmc_sys::error::{Exit, Result, say};
use pmc_text::text::clean;
use pmc_text::units::bytes;

/// What an anonymous archive still contains.
const LEFT: &[&str] = &[
    "names of functions, and of programs, libraries and source files without their folders; build-ids",
    "names of events, options of the recorder, ids of processes, threads, namespaces and cgroups",
    "times since boot, CPU model, number of CPUs, memory size, caches, kernel version, recorder version",
];

/// Runs the command.
///
/// # Errors
/// Fails if the recording cannot be read, or the archive cannot be written. With `--perf`, also fails if
/// there is no build-id cache, or tar fails.
pub(super) fn run(plan: &ArchivePlan) -> Result<Exit> {
    match plan {
        ArchivePlan::Portable { recording, request } => {
            let (ArchiveSizes { file, section }, exit) =
                archive::write(import::open(recording)?, request, &Bars)?;
            let name = request.output.to_string_lossy();
            let (file, section) = (bytes(file), bytes(section));
            let content = if request.anonymous { "symbols" } else { "symbols and code" };
            say::note(format!("{}: {file}, with {section} of {content}", clean(&name)));
            if request.anonymous {
                LEFT.iter().for_each(|left| say::note(format!("  left in the file: {left}")));
            }
            return Ok(exit);
        }
        ArchivePlan::Pack { recording, all, excluded, symbols } => {
            tar::pack(recording, *all, excluded, symbols, &tar::cache()?)?;
        }
        ArchivePlan::Unpack { archive } => tar::unpack(archive, &tar::cache()?)?,
    }
    Ok(Exit::Done)
}
