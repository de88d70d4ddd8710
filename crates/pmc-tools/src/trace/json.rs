//! The calls as JSON, one object a line, and the tables as a JSON document. docs/trace.md explains the
//! fields.

use std::io::{self, Write};

use super::summary::{CallKey, CallStatistics, CallSummary, ThreadCalls};
use pmc_sys::error::errno_words;
use pmc_text::text::as_json;
use serde_json::{Map, Value, json};

use super::descriptors::CallDescriptors;
use super::text::{self, SummaryLayout, TraceTotals};
use super::tracer::{CallResult, TracedCall};
use pmc_analysis::profile::script::{AddressFunction, AddressFunctions};

/// Version of the JSON format; increases when the meaning of a field changes.
const VERSION: u32 = 1;

/// Writes the document. docs/trace.md explains the fields.
pub(super) fn write_json(
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

/// Writes the number of calls that `--limit` cut off.
pub(super) fn write_omitted_json(out: &mut dyn Write, calls: u64) -> io::Result<()> {
    writeln!(out, "{}", json!({"omitted": {"calls": calls}}))
}

/// Writes a call as a JSON object on one line. docs/trace.md explains the fields.
pub(super) fn write_call_json(
    out: &mut dyn Write,
    call: &TracedCall,
    descriptors: &CallDescriptors,
    functions: Option<&AddressFunctions>,
) -> io::Result<()> {
    let entered = &call.entered;
    let mut named = Map::new();
    for (at, argument) in text::arguments(call, descriptors).into_iter().enumerate() {
        let name = if argument.name.is_empty() { format!("arg{at}") } else { argument.name.to_owned() };
        named.insert(name, argument.value.into());
    }
    let (result, error) = match call.result {
        CallResult::Value(value) => (Some(value), None),
        CallResult::Error(errno) => (Some(-1), Some(errno_words(errno).0)),
        CallResult::Unfinished => (None, None),
    };
    let duration = (call.result != CallResult::Unfinished).then(|| call.duration());
    let frame = |function: &AddressFunction| json!({"symbol": function.symbol.as_deref(), "dso": function.dso.as_deref(), "offset": function.offset});
    let stack = functions.map(|_| text::stack(call, functions).map(frame).collect::<Vec<_>>());
    let object = json!({
        "time_ns": entered.begin, "duration_ns": duration, "comm": &*call.comm, "pid": entered.thread.pid,
        "tid": entered.thread.tid, "name": entered.call().map(|known| known.name), "number": entered.number,
        "is_32_bit": entered.abi.is_32_bit(), "args": named, "words": entered.arguments, "result": result,
        "error": error, "text": text::result(call, descriptors), "has_loss": call.has_loss,
        "stack": stack,
    });
    pmc_text::text::write_json(out, &object)?;
    writeln!(out)
}
