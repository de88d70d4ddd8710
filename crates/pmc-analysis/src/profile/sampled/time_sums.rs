//! The cost of rows over time: the sums by time slice that timelines show.

use rustc_hash::FxHashMap;

/// Sums by time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TimeSums {
    /// Start of the first slice, in nanoseconds of the recording's clock.
    pub from: u64,
    /// Length of a slice in nanoseconds.
    pub slice: u64,
    /// Sum of the periods in each slice.
    pub sums: Vec<u64>,
}

/// Maximum number of slices in [`TimeSums`]; longer recordings have longer slices.
const SLICES: u64 = 2000;

pub(super) fn times(sums: &FxHashMap<u64, u64>, slice: u64) -> TimeSums {
    let slice = slice.max(1);
    let (Some(first), Some(last)) = (sums.keys().min(), sums.keys().max()) else {
        return TimeSums { from: 0, slice, sums: Vec::new() };
    };
    let join = (last - first) / SLICES + 1;
    let mut out = vec![0; ((last - first) / join + 1) as usize];
    for (at, sum) in sums {
        out[((at - first) / join) as usize] += sum;
    }
    TimeSums { from: first.saturating_mul(slice), slice: slice.saturating_mul(join), sums: out }
}
