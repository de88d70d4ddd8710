//! The loop of every measurement: starts what is driven, serves it while it runs, ends it.
//!
//! Receives something that measures ([`Driven`]: a recording into a file, the live sampler, counters) and the
//! [`Surroundings`] that it runs in; hands on how it went ([`Measurement`]). Decides what wakes it, in which
//! order things are looked at, and when it is over; what is done when it wakes (drain, read, write, show) is
//! the driven's.
//!
//! ```text
//!   prepare ── reserved? ── start ── release the command ── started ──┐
//!                                                                     │
//!   ┌─ wait: rings, signals, orders, its own, the next deadline ◄─────┤
//!   │    signals ─ orders ─ on or off? ─ tick: reserved? alive? ──────┤
//!   │    work: drain the rings, or read the counters ─ timeout? ──────┘
//!   └─► over: stop ── SIGTERM to the command ── finish ── wait for its end
//! ```

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};

use super::control::{Control, Order};
use super::ending::Ending;
use super::launch;
use super::plan::{Course, Delay};
use super::reservation::{Activity, EventSwitch};
use crate::abi::attr::Flag;
use crate::counter::reservation::{State, Watcher};
use crate::counter::rings::Rings;
use crate::counter::target::any_lives;
use crate::error::{Error, Result, Warning, say};
use crate::host::Host;
use crate::host::process::Thread;
use crate::sys::clock::monotonic_ns;
use crate::sys::process::{Held, Running};
use crate::sys::signal::{self, Signals};

/// How often a reservation, and the life of threads that are not our children, is looked at.
const TICK_NS: u64 = 100_000_000;

/// What measures. Its methods are called in the order in which they stand here; times are nanoseconds of the
/// monotonic clock.
pub(super) trait Driven: EventSwitch {
    /// Rings that wake the loop when they fill.
    fn rings(&mut self) -> Option<&mut Rings> {
        None
    }

    /// Rings of other events, which wake the loop whenever one happens.
    fn triggers(&mut self) -> Option<&mut Rings> {
        None
    }

    /// What else has work for it when it becomes readable.
    fn waker(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// All is open, nothing runs yet.
    fn prepare(&mut self) -> Result<()> {
        Ok(())
    }

    /// The measurement has begun, and the command runs.
    fn started(&mut self, measurement: &mut Measurement) -> Result<()>;

    /// When [`work`](Self::work) is to be called at the latest.
    fn due(&self) -> Option<u64>;

    /// SIGUSR2 has come, or an order for a snapshot.
    fn snapshot(&mut self) {}

    /// SIGUSR1 has come: the events, which are on or not, are to go to a holder. Whether they have; then it
    /// is over, and a command is left to itself.
    fn detach(&mut self, _is_on: bool) -> bool {
        false
    }

    /// Called whenever something has woken the loop.
    fn work(&mut self, measurement: &mut Measurement) -> Result<()>;

    /// It is over: stops what still runs.
    fn stop(&mut self, ending: &Ending) -> Result<()>;

    /// Takes what is left.
    fn finish(&mut self, measurement: &mut Measurement) -> Result<()>;

    /// Whether the end of a command that was told to end is waited for.
    fn waits_for_command(&self, ending: &Ending) -> bool;
}

/// The outer world during a measurement.
pub(super) struct Surroundings<'a> {
    pub(super) host: &'a Host,
    pub(super) course: &'a Course,
    /// The command at its start gate.
    pub(super) held: Option<Held>,
    /// Threads that are measured, where these are no children of ours: it is over when none of them lives.
    pub(super) threads: Vec<Thread>,
    pub(super) signals: Option<&'a Signals>,
    pub(super) control: Option<&'a mut Control>,
    /// Ends the measurement when it becomes readable.
    pub(super) stop: Option<BorrowedFd<'a>>,
    /// `--reserve=yield`: says whether somebody else has reserved the hardware.
    pub(super) watcher: Option<&'a mut Watcher>,
}

/// How a measurement goes, and how it went.
#[derive(Debug, Default)]
pub(super) struct Measurement {
    /// When it began: a moment of the monotonic clock, in nanoseconds. What passes before the events are
    /// first on (`-D`) is no part of it.
    pub(super) start: u64,
    /// When the loop woke the last time; in the end, when it was over.
    pub(super) now: u64,
    /// What has come to end it.
    pub(super) ending: Ending,
    /// Whether the events are on.
    pub(super) activity: Activity,
}

/// Measures from start to end.
///
/// # Errors
/// A command that cannot be started (status 126 or 127), what the kernel says of waiting and
/// switching, and what the driven says.
pub(super) fn drive(driven: &mut impl Driven, surroundings: Surroundings<'_>) -> Result<Measurement> {
    let Surroundings { host, course, held, mut threads, signals, mut control, stop, mut watcher } =
        surroundings;
    let mut wakers = Wakers::new(driven, signals, control.as_deref(), stop)?;
    driven.prepare()?;
    let takes_counters = driven.takes_counters();
    let mut is_reserved = move || {
        let watcher = watcher.as_mut().filter(|_| takes_counters);
        watcher.map(|watcher| matches!(watcher.poll(), State::Reserved(_)))
    };
    let reserved = is_reserved();
    let mut measurement = Measurement::default();
    let at_once = course.delay == Delay::None;
    measurement.activity.begin(driven, at_once, reserved == Some(true), monotonic_ns())?;
    let start = monotonic_ns();
    (measurement.start, measurement.now) = (start, start);
    measurement.activity.begins_at(start);
    let _others_terminal = held.as_ref().and_then(|_| say::hold());
    let command = held.map(|held| launch::release(held, &course.command)).transpose()?;
    driven.started(&mut measurement)?;

    let mut delay_until = match course.delay {
        Delay::Ns(ns) => Some(start + ns),
        Delay::None | Delay::UntilOrder => None,
    };
    let mut switches = course.switches.iter().map(|ns| start + ns).peekable();
    let mut turns_on = false;
    let mut timeout_at = course.timeout_ns.map(|ns| delay_until.unwrap_or(start) + ns);
    // The end of somebody else's threads is no child's end: it has to be looked for.
    let watches_threads = command.is_none() && !threads.is_empty();
    // Nor is the command's where no signals are looked at.
    let unsignalled = command.as_ref().filter(|_| signals.is_none());
    let ticks = watches_threads || unsignalled.is_some() || reserved.is_some();
    let mut next_tick = ticks.then_some(start + TICK_NS);
    // A file or /dev/null cannot be waited for: what it orders, it orders at once.
    if let Some(control) = control.as_deref_mut() {
        measurement.obey(driven, control)?;
    }
    while !measurement.ending.over() {
        let deadlines = [driven.due(), delay_until, switches.peek().copied(), timeout_at, next_tick];
        let woken = wakers.wait(driven, control.as_deref(), deadlines.into_iter().flatten().min())?;
        measurement.ending.stopped |= woken.by_stop;
        if let Some(signals) = signals.filter(|_| woken.by_signal) {
            measurement.receive(driven, signals, command.as_ref())?;
            if measurement.ending.handed_over {
                break;
            }
        }
        if let Some(control) = control.as_deref_mut() {
            measurement.obey(driven, control)?;
        }
        measurement.now = monotonic_ns();
        if delay_until.take_if(|at| measurement.now >= *at).is_some() {
            measurement.switch(driven, None, true)?;
            timeout_at = course.timeout_ns.map(|ns| measurement.start + ns);
        }
        while switches.next_if(|at| measurement.now >= *at).is_some() {
            measurement.switch(driven, None, turns_on)?;
            turns_on = !turns_on;
            measurement.ending.timed_out |= switches.peek().is_none();
        }
        let now = measurement.now;
        if next_tick.is_some_and(|at| now >= at) {
            next_tick = Some(now + TICK_NS);
            if let Some(is_reserved) = is_reserved() {
                measurement.activity.heed(driven, is_reserved, now)?;
            }
            measurement.ending.stopped |= watches_threads && !any_lives(host, &mut threads);
            if let Some(command) = unsignalled {
                measurement.ending.outcome = command.try_wait().map_err(waiting_for_command)?;
            }
        }
        driven.work(&mut measurement)?;
        measurement.ending.timed_out |= timeout_at.is_some_and(|at| now >= at);
    }
    measurement.now = monotonic_ns();
    driven.stop(&measurement.ending)?;
    let Ending { outcome, handed_over, .. } = &measurement.ending;
    let command = command.filter(|_| outcome.is_none() && !handed_over);
    if let Some(command) = &command {
        command.kill(signal::TERM);
    }
    let finished = driven.finish(&mut measurement);
    if let (Some(command), Some(signals)) = (command, signals) {
        measurement.wait_for(driven, &command, signals)?;
    }
    finished.map(|()| measurement)
}

impl Measurement {
    /// Signals have come; the end of the command is one.
    fn receive(
        &mut self,
        driven: &mut impl Driven,
        signals: &Signals,
        command: Option<&Running>,
    ) -> Result<()> {
        while let Some(caught) = signals.next() {
            match caught.signal {
                signal::USR1 => {
                    self.ending.handed_over = driven.detach(self.activity.all_run());
                    if self.ending.handed_over {
                        // They are somebody else's from here on, and a command is left to itself.
                        return Ok(());
                    }
                }
                signal::USR2 => driven.snapshot(),
                _ => self.ending.signal(caught, command),
            }
        }
        if let (Some(command), None) = (command, self.ending.outcome) {
            self.ending.outcome = command.try_wait().map_err(waiting_for_command)?;
        }
        Ok(())
    }

    /// Switches the events on or off, or the one of a name; the measurement begins when they are first on.
    fn switch(&mut self, driven: &mut impl Driven, name: Option<&str>, on: bool) -> Result<()> {
        let begins = on && !self.activity.was_ever_on();
        match name {
            None => self.activity.switch(driven, on)?,
            Some(name) => self.activity.switch_named(driven, name, on)?,
        }
        if begins {
            self.start = monotonic_ns();
            self.now = self.start;
            self.activity.begins_at(self.start);
        }
        Ok(())
    }

    /// Carries out what the control channel orders; an order is carried out before it is answered.
    fn obey(&mut self, driven: &mut impl Driven, control: &mut Control) -> Result<()> {
        for order in control.orders()? {
            let mut refused = None;
            match order {
                Order::Enable(name) | Order::Disable(name) if !is_there(driven, name.as_deref()) => {
                    refused = name.map(|name| (name, NO_SUCH_EVENT.to_owned()));
                }
                Order::Enable(name) => self.switch(driven, name.as_deref(), true)?,
                Order::Disable(name) => self.switch(driven, name.as_deref(), false)?,
                Order::Change(name, change) => {
                    let (name, is_on) = (name.as_deref(), self.activity.is_on(name.as_deref()));
                    let changed = match is_there(driven, name) {
                        true => driven.change(change, name, is_on),
                        false => Err(NO_SUCH_EVENT.to_owned()),
                    };
                    refused = changed.err().map(|why| (change.as_order(name), why));
                }
                Order::Snapshot => driven.snapshot(),
                Order::Stop => self.ending.stopped = true,
                Order::Ping => {}
                Order::EventList { rates } => list(driven, rates),
            }
            match refused {
                None => control.acknowledge(),
                Some((order, why)) => {
                    control.refuse(&why);
                    say::warn(&Warning::OrderRefused { order, why });
                }
            }
        }
        Ok(())
    }

    /// Waits for the command, whose times come with its end. One that takes no notice of SIGTERM is not
    /// waited for after a signal to us.
    fn wait_for(&mut self, driven: &impl Driven, command: &Running, signals: &Signals) -> Result<()> {
        while self.ending.outcome.is_none() && !self.ending.insisted && driven.waits_for_command(&self.ending)
        {
            self.ending.outcome = command.try_wait().map_err(waiting_for_command)?;
            if self.ending.outcome.is_none() {
                self.ending.signal(signals.wait().map_err(waiting_for_command)?, None);
            }
        }
        Ok(())
    }
}

const NO_SUCH_EVENT: &str = "no event has that name: the order `evlist` prints them";

/// Whether an event has the name that an order gives, if it gives one.
fn is_there(driven: &impl Driven, name: Option<&str>) -> bool {
    name.is_none_or(|name| driven.requests().iter().any(|(own, _)| *own == name))
}

/// Prints the events' names on standard error, as perf does.
fn list(driven: &impl Driven, rates: bool) {
    for (name, attr) in driven.requests() {
        let what = if attr.get(Flag::Freq) { "freq" } else { "period" };
        say::plainly(match rates {
            true => format!("{name}: sample_{what}={}", attr.period()),
            false => name.to_owned(),
        });
    }
}

fn waiting_for_command(error: io::Error) -> Error {
    Error::io("waiting for the command", error)
}

/// Everything that wakes the loop, in one set. Rings are in it by their index, those of triggers by theirs
/// from [`TRIGGERS`] on, the others by these numbers.
struct Wakers {
    all: OwnedFd,
}

const TRIGGERS: u64 = 1 << 32;
const SIGNALS: u64 = u64::MAX;
const CONTROL: u64 = u64::MAX - 1;
const STOP: u64 = u64::MAX - 2;
const WORK: u64 = u64::MAX - 3;

/// Who has woken the loop, as far as it matters.
#[derive(Default)]
struct Woken {
    by_signal: bool,
    by_stop: bool,
}

impl Wakers {
    fn new(
        driven: &mut impl Driven,
        signals: Option<&Signals>,
        control: Option<&Control>,
        stop: Option<BorrowedFd<'_>>,
    ) -> Result<Self> {
        let watching = |error: rustix::io::Errno| Error::io("watching the rings", io::Error::from(error));
        let all = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(watching)?;
        for first in [0, TRIGGERS] {
            for (ring, fd) in rings(driven, first).iter().flat_map(|rings| rings.descriptors_to_watch()) {
                add(&all, fd, first + ring as u64).map_err(watching)?;
            }
        }
        let others = [(signals.map(AsFd::as_fd), SIGNALS), (driven.waker(), WORK), (stop, STOP)];
        for (fd, number) in others {
            if let Some(fd) = fd {
                add(&all, fd, number).map_err(watching)?;
            }
        }
        if let Some(orders) = control.and_then(Control::readable) {
            let _ = add(&all, orders, CONTROL);
        }
        Ok(Self { all })
    }

    /// Sleeps until something happens, or until this moment; `None`: as long as it takes.
    ///
    /// The set is polled as a descriptor of its own: that waits to the nanosecond on every kernel, which
    /// `epoll_wait` does not. What happened is asked only when something did.
    fn wait(
        &mut self,
        driven: &mut impl Driven,
        control: Option<&Control>,
        until: Option<u64>,
    ) -> Result<Woken> {
        let failed = |error: rustix::io::Errno| Error::io("waiting", io::Error::from(error));
        let time = until.map(|at| {
            let ns = at.saturating_sub(monotonic_ns());
            Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
        });
        let mut set = [PollFd::new(&self.all, PollFlags::IN)];
        let mut woken = Woken::default();
        match poll(&mut set, time.as_ref()) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(woken),
            Ok(_) => {}
            Err(error) => return Err(failed(error)),
        }
        let nothing = epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) };
        let mut events = [nothing; 64];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let count = match epoll::wait(&self.all, &mut events[..], Some(&at_once)) {
            Ok(count) => count,
            Err(rustix::io::Errno::INTR) => 0,
            Err(error) => return Err(failed(error)),
        };
        for event in &events[..count] {
            let (flags, number) = (event.flags, event.data.u64());
            let is_over = flags.intersects(epoll::EventFlags::HUP | epoll::EventFlags::ERR);
            match number {
                SIGNALS => woken.by_signal = true,
                STOP => woken.by_stop = true,
                // Nobody writes any more; what was written is read all the same.
                CONTROL if is_over => self.remove(control.and_then(Control::readable)),
                CONTROL | WORK => {}
                ring if is_over => self.watch_next(driven, ring),
                _ => {}
            }
        }
        Ok(woken)
    }

    /// A descriptor that has hung up would wake us for ever. Its ring may have other threads to write into
    /// it; what it still holds is drained all the same.
    fn watch_next(&self, driven: &mut impl Driven, ring: u64) {
        let (first, index) = (ring & TRIGGERS, (ring & !TRIGGERS) as usize);
        let Some(rings) = rings(driven, first) else { return };
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

/// The rings whose numbers begin at `first`.
fn rings(driven: &mut impl Driven, first: u64) -> Option<&mut Rings> {
    if first == TRIGGERS { driven.triggers() } else { driven.rings() }
}

fn add(all: &OwnedFd, fd: BorrowedFd<'_>, number: u64) -> rustix::io::Result<()> {
    epoll::add(all, fd, epoll::EventData::new_u64(number), epoll::EventFlags::IN)
}
