//! Replaces files atomically: readers see either the old file or the new one, never a partially written one.
//!
//! A file is written without a name (`O_TMPFILE`), so that nothing is left of it if pmc is killed. If its
//! final name is free, it gets that name. Otherwise it gets a temporary name next to the old file, and
//! replaces that file in one step (`rename(2)`). Some file systems do not support files without a name.
//! There, the file has its temporary name from the start, and is removed when the [`Replacement`] is dropped.

use std::cell::OnceCell;
use std::collections::hash_map::RandomState;
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, MemfdFlags, linkat, memfd_create};

use super::descriptor::path_of;

/// A new file or link, to be moved to its final path.
#[derive(Debug)]
pub struct Replacement {
    place: PathBuf,
    beside: PathBuf,
    /// The file, as long as it has no name.
    nameless: OnceCell<File>,
}

impl Replacement {
    /// Prepares a replacement for `place`, whose folder must exist. If `place` is a link, the link itself is
    /// replaced, not its target.
    pub fn new(place: &Path) -> Self {
        let mut beside = place.as_os_str().to_owned();
        // The name is unpredictable, so that another user cannot take it first.
        beside.push(format!(".{:016x}.new", RandomState::new().build_hasher().finish()));
        Self { place: place.to_owned(), beside: beside.into(), nameless: OnceCell::new() }
    }

    /// Returns the temporary path, for a link or a file that the caller creates there.
    pub fn path(&self) -> &Path {
        &self.beside
    }

    /// Creates the file, with the permission bits `mode`.
    ///
    /// # Errors
    /// Returns the kernel's errors, including one for an existing file of that name.
    pub fn create(&self, mode: u32) -> io::Result<File> {
        let folder = self.place.parent().filter(|folder| !folder.as_os_str().is_empty());
        let nameless = create_nameless(folder.unwrap_or(Path::new(".")), mode);
        // A file without a name gets one by way of /proc.
        if let Some(file) = nameless.ok().filter(|file| path_of(file).exists())
            && let Ok(again) = file.try_clone()
        {
            let _ = self.nameless.set(again);
            return Ok(file);
        }
        File::options().write(true).create_new(true).mode(mode).open(&self.beside)
    }

    /// Moves the new file into place.
    ///
    /// # Errors
    /// Returns the kernel's errors. In this case, the old file stays in place.
    pub fn put(self) -> io::Result<()> {
        if let Some(file) = self.nameless.get() {
            let link = |to: &Path| linkat(CWD, path_of(file), CWD, to, AtFlags::SYMLINK_FOLLOW);
            match link(&self.place) {
                Err(rustix::io::Errno::EXIST) => link(self.path())?,
                linked => return Ok(linked?),
            }
        }
        fs::rename(&self.beside, &self.place)
    }
}

/// Creates a file without a name in a folder, for reading and writing. The kernel frees it when it is closed.
///
/// # Errors
/// Returns the kernel's errors; `EOPNOTSUPP` if the file system does not support files without a name.
fn create_nameless(folder: &Path, mode: u32) -> io::Result<File> {
    File::options().read(true).write(true).mode(mode).custom_flags(libc::O_TMPFILE).open(folder)
}

/// Creates a file without a name in the folder for temporary files, or in memory if that folder does not
/// support it.
///
/// # Errors
/// Returns the kernel's error.
pub fn create_temporary() -> io::Result<File> {
    let in_memory = |_| Ok(memfd_create("perf.data", MemfdFlags::CLOEXEC)?.into());
    create_nameless(&std::env::temp_dir(), 0o600).or_else(in_memory)
}

impl Drop for Replacement {
    /// Removes the temporary file if it was not moved. A rename also leaves it in place if both names are
    /// links to the same file.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.beside);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn file_is_replaced_completely_or_not_at_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("file");
        fs::write(&place, "old").expect("written");
        let new = Replacement::new(&place);
        new.create(0o600).and_then(|mut file| file.write_all(b"half")).expect("made");
        drop(new);
        assert_eq!(fs::read(&place).expect("read"), b"old");
        assert_eq!(fs::read_dir(folder.path()).expect("listed").count(), 1);
        let new = Replacement::new(&place);
        new.create(0o600).and_then(|mut file| file.write_all(b"new")).expect("made");
        new.put().expect("put");
        assert_eq!(fs::read(&place).expect("read"), b"new");
        assert_eq!(fs::metadata(&place).expect("a file").permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).expect("listed").count(), 1);
    }
}
