//! Atomic replacement of a file: a reader sees the old file or the new one, never a part.
//!
//! Receives the final path; provides a temporary name next to it for writing the file. The file is then
//! moved into place in one step (`rename(2)`), or removed with the [`Replacement`].

use std::collections::hash_map::RandomState;
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A file or link that is being created for its final path.
#[derive(Debug)]
pub struct Replacement {
    place: PathBuf,
    beside: PathBuf,
}

impl Replacement {
    /// Prepares a replacement for `place`, whose folder must exist. A link at `place` is itself replaced,
    /// not its target.
    pub fn new(place: &Path) -> Self {
        let mut beside = place.as_os_str().to_owned();
        // An unpredictable name, which another user cannot take first.
        beside.push(format!(".{:016x}.new", RandomState::new().build_hasher().finish()));
        Self { place: place.to_owned(), beside: beside.into() }
    }

    /// Returns the temporary path; no file exists there yet.
    pub fn path(&self) -> &Path {
        &self.beside
    }

    /// Creates the file, with the permission bits `mode`.
    ///
    /// # Errors
    /// The kernel's errors, including one for an existing file of that name.
    pub fn create(&self, mode: u32) -> io::Result<File> {
        File::options().write(true).create_new(true).mode(mode).open(&self.beside)
    }

    /// Moves the new file into place.
    ///
    /// # Errors
    /// The kernel's errors; any old file then stays in place.
    pub fn put(self) -> io::Result<()> {
        fs::rename(&self.beside, &self.place)
    }
}

impl Drop for Replacement {
    /// Removes a file that was not moved. Renaming also leaves it if both names are links to the same file.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.beside);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

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
        let new = Replacement::new(&place);
        new.create(0o600).and_then(|mut file| file.write_all(b"new")).expect("made");
        new.put().expect("put");
        assert_eq!(fs::read(&place).expect("read"), b"new");
        assert_eq!(fs::read_dir(folder.path()).expect("listed").count(), 1);
    }
}
