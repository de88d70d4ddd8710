//! Performance Co-Pilot on this machine: the path of its lock file for hardware counters, the holders of the
//! lock, and whether its agent (`pmdaperfevent`) is running.
//! All values come from `stat(2)`, `/proc` and the environment. pmc never opens the lock file here, since
//! closing a descriptor would drop this process's lock on it. `counter::reservation` interprets the locks.

use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::Host;

/// The default directory for private files of PCP's agents.
const DEFAULT_PMDAS_DIR: &str = "/var/lib/pcp/pmdas";

/// The agent's process name (`/proc/PID/comm`).
const AGENT: &str = "pmdaperfevent";

/// The daemon that may load the agent as a library instead.
const DAEMON: &str = "pmcd";

/// The path of the lock file of PCP's programs: `perfevent/perflock` below `PCP_PMDAS_DIR`. The file may not
/// exist.
///
/// As in PCP, the variable is taken from the environment, or else from the file in `PCP_CONF`,
/// `$PCP_DIR/etc/pcp.conf` or `/etc/pcp.conf`.
pub fn lock_path(host: &Host, env: impl Fn(&str) -> Option<OsString>) -> PathBuf {
    let dir = env("PCP_PMDAS_DIR").map(PathBuf::from).or_else(|| {
        let conf = match (env("PCP_CONF"), env("PCP_DIR")) {
            (Some(file), _) => PathBuf::from(file),
            (None, Some(dir)) => Path::new(&dir).join("etc/pcp.conf"),
            (None, None) => PathBuf::from("/etc/pcp.conf"),
        };
        pmdas_dir(&std::fs::read(host.path(conf)).ok()?)
    });
    // As in PCP, an empty value means the root directory, and a relative path is relative to the working
    // directory.
    let dir = dir.unwrap_or_else(|| DEFAULT_PMDAS_DIR.into());
    let path = dir.join("perfevent/perflock");
    if dir.is_relative() && !dir.as_os_str().is_empty() { path } else { host.path(path) }
}

/// The value of `PCP_PMDAS_DIR` in the text of a `pcp.conf`; the first assignment wins.
fn pmdas_dir(conf: &[u8]) -> Option<PathBuf> {
    conf.split(|&b| b == b'\n')
        .find_map(|line| line.strip_prefix(b"PCP_PMDAS_DIR="))
        .map(|value| Path::new(OsStr::from_bytes(unquoted(value))).to_owned())
}

/// Like PCP, removes only one pair of quotes and keeps even a trailing space.
fn unquoted(value: &[u8]) -> &[u8] {
    match value {
        [b'"', inner @ .., b'"'] | [b'\'', inner @ .., b'\''] => inner,
        _ => value,
    }
}

/// Identity of a file: device and inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
}

impl From<&Metadata> for FileIdentity {
    fn from(metadata: &Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }
}

impl FileIdentity {
    /// The file in the notation of `/proc/locks`: major and minor number in hexadecimal, inode in decimal.
    fn in_proc_locks(self) -> String {
        let (major, minor) = (rustix::fs::major(self.device), rustix::fs::minor(self.device));
        format!("{major:02x}:{minor:02x}:{}", self.inode)
    }
}

/// A lock that covers byte 0 of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    /// A record lock of the process with this ID.
    Posix(u32),
    /// A lock of an open file description. The kernel does not report the processes that share the
    /// description.
    Description,
}

/// The locks on byte 0 of the file, from `/proc/locks`. The result is empty on file systems whose device
/// numbers in `/proc/locks` differ from `stat(2)` (btrfs, overlayfs); `F_GETLK` still reports one lock.
pub fn locks(host: &Host, file: FileIdentity) -> Vec<Lock> {
    let wanted = file.in_proc_locks();
    let text = host.text("/proc/locks").unwrap_or_default();
    text.lines().filter_map(|line| lock_on(line, &wanted)).collect()
}

/// `7: POSIX  ADVISORY  READ  9892 fe:00:2311 0 0`; waiting locks have `->` after the number.
fn lock_on(line: &str, wanted: &str) -> Option<Lock> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let [_, kind, _advisory, _access, pid, file, first, _last] = words[..] else { return None };
    if file != wanted || first != "0" {
        return None;
    }
    match kind {
        "POSIX" => pid.parse().ok().filter(|&pid| pid > 0).map(Lock::Posix),
        "OFDLCK" => Some(Lock::Description),
        _ => None,
    }
}

/// Processes that have the file open through a descriptor with an OFD lock (`lock:` lines of
/// `/proc/PID/fdinfo`), ascending. Only root sees the descriptors of other users.
pub fn description_holders(host: &Host, path: &Path, file: FileIdentity) -> Vec<u32> {
    let locked = |pid: u32, fd: &OsStr| {
        let info = host.text(Path::new(&format!("/proc/{pid}/fdinfo")).join(fd)).unwrap_or_default();
        info.lines().any(|line| line.starts_with("lock:") && line.contains("OFDLCK"))
    };
    let has_one = |&pid: &u32| {
        open_descriptors(host, pid, path, file).is_some_and(|fds| fds.iter().any(|fd| locked(pid, fd)))
    };
    host.processes().into_iter().filter(has_one).collect()
}

/// A process that disables its counters while another process has reserved them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agent {
    /// The process ID.
    pub pid: u32,
    /// Whether the agent has the lock file open; `None` if its descriptors may not be examined.
    pub watches: Option<bool>,
}

/// The running agents: processes named `pmdaperfevent`, and a `pmcd` that has the lock file open.
pub fn agents(host: &Host, path: &Path, file: Option<FileIdentity>) -> Vec<Agent> {
    let mut agents = Vec::new();
    for pid in host.processes() {
        let name = host.comm(pid);
        if ![AGENT, DAEMON].contains(&name.as_str()) || !host.lives(pid) {
            continue;
        }
        let watches = match file {
            Some(file) => open_descriptors(host, pid, path, file).map(|fds| !fds.is_empty()),
            None => Some(false),
        };
        if name == AGENT || watches == Some(true) {
            agents.push(Agent { pid, watches });
        }
    }
    agents
}

/// The descriptors through which a process has the file open; `None` if they may not be examined.
///
/// Compares the text of the link before calling `stat(2)`, which may block if the descriptor belongs to a
/// dead network file system.
fn open_descriptors(host: &Host, pid: u32, path: &Path, file: FileIdentity) -> Option<Vec<OsString>> {
    let name = path.file_name()?;
    let same = |link: &Path| {
        std::fs::read_link(link).is_ok_and(|target| target.file_name() == Some(name))
            && std::fs::metadata(link).is_ok_and(|metadata| FileIdentity::from(&metadata) == file)
    };
    let entries = std::fs::read_dir(host.path(format!("/proc/{pid}/fd"))).ok()?;
    Some(entries.filter_map(|entry| entry.ok()).filter(|e| same(&e.path())).map(|e| e.file_name()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env<'a>(pairs: &'a [(&str, &str)]) -> impl Fn(&str) -> Option<OsString> + 'a {
        move |name| pairs.iter().find(|(n, _)| *n == name).map(|(_, value)| value.into())
    }

    #[test]
    fn lock_file_is_searched_in_pcp_order() {
        let root = tempfile::tempdir().unwrap();
        let host = Host::rooted(root.path());
        let below = |path: &str| host.path(path);
        assert_eq!(lock_path(&host, env(&[])), below("/var/lib/pcp/pmdas/perfevent/perflock"));

        for (file, dir) in [("etc/pcp.conf", "/c"), ("other/etc/pcp.conf", "/d"), ("my.conf", "/m")] {
            let file = root.path().join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(
                file,
                format!("# PCP_PMDAS_DIR=/no\nPCP_PMDAS_DIR=\"{dir}\"\nPCP_PMDAS_DIR=/late\n"),
            )
            .unwrap();
        }
        assert_eq!(lock_path(&host, env(&[])), below("/c/perfevent/perflock"));
        assert_eq!(lock_path(&host, env(&[("PCP_DIR", "/other")])), below("/d/perfevent/perflock"));
        let conf = [("PCP_DIR", "/other"), ("PCP_CONF", "/my.conf")];
        assert_eq!(lock_path(&host, env(&conf)), below("/m/perfevent/perflock"));
        let all = [("PCP_DIR", "/other"), ("PCP_CONF", "/my.conf"), ("PCP_PMDAS_DIR", "/e")];
        assert_eq!(lock_path(&host, env(&all)), below("/e/perfevent/perflock"));
    }

    #[test]
    fn proc_locks_is_matched_by_device_and_inode() {
        let wanted = FileIdentity { device: rustix::fs::makedev(0xfe, 0), inode: 2311 }.in_proc_locks();
        let of = |line| lock_on(line, &wanted);
        assert_eq!(of("7: POSIX  ADVISORY  READ  9892 fe:00:2311 0 0"), Some(Lock::Posix(9892)));
        assert_eq!(of("8: OFDLCK ADVISORY  WRITE -1 fe:00:2311 0 EOF"), Some(Lock::Description));
        assert_eq!(of("7: POSIX  ADVISORY  READ  9892 fe:00:2311 1 EOF"), None, "byte 0 is free");
        assert_eq!(of("7: POSIX  ADVISORY  READ  9892 fe:00:2312 0 0"), None);
        assert_eq!(of("9: FLOCK  ADVISORY  WRITE 9892 fe:00:2311 0 EOF"), None);
        assert_eq!(of("9: -> POSIX  ADVISORY  WRITE 9892 fe:00:2311 0 EOF"), None, "it only waits");
        assert_eq!(of("garbage"), None);
    }
}
