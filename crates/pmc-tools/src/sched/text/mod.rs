//! Delays, histories and maps as text, in the formats of `perf sched`.

pub(super) mod latency;
pub(super) mod map;
pub(super) mod timehist;

use std::io::{self, Write};

use super::machine::{Runners, SchedCounts};
use super::tasks::{SchedTask, SchedTasks};
use pmc_text::text::clean;
use pmc_text::units::thousands;

/// Maximum number of tasks to show for each delay.
const RUNNERS: usize = 3;

/// Formats a task as `NAME:TID`, or `idle`.
fn name_and_tid(task: &SchedTask) -> String {
    if task.is_idle() { "idle".to_owned() } else { format!("{}:{}", clean(&task.comm()), task.tid) }
}

/// Describes the tasks that ran during a delay, with their shares of the delay.
fn runners(tasks: &SchedTasks, ran: &Runners, duration: u64) -> String {
    let share = |ns: u64| 100.0 * ns as f64 / duration.max(1) as f64;
    let (named, rest) = ran.tasks.split_at(ran.tasks.len().min(RUNNERS));
    let mut words: Vec<String> = named
        .iter()
        .map(|(task, ns)| format!("{} {:.0}%", name_and_tid(tasks.get(*task)), share(*ns)))
        .collect();
    let others = rest.iter().fold(ran.others, |sum, (_, ns)| sum.saturating_add(*ns));
    if others > 0 {
        words.push(format!("others {:.0}%", share(others)));
    }
    if words.is_empty() { "unknown".to_owned() } else { words.join(", ") }
}

/// Prints the counts of unmatched events, if there are any.
fn unmatched(out: &mut dyn Write, counts: &SchedCounts) -> io::Result<()> {
    if counts.lost > 0 {
        let (lost, touched) = (thousands(counts.lost), thousands(counts.with_loss));
        writeln!(
            out,
            "  {lost} records were lost; {touched} on-CPU or off-CPU intervals span a loss, and each may be several intervals"
        )?;
    }
    for (count, what) in [
        (
            counts.unseen_runs,
            "tasks were switched out without a recorded switch-in (they ran before the recording, or records were lost)",
        ),
        (counts.unwoken, "tasks began to run without a recorded wake-up"),
        (counts.redundant_wakeups, "wake-ups of tasks that were running or already woken"),
        (counts.repeated, "tasks were switched onto or off a CPU twice in a row"),
        (counts.backwards, "intervals ended before they began (clocks differ between CPUs)"),
        (counts.expired, "intervals never ended and were dropped to save memory"),
    ] {
        if count > 0 {
            writeln!(out, "  {} {what}", thousands(count))?;
        }
    }
    Ok(())
}
