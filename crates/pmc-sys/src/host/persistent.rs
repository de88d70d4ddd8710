//! Run directories in which holders publish persistent events, with the same layout as the kernel's directory
//! of a PMU.
//!
//! Finds these directories for a user and an environment, and the [`Pmu`]s in them. `persistent` handles the
//! other files in the directories.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::Host;
use super::pmu::Pmu;
use crate::sys::lock;
use crate::sys::regular_file::open_regular;

/// Environment variable that overrides the default run directories.
pub const RUN_DIRECTORY: &str = "PMC_PERSISTENT_DIR";
/// Run directory of root's holder.
const ROOTS: &str = "/run/pmc/persistent";

/// Whether a running holder publishes in this run directory for this user. A holder keeps the file `lock`
/// locked while it is running.
///
/// # Errors
/// Fails if the file `lock` exists, but cannot be opened for a reason other than missing permission.
pub fn has_holder(directory: &Path) -> io::Result<bool> {
    let file = match open_regular(&directory.join("lock"), false) {
        Ok(file) => file,
        Err(error) if is_missing_or_hidden(&error) => return Ok(false),
        Err(error) => return Err(error),
    };
    // If the file system cannot test locks, assume that the holder is running.
    Ok(lock::conflicting_owner(&file, lock::LockKind::Write).map_or(true, |owner| owner.is_some()))
}

/// Whether a file cannot be opened because nothing is published there for this user: no such file or
/// directory, no permission to search the directory, or not a regular file.
pub fn is_missing_or_hidden(error: &io::Error) -> bool {
    let is_nothing = |errno| matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::LOOP);
    Errno::from_io_error(error).is_none_or(is_nothing)
}

/// The run directory for a user with this environment; `None` if the environment does not specify one.
fn run_directory(uid: u32, named: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    if let Some(named) = named(RUN_DIRECTORY) {
        return Some(named);
    }
    if uid == 0 {
        return Some(ROOTS.into());
    }
    let logged_in = PathBuf::from(format!("/run/user/{uid}"));
    let folder = named("XDG_RUNTIME_DIR").or_else(|| logged_in.is_dir().then_some(logged_in))?;
    Some(folder.join("pmc/persistent"))
}

impl Host {
    /// The run directory of this user's holder. Root always has one. For other users, `None` if no variable
    /// sets it and `/run/user/UID` does not exist, as is usual outside a login session.
    pub fn own_run_directory(&self) -> Option<PathBuf> {
        if self.root != std::path::Path::new("/") {
            return Some(self.path(ROOTS));
        }
        let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        run_directory(rustix::process::geteuid().as_raw(), named)
    }

    /// The run directory that a process uses, as determined by its user and its initial environment. `None`
    /// if the process has no runtime directory, has ended, or cannot be examined.
    pub fn run_directory_of(&self, pid: u32) -> Option<PathBuf> {
        let environment = std::fs::read(self.path(format!("/proc/{pid}/environ"))).ok()?;
        let named = |name: &str| {
            let of = |line: &[u8]| line.strip_prefix(name.as_bytes())?.strip_prefix(b"=").map(<[u8]>::to_vec);
            let value =
                environment.split(|&byte| byte == 0).find_map(of).filter(|value| !value.is_empty())?;
            Some(PathBuf::from(OsString::from_vec(value)))
        };
        run_directory(self.owner(pid)?, named)
    }

    /// All run directories with events for this user: the user's own, then root's.
    pub fn run_directories(&self) -> Vec<PathBuf> {
        let mut all: Vec<PathBuf> = self.own_run_directory().into_iter().collect();
        let roots = self.path(ROOTS);
        if std::env::var_os(RUN_DIRECTORY).is_none() && !all.contains(&roots) {
            all.push(roots);
        }
        all
    }

    /// The published run directories, as PMUs called `persistent`.
    pub fn published_pmus(&self) -> Vec<Pmu> {
        self.run_directories().into_iter().filter_map(Pmu::published).collect()
    }
}
