//! Estimates the error of a scaled count if the event shared its counter with other events.
//!
//! Receives a [`Count`] and returns a relative error; `view` decides the wording. An event that shares its
//! counter is counted in slices and extrapolated:
//!
//! ```text
//! enabled  |----------------------------------------|
//! running  |####|    |    |####|    |    |####|    |    share = running / enabled
//! ```

use pmc_text::units::Count;

/// The kernel's usual interval between two rotations of the counters, in nanoseconds
/// (`perf_event_mux_interval_ms` of a PMU, 4 on x86 and most other machines).
const TURN_NS: f64 = 4e6;

/// Returns half the width of the 95 % confidence interval for the scaled count, relative to the count. For
/// example, 0.012 means ±1.2 %. Returns `None` if the event was always on a counter, or never.
///
/// The count is a sample of slices without replacement. Let `n` be the number of slices in which the event
/// was counted. Assume that the standard deviation of the rate between slices equals its mean. This is a
/// coefficient of variation of 1, as for a program that is idle in every other slice. The relative standard
/// error of the extrapolated total is then `sqrt((1 - share) / n)` (Cochran, *Sampling Techniques*, finite
/// population correction). The interval shown is ±1.96 standard errors.
pub fn relative_error(count: Count) -> Option<f64> {
    if count.running_ns == 0 || count.running_ns >= count.enabled_ns {
        return None;
    }
    let slices = (count.running_ns as f64 / TURN_NS).max(1.0);
    Some(1.96 * ((1.0 - count.share()) / slices).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_decreases_with_time_and_share() {
        let shared = |enabled_ns, running_ns| relative_error(Count { value: 1000, enabled_ns, running_ns });
        assert_eq!(shared(1_000_000_000, 1_000_000_000), None);
        assert_eq!(shared(1_000_000_000, 0), None);
        let half = shared(800_000_000, 400_000_000).unwrap();
        assert!((half - 1.96 * (0.5f64 / 100.0).sqrt()).abs() < 1e-12, "{half}");
        assert!(shared(8_000_000_000, 4_000_000_000).unwrap() < half);
        assert!(shared(800_000_000, 100_000_000).unwrap() > half);
    }
}
