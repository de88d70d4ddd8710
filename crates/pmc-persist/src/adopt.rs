//! `pmc persist adopt`: asks a running recorder to hand its events over to the holder, and waits for the
//! handover.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use pmc_recording::persistent::client::{ask, find};
use pmc_recording::persistent::message::HolderRequest;
use pmc_recording::recording::handover;
use pmc_sys::error::{Error, Result, say};
use pmc_sys::host::Host;
use pmc_sys::sys::signal;
use pmc_text::text::shell_word;

/// Maximum time for the handover.
const PATIENCE: Duration = Duration::from_secs(10);

/// Makes a recorder hand over its events, and renames the new entry to `name`.
pub(super) fn adopt(name: &str, pid: u32, host: &Host) -> Result<()> {
    let refused = |why: &str| Error::new(format!("process {pid} has no events to hand over")).why(why);
    if find(name, host).is_ok() {
        return Err(Error::usage(format!("a persistent event named {name} already exists"))
            .try_this(format!("use another name, or first: pmc persist rm {name}")));
    }
    // The pidfd continues to refer to the same process, even if its pid is reused.
    let process = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let process = process.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    let Some(process) = process.filter(|_| blocks_handover_signal(host, pid)) else {
        return Err(refused("it is not a pmc record or pmc stat process, or it has ended")
            .try_this("pgrep -af 'pmc (record|stat)'"));
    };
    check_same_holder(pid, host)?;
    let sent = pidfd_send_signal(&process, Signal::USR1);
    sent.map_err(|error| Error::io(format!("asking process {pid}"), error))?;
    let (given, begun) = (handover::names(pid), Instant::now());
    let (directory, entry) = loop {
        // Check whether the process exists before looking up the entries, since a recorder publishes its
        // events before it exits.
        let is_there = blocks_handover_signal(host, pid);
        if let Some(found) = given.iter().find_map(|given| find(given, host).ok()) {
            break found;
        }
        if begun.elapsed() > PATIENCE || !is_there {
            return Err(
                refused("see its own message; another adopt may have run first").try_this("pmc persist list")
            );
        }
        sleep(Duration::from_millis(10));
    };
    // Look up the entry by its original name, so that only one of two commands that adopt the same events can
    // rename it.
    let given = entry.definition.name.clone();
    let renamed = ask(&directory, &HolderRequest::Rename { entry: given.clone(), name: name.to_owned() });
    if let Err(error) = renamed {
        return Err(match find(&given, host) {
            Ok(_) => error.why(format!("the events are already held as {given}")),
            Err(_) => {
                error.why("another pmc persist adopt gave them a different name").try_this("pmc persist list")
            }
        });
    }
    say::note(format!("{name} is held: {}, id {}", entry.definition.event, entry.id));
    Ok(())
}

/// Checks that the recorder uses the same holder as this process. Called before the signal is sent, so that a
/// refusal does not affect the recorder.
fn check_same_holder(pid: u32, host: &Host) -> Result<()> {
    let (theirs, ours) = (host.run_directory_of(pid), host.own_run_directory());
    let same_user = host.owner(pid) == Some(rustix::process::geteuid().as_raw());
    if same_user && theirs.is_some() && theirs == ours {
        return Ok(());
    }
    let error = Error::new(format!("process {pid} does not hand its events over to this user's holder"));
    Err(match (same_user, theirs) {
        (_, None) => {
            error.why("that process has no runtime directory (XDG_RUNTIME_DIR), or you do not have permission to inspect the process")
        }
        (false, Some(theirs)) => {
            let user = host.owner(pid).map_or_else(|| "its user".to_owned(), |uid| format!("#{uid}"));
            error
                .why(format!("the recording belongs to another user, and uses another holder, at {}", theirs.display()))
                .try_this(format!(
                    "as that user: sudo -u {user} PMC_PERSISTENT_DIR={} pmc persist adopt NAME --from {pid}",
                    shell_word(&theirs)
                ))
        }
        (true, Some(theirs)) => error
            .why(format!("the recording uses another holder, at {}", theirs.display()))
            .try_this(format!(
                "PMC_PERSISTENT_DIR={} pmc persist adopt NAME --from {pid}",
                shell_word(&theirs)
            )),
    })
}

/// Whether a process handles SIGUSR1, as `pmc record` and `pmc stat` do. Any other process would be killed by
/// the signal.
fn blocks_handover_signal(host: &Host, pid: u32) -> bool {
    let is_perf = |file: fs::DirEntry| {
        fs::read_link(file.path()).is_ok_and(|to| to.as_os_str() == "anon_inode:[perf_event]")
    };
    let descriptors = fs::read_dir(host.path(format!("/proc/{pid}/fd"))).into_iter().flatten().flatten();
    let status = host.text(format!("/proc/{pid}/status")).unwrap_or_default();
    let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
    let blocked = blocked.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    blocked >> (signal::USR1 - 1) & 1 == 1 && descriptors.into_iter().any(is_perf)
}
