//! The table of delays. It has perf's columns, followed by quantiles and the tasks that ran during the
//! longest delay.

use std::io::{self, Write};

use super::{runners, unmatched};
use crate::sched::latency::{DelayKind, LatencyRow, SchedLatency};
use crate::sched::tasks::SchedTasks;
use pmc_text::text::clean;
use pmc_text::units::{PerfTime, counted, milliseconds};

/// Number of dashes in the lines around the titles, above the totals, and below the totals.
const LINES: [usize; 3] = [139, 113, 51];

/// Writes the table with at most `limit` rows.
pub(in crate::sched) fn write(out: &mut dyn Write, latency: &SchedLatency, limit: usize) -> io::Result<()> {
    let [wide, middle, short] = LINES.map(|count| format!(" {}", "-".repeat(count)));
    writeln!(out, "\n{wide}")?;
    let (delay, count) = match latency.kind {
        DelayKind::Delays => ("delay", "Count  "),
        DelayKind::Waits => ("wait ", "Waits  "),
    };
    writeln!(
        out,
        "  Task                  |   Runtime ms  |  {count} | Avg {delay} ms    | Max {delay} ms    | \
         Max {delay} start           | Max {delay} end          | p50 {delay} ms    | p99 {delay} ms    | \
         Ran during max {delay}"
    )?;
    writeln!(out, "{wide}")?;
    for line in latency.rows.iter().take(limit) {
        row(out, &latency.tasks, line)?;
    }
    if latency.rows.len() > limit {
        let more = counted((latency.rows.len() - limit) as u64, "more row");
        writeln!(out, "  … and {more} (--limit 0 shows all)")?;
    }
    writeln!(out, "{middle}")?;
    writeln!(
        out,
        "  TOTAL:                |{:11.3} ms |{:9} |",
        milliseconds(latency.runtime),
        latency.count
    )?;
    writeln!(out, "{short}")?;
    if latency.kind == DelayKind::Waits {
        writeln!(
            out,
            "  Waits are off-CPU times, asleep or runnable: the recording has no wake-ups, so the delay after\n  waking is unknown, and only recorded tasks are named. For delays and all tasks, record\n  as root: pmc sched record -- COMMAND"
        )?;
    } else if !latency.has_wakeups {
        writeln!(
            out,
            "  The recording has no wake-ups, so only the delays of preempted tasks are shown; pmc sched record also records wake-ups"
        )?;
    }
    unmatched(out, &latency.counts)?;
    writeln!(out)
}

fn row(out: &mut dyn Write, tasks: &SchedTasks, row: &LatencyRow) -> io::Result<()> {
    let task = tasks.get(row.task);
    let name = clean(&task.comm()).into_owned();
    let name = match row.tasks {
        1 => format!("  {name}:{} ", task.tid),
        tasks => format!("  {name}:({tasks}) "),
    };
    let (start, end) = row.longest.as_ref().map_or((0, 0), |longest| (longest.begin, longest.end));
    write!(
        out,
        "{name:24}|{:11.3} ms |{:9} | avg:{:8.3} ms | max:{:8.3} ms | max start: {:>12} s | max end: {:>12} s",
        milliseconds(row.runtime),
        row.count,
        milliseconds(row.average()),
        milliseconds(row.max()),
        PerfTime(start),
        PerfTime(end)
    )?;
    let quantile = |share| milliseconds(row.delays.quantile(share));
    write!(out, " | p50:{:8.3} ms | p99:{:8.3} ms | ", quantile(0.5), quantile(0.99))?;
    match &row.longest {
        Some(longest) => {
            let loss = if longest.has_loss { " (records lost)" } else { "" };
            let ran = runners(tasks, &longest.ran, longest.duration());
            writeln!(out, "cpu {}: {}{loss}", longest.cpu, ran)
        }
        None => writeln!(out, "-"),
    }
}
