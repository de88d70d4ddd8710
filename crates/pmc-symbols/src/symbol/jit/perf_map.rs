//! `/tmp/perf-PID.map`: the names that a JIT writes for profilers, one line per function.
//!
//! ```text
//!   START SIZE NAME...        hexadecimal, with or without 0x; the newest line for an address applies
//! ```
//!
//! Since every user can write to `/tmp`, pmc accepts only a regular file (no symbolic link) that belongs to
//! root, to the current user, or to the user of the process, which it remembers after the process has ended.
//! It reads only the newest part of a huge file, truncates long names, and ignores malformed lines. Processes
//! whose maps are hard links to the same file share one table.

use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use crate::address::IntervalMap;
use crate::symbol::missing_data::{MissingDataReason, is_absence};
use crate::symbol::tables::table::SymbolTable;
use pmc_sys::sys::regular_file::{is_trusted_owner, open_regular, path_in_process};

/// Maximum number of bytes to read. They are taken from the end of the file, since the newest line for an
/// address applies.
const MOST_BYTES: u64 = 256 << 20;
/// Maximum length of a name. Longer names are truncated.
const MOST_NAME: usize = 4 << 10;

/// Parses a map, ignoring malformed lines.
pub(crate) fn parse(text: &[u8]) -> SymbolTable {
    let mut names = IntervalMap::default();
    for line in text.split(|byte| *byte == b'\n') {
        if let Some((start, end, name)) = parse_line(line) {
            names.replace(start..end, name);
        }
    }
    SymbolTable::from_functions(
        names
            .iter()
            .map(|(range, name)| (range, String::from_utf8_lossy(&name[..name.len().min(MOST_NAME)]))),
    )
}

fn parse_line(line: &[u8]) -> Option<(u64, u64, &[u8])> {
    let mut words = line.trim_ascii().splitn(3, |byte| *byte == b' ');
    let mut number = || {
        let word = std::str::from_utf8(words.next()?).ok()?;
        u64::from_str_radix(word.strip_prefix("0x").unwrap_or(word), 16).ok()
    };
    let (start, size) = (number()?, number()?);
    let name = words.next()?.trim_ascii();
    (!name.is_empty()).then_some((start, start.checked_add(size)?, name))
}

/// The maps read so far. There is one per file, even if several processes share the file.
#[derive(Debug, Default)]
pub(crate) struct PerfMaps {
    tables: Mutex<FxHashMap<FileVersion, Arc<SymbolTable>>>,
    /// Owners of processes, as user IDs: the recorded ones, and those of processes that were alive.
    owners: Mutex<FxHashMap<u32, u32>>,
}

/// Identifies a version of a file: device, inode, size, modification time (seconds, nanoseconds).
type FileVersion = (u64, u64, u64, i64, i64);

impl PerfMaps {
    /// Creates a reader of maps. `owners` are processes and their users, as user IDs.
    pub(crate) fn new(owners: FxHashMap<u32, u32>) -> Self {
        Self { tables: Mutex::default(), owners: Mutex::new(owners) }
    }

    /// Whether a file of the user `uid` may name the code of a process.
    fn is_trusted(&self, uid: u32, pid: u32) -> bool {
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        let was = owners.get(&pid) == Some(&uid);
        let process = std::fs::metadata(format!("/proc/{pid}")).ok().map(|process| process.uid());
        owners.extend(process.map(|uid| (pid, uid)));
        is_trusted_owner(uid) || was || process == Some(uid)
    }

    /// Reads the map of a process.
    ///
    /// # Errors
    /// Returns why there is no map: it does not exist, or it cannot be read.
    pub(crate) fn read(
        &self,
        pid: u32,
        live: bool,
        symfs: Option<&Path>,
    ) -> Result<(PathBuf, Arc<SymbolTable>), MissingDataReason> {
        self.read_first(&places(pid, live, symfs), pid)
    }

    /// Reads the first of these files that is readable.
    fn read_first(
        &self,
        places: &[PathBuf],
        pid: u32,
    ) -> Result<(PathBuf, Arc<SymbolTable>), MissingDataReason> {
        let mut failure: Option<(&Path, io::Error)> = None;
        for path in places {
            match self.read_one(path, pid) {
                Ok(table) => return Ok((path.clone(), table)),
                // The error for an unreadable map is more informative than the error for a missing one. If
                // all maps are missing, report the last path, which is the one that users know.
                Err(error) if failure.as_ref().is_none_or(|(_, before)| is_absence(before)) => {
                    failure = Some((path, error));
                }
                Err(_) => {}
            }
        }
        let (path, error) = failure.unwrap_or_else(|| (Path::new(""), io::ErrorKind::NotFound.into()));
        Err(match is_absence(&error) {
            true => {
                let said = format!(
                    "{}: {}",
                    path_in_process(path).display(),
                    pmc_sys::error::kernel_message(&error)
                );
                MissingDataReason::PerfMap { pid, said }
            }
            false => MissingDataReason::unreadable(path, &error),
        })
    }

    fn read_one(&self, path: &Path, pid: u32) -> io::Result<Arc<SymbolTable>> {
        let mut file = open_regular(path, false)?;
        let about = file.metadata()?;
        let owner = about.uid();
        if !self.is_trusted(owner, pid) {
            let why = format!("is owned by user {owner}, not by root, you or the process's user");
            return Err(io::Error::other(why));
        }
        let version = (about.dev(), about.ino(), about.len(), about.mtime(), about.mtime_nsec());
        // Hold the lock while reading, so that threads do not read the same file in parallel.
        let mut maps = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(table) = maps.get(&version) {
            return Ok(table.clone());
        }
        if let Some(skipped) = about.len().checked_sub(MOST_BYTES) {
            file.seek(SeekFrom::Start(skipped))?;
        }
        let mut text = Vec::new();
        file.take(MOST_BYTES).read_to_end(&mut text)?;
        let table = Arc::new(parse(&text));
        maps.insert(version, table.clone());
        Ok(table)
    }
}

/// Returns the size of a process's map in bytes, if there is one. The map grows as the JIT generates code.
pub fn size(pid: u32, live: bool, symfs: Option<&Path>) -> Option<u64> {
    places(pid, live, symfs).iter().find_map(|path| Some(std::fs::metadata(path).ok()?.len()))
}

/// Returns the possible paths of a map. A process in a container has a different pid and a different `/tmp`
/// there.
fn places(pid: u32, live: bool, symfs: Option<&Path>) -> Vec<PathBuf> {
    if let Some(symfs) = symfs {
        return vec![symfs.join(format!("tmp/perf-{pid}.map"))];
    }
    let mut places = Vec::new();
    if live {
        let inner = inner_pid(pid).unwrap_or(pid);
        places.push(format!("/proc/{pid}/root/tmp/perf-{inner}.map").into());
    }
    places.push(format!("/tmp/perf-{pid}.map").into());
    places
}

/// Returns the process's pid in its innermost pid namespace (the last in `NSpid`).
fn inner_pid(pid: u32) -> Option<u32> {
    let status = std::fs::read(format!("/proc/{pid}/status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    status.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_whitespace().last()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_parsed_and_the_newest_wins() {
        let table = parse(
            b"7f00 10 first one\n0x7f10 0x20 LazyCompile:~f /a.js:1\n\nrubbish\n7f20 zz bad\nffffffffffffffff 10 over\n7f00 8 moved\n7f40 0 empty\n9 9\n",
        );
        let name = |address| table.find(address).map_or("-", |s| s.name);
        assert_eq!(name(0x7f04), "moved");
        assert_eq!(name(0x7f0a), "-");
        assert_eq!(name(0x7f12), "LazyCompile:~f /a.js:1");
        assert_eq!(table.len(), 2);
    }

    #[test]
    fn file_with_several_names_is_read_once() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("tmp")).unwrap();
        let path = |pid: u32| root.path().join(format!("tmp/perf-{pid}.map"));
        std::fs::write(path(1), "1000 10 one\n").unwrap();
        std::fs::hard_link(path(1), path(2)).unwrap();
        let maps = PerfMaps::default();
        let read = |pid| maps.read(pid, false, Some(root.path())).unwrap().1;
        assert!(Arc::ptr_eq(&read(1), &read(2)));
        // Read a map again after it has grown.
        std::fs::write(path(1), "1000 10 one\n2000 10 two\n").unwrap();
        assert_eq!(read(1).len(), 2);
    }

    #[test]
    fn unreadable_map_differs_from_missing_map() {
        let symfs = tempfile::tempdir().expect("a temporary folder");
        let read = || PerfMaps::default().read(7, false, Some(symfs.path()));
        assert!(matches!(read(), Err(MissingDataReason::PerfMap { pid: 7, .. })));
        // Opening a folder as a file fails even for root.
        let path = symfs.path().join("tmp/perf-7.map");
        std::fs::create_dir_all(&path).expect("a folder");
        let missing = read().expect_err("it is a folder");
        assert!(missing.is_failure(), "{missing}");
        assert_eq!(missing.to_string(), format!("{}: not a regular file", path.display()));
    }
    /// The map in the container's `/tmp` is tried before the one in our own.
    #[test]
    fn unreadable_map_is_reported_before_a_missing_one() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (unreadable, missing) = (folder.path().to_owned(), folder.path().join("perf-7.map"));
        for places in [[unreadable.clone(), missing.clone()], [missing.clone(), unreadable.clone()]] {
            let reason = PerfMaps::default().read_first(&places, 7).expect_err("no map");
            assert_eq!(reason.to_string(), format!("{}: not a regular file", unreadable.display()));
        }
        let places = [folder.path().join("other.map"), missing.clone()];
        let reason = PerfMaps::default().read_first(&places, 7).expect_err("no map").to_string();
        assert!(reason.contains(&*missing.to_string_lossy()), "{reason}");
    }
}
