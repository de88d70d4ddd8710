//! Keeps an existing recording as `NAME.old`.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::super::error::PerfdataError;
use super::super::magic::{MAGIC, is_magic};
use pmc_sys::sys::output_file::{self, ExistingFile};
use pmc_sys::sys::regular_file::open_regular;

/// Returns the files of one of this user's recordings in perf's directory form (`perf record --threads`):
/// `data` and `data.N`. Returns `None` for everything else. A directory with other files is not a recording,
/// and must not be moved or removed.
pub(super) fn recording_files(directory: &Path) -> Option<Vec<PathBuf>> {
    let meta = fs::symlink_metadata(directory).ok()?;
    if !meta.is_dir() || meta.uid() != rustix::process::geteuid().as_raw() {
        return None;
    }
    let mut magic = [0; MAGIC.len()];
    open_regular(&directory.join("data"), false).and_then(|mut data| data.read_exact(&mut magic)).ok()?;
    let is_number = |n: &str| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit());
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).ok()? {
        let entry = entry.ok()?;
        let name = entry.file_name();
        let name = name.to_str()?;
        let is_recorded = name == "data" || name.strip_prefix("data.").is_some_and(is_number);
        if !is_recorded || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            return None;
        }
        files.push(entry.path());
    }
    (magic == MAGIC).then_some(files)
}

/// Renames the existing recording to `NAME.old`, in place of an older recording.
///
/// # Errors
/// Fails if `NAME.old` is not a recording, or if the recording cannot be renamed.
pub(super) fn keep(recording: &Path) -> Result<(), PerfdataError> {
    let mut old = recording.as_os_str().to_owned();
    old.push(".old");
    let old = Path::new(&old);
    make_room(old, recording.is_dir()).map_err(PerfdataError::keep(old))?;
    fs::rename(recording, old).map_err(PerfdataError::keep(old))
}

/// Prepares `old` for a rename. A file can replace another file in one step. An old directory must be removed
/// first, and so must an old file if a directory is to replace it.
fn make_room(old: &Path, for_directory: bool) -> io::Result<()> {
    let there = output_file::resolve_links(old)?;
    match there.standing {
        // The path is a symbolic link, owned by the user, to another path.
        _ if there.path != old => Err(rustix::io::Errno::EXIST.into()),
        ExistingFile::Nothing => Ok(()),
        ExistingFile::File { .. } if is_other_file(old) => Err(rustix::io::Errno::EXIST.into()),
        ExistingFile::File { .. } | ExistingFile::Others(_) if for_directory => fs::remove_file(old),
        ExistingFile::File { .. } | ExistingFile::Others(_) => Ok(()),
        ExistingFile::Fifo | ExistingFile::Special => {
            for file in recording_files(old).ok_or(rustix::io::Errno::EXIST)? {
                fs::remove_file(file)?;
            }
            fs::remove_dir(old)
        }
    }
}

/// Whether the file contains something other than a recording. An unreadable file, such as root's recording,
/// does not count, because the directory's owner may replace it.
fn is_other_file(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = open_regular(path, false).and_then(|file| file.take(8).read_to_end(&mut start));
    read.is_ok() && !start.is_empty() && !is_magic(&start)
}
