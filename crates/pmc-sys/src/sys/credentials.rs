//! The credentials of this process: user, capabilities, seccomp, and the limits that affect profiling.
//!
//! Reads them from the calling process, or from the text of a `/proc/PID/status`. `host::settings` determines
//! what they allow, and `counter` explains it to the user.

use std::fs;

use rustix::process::Resource;
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

use super::limits::limit;

/// Capabilities that the kernel's perf code checks (`linux/capability.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum LinuxCapability {
    /// Allows tracing any process, without the access check on the target.
    SysPtrace = 19,
    /// Includes the rights of `CAP_PERFMON`, which does not exist before Linux 5.8.
    SysAdmin = 21,
    /// Allows locking memory beyond `RLIMIT_MEMLOCK` and `perf_event_mlock_kb`.
    IpcLock = 14,
    /// Allows raising hard limits.
    SysResource = 24,
    /// Allows all performance monitoring (Linux 5.8).
    Perfmon = 38,
}

impl LinuxCapability {
    /// Returns the kernel's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::SysPtrace => "CAP_SYS_PTRACE",
            Self::SysAdmin => "CAP_SYS_ADMIN",
            Self::IpcLock => "CAP_IPC_LOCK",
            Self::SysResource => "CAP_SYS_RESOURCE",
            Self::Perfmon => "CAP_PERFMON",
        }
    }

    /// All capabilities that pmc checks.
    pub const ALL: [Self; 5] =
        [Self::Perfmon, Self::SysAdmin, Self::SysPtrace, Self::IpcLock, Self::SysResource];
}

/// The capabilities that pmc may need once all events are open: for the files, memory and symbols of other
/// users' processes and of the kernel, for signals to the command, and for output files in other users'
/// folders.
const KEPT: CapabilitySet = CapabilitySet::DAC_OVERRIDE
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::CHOWN)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::CHECKPOINT_RESTORE)
    .union(CapabilitySet::SYSLOG)
    .union(CapabilitySet::SYS_RAWIO)
    .union(CapabilitySet::SYS_RESOURCE);

/// Gives up the calling thread's capabilities that are not needed once all events are open. Threads that it
/// starts later inherit the rest. Errors are ignored, because pmc works with too many capabilities, too.
pub fn keep_for_reading() {
    if let Ok(sets) = capabilities(None) {
        let [effective, permitted, inheritable] =
            [sets.effective, sets.permitted, sets.inheritable].map(|set| set & KEPT);
        let _ = set_capabilities(None, CapabilitySets { effective, permitted, inheritable });
    }
}

/// How seccomp restricts the process (`seccomp(2)`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Seccomp {
    /// No restriction.
    #[default]
    Off,
    /// Allows `read`, `write`, `_exit` and `sigreturn` only.
    Strict,
    /// A filter checks each call. The default filter of containers makes `perf_event_open` fail with EPERM.
    Filter,
}

/// The credentials of the measuring process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Credentials {
    /// Effective user id.
    pub uid: u32,
    /// Bitmask of effective capabilities (`CapEff`).
    pub capabilities: u64,
    /// Seccomp mode.
    pub seccomp: Seccomp,
    /// Whether the process is in a user namespace other than the initial one. The kernel's perf code checks
    /// capabilities only in the initial one.
    pub user_namespace: bool,
}

impl Credentials {
    /// Reads the credentials of the calling process. Without `/proc`, assumes that it has no capabilities.
    pub fn own() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let uid_map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
        let mut own = Self::from_status(&status, &uid_map);
        own.uid = rustix::process::geteuid().as_raw();
        own
    }

    /// Parses the contents of `/proc/PID/status` and `/proc/PID/uid_map` (`proc(5)`).
    ///
    /// The initial user namespace maps every id to itself: `0 0 4294967295`.
    pub(crate) fn from_status(status: &str, uid_map: &str) -> Self {
        let field = |name: &str| {
            status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim))
        };
        Self {
            uid: field("Uid").and_then(|ids| ids.split_whitespace().nth(1)?.parse().ok()).unwrap_or(u32::MAX),
            capabilities: field("CapEff").and_then(|hex| u64::from_str_radix(hex, 16).ok()).unwrap_or(0),
            seccomp: match field("Seccomp") {
                Some("1") => Seccomp::Strict,
                Some("2") => Seccomp::Filter,
                _ => Seccomp::Off,
            },
            user_namespace: !uid_map.trim().is_empty()
                && uid_map.split_whitespace().ne(["0", "0", "4294967295"]),
        }
    }

    /// Whether the capability is effective in the process's own user namespace.
    pub fn has(&self, capability: LinuxCapability) -> bool {
        self.capabilities >> capability as u8 & 1 == 1
    }

    /// Whether the kernel ignores `perf_event_paranoid` for this process: `CAP_PERFMON` or `CAP_SYS_ADMIN`
    /// in the initial user namespace.
    pub fn perfmon(&self) -> bool {
        !self.user_namespace && (self.has(LinuxCapability::Perfmon) || self.has(LinuxCapability::SysAdmin))
    }

    /// Whether the kernel lets this process lock ring buffer memory beyond the limits.
    pub fn ipc_lock(&self) -> bool {
        !self.user_namespace && self.has(LinuxCapability::IpcLock)
    }
}

/// Resource limits that affect a profiler; `None` means unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Soft limit on open files.
    pub open_files: Option<u64>,
    /// Hard limit on open files.
    pub open_files_most: Option<u64>,
    /// Limit on locked memory, in bytes.
    pub locked_memory: Option<u64>,
}

impl Limits {
    /// Reads the limits of the calling process. A limit that cannot be read counts as unlimited.
    pub fn own() -> Self {
        let (files, locked) = (limit(Resource::Nofile).ok(), limit(Resource::Memlock).ok());
        Self {
            open_files: files.as_ref().and_then(|files| files.current),
            open_files_most: files.as_ref().and_then(|files| files.maximum),
            locked_memory: locked.and_then(|locked| locked.current),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tpmc\nUid:\t1000\t1000\t1000\t1000\nCapEff:\t0000004000004000\nSeccomp:\t2\nSeccomp_filters:\t1\n";

    #[test]
    fn capabilities_are_parsed_bit_by_bit() {
        let who = Credentials::from_status(STATUS, "         0          0 4294967295\n");
        assert_eq!((who.uid, who.seccomp, who.user_namespace), (1000, Seccomp::Filter, false));
        assert!(who.has(LinuxCapability::Perfmon) && who.has(LinuxCapability::IpcLock));
        assert!(!who.has(LinuxCapability::SysAdmin));
        assert!(who.perfmon() && who.ipc_lock());
    }

    #[test]
    fn capabilities_of_a_child_user_namespace_do_not_count() {
        let who = Credentials::from_status(STATUS, "0 1000 1\n");
        assert!(who.user_namespace && who.has(LinuxCapability::Perfmon) && !who.perfmon() && !who.ipc_lock());
    }

    #[test]
    fn empty_status_is_unprivileged() {
        let who = Credentials::from_status("", "");
        assert_eq!((who.uid, who.capabilities, who.perfmon()), (u32::MAX, 0, false));
    }
}
