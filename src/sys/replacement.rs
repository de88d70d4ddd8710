//! A file that takes its place whole: a reader sees the old one or the new one, never a part.
//!
//! Receives the place; hands on a name beside it, under which the file is made. It is moved in one step
//! (`rename(2)`), or goes away with the [`Replacement`].

use std::collections::hash_map::RandomState;
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A file, or link, that is being made for a place.
#[derive(Debug)]
pub struct Replacement {
    place: PathBuf,
    beside: PathBuf,
}

impl Replacement {
    /// For a place in a folder that is there. A link that stands there is replaced, not what it leads to.
    pub fn new(place: &Path) -> Self {
        let mut beside = place.as_os_str().to_owned();
        // A name that nobody can foresee and take.
        beside.push(format!(".{:016x}.new", RandomState::new().build_hasher().finish()));
        Self { place: place.to_owned(), beside: beside.into() }
    }

    /// Where it is made; nothing is there yet.
    pub fn path(&self) -> &Path {
        &self.beside
    }

    /// Makes the file, with the permission bits `mode`.
    ///
    /// # Errors
    /// What the kernel says; also where something of the name is there.
    pub fn create(&self, mode: u32) -> io::Result<File> {
        File::options().write(true).create_new(true).mode(mode).open(&self.beside)
    }

    /// Puts what was made into its place.
    ///
    /// # Errors
    /// What the kernel says; what stood there still does.
    pub fn put(self) -> io::Result<()> {
        fs::rename(&self.beside, &self.place)
    }
}

impl Drop for Replacement {
    /// What was not put, or was another link to the same file, which a renaming leaves as it is.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.beside);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_file_is_replaced_whole_or_not_at_all() {
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
