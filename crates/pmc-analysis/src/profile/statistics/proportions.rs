//! Compares two shares obtained by sampling: their difference, its confidence interval, and the correction
//! for many such tests.
//!
//! Receives two shares, each with the number of draws from which it was estimated. Returns a
//! [`ShareDifference`].

use super::distribution::{incomplete_beta, t_two_sided};

/// The normal distribution's 97.5 % quantile.
const Z: f64 = 1.959_964;
/// The exact test is used if fewer samples than this are expected on either side.
const FEW: f64 = 10.0;

/// A share (0 to 1), and the number of equally weighted samples from which it was estimated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampledShare {
    /// The share.
    pub share: f64,
    /// Number of samples in total. Need not be an integer, because samples with unequal periods count less.
    pub(crate) draws: f64,
}

/// Difference between two shares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShareDifference {
    /// The second share minus the first.
    pub value: f64,
    /// Lower end of the 95 % confidence interval.
    pub low: f64,
    /// Upper end of the 95 % confidence interval.
    pub high: f64,
    /// Two-sided probability of a difference at least this large if the shares are equal.
    pub p: f64,
}

impl ShareDifference {
    /// Returns half the width of the confidence interval.
    pub fn error(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

impl SampledShare {
    /// Returns Wilson's 95 % confidence interval.
    pub fn interval(&self) -> (f64, f64) {
        let Self { share, draws } = *self;
        if draws <= 0.0 {
            return (0.0, 1.0);
        }
        let z2 = Z * Z;
        let middle = (share + z2 / (2.0 * draws)) / (1.0 + z2 / draws);
        let half = Z / (1.0 + z2 / draws)
            * (share * (1.0 - share) / draws + z2 / (4.0 * draws * draws)).max(0.0).sqrt();
        ((middle - half).clamp(0.0, share), (middle + half).clamp(share, 1.0))
    }

    fn count(&self) -> f64 {
        self.share * self.draws
    }
}

/// The interval is Newcombe's (1998, method 10), which combines the Wilson intervals of both shares. The test
/// is the pooled score test or, if few samples are expected, the exact test conditional on the total.
pub(crate) fn difference(first: SampledShare, second: SampledShare) -> ShareDifference {
    let value = second.share - first.share;
    let ((low1, high1), (low2, high2)) = (first.interval(), second.interval());
    let low = value - (second.share - low2).hypot(high1 - first.share);
    let high = value + (high2 - second.share).hypot(first.share - low1);
    ShareDifference { value, low: low.max(-1.0), high: high.min(1.0), p: probability(first, second) }
}

fn probability(first: SampledShare, second: SampledShare) -> f64 {
    let draws = first.draws + second.draws;
    if first.draws <= 0.0 || second.draws <= 0.0 {
        return 1.0;
    }
    let count = first.count() + second.count();
    let pooled = count / draws;
    if pooled <= 0.0 || pooled >= 1.0 {
        return 1.0;
    }
    let fewest = first.draws.min(second.draws);
    if pooled * fewest < FEW || (1.0 - pooled) * fewest < FEW {
        // Compare the expected number of the rarer outcome. If most draws are hits, the misses are rarer.
        let (rare, sum) = if pooled <= 0.5 {
            (second.count(), count)
        } else {
            (second.draws - second.count(), draws - count)
        };
        return binomial(rare, sum, second.draws / draws);
    }
    let z = (second.share - first.share)
        / (pooled * (1.0 - pooled) * (1.0 / first.draws + 1.0 / second.draws)).sqrt();
    normal_two_sided(z)
}

/// Returns the two-sided probability of `hits` or a less likely number of hits among `all` draws. Each draw
/// hits with probability `chance`. The result is twice the smaller tail.
pub(crate) fn binomial(hits: f64, all: f64, chance: f64) -> f64 {
    let misses = all - hits;
    let above = if hits <= 0.0 { 1.0 } else { incomplete_beta(chance, hits, misses + 1.0) };
    let below = if misses <= 0.0 { 1.0 } else { incomplete_beta(1.0 - chance, misses, hits + 1.0) };
    (2.0 * above.min(below)).min(1.0)
}

/// Returns the probability that a normal variable is further from 0 than `z`, on either side.
pub(crate) fn normal_two_sided(z: f64) -> f64 {
    // With 1e6 degrees of freedom, Student's t distribution equals the normal distribution to six digits in
    // the relevant range.
    t_two_sided(z, 1e6)
}

/// Adjusts the probabilities of many tests. Among the tests whose adjusted probability is below a level, the
/// expected fraction of chance results is at most that level. If there are no real differences, the level is
/// also the probability that any test falls below it.
pub(crate) fn adjusted(all: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|a, b| all[*b].total_cmp(&all[*a]));
    let mut out = vec![1.0; all.len()];
    let mut least = 1.0f64;
    for (from_last, at) in order.into_iter().enumerate() {
        let rank = all.len() - from_last;
        // The quotient is mathematically at least 1; `max` guards against rounding.
        least = least.min((all[at] * all.len() as f64 / rank as f64).max(all[at]));
        out[at] = least;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn near(got: f64, want: f64, within: f64) {
        assert!((got - want).abs() <= within, "{got} is not {want}");
    }

    #[test]
    fn intervals_match_newcombe() {
        // Newcombe, Statistics in Medicine 17 (1998) 873-890, table II: 56/70 minus 48/80 and 9/10 minus
        // 3/10, method 10.
        let of = |k: f64, n: f64| SampledShare { share: k / n, draws: n };
        let d = difference(of(48.0, 80.0), of(56.0, 70.0));
        near(d.value, 0.2, 1e-12);
        near(d.low, 0.0524, 5e-5);
        near(d.high, 0.3339, 5e-5);
        let d = difference(of(3.0, 10.0), of(9.0, 10.0));
        near(d.low, 0.1705, 5e-5);
        near(d.high, 0.8090, 5e-5);
    }

    #[test]
    fn test_is_pooled_or_exact() {
        let of = |k: f64, n: f64| SampledShare { share: k / n, draws: n };
        // z = 0.2 / sqrt(104/150 · 46/150 · (1/70 + 1/80)) = 2.650; P(|Z| > 2.650) = 0.00805.
        near(difference(of(48.0, 80.0), of(56.0, 70.0)).p, 0.008_05, 5e-5);
        // 0 of 1000 versus 5 of 1000: 2 · (1/2)^5.
        near(difference(of(0.0, 1000.0), of(5.0, 1000.0)).p, 0.0625, 1e-9);
        near(difference(of(1000.0, 1000.0), of(995.0, 1000.0)).p, 0.0625, 1e-9);
        near(normal_two_sided(1.959_964), 0.05, 1e-6);
        assert_eq!(difference(of(0.0, 10.0), of(0.0, 10.0)).p, 1.0);
        assert_eq!(difference(SampledShare { share: 0.0, draws: 0.0 }, of(5.0, 10.0)).p, 1.0);
    }

    #[test]
    fn multiple_test_correction_matches_the_paper() {
        // Benjamini and Hochberg (1995), section 3.2: the first four of these 15 tests pass at 0.05.
        let all = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719,
            0.6528, 0.7590, 1.0,
        ];
        let out = adjusted(&all);
        assert_eq!(out.iter().filter(|p| **p <= 0.05).count(), 4);
        near(out[0], 0.0015, 1e-12);
        assert!(adjusted(&[]).is_empty());
    }

    #[test]
    fn false_positive_rate_matches_the_level() {
        // Two samples of 2000 draws from one distribution, from a generator with a fixed seed.
        let mut state = 88_172_645_463_325_252u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let mut claimed = 0;
        for _ in 0..400 {
            let mut draw = || SampledShare {
                share: (0..2000).filter(|_| next() < 0.3).count() as f64 / 2000.0,
                draws: 2000.0,
            };
            claimed += usize::from(difference(draw(), draw()).p < 0.05);
        }
        assert!((8..=36).contains(&claimed), "{claimed} of 400, 20 expected");
    }

    proptest! {
        #[test]
        fn intervals_contain_the_estimate_and_swapping_flips_the_sign(
            a in 0.0f64..=1.0, b in 0.0f64..=1.0, m in 0.0f64..1e6, n in 0.0f64..1e6,
        ) {
            let (first, second) = (SampledShare { share: a, draws: m }, SampledShare { share: b, draws: n });
            let (d, e) = (difference(first, second), difference(second, first));
            prop_assert!(d.low <= d.value && d.value <= d.high, "{:?}", d);
            prop_assert!((0.0..=1.0).contains(&d.p), "{:?}", d);
            prop_assert!((d.low + e.high).abs() < 1e-9 && (d.p - e.p).abs() < 1e-6, "{:?} {:?}", d, e);
        }
    }
}
