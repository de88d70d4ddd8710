//! The loop that all measurements share: starts a measurement handler, calls it at each wake-up, and ends it.
//!
//! Receives a [`MeasurementHandler`] (a recording into a file, the live sampler, or counters) and its
//! [`LoopContext`]; returns the finished [`Measurement`]. Decides what wakes the loop, in which order it
//! handles events, and when the measurement is over. The handler does the work (drain, read, write, show).
//!
//! ```text
//!   prepare ── reserved? ── start ── release the command ── started ──┐
//!                                                                     │
//!   ┌─ wait: rings, signals, orders, its waker, the next deadline ◄───┤
//!   │    signals ─ orders ─ on or off? ─ tick: reserved? alive? ──────┤
//!   │    work: drain the rings, or read the counters ─ timeout? ──────┘
//!   └─► over: stop ── SIGTERM to the command ── finish ── wait for its end
//! ```

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, epoll};

use super::control::{Control, ControlCommand};
use super::ended_at_exec::ExecEnds;
use super::ending::EndConditions;
use super::launch;
use super::plan::{Delay, MeasurementScope, RunSchedule};
use super::reservation::{Activity, EventSwitch};
use super::warning::measure_privileged;
use pmc_events::counter::reservation::{ReservationState, Watcher};
use pmc_events::counter::rings::Rings;
use pmc_events::counter::target::retain_alive;
use pmc_sys::abi::attr::Flag;
use pmc_sys::error::{Error, Result, Warning, say};
use pmc_sys::host::process::ThreadInfo;
use pmc_sys::host::{CpuList, Host};
use pmc_sys::sys::clock::monotonic_ns;
use pmc_sys::sys::cpu_watch::CpuWatch;
use pmc_sys::sys::process::{PausedChild, RunningCommand};
use pmc_sys::sys::signal::{self, Signals};
use pmc_sys::sys::wait;

/// Interval between checks for reservations, and for the end of threads that are not our children.
const TICK_NS: u64 = 100_000_000;

/// Handles a measurement. The loop calls the methods in the order in which they are declared. Times are
/// nanoseconds of the monotonic clock.
pub(super) trait MeasurementHandler: EventSwitch {
    /// Returns the rings that wake the loop when they fill.
    fn rings(&mut self) -> Option<&mut Rings> {
        None
    }

    /// Returns the rings of trigger events, which wake the loop at each occurrence.
    fn triggers(&mut self) -> Option<&mut Rings> {
        None
    }

    /// Returns another descriptor that wakes the loop when it becomes readable.
    fn waker(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Called when everything is open but nothing is running yet.
    fn prepare(&mut self) -> Result<()> {
        Ok(())
    }

    /// Called when the events have been switched on for the first time. Returns the time at which the
    /// measurement begins.
    fn begin_window(&mut self) -> Result<u64> {
        Ok(monotonic_ns())
    }

    /// Called when the measurement has begun and the command runs.
    fn started(&mut self, measurement: &mut Measurement) -> Result<()>;

    /// Returns the latest time for the next call to [`work`](Self::work).
    fn due(&self) -> Option<u64>;

    /// Handles SIGUSR2 or a snapshot order.
    fn snapshot(&mut self) {}

    /// Handles SIGUSR1: hands the events over to a holder. `is_on`: whether all events are running. Returns
    /// whether the handover succeeded; if so, the measurement ends and the command continues to run.
    fn detach(&mut self, _is_on: bool) -> bool {
        false
    }

    /// Called each time the loop wakes up.
    fn work(&mut self, measurement: &mut Measurement) -> Result<()>;

    /// Called when the measurement is over: stops everything that still runs.
    fn stop(&mut self, ending: &EndConditions) -> Result<()>;

    /// Reads the remaining data.
    fn finish(&mut self, measurement: &mut Measurement) -> Result<()>;

    /// Returns the processes whose events the kernel ended when they executed a program.
    fn exec_ends(&mut self) -> Option<&mut ExecEnds> {
        None
    }

    /// Warns about a problem during the measurement.
    fn warn(&mut self, warning: Warning) {
        say::warn(warning);
    }

    /// Whether to wait for a command to exit after SIGTERM.
    fn waits_for_command(&self, ending: &EndConditions) -> bool;
}

/// The environment of a measurement.
pub(super) struct LoopContext<'a> {
    pub(super) host: &'a Host,
    pub(super) run_schedule: &'a RunSchedule,
    /// The command, forked and waiting at its start gate.
    pub(super) held: Option<PausedChild>,
    /// Measured threads that are not our children. The measurement ends when all of them have ended.
    pub(super) threads: Vec<ThreadInfo>,
    pub(super) signals: Option<&'a Signals>,
    pub(super) control: Option<&'a mut Control>,
    /// A descriptor that ends the measurement when it becomes readable.
    pub(super) stop: Option<BorrowedFd<'a>>,
    /// Reports reservations of the hardware by other programs (`--reserve=yield`).
    pub(super) watcher: Option<&'a mut Watcher>,
    /// The measured tasks or CPUs.
    pub(super) scope: &'a MeasurementScope,
}

/// The state of a measurement, and its result.
#[derive(Debug, Default)]
pub(super) struct Measurement {
    /// Start of the measurement, in nanoseconds of the monotonic clock. The measurement starts when the
    /// events are first switched on, which can be delayed (`-D`).
    pub(super) start: u64,
    /// The time at which the loop last woke up; after the measurement, the time at which it ended.
    pub(super) now: u64,
    /// The conditions that have ended the measurement, if any.
    pub(super) ending: EndConditions,
    /// Which events are on.
    pub(super) activity: Activity,
}

/// Runs a measurement from start to end.
///
/// # Errors
/// Fails if the command cannot be started (status 126 or 127), if waiting or switching the events fails, or
/// if the handler returns an error.
pub(super) fn drive(handler: &mut impl MeasurementHandler, context: LoopContext<'_>) -> Result<Measurement> {
    let LoopContext { host, run_schedule, held, mut threads, signals, control, stop, mut watcher, scope } =
        context;
    let mut poller = Poller::new(handler, signals, control.as_deref(), stop, scope)?;
    handler.prepare()?;
    let takes_counters = handler.takes_counters();
    let mut is_reserved = move || {
        let watcher = watcher.as_mut().filter(|_| takes_counters);
        watcher.map(|watcher| matches!(watcher.poll(), ReservationState::Reserved(_)))
    };
    let reserved = is_reserved();
    let mut measurement = Measurement::default();
    let at_once = run_schedule.delay == Delay::None;
    measurement.activity.begin(handler, at_once, reserved == Some(true), monotonic_ns())?;
    let start = if at_once { handler.begin_window()? } else { monotonic_ns() };
    (measurement.start, measurement.now) = (start, start);
    measurement.activity.begins_at(start);
    let _others_terminal = held.as_ref().and_then(|_| say::hold());
    let command = held.map(|held| launch::release(held, &run_schedule.command)).transpose()?;
    let context = RunContext {
        host,
        run_schedule,
        command: command.as_ref(),
        threads: &mut threads,
        signals,
        control,
        is_reserved: reserved.is_some().then_some(is_reserved),
    };
    // The command runs: from here on, an error ends the measurement as a control command does.
    let ran = measurement.run(handler, &mut poller, context);
    measurement.now = monotonic_ns();
    let stopped = handler.stop(&measurement.ending);
    let EndConditions { outcome, handed_over, .. } = &measurement.ending;
    let command = command.filter(|_| outcome.is_none() && !handed_over);
    if let Some(command) = &command {
        command.kill(signal::TERM);
    }
    let finished = handler.finish(&mut measurement);
    let waited = match (command, signals) {
        (Some(command), Some(signals)) => measurement.wait_for(handler, &command, signals),
        _ => Ok(()),
    };
    ran.and(stopped).and(finished).and(waited).map(|()| measurement)
}

/// The part of the [`LoopContext`] that the running measurement uses.
struct RunContext<'a, R> {
    host: &'a Host,
    run_schedule: &'a RunSchedule,
    command: Option<&'a RunningCommand>,
    threads: &'a mut Vec<ThreadInfo>,
    signals: Option<&'a Signals>,
    control: Option<&'a mut Control>,
    /// Returns whether the hardware is reserved, if pmc watches for reservations.
    is_reserved: Option<R>,
}

impl Measurement {
    /// Runs the loop until the measurement is over.
    fn run(
        &mut self,
        handler: &mut impl MeasurementHandler,
        poller: &mut Poller,
        context: RunContext<'_, impl FnMut() -> Option<bool>>,
    ) -> Result<()> {
        let RunContext { host, run_schedule, command, threads, signals, mut control, mut is_reserved } =
            context;
        handler.started(self)?;
        let start = self.start;
        let mut delay_until = match run_schedule.delay {
            Delay::Ns(ns) => Some(start + ns),
            Delay::None | Delay::UntilCommand => None,
        };
        let mut switches = run_schedule.switches.iter().map(|ns| start + ns).peekable();
        let mut turns_on = false;
        let timeout_ns = run_schedule.timeout.map(|timeout| timeout.as_nanos() as u64);
        let mut timeout_at = timeout_ns.map(|ns| delay_until.unwrap_or(start) + ns);
        // Threads of other processes raise no SIGCHLD when they end, so pmc polls for their end.
        let watches_threads = command.is_none() && !threads.is_empty();
        // pmc also polls for the command's end if it does not handle signals.
        let unsignalled = command.filter(|_| signals.is_none());
        let ticks = watches_threads || unsignalled.is_some() || is_reserved.is_some();
        let mut next_tick = ticks.then_some(start + TICK_NS);
        // A control channel that is a file or /dev/null cannot be polled, so read its orders now.
        if let Some(control) = control.as_deref_mut() {
            self.run_commands(handler, control)?;
        }
        while !self.ending.over() {
            let deadlines = [handler.due(), delay_until, switches.peek().copied(), timeout_at, next_tick];
            let woken = poller.wait(handler, control.as_deref(), deadlines.into_iter().flatten().min())?;
            self.ending.stopped |= woken.by_stop;
            if let Some(command) = command.filter(|command| woken.by_end && command.executes()) {
                handler.warn(
                    Warning::note_once(
                        "the kernel stopped measuring the command when it executed a program with other \
                         privileges (setuid, setgid or file capabilities)",
                    )
                    .advise(measure_privileged()),
                );
                if let Some(ends) = handler.exec_ends() {
                    ends.leave_out(command.pid());
                }
            }
            for cpu in woken.offline {
                let what = format!(
                    "CPU {cpu} went offline, so the kernel has ended its events: the measurement does not include \
                     it from then on"
                );
                handler.warn(
                    Warning::new(what)
                        .advise("measure again while all CPUs stay online and the machine is not suspended"),
                );
            }
            if let Some(signals) = signals.filter(|_| woken.by_signal) {
                self.receive(handler, signals, command)?;
                if self.ending.handed_over {
                    break;
                }
            }
            if let Some(control) = control.as_deref_mut() {
                self.run_commands(handler, control)?;
            }
            self.now = monotonic_ns();
            if delay_until.take_if(|at| self.now >= *at).is_some() {
                self.switch(handler, None, true)?;
                timeout_at = timeout_ns.map(|ns| self.start + ns);
            }
            while switches.next_if(|at| self.now >= *at).is_some() {
                self.switch(handler, None, turns_on)?;
                turns_on = !turns_on;
                self.ending.timed_out |= switches.peek().is_none();
            }
            let now = self.now;
            if next_tick.is_some_and(|at| now >= at) {
                next_tick = Some(now + TICK_NS);
                if let Some(is_reserved) = is_reserved.as_mut().and_then(|is_reserved| is_reserved()) {
                    self.activity.apply_reservation(handler, is_reserved, now)?;
                }
                self.ending.stopped |= watches_threads && !retain_alive(host, threads);
                if let Some(command) = unsignalled {
                    self.ending.outcome = command.try_wait().map_err(waiting_for_command)?;
                }
            }
            handler.work(self)?;
            self.ending.timed_out |= timeout_at.is_some_and(|at| now >= at);
        }
        Ok(())
    }

    /// Handles received signals, including the command's end.
    fn receive(
        &mut self,
        handler: &mut impl MeasurementHandler,
        signals: &Signals,
        command: Option<&RunningCommand>,
    ) -> Result<()> {
        while let Some(caught) = signals.next() {
            match caught.signal {
                signal::USR1 => {
                    self.ending.handed_over = handler.detach(self.activity.all_run());
                    if self.ending.handed_over {
                        // From now on, the events belong to the holder, and the command continues to run.
                        return Ok(());
                    }
                }
                signal::USR2 => handler.snapshot(),
                _ => self.ending.signal(caught, command),
            }
        }
        if let (Some(command), None) = (command, self.ending.outcome) {
            self.ending.outcome = command.try_wait().map_err(waiting_for_command)?;
        }
        Ok(())
    }

    /// Switches all events, or the named event, on or off. The measurement begins when events are switched on
    /// for the first time.
    fn switch(&mut self, handler: &mut impl MeasurementHandler, name: Option<&str>, on: bool) -> Result<()> {
        let begins = on && !self.activity.was_ever_on();
        match name {
            None => self.activity.switch(handler, on)?,
            Some(name) => self.activity.switch_named(handler, name, on)?,
        }
        if begins {
            self.start = handler.begin_window()?;
            self.now = self.start;
            self.activity.begins_at(self.start);
        }
        Ok(())
    }

    /// Carries out the commands from the control channel, and answers each command afterwards.
    fn run_commands(&mut self, handler: &mut impl MeasurementHandler, control: &mut Control) -> Result<()> {
        for command in control.commands()? {
            let mut refused = None;
            match command {
                ControlCommand::Enable(name) | ControlCommand::Disable(name)
                    if !is_there(handler, name.as_deref()) =>
                {
                    refused = name.map(|name| (name, NO_SUCH_EVENT.to_owned()));
                }
                ControlCommand::Enable(name) => self.switch(handler, name.as_deref(), true)?,
                ControlCommand::Disable(name) => self.switch(handler, name.as_deref(), false)?,
                ControlCommand::Change(name, change) => {
                    let (name, is_on) = (name.as_deref(), self.activity.is_on(name.as_deref()));
                    let changed = match is_there(handler, name) {
                        true => handler.change(change, name, is_on),
                        false => Err(NO_SUCH_EVENT.to_owned()),
                    };
                    refused = changed.err().map(|why| (change.as_command(name), why));
                }
                ControlCommand::Snapshot => handler.snapshot(),
                ControlCommand::Stop => self.ending.stopped = true,
                ControlCommand::Ping => {}
                ControlCommand::EventList { rates } => list(handler, rates),
            }
            match refused {
                None => control.acknowledge(),
                Some((command, why)) => {
                    control.refuse(&why);
                    say::warn(Warning::new(format!("--control: `{command}`: {why}")));
                }
            }
        }
        Ok(())
    }

    /// Waits for the command to end, and stores its outcome. After a signal to pmc, does not wait for a
    /// command that ignores SIGTERM.
    fn wait_for(
        &mut self,
        handler: &impl MeasurementHandler,
        command: &RunningCommand,
        signals: &Signals,
    ) -> Result<()> {
        while self.ending.outcome.is_none()
            && !self.ending.insisted
            && handler.waits_for_command(&self.ending)
        {
            self.ending.outcome = command.try_wait().map_err(waiting_for_command)?;
            if self.ending.outcome.is_none() {
                self.ending.signal(signals.wait().map_err(waiting_for_command)?, None);
            }
        }
        Ok(())
    }
}

const NO_SUCH_EVENT: &str = "unknown event name: the `evlist` command lists the names";

/// Whether the event that a control command names exists. Always true for a command without a name.
fn is_there(handler: &impl MeasurementHandler, name: Option<&str>) -> bool {
    name.is_none_or(|name| handler.requests().iter().any(|(own, _)| *own == name))
}

/// Prints the events' names to stderr, as perf does.
fn list(handler: &impl MeasurementHandler, rates: bool) {
    for (name, attr) in handler.requests() {
        let what = if attr.get(Flag::Freq) { "freq" } else { "period" };
        say::line(match rates {
            true => format!("{name}: sample_{what}={}", attr.period()),
            false => name.to_owned(),
        });
    }
}

fn waiting_for_command(error: io::Error) -> Error {
    Error::io("waiting for the command", error)
}

/// All descriptors that wake the loop, in one epoll set. A ring is registered under its index, and a trigger
/// ring under its index plus [`TRIGGERS`]. All other descriptors are registered under the numbers below.
struct Poller {
    all: OwnedFd,
    /// The measured CPUs, and how the loop notices that one goes offline. `None` if tasks are measured, or if
    /// uevents are not available.
    cpus: Option<(CpuList, CpuWatch)>,
}

const TRIGGERS: u64 = 1 << 32;
const SIGNALS: u64 = u64::MAX;
const CONTROL: u64 = u64::MAX - 1;
const STOP: u64 = u64::MAX - 2;
const WORK: u64 = u64::MAX - 3;
const CPUS: u64 = u64::MAX - 4;

/// The reasons for a wake-up that the loop handles separately.
#[derive(Default)]
struct WakeReasons {
    by_signal: bool,
    by_stop: bool,
    /// Whether the events of a ring have ended.
    by_end: bool,
    /// Measured CPUs that have gone offline.
    offline: Vec<u32>,
}

impl Poller {
    fn new(
        handler: &mut impl MeasurementHandler,
        signals: Option<&Signals>,
        control: Option<&Control>,
        stop: Option<BorrowedFd<'_>>,
        scope: &MeasurementScope,
    ) -> Result<Self> {
        let watching =
            |error: rustix::io::Errno| Error::io("watching the ring buffers", io::Error::from(error));
        let all = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(watching)?;
        for first in [0, TRIGGERS] {
            for (ring, fd) in rings(handler, first).iter().flat_map(|rings| rings.descriptors_to_watch()) {
                add(&all, fd, first + ring as u64).map_err(watching)?;
            }
        }
        let cpus = match scope {
            MeasurementScope::Cpus(cpus) => CpuWatch::new().ok().map(|watch| (cpus.clone(), watch)),
            _ => None,
        };
        let others = [
            (signals.map(AsFd::as_fd), SIGNALS),
            (handler.waker(), WORK),
            (stop, STOP),
            (cpus.as_ref().map(|(_, watch)| watch.as_fd()), CPUS),
        ];
        for (fd, number) in others {
            if let Some(fd) = fd {
                add(&all, fd, number).map_err(watching)?;
            }
        }
        if let Some(orders) = control.and_then(Control::readable) {
            let _ = add(&all, orders, CONTROL);
        }
        Ok(Self { all, cpus })
    }

    /// Sleeps until a descriptor is ready or the deadline has passed; `None`: no deadline.
    ///
    /// The epoll set is itself polled as a descriptor, because `ppoll` has nanosecond resolution on every
    /// kernel and `epoll_wait` does not. The set is queried only if a descriptor is ready.
    fn wait(
        &mut self,
        handler: &mut impl MeasurementHandler,
        control: Option<&Control>,
        until: Option<u64>,
    ) -> Result<WakeReasons> {
        let failed = |error: rustix::io::Errno| Error::io("waiting", io::Error::from(error));
        let left = until.map(|at| Duration::from_nanos(at.saturating_sub(monotonic_ns())));
        let mut set = [PollFd::new(&self.all, PollFlags::IN)];
        let mut woken = WakeReasons::default();
        if wait::poll(&mut set, left).map_err(failed)? == 0 {
            return Ok(woken);
        }
        let nothing = epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) };
        let mut events = [nothing; 64];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let count = match epoll::wait(&self.all, &mut events[..], Some(&at_once)) {
            Ok(count) => count,
            Err(error) => {
                wait::failed(error).map_err(failed)?;
                0
            }
        };
        for event in &events[..count] {
            let (flags, number) = (event.flags, event.data.u64());
            let is_over = flags.intersects(epoll::EventFlags::HUP | epoll::EventFlags::ERR);
            match number {
                SIGNALS => woken.by_signal = true,
                STOP => woken.by_stop = true,
                // The writer has closed its end. Orders that it wrote earlier are still read.
                CONTROL if is_over => self.remove(control.and_then(Control::readable)),
                CONTROL | WORK => {}
                CPUS => {
                    if let Some((measured, watch)) = &self.cpus {
                        let offline = watch.changes().offline.into_iter();
                        woken.offline.extend(offline.filter(|cpu| measured.contains(*cpu)));
                    }
                }
                ring if is_over => {
                    woken.by_end = true;
                    self.watch_next(handler, ring);
                }
                _ => {}
            }
        }
        Ok(woken)
    }

    /// Removes a ring's descriptor that has hung up, because it would wake the loop forever. Watches another
    /// thread's descriptor of the same ring instead. The ring's remaining contents are still drained.
    fn watch_next(&self, handler: &mut impl MeasurementHandler, ring: u64) {
        let (first, index) = (ring & TRIGGERS, (ring & !TRIGGERS) as usize);
        let Some(rings) = rings(handler, first) else { return };
        self.remove(rings.descriptors_to_watch().find(|(at, _)| *at == index).map(|(_, fd)| fd));
        if let Some(fd) = rings.watch_next(index) {
            let _ = add(&self.all, fd, ring);
        }
    }

    fn remove(&self, fd: Option<BorrowedFd<'_>>) {
        if let Some(fd) = fd {
            let _ = epoll::delete(&self.all, fd);
        }
    }
}

/// Returns the rings that are registered under numbers starting at `first`.
fn rings(handler: &mut impl MeasurementHandler, first: u64) -> Option<&mut Rings> {
    if first == TRIGGERS { handler.triggers() } else { handler.rings() }
}

fn add(all: &OwnedFd, fd: BorrowedFd<'_>, number: u64) -> rustix::io::Result<()> {
    epoll::add(all, fd, epoll::EventData::new_u64(number), epoll::EventFlags::IN)
}
