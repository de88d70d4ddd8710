//! Converts the parsed options of `pmc buildid-list` into a plan.

use std::path::PathBuf;

use crate::cli::buildid_list::BuildidListArgs;
use pmc_command::input::input;

/// The source of the build IDs.
pub(in crate::command) enum BuildidListPlan {
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

impl BuildidListPlan {
    /// Converts the parsed options.
    pub(in crate::command) fn new(typed: &BuildidListArgs) -> Self {
        if typed.kernel {
            return Self::Kernel;
        }
        if typed.kernel_maps {
            return Self::KernelMaps;
        }
        let path = input(typed.file.as_ref().or(typed.input.as_ref()));
        Self::File { path, with_hits: typed.with_hits }
    }
}
