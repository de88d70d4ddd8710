//! Replaces files atomically: readers see either the old file or the new one, never a partially written one.
//!
//! A file is written without a name (`O_TMPFILE`), so that nothing is left of it if pmc is killed. If its
//! final name is free, it gets that name. Otherwise it gets a temporary name next to the old file, and
//! replaces that file in one step (`rename(2)`). If pmc is killed between these two steps, the temporary name
//! is left, and the next replacement of the same file removes it ([`take_removed`]). Some file systems do not
//! support files without a name. There, the file has its temporary name from the start, and is removed when
//! the [`Replacement`] is dropped.

use std::cell::OnceCell;
use std::collections::hash_map::RandomState;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, CWD, MemfdFlags, linkat, memfd_create};
use rustix::process::geteuid;

use super::descriptor::path_of;
use super::lock::{self, LockKind};
use super::regular_file::open_regular;

/// A new file or link, to be moved to its final path.
#[derive(Debug)]
pub struct Replacement {
    place: PathBuf,
    beside: PathBuf,
    /// The file, if it was created without a name. Locked, so that other processes see that its temporary
    /// name is in use.
    nameless: OnceCell<File>,
}

/// The removed files that have not been reported yet.
static REMOVED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn removed() -> MutexGuard<'static, Vec<PathBuf>> {
    REMOVED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the temporary files of killed processes that this process has removed since the last call.
pub fn take_removed() -> Vec<PathBuf> {
    std::mem::take(&mut removed())
}

/// Number of random digits in a temporary name.
const DIGITS: usize = 16;
/// End of a temporary name.
const EXTENSION: &str = ".new";

impl Replacement {
    /// Prepares a replacement for `place`, whose folder must exist. If `place` is a link, the link itself is
    /// replaced, not its target.
    pub fn new(place: &Path) -> Self {
        let mut beside = place.as_os_str().to_owned();
        // The name is unpredictable, so that another user cannot take it first.
        beside.push(format!(".{:0DIGITS$x}{EXTENSION}", RandomState::new().build_hasher().finish()));
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
        let nameless = create_nameless(self.folder(), mode);
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
                Err(rustix::io::Errno::EXIST) => {}
                linked => return Ok(linked?),
            }
            // If locks do not work on this file system, files in use look like leftovers.
            if lock::take_for_description(file, LockKind::Write).is_ok() {
                self.remove_leftovers();
            }
            link(self.path())?;
        }
        fs::rename(&self.beside, &self.place)
    }

    fn folder(&self) -> &Path {
        let folder = self.place.parent().filter(|folder| !folder.as_os_str().is_empty());
        folder.unwrap_or(Path::new("."))
    }

    /// Removes the temporary names of this file that killed processes of this user have left.
    fn remove_leftovers(&self) {
        let Some(name) = self.place.file_name() else { return };
        for entry in fs::read_dir(self.folder()).into_iter().flatten().flatten() {
            let path = entry.path();
            if is_temporary(&entry.file_name(), name) && is_unused(&path) && fs::remove_file(&path).is_ok() {
                removed().push(path);
            }
        }
    }
}

/// Whether this is a temporary name of a file.
fn is_temporary(name: &OsStr, of: &OsStr) -> bool {
    let digits = name
        .as_bytes()
        .strip_prefix(of.as_bytes())
        .and_then(|rest| rest.strip_prefix(b".")?.strip_suffix(EXTENSION.as_bytes()));
    digits.is_some_and(|digits| digits.len() == DIGITS && digits.iter().all(u8::is_ascii_hexdigit))
}

/// Whether a file of this user has no lock.
fn is_unused(path: &Path) -> bool {
    let Ok(file) = open_regular(path, false) else { return false };
    file.metadata().is_ok_and(|about| about.uid() == geteuid().as_raw())
        && matches!(lock::conflicting_owner(&file, LockKind::Write), Ok(None))
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

    #[test]
    fn names_left_by_killed_processes_are_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str| folder.path().join(name);
        let kept = [
            "a.0123456789abcdef.new",
            "file.new",
            "file.0123456789abcdef.new.x",
            "file.x123456789abcdef.new",
        ];
        for name in ["file", "file.0123456789abcdef.new"].into_iter().chain(kept) {
            fs::write(file(name), "").expect("written");
        }
        let used = File::create(file("file.fedcba9876543210.new")).expect("made");
        lock::take_for_description(&used, LockKind::Write).expect("locked");
        let new = Replacement::new(&file("file"));
        let made = new.create(0o600).expect("made");
        new.put().expect("put");
        // Without support for files without a name, nothing is removed.
        let is_nameless = create_nameless(folder.path(), 0o600).is_ok();
        let left = file("file.0123456789abcdef.new");
        assert_eq!((left.exists(), take_removed().contains(&left)), (!is_nameless, is_nameless));
        assert!(kept.iter().all(|name| file(name).exists()) && file("file.fedcba9876543210.new").exists());
        drop(made);
    }
}
