//! The counts of a recording in perf script's format: one line per counter and round.
//!
//! ```text
//! CPU   THREAD             VAL             ENA             RUN            TIME EVENT
//!   0       -1       110125835       110127542       110127542       100155289 cpu-clock
//! ```

use std::io::{self, Write};

use super::json::VERSION;
use pmc_text::table::{self, ColumnShape, left, right};
use pmc_text::text::{as_json, clean};
use pmc_text::units::Count;

/// perf's columns.
const COLUMNS: [ColumnShape; 7] =
    [right(0, 3), right(1, 8), right(1, 15), right(1, 15), right(1, 15), right(1, 15), left(1, 0)];

/// A counter's total at the end of a round.
#[derive(Debug, Clone, Copy)]
pub struct CountLine<'a> {
    /// The CPU, if counts are per CPU.
    pub cpu: Option<u32>,
    /// The thread, if counts are per thread.
    pub tid: Option<u32>,
    /// The count since the start.
    pub count: Count,
    /// Nanoseconds from the start of counting to the end of the round.
    pub at_ns: u64,
    /// The event's name; untrusted text.
    pub event: &'a str,
}

/// Writes the title line.
pub fn titles(out: &mut dyn Write) -> io::Result<()> {
    let titles = ["CPU", "THREAD", "VAL", "ENA", "RUN", "TIME", "EVENT"];
    writeln!(out, "{}", table::line(&COLUMNS, titles))
}

/// Writes a line.
pub fn line(out: &mut dyn Write, line: &CountLine<'_>) -> io::Result<()> {
    let CountLine { count, at_ns, event, .. } = line;
    let place = [line.cpu, line.tid].map(|number| number.map_or(-1, i64::from).to_string());
    let numbers = [count.value, count.enabled_ns, count.running_ns, *at_ns].map(|number| number.to_string());
    let cells = place.into_iter().chain(numbers).chain([clean(event).into_owned()]);
    writeln!(out, "{}", table::line(&COLUMNS, cells))
}

/// Writes a line as a JSON object.
pub fn json(out: &mut dyn Write, line: &CountLine<'_>) -> io::Result<()> {
    let CountLine { cpu, tid, count, at_ns, event } = line;
    let object = serde_json::json!({
        "version": VERSION, "record": "STAT", "cpu": cpu, "tid": tid, "value": count.value,
        "enabled_ns": count.enabled_ns, "running_ns": count.running_ns, "time": at_ns, "event": event,
    });
    writeln!(out, "{}", as_json(&object))
}
