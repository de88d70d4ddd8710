//! `-j`: JSON lines with the same keys as in perf 6.1, one object per event and place.
//!
//! ```text
//! {"interval" : 0.050127508, "core" : "S0-D0-C0", "aggregate-number" : 1, "counter-value" : "50.300492",
//!  "unit" : "msec", "event" : "task-clock", "cgroup" : "/", "variance" : 1.23, "event-runtime" : 50299670,
//!  "pcnt-running" : 100.00, "metric-value" : 1.006010, "metric-unit" : "CPUs utilized"}
//! ```
//! As in perf, counts are strings; [`super::document`] has numbers. Unlike perf, pmc escapes strings. Each
//! metric of an event is a separate object.

use std::io::{self, Write};

use super::{
    StatStyle, cells, in_its_unit, metric_table, missing, place, share_percent, threshold, variance,
};
use pmc_analysis::profile::counts::{Aggregation, StatCounts};
use pmc_analysis::profile::metrics::shadow::shadow;
use pmc_text::text::as_json;
use pmc_text::units::PerfTime;

/// Writes the counts of a run, an interval or a summary.
pub fn write(out: &mut dyn Write, counts: &StatCounts, style: &StatStyle) -> io::Result<()> {
    if style.metric_only {
        return metrics_only(out, counts);
    }
    for (row, event) in cells(counts) {
        line(out, counts, row, event)?;
    }
    for (row, derived) in counts.derived.iter().enumerate().take(counts.rows.len()) {
        for metric in derived {
            let prefix = prefix(counts, row, None);
            let cgroup = metric.cgroup.as_ref().map(|c| format!("\"cgroup\" : {}, ", as_json(c)));
            let cgroup = cgroup.unwrap_or_default();
            // Write `null` for a missing value. perf would write an arbitrary number.
            let value = metric.value.as_ref().map_or_else(|_| "null".to_owned(), |v| format!("{v:.6}"));
            let threshold =
                metric.crossed.map(|crossed| format!(", \"metric-threshold\" : \"{}\"", threshold(crossed)));
            let threshold = threshold.unwrap_or_default();
            writeln!(
                out,
                "{{{prefix}{cgroup}\"metric-value\" : {value}, \"metric-unit\" : {}{threshold}}}",
                as_json(&in_its_unit(metric))
            )?;
        }
    }
    Ok(())
}

/// Returns the keys before the value: interval and place, each with its comma.
pub(super) fn prefix(counts: &StatCounts, row: usize, event: Option<usize>) -> String {
    let mut out = String::new();
    if let Some(time) = counts.timestamp_ns {
        out += &format!("\"interval\" : {:.9}, ", PerfTime(time));
    }
    let row = &counts.rows[row];
    let word = place::word(&row.place, counts.aggregation);
    let (key, word) = match counts.aggregation {
        Aggregation::Global => return out,
        Aggregation::Cpu => ("cpu", word.trim_start_matches("CPU").to_owned()),
        Aggregation::Core => ("core", word),
        Aggregation::Cluster => ("cluster", word),
        Aggregation::Cache(_) => ("cache", word),
        Aggregation::Die => ("die", word),
        Aggregation::Socket => ("socket", word),
        Aggregation::Node => ("node", word),
        Aggregation::Thread => ("thread", word),
        Aggregation::Children | Aggregation::Levels => ("part", word),
    };
    out += &format!("\"{key}\" : {}, ", as_json(&word));
    if place::is_summed(counts.aggregation) {
        out += &format!("\"aggregate-number\" : {}, ", place::summed(counts, row, event));
    }
    out
}

fn line(out: &mut dyn Write, counts: &StatCounts, row: usize, at: usize) -> io::Result<()> {
    let (value, event) = (counts.value(row, at), &counts.events[at]);
    let number = match missing(value) {
        Some(words) => words.to_owned(),
        None => format!("{:.6}", value.number().unwrap_or_default() * event.scale),
    };
    let prefix = prefix(counts, row, Some(at));
    let (unit, name) = (as_json(&event.unit), as_json(&event.name));
    write!(out, "{{{prefix}\"counter-value\" : \"{number}\", \"unit\" : {unit}, \"event\" : {name}, ")?;
    if counts.has_cgroups() {
        write!(out, "\"cgroup\" : {}, ", as_json(event.cgroup.as_deref().unwrap_or_default()))?;
    }
    if let Some(variance) = variance(counts, value) {
        write!(out, "\"variance\" : {variance:.2}, ")?;
    }
    write!(
        out,
        "\"event-runtime\" : {}, \"pcnt-running\" : {:.2}, ",
        value.running_ns(),
        share_percent(value)
    )?;
    let metrics = shadow(counts, row, at);
    let Some((first, rest)) = metrics.split_first() else {
        return writeln!(out, "\"metric-value\" : 0.000000, \"metric-unit\" : \"\"}}");
    };
    writeln!(out, "\"metric-value\" : {:.6}, \"metric-unit\" : {}}}", first.value, as_json(&first.unit))?;
    for metric in rest {
        writeln!(
            out,
            "{{{prefix}\"metric-value\" : {:.6}, \"metric-unit\" : {}}}",
            metric.value,
            as_json(&metric.unit)
        )?;
    }
    Ok(())
}

/// Writes one object per place, with one key per metric; `null` for a missing value.
fn metrics_only(out: &mut dyn Write, counts: &StatCounts) -> io::Result<()> {
    let columns = metric_table::columns(counts, metric_table::for_programs);
    for row in 0..counts.rows.len() {
        let before = prefix(counts, row, None);
        let pairs = columns.iter().map(|column| {
            let value =
                column.cells[row].as_ref().map_or("null".to_owned(), |cell| format!("{:.6}", cell.value));
            format!("{} : {value}", as_json(&column.title))
        });
        let line = before + &pairs.collect::<Vec<_>>().join(", ");
        writeln!(out, "{{{}}}", line.trim_end_matches(", "))?;
    }
    Ok(())
}
