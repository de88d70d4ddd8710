//! `pmc buildid-list`: lists the build IDs of a recording's files.
//!
//! Connects the reader of recordings and the view.

use std::path::{Path, PathBuf};

use crate::cli::buildid_list::BuildidListArgs;
use pmc_analysis::analysis::{header, recording_quality};
use pmc_command::pager::PagedOutput;
use pmc_formats::import;
use pmc_symbols::symbol::{Image, RunningKernel, elf};
use pmc_sys::error::{Error, Exit, Result};
use pmc_text::text::hex;

/// The source of the build IDs.
pub(super) enum BuildidListRequest {
    /// The running kernel.
    Kernel,
    /// The running kernel and its modules, with their addresses.
    KernelMaps,
    /// The files of a recording, or a single program or library.
    File {
        path: PathBuf,
        /// Whether to list only files with samples.
        with_hits: bool,
    },
}

impl BuildidListArgs {
    pub(super) fn request(&self) -> BuildidListRequest {
        if self.kernel {
            return BuildidListRequest::Kernel;
        }
        if self.kernel_maps {
            return BuildidListRequest::KernelMaps;
        }
        BuildidListRequest::File { path: self.recording.path(), with_hits: self.with_hits }
    }
}

/// Runs the command.
///
/// # Errors
/// Fails if a file cannot be read or has no build ID, or a write fails.
pub(super) fn run(request: &BuildidListRequest) -> Result<Exit> {
    let mut out = PagedOutput::open();
    let rows = match request {
        BuildidListRequest::KernelMaps => {
            let maps = RunningKernel::live().maps().map_err(|error| {
                Error::new(format!("looking up the kernel: {error}"))
                    .try_options("run as root; -k needs no address")
            })?;
            return written(pmc_view::listings::kernel_maps(&mut out, &maps).and_then(|()| out.finish()));
        }
        BuildidListRequest::Kernel => {
            let id = RunningKernel::live().build_id().ok_or_else(|| {
                Error::new("the running kernel's build-id is not available")
                    .why("/sys/kernel/notes is unreadable or has no build-id")
            })?;
            vec![(hex(id.bytes(), ""), String::new())]
        }
        BuildidListRequest::File { path, with_hits } => match of_program(path) {
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
