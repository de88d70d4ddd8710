//! `--switch-output` and `--snapshot`: decides when the recording continues in another file, and names the
//! files.

use std::path::{Path, PathBuf};

use crate::recording::plan::{FilePlan, Rotation};
use pmc_sys::sys::clock;

/// Decides when the next file begins. Times are nanoseconds of the monotonic clock.
#[derive(Debug)]
pub(crate) struct Schedule {
    rotation: Option<Rotation>,
    /// Whether each snapshot goes into a separate file if there is no rotation.
    snapshots: bool,
    next_at: Option<u64>,
    is_asked_for: bool,
}

impl Schedule {
    pub(crate) fn new(plan: &FilePlan) -> Self {
        Self { rotation: plan.rotation, snapshots: plan.snapshots, next_at: None, is_asked_for: false }
    }

    /// Records the start of a file, and schedules the next rotation.
    pub(crate) fn begin(&mut self, now: u64) {
        self.next_at = match self.rotation {
            Some(Rotation::Ns(ns)) => Some(now + ns),
            _ => None,
        };
    }

    /// Returns the time at which to check again, if rotation is time-based.
    pub(crate) fn next_at(&self) -> Option<u64> {
        self.next_at
    }

    /// Requests another file because of SIGUSR2, a trigger event, or `snapshot` through `--control`.
    pub(crate) fn ask_for(&mut self) {
        self.is_asked_for = true;
    }

    /// Whether it is time to end the file. `bytes` is its size so far.
    pub(crate) fn is_due(&mut self, now: u64, bytes: u64) -> bool {
        let is_asked_for = std::mem::take(&mut self.is_asked_for);
        match self.rotation {
            Some(Rotation::Bytes(most)) => is_asked_for || bytes >= most,
            Some(Rotation::Ns(_)) => is_asked_for || self.next_at.is_some_and(|at| now >= at),
            Some(Rotation::Signal) => is_asked_for,
            None => self.snapshots && is_asked_for,
        }
    }
}

/// Appends the date and time to a file name, like perf: `perf.data.2026112105061234`.
pub(crate) fn name(base: &Path) -> PathBuf {
    let mut name = base.as_os_str().to_owned();
    name.push(".");
    name.push(clock::local_stamp());
    name.into()
}
