//! Runs one counting measurement, from the first count to the last.
//!
//! Receives a [`CountingSetup`] (events, targets, end conditions) and an [`Observer`] that is called at each
//! interval. Returns the final totals and how the measurement ended ([`MeasurementResult`]). Warns about
//! omitted events; does not add up counts. [`drive`](super::drive) contains the loop.

use std::io;
use std::rc::Rc;

use super::control::Control;
use super::drive::{LoopContext, Measurement, MeasurementHandler, drive};
use super::ending::EndConditions;
use super::held_counts::HeldCounts;
use super::open::inheritable_probes;
use super::plan::{Delay, MeasurementScope, RunSchedule};
use super::reservation::{EventChoice, EventSwitch};
use super::warning::not_handed_over;
use super::{filters, handover, launch, sources, targets};
use pmc_events::counter::Levels;
use pmc_events::counter::change::EventChange;
use pmc_events::counter::counter_set::{CountOptions, CounterReading, CounterSet, SlotOpenResult};
use pmc_events::counter::reservation::{ReservationState, Watcher};
use pmc_events::counter::target::{TargetCgroup, TargetSlot};
use pmc_events::event::{EventGroup, EventSpec};
use pmc_sys::abi::Attr;
use pmc_sys::error::{Error, Result, Warning, say};
use pmc_sys::host::Host;
use pmc_sys::host::process::ThreadInfo;
use pmc_sys::sys::errno;
use pmc_sys::sys::process::{CommandOutcome, PausedChild, Streams};
use pmc_sys::sys::signal::Signals;
use pmc_text::units::duration;

/// Events to count, their targets, and the intervals.
pub struct CountPlan {
    /// Groups of events, each with the cgroup to which it is limited.
    pub groups: Vec<(EventGroup, Option<Rc<TargetCgroup>>)>,
    /// Targets: the command, tasks or CPUs.
    pub scope: MeasurementScope,
    /// Whether children are counted with their parents.
    pub inherit: bool,
    /// Privilege levels to count.
    pub levels: Levels,
    /// Length of an interval in nanoseconds.
    pub interval_ns: Option<u64>,
    /// Number of intervals to show; `None`: no limit.
    pub interval_count: Option<u32>,
}

/// Parameters of a measurement.
pub struct CountingSetup<'a> {
    /// The machine.
    pub host: &'a Host,
    /// What to count.
    pub plan: CountPlan,
    /// The command, and when to count.
    pub run_schedule: RunSchedule,
    /// Destination of the command's output.
    pub streams: Streams,
    /// The signals that end the measurement.
    pub signals: &'a Signals,
    /// Commands from another process (`--control`).
    pub control: Option<&'a mut Control>,
    /// Reports reservations by other programs (`--reserve=yield`).
    pub watcher: Option<&'a mut Watcher>,
}

/// Readings at the end of an interval, for an [`Observer`].
pub struct IntervalReadings<'a> {
    /// Nanoseconds since the start.
    pub at_ns: u64,
    /// The totals of every counter since the start.
    pub readings: &'a [CounterReading],
    /// The counted threads; empty if whole CPUs are counted.
    pub threads: &'a [ThreadInfo],
    /// Nanoseconds since the start during which the hardware events were off because of a reservation.
    pub yielded_ns: u64,
    /// Whether counting was off for the whole interval (`-D`, `--control`).
    pub off: bool,
}

/// Receives the progress of a measurement.
pub trait Observer {
    /// Called when all counters are open but nothing runs yet. This is the last chance to refuse the
    /// measurement. `threads` are the counted threads: for a command, its first thread. Empty if whole CPUs
    /// are counted.
    ///
    /// # Errors
    /// Fails if the observer refuses the measurement. The measurement then ends.
    fn opened(&mut self, set: &CounterSet, threads: &[ThreadInfo]) -> Result<()>;
    /// Called at the end of each interval.
    ///
    /// # Errors
    /// Fails if the output fails. The measurement then ends.
    fn interval(&mut self, interval: &IntervalReadings<'_>) -> Result<()>;
    /// Warns about a problem during the measurement.
    fn warn(&mut self, warning: Warning) {
        say::warn(warning);
    }
}

/// The result of a measurement.
pub struct MeasurementResult {
    /// The opened counters.
    pub set: CounterSet,
    /// The counted threads; empty if whole CPUs are counted.
    pub threads: Vec<ThreadInfo>,
    /// The totals of every counter.
    pub readings: Vec<CounterReading>,
    /// Nanoseconds from start to end.
    pub elapsed_ns: u64,
    /// Nanoseconds during which the hardware events were off because of a reservation.
    pub yielded_ns: u64,
    /// How the command ended; `None` without a command, or if it still runs.
    pub outcome: Option<CommandOutcome>,
    /// The signal that ended pmc.
    pub interrupted: Option<i32>,
    /// Whether `--timeout` ended the measurement.
    pub timed_out: bool,
    /// Whether a holder has taken over the counters.
    pub is_handed_over: bool,
    /// Whether counting was off during the whole measurement (`-D`, `--control`).
    pub off: bool,
}

/// Runs one measurement.
///
/// # Errors
/// Fails if a target does not exist, the command cannot be started (status 126 or 127), descriptors run out,
/// or the observer fails. A refused event is not an error; the counter set contains the reason.
pub fn measure(setup: CountingSetup<'_>, observer: &mut dyn Observer) -> Result<MeasurementResult> {
    let CountingSetup { host, plan, run_schedule, streams, signals, control, mut watcher } = setup;
    // The command's exec must not start the counters while another process has reserved them.
    let is_reserved =
        watcher.as_mut().is_some_and(|watcher| matches!(watcher.poll(), ReservationState::Reserved(_)));
    let held = launch::hold_for(&run_schedule, streams)?;
    let scope = plan.scope.clone();
    let counts_whole_command = matches!(scope, MeasurementScope::Command)
        && plan.inherit
        && run_schedule.delay == Delay::None
        && control.is_none();
    let mut counting = Counting::open(plan, host, &run_schedule, held.as_ref(), is_reserved, observer)?;
    let (signals, stop, threads) = (Some(signals), None, counting.threads.clone());
    let context = LoopContext {
        host,
        run_schedule: &run_schedule,
        held,
        threads,
        signals,
        control,
        stop,
        watcher,
        scope: &scope,
    };
    let measured = drive(&mut counting, context)?;
    let yielded_ns = measured.activity.yielded_ns(measured.now);
    if let Some(outcome) = measured.ending.outcome.filter(|_| counts_whole_command && yielded_ns == 0) {
        counting.compare_with(outcome);
    }
    Ok(MeasurementResult {
        elapsed_ns: measured.now - measured.start,
        yielded_ns,
        outcome: measured.ending.outcome,
        interrupted: measured.ending.interrupted(),
        timed_out: measured.ending.timed_out,
        is_handed_over: measured.ending.handed_over,
        off: !measured.activity.was_ever_on(),
        set: counting.set,
        threads: counting.threads,
        readings: counting.readings,
    })
}

/// A difference of times that the kernel's rounding does not explain, in nanoseconds.
const CLEARLY_MORE_NS: u64 = 50_000_000;

/// The counters, as a measurement handler that [`drive`](super::drive) runs.
pub(super) struct Counting<'a> {
    set: CounterSet,
    /// Counts of events that a holder keeps open.
    held_counts: HeldCounts,
    threads: Vec<ThreadInfo>,
    /// The most recent totals.
    readings: Vec<CounterReading>,
    interval: Option<IntervalTimer>,
    /// The command that pmc has started.
    command: Option<ThreadInfo>,
    host: &'a Host,
    scope: MeasurementScope,
    /// Whether all counted tasks end with the command.
    ends_with_command: bool,
    observer: &'a mut dyn Observer,
}

/// The schedule of intervals, in nanoseconds of the monotonic clock.
struct IntervalTimer {
    /// The end of the current interval; `None` until the measurement begins (`-D`).
    next: Option<u64>,
    step: u64,
    /// Number of intervals still to show; `None`: no limit.
    left: Option<u32>,
}

impl<'a> Counting<'a> {
    /// Opens the counters. If there is a command, it waits at its start gate.
    pub(super) fn open(
        plan: CountPlan,
        host: &'a Host,
        run_schedule: &RunSchedule,
        held: Option<&PausedChild>,
        is_reserved: bool,
        observer: &'a mut dyn Observer,
    ) -> Result<Self> {
        let CountPlan { mut groups, scope, inherit, levels, interval_ns, interval_count } = plan;
        let ends_with_command = matches!(scope, MeasurementScope::Command);
        let enable_on_exec = ends_with_command && run_schedule.delay == Delay::None && !is_reserved;
        let options = CountOptions { inherit, enable_on_exec, levels };
        let probes = inheritable_probes(&mut groups, inherit, &scope, host);
        sources::refuse_other_targets(groups.iter().flat_map(|(group, _)| &group.events), &scope, host)?;
        let held_counts = HeldCounts::find(groups.iter().flat_map(|(group, _)| &group.events));
        let mut set = CounterSet::new(groups, options);
        set.keep(probes);
        let threads = open_scope(&mut set, host, &scope, held)?;
        set.set_filters().map_err(filters::refused)?;
        let command = held.map(|held| ThreadInfo {
            tid: held.pid(),
            pid: held.pid(),
            comm: launch::comm(&run_schedule.command),
        });
        let own = command.as_ref().filter(|_| ends_with_command);
        observer.opened(&set, own.map_or(&threads, std::slice::from_ref))?;
        Ok(Self {
            ends_with_command,
            set,
            held_counts,
            threads,
            readings: Vec::new(),
            interval: interval_ns.map(|step| IntervalTimer { next: None, step, left: interval_count }),
            command,
            host,
            scope,
            observer,
        })
    }

    fn read(&mut self) -> Result<()> {
        read(&mut self.set, &mut self.readings)?;
        self.readings.extend(self.held_counts.read().into_iter().map(|one| CounterReading {
            event: one.event,
            slot: TargetSlot { tid: None, cpu: one.cpu },
            count: one.count,
        }));
        Ok(())
    }

    /// Warns if the command used far more CPU time than the events were on. The kernel removes an
    /// unprivileged user's events from a task that executes a program with other privileges.
    fn compare_with(&mut self, outcome: CommandOutcome) {
        let of_tasks = self.readings.iter().filter(|reading| reading.slot.tid.is_some());
        let enabled_ns = of_tasks.filter_map(|reading| Some(reading.count?.enabled_ns)).max();
        let used_ns = outcome.user_ns + outcome.system_ns;
        if let Some(counted_ns) = enabled_ns
            && used_ns > counted_ns + counted_ns / 4 + CLEARLY_MORE_NS
        {
            let [counted, used] = [counted_ns, used_ns].map(|ns| duration(ns as f64));
            let what = format!(
                "the events were on for {counted} of the {used} of CPU time that the command used: the kernel \
                 stops measuring programs with other privileges (setuid, setgid or file capabilities)"
            );
            self.observer.warn(Warning::new(what).advise("run pmc as root"));
        }
    }

    /// Hands the counters over to this user's holder, where they continue to count. pmc prints the counts so
    /// far.
    fn hand_over(&mut self, is_on: bool) -> Result<()> {
        if !self.held_counts.is_empty() {
            return Err(Error::new("some events already belong to a holder"));
        }
        if !is_on {
            return Err(Error::new(
                "some events are disabled (-D, --control, --reserve=yield), and a holder would never enable them",
            ));
        }
        let mixed = !matches!(self.scope, MeasurementScope::Cpus(_))
            && self.set.counters().any(|(_, slot, _)| slot.tid.is_none());
        if mixed {
            return Err(Error::new(
                "some count whole CPUs and others processes, but an entry can contain only one kind",
            ));
        }
        let described = handover::describe_counters(&self.set, &self.scope);
        let (events, descriptors) = described.map_err(|error| Error::io("describing the counters", error))?;
        if descriptors.is_empty() {
            return Err(Error::new("none of them are kernel events"));
        }
        let [_, name] = handover::names(std::process::id());
        handover::give(self.host, name, events, &descriptors)
    }

    /// Starts the intervals when the events are first enabled.
    fn begin_beat(&mut self, measurement: &Measurement) {
        if let Some(timer) = self.interval.as_mut().filter(|_| measurement.activity.was_ever_on()) {
            timer.next.get_or_insert(measurement.start + timer.step);
        }
    }

    fn show(&mut self, measurement: &mut Measurement) -> Result<()> {
        self.observer.interval(&IntervalReadings {
            at_ns: measurement.now - measurement.start,
            readings: &self.readings,
            threads: &self.threads,
            yielded_ns: measurement.activity.yielded_ns(measurement.now),
            off: !measurement.activity.end_interval(),
        })
    }
}

impl EventSwitch for Counting<'_> {
    fn start(&mut self) -> Result<()> {
        self.held_counts.switch(true)?;
        self.held_counts.refuse_several()?;
        self.set.enable().map_err(starting)
    }

    fn switch(&mut self, on: bool, events: EventChoice) -> Result<()> {
        let which = |event: &EventSpec| events.has(event.takes_counter());
        // Events that a holder keeps open do not use this process's counters.
        if events.has(false) {
            self.held_counts.switch(on)?;
        }
        self.set.switch_where(on, which).map_err(starting)
    }

    fn switch_named(&mut self, on: bool, name: &str, events: EventChoice) -> Result<()> {
        let which = |event: &EventSpec| event.name == name && events.has(event.takes_counter());
        self.set.switch_each(on, which).map_err(starting)
    }

    fn change(
        &self,
        change: EventChange,
        name: Option<&str>,
        is_on: bool,
    ) -> std::result::Result<(), String> {
        self.set.change(change, name, is_on)
    }

    fn requests(&self) -> Vec<(&str, &Attr)> {
        self.set.requests().collect()
    }

    fn takes_counters(&self) -> bool {
        self.set
            .specs()
            .zip(self.set.refusals())
            .any(|(spec, refusal)| refusal.is_none() && spec.takes_counter())
    }
}

impl MeasurementHandler for Counting<'_> {
    fn started(&mut self, measurement: &mut Measurement) -> Result<()> {
        self.begin_beat(measurement);
        Ok(())
    }

    fn due(&self) -> Option<u64> {
        self.interval.as_ref()?.next
    }

    fn work(&mut self, measurement: &mut Measurement) -> Result<()> {
        let now = measurement.now;
        self.begin_beat(measurement);
        let Some(due) = self.due().filter(|at| now >= *at && !measurement.ending.over()) else {
            return Ok(());
        };
        self.read()?;
        self.show(measurement)?;
        let Some(timer) = &mut self.interval else { return Ok(()) };
        // Keep the schedule even if printing was slow; skip intervals that have passed.
        timer.next = Some(due + timer.step * ((now - due) / timer.step + 1));
        timer.left = timer.left.map(|left| left.saturating_sub(1));
        if timer.left == Some(0) {
            self.interval = None;
            measurement.ending.stopped |= self.command.is_none();
        }
        Ok(())
    }

    fn detach(&mut self, is_on: bool) -> bool {
        let given = self.hand_over(is_on);
        match (&given, &self.command) {
            (Ok(()), Some(command)) => {
                say::note(format!(
                    "{} continues as process {}; pmc does not wait for it",
                    command.comm, command.pid
                ));
            }
            (Ok(()), None) => {}
            (Err(error), _) => say::warn(not_handed_over(error)),
        }
        given.is_ok()
    }

    fn stop(&mut self, ending: &EndConditions) -> Result<()> {
        // The counters belong to the holder now and continue to count.
        if ending.handed_over {
            return Ok(());
        }
        // Counters must be stopped before reading only if their targets continue to run.
        if ending.outcome.is_some() && self.ends_with_command {
            return Ok(());
        }
        self.switch(false, EventChoice::All)
    }

    fn finish(&mut self, measurement: &mut Measurement) -> Result<()> {
        self.read()?;
        if self.interval.is_some() && !self.readings.is_empty() {
            self.show(measurement)?;
        }
        Ok(())
    }

    fn warn(&mut self, warning: Warning) {
        self.observer.warn(warning);
    }

    fn waits_for_command(&self, ending: &EndConditions) -> bool {
        ending.timed_out
    }
}

fn starting(error: io::Error) -> Error {
    Error::io("starting the counters", error)
}

/// Opens the counters of the set on the targets in `scope`. Returns the counted threads, if any.
fn open_scope(
    set: &mut CounterSet,
    host: &Host,
    scope: &MeasurementScope,
    held: Option<&PausedChild>,
) -> Result<Vec<ThreadInfo>> {
    // Scan only once: a thread that starts now inherits its parent's counters, and another scan would count
    // it twice.
    let mut threads = targets::threads(scope, host)?;
    targets::check_flags(set.specs(), scope, &threads, host)?;
    let online = host.online_cpus();
    let slots: Vec<TargetSlot> = match scope {
        MeasurementScope::Command => {
            held.iter().map(|held| TargetSlot { tid: Some(held.pid()), cpu: None }).collect()
        }
        MeasurementScope::Cpus(cpus) => {
            cpus.iter().map(|cpu| TargetSlot { tid: None, cpu: Some(cpu) }).collect()
        }
        _ => threads.iter().map(|thread| TargetSlot { tid: Some(thread.tid), cpu: None }).collect(),
    };
    let why = "each event requires a file descriptor for every CPU or thread";
    let less = "count fewer events, or on fewer CPUs (-C) or threads (-t)";
    set.refuse_unplaced(&slots, &online);
    targets::make_room(set.descriptors(slots.len()), "counters", why, less)?;
    if !matches!(scope, MeasurementScope::Cpus(_)) {
        set.open_devices(&online);
    }
    let gone: Vec<TargetSlot> =
        slots.iter().copied().filter(|&slot| set.open(slot) == SlotOpenResult::Gone).collect();
    threads.retain(|thread| !gone.iter().any(|slot| slot.tid == Some(thread.tid)));
    if !gone.is_empty() && gone.len() < slots.len() {
        let what =
            if matches!(scope, MeasurementScope::Cpus(_)) { "CPUs went offline" } else { "threads ended" };
        say::note(format!("{} {what} before their counters were open; skipped", gone.len()));
    }
    if !slots.is_empty() && gone.len() == slots.len() {
        return Err(match scope {
            MeasurementScope::Cpus(cpus) => Error::new(format!("CPUs {cpus} went offline")),
            _ => Error::new("the processes ended before pmc opened their counters"),
        });
    }
    Ok(threads)
}

fn read(set: &mut CounterSet, readings: &mut Vec<CounterReading>) -> Result<()> {
    readings.clear();
    set.read(|reading| readings.push(reading)).map_err(|error| {
        let again = error.raw_os_error() == Some(errno::ECHILD);
        let error = Error::io("reading the counters", error);
        if again { error.try_options("omit the braces, or exclude children (-i)") } else { error }
    })
}
