//! The tables as a JSON document.

use std::io::{self, Write};

use super::{CallKey, CallStatistics, CallSummary, ThreadCalls};
use pmc_sys::error::errno_words;
use pmc_text::text::as_json;
use serde_json::{Value, json};

use super::text::SummaryLayout;
use super::text::TraceTotals;

/// Version of the JSON format; increases when the meaning of a field changes.
const VERSION: u32 = 1;

/// Writes the document. docs/trace.md explains the fields.
///
/// # Errors
/// Fails if writing to `out` fails.
pub fn write_json(
    out: &mut dyn Write,
    summary: &CallSummary,
    totals: &TraceTotals,
    layout: &SummaryLayout,
) -> io::Result<()> {
    let counts = &totals.counts;
    let by_thread = summary.by_thread();
    let threads = by_thread.iter().take(layout.most_rows).map(|thread| {
        let (calls, omitted) = calls(thread, layout);
        json!({
            "comm": &*thread.comm, "pid": thread.thread.pid, "tid": thread.thread.tid, "calls": calls,
            "omitted": {"calls": omitted},
        })
    });
    let threads: Vec<Value> = threads.collect();
    let (total, omitted) = calls(&summary.total(), layout);
    let document = json!({
        "version": VERSION, "elapsed_ns": totals.elapsed_ns, "shown": totals.shown, "lost": counts.lost,
        "returned": counts.returned, "unfinished": counts.unfinished, "begun_before": counts.begun_before,
        "without_begin": counts.without_begin, "without_end": counts.without_end,
        "backwards": counts.backwards, "with_loss": counts.with_loss,
        "total": total, "omitted": {"calls": omitted, "threads": by_thread.len() - threads.len()},
        "threads": threads,
    });
    writeln!(out, "{:#}", as_json(&document))
}

/// Returns the calls that took the most time, and the number of omitted ones.
fn calls(thread: &ThreadCalls, layout: &SummaryLayout) -> (Vec<Value>, usize) {
    let call = |(key, call): (CallKey, &CallStatistics)| {
        let d = &call.durations;
        let errors: serde_json::Map<String, Value> =
            call.errors.iter().map(|(errno, count)| (errno_words(*errno).0, (*count).into())).collect();
        json!({
            "name": key.name(), "number": key.number, "is_32_bit": key.abi.is_32_bit(), "calls": d.count(),
            "failed": call.failed(), "errors": errors, "unfinished": call.unfinished, "total_ns": d.sum(),
            "min_ns": d.min(), "avg_ns": d.mean(), "p50_ns": d.quantile(0.5), "p99_ns": d.quantile(0.99),
            "max_ns": d.max(),
        })
    };
    let all = thread.by_time();
    let omitted = all.len().saturating_sub(layout.most_rows);
    (all.into_iter().take(layout.most_rows).map(call).collect(), omitted)
}
