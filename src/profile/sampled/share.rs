//! What percentages are parts of, and how exact they are.

use super::Value;

/// What shares are parts of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ShareOf {
    /// The periods: time of CPUs, where the event is a clock.
    #[default]
    Period,
    /// The periods shared among the threads that ran: time by the clock on the wall.
    Latency,
}

impl ShareOf {
    /// What a value adds to a share.
    pub fn cost(self, value: &Value) -> u64 {
        match self {
            Self::Period => value.period,
            Self::Latency => value.latency(),
        }
    }

    /// The number of equally costly samples whose sum would be as exact: `(Σw)² ÷ Σw²`.
    pub fn draws(self, value: &Value) -> f64 {
        let (sum, squares) = match self {
            Self::Period => (value.period as f64, value.squares),
            Self::Latency => (value.latency() as f64, value.latency_squares()),
        };
        if squares > 0.0 { sum * sum / squares } else { 0.0 }
    }
}

/// The part (0 to 1) that a cost is of all.
pub(super) fn share(cost: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { cost as f64 / all as f64 }
}

/// Half the width of Wilson's 95 % interval of a share that so many draws gave, which stays sensible near 0
/// and 1; 1 without draws.
pub fn half_width(share: f64, draws: f64) -> f64 {
    if draws <= 0.0 {
        return 1.0;
    }
    let z2 = 1.96f64 * 1.96;
    1.96 / (1.0 + z2 / draws) * (share * (1.0 - share) / draws + z2 / (4.0 * draws * draws)).max(0.0).sqrt()
}
