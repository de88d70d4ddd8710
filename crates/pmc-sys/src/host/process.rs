//! Processes and threads: a snapshot from `/proc`.
//!
//! Any of them may be gone when the result is used. Callers must not treat a vanished thread as an error.

use super::Host;

/// A thread: its ID, its process, and its name (unsanitised).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadInfo {
    /// Thread ID; equal to `pid` for the first thread.
    pub tid: u32,
    /// Process ID (thread group ID).
    pub pid: u32,
    /// `comm`: at most 15 bytes, any content.
    pub comm: String,
}

impl Host {
    /// The threads of a process, ascending; `None` if the process does not exist.
    ///
    /// Rescans until no new thread appears, so that threads started meanwhile are not missed.
    pub fn threads(&self, pid: u32) -> Option<Vec<ThreadInfo>> {
        let folder = self.path(format!("/proc/{pid}/task"));
        let mut seen: Vec<u32> = Vec::new();
        loop {
            let before = seen.len();
            let entries = std::fs::read_dir(&folder).ok()?;
            seen.extend(entries.flatten().filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok()));
            seen.sort_unstable();
            seen.dedup();
            if seen.len() == before || before > 0 && seen.len() < before + before / 8 {
                break;
            }
        }
        if seen.is_empty() {
            return None;
        }
        Some(seen.into_iter().map(|tid| ThreadInfo { tid, pid, comm: self.comm(tid) }).collect())
    }

    /// The thread with this ID; `None` if there is none.
    pub fn thread(&self, tid: u32) -> Option<ThreadInfo> {
        let status = self.bytes(format!("/proc/{tid}/status"))?;
        let pid = field(&status, "Tgid:")?.parse().ok()?;
        Some(ThreadInfo { tid, pid, comm: self.comm(tid) })
    }

    /// Whether a thread with this ID exists and is not a zombie.
    pub fn lives(&self, tid: u32) -> bool {
        self.bytes(format!("/proc/{tid}/status"))
            .is_some_and(|status| !field(&status, "State:").is_some_and(|s| s.starts_with(['Z', 'X'])))
    }

    /// All processes, ascending.
    pub fn processes(&self) -> Vec<u32> {
        let mut pids: Vec<u32> = std::fs::read_dir(self.path("/proc"))
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|e| e.file_name().to_str()?.parse().ok())
            .collect();
        pids.sort_unstable();
        pids
    }

    /// The real user of a process; `None` if the process does not exist.
    pub fn owner(&self, pid: u32) -> Option<u32> {
        let status = self.bytes(format!("/proc/{pid}/status"))?;
        field(&status, "Uid:")?.split_whitespace().next()?.parse().ok()
    }

    /// Whether the task has a handler for the signal.
    pub fn catches(&self, tid: u32, signal: i32) -> bool {
        let status = self.bytes(format!("/proc/{tid}/status")).unwrap_or_default();
        let mask = field(&status, "SigCgt:").and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
    }

    /// The parent process; `None` if the process does not exist.
    pub fn parent(&self, pid: u32) -> Option<u32> {
        self.stat_field(pid, 4)
    }

    /// Whether a process is exiting, is a zombie, or is gone.
    pub fn is_ending(&self, pid: u32) -> bool {
        /// `PF_EXITING` in the kernel's `include/linux/sched.h`.
        const EXITING: u32 = 4;
        self.stat_field(pid, 9).is_none_or(|flags: u32| flags & EXITING != 0)
    }

    /// A field of `/proc/PID/stat` after the name, by its number in proc_pid_stat(5).
    fn stat_field<T: std::str::FromStr>(&self, pid: u32, number: usize) -> Option<T> {
        let stat = self.bytes(format!("/proc/{pid}/stat"))?;
        // `PID (COMM) STATE …`; the name may contain any characters.
        stat.rsplit_once(')')?.1.split_whitespace().nth(number - 3)?.parse().ok()
    }

    /// The name of a user (`/etc/passwd`).
    pub fn user_name(&self, uid: u32) -> Option<String> {
        let passwd = self.bytes("/etc/passwd")?;
        passwd.lines().find_map(|line| {
            let mut fields = line.split(':');
            let (name, id) = (fields.next()?, fields.nth(1)?);
            (id.parse() == Ok(uid)).then(|| name.to_owned())
        })
    }

    /// The ID of a user given by name or number (`/etc/passwd`).
    pub fn user(&self, name: &str) -> Option<u32> {
        if let Ok(uid) = name.parse() {
            return Some(uid);
        }
        let passwd = self.bytes("/etc/passwd")?;
        passwd.lines().find_map(|line| {
            let mut fields = line.split(':');
            (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok()).flatten()
        })
    }

    /// The name of a thread (unsanitised); empty if the thread is gone.
    pub fn comm(&self, tid: u32) -> String {
        let comm = self.bytes(format!("/proc/{tid}/comm")).unwrap_or_default();
        comm.strip_suffix('\n').unwrap_or(&comm).to_owned()
    }

    /// A file that contains names, so its bytes may not be valid UTF-8.
    fn bytes(&self, absolute: impl AsRef<std::path::Path>) -> Option<String> {
        let bytes = std::fs::read(self.path(absolute)).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_threads_are_found() {
        let host = Host::live();
        let pid = std::process::id();
        let threads = host.threads(pid).unwrap();
        assert!(threads.iter().any(|t| t.tid == pid));
        assert_eq!(host.thread(pid).unwrap().pid, pid);
        assert!(host.processes().contains(&pid));
        assert!(host.threads(0).is_none());
    }
}
