//! Processes and threads: a snapshot from `/proc`.
//!
//! A process or thread may have ended by the time a caller uses the result. Callers must not treat this as an
//! error.

use super::Host;

/// A thread: its ID, its process, and its name, which must be cleaned before it is printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadInfo {
    /// Thread ID; equal to `pid` for the first thread.
    pub tid: u32,
    /// Process ID (thread group ID).
    pub pid: u32,
    /// `comm`: at most 15 bytes, any content.
    pub comm: String,
}

/// The system call and the registers of a blocked thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockedAt {
    /// Number and arguments of the system call; `None` if the thread is blocked elsewhere, as in a page
    /// fault.
    pub call: Option<(u64, [u64; 6])>,
    /// Stack pointer.
    pub sp: u64,
    /// Instruction pointer: the instruction after the system call.
    pub ip: u64,
}

impl Host {
    /// What a thread is blocked in; `None` if the thread is running, does not exist, or may not be
    /// examined. Requires permission to trace the process (`proc_pid_syscall(5)`).
    pub fn blocked_at(&self, tid: u32) -> Option<BlockedAt> {
        let line = self.bytes(format!("/proc/{tid}/syscall"))?;
        // `NUMBER ARGUMENT… SP IP`, `-1 SP IP` outside of system calls, or `running`.
        let (number, words) = line.split_once(' ')?;
        let words: Option<Vec<u64>> = words
            .split_whitespace()
            .map(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok())
            .collect();
        let words = words?;
        let (&[sp, ip], arguments) = words.split_last_chunk().map(|(rest, last)| (last, rest))?;
        let call = number.parse().ok().zip(arguments.try_into().ok());
        Some(BlockedAt { call, sp, ip })
    }

    /// The threads of a process, ascending; `None` if the process does not exist.
    ///
    /// Rescans until no new thread appears, so that threads started in the meantime are not missed.
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

    /// The thread with this ID; `None` if the thread does not exist.
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

    /// The real user ID of a process; `None` if the process does not exist.
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

    /// Whether a process is exiting, is a zombie, or no longer exists.
    pub fn is_ending(&self, pid: u32) -> bool {
        /// `PF_EXITING` in the kernel's `include/linux/sched.h`.
        const EXITING: u32 = 4;
        self.stat_field(pid, 9).is_none_or(|flags: u32| flags & EXITING != 0)
    }

    /// A field of `/proc/PID/stat` after the name, by its number in proc_pid_stat(5).
    fn stat_field<T: std::str::FromStr>(&self, pid: u32, number: usize) -> Option<T> {
        let stat = self.bytes(format!("/proc/{pid}/stat"))?;
        // `PID (COMM) STATE …`, where the name may contain any characters.
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

    /// The name of a thread, which must be cleaned before it is printed; empty if the thread no longer
    /// exists.
    pub fn comm(&self, tid: u32) -> String {
        let comm = self.bytes(format!("/proc/{tid}/comm")).unwrap_or_default();
        comm.strip_suffix('\n').unwrap_or(&comm).to_owned()
    }

    /// The command line of a process, as words; `None` if it cannot be read.
    pub fn command_line(&self, pid: u32) -> Option<Vec<Vec<u8>>> {
        let line = std::fs::read(self.path(format!("/proc/{pid}/cmdline"))).ok()?;
        let line = line.strip_suffix(b"\0").unwrap_or(&line);
        Some(line.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect())
    }

    /// The path of the program that a process executes; `None` if it cannot be read.
    pub fn executable(&self, pid: u32) -> Option<String> {
        let path = std::fs::read_link(self.path(format!("/proc/{pid}/exe"))).ok()?;
        Some(path.to_string_lossy().into_owned())
    }

    /// The file to which a descriptor of a process refers, as a path or in a form such as `pipe:[1234]`;
    /// `None` if the descriptor is closed or may not be examined.
    pub fn descriptor(&self, pid: u32, fd: u32) -> Option<String> {
        let target = std::fs::read_link(self.path(format!("/proc/{pid}/fd/{fd}"))).ok()?;
        Some(target.to_string_lossy().into_owned())
    }

    /// The open descriptors of a process, in ascending order; empty if they may not be examined.
    pub fn descriptors(&self, pid: u32) -> Vec<u32> {
        let folder = std::fs::read_dir(self.path(format!("/proc/{pid}/fd")));
        let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse().ok();
        let mut all: Vec<u32> = folder.into_iter().flatten().flatten().filter_map(number).collect();
        all.sort_unstable();
        all
    }

    /// Reads a file that contains names, which may not be valid UTF-8.
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

    #[test]
    fn blocked_threads_have_a_call_or_only_registers() {
        let root = tempfile::tempdir().expect("a folder");
        let blocked = |line: &str| {
            let thread = root.path().join("proc/7");
            std::fs::create_dir_all(&thread).expect("a folder");
            std::fs::write(thread.join("syscall"), line).expect("a file");
            Host::rooted(root.path()).blocked_at(7)
        };
        let call = "202 0x55a2378730c0 0x80 0x2 0x0 0x0 0x0 0x7ffd 0x7f2f\n";
        let arguments = [0x55a2_3787_30c0, 0x80, 2, 0, 0, 0];
        let wanted = BlockedAt { call: Some((202, arguments)), sp: 0x7ffd, ip: 0x7f2f };
        assert_eq!(blocked(call), Some(wanted));
        assert_eq!(blocked("-1 0x7ffd 0x7f2f\n"), Some(BlockedAt { call: None, ..wanted }));
        for line in ["running\n", "", "202 0x1\n", "202 7 8 9 10 11 12 13 14\n"] {
            assert_eq!(blocked(line), None, "{line}");
        }
    }
}
