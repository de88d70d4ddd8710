//! Writes a document to standard output, or to a file. An existing file is replaced only when the document is
//! complete.

use std::fs;
use std::io::{self, BufWriter, Write, stdout};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use pmc_sys::error::{AdvisedOption, Error, Result};
use pmc_sys::sys::output_file::{self, ExistingFile};
use pmc_sys::sys::regular_file::HeldFolder;
use pmc_sys::sys::replacement::Replacement;
use pmc_sys::sys::standard_output;

/// An output path from the command line.
#[derive(Debug)]
pub struct Destination<'a> {
    /// The path; `-` is standard output.
    pub path: &'a Path,
    /// The option that set the path.
    pub option: AdvisedOption,
    /// Whether to refuse to overwrite an existing file, because `-f` was not given.
    pub keeps: bool,
}

impl Destination<'_> {
    /// Calls `write` with the output. Pipes, terminals and other special files are written directly.
    ///
    /// # Errors
    /// Fails if `write` fails or the file cannot be written. In both cases, an existing file is left
    /// unchanged.
    pub fn write(&self, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
        match is_standard(self.path) {
            true => all(stdout().lock(), write, |error| Error::output(standard_output::name(), error)),
            false => self.write_file(self.path, write),
        }
    }

    /// Does the same for a file in a folder, which contains the last part of the path.
    ///
    /// # Errors
    /// As for [`Self::write`].
    pub fn write_in(
        &self,
        folder: &HeldFolder,
        write: impl FnOnce(&mut dyn Write) -> Result<()>,
    ) -> Result<()> {
        self.write_file(&folder.path().join(self.path.file_name().unwrap_or_default()), write)
    }

    fn write_file(&self, at: &Path, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
        let Self { path, option, keeps } = *self;
        let refused = |error| Error::create(option, path, error);
        let failed = |error| Error::output(path.display(), error);
        if keeps && at.symlink_metadata().is_ok() {
            let error = refused(io::Error::from(rustix::io::Errno::EXIST));
            return Err(error.try_options("-f overwrites it"));
        }
        // Follow symbolic links that the user owns, and replace the target instead of the link.
        let place = output_file::resolve_links(at).map_err(refused)?;
        if matches!(place.standing, ExistingFile::Fifo | ExistingFile::Special) {
            return all(output_file::create(at, 0o600, false).map_err(refused)?, write, failed);
        }
        // A file that the user has closed to others stays closed. The umask sets all other bits anew.
        let mode = match place.standing {
            ExistingFile::File { is_ours: true, .. } => {
                fs::symlink_metadata(&place.path).map_or(0o600, |former| former.permissions().mode() & 0o666)
            }
            _ => 0o666,
        };
        let new = Replacement::new(&place.path);
        all(new.create(mode).map_err(refused)?, write, failed)?;
        new.put().map_err(failed)
    }

    /// Whether the path is a regular file, or does not exist yet.
    pub fn is_file(&self) -> bool {
        !is_standard(self.path) && fs::metadata(self.path).map_or(true, |meta| meta.is_file())
    }

    /// Checks that the output does not overwrite the input.
    ///
    /// # Errors
    /// Fails if the output is the file `input`.
    pub fn check_is_not(&self, input: &Path) -> Result<()> {
        let same =
            self.path.canonicalize().ok().is_some_and(|own| input.canonicalize().is_ok_and(|it| own == it));
        if is_standard(self.path) || !same || !self.is_file() {
            return Ok(());
        }
        Err(Error::usage(format!("the output {} is the recording itself", self.path.display()))
            .try_option(self.option, "use another name for {option}"))
    }
}

/// Whether the path is `-`, standard input or output.
pub fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn all(
    out: impl Write,
    write: impl FnOnce(&mut dyn Write) -> Result<()>,
    failed: impl FnOnce(io::Error) -> Error,
) -> Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, out);
    write(&mut out)?;
    out.flush().map_err(failed)
}
