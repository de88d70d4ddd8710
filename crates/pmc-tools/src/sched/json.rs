//! Delays, histories and totals as JSON. All times are in nanoseconds.

use std::io::{self, Write};

use serde_json::{Value as Json, json};

use super::latency::{DelayKind, LatencyRow, SchedLatency};
use super::machine::{Runners, SchedCounts};
use super::tasks::{SchedTask, SchedTaskId, SchedTasks};
use super::timehist::{TimehistLine, TimehistSummary, TimehistSums, TimehistTotal};
use pmc_text::json_document::list_up_to;
use pmc_text::text::write_json;

/// Version of the JSON format.
const VERSION: u32 = 1;

/// Writes the delays as a JSON document with at most `limit` rows.
pub(super) fn latency(out: &mut dyn Write, latency: &SchedLatency, limit: usize) -> io::Result<()> {
    let kind = match latency.kind {
        DelayKind::Delays => "delay",
        DelayKind::Waits => "wait",
    };
    write!(
        out,
        "{{\n\"version\": {VERSION},\n\"kind\": \"{kind}\",\n\"has_wakeups\": {},\n",
        latency.has_wakeups
    )?;
    write!(out, "\"counts\": {},\n\"rows\": ", counts(&latency.counts))?;
    let omitted = list_up_to(out, &latency.rows, limit, |line| row(&latency.tasks, line))?;
    writeln!(out, ",\n\"omitted\": {{\"rows\": {omitted}}}\n}}")
}

fn row(tasks: &SchedTasks, row: &LatencyRow) -> Json {
    let task = tasks.get(row.task);
    let longest = row.longest.as_ref().map(|longest| {
        json!({
            "begin_ns": longest.begin, "end_ns": longest.end, "cpu": longest.cpu,
            "has_loss": longest.has_loss, "ran": ran(tasks, &longest.ran),
        })
    });
    json!({
        "comm": task.comm(),
        "tid": (row.tasks == 1).then_some(task.tid),
        "tasks": row.tasks,
        "runtime_ns": row.runtime,
        "wait_ns": row.waited,
        "count": row.count,
        "avg_ns": row.average(),
        "p50_ns": row.delays.quantile(0.5),
        "p90_ns": row.delays.quantile(0.9),
        "p99_ns": row.delays.quantile(0.99),
        "max_ns": row.max(),
        "max": longest,
    })
}

fn ran(tasks: &SchedTasks, ran: &Runners) -> Json {
    let one = |(id, ns): &(SchedTaskId, u64)| {
        let task = tasks.get(*id);
        json!({"comm": task.comm(), "tid": task.tid, "ns": ns})
    };
    let named: Json = ran.tasks.iter().map(one).collect();
    json!({"tasks": named, "others_ns": ran.others})
}

fn counts(counts: &SchedCounts) -> Json {
    json!({
        "runs": counts.runs, "delays": counts.delays, "unseen_runs": counts.unseen_runs,
        "without_wakeup": counts.unwoken, "redundant_wakeups": counts.redundant_wakeups,
        "repeated": counts.repeated, "backwards": counts.backwards, "expired": counts.expired,
        "with_loss": counts.with_loss, "lost_records": counts.lost,
    })
}

fn about(task: &SchedTask) -> Json {
    json!({"comm": task.comm(), "tid": task.tid, "pid": (task.pid >= 0).then_some(task.pid)})
}

/// Writes one line of the history as a JSON object.
pub(super) fn timehist(out: &mut dyn Write, tasks: &SchedTasks, line: &TimehistLine<'_>) -> io::Result<()> {
    let object = match line {
        TimehistLine::Ran(row) => {
            let known = |ns: u64| (!row.is_unseen).then_some(ns);
            json!({
                "kind": "run", "time_ns": row.time, "cpu": row.cpu, "task": about(tasks.get(row.task)),
                "wait_ns": known(row.wait), "delay_ns": known(row.delay), "run_ns": known(row.run),
                "before_migration_ns": known(row.before_migration), "state": row.state.to_string(),
                "prio": row.prio.1, "has_loss": row.has_loss,
                "next": row.next.as_ref().map(|(comm, tid)| json!({"comm": comm, "tid": tid})),
                "ran": ran(tasks, &row.ran), "chain": row.chain,
            })
        }
        TimehistLine::Woken { time, cpu, waker, woken } => json!({
            "kind": "wakeup", "time_ns": time, "cpu": cpu, "waker": about(tasks.get(*waker)),
            "task": about(tasks.get(*woken)),
        }),
        TimehistLine::Migrated { time, cpu, mover, migrant, from, to } => json!({
            "kind": "migration", "time_ns": time, "cpu": cpu, "mover": about(tasks.get(*mover)),
            "task": about(tasks.get(*migrant)), "from_cpu": from, "to_cpu": to,
        }),
        TimehistLine::Lost { time, cpu, count } => {
            json!({"kind": "lost", "time_ns": time, "cpu": cpu, "records": count})
        }
    };
    write_json(out, &object)?;
    writeln!(out)
}

/// Writes the number of lines that `--limit` cut off.
pub(super) fn omitted(out: &mut dyn Write, lines: usize) -> io::Result<()> {
    writeln!(out, "{}", json!({"kind": "omitted", "omitted": {"lines": lines}}))
}

/// Writes the totals of all CPUs, and of at most `limit` tasks, as one JSON object.
pub(super) fn summary(out: &mut dyn Write, summary: &TimehistSummary, limit: usize) -> io::Result<()> {
    let total = |has_ended: bool| {
        move |total: &TimehistTotal| {
            let (task, sums) = (summary.tasks.get(total.task), &total.sums);
            json!({
                "task": about(task), "parent": task.parent, "ended": has_ended,
                "count": sums.count, "run_ns": sums.run, "min_run_ns": sums.min, "avg_run_ns": sums.mean(),
                "max_run_ns": sums.max, "sleep_ns": sums.sleep, "iowait_ns": sums.iowait,
                "preempt_ns": sums.preempt, "delay_ns": sums.delay, "migrations": sums.migrations,
            })
        }
    };
    let living = summary.living.iter().map(total(false));
    let mut tasks = living.chain(summary.ended.iter().map(total(true)));
    let shown: Json = tasks.by_ref().take(limit).collect();
    let idle = |(cpu, sums): &(u32, Option<TimehistSums>)| json!({"cpu": cpu, "idle_ns": sums.as_ref().map(|sums| sums.run)});
    let idle: Json = summary.idle.iter().map(idle).collect();
    let object = json!({
        "kind": "summary", "duration_ns": summary.duration, "tasks": shown, "idle": idle,
        "counts": counts(&summary.counts), "omitted": {"tasks": tasks.count()},
    });
    write_json(out, &object)?;
    writeln!(out)
}
