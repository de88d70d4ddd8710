//! Durations over time, in bounded memory. When there are too many time slices, adjacent slices are merged in
//! pairs.

use super::ranges::DurationRanges;

/// Maximum number of time slices.
const MAX_SLICES: usize = 240;
/// Length of a time slice at the start, in nanoseconds.
const FIRST_SLICE: u64 = 1_000_000;

/// Number of intervals by end time and duration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HeatMap {
    /// Start of the first slice, in nanoseconds of the recording's clock.
    pub(super) from: u64,
    /// Length of a slice in nanoseconds.
    pub(super) slice: u64,
    /// The durations of each slice.
    pub(super) slices: Vec<DurationRanges>,
}

impl HeatMap {
    /// Returns an empty heat map that starts at this time.
    pub(super) fn new(from: u64) -> Self {
        Self { from, slice: FIRST_SLICE, slices: Vec::new() }
    }

    /// Adds an interval that ended at `time`.
    pub(super) fn add(&mut self, time: u64, duration: u64) {
        let since = time.saturating_sub(self.from);
        while since / self.slice >= MAX_SLICES as u64 {
            self.join();
        }
        let slice = (since / self.slice) as usize;
        if slice >= self.slices.len() {
            self.slices.resize_with(slice + 1, DurationRanges::default);
        }
        self.slices[slice].add(duration);
    }

    /// Returns the heat map with at most this number of slices.
    #[must_use]
    pub(super) fn within(mut self, most: usize) -> Self {
        while self.slices.len() > most.max(1) {
            self.join();
        }
        self
    }

    fn join(&mut self) {
        self.slice = self.slice.saturating_mul(2);
        let joined = self.slices.chunks(2).map(|pair| {
            let mut both = pair[0].clone();
            pair[1..].iter().for_each(|other| both.merge(other));
            both
        });
        self.slices = joined.collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_and_nothing_is_lost() {
        let mut map = HeatMap::new(1000);
        for n in 0..10_000u64 {
            map.add(1000 + n * 1_000_000, 5 + n % 2 * 1000);
        }
        map.add(u64::MAX, 7);
        let count = |map: &HeatMap| -> u64 {
            map.slices.iter().map(|slice| (0..60).map(|range| slice.count(range)).sum::<u64>()).sum()
        };
        assert!(map.slices.len() <= MAX_SLICES);
        assert_eq!(count(&map), 10_001);
        let small = map.within(10);
        assert!(small.slices.len() <= 10 && count(&small) == 10_001);
    }
}
