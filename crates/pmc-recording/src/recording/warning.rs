//! The warnings that several modules have in common. The others are made where the problem is detected.

use pmc_events::counter::rings::RingLimit;
use pmc_sys::error::{Advice, Error, Warning};

/// Only user mode is measured. `doing`: `counting` or `sampling`.
pub fn user_mode_only(doing: &str) -> Warning {
    Warning::note_once(format!("{doing} user mode only (:u): no permission to measure the kernel"))
        .advise("see kernel.perf_event_paranoid")
}

/// The ring buffers have fewer bytes than requested.
pub fn smaller_rings(bytes: &str, asked: &str, limit: RingLimit) -> Warning {
    let (why, advice) = match limit {
        RingLimit::LockedMemory => {
            ("the locked-memory limit is reached", "raise kernel.perf_event_mlock_kb, or ulimit -l".into())
        }
        RingLimit::Memory => (
            "out of memory or address space",
            Advice::options("raise ulimit -v, or use smaller buffers with -m"),
        ),
    };
    Warning::note(format!("ring buffers of {bytes} instead of {asked}: {why}")).advise(advice)
}

pub(super) fn not_handed_over(error: &Error) -> Warning {
    Warning::new(format!("cannot hand over the events (SIGUSR1): {error}"))
}

pub(super) fn records_torn() -> Warning {
    Warning::loss(
        "counts of some threads are missing: threads that ended at the same time on several CPUs overwrote \
         each other's records (a kernel bug)",
    )
    .advise("taskset -c 0 pmc … avoids this bug, which occurs only with several CPUs")
}

pub(super) fn files_not_kept(error: &Error) -> Warning {
    let why = error.headline();
    Warning::note(format!(
        "the recording is complete, but its files were not copied to the build-id cache: {why}"
    ))
    .advise(Advice::options(
        "use -N to skip copying files, or pmc --buildid-dir DIR record to use another directory",
    ))
}

/// Advice if the kernel stops measuring programs with other privileges, which also happens to root's events.
pub(super) fn measure_privileged() -> Advice {
    Advice::options(match rustix::process::geteuid().is_root() {
        true => "record whole CPUs (-a)",
        false => "run pmc as root, or record whole CPUs (-a)",
    })
}
