//! `pmc stat report`: shows the counts in a recording as tables of `pmc stat`.
//!
//! Passes the counts from [`analysis::counts`](pmc_analysis::analysis::counts) to the same tables and printer
//! as live counts.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::collect::{EventColumn, ShownEvents, StatMachine, TablePeriod, since};
use super::metrics::{CountSource, TableMetrics};
use super::print::StatPrinter;
use pmc_analysis::analysis::counts::{
    CounterTotal, CountsEvent, LoggedCounts, RecordedCounts, StatReportRequest, ThreadCounts,
};
use pmc_analysis::analysis::{counts, recording_quality};
use pmc_analysis::profile::counts::{Aggregation, MissingValueReason};
use pmc_analysis::session::{Session, Timestamp};
use pmc_events::counter::counter_set::CounterReading;
use pmc_events::counter::target::TargetSlot;
use pmc_events::event::{EventSource, EventSpec, Tool};
use pmc_formats::import;
use pmc_perfdata::perfdata;
use pmc_perfdata::record::Thread as RecordedThread;
use pmc_sys::abi::attr::{Flag, kind};
use pmc_sys::abi::generic;
use pmc_sys::error::{Error, Exit, Result};
use pmc_sys::host::Host;
use pmc_sys::host::process::ThreadInfo;
use pmc_view::stat::{StatLayout, StatSubject};

/// Runs the command.
///
/// # Errors
/// Fails if the recording has no counts, or lacks the requested counts.
pub(in crate::command) fn run(request: &StatReportRequest, layout: StatLayout) -> Result<Exit> {
    let session = Session::open(import::open_recording(&request.input, "counts")?)?;
    if request.log.is_none() {
        counts::check_rounds(&session)?;
    }
    let recorded = RecordedCounts::load(&session, request.log == Some(LoggedCounts::Slices))?;
    let exit = recording_quality::warn(&session);
    let aggregation = request.aggregation.unwrap_or(recorded.aggregation);
    can_show(aggregation, &recorded)?;
    let host = Host::live();
    let counted =
        CountSource::Recorded { counts: &recorded, cpuid: session.reader.features().cpuid.as_deref() };
    let metrics = TableMetrics::new(&request.metrics, &counted, &host)?;
    let machine = StatMachine::recorded(&host, recorded.topology.clone(), recorded.cpus.first().copied());
    let columns = columns(&recorded.events);
    let scale = recorded.scale && request.scale;
    let shown = ShownEvents::new(&columns, aggregation, request.no_merge, scale);
    let thread = |(tid, comm): &(u32, String)| ThreadInfo { tid: *tid, pid: *tid, comm: comm.clone() };
    let threads: Vec<ThreadInfo> = recorded.threads.iter().map(thread).collect();
    if let Some(log) = request.log {
        return show_log(log, request, layout, (&session, &recorded), &machine);
    }
    let refused = refused(&recorded);
    let table = |readings: &[CounterReading], timestamp_ns, elapsed_ns| {
        let span = TablePeriod {
            threads: &threads,
            timestamp_ns,
            elapsed_ns,
            cpu_time: None,
            yielded_ns: 0,
            off: false,
        };
        let mut counts = shown.counts(readings, &span, &machine);
        metrics.derive(&mut counts);
        counts
    };
    let mut printer = StatPrinter::new(layout, subject(&session, &recorded), metrics.tree.clone())?;
    metrics.left_out.iter().for_each(|warning| printer.warn(warning.clone()));
    let mut last: (Vec<CounterReading>, u64) = (refused.clone(), 0);
    let mut has_rounds = false;
    recorded.rounds(&session, &mut |round| {
        let mut readings: Vec<CounterReading> = round.totals.iter().map(reading).collect();
        readings.extend_from_slice(&refused);
        has_rounds = true;
        if !round.is_final {
            let since = since(&readings, &last.0);
            printer.interval(&table(&since, Some(round.at_ns), round.at_ns.saturating_sub(last.1)))?;
        }
        last = (readings, round.at_ns);
        Ok(())
    })?;
    if has_rounds {
        printer.whole(&table(&last.0, None, last.1))?;
    }
    Ok(exit)
}

/// Shows the logged counts of threads, with one row per thread at its exit, or one interval per time slice.
fn show_log(
    log: LoggedCounts,
    request: &StatReportRequest,
    layout: StatLayout,
    (session, recorded): (&Session, &RecordedCounts),
    machine: &StatMachine<'_>,
) -> Result<Exit> {
    let path = session.reader.path().display();
    let (logged, option) = match log {
        LoggedCounts::Exits => (&recorded.exits, "--log-exit"),
        LoggedCounts::Slices => (&recorded.slices, "--log-cswitch"),
    };
    if logged.is_empty() {
        return Err(Error::new(format!("{path} has no per-thread counts"))
            .why(format!("it was recorded without {option}"))
            .try_this(format!("pmc stat record {option} -- COMMAND")));
    }
    let comm = |thread: RecordedThread| {
        let comm = session.history.comm(thread.pid, thread.tid, Timestamp::MAX);
        comm.and_then(|comm| session.history.comms().nth(comm.0 as usize))
    };
    let mut names: BTreeMap<u32, ThreadInfo> = BTreeMap::new();
    for ThreadCounts { thread, .. } in logged {
        let tid = thread.tid as u32;
        names.entry(tid).or_insert_with(|| {
            let comm = String::from_utf8_lossy(comm(*thread).unwrap_or_default()).into_owned();
            ThreadInfo { tid, pid: thread.pid as u32, comm }
        });
    }
    let columns = columns(&recorded.events);
    let scale = recorded.scale && request.scale;
    let shown = ShownEvents::new(&columns, Aggregation::Thread, request.no_merge, scale);
    let table = |threads: &[ThreadCounts], timestamp_ns: Option<u64>, elapsed_ns| {
        let reading = |of: &ThreadCounts| {
            let slot = TargetSlot { tid: Some(of.thread.tid as u32), cpu: None };
            let reading = |(&event, &count)| CounterReading { event, slot, count: Some(count) };
            of.counts.iter().map(reading).collect::<Vec<_>>()
        };
        let readings: Vec<CounterReading> = threads.iter().flat_map(reading).collect();
        let named: Vec<ThreadInfo> = match threads {
            [one] => names.get(&(one.thread.tid as u32)).into_iter().cloned().collect(),
            _ => names.values().cloned().collect(),
        };
        let span = TablePeriod {
            threads: &named,
            timestamp_ns,
            elapsed_ns,
            cpu_time: None,
            yielded_ns: 0,
            off: false,
        };
        shown.counts(&readings, &span, machine)
    };
    let mut printer = StatPrinter::new(layout, subject(session, recorded), None)?;
    if log == LoggedCounts::Exits {
        printer.whole(&table(logged, None, recorded.elapsed_ns))?;
        return Ok(Exit::Done);
    }
    for slice in logged {
        // Pass 0 as the elapsed time, because the length of a slice is unknown and rates per second would be
        // wrong.
        printer.interval(&table(std::slice::from_ref(slice), Some(slice.at_ns), 0))?;
    }
    printer.whole(&table(logged, None, recorded.elapsed_ns))?;
    Ok(Exit::Done)
}

/// Rejects an aggregation that the recording does not support.
fn can_show(aggregation: Aggregation, recorded: &RecordedCounts) -> Result<()> {
    let by_cpu = !matches!(aggregation, Aggregation::Global | Aggregation::Thread);
    let by_seat = by_cpu && aggregation != Aggregation::Cpu;
    if by_cpu && recorded.cpus.is_empty() {
        return Err(Error::new("the counts were not recorded per CPU")
            .why("a command or processes were counted, summed over all CPUs")
            .try_options("pmc stat record -a, or -C CPUS"));
    }
    if by_seat && recorded.topology.cpus().is_empty() {
        return Err(Error::new("the recording has no CPU topology")
            .why("it ended early, or perf wrote it to a pipe")
            .try_options("-A, which shows each CPU separately"));
    }
    if matches!(aggregation, Aggregation::Cluster | Aggregation::Cache(_)) {
        return Err(Error::new("the recording has no cache or cluster topology")
            .try_options("--per-die or --per-core; or pmc stat --per-cache when counting"));
    }
    if aggregation == Aggregation::Thread && recorded.threads.is_empty() {
        return Err(Error::new("the counts were not recorded per thread")
            .why("whole CPUs were counted")
            .try_options("pmc stat record -p PID, or -t TID"));
    }
    Ok(())
}

/// Returns the events as columns of tables.
fn columns(events: &[CountsEvent]) -> Vec<EventColumn<'static>> {
    let column = |(index, event): (usize, &CountsEvent)| {
        let attr = &event.attr;
        let sees_kernel = !attr.get(Flag::ExcludeKernel);
        let source = tool(event).map_or_else(|| EventSource::Kernel(attr.clone()), EventSource::Tool);
        // The instances of a PMU have the same event name, and the first one represents all of them.
        let same = |other: &&CountsEvent| other.name == event.name && other.attr.kind() != attr.kind();
        let first = events.iter().position(|other| other.name == event.name).unwrap_or(index);
        let spec = EventSpec {
            scale: event.scale,
            unit: event.unit.clone(),
            merge: events.iter().find(same).map(|_| first as u32),
            ..EventSpec::new(event.name.clone(), source)
        };
        EventColumn {
            spec: Cow::Owned(spec),
            group: event.group,
            cgroup: None,
            refused: is_refused(event).then(|| {
                MissingValueReason::new(
                    "the recording has no count for this event: the kernel on the recording machine rejected it",
                    "pmc stat -e EVENT on that machine shows the reason",
                )
            }),
            user_only: false,
            sees_kernel,
        }
    };
    events.iter().enumerate().map(column).collect()
}

/// The PMU type that newer versions of perf use for tool events.
const TOOL_PMU: u32 = 0xffff_fffe;

/// Returns the kind of value that the event represents, if the recorder measured it itself. Newer versions of
/// perf do not store such values.
fn tool(event: &CountsEvent) -> Option<Tool> {
    let attr = &event.attr;
    let is_measured =
        attr.kind() == TOOL_PMU || (attr.kind(), attr.config()) == (kind::SOFTWARE, generic::DUMMY);
    Tool::named(&event.name).filter(|_| is_measured)
}

/// Whether the kernel refused the event.
fn is_refused(event: &CountsEvent) -> bool {
    !event.is_counted && tool(event).is_none()
}

/// Returns readings of refused events, for all threads and CPUs for which they should have been counted.
fn refused(recorded: &RecordedCounts) -> Vec<CounterReading> {
    let all =
        |some: Vec<u32>| if some.is_empty() { vec![None] } else { some.into_iter().map(Some).collect() };
    let tids = all(recorded.threads.iter().map(|(tid, _)| *tid).collect());
    let cpus = all(recorded.cpus.clone());
    let refused = recorded.events.iter().enumerate().filter(|(_, event)| is_refused(event));
    let slots = || tids.iter().flat_map(|&tid| cpus.iter().map(move |&cpu| TargetSlot { tid, cpu }));
    refused
        .flat_map(|(event, _)| slots().map(move |slot| CounterReading { event, slot, count: None }))
        .collect()
}

fn reading(total: &CounterTotal) -> CounterReading {
    let CounterTotal { event, tid, cpu, count } = *total;
    CounterReading { event, slot: TargetSlot { tid, cpu }, count: Some(count) }
}

/// Returns the target of the recording: the whole machine, or the target on its command line.
fn subject(session: &Session, recorded: &RecordedCounts) -> StatSubject {
    let tids = || recorded.threads.iter().map(|(tid, _)| tid.to_string()).collect::<Vec<_>>().join(",");
    match &session.reader.features().cmdline {
        _ if recorded.threads.is_empty() => StatSubject::SystemWide,
        // perf's wording, which scripts search for.
        _ if session.reader.form() == perfdata::RecordingLayout::Pipe => {
            StatSubject::Command(vec!["pipe".to_owned()])
        }
        Some(words) => StatSubject::Command(words.clone()),
        None => StatSubject::Threads(tids()),
    }
}
