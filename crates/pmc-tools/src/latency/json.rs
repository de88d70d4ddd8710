//! The JSON output of `pmc latency`. docs/latency.md explains the fields.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::heat::HeatMap;
use super::ranges::{DurationRanges, RANGES, range_bounds};
use super::result::{DurationSums, LatencyCounts, LatencyReport, LatencySlice, QUANTILES, SlowInterval};
use pmc_text::text::as_json;

/// Version of the JSON format; increases when the meaning of a field changes.
const VERSION: u32 = 1;

/// Writes the report as one JSON object on one line.
pub(super) fn write(out: &mut dyn Write, report: &LatencyReport) -> io::Result<()> {
    let [begin, end] = &report.events;
    let document = json!({
        "version": VERSION,
        "begin": begin,
        "end": end,
        "key": report.key,
        "nests": report.nests,
        "elapsed_ns": report.elapsed,
        "durations": durations(&report.durations),
        "ranges": ranges(|range| report.durations.ranges.count(range)),
        "slowest": report.slowest.iter().map(slow).collect::<Vec<_>>(),
        "heat_map": report.heat.as_ref().map(heat_map),
        "counts": counts(&report.counts),
        "oldest_unfinished_ns": report.oldest,
    });
    writeln!(out, "{}", as_json(&document))
}

/// Writes the result of one `-I` interval as a JSON object on one line.
pub(super) fn write_slice(out: &mut dyn Write, slice: &LatencySlice) -> io::Result<()> {
    let document = json!({
        "version": VERSION,
        "until_ns": slice.until,
        "durations": durations(&slice.durations),
        "ranges": ranges(|range| slice.durations.ranges.count(range)),
        "counts": counts(&slice.counts),
    });
    writeln!(out, "{}", as_json(&document))
}

fn durations(durations: &DurationSums) -> Value {
    let histogram = &durations.histogram;
    let mut values = json!({
        "count": histogram.count(),
        "sum_ns": histogram.sum(),
        "min_ns": histogram.min(),
        "mean_ns": histogram.mean(),
        "max_ns": histogram.max(),
        "quantile_error": 0.016,
    });
    for (name, quantile) in QUANTILES {
        values[format!("{}_ns", name.replace('.', "_"))] = histogram.quantile(quantile).into();
    }
    values
}

/// Returns the ranges that contain durations.
fn ranges(count: impl Fn(usize) -> u64) -> Value {
    let used = (0..RANGES).map(|range| (range_bounds(range), count(range))).filter(|(_, count)| *count > 0);
    used.map(|((from, to), count)| json!({"from_ns": from, "to_ns": to, "count": count})).collect()
}

fn slow(slow: &SlowInterval) -> Value {
    json!({
        "begin_ns": slow.begin,
        "duration_ns": slow.duration,
        "pid": slow.thread.0,
        "tid": slow.thread.1,
        "comm": slow.comm,
        "begin_cpu": slow.cpus[0],
        "end_cpu": slow.cpus[1],
        "key": slow.key,
        "loss": slow.has_loss,
        "stack": slow.stack,
    })
}

fn heat_map(map: &HeatMap) -> Value {
    let slice = |slice: &DurationRanges| ranges(|range| slice.count(range));
    json!({
        "from_ns": map.from,
        "slice_ns": map.slice,
        "slices": map.slices.iter().map(slice).collect::<Vec<_>>(),
    })
}

fn counts(counts: &LatencyCounts) -> Value {
    let pairing = &counts.pairing;
    json!({
        "begins": counts.begins,
        "ends": counts.ends,
        "paired": pairing.paired,
        "ends_without_begin": pairing.ends_only,
        "begins_replaced": pairing.replaced,
        "nested": counts.nested,
        "unfinished": counts.in_progress,
        "lost": counts.lost,
        "intervals_with_loss": pairing.with_loss,
        "ends_before_begin": pairing.backwards,
        "begins_forgotten": pairing.expired,
        "without_key": counts.keyless,
        "without_stack": counts.stackless,
    })
}
