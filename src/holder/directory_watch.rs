//! Notices that somebody has removed the run directory or parts of it: then nobody finds the holder any more.
//!
//! Hands on a descriptor to wait for. What is missing, the holder looks for itself.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};

/// Listens for removals.
pub(super) struct DirectoryWatch(OwnedFd);

impl DirectoryWatch {
    /// Begins to watch these folders.
    ///
    /// # Errors
    /// The kernel's, where a folder is missing or this user watches too many.
    pub(super) fn new(folders: impl Iterator<Item = PathBuf>) -> io::Result<Self> {
        let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let removals = WatchFlags::DELETE | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
        for folder in folders {
            inotify::add_watch(&watch, folder, removals)?;
        }
        Ok(Self(watch))
    }

    /// Whether anything was removed since the last time.
    pub(super) fn heard(&self) -> bool {
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
