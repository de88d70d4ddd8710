//! Sums up the delays of each task.

use pmc_sys::error::Result;
use pmc_sys::host::cpulist::CpuList;

use super::SchedRecording;
use super::events::SchedSource;
use super::replay::{SchedStep, replay};
use crate::profile::sched::latency::{self, DelayKind, LatencyKey, LatencyRow, SchedLatency};
use crate::profile::sched::tasks::{SchedTaskId, slot};

/// Which delays to sum up, and how to group them.
#[derive(Debug, Clone, Default)]
pub struct SchedLatencyRequest {
    /// Whether to show one row per task instead of one per task name.
    pub by_task: bool,
    /// Sort keys.
    pub keys: Vec<LatencyKey>,
    /// The CPUs to include: delays that ended on them, and running times on them.
    pub cpus: Option<CpuList>,
}

impl SchedRecording {
    /// Sums up the delays of each task.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn latency(&self, request: &SchedLatencyRequest) -> Result<SchedLatency> {
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
        let rows = latency::sorted(rows, &tasks, request.by_task, &request.keys);
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
