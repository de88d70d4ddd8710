//! Who has perf events open: the descriptors of all processes that this user may look into.
//!
//! Receives a [`Host`]; hands on one line a process, and how many processes could not be looked into. The
//! kernel keeps no list of counters' owners, so this is the nearest thing to NetBSD's `PMC_ENABLED`. A
//! descriptor tells that an event is configured, not that it is running.

use super::Host;
use crate::sort;

/// A process with open perf events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Process id.
    pub pid: u32,
    /// Its name, as it is: clean it before printing.
    pub comm: String,
    /// The user it runs as; `None` if it has ended meanwhile.
    pub uid: Option<u32>,
    /// Descriptors that are perf events.
    pub events: u32,
}

/// What the search found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Holders {
    /// By number of events, most first.
    pub processes: Vec<Holder>,
    /// Processes whose descriptors this user may not see.
    pub hidden: u32,
    /// The search ended early: a machine with more descriptors than it looks at.
    pub truncated: bool,
}

/// Descriptors looked at altogether: about half a second's work.
const MOST_DESCRIPTORS: u32 = 200_000;

/// What the link of such a descriptor points to.
const PERF_EVENT: &str = "anon_inode:[perf_event]";

impl Holders {
    /// Looks through `/proc/*/fd`, leaving out the process `except` (ourselves).
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
                found.processes.push(Holder { pid, comm: host.comm(pid), uid: host.owner(pid), events });
            }
            if found.truncated {
                break;
            }
        }
        sort::by_key(&mut found.processes, |holder| (std::cmp::Reverse(holder.events), holder.pid));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn descriptors_are_counted_by_process() {
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

        let found = Holders::find(&Host::rooted(root.path()), 13);
        let counts: Vec<_> = found.processes.iter().map(|h| (h.pid, h.events, h.uid)).collect();
        assert_eq!(counts, [(12, 3, Some(7)), (10, 1, Some(7))]);
        assert_eq!((found.hidden, found.truncated), (0, false));
    }
}
