//! Where symbols may be looked for, as the user and the environment say it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::debuginfod::{self, Debuginfod};

/// The places of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// A folder that stands for `/` of the recorded machine (`--symfs`).
    pub symfs: Option<PathBuf>,
    /// Roots of separate debug files, each with a `.build-id` folder (gdb's `debug-file-directory`).
    pub debug_dirs: Vec<PathBuf>,
    /// Folders where perf keeps files by build-id (`perf buildid-cache`), each with a `.build-id` folder.
    pub build_id_caches: Vec<PathBuf>,
    /// Where elfutils' client keeps files that debuginfod servers gave, a folder for each build-id.
    pub debuginfod_cache: Option<PathBuf>,
    /// Servers that are asked for what is not on this machine.
    pub debuginfod: Option<Arc<Debuginfod>>,
    /// A copy of the recorded machine's `/proc/kallsyms` (`--kallsyms`).
    pub kallsyms: Option<PathBuf>,
    /// The recorded kernel's file with symbols (`--vmlinux`).
    pub vmlinux: Option<PathBuf>,
    /// Where results are kept from one run to the next; `None` keeps nothing (`--no-cache`).
    pub cache: Option<PathBuf>,
    /// Who asks for names ([`Depth::Names`]) finds them himself: a few at a time, for ever, and to wake other
    /// threads for them would cost more than the names.
    ///
    /// [`Depth::Names`]: super::Depth::Names
    pub alone: bool,
    /// Code that no symbol names is called by its module and the start of its function, or by its section;
    /// otherwise it has no name, as in `perf script`.
    pub placeholders: bool,
    /// Whether processes and kernel of this machine may be those of the recording.
    pub live: bool,
}

/// The cache by build-id that the command line names.
static CHOSEN: OnceLock<PathBuf> = OnceLock::new();

/// Names the cache by build-id, over what the environment says; the first to do so is heeded.
pub fn choose_build_id_folder(folder: PathBuf) {
    let _ = CHOSEN.set(folder);
}

/// The cache by build-id that is written: what was chosen, `PERF_BUILDID_DIR`, `~/.debug`.
pub(super) fn build_id_folder() -> Option<PathBuf> {
    let from_home = || home().map(|home| home.join(".debug"));
    CHOSEN.get().cloned().or_else(|| folder("PERF_BUILDID_DIR")).or_else(from_home)
}

/// Whether the environment names the cache by build-id.
pub fn names_build_id_folder() -> bool {
    folder("PERF_BUILDID_DIR").is_some()
}

/// An absolute path that the environment holds.
fn folder(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// The home folder, if it is there: none is made for a user without one (`HOME=/nonexistent`).
fn home() -> Option<PathBuf> {
    folder("HOME").filter(|home| home.is_dir())
}

impl Options {
    /// Where a file of the recorded machine lies on this one.
    pub fn below_symfs(&self, path: &Path) -> PathBuf {
        let below = |symfs: &PathBuf| symfs.join(path.strip_prefix("/").unwrap_or(path));
        self.symfs.as_ref().map_or_else(|| path.to_owned(), below)
    }

    /// The usual places: `/usr/lib/debug`, `~/.debug`, `$XDG_CACHE_HOME/pmc` or `~/.cache/pmc`.
    pub fn from_environment() -> Self {
        let home = home();
        let cache_home = folder("XDG_CACHE_HOME").or_else(|| home.as_ref().map(|home| home.join(".cache")));
        let mut build_id_caches: Vec<PathBuf> = Vec::new();
        build_id_caches.extend(build_id_folder());
        build_id_caches.extend(home.as_ref().map(|home| home.join(".debug")));
        build_id_caches.extend(cache_home.as_ref().map(|cache| cache.join("perf/buildid")));
        // The first is usually the second.
        build_id_caches.dedup();
        Self {
            symfs: None,
            debug_dirs: vec!["/usr/lib/debug".into()],
            build_id_caches,
            debuginfod_cache: debuginfod::cache(&folder),
            debuginfod: None,
            kallsyms: None,
            vmlinux: None,
            cache: cache_home.map(|cache| cache.join("pmc")),
            alone: false,
            placeholders: true,
            live: true,
        }
    }
}
