//! Runs a recording from the first record to the last, and drains the rings whenever the loop wakes up.
//!
//! Receives open rings, an open [`RecordOutput`], and the plans; returns a [`RecordingResult`]. Decides when
//! rings are drained and when a file is full. Reports progress through the [`StatusLine`] only.
//! [`drive`](crate::recording::drive) contains the loop.
//!
//! ```text
//!   prepare: synthesized records ─► work: drain, FINISHED_ROUND; rotate; status ─► stop ─► drain, finish
//! ```

mod window;

use std::collections::HashMap;
use std::convert::Infallible;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use super::counted;
use super::features::FileBuildId;
use super::output::{RecordOutput, Totals};
use super::pace::DrainPace;
use super::result::{RecordingResult, lost};
use super::rotation::Schedule;
use crate::recording::attached::HandedOverEntry;
use crate::recording::combined::CombinedMeasurement;
use crate::recording::control::Control;
use crate::recording::counting::{CountPlan, Counting, Observer};
use crate::recording::drive::{LoopContext, Measurement, MeasurementHandler, drive};
use crate::recording::ended_at_exec::ExecEnds;
use crate::recording::ending::EndConditions;
use crate::recording::off_cpu::events;
use crate::recording::off_cpu::thinning::DrainStage;
use crate::recording::plan::{FilePlan, MeasurementScope, SamplePlan};
use crate::recording::reservation::{EventChoice, EventSwitch};
use crate::recording::sources::RecordSources;
use crate::recording::synthesize::{self, SynthesisOptions};
use crate::recording::warning::{not_handed_over, records_torn};
use crate::recording::{handover, launch, open};
use pmc_events::counter::change::EventChange;
use pmc_events::counter::request::sampling::CallGraph;
use pmc_events::counter::reservation::Watcher;
use pmc_events::counter::rings::{Instance, InstanceReading, Rings, by_thread};
use pmc_events::event::EventSpec;
use pmc_perfdata::record::encode::Encoder;
use pmc_perfdata::record::{StatCount, StatRound, Task, Thread, Throttle, kind, walk};
use pmc_sys::abi::attr::Flag;
use pmc_sys::abi::{Attr, read_format, sample_type};
use pmc_sys::error::{Error, Result, Warning, say};
use pmc_sys::host::process::ThreadInfo as Alive;
use pmc_sys::host::{CpuList, Host};
use pmc_sys::sys::process::{self, PausedChild};
use pmc_sys::sys::signal::Signals;
use pmc_sys::sys::{clock, credentials};
use pmc_text::units::{Count, PerfTime};

/// Maximum time to wait for unpublished records.
const MOST_WAIT: Duration = Duration::from_secs(1);

/// Receives progress updates while recording.
pub trait StatusLine {
    /// Shows the totals so far. `now` is in nanoseconds of the monotonic clock.
    fn show(&mut self, now: u64, totals: &Totals);
}

/// Ignores progress updates.
impl StatusLine for () {
    fn show(&mut self, _: u64, _: &Totals) {}
}

/// A recording that is ready to start.
pub struct PreparedRecording<'a> {
    /// The machine.
    pub host: &'a Host,
    /// What to sample.
    pub plan: &'a SamplePlan,
    /// How and where to write the recording.
    pub file: &'a FilePlan,
    /// The open rings.
    pub sources: RecordSources,
    /// Rings of the trigger events, which start another file.
    pub triggers: Option<Rings>,
    /// Recorded threads, if the scope names running tasks.
    pub threads: Vec<Alive>,
    /// The file, whose header has already been written.
    pub output: RecordOutput<'a>,
    /// The command, forked and waiting at its start gate.
    pub held: Option<PausedChild>,
    /// The signals that end the recording.
    pub signals: &'a Signals,
    /// Commands from another process (`--control`).
    pub control: Option<&'a mut Control>,
    /// Reports reservations by other programs (`--reserve=yield`).
    pub watcher: Option<&'a mut Watcher>,
    /// Shows progress.
    pub status: &'a mut dyn StatusLine,
    /// The holder's entry from which the events were taken over. It is removed once the recording has
    /// started.
    pub attached: Option<HandedOverEntry>,
    /// Events to count during the recording, and the observer of their counts.
    pub counted: Option<(CountPlan, &'a mut dyn Observer)>,
}

impl PreparedRecording<'_> {
    /// Runs the recording until it ends.
    ///
    /// # Errors
    /// Fails if the command cannot be started (status 126 or 127), or if waiting fails. A write error is
    /// returned in the [`RecordingResult`] instead.
    pub fn run(self) -> Result<RecordingResult> {
        let Self { host, plan, file, sources, triggers, threads, mut output, held, .. } = self;
        let Self { signals, control, watcher, status, attached, counted, .. } = self;
        let run_schedule = &plan.run_schedule;
        let counting = counted.map(|(counted, observer)| {
            Counting::open(counted, host, run_schedule, held.as_ref(), watcher.is_some(), observer)
        });
        let counting = counting.transpose()?;
        // All events are open, and the command has been forked.
        credentials::keep_for_reading();
        output.exec_ends = ExecEnds::new(&plan.scope);
        let mut recorder = Recorder {
            host,
            plan,
            file,
            sources,
            attached,
            triggers,
            pids: synthesize::pids(&threads),
            roots: threads.iter().map(|thread| (thread.tid, thread.pid)).collect(),
            command: held.as_ref().map(PausedChild::pid),
            pace: DrainPace::new(output.descriptor().is_some()),
            output,
            status,
            next_drain: 0,
            drains: 0,
            schedule: Schedule::new(file),
            readings: Vec::new(),
            gaps: Vec::new(),
            is_yielding: false,
            failed: None,
            is_full: false,
            is_detached: false,
        };
        let (signals, stop, scope) = (Some(signals), None, &plan.scope);
        let context =
            LoopContext { host, run_schedule, held, threads, signals, control, stop, watcher, scope };
        let measured = match counting {
            None => drive(&mut recorder, context)?,
            Some(counting) => {
                let mut both = CombinedMeasurement::new(recorder, counting);
                let measured = drive(&mut both, context)?;
                recorder = both.recording;
                measured
            }
        };
        if recorder.sources.rings.slow_to_close() > 0 {
            // The kernel takes a long time to close tracepoints, so a child process waits for it in the
            // background.
            process::exit_while_child_closes();
        }
        Ok(recorder.result(&measured))
    }
}

/// A recording in progress. Times are nanoseconds of the monotonic clock.
struct Recorder<'a> {
    host: &'a Host,
    plan: &'a SamplePlan,
    file: &'a FilePlan,
    sources: RecordSources,
    attached: Option<HandedOverEntry>,
    triggers: Option<Rings>,
    /// Recorded processes, if the scope names running tasks.
    pids: Vec<u32>,
    /// The recorded threads, each with its process.
    roots: HashMap<u32, u32>,
    /// The command's pid.
    command: Option<u32>,
    output: RecordOutput<'a>,
    status: &'a mut dyn StatusLine,
    pace: DrainPace,
    /// Number of drains that found records.
    drains: u64,
    next_drain: u64,
    schedule: Schedule,
    readings: Vec<InstanceReading>,
    /// Records that mark gaps (`--reserve=yield`) and have not been written yet.
    gaps: Vec<u8>,
    is_yielding: bool,
    failed: Option<Error>,
    is_full: bool,
    /// Whether a holder has taken over the events.
    is_detached: bool,
}

impl EventSwitch for Recorder<'_> {
    fn start(&mut self) -> Result<()> {
        self.sources.start()?;
        self.triggers.as_ref().map_or(Ok(()), Rings::start).map_err(open::starting)
    }

    fn switch(&mut self, on: bool, events: EventChoice) -> Result<()> {
        self.sources.switch(on, events)?;
        if events.has(false) {
            self.output.restart_thinning(on);
        }
        self.triggers.as_ref().map_or(Ok(()), |rings| open::switch(rings, on, events))
    }

    fn switch_named(&mut self, on: bool, name: &str, events: EventChoice) -> Result<()> {
        let is_named = |spec: &EventSpec| spec.name == name && events::is_switch_event(spec);
        if self.sources.rings.events().any(|(spec, ..)| is_named(spec)) {
            self.output.restart_thinning(on);
        }
        self.sources.switch_named(on, name, events)
    }

    fn change(&self, change: EventChange, name: Option<&str>, is_on: bool) -> Result<(), String> {
        self.sources.rings().change(change, name, is_on)
    }

    fn requests(&self) -> Vec<(&str, &Attr)> {
        self.sources.requests()
    }

    fn takes_counters(&self) -> bool {
        self.sources.takes_counters()
    }

    fn yielding(&mut self, is_yielding: bool) {
        if is_yielding {
            say::warn(Warning::note_once(
                "another process has reserved the hardware counters: pmc will not use them until the \
                 reservation is released",
            ));
        }
        self.is_yielding = is_yielding;
        self.mark_gap(is_yielding);
    }
}

impl MeasurementHandler for Recorder<'_> {
    fn rings(&mut self) -> Option<&mut Rings> {
        Some(&mut self.sources.rings)
    }

    fn triggers(&mut self) -> Option<&mut Rings> {
        self.triggers.as_mut()
    }

    fn waker(&self) -> Option<BorrowedFd<'_>> {
        self.output.descriptor()
    }

    fn prepare(&mut self) -> Result<()> {
        self.failed = self.synthesize().err();
        Ok(())
    }

    fn begin_window(&mut self) -> Result<u64> {
        self.wait_for_window()
    }

    fn started(&mut self, measurement: &mut Measurement) -> Result<()> {
        // The command is running, so the recording no longer needs the holder's entry.
        self.attached.take().map_or(Ok(()), HandedOverEntry::remove_entry)?;
        if self.failed.is_none() {
            self.failed = self.output.replace_target().err().map(Error::from);
        }
        measurement.ending.stopped = self.failed.is_some();
        self.next_drain = measurement.start + self.sources.pace(self.pace.advance());
        self.schedule.begin(measurement.start);
        Ok(())
    }

    /// Returns the time of the next drain, rotation or sampling change, regardless of how full the rings are.
    fn due(&self) -> Option<u64> {
        [Some(self.next_drain), self.schedule.next_at(), self.output.next_thinning()]
            .into_iter()
            .flatten()
            .min()
    }

    fn snapshot(&mut self) {
        self.schedule.ask_for();
    }

    fn detach(&mut self, is_on: bool) -> bool {
        match self.hand_over(is_on) {
            Ok(()) => {
                self.is_detached = true;
                if let Some(pid) = self.command {
                    let name = launch::comm(&self.plan.run_schedule.command);
                    say::note(format!("{name} continues as process {pid}; pmc does not wait for it"));
                }
            }
            Err(error) => say::warn(not_handed_over(&error)),
        }
        self.is_detached
    }

    fn work(&mut self, measurement: &mut Measurement) -> Result<()> {
        if self.is_detached {
            return Ok(());
        }
        let now = measurement.now;
        self.next_drain = now + self.sources.pace(self.pace.advance());
        self.apply_triggers();
        self.failed = self.drain().and_then(|()| self.rotate_if_due(now)).err();
        self.handle_gone_holders();
        let totals = self.output.totals();
        self.is_full = self.file.max_size.is_some_and(|most| totals.bytes >= most);
        measurement.ending.stopped |= self.is_full || self.failed.is_some();
        self.status.show(now, &totals);
        Ok(())
    }

    fn stop(&mut self, _: &EndConditions) -> Result<()> {
        say::wipe_status();
        if self.is_detached {
            return Ok(());
        }
        if let Err(error) = self.sources.switch(false, EventChoice::All) {
            self.failed.get_or_insert(error);
        }
        Ok(())
    }

    /// Reads the remaining records and ends the file.
    fn finish(&mut self, measurement: &mut Measurement) -> Result<()> {
        if self.failed.is_none() {
            self.failed = self.take_rest().err();
        }
        self.handle_gone_holders();
        self.readings = self.output.losses.since_begin(self.sources.read());
        for InstanceReading { instance, count, .. } in &mut self.readings {
            // For child threads, the kernel adds only the time that they spent on this CPU.
            let told = self.output.tally.reads.get(&instance.id).map_or(0, |told| told.enabled_ns);
            count.enabled_ns = count.enabled_ns.max(told);
        }
        self.output.losses.count(&self.readings, self.sources.lost_elsewhere());
        let is_complete = !(self.is_detached || self.failed.is_some() || self.is_full);
        let rings = &self.sources.rings;
        let has_gaps = rings.has_backward() || rings.is_torn();
        let lost = lost(&self.output.totals(), &self.readings);
        self.output.exec_ends.report(is_complete && !has_gaps && lost == 0);
        if let Some(outcome) = measurement.ending.outcome.filter(|_| is_complete)
            && counted::samples_all(self.plan, self.file, self.sources.rings())
        {
            self.output.counted = counted::by_command(&self.sources.events(), &self.readings, outcome);
        }
        if self.failed.is_none() {
            let elapsed_ns = measurement.now - measurement.start;
            let written = self.write_own_counts().and_then(|()| Ok(self.output.write_lost()?));
            self.failed = written.and_then(|()| self.write_totals(elapsed_ns)).err();
        }
        let finished = self.output.finish();
        if self.failed.is_none() {
            self.failed = finished.err();
        }
        Ok(())
    }

    fn exec_ends(&mut self) -> Option<&mut ExecEnds> {
        Some(&mut self.output.exec_ends)
    }

    fn waits_for_command(&self, _: &EndConditions) -> bool {
        true
    }
}

impl Recorder<'_> {
    /// Returns the result of the recording.
    fn result(mut self, measured: &Measurement) -> RecordingResult {
        let mut identified: Vec<FileBuildId> = self.output.identified.drain().map(|(_, of)| of).collect();
        identified.sort_by(|a, b| a.file.cmp(&b.file));
        RecordingResult {
            identified,
            commands: self.output.commands.take(),
            files: match self.output.files.as_slice() {
                [] => vec![self.file.path.clone()],
                several => several.to_vec(),
            },
            totals: self.output.totals(),
            drains: self.drains,
            readings: self.readings,
            elapsed_ns: measured.now - measured.start,
            yielded_ns: measured.activity.yielded_ns(measured.now),
            was_ever_on: measured.activity.was_ever_on(),
            outcome: measured.ending.outcome,
            interrupted: measured.ending.interrupted(),
            failed: self.failed,
            is_full: self.is_full,
            timed_out: measured.ending.timed_out,
            is_handed_over: measured.ending.handed_over,
            kept: self.output.kept(),
            ended_at_exec: self.output.exec_ends.take_reported(),
            ends: self.output.ends(),
        }
    }

    /// Queues throttle records, like those of the kernel, when the hardware events are switched off or on.
    fn mark_gap(&mut self, is_off: bool) {
        let time = PerfTime(self.plan.options.clock.and_then(clock::read).map_or(0, |(now, _)| now));
        let mut out = Encoder::new(self.output.trailer());
        for (_, _, ids) in self.sources.rings.events().filter(|(spec, ..)| spec.takes_counter()) {
            ids.iter().for_each(|&id| out.throttle(&Throttle { time, id, stream_id: 0 }, is_off));
        }
        self.gaps.extend_from_slice(out.bytes());
    }

    fn write_gaps(&mut self) -> Result<()> {
        let gaps = std::mem::take(&mut self.gaps);
        if gaps.is_empty() { Ok(()) } else { Ok(self.output.take(&[&gaps])?) }
    }

    /// Handles the end of holders' events. The command and the other events continue. If there is no command
    /// and no other event, the recording ends.
    fn handle_gone_holders(&mut self) {
        for (event, error) in self.sources.newly_gone() {
            if self.sources.are_gone() && self.command.is_none() {
                self.failed.get_or_insert(error);
            } else {
                let why = error.headline();
                say::warn(Warning::loss(format!(
                    "pmc no longer records {event}, and its last records are missing: {why}"
                )));
            }
        }
    }

    fn drain(&mut self) -> Result<()> {
        self.drain_with(|output, rings, stage| output.thin_stacks(rings, stage))
    }

    fn drain_with(
        &mut self,
        thin: impl Fn(&mut RecordOutput<'_>, &Rings, DrainStage) -> Result<()>,
    ) -> Result<()> {
        self.write_gaps()?;
        let Self { sources, output, .. } = self;
        thin(output, &sources.rings, DrainStage::Before)?;
        let bytes = sources.drain(|ring, slices| output.take_ring(ring, slices))?;
        self.drains += u64::from(bytes > 0);
        if bytes > 0 && output.begin_second_pass() {
            // At the start of a recording, the number of switches is not known before this point.
            thin(output, &sources.rings, DrainStage::Between)?;
            sources.drain(|ring, slices| output.take_ring(ring, slices))?;
        }
        let cut = output.cut_traces();
        sources.rings.drain_traces(&cut, |piece, slices| output.take_trace(piece, slices))?;
        // A backward ring may contain older records than the other rings, so such a recording has no rounds.
        if bytes > 0 && !sources.rings.has_backward() {
            output.end_round()?;
        }
        output.tick()?;
        thin(output, &sources.rings, DrainStage::After)
    }

    fn take_rest(&mut self) -> Result<()> {
        if std::mem::take(&mut self.is_yielding) {
            self.mark_gap(false);
        }
        self.write_gaps()?;
        let Self { sources, output, .. } = self;
        if self.is_detached {
            output.end_round()?;
            return output.finish_unwinding(true);
        }
        sources.drain(|ring, slices| output.take_ring(ring, slices))?;
        let rings = &mut sources.rings;
        // Wait for unpublished records, but only for a limited time.
        let begun = Instant::now();
        while rings.has_unpublished() && begun.elapsed() < MOST_WAIT {
            std::thread::sleep(Duration::from_millis(10));
            rings.drain(|ring, slices| output.take_ring(ring, slices))?;
        }
        if rings.is_torn() {
            say::warn(records_torn());
        }
        rings.snapshot(|ring, slices| output.take_snapshot(ring, slices))?;
        // Rings are read in turn, so a process may have ended in a later ring than it began in.
        output.end_round()?;
        sources.drain(|ring, slices| output.take_ring(ring, slices))?;
        self.take_traces()?;
        self.output.end_round()?;
        self.output.finish_unwinding(true)
    }

    /// Reads new trace data, including AUX areas that are read only on demand.
    fn take_traces(&mut self) -> Result<()> {
        let Self { sources, output, plan, .. } = self;
        sources.rings.drain_traces(&[], |piece, slices| output.take_trace(piece, slices))?;
        if plan.trace.as_ref().is_some_and(|trace| !trace.in_samples) {
            sources.rings.copy_traces(|piece, slices| output.take_trace(piece, slices))?;
        }
        Ok(())
    }

    /// Hands the events over to this user's holder, which continues where the file ends.
    fn hand_over(&mut self, is_on: bool) -> Result<()> {
        let refuse = |why: &str| Err(Error::new(why));
        if !self.sources.are_own() {
            return refuse("some events already belong to a holder");
        }
        if self.plan.trace.is_some() {
            return refuse("a holder does not store traces");
        }
        if self.sources.rings.has_cpu_events() {
            return refuse(
                "some events measure whole CPUs and others measure processes, but an entry can contain only one kind",
            );
        }
        if !is_on {
            return refuse(
                "some events are disabled (-D, --control, --reserve=yield), and a holder would never enable them",
            );
        }
        if self.sources.rings.has_limits() {
            return refuse("some events stop after a number of samples (nr=), which the holder cannot count");
        }
        self.drain()?;
        self.output.end_thinning(&self.sources.rings)?;
        let rings = self.sources.rings();
        let descriptors: Vec<BorrowedFd<'_>> = rings.all_descriptors().collect();
        let [name, _] = handover::names(std::process::id());
        handover::give(self.host, name, handover::describe(rings, &self.plan.scope), &descriptors)
    }

    /// Writes the counts of the threads on which the events were opened, if counts are logged (`-s`,
    /// `log-exit`). When a thread that inherited the events ends, the kernel reports its counts. The kernel
    /// does not report the counts of the threads on which the events were opened. They are the total minus
    /// the reported counts, and include children that are still running.
    fn write_own_counts(&mut self) -> Result<()> {
        let events = self.sources.events();
        let own = |reading: &InstanceReading| {
            let told = self.output.tally.reads.get(&reading.instance.id).copied().unwrap_or_default();
            reading.count.since(told)
        };
        // The thread's event was enabled on all CPUs, but ran on only one CPU at a time. The kernel reports
        // more enabled time for the children than its totals contain, so the difference may be too small.
        let mut ran: HashMap<(usize, Option<u32>), u64> = HashMap::new();
        for reading in &self.readings {
            let Instance { event, slot, .. } = reading.instance;
            *ran.entry((event, slot.tid)).or_default() += own(reading).running_ns;
        }
        let mut record = Encoder::new(self.output.trailer());
        for reading in &self.readings {
            let Instance { event, id, slot, .. } = reading.instance;
            let attr = &events[event].attr;
            let Some(tid) = slot.tid.filter(|_| attr.get(Flag::InheritStat)) else { continue };
            let Count { value, enabled_ns, running_ns } = own(reading);
            if value == 0 && running_ns == 0 {
                continue;
            }
            let enabled_ns = enabled_ns.max(ran[&(event, slot.tid)]);
            let has_lost = attr.read_format() & read_format::LOST != 0;
            let has_id = attr.sample_type() & sample_type::IDENTIFIER != 0;
            let is_group = attr.read_format() & read_format::GROUP != 0;
            // The read format of a group with one member, or of a single event: see perf_event_open(2).
            let words = match is_group {
                true => [1, enabled_ns, running_ns, value, id, reading.lost],
                false => [value, enabled_ns, running_ns, id, reading.lost, 0],
            };
            let count = 4 + usize::from(is_group) + usize::from(has_lost);
            let pid = self.roots.get(&tid).copied().unwrap_or(tid);
            let thread = Thread { pid: pid as i32, tid: tid as i32 };
            record.read(thread, &words[..count], has_id.then_some(id));
        }
        Ok(self.output.take(&[record.bytes()])?)
    }

    /// Writes the totals in the format of `stat record`: for each event, the sum over all targets.
    fn write_totals(&mut self, elapsed_ns: u64) -> Result<()> {
        if self.file.stat_config.is_empty() {
            return Ok(());
        }
        let mut record = Encoder::new(0);
        // The totals cover all threads. Each thread also has a separate row.
        record.thread_map([(-1, "")].into_iter());
        record.cpu_map(&[]);
        record.stat_config(&self.file.stat_config);
        let events = self.sources.events();
        let ids: Vec<Option<u64>> = events.iter().map(|event| event.ids.first().copied()).collect();
        let mut totals = vec![Count::default(); ids.len()];
        by_thread(&self.readings).into_iter().for_each(|((event, _), count)| totals[event] += count);
        // Tracker events do not count anything.
        let counted = ids.into_iter().zip(totals).take(self.sources.sampled_events());
        for (id, Count { value, enabled_ns: enabled, running_ns: running }) in counted {
            let Some(id) = id else { continue };
            record.stat(&StatCount { id, cpu: u32::MAX, thread: 0, value, enabled, running });
        }
        record.stat_round(StatRound { is_final: true, time: elapsed_ns });
        Ok(self.output.take(&[record.bytes()])?)
    }

    /// Requests another file if a trigger event has occurred.
    fn apply_triggers(&mut self) {
        let Self { triggers: Some(triggers), schedule, .. } = self else { return };
        let mut joint = Vec::new();
        let Ok(_) = triggers.drain(|_, slices| {
            walk(slices, &mut joint, |record| {
                if record.kind == kind::SAMPLE {
                    schedule.ask_for();
                }
            });
            Ok::<(), Infallible>(())
        });
    }

    fn rotate_if_due(&mut self, now: u64) -> Result<()> {
        if self.schedule.is_due(now, self.output.bytes()) {
            self.rotate()?;
            self.schedule.begin(now);
        }
        Ok(())
    }

    /// Ends the current file and begins the next one, which also needs synthesized records.
    fn rotate(&mut self) -> Result<()> {
        // Any running process may be part of the recording. Scan twice: the first scan finds processes that
        // end during the switch, and the second scan finds processes that start during it.
        let (host, extent) = (self.host, self.extent());
        let mut early = Vec::new();
        let mut out = Encoder::new(self.output.trailer());
        let keep = |out: &Encoder| {
            early.extend_from_slice(out.bytes());
            Ok::<(), Error>(())
        };
        synthesize::processes(host, host.processes(), extent, &mut out, keep)?;
        early.extend_from_slice(out.bytes());
        self.drain()?;
        self.take_traces()?;
        // The records that a decoder needs for a trace must be in the same file as the trace.
        let Self { sources, output, .. } = self;
        sources.drain(|ring, slices| output.take_ring(ring, slices))?;
        sources.rings.snapshot(|ring, slices| output.take_snapshot(ring, slices))?;
        output.end_round()?;
        output.finish_unwinding(false)?;
        if output.totals().lost > 0 {
            output.losses.count(&output.losses.since_begin(sources.read()), sources.lost_elsewhere());
        }
        output.switch()?;
        out.clear();
        self.synthesize_machine(&mut out)?;
        self.output.take(&[out.bytes(), &early])?;
        out.clear();
        let output = &mut self.output;
        synthesize::processes(host, host.processes(), extent, &mut out, |out| output.take(&[out.bytes()]))?;
        Ok(output.take(&[out.bytes()])?)
    }

    fn synthesize(&mut self) -> Result<()> {
        let mut out = Encoder::new(self.output.trailer());
        self.synthesize_machine(&mut out)?;
        let pids = match (&self.plan.scope, self.command) {
            (MeasurementScope::Cpus(cpus), _) => self.synthesize_cpus(cpus, &mut out),
            _ if self.sources.rings.is_mixed() => self.synthesize_cpus(&self.host.online_cpus(), &mut out),
            (MeasurementScope::Command, Some(_)) if !self.plan.synthesis.tasks => Vec::new(),
            (MeasurementScope::Command, Some(command)) => {
                // From the exec on, the kernel reports the command's mappings.
                let [parent, thread] =
                    [std::process::id(), command].map(|pid| Thread { pid: pid as i32, tid: pid as i32 });
                out.fork(&Task { thread, parent, time: Default::default() });
                out.comm(thread, b"pmc");
                Vec::new()
            }
            _ => std::mem::take(&mut self.pids),
        };
        let pids = self.sources.add_targets(pids, self.host, &mut out)?;
        let extent = self.extent();
        let output = &mut self.output;
        synthesize::processes(self.host, pids, extent, &mut out, |out| {
            output.write_synthesized(out.bytes())
        })?;
        out.finished_init();
        Ok(output.write_synthesized(out.bytes())?)
    }

    /// Synthesizes the idle tasks. Returns all processes, because any of them may run on these CPUs.
    fn synthesize_cpus(&self, cpus: &CpuList, out: &mut Encoder) -> Vec<u32> {
        if self.plan.synthesis.tasks {
            synthesize::idle(cpus, out);
        }
        self.host.processes()
    }

    fn synthesize_machine(&self, out: &mut Encoder) -> Result<()> {
        // Write which ring each id belongs to. Readers need this to interpret the values of groups.
        self.sources.id_index(out);
        if let Some(trace) = &self.plan.trace {
            trace.write_decoder_settings(self.plan, self.sources.rings(), self.host, out)?;
        }
        synthesize::machine(self.host, self.plan.options.cgroups && self.plan.synthesis.cgroups, out);
        Ok(())
    }

    fn extent(&self) -> SynthesisOptions {
        let options = &self.plan.options;
        let copies = options.call_graph.is_some_and(CallGraph::copies);
        SynthesisOptions {
            what: self.plan.synthesis,
            // If stack copies are unwound later, the reader needs the data mappings too.
            data_mappings: options.data_mappings || !self.plan.unwinds && copies,
            namespaces: options.namespaces,
        }
    }
}
