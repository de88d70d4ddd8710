//! The live sampler: a thread that opens the events, drains their rings and keeps the live state up to date.
//!
//! Receives a [`LivePlan`]; returns the [`LiveState`] that it shares with its viewers. Runs until a viewer
//! stops it or all sampled processes have ended. [`drive`](super::drive) contains the loop.
//!
//! ```text
//!   rings ── half full, or half a second ──► Batch ──┐
//!      all rings are read, then all records that are ├─ lock ─► Live::process_until ─► follower
//!      older than the start of the read are merged   ┘
//! ```

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::pipe::{PipeFlags, pipe_with};

use super::drive::{LoopContext, Measurement, MeasurementHandler, drive};
use super::ended_at_exec::ExecEnds;
use super::ending::EndConditions;
use super::file::output::OutputEvents;
use super::live_rate::{self, RateOrder, RateOrders, RateReply, RateRequests};
use super::plan::{MeasurementScope, SamplePlan, Synthesis};
use super::reservation::{Activity, EventChoice, reserve};
use super::sources::{self, RecordSources, SourceSwitch};
use super::synthesize::{self, SynthesisOptions};
use super::unwinding::UnwindWorker;
use super::{launch, open, trace};
use pmc_analysis::session::SampleQuery;
use pmc_analysis::session::live::{Batch, Live, LiveState, SampledEvent};
use pmc_analysis::session::thread_time::ThreadTime;
use pmc_events::counter::reservation::PreparedReservation;
use pmc_events::counter::rings::Rings;
use pmc_perfdata::record::Layouts;
use pmc_perfdata::record::encode::Encoder;
use pmc_sys::error::{Error, Result, Warning};
use pmc_sys::host::Host;
use pmc_sys::host::process::ThreadInfo as Alive;
use pmc_sys::sys::clock::monotonic_ns;
use pmc_sys::sys::credentials;
use pmc_sys::sys::process::{Ended, PausedChild, Streams};

/// The first drain intervals in nanoseconds. They are short, so the first table appears quickly.
const FIRST_DRAINS: [u64; 3] = [20_000_000, 60_000_000, 100_000_000];
/// Maximum time from a record's timestamp to its arrival in the ring, in nanoseconds.
const WRITING_NS: u64 = 2_000_000;
/// Interval at which to check whether the unwinding worker has finished a round, in nanoseconds.
const UNWINDING_NS: u64 = 5_000_000;
/// Number of bytes read from the rings after which a round of unwinding starts early.
const MOST_ROUND: usize = 4 << 20;

/// The events to sample, and options of the live view.
#[derive(Clone)]
pub struct LivePlan {
    /// What to sample.
    pub sample: SamplePlan,
    /// The attributes to keep from each sample.
    pub query: SampleQuery,
    /// Maximum length of a call chain.
    pub max_stack: usize,
    /// Interval between tables.
    pub delay: Duration,
    /// Real-time priority of the thread that drains the rings.
    pub realtime: Option<i32>,
    /// Standard streams of the command, if there is one.
    pub streams: Streams,
}

/// Called with the live state whenever records have been added to it. The flag is `true` in the last call.
pub(crate) type LiveObserver = Box<dyn FnMut(&mut Live, bool) + Send>;

/// The running sampler thread.
pub struct Sampler {
    /// The live state, which the thread updates.
    pub state: Arc<LiveState>,
    /// Sends orders to change sampling rates to the sampler thread.
    pub rates: Arc<RateOrders>,
    /// Write end of a pipe. Closing it stops the thread, and cannot fail.
    stop: OwnedFd,
    thread: JoinHandle<Result<Option<Ended>>>,
}

impl Sampler {
    /// Starts the thread, which opens the events. Returns once sampling has begun.
    ///
    /// # Errors
    /// Fails if an event or a target cannot be opened. The errors are the same as for a recording.
    pub fn start(plan: LivePlan, follower: LiveObserver) -> Result<Self> {
        let (stopped, stop) = pipe_with(PipeFlags::CLOEXEC)
            .map_err(|error| Error::io("making a pipe", std::io::Error::from(error)))?;
        let (rates, desk) = live_rate::orders()?;
        let (ready, is_ready) = sync_channel(1);
        let thread = std::thread::Builder::new().name("sampler".into()).spawn(move || {
            let host = Host::live();
            let opened = launch::hold_for(&plan.sample.run_schedule, plan.streams).and_then(|held| {
                let (sampling, prepared) = Sampling::open(&plan, &host, held.as_ref(), desk, follower)?;
                open::run_in_real_time(plan.realtime)?;
                credentials::keep_for_reading();
                Ok((held, sampling, prepared))
            });
            let (held, mut sampling, mut prepared) = match opened {
                Ok(opened) => opened,
                Err(error) => {
                    let _ = ready.send(Err(error));
                    return Ok(None);
                }
            };
            let state = Arc::clone(&sampling.state);
            sampling.ready = Some(ready);
            let context = LoopContext {
                host: &host,
                run_schedule: &plan.sample.run_schedule,
                held,
                threads: sampling.threads.clone(),
                signals: None,
                control: None,
                stop: Some(stopped.as_fd()),
                watcher: prepared.watcher.as_mut(),
                scope: &plan.sample.scope,
            };
            let done = drive(&mut sampling, context);
            state.end();
            match (done, sampling.ready.take()) {
                // Sampling did not begin: report the reason to the waiting caller.
                (Err(error), Some(ready)) => {
                    let _ = ready.send(Err(error));
                    Ok(None)
                }
                (done, _) => done.map(|measured| measured.ending.outcome.map(|outcome| outcome.ended)),
            }
        });
        let thread = thread.map_err(|error| Error::io("starting the sampling thread", error))?;
        let state = wait_for(&is_ready)?;
        Ok(Self { state, rates: Arc::new(rates), stop, thread })
    }

    /// Stops the sampler. Returns how the command ended, if it has ended.
    ///
    /// # Errors
    /// Returns the error that ended the sampling earlier.
    pub fn stop(self) -> Result<Option<Ended>> {
        drop(self.stop);
        self.thread.join().unwrap_or_else(|_| Err(Error::new("the sampling thread failed")))
    }
}

fn wait_for(is_ready: &Receiver<Result<Arc<LiveState>>>) -> Result<Arc<LiveState>> {
    is_ready.recv().unwrap_or_else(|_| Err(Error::new("the sampling thread failed")))
}

/// The worker that the records pass through if waiting time is measured.
struct WaitMeasurement {
    worker: UnwindWorker,
    /// For each ring, the id of the event to which samples with another recorder's id belong.
    owners: Vec<Option<u64>>,
}

impl WaitMeasurement {
    /// Reads the rings into the worker's round.
    fn take(&mut self, sources: &mut RecordSources) -> Result<()> {
        self.worker.take_rings(sources, &self.owners).map(drop)
    }
}

/// The state of the sampler thread.
///
/// While the events run, the thread never blocks on files, terminals or symbols, because otherwise the rings
/// would fill up.
///
/// If waiting time is measured, the records first pass through an [`UnwindWorker`]. As in a recording, it
/// turns context switches into samples of waits, and returns the records in time order.
struct Sampling<'a> {
    plan: &'a LivePlan,
    host: &'a Host,
    state: Arc<LiveState>,
    sources: RecordSources,
    layouts: Arc<Layouts>,
    /// For each ring, the event to which samples with another recorder's id belong.
    owners: Vec<Option<usize>>,
    threads: Vec<Alive>,
    batch: Batch,
    waits: Option<WaitMeasurement>,
    rates: RateRequests,
    follower: LiveObserver,
    exec_ends: ExecEnds,
    /// The warnings so far, and the warning about processes in `exec_ends`, which changes with their number.
    warnings: Vec<String>,
    unmeasured: Option<String>,
    /// Why no more records arrive although the command continues to run.
    gone: Option<Error>,
    first_drains: std::array::IntoIter<u64, 3>,
    next_drain: u64,
    /// Notified when sampling has begun.
    ready: Option<SyncSender<Result<Arc<LiveState>>>>,
}

impl<'a> Sampling<'a> {
    /// Opens the events. Also returns the reservation, which must be kept while the events are open.
    fn open(
        plan: &'a LivePlan,
        host: &'a Host,
        held: Option<&PausedChild>,
        mut rates: RateRequests,
        follower: LiveObserver,
    ) -> Result<(Self, PreparedReservation)> {
        let groups = open::groups(&plan.sample, host)?;
        trace::refuse(&groups, "top shows only samples")?;
        let events = || groups.iter().flat_map(|(group, _)| &group.events);
        if let Some(spec) = events().find(|spec| spec.qualifiers.logs()) {
            return Err(Error::usage(format!(
                "{}: pmc logs counts only to a file, and top writes no file",
                spec.name
            ))
            .try_this("pmc stat, or pmc record, with the same events"));
        }
        let mut sample = plan.sample.clone();
        sources::adjust_to_held_events(&mut sample, &groups, host)?;
        let prepared = reserve(plan.sample.reserve, groups.iter().map(|(group, _)| group), host)?;
        let (sources, threads) = RecordSources::open(&sample, host, groups, held)?;
        rates.open(&sources, host);
        let taken = sources.events();
        let output = OutputEvents::new(&sample, taken.clone());
        let owners = sources.owners();
        let waits = output
            .start_unwinding(sample.options.max_stack, false)?
            .map(|worker| WaitMeasurement { worker, owners: owners.clone() });
        let all = output.written;
        let query = SampleQuery { thread_time: ThreadTime::from_events(&all), ..plan.query.clone() };
        let mut leaders: Vec<usize> = (0..all.len()).collect();
        for group in sources.groups() {
            group.iter().for_each(|member| leaders[*member] = group[0]);
        }
        let events: Vec<(SampledEvent, Vec<u64>)> = all
            .into_iter()
            .zip(leaders)
            .map(|(event, leader)| (SampledEvent { name: event.name(), attr: event.attr, leader }, event.ids))
            .collect();
        let layouts = Arc::new(Layouts::new(events.iter().map(|(event, ids)| (&event.attr, ids.as_slice()))));
        let owners = owners.into_iter().map(|id| id.and_then(|id| layouts.event_of(id))).collect();
        let periods = events.iter().map(|(event, _)| event.attr.period()).collect();
        let mut live = Live::new(layouts.clone(), periods, query, plan.max_stack);
        match &plan.sample.scope {
            MeasurementScope::Processes(ids)
            | MeasurementScope::Families(ids)
            | MeasurementScope::Threads(ids) => live.name(ids.iter().map(|&id| id as i32)),
            MeasurementScope::Command => live.name(held.iter().map(|held| held.pid() as i32)),
            _ => {}
        }
        let events = events.into_iter().take(sources.sampled_events()).map(|(event, _)| event).collect();
        let sampling = Self {
            plan,
            host,
            state: Arc::new(LiveState::new(live, events, plan.delay)),
            sources,
            layouts,
            owners,
            threads,
            batch: Batch::default(),
            waits,
            rates,
            follower,
            exec_ends: ExecEnds::new(&sample.scope),
            warnings: Vec::new(),
            unmeasured: None,
            gone: None,
            first_drains: FIRST_DRAINS.into_iter(),
            next_drain: 0,
            ready: None,
        };
        Ok((sampling, prepared))
    }

    fn set_next_drain(&mut self, now: u64) {
        self.next_drain =
            now + self.first_drains.next().unwrap_or_else(|| self.sources.pace(self.state.settle_ns()));
    }

    /// Reads the rings into the batch, but does not update the live state.
    fn take(&mut self) -> Result<()> {
        let Self { sources, batch, layouts, owners, waits, .. } = self;
        if let Some(waits) = waits {
            return waits.take(sources);
        }
        let taken = sources.drain(|ring, slices| {
            batch.take(slices, layouts, owners.get(ring).copied().flatten());
            Ok::<(), Error>(())
        });
        taken.map(drop)
    }

    /// Changes a sampling rate as requested. A clock is switched off during the change, so every sample has
    /// either the old or the new rate.
    fn change_rate(&mut self, order: &RateOrder, activity: &Activity) -> Result<RateReply> {
        let change = match self.rates.change(order, &self.sources) {
            Ok(change) => change,
            Err(why) => return Ok(Err(why)),
        };
        let is_on = activity.is_on(None);
        if change.clock_ns.is_some() {
            self.sources.switch_named(false, &change.name, EventChoice::All)?;
        }
        let changed = self.sources.rings().change(change.change, Some(&change.name), is_on);
        if let Some(period) = change.clock_ns {
            if changed.is_ok() {
                self.state.live().set_period(order.event, monotonic_ns(), period);
            }
            if is_on {
                self.sources.switch_named(true, &change.name, EventChoice::All)?;
            }
        }
        Ok(changed.map(|()| self.rates.made(order.event, change)))
    }

    /// Handles the loss of a holder's events. A command continues to run; without a command, sampling ends.
    fn handle_gone_holders(&mut self) -> Result<()> {
        let gone = self.sources.newly_gone().pop().map(|(_, error)| error);
        match gone {
            Some(error) if self.sources.are_gone() && self.plan.sample.run_schedule.command.is_empty() => {
                Err(error)
            }
            gone => {
                self.gone = self.gone.take().or(gone);
                Ok(())
            }
        }
    }

    fn drain(&mut self) -> Result<()> {
        if self.waits.is_some() {
            return self.drain_waits();
        }
        // Every CPU has written all of its records that are older than this. Newer records wait for the next
        // drain.
        let horizon = monotonic_ns().saturating_sub(WRITING_NS);
        self.take()?;
        if !self.batch.is_empty() {
            self.process_until(horizon, horizon);
        }
        self.state.set_settled(horizon);
        Ok(())
    }

    /// Reads the rings for the unwinding worker, and adds the rounds that it has finished.
    fn drain_waits(&mut self) -> Result<()> {
        let Self { sources, batch, layouts, waits, .. } = self;
        let Some(waits) = waits else { return Ok(()) };
        let mut settled = None;
        while let Some(done) = waits.worker.next()? {
            batch.take(&[&done.records], layouts, None);
            settled = done.settled.or(settled);
        }
        let now = monotonic_ns();
        waits.take(sources)?;
        if now >= self.next_drain || waits.worker.round_bytes() > MOST_ROUND {
            waits.worker.second_pass();
            waits.take(sources)?;
            waits.worker.end_live_round(now.saturating_sub(WRITING_NS));
            self.set_next_drain(now);
        }
        if let Some(settled) = settled {
            self.process_until(settled, settled);
            self.state.set_settled(settled);
        }
        Ok(())
    }

    /// Adds the records up to `horizon` to the live state, which then contains all samples up to `settled`.
    fn process_until(&mut self, horizon: u64, settled: u64) {
        self.batch.sideband_until(horizon).for_each(|record| self.exec_ends.note(&record, &self.layouts));
        let mut live = self.state.live();
        live.process_until(&mut self.batch, horizon);
        live.settle(settled);
        // Only the last call, when sampling ends, passes `u64::MAX`.
        (self.follower)(&mut live, horizon == u64::MAX);
    }

    /// Warns about processes whose events the kernel ended when they executed a program.
    fn confirm_exec_ends(&mut self) {
        if self.exec_ends.has_found()
            && let Some(warning) = self.exec_ends.confirm(self.sources.lost())
        {
            self.unmeasured = Some(warning.to_string());
            self.show_warnings();
        }
    }

    fn show_warnings(&self) {
        self.state.set_warnings(self.warnings.iter().chain(&self.unmeasured).cloned().collect());
    }

    /// Synthesizes records that describe the state before sampling began.
    fn synthesize(&mut self) -> Result<()> {
        let mut out = Encoder::new(self.layouts.iter().next().map_or(0, |layout| layout.trailer_size()));
        let (host, cgroups) = (self.host, self.plan.sample.options.cgroups);
        synthesize::machine(host, cgroups, &mut out);
        let pids = match self.plan.sample.scope {
            MeasurementScope::Cpus(_) => host.processes(),
            _ if self.sources.rings().is_mixed() => host.processes(),
            _ => synthesize::pids(&self.threads),
        };
        let pids = self.sources.add_targets(pids, host, &mut out)?;
        let extent = SynthesisOptions { what: Synthesis::ALL, data_mappings: false, namespaces: false };
        synthesize::processes(host, pids, extent, &mut out, |out| {
            self.take_synthesized(out.bytes());
            // The events are already running, and synthesizing takes a long time if there are many processes,
            // so read the rings now.
            self.take()
        })?;
        self.take_synthesized(out.bytes());
        self.state.live().end_synthesized();
        Ok(())
    }

    fn take_synthesized(&mut self, records: &[u8]) {
        if let Some(waits) = &mut self.waits {
            waits.worker.send_synthesized(records);
        }
        self.state.live().take_synthesized(records);
    }
}

impl SourceSwitch for Sampling<'_> {
    fn sources(&self) -> &RecordSources {
        &self.sources
    }

    fn sources_mut(&mut self) -> &mut RecordSources {
        &mut self.sources
    }

    fn yielding(&mut self, is_yielding: bool) {
        self.state.set_yielding(is_yielding);
    }
}

impl MeasurementHandler for Sampling<'_> {
    fn rings(&mut self) -> Option<&mut Rings> {
        Some(&mut self.sources.rings)
    }

    fn waker(&self) -> Option<BorrowedFd<'_>> {
        Some(self.rates.waker())
    }

    fn started(&mut self, measurement: &mut Measurement) -> Result<()> {
        self.state.live().settle(measurement.start);
        if let Some(ready) = self.ready.take() {
            let _ = ready.send(Ok(Arc::clone(&self.state)));
        }
        self.synthesize()?;
        self.set_next_drain(monotonic_ns());
        Ok(())
    }

    fn due(&self) -> Option<u64> {
        let is_unwinding = self.waits.as_ref().is_some_and(|waits| waits.worker.rounds_in_flight() > 0);
        let next_check = if is_unwinding { monotonic_ns() + UNWINDING_NS } else { u64::MAX };
        Some(self.next_drain.min(next_check))
    }

    fn work(&mut self, measurement: &mut Measurement) -> Result<()> {
        while let Some(order) = self.rates.next() {
            let answer = self.change_rate(&order, &measurement.activity)?;
            // Sending fails only if the requester has ended and needs no answer.
            let _ = order.answer.send(answer);
        }
        self.drain()?;
        self.exec_ends.end_round();
        self.confirm_exec_ends();
        if self.waits.is_none() {
            self.set_next_drain(monotonic_ns());
        }
        self.handle_gone_holders()
    }

    fn stop(&mut self, _: &EndConditions) -> Result<()> {
        self.sources.switch(false, EventChoice::All)
    }

    fn finish(&mut self, measurement: &mut Measurement) -> Result<()> {
        self.drain()?;
        let mut end = measurement.now;
        if let Some(mut waits) = self.waits.take() {
            waits.take(&mut self.sources)?;
            for done in waits.worker.last()? {
                self.batch.take(&[&done.records], &self.layouts, None);
            }
            end = monotonic_ns();
        }
        self.process_until(u64::MAX, end);
        self.state.set_settled(u64::MAX);
        self.exec_ends.finish_rounds();
        self.confirm_exec_ends();
        self.gone.take().map_or(Ok(()), Err)
    }

    fn exec_ends(&mut self) -> Option<&mut ExecEnds> {
        Some(&mut self.exec_ends)
    }

    /// Shows the warning with the tables, because the screen occupies the terminal.
    fn warn(&mut self, warning: Warning) {
        let text = warning.to_string();
        // A change of privileges ends the events of each ring.
        if !self.warnings.contains(&text) {
            self.warnings.push(text);
            self.show_warnings();
        }
    }

    fn waits_for_command(&self, _: &EndConditions) -> bool {
        false
    }
}
