//! Where holders publish persistent events: run directories, laid out as the kernel's folder of a PMU.
//!
//! Receives the environment and who we are; hands on folders and the [`Pmu`]s in them. What lies there
//! besides is `persistent`'s.

use std::path::PathBuf;

use super::Host;
use super::pmu::Pmu;

/// Names the run directory, in place of the usual ones.
pub const RUN_DIRECTORY: &str = "PMC_PERSISTENT_DIR";
/// Where root's holder publishes.
const ROOTS: &str = "/run/pmc/persistent";

impl Host {
    /// The run directory of this user's holder; `None` where the user has none: no `XDG_RUNTIME_DIR`, as
    /// outside of a login.
    pub fn own_run_directory(&self) -> Option<PathBuf> {
        if self.root != std::path::Path::new("/") {
            return Some(self.path(ROOTS));
        }
        let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(named) = named(RUN_DIRECTORY) {
            return Some(named);
        }
        let uid = rustix::process::geteuid();
        if uid.is_root() {
            return Some(ROOTS.into());
        }
        let logged_in = PathBuf::from(format!("/run/user/{}", uid.as_raw()));
        let folder = named("XDG_RUNTIME_DIR").or_else(|| logged_in.is_dir().then_some(logged_in))?;
        Some(folder.join("pmc/persistent"))
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
