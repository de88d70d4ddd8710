//! Shares: the totals that they refer to, and their accuracy.

use crate::session::SampleValue;

/// The total that shares refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ShareOf {
    /// The periods: CPU time if the event is a clock.
    #[default]
    Period,
    /// The periods, divided by the number of threads that ran at the same time: wall-clock time.
    Latency,
}

impl ShareOf {
    /// Returns the cost of a value: its period or its latency.
    pub fn cost(self, value: &SampleValue) -> u64 {
        match self {
            Self::Period => value.period,
            Self::Latency => value.latency(),
        }
    }

    /// Returns the number of equally costly samples whose sum would be equally accurate: `(Σw)² ÷ Σw²`.
    pub(crate) fn draws(self, value: &SampleValue) -> f64 {
        let (sum, squares) = match self {
            Self::Period => (value.period as f64, value.squares),
            Self::Latency => (value.latency() as f64, value.latency_squares()),
        };
        if squares > 0.0 { sum * sum / squares } else { 0.0 }
    }
}

/// Returns the share (0 to 1) of a cost in the total.
pub(super) fn share(cost: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { cost as f64 / all as f64 }
}

/// Returns half the width of Wilson's 95 % confidence interval for a share that was estimated from this
/// number of draws. Returns 1 if there are no draws. The interval is also valid near 0 and 1.
pub fn half_width(share: f64, draws: f64) -> f64 {
    if draws <= 0.0 {
        return 1.0;
    }
    let z2 = 1.96f64 * 1.96;
    1.96 / (1.0 + z2 / draws) * (share * (1.0 - share) / draws + z2 / (4.0 * draws * draws)).max(0.0).sqrt()
}
