//! A file's bytes as memory, read-only.
//!
//! Only regular files are opened, and without waiting: a path out of a recording may lead to a FIFO or a
//! device that would block for ever.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Deref;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use memmap2::Mmap;

/// The bytes of a regular file. Empty files are empty slices.
#[derive(Debug, Default)]
pub struct FileMap(Option<Mmap>);

/// Opens a regular file for reading; never blocks, never becomes anybody's terminal.
///
/// # Errors
/// What `open(2)` says; `EINVAL` when it is not a regular file.
pub fn open_regular(path: &Path, follow_links: bool) -> io::Result<File> {
    let mut flags = libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC;
    if !follow_links {
        flags |= libc::O_NOFOLLOW;
    }
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::from_raw_os_error(libc::EINVAL)) }
}

impl FileMap {
    /// Maps the regular file at `path`.
    ///
    /// # Errors
    /// As [`open_regular`], and what `mmap(2)` says.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::of(&open_regular(path, true)?)
    }

    /// Maps an open file.
    ///
    /// # Errors
    /// What `mmap(2)` says.
    pub fn of(file: &File) -> io::Result<Self> {
        if file.metadata()?.len() == 0 {
            return Ok(Self(None));
        }
        // SAFETY: a private read-only mapping. Another process may change the file below us: every parser of
        // these bytes checks each value when it uses it and holds no reference whose validity rests on the
        // content (no `str` made without checking, no enum). Truncation ends in SIGBUS, as for every program
        // that is mapped.
        Ok(Self(Some(unsafe { Mmap::map(file)? })))
    }
}

impl FileMap {
    /// Gives the pages back to the kernel, which reads them again when they are looked at.
    pub fn release(&self) {
        if let Some(map) = &self.0 {
            let start = map.as_ptr().cast_mut().cast();
            // SAFETY: the mapping is ours, whole and read-only; pages of a file that were never written to
            // come back with the file's bytes, so references into it stay valid.
            let _ = unsafe { rustix::mm::madvise(start, map.len(), rustix::mm::Advice::LinuxDontNeed) };
        }
    }
}

impl Deref for FileMap {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}
