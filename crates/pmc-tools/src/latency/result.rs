//! The result of a measurement: counts, durations, and the slowest intervals.

use super::heat::HeatMap;
use super::ranges::DurationRanges;
use pmc_analysis::interval::{DurationHistogram, PairingCounts};

/// The quantiles to show.
pub(super) const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

/// Counts of the events of a measurement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LatencyCounts {
    /// Number of begin events.
    pub(super) begins: u64,
    /// Number of end events.
    pub(super) ends: u64,
    /// Counts of intervals and of unmatched events.
    pub(super) pairing: PairingCounts,
    /// Number of intervals that began during another interval with the same key.
    pub(super) nested: u64,
    /// Number of events without a key, because their samples do not contain a field of the key.
    pub(super) keyless: u64,
    /// Number of begin events whose end event has not occurred yet.
    pub(super) in_progress: u64,
    /// Number of lost records.
    pub(super) lost: u64,
    /// Number of intervals whose stack was not kept, because there were too many different stacks.
    pub(super) stackless: u64,
}

/// The distribution of the durations in a time span.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct DurationSums {
    /// The quantiles, accurate to 1.6%, and exact sums.
    pub(super) histogram: DurationHistogram,
    /// Exact counts by range.
    pub(super) ranges: DurationRanges,
}

impl DurationSums {
    /// Adds a duration in nanoseconds.
    pub(super) fn add(&mut self, duration: u64) {
        self.histogram.add(duration);
        self.ranges.add(duration);
    }
}

/// One of the longest intervals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SlowInterval {
    /// Time of the begin event, in nanoseconds of the recording's clock.
    pub(super) begin: u64,
    /// Duration in nanoseconds.
    pub(super) duration: u64,
    /// Process and thread of the begin event.
    pub(super) thread: (i32, i32),
    /// Name of that thread; untrusted text.
    pub(super) comm: String,
    /// The CPUs of the begin event and of the end event, if recorded.
    pub(super) cpus: [Option<u32>; 2],
    /// The values of the parts of the key; untrusted text.
    pub(super) key: Vec<String>,
    /// Whether records were lost during the interval.
    pub(super) has_loss: bool,
    /// Functions at the begin event, innermost first; untrusted text.
    pub(super) stack: Vec<String>,
}

/// The result of a measurement.
#[derive(Debug, Clone, Default)]
pub(super) struct LatencyReport {
    /// Names of the begin events and of the end events; untrusted text.
    pub(super) events: [Vec<String>; 2],
    /// Description of each part of the key.
    pub(super) key: Vec<String>,
    /// Whether intervals with the same key can be nested.
    pub(super) nests: bool,
    /// Nanoseconds from the first to the last event, or the duration of the measurement.
    pub(super) elapsed: u64,
    /// Counts of events.
    pub(super) counts: LatencyCounts,
    /// The durations.
    pub(super) durations: DurationSums,
    /// The longest intervals, longest first.
    pub(super) slowest: Vec<SlowInterval>,
    /// Durations over time, if requested.
    pub(super) heat: Option<HeatMap>,
    /// Age in nanoseconds of the oldest begin event without an end event.
    pub(super) oldest: Option<u64>,
}

/// The durations of the intervals that ended within a time span.
#[derive(Debug, Clone, Default)]
pub(super) struct LatencySlice {
    /// End of the span, in nanoseconds since the start.
    pub(super) until: u64,
    /// The durations.
    pub(super) durations: DurationSums,
    /// Counts since the start.
    pub(super) counts: LatencyCounts,
}
