//! The source files of a module, from this machine, a debuginfod server or an archive.
//!
//! Takes a path from debug information; returns the lines. [`source_text`] reads files and decides which of
//! them pmc may show.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::debuginfod::Artifact;
use super::files::elf;
use super::files::image::Image;
use super::files::source_text::{self, SourceFolders, SourceLines};
use super::missing_data::MissingDataReason;
use super::module::ModuleId;
use super::symbolizer::Symbolizer;
use pmc_sys::sys::regular_file::path_in_process;

/// The text of a source file of a module.
#[derive(Debug, Clone, Default)]
pub struct ModuleSource {
    /// The lines.
    pub lines: SourceLines,
    /// Whether the file was modified after the program was built, so that line numbers may not match.
    pub is_newer: bool,
}

impl Symbolizer {
    /// Reads a source file of a module.
    ///
    /// # Errors
    /// Returns the reason why the file is missing.
    pub fn source(
        &self,
        id: ModuleId,
        path: &str,
        folders: &SourceFolders,
    ) -> Result<ModuleSource, MissingDataReason> {
        if let Some(archived) = self.sources(id).archived() {
            return archived.source(path).map(|(lines, is_newer)| ModuleSource { lines, is_newer });
        }
        let program = self.binary(id).and_then(|image| std::fs::metadata(&image.path).ok());
        let owner = program.as_ref().map(MetadataExt::uid);
        let text = source_text::read(path, folders, owner, || self.fetch_source(id, path))?;
        let program = program.and_then(|meta| meta.modified().ok());
        let is_newer = text.modified.zip(program).is_some_and(|(source, program)| source > program);
        Ok(ModuleSource { lines: text.lines, is_newer })
    }

    /// Whether this is the path of a module's own file, as opposed to other sources of code.
    pub fn is_own_file(&self, id: ModuleId, path: &Path) -> bool {
        let sources = self.sources(id);
        let is_image = |image: &Image| image.path == path;
        sources
            .archived()
            .map_or_else(|| sources.binary().is_some_and(is_image), |archived| archived.is_image(path))
    }

    /// Returns the path of a file with code of a module as the recorded process saw it, not one below
    /// `/proc`.
    pub fn path_in_process(&self, id: ModuleId, path: &Path) -> PathBuf {
        let quality = self.quality(id);
        match quality.found().binary.as_ref().filter(|_| self.is_own_file(id, path)) {
            Some(binary) => binary.clone(),
            None => path_in_process(path).into_owned(),
        }
    }

    /// Downloads one of the module's source files from a debuginfod server, and returns the local path.
    fn fetch_source(&self, id: ModuleId, path: &str) -> Option<PathBuf> {
        let servers = self.options().debuginfod.as_ref()?;
        let of_file = |image: &Image| elf::build_id(&image.elf().ok()?);
        let build_id = self.binary(id).or(self.debug(id)).and_then(of_file);
        servers.fetch(Artifact::Source(path), build_id.or(self.module(id).build_id)?)
    }
}
