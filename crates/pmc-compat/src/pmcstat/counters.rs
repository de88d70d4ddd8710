//! Counts events for `pmcstat`'s counter table.

use std::ffi::OsString;
use std::fs::File;
use std::io::stderr;
use std::time::Duration;

use super::OS_ERROR;
use super::text::CounterTable;
use pmc_events::counter::Levels;
use pmc_events::counter::counter_set::{CounterReading, CounterSet};
use pmc_events::counter::facts::MachineFacts;
use pmc_events::event::EventParser;
use pmc_recording::recording::counting::{CountPlan, CountingSetup, IntervalReadings, Observer, measure};
use pmc_recording::recording::plan::{MeasurementScope, RunSchedule};
use pmc_recording::recording::{launch, targets};
use pmc_sys::error::{Error, Exit, Result};
use pmc_sys::host::Host;
use pmc_sys::host::process::ThreadInfo;
use pmc_sys::sys::output_file;
use pmc_sys::sys::process::Streams;
use pmc_text::terminal;

/// Counters to print in columns.
pub struct Columns {
    pub counters: Vec<Column>,
    pub pids: Vec<u32>,
    pub command: Vec<OsString>,
    pub interval_ns: u64,
    pub timeout: Option<Duration>,
    pub file: Option<String>,
}

/// A counter in the table.
pub struct Column {
    /// The event as the user typed it.
    pub spec: String,
    /// The event in pmc's syntax.
    pub event: String,
    /// Whether it counts system-wide.
    pub system: bool,
    /// Whether to print totals instead of differences from the previous line.
    pub cumulative: bool,
}

/// Counts, and prints the counts, until the run ends.
pub fn run(plan: &Columns, host: &Host) -> Result<Exit> {
    let (counted, mut counters) = prepare(plan, host)?;
    let signals = launch::signals(&[])?;
    let setup = CountingSetup {
        host,
        plan: counted,
        run_schedule: RunSchedule {
            command: plan.command.clone(),
            timeout: plan.timeout,
            ..RunSchedule::default()
        },
        streams: Streams::Shared,
        signals: &signals,
        control: None,
        watcher: None,
    };
    measure(setup, &mut counters)?;
    Ok(Exit::Done)
}

/// Counts, and prints the counts, while `record` runs.
pub fn while_recording(
    plan: &Columns,
    record: impl FnOnce((CountPlan, &mut dyn Observer)) -> Result<Exit>,
) -> Result<Exit> {
    let host = Host::live();
    let (counted, mut counters) = prepare(plan, &host)?;
    record((counted, &mut counters))
}

/// Returns the plan for counting, and the observer that prints the counts.
fn prepare<'a>(plan: &'a Columns, host: &'a Host) -> Result<(CountPlan, PmcstatCounters<'a>)> {
    let is_system = plan.counters.iter().all(|counter| counter.system);
    let mut scope = match (is_system, plan.pids.is_empty()) {
        (true, _) => MeasurementScope::Cpus(host.online_cpus()),
        (false, true) => MeasurementScope::Command,
        (false, false) => MeasurementScope::Processes(plan.pids.clone()),
    };
    let mut parser = EventParser::new(host).with_target(launch::subject(&scope, &plan.command));
    let (mut groups, mut of_counter) = (Vec::new(), Vec::new());
    for (number, counter) in plan.counters.iter().enumerate() {
        for group in parser.parse(&counter.event)? {
            of_counter.extend(std::iter::repeat_n(number, group.events.len()));
            groups.push((group, None));
        }
    }
    targets::include_descendants(&mut scope, groups.iter().flat_map(|(group, _)| &group.events))?;
    let out = match &plan.file {
        None => rustix::io::dup(stderr()).map(File::from).map_err(Into::into),
        Some(path) => output_file::create(path.as_ref(), 0o666, false),
    };
    let out = out.map_err(|error| {
        let path = plan.file.as_deref().unwrap_or("standard error");
        Error::io(format!("ERROR: Cannot open \"{path}\" for writing"), error).exit(Exit::NotCreated)
    })?;
    let counted = CountPlan {
        groups,
        scope,
        // Each event has its own setting for child processes.
        inherit: false,
        levels: Levels::AsWritten,
        interval_ns: Some(plan.interval_ns),
        interval_count: None,
    };
    let (columns, scales, before) = (Vec::new(), Vec::new(), Vec::new());
    let table = CounterTable::default();
    Ok((counted, PmcstatCounters { host, plan, of_counter, out, table, columns, scales, before }))
}

struct PmcstatCounters<'a> {
    host: &'a Host,
    plan: &'a Columns,
    /// For each event, the index of its counter.
    of_counter: Vec<usize>,
    out: File,
    table: CounterTable,
    /// For each column, its counter and, if the counter is system-wide, its CPU.
    columns: Vec<(usize, Option<u32>)>,
    /// For each event, the factor for its count, and whether it uses a hardware counter.
    scales: Vec<(f64, bool)>,
    /// The previous total of each column.
    before: Vec<u64>,
}

impl Observer for PmcstatCounters<'_> {
    fn opened(&mut self, set: &CounterSet, _: &[ThreadInfo]) -> Result<()> {
        self.scales = set.specs().map(|spec| (spec.scale, spec.takes_counter())).collect();
        let doing = |of: usize| {
            let Column { spec, system, .. } = &self.plan.counters[of];
            let mode = if *system { "system" } else { "process" };
            format!("ERROR: Cannot allocate {mode}-mode pmc with specification \"{spec}\"")
        };
        let refused = set.refusals().zip(&self.of_counter).find_map(|(refusal, of)| Some((refusal?, *of)));
        if let Some((refusal, of)) = refused {
            let why = refusal.clone().isolate().explain(&MachineFacts::own(self.host));
            return Err(why.into_error(doing(of)).exit(Exit::Command(OS_ERROR)));
        }
        // If the event cannot count in the kernel, a count of 0 would be misleading.
        let seen = set.specs().zip(set.sees_kernel()).zip(set.user_only()).zip(&self.of_counter);
        let mut unseen = seen.filter(|(((spec, sees), _), _)| !sees && spec.is_of_kernel());
        match unseen.next() {
            None => Ok(()),
            Some(((_, by_privilege), of)) => {
                let error = Error::new(doing(*of)).exit(Exit::Command(OS_ERROR));
                let error = error.why("this event occurs only in the kernel, which is excluded");
                Err(match by_privilege {
                    true => {
                        error.try_this("sysctl kernel.perf_event_paranoid=1, or CAP_PERFMON; see pmc info")
                    }
                    false => error.try_this("omit usr"),
                })
            }
        }
    }

    fn interval(&mut self, interval: &IntervalReadings<'_>) -> Result<()> {
        if self.columns.is_empty() {
            self.columns = columns(&self.of_counter, interval.readings);
            self.before = vec![0; self.columns.len()];
            let spec = |&(counter, cpu): &(usize, _)| (self.plan.counters[counter].spec.as_str(), cpu);
            self.table = CounterTable::new(self.columns.iter().map(spec));
        }
        let values = self.columns.iter().zip(&mut self.before).map(|(&column, before)| {
            let own = interval.readings.iter().filter(|reading| place(&self.of_counter, reading) == column);
            let total = total(&self.scales, own);
            let shown = match self.plan.counters[column.0].cumulative {
                true => total,
                false => total.map(|total| total.saturating_sub(*before)),
            };
            *before = total.unwrap_or(*before);
            shown
        });
        let screen = terminal::size(&self.out).map(|(_, lines)| lines.into());
        self.table.write(&mut self.out, screen, values).map_err(|error| Error::output("the counts", error))
    }
}

/// Returns the sum of the readings, in the event's unit (whole ticks for a clock). The sum is scaled if the
/// event was multiplexed, and `None` if it was never counted.
fn total<'a>(scales: &[(f64, bool)], readings: impl Iterator<Item = &'a CounterReading>) -> Option<u64> {
    let counted = readings.filter_map(|reading| {
        let (scale, takes_counter) = scales[reading.event];
        let count = reading.count?;
        let value = if takes_counter { count.scaled()? } else { count.value as f64 };
        Some(value * scale)
    });
    // A float can represent counts up to 2^53 exactly.
    counted.reduce(|a, b| a + b).map(|value| (value + 1e-6).floor() as u64)
}

/// Returns the column to which a reading belongs.
fn place(of_counter: &[usize], reading: &CounterReading) -> (usize, Option<u32>) {
    (of_counter[reading.event], reading.slot.cpu.filter(|_| reading.slot.tid.is_none()))
}

/// Returns the columns, ordered by counter, then by CPU.
fn columns(of_counter: &[usize], readings: &[CounterReading]) -> Vec<(usize, Option<u32>)> {
    let mut columns: Vec<_> = readings.iter().map(|reading| place(of_counter, reading)).collect();
    columns.sort_unstable();
    columns.dedup();
    columns
}
