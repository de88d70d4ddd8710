//! Ranges of durations, which the report shows as bars. Each starts at 1, 2 or 5 times a power of ten, and
//! ends where the next one starts.

use std::sync::LazyLock;

/// Number of ranges.
pub(super) const RANGES: usize = 60;

/// The start of each range in nanoseconds: 0, 1, 2, 5, 10, 20, …
static STARTS: LazyLock<[u64; RANGES]> = LazyLock::new(|| {
    let mut starts = [u64::MAX; RANGES];
    starts[0] = 0;
    let mut power = 1u64;
    for three in starts[1..].chunks_mut(3) {
        for (start, factor) in three.iter_mut().zip([1, 2, 5]) {
            *start = power.saturating_mul(factor);
        }
        power = power.saturating_mul(10);
    }
    starts
});

/// Returns the start (inclusive) and the end (exclusive) of a range in nanoseconds.
pub(super) fn range_bounds(range: usize) -> (u64, u64) {
    let start = STARTS.get(range).copied().unwrap_or(u64::MAX);
    (start, STARTS.get(range + 1).copied().unwrap_or(u64::MAX))
}

/// Number of durations in each range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DurationRanges([u64; RANGES]);

impl Default for DurationRanges {
    fn default() -> Self {
        Self([0; RANGES])
    }
}

impl DurationRanges {
    /// Adds a duration in nanoseconds.
    pub(super) fn add(&mut self, duration: u64) {
        self.0[STARTS.partition_point(|start| *start <= duration).clamp(1, RANGES) - 1] += 1;
    }

    /// Adds the durations counted in another list.
    pub(super) fn merge(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(own, other)| *own += other);
    }

    /// Number of durations in a range.
    pub(super) fn count(&self, range: usize) -> u64 {
        self.0.get(range).copied().unwrap_or(0)
    }

    /// Returns the first and the last range with durations.
    pub(super) fn used(&self) -> Option<(usize, usize)> {
        let first = self.0.iter().position(|count| *count > 0)?;
        Some((first, self.0.iter().rposition(|count| *count > 0)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_are_decimal() {
        assert_eq!((range_bounds(0), range_bounds(1), range_bounds(3)), ((0, 1), (1, 2), (5, 10)));
        assert_eq!(range_bounds(19), (1_000_000, 2_000_000));
        assert_eq!(range_bounds(RANGES - 1), (u64::MAX, u64::MAX));
        let mut ranges = DurationRanges::default();
        [1_000_000, 1_999_999, 2_000_000, 0, u64::MAX].iter().for_each(|duration| ranges.add(*duration));
        assert_eq!((ranges.count(19), ranges.count(20), ranges.count(0)), (2, 1, 1));
        assert_eq!(ranges.used(), Some((0, RANGES - 1)));
    }

    proptest! {
        #[test]
        fn each_duration_is_in_its_range(duration in any::<u64>()) {
            let mut ranges = DurationRanges::default();
            ranges.add(duration);
            let (range, _) = ranges.used().unwrap();
            let (start, end) = range_bounds(range);
            prop_assert!(start <= duration && (duration < end || end == u64::MAX));
        }
    }
}
