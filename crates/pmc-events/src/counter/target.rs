//! Targets to count: a command, threads, CPUs or cgroups, resolved once from the user's arguments.
//!
//! Takes pids, users and names; returns threads, the [`TargetSlot`]s of counters, and open cgroup
//! directories.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

use pmc_sys::abi::Attr;
use pmc_sys::abi::attr::Flag;
use pmc_sys::host::process::ThreadInfo;
use pmc_sys::host::{CpuList, Host};
use pmc_sys::sys::perf::{EventFd, OpenTarget};

/// The slot of one counter: a thread, a CPU, or a thread while it runs on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TargetSlot {
    /// The thread; 0 is the thread that opens the counter. `None` means everything on the CPU.
    pub tid: Option<u32>,
    /// The CPU; `None` means any CPU on which the thread runs.
    pub cpu: Option<u32>,
}

impl TargetSlot {
    /// The calling thread on any CPU, used to test whether events can be opened.
    pub const OURSELVES: Self = Self { tid: Some(0), cpu: None };

    /// Returns the target arguments for `perf_event_open(2)`. A cgroup's tasks can only be counted on a CPU.
    /// Returns `None` if the slot has neither a thread nor a CPU.
    pub(super) fn target(self, cgroup: Option<&TargetCgroup>) -> Option<OpenTarget<'_>> {
        Some(match (self.tid, self.cpu, cgroup) {
            (_, Some(cpu), Some(cgroup)) => OpenTarget::CgroupOnCpu(cgroup.as_fd(), cpu),
            (Some(tid), Some(cpu), None) => OpenTarget::TaskOnCpu(tid, cpu),
            (Some(tid), None, _) => OpenTarget::Task(tid),
            (None, Some(cpu), None) => OpenTarget::Cpu(cpu),
            (None, None, _) => return None,
        })
    }

    /// Checks that the kernel accepts this request in this slot. Opens the event disabled, then closes it.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub(super) fn opens(self, attr: &Attr) -> io::Result<()> {
        let mut attr = attr.clone();
        attr.set(Flag::Disabled, true);
        attr.set(Flag::EnableOnExec, false);
        let target = self.target(None).ok_or(io::ErrorKind::InvalidInput)?;
        EventFd::open(&attr, target, None).map(drop)
    }
}

/// Reasons why a target cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// No process has this ID.
    #[error("no process {0}")]
    NoProcess(u32),
    /// No thread has this ID.
    #[error("no thread {0}")]
    NoThread(u32),
    /// The user exists but has no processes.
    #[error("user {0} has no processes")]
    IdleUser(String),
    /// The user does not exist.
    #[error("no user `{0}`")]
    NoUser(String),
    /// A cgroup's directory cannot be opened.
    #[error("opening cgroup `{name}` at {}", path.display())]
    Cgroup {
        /// The cgroup's name, as typed.
        name: String,
        /// The path that pmc tried.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// No cgroup hierarchy that supports perf events is mounted.
    #[error("no cgroup hierarchy for perf events is mounted")]
    NoHierarchy,
    /// The online CPUs cannot be determined.
    #[error("cannot list the online CPUs: neither /sys/devices/system/cpu/online nor /proc/stat is readable")]
    UnknownCpus,
    /// A CPU is not online.
    #[error("CPU {missing} is not online; the online CPUs are {online}")]
    NoCpu {
        /// The requested CPUs that are not online.
        missing: CpuList,
        /// The online CPUs.
        online: CpuList,
    },
}

/// The threads of these processes. It is not an error if a process has just exited.
///
/// # Errors
/// Fails if a process never existed or cannot be examined.
pub fn threads_of_processes(host: &Host, pids: &[u32]) -> Result<Vec<ThreadInfo>, TargetError> {
    let mut all = Vec::new();
    for &pid in pids {
        all.extend(host.threads(pid).ok_or(TargetError::NoProcess(pid))?);
    }
    Ok(sorted(all))
}

/// All threads of these processes and of their current descendants.
///
/// # Errors
/// Fails if a process does not exist. The error names it.
pub fn threads_of_families(host: &Host, pids: &[u32]) -> Result<Vec<ThreadInfo>, TargetError> {
    let mut all = threads_of_processes(host, pids)?;
    for pid in &families(host, pids)[pids.len()..] {
        // A child may have exited in the meantime, which is not an error.
        all.extend(host.threads(*pid).unwrap_or_default());
    }
    Ok(sorted(all))
}

/// Returns these processes, followed by their current descendants.
pub fn families(host: &Host, pids: &[u32]) -> Vec<u32> {
    let parents: Vec<(u32, u32)> =
        host.processes().into_iter().filter_map(|pid| Some((pid, host.parent(pid)?))).collect();
    let mut family = pids.to_vec();
    let mut at = 0;
    while let Some(&parent) = family.get(at) {
        at += 1;
        for (pid, _) in parents.iter().filter(|(_, own)| *own == parent) {
            if !family.contains(pid) {
                family.push(*pid);
            }
        }
    }
    family
}

/// The threads with these IDs.
///
/// # Errors
/// Fails if a thread does not exist. The error names it.
pub fn threads(host: &Host, tids: &[u32]) -> Result<Vec<ThreadInfo>, TargetError> {
    let found: Result<Vec<_>, _> =
        tids.iter().map(|&tid| host.thread(tid).ok_or(TargetError::NoThread(tid))).collect();
    Ok(sorted(found?))
}

/// The threads of all processes of a user, given by name or number.
///
/// # Errors
/// Fails if the user does not exist or has no processes.
pub fn threads_of_user(host: &Host, user: &str) -> Result<Vec<ThreadInfo>, TargetError> {
    let uid = host.user(user).ok_or_else(|| TargetError::NoUser(user.to_owned()))?;
    let all: Vec<ThreadInfo> = host
        .processes()
        .into_iter()
        .filter(|&pid| pid != std::process::id() && host.owner(pid) == Some(uid))
        .filter_map(|pid| host.threads(pid))
        .flatten()
        .collect();
    if all.is_empty() { Err(TargetError::IdleUser(user.to_owned())) } else { Ok(sorted(all)) }
}

/// The threads of every process except pmc.
pub fn all_threads(host: &Host) -> Vec<ThreadInfo> {
    let pids = host.processes().into_iter().filter(|&pid| pid != std::process::id());
    sorted(pids.filter_map(|pid| host.threads(pid)).flatten().collect())
}

fn sorted(mut threads: Vec<ThreadInfo>) -> Vec<ThreadInfo> {
    threads.sort_by_key(|t| t.tid);
    threads.dedup_by_key(|t| t.tid);
    threads
}

/// Whether any of these threads is alive. Checks from the end of the list, and removes threads that have
/// ended.
pub fn retain_alive(host: &Host, threads: &mut Vec<ThreadInfo>) -> bool {
    while let Some(thread) = threads.last() {
        if host.lives(thread.tid) {
            return true;
        }
        threads.pop();
    }
    false
}

/// Returns the requested CPUs, or all online CPUs if no list is given. Every requested CPU must be online.
///
/// # Errors
/// Fails if a requested CPU is not online, or if the online CPUs are unknown.
pub fn cpus(host: &Host, wanted: Option<&CpuList>) -> Result<CpuList, TargetError> {
    let online = host.online_cpus();
    if online.is_empty() {
        return Err(TargetError::UnknownCpus);
    }
    let Some(wanted) = wanted else { return Ok(online) };
    let missing: CpuList = wanted.iter().filter(|&cpu| !online.contains(cpu)).collect();
    if missing.is_empty() { Ok(wanted.clone()) } else { Err(TargetError::NoCpu { missing, online }) }
}

/// A cgroup whose tasks are measured, with its open directory.
#[derive(Debug)]
pub struct TargetCgroup {
    name: String,
    directory: File,
}

impl TargetCgroup {
    /// Opens the directory of a cgroup, given by its path below the hierarchy's mount point.
    ///
    /// # Errors
    /// Fails if the cgroup does not exist or its directory cannot be opened.
    pub fn open(host: &Host, name: &str) -> Result<Self, TargetError> {
        let path = host.cgroup(name).ok_or(TargetError::NoHierarchy)?;
        match File::open(&path) {
            Ok(directory) => Ok(Self { name: name.to_owned(), directory }),
            Err(source) => Err(TargetError::Cgroup { name: name.to_owned(), path, source }),
        }
    }

    /// The name, as typed.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl AsFd for TargetCgroup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}
