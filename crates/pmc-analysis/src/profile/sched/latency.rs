//! Scheduling delays of each task, or of all tasks with the same name.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::tasks::SchedTaskId;
use super::tasks::SchedTasks;
use super::{Runners, SchedCounts};
use crate::interval::{DurationHistogram, Interval};

/// A delay, and the tasks that ran in the meantime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LongestDelay {
    /// Start, in nanoseconds of the recording's clock.
    pub begin: u64,
    /// End.
    pub end: u64,
    /// The CPU on which the task finally ran.
    pub cpu: u32,
    /// The tasks that ran on this CPU during the delay.
    pub ran: Runners,
    /// Whether records were lost during the delay.
    pub has_loss: bool,
}

impl LongestDelay {
    /// The duration in nanoseconds.
    pub fn duration(&self) -> u64 {
        self.end - self.begin
    }
}

/// The delays of a task, or of all tasks with the same name.
#[derive(Debug, Clone)]
pub struct LatencyRow {
    /// The task, or one of them.
    pub task: SchedTaskId,
    /// Number of tasks.
    pub tasks: u64,
    /// Time on CPUs, in nanoseconds.
    pub runtime: u64,
    /// Number of delays. A task that is first seen when it starts to run is counted with a delay of 0.
    pub count: u64,
    /// The measured delays.
    pub delays: DurationHistogram,
    /// Time off CPUs, in nanoseconds.
    pub waited: u64,
    /// The longest delay, if it is not 0.
    pub longest: Option<LongestDelay>,
}

impl LatencyRow {
    pub(crate) fn new(task: SchedTaskId) -> Self {
        Self {
            task,
            tasks: 1,
            runtime: 0,
            count: 0,
            delays: DurationHistogram::default(),
            waited: 0,
            longest: None,
        }
    }

    /// Average delay in nanoseconds.
    pub fn average(&self) -> u64 {
        self.delays.sum() / self.count.max(1)
    }

    /// Longest delay in nanoseconds.
    pub fn max(&self) -> u64 {
        self.longest.as_ref().map_or(0, LongestDelay::duration)
    }

    /// Adds a delay. `ran` returns the tasks that ran during the delay, and is called only for the longest
    /// delays.
    pub(crate) fn add<B>(&mut self, delay: &Interval<B>, cpu: u32, ran: impl FnOnce() -> Runners) {
        self.count += 1;
        self.delays.add(delay.duration());
        if delay.duration() > self.max() {
            let &Interval { begin, end, has_loss, .. } = delay;
            self.longest = Some(LongestDelay { begin, end, cpu, ran: ran(), has_loss });
        }
    }

    fn merge(&mut self, other: Self) {
        self.tasks += other.tasks;
        self.runtime = self.runtime.saturating_add(other.runtime);
        self.count += other.count;
        self.delays.merge(&other.delays);
        self.waited = self.waited.saturating_add(other.waited);
        if other.max() > self.max() {
            self.longest = other.longest;
        }
    }
}

/// A key by which rows are sorted, highest value first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LatencyKey {
    /// Average delay.
    Average,
    /// Longest delay.
    Max,
    /// Number of delays.
    Switches,
    /// Time on CPUs.
    Runtime,
    /// Thread id.
    Tid,
    /// The 99th percentile of the delays.
    P99,
}

/// The meaning of the delays in a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DelayKind {
    /// Times from a task's wake-up or preemption until it runs.
    Delays,
    /// Off-CPU times, because the recording has no wake-ups.
    Waits,
}

/// The delays of a recording.
#[derive(Debug)]
pub struct SchedLatency {
    /// The sorted rows. Idle tasks, and rows without delays, are omitted.
    pub rows: Vec<LatencyRow>,
    /// All tasks.
    pub tasks: SchedTasks,
    /// The meaning of the delays.
    pub kind: DelayKind,
    /// Whether the recording has wake-ups.
    pub has_wakeups: bool,
    /// Total CPU time of all rows.
    pub runtime: u64,
    /// Number of delays of all rows.
    pub count: u64,
    /// Counts of unmatched events.
    pub counts: SchedCounts,
}

/// Merges rows with the same name unless `by_task` is set. Sorts the rows as perf does: by the keys, then by
/// name or thread id in descending order.
pub(crate) fn sorted(
    mut rows: Vec<LatencyRow>,
    tasks: &SchedTasks,
    by_task: bool,
    keys: &[LatencyKey],
) -> Vec<LatencyRow> {
    let tid = |row: &LatencyRow| (tasks.get(row.task).tid, row.task);
    rows.sort_by_key(|row| Reverse(tid(row)));
    if !by_task {
        let mut by_name: BTreeMap<Reverse<Cow<'_, str>>, LatencyRow> = BTreeMap::new();
        for row in rows {
            match by_name.entry(Reverse(tasks.get(row.task).comm())) {
                Entry::Occupied(mut first) => first.get_mut().merge(row),
                Entry::Vacant(place) => {
                    place.insert(row);
                }
            }
        }
        rows = by_name.into_values().collect();
    }
    rows.retain(|row| row.count > 0 && !tasks.get(row.task).is_idle());
    rows.sort_by_cached_key(|row| {
        let value = |key: &LatencyKey| match key {
            LatencyKey::Average => row.average(),
            LatencyKey::Max => row.max(),
            LatencyKey::Switches => row.count,
            LatencyKey::Runtime => row.runtime,
            LatencyKey::Tid => tasks.get(row.task).tid.max(0) as u64,
            LatencyKey::P99 => row.delays.quantile(0.99),
        };
        Reverse(keys.iter().map(value).collect::<Vec<u64>>())
    });
    rows
}
