//! A distribution of durations that uses bounded memory.
//!
//! A histogram with logarithmic buckets, as in HdrHistogram: each power of two is divided into 32 buckets of
//! equal width, so a bucket's middle differs from each of its values by at most 1.6%. Count, sum, minimum
//! and maximum are exact.

use std::collections::BTreeMap;

/// Base-2 logarithm of the number of buckets per power of two.
const BITS: u32 = 5;

/// A distribution of durations in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DurationHistogram {
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
    /// Number of durations per bucket. At most 1,920 buckets exist, and only those in use take memory.
    buckets: BTreeMap<u16, u64>,
}

impl DurationHistogram {
    /// Adds a duration.
    pub fn add(&mut self, duration: u64) {
        self.min = if self.count == 0 { duration } else { self.min.min(duration) };
        self.max = self.max.max(duration);
        self.count += 1;
        self.sum += u128::from(duration);
        *self.buckets.entry(bucket(duration)).or_default() += 1;
    }

    /// Adds the durations of another histogram.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.sum += other.sum;
        for (bucket, count) in &other.buckets {
            *self.buckets.entry(*bucket).or_default() += count;
        }
    }

    /// Number of durations.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Sum of all durations.
    pub fn sum(&self) -> u64 {
        u64::try_from(self.sum).unwrap_or(u64::MAX)
    }

    /// Shortest duration; 0 if the histogram is empty.
    pub fn min(&self) -> u64 {
        self.min
    }

    /// Longest duration; 0 if the histogram is empty.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Average duration; 0 if the histogram is empty.
    pub fn mean(&self) -> u64 {
        u64::try_from(self.sum / u128::from(self.count.max(1))).unwrap_or(u64::MAX)
    }

    /// Returns the duration at `quantile` (0 to 1): the middle of its bucket, accurate to within 1.6%. Exact
    /// for 0 and 1; 0 if there are no durations.
    pub fn quantile(&self, quantile: f64) -> u64 {
        let rank = ((quantile * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        if rank == self.count {
            return self.max;
        }
        let mut below = 0;
        for (&bucket, count) in &self.buckets {
            below += count;
            if below >= rank {
                let (low, end) = bounds(bucket);
                return (low + (end - low - 1) / 2).clamp(self.min, self.max);
            }
        }
        self.max
    }

    /// Returns the number of durations per range, ascending: start (inclusive), end (exclusive), count. Omits
    /// empty ranges.
    pub fn ranges(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        self.buckets.iter().map(|(&bucket, &count)| {
            let (low, end) = bounds(bucket);
            (low, end, count)
        })
    }
}

/// Returns the index of the bucket that contains a duration.
fn bucket(duration: u64) -> u16 {
    let bits = 64 - duration.leading_zeros();
    // Each value below 32 has its own bucket.
    let shift = bits.saturating_sub(BITS + 1);
    let in_power = duration >> shift;
    ((u64::from(shift) << BITS) + in_power) as u16
}

/// Returns the range of a bucket: start (inclusive) and end (exclusive, saturating for the last bucket).
fn bounds(bucket: u16) -> (u64, u64) {
    let bucket = u64::from(bucket);
    let one = 1u64 << BITS;
    let shift = (bucket >> BITS).saturating_sub(1);
    let in_power = bucket - (shift << BITS);
    debug_assert!(in_power < 2 * one);
    let end = (u128::from(in_power) + 1) << shift;
    (in_power << shift, u64::try_from(end).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn totals_are_exact_and_quantiles_are_close() {
        let mut all = DurationHistogram::default();
        assert_eq!((all.quantile(0.5), all.mean(), all.min()), (0, 0, 0));
        (1..=100_000u64).for_each(|duration| all.add(duration));
        assert_eq!((all.count(), all.sum(), all.min(), all.max()), (100_000, 5_000_050_000, 1, 100_000));
        assert_eq!((all.mean(), all.quantile(1.0), all.quantile(0.0)), (50_000, 100_000, 1));
        for (quantile, want) in [(0.5, 50_000.0), (0.99, 99_000.0), (0.001, 100.0)] {
            let error = all.quantile(quantile) as f64 / want - 1.0;
            assert!(error.abs() <= 0.016, "{quantile}: {error}");
        }
        let mut twice = all.clone();
        twice.merge(&all);
        assert_eq!((twice.count(), twice.quantile(0.5)), (200_000, all.quantile(0.5)));
    }

    proptest! {
        #[test]
        fn each_duration_is_in_its_bucket(duration in any::<u64>()) {
            let (low, end) = bounds(bucket(duration));
            prop_assert!(low <= duration && (duration < end || end == u64::MAX));
            prop_assert!((end - low) <= (duration >> BITS).max(1) || end == u64::MAX);
        }
    }
}
