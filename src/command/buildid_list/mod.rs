//! `pmc buildid-list`: lists the build IDs of a recording's files.
//!
//! Connects the reader of recordings and the view.

mod plan;

use std::path::Path;

pub(super) use plan::BuildidListPlan;

use pmc_analysis::analysis::{header, recording_quality};
use pmc_command::pager::PagedOutput;
use pmc_formats::import;
use pmc_symbols::symbol::{Image, RunningKernel, elf};
use pmc_sys::error::{Error, Exit, Result};
use pmc_text::text::hex;

/// Runs the command.
///
/// # Errors
/// Fails if a file cannot be read or has no build ID, or a write fails.
pub(super) fn run(plan: &BuildidListPlan) -> Result<Exit> {
    let mut out = PagedOutput::open();
    let rows = match plan {
        BuildidListPlan::KernelMaps => {
            let maps = RunningKernel::live().maps().map_err(|error| {
                Error::new(format!("looking up the kernel: {error}"))
                    .try_this("run as root; -k needs no address")
            })?;
            return written(pmc_view::listings::kernel_maps(&mut out, &maps).and_then(|()| out.finish()));
        }
        BuildidListPlan::Kernel => {
            let id = RunningKernel::live().build_id().ok_or_else(|| {
                Error::new("the running kernel's build-id is not available")
                    .why("/sys/kernel/notes is unreadable or has no build-id")
            })?;
            vec![(hex(id.bytes(), ""), String::new())]
        }
        BuildidListPlan::File { path, with_hits } => match of_program(path) {
            Some(id) => vec![(id?, String::new())],
            None => {
                let reader = import::open_recording(path, "build-ids")?;
                let rows = header::build_ids(&reader, *with_hits)?;
                written(pmc_view::header::build_ids(&mut out, &rows).and_then(|()| out.finish()))?;
                return recording_quality::warn_of_header(&reader);
            }
        },
    };
    written(pmc_view::header::build_ids(&mut out, &rows).and_then(|()| out.finish()))
}

fn written(result: std::io::Result<()>) -> Result<Exit> {
    result.map(|()| Exit::Done).map_err(|error| Error::output("the list of build-ids", error))
}

/// Returns the build ID of an ELF file; `None` if the file is not ELF.
fn of_program(path: &Path) -> Option<Result<String>> {
    let image = Image::open(path).ok()?;
    let file = image.elf().ok()?;
    let id = elf::build_id(&file).map(|id| hex(id.bytes(), ""));
    Some(id.ok_or_else(|| {
        Error::new(format!("{} has no build-id", path.display()))
            .why("the file was linked without --build-id")
    }))
}
