//! Finds processes with open perf events, from the descriptors of all processes that this user may examine.
//!
//! Reports one entry per process, and the number of processes that could not be examined. The kernel keeps no
//! list of counter owners, so this is the nearest equivalent to NetBSD's `PMC_ENABLED`. A descriptor shows
//! that an event is configured, but not whether it is running.

use super::Host;

/// A process with open perf events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PerfEventProcess {
    /// Process ID.
    pub pid: u32,
    /// The process name, which must be cleaned before it is printed.
    pub comm: String,
    /// The user who runs the process; `None` if the process has ended in the meantime.
    pub uid: Option<u32>,
    /// Number of perf event descriptors.
    pub events: u32,
}

/// Result of the search for such processes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PerfEventProcesses {
    /// The processes, sorted by number of events, largest first.
    pub processes: Vec<PerfEventProcess>,
    /// Number of processes whose descriptors this user may not examine.
    pub hidden: u32,
    /// Whether the search stopped at the limit on descriptors.
    pub truncated: bool,
}

/// Maximum number of descriptors to examine, which takes about half a second.
const MOST_DESCRIPTORS: u32 = 200_000;

/// The link target of a perf event descriptor.
const PERF_EVENT: &str = "anon_inode:[perf_event]";

impl PerfEventProcesses {
    /// Searches `/proc/*/fd`, except for the process `except` (pmc itself).
    pub fn find(host: &Host, except: u32) -> Self {
        let mut found = Self::default();
        let mut left = MOST_DESCRIPTORS;
        for pid in host.processes().into_iter().filter(|&pid| pid != except) {
            let entries = match std::fs::read_dir(host.path(format!("/proc/{pid}/fd"))) {
                Ok(entries) => entries,
                Err(error) => {
                    found.hidden += u32::from(error.kind() == std::io::ErrorKind::PermissionDenied);
                    continue;
                }
            };
            let mut events = 0;
            for entry in entries.flatten() {
                left = left.saturating_sub(1);
                if left == 0 {
                    found.truncated = true;
                    break;
                }
                events +=
                    u32::from(std::fs::read_link(entry.path()).is_ok_and(|to| to.as_os_str() == PERF_EVENT));
            }
            if events > 0 {
                found.processes.push(PerfEventProcess {
                    pid,
                    comm: host.comm(pid),
                    uid: host.owner(pid),
                    events,
                });
            }
            if found.truncated {
                break;
            }
        }
        found.processes.sort_by_key(|holder| (std::cmp::Reverse(holder.events), holder.pid));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn descriptors_are_counted_per_process() {
        let root = tempfile::tempdir().unwrap();
        let process = |pid: u32, links: &[&str]| {
            let fd = root.path().join(format!("proc/{pid}/fd"));
            std::fs::create_dir_all(&fd).unwrap();
            for (number, to) in links.iter().enumerate() {
                symlink(to, fd.join(number.to_string())).unwrap();
            }
            std::fs::write(root.path().join(format!("proc/{pid}/comm")), "per\u{1b}f\n").unwrap();
            std::fs::write(root.path().join(format!("proc/{pid}/status")), "Uid:\t7\t7\t7\t7\n").unwrap();
        };
        process(10, &["/dev/null", PERF_EVENT]);
        process(11, &["/dev/null", "anon_inode:[eventpoll]"]);
        process(12, &[PERF_EVENT, PERF_EVENT, PERF_EVENT]);
        process(13, &[PERF_EVENT]);

        let found = PerfEventProcesses::find(&Host::rooted(root.path()), 13);
        let counts: Vec<_> = found.processes.iter().map(|h| (h.pid, h.events, h.uid)).collect();
        assert_eq!(counts, [(12, 3, Some(7)), (10, 1, Some(7))]);
        assert_eq!((found.hidden, found.truncated), (0, false));
    }
}
