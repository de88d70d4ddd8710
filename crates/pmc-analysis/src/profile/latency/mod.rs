//! The time between two events, as views show it: its distribution, a heat map, and the slowest intervals.
//!
//! `analysis::latency` pairs the events and fills in a [`LatencyReport`]; `view::latency` prints it.
//! Durations are counted in ranges that start at 1, 2 and 5 times a power of ten.

mod heat;
mod ranges;

pub use heat::HeatMap;
pub use ranges::{DurationRanges, RANGES, range_bounds};

use crate::interval::{DurationHistogram, PairingCounts};

/// Counts of the events of a measurement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LatencyCounts {
    /// Number of begin events.
    pub begins: u64,
    /// Number of end events.
    pub ends: u64,
    /// Counts of intervals and of unmatched events.
    pub pairing: PairingCounts,
    /// Number of intervals that began during another interval with the same key.
    pub nested: u64,
    /// Number of events without a key, because their samples do not contain a field of the key.
    pub keyless: u64,
    /// Number of begin events whose end event has not occurred yet.
    pub in_progress: u64,
    /// Number of lost records.
    pub lost: u64,
    /// Number of intervals whose stack was not kept, because there were too many different stacks.
    pub stackless: u64,
}

/// The distribution of the durations in a time span.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DurationSums {
    /// The quantiles, accurate to 1.6%, and exact sums.
    pub histogram: DurationHistogram,
    /// Exact counts by range.
    pub ranges: DurationRanges,
}

impl DurationSums {
    /// Adds a duration in nanoseconds.
    pub(crate) fn add(&mut self, duration: u64) {
        self.histogram.add(duration);
        self.ranges.add(duration);
    }
}

/// One of the longest intervals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlowInterval {
    /// Time of the begin event, in nanoseconds of the recording's clock.
    pub begin: u64,
    /// Duration in nanoseconds.
    pub duration: u64,
    /// Process and thread of the begin event.
    pub thread: (i32, i32),
    /// Name of that thread; untrusted text.
    pub comm: String,
    /// The CPUs of the begin event and of the end event, if recorded.
    pub cpus: [Option<u32>; 2],
    /// The values of the parts of the key; untrusted text.
    pub key: Vec<String>,
    /// Whether records were lost during the interval.
    pub has_loss: bool,
    /// Functions at the begin event, innermost first; untrusted text.
    pub stack: Vec<String>,
}

/// The result of a measurement.
#[derive(Debug, Clone, Default)]
pub struct LatencyReport {
    /// Names of the begin events and of the end events; untrusted text.
    pub events: [Vec<String>; 2],
    /// Description of each part of the key.
    pub key: Vec<String>,
    /// Whether intervals with the same key can be nested.
    pub nests: bool,
    /// Nanoseconds from the first to the last event, or the duration of the measurement.
    pub elapsed: u64,
    /// Counts of events.
    pub counts: LatencyCounts,
    /// The durations.
    pub durations: DurationSums,
    /// The longest intervals, longest first.
    pub slowest: Vec<SlowInterval>,
    /// Durations over time, if requested.
    pub heat: Option<HeatMap>,
    /// Age in nanoseconds of the oldest begin event without an end event.
    pub oldest: Option<u64>,
}

/// The durations of the intervals that ended within a time span.
#[derive(Debug, Clone, Default)]
pub struct LatencySlice {
    /// End of the span, in nanoseconds since the start.
    pub until: u64,
    /// The durations.
    pub durations: DurationSums,
    /// Counts since the start.
    pub counts: LatencyCounts,
}
