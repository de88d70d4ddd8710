//! Where holders publish persistent events: run directories, laid out as the kernel's folder of a PMU.
//!
//! Receives the environment and who we are; hands on folders and the [`Pmu`]s in them. What lies there
//! besides is `persistent`'s.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::Host;
use super::pmu::Pmu;
use crate::sys::lock;

/// Names the run directory, in place of the usual ones.
pub const RUN_DIRECTORY: &str = "PMC_PERSISTENT_DIR";
/// Where root's holder publishes.
const ROOTS: &str = "/run/pmc/persistent";

/// Whether a holder runs that publishes in this run directory: it keeps the file `lock` locked while it
/// lives.
pub fn has_holder(directory: &Path) -> bool {
    let Ok(file) = File::open(directory.join("lock")) else { return false };
    // A file system that cannot say is believed.
    lock::in_the_way(&file, lock::Kind::Write).map_or(true, |owner| owner.is_some())
}

/// The run directory of a user with this environment; `None` where the user has none.
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
    /// The run directory of this user's holder; `None` where the user has none: no `XDG_RUNTIME_DIR`, as
    /// outside of a login.
    pub fn own_run_directory(&self) -> Option<PathBuf> {
        if self.root != std::path::Path::new("/") {
            return Some(self.path(ROOTS));
        }
        let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        run_directory(rustix::process::geteuid().as_raw(), named)
    }

    /// The run directory that a process uses, by its user and the environment that it was started
    /// with; `None` where it has none, has ended, or is not ours to look at.
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

    /// Every run directory where events may be published for this user: the own one, then root's.
    pub fn run_directories(&self) -> Vec<PathBuf> {
        let mut all: Vec<PathBuf> = self.own_run_directory().into_iter().collect();
        let roots = self.path(ROOTS);
        if std::env::var_os(RUN_DIRECTORY).is_none() && !all.contains(&roots) {
            all.push(roots);
        }
        all
    }

    /// The run directories that are published, as PMUs called `persistent`.
    pub fn published_pmus(&self) -> Vec<Pmu> {
        self.run_directories().into_iter().filter_map(Pmu::published).collect()
    }
}
