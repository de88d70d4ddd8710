//! Tables of system calls.
//!
//! ```text
//!  dd (1234), 2,003 calls
//!
//!    syscall                   calls  errors        total        min        avg  …        max
//!                                                  (msec)     (msec)     (msec)        (msec)
//!    -------------------- ---------- ------- ------------ ---------- ----------  … ----------
//!    read                       1000       0        1.234      0.001      0.001  …      0.020
//! ```

use std::io::{self, Write};

use crate::trace::summary::{CallStatistics, CallSummary, ThreadCalls};
use pmc_sys::error::errno_words;
use pmc_text::text::clean;
use pmc_text::units::{milliseconds, seconds, thousands};

use super::{TraceTotals, call_name};

/// Options of the tables.
#[derive(Debug, Clone, Copy)]
pub(in crate::trace) struct SummaryLayout {
    /// Whether to show how often each error occurred.
    pub by_errno: bool,
    /// Whether to show a table for each thread.
    pub by_thread: bool,
    /// Maximum number of rows of a table.
    pub most_rows: usize,
}

/// Writes a table for each thread, then a table for all threads together.
pub(in crate::trace) fn write_threads(
    out: &mut dyn Write,
    summary: &CallSummary,
    totals: &TraceTotals,
    layout: &SummaryLayout,
) -> io::Result<()> {
    let threads = summary.by_thread();
    writeln!(out, "\n Summary of events:")?;
    for thread in threads.iter().filter(|_| layout.by_thread) {
        let comm = clean(&thread.comm);
        let count = thousands(thread.count());
        match thread.thread.tid {
            -1 => writeln!(out, "\n {comm}, {count} calls\n")?,
            tid => writeln!(out, "\n {comm} ({tid}), {count} calls\n")?,
        }
        table(out, thread, layout)?;
    }
    if threads.len() > 1 || !layout.by_thread {
        let total = summary.total();
        writeln!(
            out,
            "\n total, {} threads, {} calls\n",
            thousands(threads.len() as u64),
            thousands(total.count())
        )?;
        table(out, &total, layout)?;
    }
    facts(out, totals)
}

fn table(out: &mut dyn Write, thread: &ThreadCalls, layout: &SummaryLayout) -> io::Result<()> {
    writeln!(
        out,
        "   {:<20} {:>10} {:>7} {:>12} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "syscall", "calls", "errors", "total", "min", "avg", "p50", "p99", "max"
    )?;
    writeln!(
        out,
        "   {:<20} {:>10} {:>7} {:>12} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "", "", "", "(msec)", "(msec)", "(msec)", "(msec)", "(msec)", "(msec)"
    )?;
    let rule = |width: usize| "-".repeat(width);
    let rules = [20, 10, 7, 12, 10, 10, 10, 10, 10].map(rule).join(" ");
    writeln!(out, "   {rules}")?;
    for (key, call) in thread.by_time().into_iter().take(layout.most_rows) {
        let d = &call.durations;
        if d.count() == 0 {
            continue;
        }
        writeln!(
            out,
            "   {:<20} {:>10} {:>7} {:>12.3} {:>10.3} {:>10.3} {:>10.3} {:>10.3} {:>10.3}",
            call_name(key),
            d.count(),
            call.failed(),
            milliseconds(d.sum()),
            milliseconds(d.min()),
            milliseconds(d.mean()),
            milliseconds(d.quantile(0.5)),
            milliseconds(d.quantile(0.99)),
            milliseconds(d.max())
        )?;
        if layout.by_errno {
            errors(out, call)?;
        }
    }
    Ok(())
}

/// Writes how often the call failed with each error.
fn errors(out: &mut dyn Write, call: &CallStatistics) -> io::Result<()> {
    let mut all: Vec<(&i32, &u64)> = call.errors.iter().collect();
    all.sort_by_key(|(errno, count)| (std::cmp::Reverse(**count), **errno));
    all.into_iter()
        .try_for_each(|(errno, count)| writeln!(out, "     {:>28}: {count}", errno_words(*errno).0))
}

/// Writes one table for all threads, with the columns of `strace -c`.
pub(in crate::trace) fn write_totals(
    out: &mut dyn Write,
    summary: &CallSummary,
    totals: &TraceTotals,
    layout: &SummaryLayout,
) -> io::Result<()> {
    let total = summary.total();
    let rows = total.by_time();
    let all_ns: u64 = rows.iter().map(|(_, call)| call.durations.sum()).fold(0, u64::saturating_add);
    let micros = |ns: u64| ns as f64 / 1e3;
    writeln!(
        out,
        "{:>6} {:>11} {:>11} {:>9} {:>9} {:>10} {:>10} {:>10} syscall",
        "% time", "seconds", "usecs/call", "calls", "errors", "p50(us)", "p99(us)", "max(us)"
    )?;
    let rules = [6, 11, 11, 9, 9, 10, 10, 10, 16].map(|width| "-".repeat(width)).join(" ");
    writeln!(out, "{rules}")?;
    let failed: u64 = rows.iter().map(|(_, call)| call.failed()).sum();
    for (key, call) in rows.iter().take(layout.most_rows) {
        let d = &call.durations;
        if d.count() == 0 {
            continue;
        }
        let errors_here = if call.failed() > 0 { call.failed().to_string() } else { String::new() };
        writeln!(
            out,
            "{:>6.2} {:>11.6} {:>11} {:>9} {:>9} {:>10.1} {:>10.1} {:>10.1} {}",
            d.sum() as f64 * 100.0 / all_ns.max(1) as f64,
            seconds(d.sum()),
            d.mean() / 1000,
            d.count(),
            errors_here,
            micros(d.quantile(0.5)),
            micros(d.quantile(0.99)),
            micros(d.max()),
            call_name(*key)
        )?;
        if layout.by_errno {
            errors(out, call)?;
        }
    }
    writeln!(out, "{rules}")?;
    let count = total.count();
    writeln!(
        out,
        "{:>6.2} {:>11.6} {:>11} {:>9} {:>9} {:>10} {:>10} {:>10} total",
        100.0,
        seconds(all_ns),
        all_ns / count.max(1) / 1000,
        count,
        if failed > 0 { failed.to_string() } else { String::new() },
        "",
        "",
        ""
    )?;
    facts(out, totals)
}

/// Summarizes how complete the data in the tables is.
fn facts(out: &mut dyn Write, totals: &TraceTotals) -> io::Result<()> {
    let counts = &totals.counts;
    let lost = match counts.lost {
        0 => "none lost".to_owned(),
        lost => format!("{} records lost", thousands(lost)),
    };
    let recorded = match counts.returned == totals.shown {
        true => String::new(),
        false => format!(" ({} recorded)", thousands(counts.returned)),
    };
    let (shown, elapsed) = (thousands(totals.shown), seconds(totals.elapsed_ns));
    writeln!(out, "\n {shown} calls in {elapsed:.3} s{recorded}, {lost}")?;
    let others = [
        (counts.unfinished, "had not returned at the end"),
        (counts.begun_before, "began before tracing; excluded from the tables"),
        (counts.without_begin, "returned without a recorded start; excluded from the tables"),
        (counts.without_end, "started, but their end is unknown; excluded from the tables"),
        (counts.backwards, "ended before they began, because CPU clocks differ; excluded from the tables"),
        (counts.with_loss, "were in progress when records were lost; their times may be too long"),
    ];
    others
        .iter()
        .filter(|(count, _)| *count > 0)
        .try_for_each(|(count, what)| writeln!(out, " {} {what}", thousands(*count)))
}
