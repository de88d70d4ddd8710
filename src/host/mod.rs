//! The machine as values: what `/proc` and `/sys` say, read from any root directory.
//!
//! A [`Host`] is rooted at `/` in life and at a saved tree in tests. Each part is read when it is first
//! asked for and kept, so that a short run pays only for what it uses. Decides nothing about
//! events; hands on plain values.

pub mod cgroup;
pub mod cpu;
pub mod cpulist;
pub mod holders;
pub mod maps;
pub mod pcp_agent;
pub mod persistent;
pub mod pmu;
pub mod process;
pub mod settings;
pub mod tracepoint;
pub mod tracer;
pub mod tracing;

use std::path::{Path, PathBuf};

pub use cpulist::CpuList;

use crate::abi::Attr;
use crate::sys::pfm::Library;

/// The machine, or a saved picture of one.
#[derive(Debug)]
pub struct Host {
    root: PathBuf,
    /// File systems of the machine that are to be found elsewhere: where they belong, and where they are.
    moved: Vec<(&'static str, PathBuf)>,
    /// Where programs keep the user's data (`$XDG_DATA_HOME`); `None` for saved machines, which have no user.
    data_home: Option<PathBuf>,
}

/// Environment variables, perf's, that name the folder that stands in place of a file system.
const MOVED: [(&str, &str); 2] = [("SYSFS_PATH", "/sys"), ("PROCFS_PATH", "/proc")];

impl Host {
    /// This machine; `/sys` and `/proc` are where `SYSFS_PATH` and `PROCFS_PATH` say, if they do.
    pub fn live() -> Self {
        let moved = MOVED.iter().filter_map(|(variable, place)| {
            let folder = std::env::var_os(variable).filter(|folder| !folder.is_empty())?;
            Some((*place, folder.into()))
        });
        let named =
            |variable| std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
        let data_home = named("XDG_DATA_HOME").or_else(|| Some(named("HOME")?.join(".local/share")));
        Self { root: "/".into(), moved: moved.collect(), data_home }
    }

    /// The machine whose `/proc` and `/sys` are below `root`.
    pub fn rooted(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), moved: Vec::new(), data_home: None }
    }

    /// What libpfm4 makes of the name of an event: a request, or why there is none. `None` where the library
    /// is not installed, and for a machine that is saved or played: the library sees the one that runs.
    pub fn libpfm(&self, name: &str) -> Option<Result<Attr, String>> {
        Some(Library::get().filter(|_| self.is_live())?.request(name))
    }

    /// Whether this is the machine that runs, with nothing in place of its files.
    fn is_live(&self) -> bool {
        self.moved.is_empty() && self.root == Path::new("/")
    }

    /// The folder of the tables of events that the user imported; `None` where nothing says which it is.
    pub fn imported_events(&self) -> Option<PathBuf> {
        Some(self.data_home.as_ref()?.join("pmc/events"))
    }

    /// Where an absolute path of the machine is to be found.
    pub fn path(&self, absolute: impl AsRef<Path>) -> PathBuf {
        let absolute = absolute.as_ref();
        for (place, folder) in &self.moved {
            if let Ok(below) = absolute.strip_prefix(place) {
                return folder.join(below);
            }
        }
        self.root.join(absolute.strip_prefix("/").unwrap_or(absolute))
    }

    /// The content of a small text file without the newline at its end; `None` if it cannot be read.
    pub fn text(&self, absolute: impl AsRef<Path>) -> Option<String> {
        let text = std::fs::read_to_string(self.path(absolute)).ok()?;
        Some(text.trim_end_matches(['\n', '\0']).to_owned())
    }

    /// The number in a small file; `None` if it cannot be read or is none.
    pub fn number<T: std::str::FromStr>(&self, absolute: impl AsRef<Path>) -> Option<T> {
        self.text(absolute)?.trim().parse().ok()
    }

    /// The names of the running kernel, a line each ([`KallsymsLine`](crate::abi::KallsymsLine)); `None`
    /// where it shows none.
    pub fn kallsyms(&self) -> Option<Vec<u8>> {
        std::fs::read(self.path("/proc/kallsyms")).ok().filter(|text| !text.is_empty())
    }

    /// Online CPUs: those of `/sys/devices/system/cpu/online`, or of `/proc/stat` where `/sys` is not
    /// mounted; empty where both are missing.
    pub fn online_cpus(&self) -> CpuList {
        let listed = self.text("/sys/devices/system/cpu/online").and_then(|text| text.parse().ok());
        listed.unwrap_or_else(|| {
            let rows = self.text("/proc/stat").unwrap_or_default();
            let number = |row: &str| row.strip_prefix("cpu")?.split(' ').next()?.parse().ok();
            rows.lines().filter_map(number).collect()
        })
    }
}

/// A saved CPU of `tests/data/cpus`: its `/proc/cpuinfo`, its topology, and the PMUs of its kernel.
#[cfg(test)]
#[allow(dead_code, reason = "for the tests of every floor above")]
pub(crate) fn saved_cpu(name: &str) -> Host {
    Host::rooted(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/cpus").join(name))
}

/// A saved machine of `tests/data/host`.
#[cfg(test)]
pub(crate) fn saved(name: &str) -> Host {
    Host::rooted(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/host").join(name))
}
