//! The history of CPUs and the totals of tasks, in perf's format.

use std::io::{self, Write};

use super::{runners, unmatched};
use crate::sched::tasks::{SchedTask, SchedTasks};
use crate::sched::timehist::{TimehistLine, TimehistRequest, TimehistRun, TimehistSummary, TimehistTotal};
use pmc_text::table::{self, ColumnShape, left, right};
use pmc_text::text::clean;
use pmc_text::units::PerfTime;

/// Minimum width of the task column.
const NAME_WIDTH: usize = 30;

/// Maximum width of a name with its ids.
const MAX_NAME: usize = 31;

/// Width of the priority column.
const PRIO_WIDTH: usize = 8;

/// Writes the lines of a history.
#[derive(Debug)]
pub(in crate::sched) struct TimehistWriter<'a> {
    request: &'a TimehistRequest,
    /// Whether to print call chains.
    has_chains: bool,
    /// Number of CPUs.
    cpus: u32,
    /// Width of the task column.
    width: usize,
}

impl<'a> TimehistWriter<'a> {
    /// `cpus` is the number of CPUs.
    pub(in crate::sched) fn new(request: &'a TimehistRequest, has_chains: bool, cpus: u32) -> Self {
        Self { request, has_chains, cpus, width: NAME_WIDTH }
    }

    /// Number of columns for CPUs. perf adds one to the number of CPUs.
    fn cpu_columns(&self) -> usize {
        self.cpus as usize + 1
    }

    /// Writes the titles.
    pub(in crate::sched) fn titles(&self, out: &mut dyn Write) -> io::Result<()> {
        let (shown, cpus) = (self.request, self.cpu_columns());
        let digits: String = (0..cpus).map(|cpu| format!("{:x}", cpu % 16)).collect();
        let time = |title| (right(2, 9), title, "(msec)");
        let mut columns = vec![(right(0, 15), "time", ""), (right(1, 6), "cpu", "")];
        columns.extend(shown.cpu_visual.then_some((left(2, cpus), digits.as_str(), "")));
        columns.push((left(2, self.width), "task name", "[tid/pid]"));
        columns.extend(shown.show_prio.then_some((left(2, PRIO_WIDTH), "prio", "")));
        columns.extend(["wait time", "sch delay", "run time"].map(time));
        columns.extend(shown.pre_migrations.then(|| time("pre-mig time")));
        columns.extend(shown.state.then_some((left(2, 5), "state", "")));
        let shapes: Vec<ColumnShape> = columns.iter().map(|(shape, ..)| *shape).collect();
        let titles = table::line(&shapes, columns.iter().map(|(_, title, _)| title));
        let units = table::line(&shapes, columns.iter().map(|(.., unit)| unit));
        let rules = table::line(&shapes, shapes.iter().map(|shape| "-".repeat(shape.least)));
        [titles, units, rules].iter().try_for_each(|line| writeln!(out, "{}", line.trim_end()))
    }

    /// Writes a line.
    pub(in crate::sched) fn line(
        &mut self,
        out: &mut dyn Write,
        tasks: &SchedTasks,
        line: &TimehistLine<'_>,
    ) -> io::Result<()> {
        match line {
            TimehistLine::Ran(row) => self.ran(out, tasks, row),
            TimehistLine::Woken { time, cpu, waker, woken } => {
                let cpus = self.cpu_columns();
                let visual = if self.request.cpu_visual { format!(" {:cpus$} ", "") } else { String::new() };
                let waker = self.name(tasks.get(*waker));
                self.write_start(out, *time, *cpu, &visual, &waker)?;
                writeln!(out, "awakened: {}", self.name(tasks.get(*woken)))
            }
            TimehistLine::Migrated { time, cpu, mover, migrant, from, to } => {
                let visual = match self.request.cpu_visual {
                    true => format!("  {}  ", self.marks(*cpu, 'm')),
                    false => String::new(),
                };
                let mover = self.name(tasks.get(*mover));
                self.write_start(out, *time, *cpu, &visual, &mover)?;
                writeln!(out, "migrated: {} cpu {from} => {to}", self.name(tasks.get(*migrant)))
            }
            TimehistLine::Lost { time, cpu, count } => {
                writeln!(out, "{:>15} lost {count} events on cpu {cpu}", PerfTime(*time))
            }
        }
    }

    /// Writes the first columns of a line, and leaves the columns for times blank.
    fn write_start(
        &self,
        out: &mut dyn Write,
        time: u64,
        cpu: u32,
        visual: &str,
        name: &str,
    ) -> io::Result<()> {
        let width = self.width;
        write!(out, "{:>15} [{cpu:04}] {visual} {name:width$} ", PerfTime(time))?;
        write!(out, "  {:9}  {:9}  {:9} ", "", "", "")
    }

    fn marks(&self, cpu: u32, mark: char) -> String {
        (0..self.cpu_columns()).map(|column| if column == cpu as usize { mark } else { ' ' }).collect()
    }

    fn ran(&mut self, out: &mut dyn Write, tasks: &SchedTasks, row: &TimehistRun<'_>) -> io::Result<()> {
        let task = tasks.get(row.task);
        let shown = self.request;
        write!(out, "{:>15} [{:04}] ", PerfTime(row.time), row.cpu)?;
        if shown.cpu_visual {
            write!(out, " {} ", self.marks(row.cpu, if task.is_idle() { 'i' } else { 's' }))?;
        }
        let name = self.name(task);
        let width = self.width;
        write!(out, " {name:width$} ")?;
        if shown.show_prio {
            let prio = match row.prio {
                (Some(before), after) if before != after => format!("{before}->{after}"),
                (_, after) => after.to_string(),
            };
            write!(out, " {prio:PRIO_WIDTH$} ")?;
        }
        for time in [row.wait, row.delay, row.run] {
            milliseconds(out, time, 6)?;
        }
        if shown.pre_migrations {
            milliseconds(out, row.before_migration, 6)?;
        }
        if shown.state {
            write!(out, " {:>5} ", row.state)?;
        }
        match &row.next {
            Some((comm, tid)) if shown.next => {
                let next: String = format!("next: {}[{tid}]", clean(comm)).chars().take(29).collect();
                write!(out, " {next:width$}")?;
            }
            _ if shown.wakeups => write!(out, "  {:width$}", "")?,
            _ => {}
        }
        if self.has_chains && !task.is_idle() {
            let names = row.chain.iter().map(|name| name.map_or("[unknown]".into(), clean));
            let names: Vec<_> = names.collect();
            write!(out, "  {}{}", if names.is_empty() { "" } else { " " }, names.join(" <- "))?;
        }
        if shown.blame && row.delay > 0 {
            write!(out, "  ran: {}", runners(tasks, &row.ran, row.delay))?;
        }
        if row.has_loss {
            write!(out, "  [records lost]")?;
        }
        if row.is_unseen {
            write!(out, "  [times unknown: switch to this task not recorded]")?;
        }
        writeln!(out)
    }

    /// Returns a task's name with its ids, and widens the task column if necessary.
    fn name(&mut self, task: &SchedTask) -> String {
        let name = name(task);
        self.width = self.width.max(name.chars().count());
        name
    }

    /// Writes each task's totals.
    pub(in crate::sched) fn summary(
        &mut self,
        out: &mut dyn Write,
        summary: &TimehistSummary,
    ) -> io::Result<()> {
        let width = self.width;
        let (title, columns) = match (self.request.idle, self.request.state) {
            (true, _) => (
                "Idle-time summary",
                "  parent  sched-out    idle-time   min-idle    avg-idle    max-idle  stddev  migrations",
            ),
            (_, true) => (
                "Wait-time summary",
                "  parent   sched-in     run-time      sleep      iowait     preempt       delay",
            ),
            _ => (
                "Runtime summary",
                "  parent   sched-in     run-time    min-run     avg-run     max-run  stddev  migrations",
            ),
        };
        writeln!(out, "\n{title}\n{:>width$}{columns}", "comm")?;
        writeln!(
            out,
            "{:width$}            (count)       (msec)     (msec)      (msec)      (msec)       {}",
            "",
            if self.request.state { "(msec)" } else { "%" }
        )?;
        writeln!(out, "{}", "-".repeat(117))?;
        for total in &summary.living {
            self.total(out, &summary.tasks, total)?;
        }
        if summary.living.is_empty() {
            writeln!(out, "<no still running tasks>")?;
        }
        if !summary.ended.is_empty() {
            writeln!(out, "\nTerminated tasks:")?;
        }
        for total in &summary.ended {
            self.total(out, &summary.tasks, total)?;
        }
        let all = || summary.living.iter().chain(&summary.ended).map(|total| &total.sums);
        let mut switches: u64 = all().map(|sums| sums.count).sum();
        if !summary.idle.is_empty() && (!summary.is_filtered || self.request.idle) {
            writeln!(out, "\nIdle stats:")?;
            for (cpu, sums) in &summary.idle {
                match sums {
                    Some(sums) => {
                        switches += sums.count;
                        write!(out, "    CPU {cpu:2} idle for ")?;
                        milliseconds(out, sums.run, 6)?;
                        let share = 100.0 * sums.run as f64 / summary.duration.max(1) as f64;
                        writeln!(out, " msec  ({share:6.2}%)")?;
                    }
                    None => writeln!(out, "    CPU {cpu:2} idle entire time window")?,
                }
            }
        }
        writeln!(out, "\n    Total number of unique tasks: {}", summary.living.len() + summary.ended.len())?;
        write!(out, "Total number of context switches: {switches}\n           Total run time (msec): ")?;
        milliseconds(out, all().fold(0, |sum, sums| u64::saturating_add(sum, sums.run)), 2)?;
        write!(out, "\n    Total scheduling time (msec): ")?;
        milliseconds(out, summary.duration, 2)?;
        writeln!(out, " (x {})", summary.cpus)?;
        unmatched(out, &summary.counts)
    }

    fn total(&self, out: &mut dyn Write, tasks: &SchedTasks, total: &TimehistTotal) -> io::Result<()> {
        let (task, sums, width) = (tasks.get(total.task), &total.sums, self.width);
        write!(out, "{:>width$}   {:5}  {:9} ", name(task), task.parent.unwrap_or(-1), sums.count)?;
        milliseconds(out, sums.run, 8)?;
        if self.request.state && !self.request.idle {
            for (at, time) in [sums.sleep, sums.iowait, sums.preempt, sums.delay].into_iter().enumerate() {
                write!(out, "{}", if at == 0 { "" } else { " " })?;
                milliseconds(out, time, 6)?;
            }
            return writeln!(out);
        }
        for (time, behind) in [(sums.min, " "), (sums.mean(), " "), (sums.max, "  ")] {
            milliseconds(out, time, 6)?;
            write!(out, "{behind}")?;
        }
        writeln!(out, "{:5.2}   {:5}", sums.relative_error() as f32, sums.migrations)
    }
}

/// Formats a task's name with its thread and process id.
fn name(task: &SchedTask) -> String {
    let comm = task.comm();
    let comm = clean(&comm);
    let name = match (task.tid, task.pid) {
        (_, 0) => comm.into_owned(),
        (tid, pid) if tid != pid => format!("{comm}[{tid}/{pid}]"),
        (tid, _) => format!("{comm}[{tid}]"),
    };
    name.chars().take(MAX_NAME).collect()
}

/// Prints a time in milliseconds, truncated to microseconds, followed by a space.
fn milliseconds(out: &mut dyn Write, ns: u64, width: usize) -> io::Result<()> {
    write!(out, "{:width$}.{:03} ", ns / 1_000_000, ns / 1000 % 1000)
}
