//! Finds the root folder through which a process's files can be opened now, based on its mount namespace.
//!
//! Takes a module with its process and, if recorded, the number of the process's mount namespace. If the
//! recorded process still runs in that namespace, its root is used; otherwise the root of any other process
//! in the namespace, that is, in the same container. Without the number, the pid is trusted.

use std::num::NonZeroU64;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use crate::symbol::module::SymbolModule;
use crate::symbol::options::SymbolOptions;

/// The root folder of a process's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileRoot {
    /// The root of this process.
    Process(u32),
    /// Our own root.
    Own,
    /// Not available, because no process is left in the mount namespace.
    Gone,
}

impl FileRoot {
    /// Determines the root folder for a module's files.
    pub(crate) fn for_module(module: &SymbolModule, options: &SymbolOptions) -> Self {
        if !options.live {
            return Self::Own;
        }
        let by_pid = module.pid.map_or(Self::Own, Self::Process);
        let Some(wanted) = module.mount.map(NonZeroU64::get) else { return by_pid };
        // The process may have exited, and its pid may have been reused.
        match module.pid {
            Some(pid) if namespace(&pid.to_string()) == Some(wanted) => by_pid,
            _ if namespace("self") == Some(wanted) => Self::Own,
            _ => process_in_namespace(wanted).map_or(Self::Gone, Self::Process),
        }
    }

    /// Returns the folder that replaces `/`; `None` for our own.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        match self {
            Self::Process(pid) => Some(format!("/proc/{pid}/root").into()),
            Self::Own | Self::Gone => None,
        }
    }
}

/// Returns the inode number of a process's mount namespace; `None` if the process has exited or access is
/// denied.
fn namespace(process: &str) -> Option<u64> {
    std::fs::metadata(format!("/proc/{process}/ns/mnt")).ok().map(|link| link.ino())
}

/// Time of the last scan, and the oldest process in each namespace, which is the first process of a
/// container.
type NamespaceScan = (Instant, FxHashMap<u64, u32>);

/// The last scan of all processes. It is reused for a while, because a recording with many containers
/// requires a lookup for each of their modules.
static LOOKED: Mutex<Option<NamespaceScan>> = Mutex::new(None);
const A_WHILE: Duration = Duration::from_secs(1);

fn process_in_namespace(wanted: u64) -> Option<u32> {
    let mut looked = LOOKED.lock().unwrap_or_else(PoisonError::into_inner);
    let fresh = looked.as_ref().is_some_and(|(when, _)| when.elapsed() < A_WHILE);
    if !fresh {
        *looked = Some((Instant::now(), oldest_by_namespace()));
    }
    looked.as_ref()?.1.get(&wanted).copied()
}

fn oldest_by_namespace() -> FxHashMap<u64, u32> {
    let mut oldest = FxHashMap::default();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    for pid in processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()) {
        if let Some(number) = namespace(&pid.to_string()) {
            let kept: &mut u32 = oldest.entry(number).or_insert(pid);
            *kept = pid.min(*kept);
        }
    }
    oldest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_is_used_only_in_its_own_mount_namespace() {
        let options = SymbolOptions { live: true, ..SymbolOptions::from_environment() };
        let own = namespace("self").unwrap();
        let module = |pid, mount: Option<u64>| SymbolModule {
            pid,
            mount: mount.and_then(NonZeroU64::new),
            ..SymbolModule::file("/bin/sh")
        };
        let me = std::process::id();
        assert_eq!(FileRoot::for_module(&module(Some(me), None), &options), FileRoot::Process(me));
        assert_eq!(FileRoot::for_module(&module(Some(me), Some(own)), &options), FileRoot::Process(me));
        // For an unused pid in our namespace, pmc uses our own root.
        assert_eq!(FileRoot::for_module(&module(Some(u32::MAX), Some(own)), &options), FileRoot::Own);
        // The inode numbers of namespaces start at 0xf0000000.
        assert_eq!(FileRoot::for_module(&module(Some(me), Some(1)), &options), FileRoot::Gone);
        let elsewhere = SymbolOptions { live: false, ..options };
        assert_eq!(FileRoot::for_module(&module(Some(me), None), &elsewhere), FileRoot::Own);
    }
}
