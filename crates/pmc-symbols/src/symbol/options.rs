//! Where to search for symbols, as set by the user and the environment.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;

use super::debuginfod::{self, Debuginfod};
use pmc_sys::sys::regular_file::is_ours;

/// Where to search for symbols.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SymbolOptions {
    /// A folder that replaces `/` of the recorded machine (`--symfs`).
    pub symfs: Option<PathBuf>,
    /// Roots of separate debug files, each with a `.build-id` folder (gdb's `debug-file-directory`).
    pub debug_dirs: Vec<PathBuf>,
    /// perf's build-id caches (`perf buildid-cache`), each with a `.build-id` folder.
    pub build_id_caches: Vec<PathBuf>,
    /// Folder in which elfutils' client caches downloads from debuginfod servers, with a subfolder per
    /// build-id.
    pub debuginfod_cache: Option<PathBuf>,
    /// Servers to query for files that are not on this machine.
    pub debuginfod: Option<Arc<Debuginfod>>,
    /// A copy of the recorded machine's `/proc/kallsyms` (`--kallsyms`).
    pub kallsyms: Option<PathBuf>,
    /// The file that contains the recorded kernel's symbols (`--vmlinux`).
    pub vmlinux: Option<PathBuf>,
    /// Folder for caching results for later runs; `None` disables caching (`--no-cache`).
    pub cache: Option<PathBuf>,
    /// Whether [`Depth::Names`] requests run only on the calling thread. Intended for callers that look up
    /// only a few names at a time, for which waking other threads would cost more than the lookups.
    ///
    /// [`Depth::Names`]: super::Depth::Names
    pub alone: bool,
    /// Whether code without a symbol gets a placeholder name that consists of its module and either the start
    /// of its function or its section. Otherwise, it has no name, as in `perf script`.
    pub placeholders: bool,
    /// Whether to look up code of programs and libraries, and not only of the kernel and generated code.
    pub files: bool,
    /// Whether the recorded processes and kernel may be the ones that now run on this machine.
    pub live: bool,
    /// The kernel that now runs on this machine.
    pub kernel: RunningKernel,
    /// Owners of recorded processes that may have ended: process ID and user ID. Their files in `/tmp` are
    /// read too.
    pub owners: FxHashMap<u32, u32>,
}

/// The kernel that runs on this machine, as its files below `/proc`, `/sys`, `/boot` and `/lib` describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningKernel {
    /// Folder that contains `proc`, `sys`, `boot` and `lib`; usually `/`.
    root: PathBuf,
    /// Kernel release, as `uname -r` prints it.
    pub(super) release: String,
}

impl RunningKernel {
    /// The kernel of this machine.
    pub fn live() -> Self {
        Self::below("/", rustix::system::uname().release().to_string_lossy())
    }

    /// A kernel whose files are below a folder.
    pub fn below(root: impl Into<PathBuf>, release: impl Into<String>) -> Self {
        Self { root: root.into(), release: release.into() }
    }

    pub(super) fn path(&self, absolute: impl AsRef<Path>) -> PathBuf {
        let absolute = absolute.as_ref();
        self.root.join(absolute.strip_prefix("/").unwrap_or(absolute))
    }

    pub(super) fn text(&self, absolute: impl AsRef<Path>) -> std::io::Result<String> {
        std::fs::read_to_string(self.path(absolute))
    }
}

/// The build-id cache chosen on the command line.
static CHOSEN: OnceLock<PathBuf> = OnceLock::new();

/// Sets the build-id cache, overriding the environment. Later calls have no effect.
pub fn choose_build_id_folder(folder: PathBuf) {
    let _ = CHOSEN.set(folder);
}

/// Returns the build-id cache to which pmc writes: the one set by [`choose_build_id_folder`],
/// `PERF_BUILDID_DIR`, or `~/.debug`.
pub(super) fn build_id_folder() -> Option<PathBuf> {
    let from_home = || home().filter(|home| is_ours(home)).map(|home| home.join(".debug"));
    CHOSEN.get().cloned().or_else(|| folder("PERF_BUILDID_DIR")).or_else(from_home)
}

/// Whether the environment sets a build-id cache.
pub fn names_build_id_folder() -> bool {
    folder("PERF_BUILDID_DIR").is_some()
}

/// Reads an absolute path from an environment variable.
fn folder(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// Returns the home folder, if it exists. pmc does not create it for users without a home folder
/// (`HOME=/nonexistent`).
fn home() -> Option<PathBuf> {
    folder("HOME").filter(|home| home.is_dir())
}

impl SymbolOptions {
    /// Maps a path on the recorded machine to a path on this machine.
    pub fn below_symfs(&self, path: &Path) -> PathBuf {
        let below = |symfs: &PathBuf| symfs.join(path.strip_prefix("/").unwrap_or(path));
        self.symfs.as_ref().map_or_else(|| path.to_owned(), below)
    }

    /// Returns the default places: `/usr/lib/debug`, `~/.debug`, and `$XDG_CACHE_HOME/pmc` or `~/.cache/pmc`.
    pub fn from_environment() -> Self {
        let home = home();
        let cache_home = folder("XDG_CACHE_HOME").or_else(|| home.as_ref().map(|home| home.join(".cache")));
        let is_safe = |cache: &PathBuf| {
            is_ours(cache) && home.as_ref().is_none_or(|home| !cache.starts_with(home) || is_ours(home))
        };
        let mut build_id_caches: Vec<PathBuf> = Vec::new();
        build_id_caches.extend(build_id_folder());
        build_id_caches.extend(home.as_ref().map(|home| home.join(".debug")));
        build_id_caches.extend(cache_home.as_ref().map(|cache| cache.join("perf/buildid")));
        // The first two folders are usually the same.
        build_id_caches.dedup();
        Self {
            symfs: None,
            debug_dirs: vec!["/usr/lib/debug".into()],
            build_id_caches,
            debuginfod_cache: debuginfod::cache(&folder),
            debuginfod: None,
            kallsyms: None,
            vmlinux: None,
            cache: cache_home.filter(is_safe).map(|cache| cache.join("pmc")),
            alone: false,
            placeholders: true,
            files: true,
            live: true,
            kernel: RunningKernel::live(),
            owners: FxHashMap::default(),
        }
    }
}
