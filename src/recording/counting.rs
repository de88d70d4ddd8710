//! One measuring, from the first count to the last: opens, starts, waits, reads.
//!
//! Receives a [`Setup`] (what to count, where, when to stop) and an [`Observer`] that is shown the totals at each
//! interval; hands on the final totals and how it ended. Prints nothing, adds nothing up.
//!
//! ```text
//!   hold command ── open counters ── delay? ── enable ── release gate ──┐
//!                                                                       │
//!        ┌──────────────── poll: signals, control, next deadline ◄──────┤
//!        │   interval: read, show     yield tick: reserved? disable     │
//!        └───────────────────────────────────────────────────────────► end ── disable ── read
//! ```

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::rc::Rc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::counter::counter_set::{CountOptions, CounterSet, Opened, Reading, TargetSlot};
use crate::counter::target::{self, Cgroup};
use crate::error::{Error, Result, Warning, say};
use crate::event::EventGroup;
use crate::host::Host;
use crate::host::process::Thread;
use crate::recording::control::{Control, Order};
use crate::recording::ending::Ending;
use crate::recording::launch;
use crate::recording::plan::{Delay, Scope};
use crate::sys::clock::monotonic_ns;
use crate::sys::process::{Held, Outcome, Running};
use crate::sys::signal::{self, Signals};
use crate::sys::{errno, limits};

/// What one measuring needs to know.
pub(crate) struct Setup<'a> {
    pub(crate) host: &'a Host,
    pub(crate) groups: Vec<(EventGroup, Option<Rc<Cgroup>>)>,
    pub(crate) scope: Scope,
    pub(crate) options: CountOptions,
    pub(crate) command: &'a [OsString],
    /// Nanoseconds between intervals.
    pub(crate) interval_ns: Option<u64>,
    pub(crate) interval_count: Option<u32>,
    pub(crate) timeout_ns: Option<u64>,
    pub(crate) delay: Delay,
}

/// What is shown to an [`Observer`].
pub(crate) struct Snapshot<'a> {
    /// Nanoseconds since the start.
    pub(crate) at_ns: u64,
    /// The totals of every counter since the start.
    pub(crate) readings: &'a [Reading],
    pub(crate) threads: &'a [Thread],
    /// Counting was off for the whole interval (`-D`, `--control`).
    pub(crate) off: bool,
}

/// Who follows a measuring.
pub(crate) trait Observer {
    /// All is open, nothing runs yet: the last moment to refuse.
    fn opened(&mut self, set: &CounterSet) -> Result<()>;
    /// An interval has passed.
    fn interval(&mut self, snapshot: &Snapshot<'_>) -> Result<()>;
}

/// What a measuring gave.
pub(crate) struct Run {
    pub(crate) set: CounterSet,
    pub(crate) threads: Vec<Thread>,
    /// The totals.
    pub(crate) readings: Vec<Reading>,
    /// Nanoseconds from start to end.
    pub(crate) elapsed_ns: u64,
    /// Nanoseconds in which the hardware events were left off for somebody's reservation.
    pub(crate) yielded_ns: u64,
    pub(crate) outcome: Option<Outcome>,
    /// pmc was told to end by this signal.
    pub(crate) interrupted: Option<i32>,
    /// `--timeout` ended it.
    pub(crate) timed_out: bool,
    /// Counting was never on (`-D`, `--control`).
    pub(crate) off: bool,
}

/// The help of the outer world during a measuring.
pub(crate) struct Surroundings<'a> {
    pub(crate) signals: &'a Signals,
    pub(crate) control: Option<&'a mut Control>,
    /// `--reserve=yield`: says whether somebody else has reserved the hardware now.
    pub(crate) reserved: Option<&'a mut dyn FnMut() -> bool>,
    /// For each event: whether it takes a hardware counter.
    pub(crate) hardware: &'a [bool],
}

/// How often a reservation and the life of foreign threads are looked at.
const TICK_NS: u64 = 100_000_000;

/// Measures once.
///
/// # Errors
/// A target that does not exist, a command that cannot be started (status 126 or 127), descriptors that run out, and what
/// the observer says. An event that is refused is no error: its fate is in the set.
pub(crate) fn measure(
    setup: Setup<'_>,
    surroundings: &mut Surroundings<'_>,
    observer: &mut dyn Observer,
) -> Result<Run> {
    let held = if setup.command.is_empty() { None } else { Some(launch::hold(setup.command)?) };
    let mut set = CounterSet::new(setup.groups, setup.options);
    let threads = open_scope(&mut set, setup.host, &setup.scope, held.as_ref())?;
    observer.opened(&set)?;

    let at_once = setup.delay == Delay::None;
    if at_once {
        set.enable().map_err(starting)?;
    }
    let start = monotonic_ns();
    let mut measuring = Measuring {
        set,
        threads,
        readings: Vec::new(),
        start,
        command: None,
        switch: Switch::new(at_once),
        end: Ending::default(),
        interval: setup.interval_ns.map(|ns| Beat { next: start + ns, step: ns, left: setup.interval_count }),
    };
    if let Some(reserved) = surroundings.reserved.as_deref_mut() {
        // Somebody may hold the reservation already: then the first interval starts with the counters off.
        measuring.switch.heed(reserved(), &measuring.set, surroundings.hardware, start)?;
    }
    measuring.command = held.map(|held| launch::release(held, setup.command)).transpose()?;

    let mut delay_until = match setup.delay {
        Delay::Ns(ns) => Some(start + ns),
        Delay::None | Delay::UntilOrder => None,
    };
    let timeout_at = setup.timeout_ns.map(|ns| start + ns);
    // The end of somebody else's threads is no child's end: it has to be looked for.
    let watch_threads = measuring.command.is_none() && !measuring.threads.is_empty();
    let mut next_tick = (surroundings.reserved.is_some() || watch_threads).then_some(start + TICK_NS);

    while !measuring.end.over() {
        let next_interval = measuring.interval.as_ref().map(|beat| beat.next);
        let deadline = [next_interval, delay_until, timeout_at, next_tick].into_iter().flatten().min();
        if wait(surroundings, deadline.map(|at| at.saturating_sub(monotonic_ns())))? {
            measuring.signals(surroundings.signals)?;
        }
        if let Some(control) = surroundings.control.as_deref_mut() {
            measuring.orders(control, surroundings.hardware)?;
        }
        let now = monotonic_ns();
        if delay_until.take_if(|at| now >= *at).is_some() {
            measuring.switch.on(&measuring.set, surroundings.hardware)?;
        }
        if let Some(at) = next_tick.as_mut().filter(|at| now >= **at) {
            *at = now + TICK_NS;
            if let Some(reserved) = surroundings.reserved.as_deref_mut() {
                measuring.switch.heed(reserved(), &measuring.set, surroundings.hardware, now)?;
            }
            measuring.end.stopped |=
                watch_threads && measuring.threads.iter().all(|t| !setup.host.lives(t.tid));
        }
        if next_interval.is_some_and(|at| now >= at) && !measuring.end.over() {
            measuring.show_interval(now, observer)?;
        }
        measuring.end.timed_out |= timeout_at.is_some_and(|at| now >= at);
    }
    measuring.finish(&setup.scope, surroundings, observer)
}

/// A measuring under way.
struct Measuring {
    set: CounterSet,
    threads: Vec<Thread>,
    /// The last totals.
    readings: Vec<Reading>,
    start: u64,
    command: Option<Running>,
    switch: Switch,
    end: Ending,
    interval: Option<Beat>,
}

/// When intervals end.
struct Beat {
    next: u64,
    step: u64,
    /// Intervals still to be shown; `None`: no limit.
    left: Option<u32>,
}

impl Measuring {
    fn signals(&mut self, signals: &Signals) -> Result<()> {
        while let Some(caught) = signals.next() {
            self.end.signal(caught, self.command.as_ref());
        }
        if let (Some(command), None) = (&self.command, self.end.outcome) {
            self.end.outcome = command.try_wait().map_err(|e| Error::io("waiting for the command", e))?;
        }
        Ok(())
    }

    fn orders(&mut self, control: &mut Control, hardware: &[bool]) -> Result<()> {
        for order in control.orders()? {
            match order {
                Order::Enable => self.switch.on(&self.set, hardware)?,
                Order::Disable => self.switch.off(&self.set)?,
                Order::Stop => self.end.stopped = true,
                // A snapshot is `record`'s.
                Order::Ping | Order::Snapshot => {}
            }
            control.acknowledge();
        }
        Ok(())
    }

    fn show_interval(&mut self, now: u64, observer: &mut dyn Observer) -> Result<()> {
        read(&mut self.set, &mut self.readings)?;
        self.show(now, observer)?;
        let Some(beat) = &mut self.interval else { return Ok(()) };
        // Keep to the beat even when a print was slow; skip beats that have passed.
        beat.next += beat.step * ((now - beat.next) / beat.step + 1);
        beat.left = beat.left.map(|left| left.saturating_sub(1));
        if beat.left == Some(0) {
            self.interval = None;
            self.end.stopped |= self.command.is_none();
        }
        Ok(())
    }

    fn show(&mut self, now: u64, observer: &mut dyn Observer) -> Result<()> {
        observer.interval(&Snapshot {
            at_ns: now - self.start,
            readings: &self.readings,
            threads: &self.threads,
            off: !self.switch.next_interval(),
        })
    }

    fn finish(
        mut self,
        scope: &Scope,
        surroundings: &Surroundings<'_>,
        observer: &mut dyn Observer,
    ) -> Result<Run> {
        let stopped_at = monotonic_ns();
        // Only what goes on running needs to be stopped before it is read.
        if self.end.outcome.is_none() || !matches!(scope, Scope::Command) {
            self.set.disable_where(|_| true).map_err(starting)?;
        }
        read(&mut self.set, &mut self.readings)?;
        if let Some(command) = self.command.take_if(|_| self.end.outcome.is_none()) {
            command.kill(signal::TERM);
            // Its times come with its end. A command that takes no notice of SIGTERM is not waited for after a signal to us.
            while self.end.timed_out && !self.end.insisted && self.end.outcome.is_none() {
                wait(surroundings, None)?;
                while let Some(caught) = surroundings.signals.next() {
                    self.end.signal(caught, None);
                }
                self.end.outcome = command.try_wait().map_err(|e| Error::io("waiting for the command", e))?;
            }
        }
        if self.interval.is_some() && !self.readings.is_empty() {
            self.show(stopped_at, observer)?;
        }
        Ok(Run {
            elapsed_ns: stopped_at - self.start,
            yielded_ns: self.switch.yielded(stopped_at),
            outcome: self.end.outcome,
            interrupted: self.end.interrupted(),
            timed_out: self.end.timed_out,
            off: !self.switch.ever_on,
            set: self.set,
            threads: self.threads,
            readings: self.readings,
        })
    }
}

/// Opens the set wherever the scope says; the threads, where there are any.
fn open_scope(set: &mut CounterSet, host: &Host, scope: &Scope, held: Option<&Held>) -> Result<Vec<Thread>> {
    // A thread that starts now is counted through the one that starts it (inherit): looking again would count it twice.
    let mut threads = match scope {
        Scope::Processes(pids) => target::threads_of_processes(host, pids).map_err(launch::no_target)?,
        Scope::Threads(tids) => target::threads(host, tids).map_err(launch::no_target)?,
        Scope::User(user) => target::threads_of_user(host, user).map_err(launch::no_target)?,
        Scope::AllThreads => target::all_threads(host),
        Scope::Command | Scope::Cpus(_) => Vec::new(),
    };
    let online = host.online_cpus();
    let slots: Vec<TargetSlot> = match scope {
        Scope::Command => held.iter().map(|held| TargetSlot { tid: Some(held.pid()), cpu: None }).collect(),
        Scope::Cpus(cpus) => cpus.iter().map(|cpu| TargetSlot { tid: None, cpu: Some(cpu) }).collect(),
        _ => threads.iter().map(|thread| TargetSlot { tid: Some(thread.tid), cpu: None }).collect(),
    };
    make_room(set.descriptors(slots.len()))?;
    if !matches!(scope, Scope::Cpus(_)) {
        set.open_devices(&online);
    }
    let gone: Vec<TargetSlot> =
        slots.iter().copied().filter(|&slot| set.open(slot) == Opened::Gone).collect();
    threads.retain(|thread| !gone.iter().any(|slot| slot.tid == Some(thread.tid)));
    if !gone.is_empty() && gone.len() < slots.len() {
        let what = if matches!(scope, Scope::Cpus(_)) { "CPUs went off line" } else { "threads ended" };
        say::warn(&Warning::TargetsGone { count: gone.len(), what });
    }
    if !slots.is_empty() && gone.len() == slots.len() {
        return Err(match scope {
            Scope::Cpus(cpus) => Error::new(format!("CPUs {cpus} went off line")),
            _ => Error::new("the processes ended before their counters were open"),
        });
    }
    Ok(threads)
}

/// Raises the limit of open descriptors if so many more would not fit.
fn make_room(descriptors: u64) -> Result<()> {
    const OWN: u64 = 64;
    limits::raise_open_files(descriptors + OWN).map_err(|error| {
        Error::io(format!("making room for {descriptors} open counters"), error)
            .why("each event needs a descriptor on every CPU or thread, and the limit of open files is lower")
            .try_this(format!("ulimit -n {}", descriptors + OWN))
            .try_this("count fewer events, or on fewer CPUs (-C) or threads (-t)")
    })
}

fn starting(error: io::Error) -> Error {
    Error::io("starting the counters", error)
}

fn read(set: &mut CounterSet, readings: &mut Vec<Reading>) -> Result<()> {
    readings.clear();
    set.read(|reading| readings.push(reading)).map_err(|error| {
        let again = error.raw_os_error() == Some(errno::ECHILD);
        let error = Error::io("reading the counters", error);
        if again { error.try_this("count without the braces, or without children (-i)") } else { error }
    })
}

/// Waits for a signal, an order, or until so many nanoseconds have passed; whether there may be a signal (the end of the
/// command is one).
fn wait(surroundings: &Surroundings<'_>, ns: Option<u64>) -> Result<bool> {
    let timeout =
        ns.map(|ns| Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 });
    let signals = surroundings.signals.as_fd();
    let mut fds = vec![PollFd::from_borrowed_fd(signals, PollFlags::IN)];
    if let Some(orders) = surroundings.control.as_ref().and_then(|control| control.readable()) {
        fds.push(PollFd::from_borrowed_fd(orders, PollFlags::IN));
    }
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(!fds[0].revents().is_empty()),
        Err(error) => Err(Error::io("waiting", error)),
    }
}

/// Whether the counters are on, and why not.
struct Switch {
    /// Asked for: by the start, the delay or an order.
    on: bool,
    /// On at any time of this interval; of the whole run.
    on_here: bool,
    ever_on: bool,
    /// Since when the hardware is left to whoever has reserved it.
    yielding_since: Option<u64>,
    yielded_ns: u64,
}

impl Switch {
    fn new(on: bool) -> Self {
        Self { on, on_here: on, ever_on: on, yielding_since: None, yielded_ns: 0 }
    }

    fn on(&mut self, set: &CounterSet, hardware: &[bool]) -> Result<()> {
        (self.on, self.on_here, self.ever_on) = (true, true, true);
        let yielding = self.yielding_since.is_some();
        set.enable_where(|event| !(yielding && is(hardware, event))).map_err(starting)
    }

    fn off(&mut self, set: &CounterSet) -> Result<()> {
        self.on = false;
        set.disable_where(|_| true).map_err(starting)
    }

    /// Leaves the hardware to a reservation, and takes it back.
    fn heed(&mut self, reserved: bool, set: &CounterSet, hardware: &[bool], now: u64) -> Result<()> {
        match (reserved, self.yielding_since) {
            (true, None) => {
                set.disable_where(|event| is(hardware, event)).map_err(starting)?;
                self.yielding_since = Some(now);
            }
            (false, Some(since)) => {
                if self.on {
                    set.enable_where(|event| is(hardware, event)).map_err(starting)?;
                }
                self.yielded_ns += now - since;
                self.yielding_since = None;
            }
            _ => {}
        }
        Ok(())
    }

    /// An interval ends: whether the counters were on in it.
    fn next_interval(&mut self) -> bool {
        std::mem::replace(&mut self.on_here, self.on)
    }

    fn yielded(&self, now: u64) -> u64 {
        self.yielded_ns + self.yielding_since.map_or(0, |since| now.saturating_sub(since))
    }
}

fn is(hardware: &[bool], event: usize) -> bool {
    hardware.get(event).copied().unwrap_or(false)
}
