//! Files that have been deleted or replaced, but that a process still maps or runs.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::regular_file::open_regular;

/// Returns the path that a file had before it was deleted, given its name in a mapping; `None` if it has not
/// been deleted.
pub fn path_before(name: &Path) -> Option<&Path> {
    name.as_os_str().as_bytes().strip_suffix(b" (deleted)").map(|path| Path::new(OsStr::from_bytes(path)))
}

/// Opens a file that a process maps, or whose program it runs, although the file has been deleted or
/// replaced. `path` is the file's former path, with or without the kernel's ` (deleted)`. Opening the file of
/// a mapping requires root's privileges (`CAP_CHECKPOINT_RESTORE`); opening the program does not.
pub fn open(path: &Path, pid: i32) -> Option<File> {
    let path = path_before(path).unwrap_or(path);
    let is_it = |place: &PathBuf| fs::read_link(place).is_ok_and(|target| path_before(&target) == Some(path));
    let exe = PathBuf::from(format!("/proc/{pid}/exe"));
    let places = std::iter::once(exe).chain(mapped(pid));
    places.filter(is_it).find_map(|place| open_regular(&place, true).ok())
}

/// Returns the former paths of all such files of a process.
pub fn paths(pid: i32) -> HashSet<PathBuf> {
    let target = |place: PathBuf| Some(path_before(&fs::read_link(place).ok()?)?.to_owned());
    mapped(pid).filter_map(target).collect()
}

/// Returns the links to the files of all mappings of a process.
fn mapped(pid: i32) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(format!("/proc/{pid}/map_files")).into_iter().flatten().flatten().map(|link| link.path())
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn program_stays_readable_after_its_deletion() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("cat");
        fs::copy("/bin/cat", &program).unwrap();
        let mut running = Command::new(&program).stdin(Stdio::piped()).spawn().unwrap();
        let pid = running.id() as i32;
        assert!(open(&program, pid).is_none() && !paths(pid).contains(&program));
        fs::remove_file(&program).unwrap();
        let named = folder.path().join("cat (deleted)");
        assert_eq!(path_before(&named), Some(&*program));
        for name in [&program, &named] {
            let mut bytes = Vec::new();
            open(name, pid).unwrap().read_to_end(&mut bytes).unwrap();
            assert_eq!(bytes, fs::read("/bin/cat").unwrap());
        }
        assert!(open(&folder.path().join("dog"), pid).is_none() && open(&program, -1).is_none());
        drop(running.stdin.take());
        running.wait().unwrap();
        assert!(open(&program, pid).is_none() && paths(pid).is_empty());
    }
}
