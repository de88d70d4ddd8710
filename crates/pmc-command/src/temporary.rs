//! A temporary recording, for commands that record and then show the result. Its file has no name, so the
//! kernel deletes it even if pmc is killed.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use pmc_sys::sys::descriptor;
use pmc_sys::sys::replacement::create_temporary;

/// A file without a name in the folder for temporary files, or in memory.
#[derive(Debug)]
pub struct TemporaryRecording(File);

impl TemporaryRecording {
    /// Creates the file.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub fn new() -> io::Result<Self> {
        create_temporary().map(Self)
    }

    /// Returns a path to the file, which is valid in this process.
    pub fn path(&self) -> PathBuf {
        descriptor::path_of(&self.0)
    }
}
