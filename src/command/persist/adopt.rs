//! `pmc persist adopt`: asks a running recorder to hand its events over to the holder, and waits until they
//! are there.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::error::{Error, Result, say};
use crate::host::Host;
use crate::persistent::client::{ask, find};
use crate::persistent::directory::check_name;
use crate::persistent::message::Request;
use crate::recording::handover;
use crate::sys::signal;

/// How long a recorder may take to hand its events over.
const PATIENCE: Duration = Duration::from_secs(10);

/// Has a recorder hand its events over, and calls them so.
pub(super) fn adopt(name: &str, pid: u32, host: &Host) -> Result<()> {
    check_name(name)?;
    let refused = |why: &str| Error::new(format!("process {pid} has no events to hand over")).why(why);
    if find(name, host).is_ok() {
        return Err(Error::usage(format!("a persistent event called {name} is held already"))
            .try_this(format!("another name, or first: pmc persist rm {name}")));
    }
    // The number stands for the same process from here on.
    let process = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let process = process.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    let Some(process) = process.filter(|_| hears(host, pid)) else {
        return Err(refused("it is no pmc record, or it has ended").try_this("pgrep -af 'pmc record'"));
    };
    let sent = pidfd_send_signal(&process, Signal::USR1);
    sent.map_err(|error| Error::io(format!("asking process {pid}"), error))?;
    let (given, begun) = (handover::name(pid), Instant::now());
    let (directory, entry) = loop {
        // In this order: one that has ended has published what it was going to.
        let is_there = hears(host, pid);
        if let Ok(found) = find(&given, host) {
            break found;
        }
        if begun.elapsed() > PATIENCE || !is_there {
            return Err(refused("it has said why, or it publishes where we do not look"));
        }
        sleep(Duration::from_millis(10));
    };
    ask(&directory, &Request::Rename { entry: entry.id.to_string(), name: name.to_owned() })?;
    say::note(format!("{name} is held: {}, id {}", entry.definition.event, entry.id));
    Ok(())
}

/// Whether a process waits for SIGUSR1 in the way of `pmc record`: others would be killed by it.
fn hears(host: &Host, pid: u32) -> bool {
    let is_perf = |file: fs::DirEntry| {
        fs::read_link(file.path()).is_ok_and(|to| to.as_os_str() == "anon_inode:[perf_event]")
    };
    let descriptors = fs::read_dir(host.path(format!("/proc/{pid}/fd"))).into_iter().flatten().flatten();
    let status = host.text(format!("/proc/{pid}/status")).unwrap_or_default();
    let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
    let blocked = blocked.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    blocked >> (signal::USR1 - 1) & 1 == 1 && descriptors.into_iter().any(is_perf)
}
