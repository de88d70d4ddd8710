//! The result of a recording: its samples, its losses, and how it ended.

use std::path::PathBuf;

use super::features::FileBuildId;
use super::finished_files::FileCommands;
use super::output::Totals;
use crate::recording::ended_at_exec::EndedAtExec;
use crate::recording::ending::exit_of_run;
use crate::recording::unwinding::{ChainEndCounts, KeptCopies};
use pmc_events::counter::rings::InstanceReading;
use pmc_sys::error::{Error, Exit};
use pmc_sys::sys::process::CommandOutcome;

/// The result of a recording.
pub struct RecordingResult {
    /// Paths of the recorded files: several if the recording was rotated.
    pub files: Vec<PathBuf>,
    /// Samples, losses and bytes.
    pub totals: Totals,
    /// Number of drains that found records.
    pub drains: u64,
    /// Count and lost records of each event instance.
    pub readings: Vec<InstanceReading>,
    /// Nanoseconds from enabling the events to the end; from the start if they were never enabled (`-D`).
    pub elapsed_ns: u64,
    /// Nanoseconds during which the hardware events were off because of a reservation.
    pub yielded_ns: u64,
    /// Whether the events were ever enabled (`-D -1`, `--control`).
    pub was_ever_on: bool,
    /// How the command ended; `None` without a command, or if it still runs.
    pub outcome: Option<CommandOutcome>,
    /// The signal that ended pmc.
    pub interrupted: Option<i32>,
    /// The write error that ended the recording. Everything written before the error is readable.
    pub failed: Option<Error>,
    /// Whether `--max-size` was reached.
    pub is_full: bool,
    /// Whether `--timeout` ended the recording.
    pub timed_out: bool,
    /// Whether a holder has taken over the events.
    pub is_handed_over: bool,
    /// Number of samples that still contain their stack copy, although pmc should have unwound it.
    pub kept: KeptCopies,
    /// Number of unwound call chains, by how they end.
    pub ends: ChainEndCounts,
    /// Processes whose events the kernel ended when they executed a program. `None` if they are not known.
    pub ended_at_exec: Option<Vec<EndedAtExec>>,
    /// Files to add to the build-id cache, sorted by name.
    pub identified: Vec<FileBuildId>,
    /// The commands for finished files, some of which may still run.
    pub commands: Option<FileCommands>,
}

/// Returns the number of lost records: the total from the records or from the kernel's counters, whichever is
/// larger.
pub fn lost(totals: &Totals, readings: &[InstanceReading]) -> u64 {
    totals.lost.max(readings.iter().map(|reading| reading.lost).sum())
}

impl RecordingResult {
    /// Returns the exit status of the recording process.
    pub fn exit(&self, has_command: bool) -> Exit {
        match &self.failed {
            Some(error) => error.exit_status(),
            None => {
                let outcome = self.outcome.filter(|_| !self.is_full && !self.timed_out);
                exit_of_run(self.interrupted, outcome, has_command)
            }
        }
    }
}
