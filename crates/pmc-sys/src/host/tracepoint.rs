//! Kernel tracepoints, from tracefs.
//!
//! Provides names, IDs, and the fields of a tracepoint's record. Errors distinguish a missing mount from
//! missing permission. If tracefs is not mounted and pmc runs as root, pmc mounts tracefs privately.

use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::OnceLock;

use super::{Host, pmu::names_in};
use crate::abi::TracepointField;
use crate::sys::{descriptor, mount};

/// Mount points of tracefs: the current one, and the one below debugfs used before Linux 4.1.
const MOUNTS: [&str; 2] = ["/sys/kernel/tracing/events", "/sys/kernel/debug/tracing/events"];

/// The tracefs of the running machine, once it has been found.
static FOUND: OnceLock<Tracefs> = OnceLock::new();

/// A mounted tracefs.
struct Tracefs {
    /// The directory that contains a directory for each subsystem.
    events: PathBuf,
    /// Keeps this process's private mount alive.
    _mount: Option<OwnedFd>,
}

/// Why a tracepoint could not be looked up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TracepointError {
    /// Tracefs is not mounted at either mount point.
    #[error("tracefs is not mounted")]
    NotMounted,
    /// The directory exists, but this user may not read it.
    #[error("no permission to read {0}")]
    Denied(String),
    /// The tracepoint does not exist.
    #[error("the tracepoint does not exist")]
    Absent,
}

impl TracepointError {
    /// What gives this user access to tracefs; `None` if access is not the problem.
    ///
    /// A mode that lets everybody enter the directories is not enough: since Linux 5.16, only root and one
    /// group may read the files in them (mode 0440).
    pub fn remedy(&self) -> Option<String> {
        let options = || format!("mode=750,gid={}", rustix::process::getegid().as_raw());
        let (what, command) = match self {
            Self::NotMounted => ("mount tracefs", "mount -t tracefs tracefs /sys/kernel/tracing".to_owned()),
            Self::Denied(path) if path.starts_with("/sys/kernel/debug") => (
                "give your group access",
                format!("mount -t tracefs -o {} tracefs /sys/kernel/tracing", options()),
            ),
            Self::Denied(_) => {
                ("give your group access", format!("mount -o remount,{} /sys/kernel/tracing", options()))
            }
            Self::Absent => return None,
        };
        Some(format!("run pmc as root, or {what}: {command}"))
    }
}

impl Host {
    /// The directory in tracefs that contains a directory for each subsystem. If tracefs is not mounted, it
    /// is mounted for this process only, provided that the process has the permission. This mount lasts until
    /// the process ends.
    ///
    /// # Errors
    /// Returns [`TracepointError::NotMounted`] or [`TracepointError::Denied`].
    pub fn tracefs(&self) -> Result<PathBuf, TracepointError> {
        if !self.is_live() {
            return Ok(self.find_tracefs()?.events);
        }
        if let Some(found) = FOUND.get() {
            return Ok(found.events.clone());
        }
        let found = self.find_tracefs()?;
        Ok(FOUND.get_or_init(|| found).events.clone())
    }

    fn find_tracefs(&self) -> Result<Tracefs, TracepointError> {
        let mut denied = None;
        for mount in MOUNTS {
            let path = self.path(mount);
            match std::fs::metadata(&path) {
                Ok(_) => return Ok(Tracefs { events: path, _mount: None }),
                Err(error) if error.kind() == ErrorKind::PermissionDenied => denied = denied.or(Some(mount)),
                Err(_) => {}
            }
        }
        if let Some(path) = denied {
            return Err(TracepointError::Denied(path.to_owned()));
        }
        self.private_tracefs().ok_or(TracepointError::NotMounted)
    }

    /// Mounts tracefs for this process only. `None` for a saved machine, or if the kernel refuses.
    fn private_tracefs(&self) -> Option<Tracefs> {
        let root = self.is_live().then(|| mount::detached("tracefs").ok())??;
        let events = descriptor::path_of(&root).join("events");
        events.is_dir().then_some(Tracefs { events, _mount: Some(root) })
    }

    /// The kernel's ID of a tracepoint. Reads one file.
    ///
    /// # Errors
    /// May fail with any [`TracepointError`].
    pub fn tracepoint_id(&self, system: &str, name: &str) -> Result<u64, TracepointError> {
        let text = self.tracepoint_file(system, name, "id")?;
        text.trim().parse().map_err(|_| TracepointError::Absent)
    }

    /// The subsystems (`sched`, `syscalls` …), sorted.
    ///
    /// # Errors
    /// Returns [`TracepointError::NotMounted`] or [`TracepointError::Denied`].
    pub fn tracepoint_systems(&self) -> Result<Vec<String>, TracepointError> {
        let folder = self.tracefs()?;
        readable(&folder)?;
        let mut names = names_in(&folder);
        names.retain(|name| folder.join(name).is_dir());
        Ok(names)
    }

    /// The tracepoints of a subsystem, sorted; empty if the subsystem does not exist.
    ///
    /// # Errors
    /// Returns [`TracepointError::NotMounted`] or [`TracepointError::Denied`].
    pub fn tracepoint_names(&self, system: &str) -> Result<Vec<String>, TracepointError> {
        let folder = self.tracefs()?;
        if !plain(system) {
            return Ok(Vec::new());
        }
        let folder = folder.join(system);
        if folder.exists() {
            readable(&folder)?;
        }
        let mut names = names_in(&folder);
        // The directory also contains the files `enable` and `filter`.
        names.retain(|name| !matches!(name.as_str(), "enable" | "filter"));
        Ok(names)
    }

    /// All tracepoints as `subsystem:name`. The iterator reads each subsystem on demand.
    ///
    /// # Errors
    /// Returns [`TracepointError::NotMounted`] or [`TracepointError::Denied`].
    pub fn tracepoints(&self) -> Result<impl Iterator<Item = String> + '_, TracepointError> {
        Ok(self.tracepoint_systems()?.into_iter().flat_map(|system| {
            let names = self.tracepoint_names(&system).unwrap_or_default();
            names.into_iter().map(move |name| format!("{system}:{name}"))
        }))
    }

    /// The fields of a tracepoint's record, without the four common ones.
    ///
    /// # Errors
    /// May fail with any [`TracepointError`].
    pub fn tracepoint_fields(
        &self,
        system: &str,
        name: &str,
    ) -> Result<Vec<TracepointField>, TracepointError> {
        let text = self.tracepoint_file(system, name, "format")?;
        Ok(text.lines().filter_map(TracepointField::parse).filter(|field| !field.is_common()).collect())
    }

    fn tracepoint_file(&self, system: &str, name: &str, file: &str) -> Result<String, TracepointError> {
        let folder = self.tracefs()?;
        if !plain(system) || !plain(name) {
            return Err(TracepointError::Absent);
        }
        let path = folder.join(system).join(name).join(file);
        std::fs::read_to_string(&path).map_err(|error| match error.kind() {
            ErrorKind::PermissionDenied => TracepointError::Denied(path.display().to_string()),
            _ => TracepointError::Absent,
        })
    }
}

/// Whether the name is a plain file name, which cannot lead to another directory.
fn plain(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\0'])
}

fn readable(folder: &std::path::Path) -> Result<(), TracepointError> {
    match std::fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            Err(TracepointError::Denied(folder.display().to_string()))
        }
        _ => Ok(()),
    }
}
