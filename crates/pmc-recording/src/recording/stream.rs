//! Passes records to a handler in time order while they arrive, without a file.
//!
//! Receives a [`SamplePlan`], its events and a [`RecordHandler`]; returns a [`StreamResult`]. Memory does not
//! grow with time, because handlers decide which records to remember. [`drive`](super::drive) contains
//! the loop.
//!
//! ```text
//!   rings ── half full, or the next drain ──► RecordMerge ── older than the drain before ──► record
//!                                               '── each sample, right after the drain ──► read
//! ```

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use super::drive::{LoopContext, Measurement, MeasurementHandler, drive};
use super::ended_at_exec::ExecEnds;
use super::ending::{EndConditions, exit_of_run};
use super::file::output::OutputEvents;
use super::open::{self, Groups};
use super::plan::{MeasurementScope, SamplePlan, Synthesis};
use super::reservation::{EventChoice, reserve};
use super::sources::{self, RecordSources, SourceSwitch};
use super::synthesize::{self, SynthesisOptions};
use super::unwinding::StreamUnwinder;
use super::warning::records_torn;
use super::{launch, trace};
use pmc_analysis::session::live::RecordMerge;
use pmc_events::counter::rings::Rings;
use pmc_perfdata::perfdata::RecordedEvent;
use pmc_perfdata::record::encode::Encoder;
use pmc_perfdata::record::{Layouts, RawRecord, kind};
use pmc_sys::abi::attr;
use pmc_sys::error::{Error, Exit, Result, say};
use pmc_sys::host::Host;
use pmc_sys::host::process::ThreadInfo as Alive;
use pmc_sys::sys::clock::monotonic_ns;
use pmc_sys::sys::credentials;
use pmc_sys::sys::process::{self, CommandOutcome, PausedChild, Streams};

/// Usual time between two drains in nanoseconds, if no ring is half full earlier.
pub const DRAIN_NS: u64 = 100_000_000;
/// Usual maximum time from a record's timestamp to its arrival in the ring, in nanoseconds.
const WRITING_NS: u64 = 2_000_000;
/// Maximum time to wait for unpublished records at the end.
const MOST_WAIT: Duration = Duration::from_secs(1);

/// Receives the records of a stream. Times are nanoseconds of the monotonic clock.
pub trait RecordHandler {
    /// What the handler stores about a sample when the sample is drained.
    type Note;

    /// Whether the handler needs records of the initial state.
    const SYNTHESIZES: bool = false;

    /// Called when the events have been switched on for the first time, before a command runs.
    fn begun(&mut self) {}

    /// Called when the measurement has begun.
    fn started(&mut self, _now: u64) {}

    /// Receives records of the initial state. `is_last` is set in the last call.
    fn take_synthesized(&mut self, _bytes: &[u8], _is_last: bool) {}

    /// Returns the maximum nanoseconds between two drains. `had_records`: whether the last drain found any.
    fn pace(&mut self, _had_records: bool) -> u64 {
        DRAIN_NS
    }

    /// Called as soon as a sample has been drained, in the order of its ring. The handler can look up state
    /// that changes soon, such as the memory of the sample's process.
    fn read(&mut self, _sample: &RawRecord<'_>) -> Option<Self::Note> {
        None
    }

    /// Called for each record, in time order. `owner` is the event of samples with an unknown id.
    ///
    /// # Errors
    /// Fails if an error ends the stream.
    fn record(
        &mut self,
        time: u64,
        record: &RawRecord<'_>,
        owner: Option<usize>,
        note: Option<Self::Note>,
    ) -> Result<()>;

    /// Called when all records up to `horizon` have been passed on. Returns whether to continue.
    ///
    /// # Errors
    /// Fails if an error ends the stream.
    fn settled(&mut self, horizon: u64, host: &Host) -> Result<bool>;

    /// Returns the latest time for the next call to [`tick`](Self::tick).
    fn due(&self) -> Option<u64> {
        None
    }

    /// Called when [`due`](Self::due) has passed. `since` is the time since the start.
    ///
    /// # Errors
    /// Fails if an error ends the stream.
    fn tick(&mut self, _now: u64, _since: u64) -> Result<()> {
        Ok(())
    }
}

/// The open events of a stream.
#[derive(Debug)]
pub struct StreamEvents {
    /// The events, the sampled ones first.
    pub events: Vec<RecordedEvent>,
    /// Number of sampled events. The others only track tasks.
    pub sampled: usize,
    /// Their layouts.
    pub layouts: Arc<Layouts>,
    /// The measured threads, if the plan names running tasks.
    pub threads: Vec<Alive>,
    /// The process that will execute the command.
    pub command: Option<u32>,
}

/// How a stream ended.
#[derive(Debug)]
pub struct StreamResult {
    /// Start and end of the measurement, in nanoseconds of the monotonic clock.
    pub span: (u64, u64),
    /// Number of lost records according to the kernel's counters.
    pub lost: u64,
    outcome: Option<CommandOutcome>,
    interrupted: Option<i32>,
    timed_out: bool,
    has_command: bool,
}

impl StreamResult {
    /// Returns the exit status of the process.
    pub fn exit(&self) -> Exit {
        let outcome = self.outcome.filter(|_| !self.timed_out);
        exit_of_run(self.interrupted, outcome, self.has_command)
    }
}

/// Opens the events, runs the command if there is one, and passes all records to the handler that `make`
/// returns. Returns the handler too.
///
/// # Errors
/// Fails if the events cannot be opened, the command cannot be started, or the handler returns an error.
pub fn run<H: RecordHandler>(
    plan: &SamplePlan,
    host: &Host,
    groups: Groups,
    streams: Streams,
    make: impl FnOnce(StreamEvents) -> Result<H>,
) -> Result<(H, StreamResult)> {
    trace::refuse(&groups, "only samples have a time")?;
    let mut plan = plan.clone();
    sources::adjust_to_held_events(&mut plan, &groups, host)?;
    let mut prepared = reserve(plan.reserve, groups.iter().map(|(group, _)| group), host)?;
    let signals = launch::signals(&[])?;
    let held = launch::hold_for(&plan.run_schedule, streams)?;
    let (sources, threads) = RecordSources::open(&plan, host, groups, held.as_ref())?;
    let events = OutputEvents::new(&plan, sources.events());
    let layouts = Arc::new(events.layouts());
    let owners = sources.owners();
    let unwinding = events.start_unwinding(plan.options.max_stack, false)?;
    let unwinding = unwinding.map(|worker| StreamUnwinder::new(worker, owners.clone()));
    let owners = owners.into_iter().map(|id| id.and_then(|id| layouts.event_of(id))).collect();
    let command = held.as_ref().map(PausedChild::pid);
    let sampled = sources.sampled_events();
    let handler = make(StreamEvents {
        events: events.written,
        sampled,
        layouts: Arc::clone(&layouts),
        threads: threads.clone(),
        command,
    })?;
    // All events are open, and the command has been forked.
    credentials::keep_for_reading();
    let mut stream = RecordStream {
        plan: &plan,
        host,
        sources,
        layouts,
        owners,
        threads: threads.clone(),
        handler,
        unwinding,
        merge: RecordMerge::default(),
        notes: FxHashMap::default(),
        next_drain: 0,
        last_drain: 0,
        exec_ends: ExecEnds::new(&plan.scope),
        lost: 0,
    };
    let context = LoopContext {
        host,
        run_schedule: &plan.run_schedule,
        held,
        threads,
        signals: Some(&signals),
        control: None,
        stop: None,
        watcher: prepared.watcher.as_mut(),
        scope: &plan.scope,
    };
    let measured = drive(&mut stream, context)?;
    if stream.sources.rings.slow_to_close() > 0 {
        // The kernel takes a long time to close tracepoints, so a child process waits for it in the
        // background.
        process::exit_while_child_closes();
    }
    let result = StreamResult {
        span: (measured.start, measured.now),
        lost: stream.lost,
        outcome: measured.ending.outcome,
        interrupted: measured.ending.interrupted(),
        timed_out: measured.ending.timed_out,
        has_command: command.is_some(),
    };
    Ok((stream.handler, result))
}

/// Returns the events of all event strings and, for each event, the index of its string.
///
/// # Errors
/// Fails if an event or a filter is invalid.
pub fn groups_by_text(plan: &SamplePlan, host: &Host) -> Result<(Groups, Vec<Option<usize>>)> {
    let (mut all, mut text_of) = (Groups::new(), Vec::new());
    for (text, event) in plan.events.iter().enumerate() {
        let filters = plan.filters.iter().filter(|(of, _)| *of == text);
        let one = SamplePlan {
            events: vec![event.clone()],
            filters: filters.map(|(_, filter)| (0, filter.clone())).collect(),
            ..plan.clone()
        };
        let groups = open::groups(&one, host)?;
        text_of.extend(groups.iter().flat_map(|(group, _)| &group.events).map(|_| Some(text)));
        all.extend(groups);
    }
    Ok((all, text_of))
}

/// Returns the formats of the tracepoints among the events.
pub fn tracing_data(host: &Host, events: &[RecordedEvent]) -> Option<Vec<u8>> {
    let names: Vec<(String, u64)> = events
        .iter()
        .filter(|event| event.attr.kind() == attr::kind::TRACEPOINT)
        .map(|event| (event.name(), event.attr.config()))
        .collect();
    let tracepoints: Vec<(&str, u64)> = names.iter().map(|(name, id)| (name.as_str(), *id)).collect();
    if tracepoints.is_empty() { None } else { host.tracing_data(&tracepoints) }
}

/// A thread may begin an operation on one CPU and end it on another, so the rings' records are merged by
/// time. A record reaches its ring slightly after its time, or much later if the machine is virtual and its
/// CPU was descheduled in between. So records wait for another drain. Records with stack copies go through
/// the [unwinder](super::unwinding) first.
struct RecordStream<'a, H: RecordHandler> {
    plan: &'a SamplePlan,
    host: &'a Host,
    sources: RecordSources,
    layouts: Arc<Layouts>,
    /// For each ring, the event to which samples with another recorder's id belong.
    owners: Vec<Option<usize>>,
    threads: Vec<Alive>,
    handler: H,
    /// Unwinds stack copies before the merge; `None` if no event has any.
    unwinding: Option<StreamUnwinder>,
    merge: RecordMerge,
    /// What the handler has stored about the records in `merge`, by record number.
    notes: FxHashMap<u64, H::Note>,
    next_drain: u64,
    /// Start of the last drain.
    last_drain: u64,
    exec_ends: ExecEnds,
    lost: u64,
}

impl<H: RecordHandler> RecordStream<'_, H> {
    /// Reads the rings, but passes nothing on. Returns whether there were records.
    fn take(&mut self) -> Result<bool> {
        let Self { sources, merge, layouts, owners, handler, notes, unwinding, .. } = self;
        if let Some(unwinding) = unwinding {
            return unwinding.read(sources);
        }
        let before = merge.waiting();
        // Copy the records first, because the rings have no room for new records until then.
        sources.drain(|ring, slices| {
            merge.take(slices, layouts, owners.get(ring).copied().flatten());
            Ok::<(), Error>(())
        })?;
        for (raw, held) in merge.added_after(before).filter(|(raw, _)| raw.kind == kind::SAMPLE) {
            if let Some(note) = handler.read(&raw) {
                notes.insert(held.number, note);
            }
        }
        Ok(merge.waiting() > before)
    }

    /// Passes on all records up to the horizon. Returns whether to continue.
    fn release(&mut self, horizon: u64) -> Result<bool> {
        let Self { merge, handler, notes, layouts, exec_ends, .. } = self;
        merge.release_until(horizon, |raw, held| {
            exec_ends.note(raw, layouts);
            handler.record(held.time, raw, held.owner, notes.remove(&held.number))
        })?;
        self.exec_ends.end_round();
        self.handler.settled(horizon, self.host)
    }

    /// Synthesizes records that describe the state before the measurement began.
    fn synthesize(&mut self) -> Result<()> {
        let mut out = Encoder::new(self.layouts.iter().next().map_or(0, |layout| layout.trailer_size()));
        let has_stacks = self.plan.options.call_graph.is_some();
        if has_stacks {
            synthesize::machine(self.host, false, &mut out);
        }
        let pids = match &self.plan.scope {
            MeasurementScope::Cpus(cpus) => {
                synthesize::idle(cpus, &mut out);
                self.host.processes()
            }
            _ if self.sources.rings().is_mixed() => self.host.processes(),
            _ => synthesize::pids(&self.threads),
        };
        let pids = self.sources.add_targets(pids, self.host, &mut out)?;
        let what = Synthesis { tasks: true, mappings: has_stacks, cgroups: false };
        let extent = SynthesisOptions { what, data_mappings: false, namespaces: false };
        synthesize::processes(self.host, pids, extent, &mut out, |out| {
            self.send_synthesized(out.bytes(), false);
            // The events are already running, and synthesizing takes a long time if there are many processes.
            self.take().map(drop)
        })?;
        self.send_synthesized(out.bytes(), true);
        Ok(())
    }

    /// Passes on synthesized records.
    fn send_synthesized(&mut self, records: &[u8], is_last: bool) {
        if let Some(unwinding) = &mut self.unwinding {
            unwinding.send_synthesized(records);
        }
        self.handler.take_synthesized(records, is_last);
    }
}

impl<H: RecordHandler> SourceSwitch for RecordStream<'_, H> {
    fn sources(&self) -> &RecordSources {
        &self.sources
    }

    fn sources_mut(&mut self) -> &mut RecordSources {
        &mut self.sources
    }
}

impl<H: RecordHandler> MeasurementHandler for RecordStream<'_, H> {
    fn rings(&mut self) -> Option<&mut Rings> {
        Some(&mut self.sources.rings)
    }

    fn begin_window(&mut self) -> Result<u64> {
        let now = monotonic_ns();
        self.handler.begun();
        Ok(now)
    }

    fn started(&mut self, measurement: &mut Measurement) -> Result<()> {
        self.handler.started(measurement.start);
        if H::SYNTHESIZES {
            self.synthesize()?;
        }
        self.next_drain = monotonic_ns() + self.handler.pace(true);
        Ok(())
    }

    fn due(&self) -> Option<u64> {
        Some(self.handler.due().map_or(self.next_drain, |due| due.min(self.next_drain)))
    }

    fn work(&mut self, measurement: &mut Measurement) -> Result<()> {
        let now = monotonic_ns();
        let horizon = std::mem::replace(&mut self.last_drain, now).min(now.saturating_sub(WRITING_NS));
        let (had_records, horizon) = match &mut self.unwinding {
            Some(unwinding) => unwinding.take(&mut self.sources, horizon, &mut self.merge, &self.layouts)?,
            None => (self.take()?, horizon),
        };
        measurement.ending.stopped |= !self.release(horizon)?;
        self.next_drain = monotonic_ns() + self.sources.pace(self.handler.pace(had_records));
        match self.handler.due() {
            Some(due) if measurement.now >= due => {
                self.handler.tick(measurement.now, measurement.now.saturating_sub(measurement.start))
            }
            _ => Ok(()),
        }
    }

    fn stop(&mut self, _: &EndConditions) -> Result<()> {
        self.sources.switch(false, EventChoice::All)
    }

    fn finish(&mut self, _: &mut Measurement) -> Result<()> {
        self.take()?;
        let begun = Instant::now();
        while self.sources.rings.has_unpublished() && begun.elapsed() < MOST_WAIT {
            std::thread::sleep(Duration::from_millis(10));
            self.take()?;
        }
        let is_torn = self.sources.rings.is_torn();
        if is_torn {
            say::warn(records_torn());
        }
        if let Some(unwinding) = &mut self.unwinding {
            unwinding.finish(&mut self.merge, &self.layouts)?;
        }
        self.release(u64::MAX)?;
        self.lost = self.sources.lost();
        self.exec_ends.finish_rounds();
        self.exec_ends.report(!is_torn && self.lost == 0);
        Ok(())
    }

    fn exec_ends(&mut self) -> Option<&mut ExecEnds> {
        Some(&mut self.exec_ends)
    }

    fn waits_for_command(&self, _: &EndConditions) -> bool {
        true
    }
}
