//! The number of running threads of the workload over time, and the running time of each thread, both
//! computed from context switches.
//!
//! Computes the number at any timestamp from the context switches and thread exits in the side-band. A thread
//! whose first switch is a switch-out is assumed to have been running before it.
//!
//! ```text
//!   thread 7   ─────────out            in──────────exit
//!   thread 8          in───────────────────exit
//!   running    1      2 1              2   1       0
//! ```

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::handover::CpuHandovers;
use super::history::Timestamp;

/// Switches and exits of threads, in any order.
#[derive(Debug, Default)]
pub(crate) struct Switches(Vec<CpuSwitch>);

/// How long a thread ran. Times are in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RunningTime {
    /// Time of the first switch, or start of the recording if the thread was already running.
    pub(super) begin: Timestamp,
    /// Time of the last switch or exit, or end of the recording if the thread was still running.
    pub(super) end: Timestamp,
    pub(super) running: u64,
    /// Start of the current run.
    since: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct CpuSwitch {
    timestamp: Timestamp,
    /// Sequence number that keeps equal timestamps in file order.
    number: u32,
    /// The CPU, if known.
    cpu: Option<u32>,
    tid: i32,
    /// Whether the thread is running from this timestamp on.
    runs: bool,
}

impl Switches {
    /// Returns the switches in time order.
    fn ordered(&self) -> Cow<'_, [CpuSwitch]> {
        let mut all = Cow::Borrowed(self.0.as_slice());
        // Recorders that merge the records of all CPUs write them in time order.
        if !all.is_sorted() {
            all.to_mut().sort_unstable();
        }
        all
    }

    /// Returns the running time of each thread. `span` is the first and last time of the recording.
    pub(super) fn running_times(&self, span: (Timestamp, Timestamp)) -> FxHashMap<i32, RunningTime> {
        let mut threads: FxHashMap<i32, RunningTime> = FxHashMap::default();
        let mut handovers = CpuHandovers::default();
        for CpuSwitch { timestamp, cpu, tid, runs, .. } in self.ordered().iter().copied() {
            let timestamp = cpu.map_or(timestamp, |cpu| handovers.switch(cpu, tid, timestamp, !runs));
            if tid == 0 {
                continue;
            }
            let thread = threads.entry(tid).or_insert_with(|| {
                // A thread whose first switch is a switch-out was running from the start.
                let begin = if runs { timestamp } else { span.0.min(timestamp) };
                RunningTime { begin, end: timestamp, running: 0, since: (!runs).then_some(begin) }
            });
            match (runs, thread.since) {
                // Two starts in a row: the stop between them was lost, or several events reported the same
                // start.
                (true, _) => thread.since = Some(timestamp.max(thread.end)),
                (false, Some(since)) => {
                    thread.running = thread.running.saturating_add(timestamp.saturating_sub(since));
                    thread.since = None;
                }
                (false, None) => {}
            }
            thread.end = timestamp;
        }
        for thread in threads.values_mut() {
            if let Some(since) = thread.since.take() {
                thread.end = thread.end.max(span.1);
                thread.running = thread.running.saturating_add(thread.end.saturating_sub(since));
            }
        }
        threads
    }

    /// Adds the start or stop of a thread on a CPU. The threads of idle CPUs (0) do not count as running.
    pub(super) fn add(&mut self, timestamp: Timestamp, cpu: Option<u32>, tid: i32, runs: bool) {
        if tid >= 0 {
            self.0.push(CpuSwitch { timestamp, number: self.0.len() as u32, cpu, tid, runs });
        }
    }
}

/// The number of running threads over time.
#[derive(Debug)]
pub struct Parallelism {
    /// Number of running threads before the first change.
    first: u32,
    /// Timestamp of each change, and the new number.
    changes: Vec<(Timestamp, u32)>,
    /// Upper limit for the number. Without it, slight differences between CPU clocks could make the number
    /// too high.
    most: u32,
}

impl Parallelism {
    /// Computes the number of running threads on a machine with this many CPUs.
    pub(crate) fn new(switches: &Switches, cpus: Option<u32>) -> Self {
        let order = switches.ordered();
        let mut runs: FxHashMap<i32, bool> = FxHashMap::default();
        // A thread whose first switch is a switch-out was running from the start.
        for switch in order.iter().filter(|switch| switch.tid > 0) {
            runs.entry(switch.tid).or_insert(!switch.runs);
        }
        let mut running = runs.values().filter(|runs| **runs).count() as u32;
        let first = running;
        let mut changes = Vec::new();
        for switch in order.iter().filter(|switch| switch.tid > 0) {
            // Several events may each write a record for the same switch.
            if runs.insert(switch.tid, switch.runs) != Some(switch.runs) {
                running = if switch.runs { running + 1 } else { running.saturating_sub(1) };
                changes.push((switch.timestamp, running));
            }
        }
        Self { first, changes, most: cpus.unwrap_or(u32::MAX).max(1) }
    }

    /// Returns the number of running threads, which is at least 1 because the sampled thread is running.
    pub(crate) fn at(&self, timestamp: Timestamp) -> u32 {
        let after = self.changes.partition_point(|(from, _)| *from <= timestamp);
        let running = after.checked_sub(1).map_or(self.first, |at| self.changes[at].1);
        running.clamp(1, self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parallelism(list: &[(Timestamp, i32, bool)], cpus: Option<u32>) -> Parallelism {
        let mut switches = Switches::default();
        list.iter().for_each(|(at, tid, runs)| switches.add(*at, None, *tid, *runs));
        Parallelism::new(&switches, cpus)
    }

    #[test]
    fn running_threads_are_counted_between_switches() {
        // As in the diagram above, but out of order and with the idle thread.
        let list =
            [(50, 8, false), (10, 8, true), (20, 7, false), (40, 7, true), (60, 7, false), (20, 0, true)];
        let all = parallelism(&list, None);
        let at = [0, 9, 10, 19, 20, 39, 40, 50, 60, 99].map(|timestamp| all.at(timestamp));
        assert_eq!(at, [1, 1, 2, 2, 1, 1, 2, 1, 1, 1], "nobody is alone when a sample was taken");
        assert_eq!(parallelism(&list, Some(1)).at(15), 1);
    }

    #[test]
    fn running_times_are_exact() {
        let mut switches = Switches::default();
        let list = [
            // Thread 7 is running at the start, and runs again until it exits. Thread 8 is still running at
            // the end.
            (20, 7, false),
            (40, 7, true),
            (50, 8, true),
            (60, 7, false),
            (60, 7, false),
            // A stop and a start of thread 9 were lost.
            (10, 9, true),
            (30, 9, true),
            (35, 9, false),
            (45, 9, false),
        ];
        list.iter().for_each(|(at, tid, runs)| switches.add(*at, None, *tid, *runs));
        let times = switches.running_times((5, 90));
        let of = |tid: i32| (times[&tid].begin, times[&tid].end, times[&tid].running);
        assert_eq!([7, 8, 9].map(of), [(5, 60, 35), (50, 90, 40), (10, 45, 5)]);
    }

    #[test]
    fn switching_is_running_time_of_the_next_thread() {
        let mut switches = Switches::default();
        let list = [
            // Threads 7 and 8 take turns on CPU 1, whose switches take 900 ns. Then thread 7 moves to CPU 2,
            // which was idle until just before it left CPU 1.
            (0, 1, 7, true),
            (2000, 1, 7, false),
            (2900, 1, 8, true),
            (5000, 1, 8, false),
            (5900, 1, 7, true),
            (7000, 2, 0, false),
            (7500, 1, 7, false),
            (8000, 2, 7, true),
            (9000, 2, 7, false),
        ];
        list.iter().for_each(|(at, cpu, tid, runs)| switches.add(*at, Some(*cpu), *tid, *runs));
        let times = switches.running_times((0, 9000));
        assert_eq!((times[&7].running, times[&8].running), (2000 + 2500 + 1500, 3000));
        assert!(!times.contains_key(&0));
    }

    #[test]
    fn duplicate_records_count_once() {
        let twice = [(10, 8, true), (10, 8, true), (20, 8, false), (20, 8, false), (5, 7, false)];
        let all = parallelism(&twice, None);
        assert_eq!((all.first, &all.changes[..]), (1, &[(5, 0), (10, 1), (20, 0)][..]));
        assert_eq!(parallelism(&[], None).at(3), 1, "nobody knows");
    }
}
