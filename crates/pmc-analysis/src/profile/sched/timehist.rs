//! The history of each CPU, with one row for each period in which a task ran.

use std::borrow::Cow;

use super::tasks::SchedTaskId;
use super::tasks::SchedTasks;
use super::{Runners, SchedCounts};

/// A period in which a task ran on a CPU, and the wait before it.
#[derive(Debug, Clone)]
pub struct RanRow<'a> {
    /// The task.
    pub task: SchedTaskId,
    /// The CPU.
    pub cpu: u32,
    /// The end of the period, in nanoseconds of the recording's clock.
    pub time: u64,
    /// The letter of the task's state at the end.
    pub state: char,
    /// Preceding time off the CPU in nanoseconds; 0 if unknown.
    pub wait: u64,
    /// The part of this time after the wake-up or preemption.
    pub delay: u64,
    /// The part of this time before a migration.
    pub before_migration: u64,
    /// Time on the CPU in nanoseconds; 0 if unknown.
    pub run: u64,
    /// Whether records were lost during any of these times.
    pub has_loss: bool,
    /// Whether the switch to the task is missing, although the recording contains earlier switches of this
    /// CPU. If so, all times are unknown.
    pub is_unseen: bool,
    /// Priority at the start and at the end, if known.
    pub prio: (Option<i64>, i64),
    /// Name (untrusted text) and thread id of the task that runs next.
    pub next: Option<(Cow<'a, str>, i32)>,
    /// The tasks that ran on this CPU during the delay, if requested.
    pub ran: Runners,
    /// The functions of the call chain at the end, innermost first, except those of the scheduler; `None` for
    /// functions without a name. Untrusted text.
    pub chain: Vec<Option<&'a str>>,
}

/// A line of the history.
#[derive(Debug, Clone)]
pub enum TimehistLine<'a> {
    /// A task ran.
    Ran(RanRow<'a>),
    /// A task woke another one.
    Woken {
        /// Time of the event.
        time: u64,
        /// The CPU of the event.
        cpu: u32,
        /// The task that caused the wake-up. For a wake-up by an interrupt, the interrupted task.
        waker: SchedTaskId,
        /// The woken task.
        woken: SchedTaskId,
    },
    /// A task was moved to another CPU.
    Migrated {
        /// Time of the event.
        time: u64,
        /// The CPU of the event.
        cpu: u32,
        /// The task that moved the other task.
        mover: SchedTaskId,
        /// The moved task.
        migrant: SchedTaskId,
        /// The CPU that the task was moved from.
        from: i64,
        /// The CPU that the task was moved to.
        to: i64,
    },
    /// Records were lost.
    Lost {
        /// Time of the record that reported the loss.
        time: u64,
        /// The CPU.
        cpu: u32,
        /// Number of lost records.
        count: u64,
    },
}

/// The sums of a task.
#[derive(Debug, Clone, Default)]
pub struct TimehistSums {
    /// Number of times that the task ran on a CPU.
    pub count: u64,
    /// Total time on CPUs, in nanoseconds.
    pub run: u64,
    /// Shortest time on a CPU, in nanoseconds.
    pub min: u64,
    /// Longest time on a CPU, in nanoseconds.
    pub max: u64,
    /// Number of times on a CPU whose duration is known.
    measured: u64,
    /// Running mean and sum of squared differences of these durations, for the standard deviation (Welford).
    mean: f64,
    squares: f64,
    /// Total time off CPUs, asleep.
    pub sleep: u64,
    /// Total time off CPUs in uninterruptible sleep.
    pub iowait: u64,
    /// Total time off CPUs after preemption.
    pub preempt: u64,
    /// Total delay.
    pub delay: u64,
    /// Number of migrations.
    pub migrations: u64,
}

impl TimehistSums {
    /// Adds a period on a CPU (`None` if its duration is unknown) and the wait before it. `state` is the
    /// task's state during the wait.
    pub(crate) fn add(&mut self, run: Option<u64>, wait: u64, delay: u64, state: u8) {
        self.count += 1;
        self.delay = self.delay.saturating_add(delay);
        match state {
            b'R' => self.preempt = self.preempt.saturating_add(wait),
            b'D' => self.iowait = self.iowait.saturating_add(wait),
            _ => self.sleep = self.sleep.saturating_add(wait),
        }
        let Some(run) = run else { return };
        self.measured += 1;
        self.run = self.run.saturating_add(run);
        self.min = if self.measured == 1 { run } else { self.min.min(run) };
        self.max = self.max.max(run);
        let difference = run as f64 - self.mean;
        self.mean += difference / self.measured as f64;
        self.squares += difference * (run as f64 - self.mean);
    }

    /// Returns the mean time on a CPU.
    pub fn mean(&self) -> u64 {
        self.mean as u64
    }

    /// Returns the standard error of the mean, as a percentage of the mean.
    pub fn relative_error(&self) -> f64 {
        if self.measured < 2 || self.mean == 0.0 {
            return 0.0;
        }
        let n = self.measured as f64;
        100.0 * (self.squares / (n - 1.0) / n).sqrt() / self.mean
    }
}

/// A task and its sums.
#[derive(Debug, Clone)]
pub struct TimehistTotal {
    /// The task.
    pub task: SchedTaskId,
    /// Its sums.
    pub sums: TimehistSums,
}

/// The summary at the end of a history.
#[derive(Debug)]
pub struct TimehistSummary {
    /// All tasks.
    pub tasks: SchedTasks,
    /// The tasks that have not exited, longest running first.
    pub living: Vec<TimehistTotal>,
    /// The tasks that have exited.
    pub ended: Vec<TimehistTotal>,
    /// The sums of each CPU's idle task; `None` if it never ran. Empty if the recording cannot contain idle
    /// tasks.
    pub idle: Vec<(u32, Option<TimehistSums>)>,
    /// Duration of the history, in nanoseconds.
    pub duration: u64,
    /// Whether a filter has excluded rows.
    pub is_filtered: bool,
    /// Number of CPUs online.
    pub cpus: u32,
    /// Counts of unmatched events.
    pub counts: SchedCounts,
}
