//! The number of running threads of the workload over time, from their context switches.
//!
//! Receives the switches and exits of threads from the side-band; returns the number for any timestamp.
//! Assumes that a thread ran before its first switch if it was switched out.
//!
//! ```text
//!   thread 7   ─────────out            in──────────exit
//!   thread 8          in───────────────────exit
//!   running    1      2 1              2   1       0
//! ```

use rustc_hash::FxHashMap;

use super::Timestamp;

/// Switches and exits of threads, in any order.
#[derive(Debug, Default)]
pub(crate) struct Switches(Vec<CpuSwitch>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct CpuSwitch {
    timestamp: Timestamp,
    /// Sequence number that keeps equal timestamps in file order.
    number: u32,
    tid: i32,
    /// Whether the thread runs from this timestamp on.
    runs: bool,
}

impl Switches {
    /// Adds the start or stop of a thread. Ignores the idle threads of CPUs.
    pub(super) fn add(&mut self, timestamp: Timestamp, tid: i32, runs: bool) {
        if tid > 0 {
            self.0.push(CpuSwitch { timestamp, number: self.0.len() as u32, tid, runs });
        }
    }
}

/// The number of running threads over time.
#[derive(Debug)]
pub struct Parallelism {
    /// The number before the first change.
    first: u32,
    /// Timestamps of changes, with the new number.
    changes: Vec<(Timestamp, u32)>,
    /// Upper bound for the number. Without it, slightly different CPU clocks could make the number too high.
    most: u32,
}

impl Parallelism {
    /// Computes the number of running threads on a machine with this many CPUs.
    pub(crate) fn new(switches: &Switches, cpus: Option<u32>) -> Self {
        let mut order = switches.0.clone();
        order.sort_unstable();
        let mut runs: FxHashMap<i32, bool> = FxHashMap::default();
        // A thread whose first switch is a stop ran from the beginning.
        for switch in &order {
            runs.entry(switch.tid).or_insert(!switch.runs);
        }
        let mut running = runs.values().filter(|runs| **runs).count() as u32;
        let first = running;
        let mut changes = Vec::new();
        for switch in order {
            // Several events may each write a record for the same switch.
            if runs.insert(switch.tid, switch.runs) != Some(switch.runs) {
                running = if switch.runs { running + 1 } else { running.saturating_sub(1) };
                changes.push((switch.timestamp, running));
            }
        }
        Self { first, changes, most: cpus.unwrap_or(u32::MAX).max(1) }
    }

    /// Number of running threads; at least 1, the sampled thread.
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
        list.iter().for_each(|(at, tid, runs)| switches.add(*at, *tid, *runs));
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
    fn duplicate_records_count_once() {
        let twice = [(10, 8, true), (10, 8, true), (20, 8, false), (20, 8, false), (5, 7, false)];
        let all = parallelism(&twice, None);
        assert_eq!((all.first, &all.changes[..]), (1, &[(5, 0), (10, 1), (20, 0)][..]));
        assert_eq!(parallelism(&[], None).at(3), 1, "nobody knows");
    }
}
