//! The states of each thread over time, for timelines.
//!
//! Receives the rows' sums by thread, time slice and state; returns the runs of each state. The sample of a
//! wait has the time at which the wait ended, so a row's waits may begin in earlier slices. A thread has only
//! one state at a time, so time that does not fit into a slice belongs to the preceding slices.
//!
//! ```text
//!   slices              0    1    2    3         length 10
//!   recorded, blocked        4        26         the wait of 26 ended in slice 3
//!   spread              .    4   10   10   <- 6 more than fits: from slices 2 and 1
//! ```

use rustc_hash::FxHashMap;

use crate::session::thread_time::ThreadState;

/// A time span in which a thread was mostly in one state. Times are in nanoseconds of the recording's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateRun {
    /// Start of the span.
    pub from: u64,
    /// End of the span (exclusive).
    pub until: u64,
    /// The state.
    pub state: ThreadState,
}

/// Sums of a thread's time by slice: running, runnable, blocked. Indexed by `ThreadState as usize`.
type SliceSums = (u64, [u64; 3]);

/// Maximum number of preceding slices over which a row's time is spread.
const FARTHEST: u64 = 1000;

/// Collects the sums, by thread.
#[derive(Debug, Default)]
pub(super) struct StateSums(FxHashMap<i32, FxHashMap<u64, [u64; 3]>>);

impl StateSums {
    /// Adds a row of a thread.
    pub(super) fn add(&mut self, tid: i32, slice: u64, state: ThreadState, period: u64) {
        let sum = &mut self.0.entry(tid).or_default().entry(slice).or_default()[state as usize];
        *sum = sum.saturating_add(period);
    }

    /// Returns the state runs of each thread, in time order. `visit` receives each thread, slice and time in
    /// each state.
    pub(super) fn runs(
        self,
        length: u64,
        mut visit: impl FnMut(i32, u64, [u64; 3]),
    ) -> FxHashMap<i32, Vec<StateRun>> {
        let of_thread = |(tid, sums): (i32, FxHashMap<u64, [u64; 3]>)| {
            let mut sums: Vec<SliceSums> = sums.into_iter().collect();
            sums.sort_unstable();
            let mut runs: Vec<StateRun> = Vec::new();
            spread(&sums, length, |slice, sums| {
                visit(tid, slice, sums);
                let Some(state) = ThreadState::longest(sums) else { return };
                let (from, until) =
                    (slice.saturating_mul(length), slice.saturating_add(1).saturating_mul(length));
                match runs.last_mut() {
                    Some(run) if run.from == until && run.state == state => run.from = from,
                    _ => runs.push(StateRun { from, until, state }),
                }
            });
            runs.reverse();
            (tid, runs)
        };
        self.0.into_iter().map(of_thread).collect()
    }
}

/// Visits the slices in which a thread existed, from last to first, with the sums after spreading.
fn spread(recorded: &[SliceSums], length: u64, mut visit: impl FnMut(u64, [u64; 3])) {
    let mut rest = recorded.iter().rev().peekable();
    let (mut carried, mut farthest) = ([0u64; 3], 0);
    let Some(&&(mut slice, _)) = rest.peek() else { return };
    loop {
        let mut sums = std::mem::take(&mut carried);
        if let Some((_, own)) = rest.next_if(|(at, _)| *at == slice) {
            sums.iter_mut().zip(own).for_each(|(sum, own)| *sum = sum.saturating_add(*own));
            farthest = slice.saturating_sub(FARTHEST);
        }
        let waited = sums[1].saturating_add(sums[2]);
        let mut excess = waited.saturating_sub(length.saturating_sub(sums[0]));
        // The larger sum is more likely to contain the wait that began earlier.
        let order = if sums[1] > sums[2] { [1, 2] } else { [2, 1] };
        for state in order {
            let moved = excess.min(sums[state]);
            (sums[state], carried[state], excess) = (sums[state] - moved, moved, excess - moved);
        }
        visit(slice, sums);
        if carried != [0; 3] && slice > farthest {
            slice -= 1;
            continue;
        }
        carried = [0; 3];
        let Some(&&(next, _)) = rest.peek() else { return };
        slice = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ThreadState::{Blocked, Runnable, Running};

    fn runs(rows: &[(u64, ThreadState, u64)]) -> Vec<(u64, u64, ThreadState)> {
        let mut sums = StateSums::default();
        rows.iter().for_each(|(slice, state, period)| sums.add(7, *slice, *state, *period));
        let mut total = 0u128;
        let mut runs = sums.runs(10, |_, _, sums| total += sums.map(u128::from).iter().sum::<u128>());
        let all: u128 = rows.iter().map(|(.., period)| u128::from(*period)).sum();
        assert!(total <= all);
        let runs = runs.remove(&7).unwrap_or_default();
        runs.into_iter().map(|run| (run.from, run.until, run.state)).collect()
    }

    #[test]
    fn waits_extend_back_to_their_begin() {
        assert_eq!(runs(&[(3, Blocked, 26), (1, Blocked, 4)]), [(10, 40, Blocked)]);
        // Running time stays in the slice in which it was sampled. Waiting time moves to make room for it.
        assert_eq!(
            runs(&[(5, Blocked, 24), (5, Running, 6), (2, Runnable, 12), (0, Running, 3)]),
            [(0, 10, Running), (10, 30, Runnable), (30, 50, Blocked), (50, 60, Running)]
        );
        // The gap is preserved.
        assert_eq!(runs(&[(0, Running, 1), (9, Running, 1)]), [(0, 10, Running), (90, 100, Running)]);
        assert_eq!(runs(&[]), []);
    }

    #[test]
    fn impossible_periods_are_bounded() {
        let far = 1 << 40;
        let long = runs(&[(far, Blocked, u64::MAX), (far, Runnable, u64::MAX), (2, Running, 5)]);
        assert_eq!(long.first(), Some(&(20, 30, Running)));
        assert_eq!(long.last().map(|run| run.1), Some((far + 1) * 10));
        assert!(long.iter().all(|run| run.0 < run.1), "{long:?}");
        // There are no slices before the start of the recording.
        assert_eq!(runs(&[(1, Blocked, u64::MAX)]), [(0, 20, Blocked)]);
        assert_eq!(runs(&[(u64::MAX - 1, Running, 1)]).len(), 1);
    }
}
