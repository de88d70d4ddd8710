//! Detects the removal of the run directory or of parts of it, after which clients could not find the holder.
//!
//! Provides a descriptor that becomes readable after a removal. The holder then checks which files are
//! missing.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};

/// An inotify watch for removals.
pub(super) struct DirectoryWatch(OwnedFd);

impl DirectoryWatch {
    /// Starts watching these directories.
    ///
    /// # Errors
    /// Fails if a directory is missing, or if this user already has too many inotify watches.
    pub(super) fn new(folders: impl Iterator<Item = PathBuf>) -> io::Result<Self> {
        let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let removals = WatchFlags::DELETE | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
        for folder in folders {
            inotify::add_watch(&watch, folder, removals)?;
        }
        Ok(Self(watch))
    }

    /// Whether anything was removed since the last call.
    pub(super) fn has_removals(&self) -> bool {
        let mut space = [MaybeUninit::uninit(); 4 << 10];
        let mut reader = Reader::new(&self.0, &mut space);
        let mut heard = false;
        while reader.next().is_ok() {
            heard = true;
        }
        heard
    }
}

impl AsFd for DirectoryWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
