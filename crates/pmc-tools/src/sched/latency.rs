//! Delays of each task, or of all tasks with the same name: their sums, and the longest delay of each.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::str::FromStr;

use pmc_analysis::interval::{DurationHistogram, Interval};
use pmc_sys::error::{Error, Result};
use pmc_sys::host::cpulist::CpuList;

use super::SchedRecording;
use super::events::SchedSource;
use super::machine::{Runners, SchedCounts};
use super::replay::{SchedStep, replay};
use super::tasks::{SchedTaskId, SchedTasks, slot};

/// Which delays to sum up, and how to group and print them.
#[derive(Debug)]
pub(super) struct SchedLatencyRequest {
    /// Whether to show one row per task instead of one per task name.
    pub(super) by_task: bool,
    /// Sort keys.
    pub(super) keys: Vec<LatencyKey>,
    /// The CPUs to include: delays that ended on them, and running times on them.
    pub(super) cpus: Option<CpuList>,
    /// Maximum number of rows.
    pub(super) limit: usize,
    /// Whether to print a JSON document.
    pub(super) json: bool,
}

/// A delay, and the tasks that ran in the meantime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LongestDelay {
    /// Start, in nanoseconds of the recording's clock.
    pub(super) begin: u64,
    /// End.
    pub(super) end: u64,
    /// The CPU on which the task finally ran.
    pub(super) cpu: u32,
    /// The tasks that ran on this CPU during the delay.
    pub(super) ran: Runners,
    /// Whether records were lost during the delay.
    pub(super) has_loss: bool,
}

impl LongestDelay {
    /// The duration in nanoseconds.
    pub(super) fn duration(&self) -> u64 {
        self.end - self.begin
    }
}

/// The delays of a task, or of all tasks with the same name.
#[derive(Debug, Clone)]
pub(super) struct LatencyRow {
    /// The task, or one of them.
    pub(super) task: SchedTaskId,
    /// Number of tasks.
    pub(super) tasks: u64,
    /// Time on CPUs, in nanoseconds.
    pub(super) runtime: u64,
    /// Number of delays. A task that is first seen when it starts to run is counted with a delay of 0.
    pub(super) count: u64,
    /// The measured delays.
    pub(super) delays: DurationHistogram,
    /// Time off CPUs, in nanoseconds.
    pub(super) waited: u64,
    /// The longest delay, if it is not 0.
    pub(super) longest: Option<LongestDelay>,
}

impl LatencyRow {
    pub(super) fn new(task: SchedTaskId) -> Self {
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
    pub(super) fn average(&self) -> u64 {
        self.delays.sum() / self.count.max(1)
    }

    /// Longest delay in nanoseconds.
    pub(super) fn max(&self) -> u64 {
        self.longest.as_ref().map_or(0, LongestDelay::duration)
    }

    /// Adds a delay. `ran` returns the tasks that ran during the delay, and is called only for the longest
    /// delays.
    pub(super) fn add<B>(&mut self, delay: &Interval<B>, cpu: u32, ran: impl FnOnce() -> Runners) {
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
pub(super) enum LatencyKey {
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

impl FromStr for LatencyKey {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name.trim() {
            "avg" => Ok(Self::Average),
            "max" => Ok(Self::Max),
            "switch" => Ok(Self::Switches),
            "runtime" => Ok(Self::Runtime),
            "pid" => Ok(Self::Tid),
            "p99" => Ok(Self::P99),
            name => Err(Error::usage(format!("unknown sort key {name:?}"))
                .try_this("avg, max, switch, runtime, p99 or pid")),
        }
    }
}

/// The meaning of the delays in a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DelayKind {
    /// Times from a task's wake-up or preemption until it runs.
    Delays,
    /// Off-CPU times, because the recording has no wake-ups.
    Waits,
}

/// The delays of a recording.
#[derive(Debug)]
pub(super) struct SchedLatency {
    /// The sorted rows. Idle tasks, and rows without delays, are omitted.
    pub(super) rows: Vec<LatencyRow>,
    /// All tasks.
    pub(super) tasks: SchedTasks,
    /// The meaning of the delays.
    pub(super) kind: DelayKind,
    /// Whether the recording has wake-ups.
    pub(super) has_wakeups: bool,
    /// Total CPU time of all rows.
    pub(super) runtime: u64,
    /// Number of delays of all rows.
    pub(super) count: u64,
    /// Counts of unmatched events.
    pub(super) counts: SchedCounts,
}

impl SchedRecording {
    /// Sums up the delays of each task.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub(super) fn latency(&self, request: &SchedLatencyRequest) -> Result<SchedLatency> {
        let decoder = self.decoder.clone();
        let kind = match decoder.source {
            SchedSource::Tracepoints => DelayKind::Delays,
            SchedSource::SwitchRecords => DelayKind::Waits,
        };
        let has_wakeups = decoder.has_wakeups;
        // Without the kernel's events for running time, sum up the times between switches.
        let sums_runs = !decoder.has_runtime;
        let mut rows: Vec<Option<Box<LatencyRow>>> = Vec::new();
        let mut row = |task: SchedTaskId, change: &mut dyn FnMut(&mut LatencyRow)| {
            let row = slot(&mut rows, task.index());
            change(row.get_or_insert_with(|| Box::new(LatencyRow::new(task))));
        };
        let machine = replay(&self.session, decoder, None, &mut |machine, context, step, _| {
            let cpus = request.cpus.as_ref();
            if cpus.is_some_and(|cpus| !cpus.contains(context.cpu)) {
                return Ok(());
            }
            match step {
                SchedStep::Out(out, _) => {
                    let run = out.run.filter(|_| sums_runs).map_or(0, |run| run.duration());
                    row(out.task, &mut |row| row.runtime = row.runtime.saturating_add(run));
                }
                SchedStep::Runtime(task, ns) => {
                    row(task, &mut |row| row.runtime = row.runtime.saturating_add(ns));
                }
                SchedStep::In(switched) => {
                    let cpu = context.cpu;
                    row(switched.task, &mut |row| {
                        if let Some(wait) = &switched.wait {
                            row.waited = row.waited.saturating_add(wait.duration());
                        }
                        match (kind, &switched.delay, &switched.wait) {
                            (DelayKind::Delays, Some(delay), _) => {
                                row.add(delay, cpu, || machine.ran_during(cpu, delay.begin, delay.end));
                            }
                            (DelayKind::Waits, _, Some(wait)) => {
                                row.add(wait, cpu, || machine.ran_during(cpu, wait.begin, wait.end));
                            }
                            _ if kind == DelayKind::Delays && switched.is_first => row.count += 1,
                            _ => {}
                        }
                    });
                }
                SchedStep::Woken(task) => row(task, &mut |_| {}),
                _ => {}
            }
            Ok(())
        })?;
        let rows = rows.into_iter().flatten().map(|row| *row).collect();
        let counts = machine.counts();
        let tasks = machine.tasks;
        let rows = sorted(rows, &tasks, request.by_task, &request.keys);
        Ok(SchedLatency {
            runtime: rows.iter().fold(0, |sum, row| sum.saturating_add(row.runtime)),
            count: rows.iter().map(|row| row.count).sum(),
            rows,
            tasks,
            kind,
            has_wakeups,
            counts,
        })
    }
}

/// Merges rows with the same name unless `by_task` is set. Sorts the rows as perf does: by the keys, then by
/// name or thread id in descending order.
pub(super) fn sorted(
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
                Entry::Vacant(entry) => {
                    entry.insert(row);
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
