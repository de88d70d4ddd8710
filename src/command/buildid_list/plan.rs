//! What was typed for `pmc buildid-list`, and what it means.

use std::path::PathBuf;

use crate::cli::buildid_list::BuildidList;
use crate::command::plan::input;

/// Whose build-ids are listed.
pub(in crate::command) enum Plan {
    /// The running kernel's.
    Kernel,
    /// Those of the running kernel and its modules, with their places.
    KernelMaps,
    /// Those of a recording's files, or that of a program.
    File {
        path: PathBuf,
        /// Only of files that samples lie in.
        with_hits: bool,
    },
}

impl Plan {
    /// What was typed, as what it means.
    pub(in crate::command) fn new(typed: &BuildidList) -> Self {
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
