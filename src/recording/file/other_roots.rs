//! Files that only another root directory shows: what ran in a chroot, or in a mount namespace of its own.
//!
//! Receives the mappings of a round while most of their processes still run, and looks at each file through
//! `/proc/PID/root`. Once the last process there has ended nobody can open these files any more, so their
//! build-ids go into the recording at once, as a second mapping behind the first, and copies of the files go
//! into the cache by build-id, where reports find them. Files without a build-id stay nameless.
//!
//! ```text
//!   MMAP2 ──► /proc/PID/root is not ours ──► open PATH below it ──► MMAP2 by build-id
//!                                                        '── another thread ──► ~/.debug
//! ```
//! A process that maps a file and ends before the round is drained is missed: the recorder drains often while
//! a recording is young, since a command in a chroot begins there.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, JoinHandle};

use rustc_hash::FxHashMap;

use crate::error::{Result, Warning, say};
use crate::record::{FileId, RawRecord, Record, kind, write_by_build_id};
use crate::symbol::{BuildId, BuildIdCache, identify};
use crate::sys::file_map::open_regular;

/// More files than this are not looked at: a recording of very many containers.
const MOST: usize = 5000;

/// Mount namespace, device and inode of a root directory.
type Root = (u64, u64, u64);

/// What is known of other roots.
#[derive(Debug)]
pub(super) struct OtherRoots {
    own: Option<Root>,
    /// The roots of processes, as they were in this round.
    of: FxHashMap<i32, Option<Root>>,
    /// Build-ids by root and path; `None` where there is none, or where the file is ours as well.
    known: FxHashMap<(Root, Vec<u8>), Option<BuildId>>,
    /// Files are kept in the cache.
    keeps: bool,
    keeper: Option<Keeper>,
}

/// A thread that copies files, so that the rings do not wait for the disk.
#[derive(Debug)]
struct Keeper {
    files: Sender<(PathBuf, BuildId, File)>,
    thread: JoinHandle<Result<()>>,
}

impl OtherRoots {
    pub(super) fn new(keeps: bool) -> Self {
        let (of, known) = (FxHashMap::default(), FxHashMap::default());
        Self { own: root_of("self"), of, known, keeps, keeper: None }
    }

    /// Looks at a record. Of a mapping whose file is in another root, appends the mapping by its build-id.
    #[inline]
    pub(super) fn note(&mut self, record: &RawRecord<'_>, out: &mut Vec<u8>) {
        if record.kind == kind::MMAP2 {
            self.mapping(record, out);
        }
    }

    /// The processes may have other roots from now on.
    pub(super) fn end_round(&mut self) {
        self.of.clear();
    }

    /// Waits until all files are copied. What cannot be kept is said.
    pub(super) fn finish(&mut self) {
        let Some(Keeper { files, thread }) = self.keeper.take() else { return };
        drop(files);
        if let Ok(Err(error)) = thread.join() {
            say::warn(&Warning::FilesNotKept { why: error.headline() });
        }
    }

    fn mapping(&mut self, record: &RawRecord<'_>, out: &mut Vec<u8>) {
        let Some(Record::Mmap2(mapping)) = record.parse() else { return };
        let (pid, name) = (mapping.map.thread.pid, mapping.map.name);
        if pid <= 0 || mapping.is_data() || !identify::is_path(name) {
            return;
        }
        let root = *self.of.entry(pid).or_insert_with(|| root_of(&pid.to_string()));
        let Some(root) = root.filter(|root| self.own.is_some_and(|own| own != *root)) else { return };
        let id = match self.known.get(&(root, name.to_vec())) {
            Some(id) => *id,
            None if self.known.len() >= MOST => None,
            None => {
                let id = self.look(pid, name);
                self.known.insert((root, name.to_vec()), id);
                id
            }
        };
        match (id, mapping.file) {
            (Some(id), FileId::Inode { .. }) => write_by_build_id(record, id.bytes(), out),
            (None, _) | (_, FileId::BuildId(_)) => {}
        }
    }

    /// The build-id of a file that its process alone sees. The file is kept.
    fn look(&mut self, pid: i32, name: &[u8]) -> Option<BuildId> {
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

    fn keep(&mut self, path: &Path, id: BuildId, file: File) {
        if self.keeper.is_none() {
            self.keeper = Keeper::start();
        }
        if let Some(Keeper { files, .. }) = &self.keeper {
            // A keeper that has failed is told nothing more; it says why at the end.
            let _ = files.send((path.to_owned(), id, file));
        }
    }
}

impl Keeper {
    /// `None` where there is no place for files, and where no thread can be started.
    fn start() -> Option<Self> {
        let cache = BuildIdCache::usual()?;
        let (files, taken) = channel::<(PathBuf, BuildId, File)>();
        let keep =
            move || taken.iter().try_for_each(|(path, id, file)| cache.keep_copy(&path, id, &file).map(drop));
        let thread = Builder::new().name("keep files".to_owned()).spawn(keep).ok()?;
        Some(Self { files, thread })
    }
}

/// The root of a process; `None` when it is gone or not ours to look at.
fn root_of(process: &str) -> Option<Root> {
    let root = fs::metadata(format!("/proc/{process}/root/")).ok()?;
    let namespace = fs::metadata(format!("/proc/{process}/ns/mnt")).ok()?;
    Some((namespace.ino(), root.dev(), root.ino()))
}
