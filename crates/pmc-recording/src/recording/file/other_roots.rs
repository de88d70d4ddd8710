//! Files that are visible only through their processes: in another root directory (a chroot or another mount
//! namespace), or deleted.
//!
//! Receives the mappings of a round while most of their processes are still running. Writes the build-id of
//! each such file in a second mapping record, and copies the files into the build-id cache.
//!
//! ```text
//!   MMAP2 ──► /proc/PID/root is not ours ──► open PATH below it ──► MMAP2 by build-id
//!                                                        '── another thread ──► ~/.debug
//! ```

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, JoinHandle};

use rustc_hash::FxHashMap;

use crate::recording::warning::files_not_kept;
use pmc_perfdata::record::{MappedFileId, RawRecord, Record, kind, write_by_build_id};
use pmc_symbols::symbol::{BuildId, BuildIdCache, identify};
use pmc_sys::error::{Result, say};
use pmc_sys::sys::deleted_file;
use pmc_sys::sys::regular_file::{is_trusted_owner, open_regular};

/// Maximum number of files to inspect, for recordings with many containers.
const MAX_FILES: usize = 5000;

/// The name of a mapping that contains generated code.
const GENERATED: &[u8] = b"//anon";

/// Mount namespace, device and inode of a root directory.
type RootDirectoryId = (u64, u64, u64);

/// The other root directories seen so far, and the files in them.
///
/// Opens each file through `/proc/PID/root`, or a deleted file through the mapping itself. Once the last
/// process in such a root has ended, the root's files can no longer be opened, so the build-id is written
/// immediately. Files without a build-id remain unresolved.
///
/// If a process maps a file and ends before the round is drained, the file is missed. A command usually
/// enters its chroot at its start, so the recorder drains often at the beginning of a recording.
#[derive(Debug)]
pub(super) struct OtherRoots {
    own: Option<RootDirectoryId>,
    /// The root directory of each process in this round.
    of: FxHashMap<i32, Option<RootDirectoryId>>,
    /// Build-ids by root and path; `None` if the file has no build-id, or if it is also visible in our root.
    known: FxHashMap<(RootDirectoryId, Vec<u8>), Option<BuildId>>,
    /// Whether files are copied into the cache.
    keeps: bool,
    keeper: Option<FileCopyThread>,
    /// The owners of processes of other users with generated code. A reader that finds names for this code in
    /// `/tmp` must know who may have written them, even after the process has ended.
    owners: FxHashMap<i32, u32>,
}

/// A thread that copies files, because draining the rings must not wait for the disk.
#[derive(Debug)]
struct FileCopyThread {
    files: Sender<(PathBuf, BuildId, File)>,
    thread: JoinHandle<Result<()>>,
}

impl OtherRoots {
    pub(super) fn new(keeps: bool) -> Self {
        let (of, known) = (FxHashMap::default(), FxHashMap::default());
        Self { own: root_of("self"), of, known, keeps, keeper: None, owners: FxHashMap::default() }
    }

    /// If the record maps a file in another root, appends a copy of the record with the file's build-id.
    #[inline]
    pub(super) fn note(&mut self, record: &RawRecord<'_>, out: &mut Vec<u8>) {
        if record.kind == kind::MMAP2 {
            self.mapping(record, out);
        }
    }

    /// Like [`OtherRoots::note`], for a mapping that existed before the recording. Examines only deleted
    /// files, because on a machine with many containers, reading all files would delay the recording.
    pub(super) fn note_existing(&mut self, record: &RawRecord<'_>, out: &mut Vec<u8>) {
        let Some(Record::Mmap2(mapping)) = record.parse() else { return };
        let name = mapping.map.name;
        if name == GENERATED || deleted_file::path_before(Path::new(OsStr::from_bytes(name))).is_some() {
            self.mapping(record, out);
        }
    }

    /// The owners of processes of other users with generated code: process ID and user ID, in no order.
    pub(super) fn owners(&self) -> impl ExactSizeIterator<Item = (i32, u32)> {
        self.owners.iter().map(|(pid, uid)| (*pid, *uid))
    }

    /// Ends a round, and forgets the processes' roots, which may change.
    pub(super) fn end_round(&mut self) {
        self.of.clear();
    }

    /// Waits until all files have been copied. Warns about files that could not be copied.
    pub(super) fn finish(&mut self) {
        let Some(FileCopyThread { files, thread }) = self.keeper.take() else { return };
        drop(files);
        if let Ok(Err(error)) = thread.join() {
            say::warn(files_not_kept(&error));
        }
    }

    fn mapping(&mut self, record: &RawRecord<'_>, out: &mut Vec<u8>) {
        let Some(Record::Mmap2(mapping)) = record.parse() else { return };
        let (pid, name) = (mapping.map.thread.pid, mapping.map.name);
        if pid <= 0 || mapping.is_data() {
            return;
        }
        if name == GENERATED && self.owners.len() < MAX_FILES && !self.owners.contains_key(&pid) {
            let owner = fs::metadata(format!("/proc/{pid}")).map(|process| process.uid());
            self.owners.extend(owner.ok().filter(|uid| !is_trusted_owner(*uid)).map(|uid| (pid, uid)));
        }
        if !identify::is_path(name) || name == GENERATED {
            return;
        }
        let root = *self.of.entry(pid).or_insert_with(|| root_of(&pid.to_string()));
        let Some((root, own)) = root.zip(self.own) else { return };
        let deleted = deleted_file::path_before(Path::new(OsStr::from_bytes(name)));
        if root == own && deleted.is_none() {
            return;
        }
        let mut key = (root, name.to_vec());
        // Several deleted files may have had the same path.
        if let (MappedFileId::Inode { inode, .. }, true) = (mapping.file, deleted.is_some()) {
            key.1.extend(inode.to_ne_bytes());
        }
        let id = match self.known.get(&key) {
            Some(id) => *id,
            None if self.known.len() >= MAX_FILES => None,
            None => {
                let id = match deleted {
                    Some(path) => self.build_id_of_deleted(pid, path),
                    None => self.build_id_in_root(pid, name),
                };
                self.known.insert(key, id);
                id
            }
        };
        match (id, mapping.file) {
            (Some(id), MappedFileId::Inode { .. }) => write_by_build_id(record, id.bytes(), out),
            (None, _) | (_, MappedFileId::BuildId(_)) => {}
        }
    }

    /// Returns the build-id of a file that is visible only to its process, and starts copying the file if
    /// requested.
    fn build_id_in_root(&mut self, pid: i32, name: &[u8]) -> Option<BuildId> {
        let path = Path::new(OsStr::from_bytes(name));
        let theirs = format!("/proc/{pid}/root");
        let file = open_regular(&Path::new(&theirs).join(path.strip_prefix("/").ok()?), true).ok()?;
        let identity = |about: fs::Metadata| (about.dev(), about.ino());
        if fs::metadata(path).map(identity).ok() == file.metadata().map(identity).ok() {
            return None;
        }
        let id = identify::of_open(&file)?;
        if self.keeps {
            self.keep(path, id, file);
        }
        Some(id)
    }

    /// Returns the build-id of a file that its process still maps, and starts copying the file if requested.
    fn build_id_of_deleted(&mut self, pid: i32, path: &Path) -> Option<BuildId> {
        let file = deleted_file::open(path, pid)?;
        let id = identify::of_open(&file)?;
        if self.keeps {
            self.keep(path, id, file);
        }
        Some(id)
    }

    fn keep(&mut self, path: &Path, id: BuildId, file: File) {
        if self.keeper.is_none() {
            self.keeper = FileCopyThread::start();
        }
        if let Some(FileCopyThread { files, .. }) = &self.keeper {
            // If the copying thread has failed, sending fails too. The thread's error is reported at the end.
            let _ = files.send((path.to_owned(), id, file));
        }
    }
}

impl FileCopyThread {
    /// Starts the thread; `None` if there is no cache directory or the thread cannot be started.
    fn start() -> Option<Self> {
        let cache = BuildIdCache::usual()?;
        let (files, taken) = channel::<(PathBuf, BuildId, File)>();
        let keep =
            move || taken.iter().try_for_each(|(path, id, file)| cache.keep_copy(&path, id, &file).map(drop));
        let thread = Builder::new().name("keep files".to_owned()).spawn(keep).ok()?;
        Some(Self { files, thread })
    }
}

/// Returns the root of a process; `None` if the process has ended or pmc may not inspect it.
fn root_of(process: &str) -> Option<RootDirectoryId> {
    let root = fs::metadata(format!("/proc/{process}/root/")).ok()?;
    let namespace = fs::metadata(format!("/proc/{process}/ns/mnt")).ok()?;
    Some((namespace.ino(), root.dev(), root.ino()))
}
