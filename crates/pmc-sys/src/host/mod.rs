//! Properties of the machine, read from `/proc` and `/sys` below any root directory.
//!
//! A [`Host`] is rooted at `/` in production and at a saved tree in tests. Files are read on demand, so that
//! a short run reads only the files that it needs. This module does not interpret events.

pub(crate) mod cgroup;
pub mod cpu;
pub mod cpulist;
pub mod futex;
pub mod holders;
pub mod maps;
pub mod pcp_agent;
pub mod persistent;
pub mod pmu;
pub mod probe_event;
pub mod process;
pub mod settings;
pub mod tracepoint;
pub mod tracer;
pub(crate) mod tracing;

use std::path::{Path, PathBuf};

pub use cpulist::CpuList;

use crate::abi::Attr;
use crate::sys::pfm::PfmLibrary;
use crate::sys::regular_file::is_ours;

/// The machine, or a saved copy of one.
#[derive(Debug)]
pub struct Host {
    root: PathBuf,
    /// File systems at a non-standard location: standard path and actual path.
    moved: Vec<(&'static str, PathBuf)>,
    /// Directory for the user's data (`$XDG_DATA_HOME`); `None` for saved machines, which have no user.
    data_home: Option<PathBuf>,
}

/// perf's environment variables that override the location of a file system.
const MOVED: [(&str, &str); 2] = [("SYSFS_PATH", "/sys"), ("PROCFS_PATH", "/proc")];

impl Host {
    /// This machine. `SYSFS_PATH` and `PROCFS_PATH` override the locations of `/sys` and `/proc`.
    pub fn live() -> Self {
        let moved = MOVED.iter().filter_map(|(variable, place)| {
            let folder = std::env::var_os(variable).filter(|folder| !folder.is_empty())?;
            Some((*place, folder.into()))
        });
        let named =
            |variable| std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = || named("HOME").filter(|home| is_ours(home));
        let data_home = named("XDG_DATA_HOME").or_else(|| Some(home()?.join(".local/share")));
        let data_home = data_home.filter(|folder| is_ours(folder));
        Self { root: "/".into(), moved: moved.collect(), data_home }
    }

    /// The machine whose `/proc` and `/sys` are below `root`.
    pub fn rooted(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), moved: Vec::new(), data_home: None }
    }

    /// Resolves an event name with libpfm4. Returns a request, or the reason for the failure. Returns `None`
    /// if the library is not installed. Also returns `None` for a saved or simulated machine, because the
    /// library examines the running one.
    pub fn libpfm(&self, name: &str) -> Option<Result<Attr, String>> {
        Some(PfmLibrary::get().filter(|_| self.is_live())?.request(name))
    }

    /// Whether this is the running machine, with `/sys` and `/proc` at their usual locations.
    fn is_live(&self) -> bool {
        self.moved.is_empty() && self.root == Path::new("/")
    }

    /// Sets the user's data directory, which contains imported event tables.
    #[must_use]
    pub fn with_data_home(self, folder: PathBuf) -> Self {
        Self { data_home: Some(folder), ..self }
    }

    /// The directory of imported event tables; `None` if it is unknown.
    pub fn imported_events(&self) -> Option<PathBuf> {
        Some(self.data_home.as_ref()?.join("pmc/events"))
    }

    /// Converts an absolute path on the machine to its actual location.
    pub fn path(&self, absolute: impl AsRef<Path>) -> PathBuf {
        let absolute = absolute.as_ref();
        for (place, folder) in &self.moved {
            if let Ok(below) = absolute.strip_prefix(place) {
                return folder.join(below);
            }
        }
        self.root.join(absolute.strip_prefix("/").unwrap_or(absolute))
    }

    /// The contents of a small text file without the trailing newline; `None` if the file cannot be read.
    pub fn text(&self, absolute: impl AsRef<Path>) -> Option<String> {
        let text = std::fs::read_to_string(self.path(absolute)).ok()?;
        Some(text.trim_end_matches(['\n', '\0']).to_owned())
    }

    /// The number in a small file; `None` if the file cannot be read or does not contain a number.
    pub fn number<T: std::str::FromStr>(&self, absolute: impl AsRef<Path>) -> Option<T> {
        self.text(absolute)?.trim().parse().ok()
    }

    /// The kernel's symbols, one per line ([`KallsymsLine`](crate::abi::KallsymsLine)); `None` if the kernel
    /// does not list any.
    pub fn kallsyms(&self) -> Option<Vec<u8>> {
        std::fs::read(self.path("/proc/kallsyms")).ok().filter(|text| !text.is_empty())
    }

    /// Online CPUs, from `/sys/devices/system/cpu/online`, or from `/proc/stat` if `/sys` is not mounted.
    /// Empty if both are missing.
    pub fn online_cpus(&self) -> CpuList {
        let listed = self.text("/sys/devices/system/cpu/online").and_then(|text| text.parse().ok());
        listed.unwrap_or_else(|| {
            let rows = self.text("/proc/stat").unwrap_or_default();
            let number = |row: &str| row.strip_prefix("cpu")?.split(' ').next()?.parse().ok();
            rows.lines().filter_map(number).collect()
        })
    }
}
