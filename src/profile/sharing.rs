//! How far a scaled count may be off: the error that time-sharing a counter brings.
//!
//! Receives a [`Count`]; hands on a relative error. Decides the model, which is written down here; leaves the
//! wording to `view`.
//!
//! An event that shares its counter is counted in slices and extrapolated:
//!
//! ```text
//! enabled  |----------------------------------------|
//! running  |####|    |    |####|    |    |####|    |    share = running / enabled
//! ```
//!
//! The count is then a sample of slices without replacement. With `n` slices seen and a rate that varies
//! between slices as much as its own mean (a coefficient of variation of 1, as for a program of which every
//! other phase is idle), the standard error of the extrapolated total is `sqrt((1 - share) / n)` of it
//! (Cochran, *Sampling Techniques*, finite population correction). The interval shown is ±1.96 of these.

use crate::units::Count;

/// The kernel's usual time between two turns of the counters, nanoseconds (`perf_event_mux_interval_ms` of a
/// PMU, 4 on x86 and most others).
const TURN_NS: f64 = 4e6;

/// Half the 95 % interval of the scaled count, relative to it (0.012 is ±1.2 %); `None` when the event was
/// always on a counter, or never.
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
    fn the_error_falls_with_time_and_share() {
        let shared = |enabled_ns, running_ns| relative_error(Count { value: 1000, enabled_ns, running_ns });
        assert_eq!(shared(1_000_000_000, 1_000_000_000), None);
        assert_eq!(shared(1_000_000_000, 0), None);
        let half = shared(800_000_000, 400_000_000).unwrap();
        assert!((half - 1.96 * (0.5f64 / 100.0).sqrt()).abs() < 1e-12, "{half}");
        assert!(shared(8_000_000_000, 4_000_000_000).unwrap() < half);
        assert!(shared(800_000_000, 100_000_000).unwrap() > half);
    }
}
