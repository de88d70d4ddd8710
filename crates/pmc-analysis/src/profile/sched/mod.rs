//! What the scheduler did: the tasks, their delays, and their times on CPUs. Pure, without I/O.
//!
//! `analysis::sched` fills these types from a recording; `view::sched` prints them.

pub mod latency;
pub mod map;
pub mod tasks;
pub mod timehist;

pub use tasks::{SchedTask, SchedTaskId, SchedTasks};

use crate::interval::PairingCounts;

/// The tasks that ran on a CPU while another task waited for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Runners {
    /// The tasks that ran longest, each with its running time in nanoseconds, longest first.
    pub tasks: Vec<(SchedTaskId, u64)>,
    /// Running time of all other tasks, in nanoseconds.
    pub others: u64,
}

/// Counts of matched and unmatched events in a recording.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SchedCounts {
    /// Number of periods on a CPU whose start and end are both known.
    pub runs: u64,
    /// Number of delays whose start and end are both known.
    pub delays: u64,
    /// Number of switches away from a task without an earlier switch to that task.
    pub unseen_runs: u64,
    /// Number of switches to tasks whose wake-up is not in the recording.
    pub unwoken: u64,
    /// Number of wake-ups of tasks that were running or had already been woken.
    pub redundant_wakeups: u64,
    /// Number of times that a task left a CPU, or was switched to, twice in a row.
    pub repeated: u64,
    /// Number of intervals that end before they start.
    pub backwards: u64,
    /// Number of unfinished intervals that were dropped to limit memory use.
    pub expired: u64,
    /// Number of intervals during which records were lost.
    pub with_loss: u64,
    /// Number of lost records.
    pub lost: u64,
}

impl SchedCounts {
    /// Adds the counts of an interval engine.
    pub(crate) fn add(&mut self, pairs: &PairingCounts) {
        self.repeated += pairs.replaced;
        self.backwards += pairs.backwards;
        self.expired += pairs.expired;
        self.with_loss += pairs.with_loss;
    }
}
