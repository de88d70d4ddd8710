//! Finds when a CPU passes from one thread to the next.
//!
//! Receives the context switches of all CPUs in time order; returns the time from which on a thread has its
//! CPU.
//!
//! ```text
//!   CPU 0    thread 7 ──── out │ switch, events of thread 8 │ in ──── thread 8
//!                              '── thread 8 has the CPU from here on
//! ```

use rustc_hash::FxHashMap;

/// Maximum time of a switch in nanoseconds. It takes about 1 µs on current machines. A CPU that is idle first
/// takes longer.
const LONGEST: u64 = 5_000;

/// The thread that has left each CPU last, and the time.
///
/// The kernel reports that a thread gets the CPU only after it has started the thread's events, about a
/// microsecond after it has reported that the previous thread leaves. No other thread uses the CPU in
/// between. The kernel's clocks count this time as CPU time of the next thread, so it is no waiting time.
/// With 150,000 switches per second, it would otherwise be more than a tenth of all time.
///
/// If the CPU is idle in between, nothing reports the end of the idle time, and the later time counts.
#[derive(Debug, Default)]
pub struct CpuHandovers(FxHashMap<u32, (i32, u64)>);

impl CpuHandovers {
    /// Adds a switch, in time order. Returns its time or, if a thread gets the CPU directly from another
    /// thread, the time at which the other thread has left.
    pub fn switch(&mut self, cpu: u32, tid: i32, time: u64, is_out: bool) -> u64 {
        if is_out {
            self.0.insert(cpu, (tid, time));
            return time;
        }
        // A thread that returns to the CPU that it has left was waiting in between.
        let left = self.0.remove(&cpu).filter(|(other, _)| *other != tid);
        left.map(|(_, left)| left)
            .filter(|left| (*left..=left.saturating_add(LONGEST)).contains(&time))
            .unwrap_or(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_its_cpu_when_the_previous_one_leaves() {
        let mut handovers = CpuHandovers::default();
        let mut switches = |list: &[(u32, i32, u64, bool)]| -> Vec<u64> {
            list.iter().map(|(cpu, tid, time, is_out)| handovers.switch(*cpu, *tid, *time, *is_out)).collect()
        };
        assert_eq!(switches(&[(0, 7, 1000, true), (0, 8, 1900, false)]), [1000, 1000]);
        // On another CPU, after idle time, and by the same thread.
        assert_eq!(switches(&[(0, 8, 3000, true), (1, 7, 3100, false)]), [3000, 3100]);
        assert_eq!(switches(&[(0, 9, 3000 + LONGEST + 1, false)]), [3001 + LONGEST]);
        assert_eq!(switches(&[(0, 9, 20_000, true), (0, 9, 20_100, false)]), [20_000, 20_100]);
        // The first record of a thread's return ends the switch. Clocks that go back end none.
        assert_eq!(switches(&[(0, 9, 30_000, true), (0, 8, 30_100, false)]), [30_000, 30_000]);
        assert_eq!(switches(&[(0, 8, 30_200, false)]), [30_200]);
        assert_eq!(switches(&[(0, 8, 40_000, true), (0, 9, 39_900, false)]), [40_000, 39_900]);
    }
}
