//! Completes call stacks recorded by the CPU (LBR) from earlier samples.
//!
//! The CPU has only a few records. Each call fills the next record, and each return frees one, so only the
//! innermost calls of a deep stack are recorded. An earlier sample of the same thread may contain the missing
//! calls:
//!
//! ```text
//!   record        0      1      2      3
//!   earlier       main   read   parse  item          newest: 3
//!   now           next   hash   parse  item          newest: 1, so the outermost is parse
//!                                                    parse is known from before: main and read are reused
//! ```
//!
//! Takes the samples of each thread in time order. The position of a call's record determines the call's
//! depth, relative to an arbitrary start. The [`Joiner`] then joins the stacks, recognizing a call by its
//! origin and depth. It cannot detect that a recursion has refilled all records between two samples, so
//! stitching is off by default.

use rustc_hash::FxHashMap;

use super::frame::{ChainEnd, StackFrame};
use super::joiner::Joiner;
use super::joiner::MOST_THREADS;
use crate::address::Avma;

/// Maximum number of recorded calls. No CPU records more.
const MOST_KEPT: u64 = 1 << 16;
/// Depth of the innermost call in a thread's first sample, far from both ends of the `u64` range.
const START: u64 = 1 << 62;

/// The last known calls of each thread.
#[derive(Debug)]
pub struct Stitcher {
    /// Number of calls that the CPU records.
    kept: u64,
    joiner: Joiner,
    /// Depth of each thread's innermost call.
    depths: FxHashMap<i32, u64>,
    chain: Vec<StackFrame>,
}

impl Stitcher {
    /// Creates a stitcher for a CPU that records this many calls.
    pub fn new(kept: u64) -> Self {
        let (joiner, depths) = (Joiner::default(), FxHashMap::default());
        Self { kept: kept.min(MOST_KEPT), joiner, depths, chain: Vec::new() }
    }

    /// Stores the origins of calls, innermost first, and returns the callers from earlier samples. `newest`
    /// is the index of the record with the innermost call. `space` is a number that changes whenever an
    /// address may have come to refer to different code. `most` is the maximum length of a chain.
    pub fn stitch(
        &mut self,
        thread: i32,
        space: u32,
        newest: u64,
        calls: &[u64],
        most: usize,
    ) -> &[StackFrame] {
        self.chain.clear();
        let (kept, count) = (self.kept, calls.len() as u64);
        if count == 0 || count > kept || newest >= kept {
            return &[];
        }
        if self.depths.len() >= MOST_THREADS && !self.depths.contains_key(&thread) {
            self.depths.clear();
        }
        let depth = self.depths.entry(thread).or_insert(START);
        let outermost = (newest + kept + 1 - count) % kept;
        *depth = *depth - (*depth - outermost) % kept + count - 1;
        // Stacks grow downwards. The innermost frame is the sampled function, which has no call record.
        let at = |inward: u64| u64::MAX - *depth - inward;
        self.chain.push(StackFrame::sampled(Avma(0), at(1)));
        let calls = calls.iter().zip(0..);
        self.chain.extend(calls.map(|(from, out)| StackFrame::returned_to(Avma(*from), at(0) + out)));
        let joined = self.joiner.join(thread, space, ChainEnd::Cut, most, &mut self.chain);
        if joined.is_none() {
            // No earlier sample extends this stack, so it becomes the thread's last known stack.
            self.joiner.join(thread, space, ChainEnd::Root, most, &mut self.chain);
        }
        joined.map_or(&[], |own| &self.chain[own..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEPT: u64 = 4;

    /// Returns the calls from one depth to another, in the form in which the CPU records them.
    fn calls(lowest: u64, depth: u64) -> (u64, Vec<u64>) {
        ((depth - 1) % KEPT, (lowest..depth).rev().map(|call| 100 + call).collect())
    }

    fn seen(stitcher: &mut Stitcher, thread: i32, (newest, calls): (u64, Vec<u64>)) -> Vec<u64> {
        stitcher.stitch(thread, 1, newest, &calls, 100).iter().map(|call| call.address.0).collect()
    }

    #[test]
    fn deep_stack_is_stitched_to_an_earlier_one() {
        let mut stitcher = Stitcher::new(KEPT);
        for (lowest, depth, taken_over) in [
            (0, 4, &[][..]),
            (2, 6, &[101, 100]),
            // One common call is enough.
            (5, 9, &[104, 103, 102, 101, 100]),
            // Some calls return; the remaining calls are known.
            (5, 7, &[104, 103, 102, 101, 100]),
            // More calls return than the CPU records, and new calls are made.
            (3, 5, &[102, 101, 100]),
            // The samples have no call in common, so the stack starts anew.
            (12, 16, &[]),
            (13, 17, &[112]),
        ] {
            assert_eq!(seen(&mut stitcher, 1, calls(lowest, depth)), taken_over, "{lowest} {depth}");
        }
        // No calls are known for another thread or another space.
        assert!(seen(&mut stitcher, 2, calls(14, 18)).is_empty());
        assert_eq!(stitcher.stitch(1, 2, 1, &calls(14, 18).1, 100).len(), 0);
    }

    #[test]
    fn different_call_at_the_same_depth_is_not_joined() {
        let mut stitcher = Stitcher::new(KEPT);
        seen(&mut stitcher, 1, calls(0, 4));
        assert!(seen(&mut stitcher, 1, (1, vec![105, 104, 103, 999])).is_empty());
        // The earlier calls are forgotten.
        assert!(seen(&mut stitcher, 1, calls(1, 5)).is_empty());
        // Calls that look the same in different records are distinct calls.
        seen(&mut stitcher, 1, calls(0, 4));
        assert!(seen(&mut stitcher, 1, (2, calls(2, 6).1)).is_empty());
    }

    #[test]
    fn invalid_entries_are_skipped_and_chains_bounded() {
        let mut stitcher = Stitcher::new(KEPT);
        seen(&mut stitcher, 1, calls(0, 4));
        for (newest, calls) in [(4, vec![1]), (u64::MAX, vec![1]), (0, vec![]), (0, vec![1; 5])] {
            assert!(seen(&mut stitcher, 1, (newest, calls)).is_empty());
        }
        assert_eq!(stitcher.stitch(1, 1, 1, &calls(2, 6).1, 6).len(), 1);
        assert_eq!(Stitcher::new(0).stitch(1, 1, 0, &[1], 9).len(), 0);
        (0..2 * MOST_THREADS as i32).for_each(|thread| drop(seen(&mut stitcher, thread, calls(0, 4))));
        assert!(stitcher.depths.len() <= MOST_THREADS);
    }
}
