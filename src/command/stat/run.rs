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

use crate::command::control::{Control, Order};
use crate::command::ending::Ending;
use crate::command::launch;
use crate::counter::set::{Opened, Options, Reading, Set, Spot};
use crate::counter::target::{self, Cgroup};
use crate::error::{Error, Result};
use crate::event::EventGroup;
use crate::host::process::Thread;
use crate::host::{CpuList, Host};
use crate::profile::counts::CpuTime;
use crate::sys::clock::monotonic_ns;
use crate::sys::process::{Held, Outcome};
use crate::sys::signal::{self, Signals};
use crate::sys::{errno, limits};

/// Whom to count.
#[derive(Debug, Clone)]
pub(super) enum Scope {
    /// The command and its descendants.
    Command,
    /// These processes, all threads.
    Processes(Vec<u32>),
    /// These threads.
    Threads(Vec<u32>),
    /// All processes of this user.
    User(String),
    /// All threads of the machine, each by itself.
    AllThreads,
    /// Everything on these CPUs.
    Cpus(CpuList),
}

/// What one measuring needs to know.
pub(super) struct Setup<'a> {
    pub(super) host: &'a Host,
    pub(super) groups: Vec<(EventGroup, Option<Rc<Cgroup>>)>,
    pub(super) scope: Scope,
    pub(super) options: Options,
    pub(super) command: &'a [OsString],
    /// Nanoseconds between intervals.
    pub(super) interval_ns: Option<u64>,
    pub(super) interval_count: Option<u32>,
    pub(super) timeout_ns: Option<u64>,
    pub(super) delay: Delay,
}

/// When counting starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delay {
    /// With the command.
    None,
    /// So many nanoseconds later.
    Ns(u64),
    /// When the control channel says so.
    UntilTold,
}

/// What is shown to an [`Observer`].
pub(super) struct Snapshot<'a> {
    /// Nanoseconds since the start.
    pub(super) at_ns: u64,
    /// The totals of every counter since the start.
    pub(super) readings: &'a [Reading],
    pub(super) threads: &'a [Thread],
    /// Counting was off for the whole interval (`-D`, `--control`).
    pub(super) off: bool,
}

/// Who follows a measuring.
pub(super) trait Observer {
    /// All is open, nothing runs yet: the last moment to refuse.
    fn opened(&mut self, set: &Set) -> Result<()>;
    /// An interval has passed.
    fn interval(&mut self, snapshot: &Snapshot<'_>) -> Result<()>;
}

/// What a measuring gave.
pub(super) struct Run {
    pub(super) set: Set,
    pub(super) threads: Vec<Thread>,
    /// The totals.
    pub(super) readings: Vec<Reading>,
    /// Nanoseconds from start to end.
    pub(super) elapsed_ns: u64,
    /// Nanoseconds in which the hardware events were left off for somebody's reservation.
    pub(super) yielded_ns: u64,
    pub(super) outcome: Option<Outcome>,
    /// pmc was told to end by this signal.
    pub(super) interrupted: Option<i32>,
    /// `--timeout` ended it.
    pub(super) timed_out: bool,
    /// Counting was never on (`-D`, `--control`).
    pub(super) off: bool,
}

impl Run {
    /// CPU time of the command, where there was one.
    pub(super) fn cpu_time(&self) -> Option<CpuTime> {
        self.outcome.map(|o| CpuTime { user_ns: o.user_ns, system_ns: o.system_ns })
    }
}

/// The help of the outer world during a measuring.
pub(super) struct Surroundings<'a> {
    pub(super) signals: &'a Signals,
    pub(super) control: Option<&'a mut Control>,
    /// `--reserve=yield`: says whether somebody else has reserved the hardware now.
    pub(super) reserved: Option<&'a mut dyn FnMut() -> bool>,
    /// For each event: whether it takes a hardware counter.
    pub(super) hardware: &'a [bool],
}

/// How often a reservation and the life of foreign threads are looked at.
const TICK_NS: u64 = 100_000_000;

/// Measures once.
///
/// # Errors
/// A target that does not exist, a command that cannot be started (status 126 or 127), descriptors that run out, and what
/// the observer says. An event that is refused is no error: its fate is in the set.
pub(super) fn measure(
    setup: Setup<'_>,
    surroundings: &mut Surroundings<'_>,
    observer: &mut dyn Observer,
) -> Result<Run> {
    let held = if setup.command.is_empty() { None } else { Some(launch::hold(setup.command)?) };
    let mut set = Set::new(setup.groups, setup.options);
    let threads = open_scope(&mut set, setup.host, &setup.scope, held.as_ref())?;
    observer.opened(&set)?;

    let mut end = Ending::default();
    let mut yielding = Yielding::default();
    if setup.delay == Delay::None {
        enable(&set)?;
    }
    let start = monotonic_ns();
    if let Some(reserved) = surroundings.reserved.as_deref_mut() {
        // Somebody may hold the reservation already: then the first interval starts with the counters off.
        yielding.look(reserved(), &set, surroundings.hardware, start, setup.delay == Delay::None)?;
    }
    let command = match held {
        Some(held) => Some(launch::release(held, setup.command)?),
        None => None,
    };

    let mut enabled = setup.delay == Delay::None;
    // Whether counting was on at any time: in this interval, in the whole run.
    let (mut on_here, mut on_ever) = (enabled, enabled);
    let mut next_interval = setup.interval_ns.map(|ns| start + ns);
    let mut intervals_left = setup.interval_count;
    let mut delay_until = match setup.delay {
        Delay::Ns(ns) => Some(start + ns),
        _ => None,
    };
    let timeout_at = setup.timeout_ns.map(|ns| start + ns);
    let watch_threads = command.is_none() && !threads.is_empty();
    let mut next_tick = (surroundings.reserved.is_some() || watch_threads).then_some(start + TICK_NS);
    let mut readings = Vec::new();

    while !end.over() {
        let now = monotonic_ns();
        let deadline = [next_interval, delay_until, timeout_at, next_tick].into_iter().flatten().min();
        wait(surroundings, deadline.map(|at| at.saturating_sub(now)))?;
        while let Some(caught) = surroundings.signals.next() {
            end.signal(caught, command.as_ref());
        }
        if let Some(command) = &command {
            end.outcome =
                end.outcome.or(command.try_wait().map_err(|e| Error::io("waiting for the command", e))?);
        }
        if let Some(control) = surroundings.control.as_deref_mut() {
            for order in control.orders()? {
                match order {
                    Order::Enable => {
                        set.enable_where(|_| true).map_err(starting)?;
                        (enabled, on_here, on_ever) = (true, true, true);
                    }
                    Order::Disable => {
                        set.disable_where(|_| true).map_err(starting)?;
                        enabled = false;
                    }
                    Order::Stop => end.stopped = true,
                    // A snapshot is `record`'s.
                    Order::Ping | Order::Snapshot => {}
                }
                control.acknowledge();
            }
        }
        let now = monotonic_ns();
        if delay_until.is_some_and(|at| now >= at) {
            delay_until = None;
            (enabled, on_here, on_ever) = (true, true, true);
            set.enable_where(|_| true).map_err(starting)?;
        }
        if next_tick.is_some_and(|at| now >= at) {
            next_tick = Some(now + TICK_NS);
            if let Some(reserved) = surroundings.reserved.as_deref_mut() {
                yielding.look(reserved(), &set, surroundings.hardware, now, enabled)?;
            }
            if watch_threads && threads.iter().all(|t| !setup.host.lives(t.tid)) {
                end.stopped = true;
            }
        }
        if next_interval.is_some_and(|at| now >= at) && !end.over() {
            read(&mut set, &mut readings)?;
            observer.interval(&Snapshot {
                at_ns: now - start,
                readings: &readings,
                threads: &threads,
                off: !on_here,
            })?;
            on_here = enabled;
            // Keep to the beat even when a print was slow; skip beats that have passed.
            let step = setup.interval_ns.unwrap_or(TICK_NS);
            next_interval = next_interval.map(|at| at + step * ((now - at) / step + 1));
            if let Some(left) = &mut intervals_left {
                *left = left.saturating_sub(1);
                if *left == 0 {
                    next_interval = None;
                    end.stopped |= command.is_none();
                }
            }
        }
        if timeout_at.is_some_and(|at| now >= at) {
            end.timed_out = true;
        }
    }

    let stopped_at = monotonic_ns();
    // Only what goes on running needs to be stopped before it is read.
    if end.outcome.is_none() || !matches!(setup.scope, Scope::Command) {
        set.disable_where(|_| true).map_err(starting)?;
    }
    read(&mut set, &mut readings)?;
    if let Some(command) = command.filter(|_| end.outcome.is_none()) {
        command.kill(signal::TERM);
        // Its times come with its end. A command that takes no notice of SIGTERM is not waited for after a signal to us.
        while end.timed_out && !end.insisted && end.outcome.is_none() {
            wait(surroundings, None)?;
            while let Some(caught) = surroundings.signals.next() {
                end.signal(caught, None);
            }
            end.outcome = command.try_wait().map_err(|e| Error::io("waiting for the command", e))?;
        }
    }
    if next_interval.is_some() && !readings.is_empty() {
        observer.interval(&Snapshot {
            at_ns: stopped_at - start,
            readings: &readings,
            threads: &threads,
            off: !on_here,
        })?;
    }
    Ok(Run {
        set,
        threads,
        readings,
        elapsed_ns: stopped_at - start,
        yielded_ns: yielding.total(stopped_at),
        outcome: end.outcome,
        interrupted: end.interrupted(),
        timed_out: end.timed_out,
        off: !on_ever,
    })
}

/// Opens the set wherever the scope says; the threads, where there are any.
fn open_scope(set: &mut Set, host: &Host, scope: &Scope, held: Option<&Held>) -> Result<Vec<Thread>> {
    // A thread that starts now is counted through the one that starts it (inherit): looking again would count it twice.
    let mut threads = match scope {
        Scope::Processes(pids) => target::threads_of_processes(host, pids).map_err(launch::no_target)?,
        Scope::Threads(tids) => target::threads(host, tids).map_err(launch::no_target)?,
        Scope::User(user) => target::threads_of_user(host, user).map_err(launch::no_target)?,
        Scope::AllThreads => target::all_threads(host),
        Scope::Command | Scope::Cpus(_) => Vec::new(),
    };
    let online = host.online_cpus();
    let spots: Vec<Spot> = match scope {
        Scope::Command => held.iter().map(|held| Spot { tid: Some(held.pid()), cpu: None }).collect(),
        Scope::Cpus(cpus) => cpus.iter().map(|cpu| Spot { tid: None, cpu: Some(cpu) }).collect(),
        _ => threads.iter().map(|thread| Spot { tid: Some(thread.tid), cpu: None }).collect(),
    };
    make_room(set.descriptors(spots.len()))?;
    if !matches!(scope, Scope::Cpus(_)) {
        set.open_devices(&online);
    }
    let gone: Vec<Spot> = spots.iter().copied().filter(|&spot| set.open(spot) == Opened::Gone).collect();
    threads.retain(|thread| !gone.iter().any(|spot| spot.tid == Some(thread.tid)));
    if !spots.is_empty() && gone.len() == spots.len() {
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

fn enable(set: &Set) -> Result<()> {
    set.enable().map_err(starting)
}

fn starting(error: io::Error) -> Error {
    Error::io("starting the counters", error)
}

fn read(set: &mut Set, readings: &mut Vec<Reading>) -> Result<()> {
    readings.clear();
    set.read(|reading| readings.push(reading)).map_err(|error| {
        let again = error.raw_os_error() == Some(errno::ECHILD);
        let error = Error::io("reading the counters", error);
        if again { error.try_this("count without the braces, or without children (-i)") } else { error }
    })
}

/// Waits for a signal, an order, or until so many nanoseconds have passed.
fn wait(surroundings: &Surroundings<'_>, ns: Option<u64>) -> Result<()> {
    let timeout =
        ns.map(|ns| Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 });
    let signals = surroundings.signals.as_fd();
    let mut fds = vec![PollFd::from_borrowed_fd(signals, PollFlags::IN)];
    if let Some(orders) = surroundings.control.as_ref().and_then(|control| control.readable()) {
        fds.push(PollFd::from_borrowed_fd(orders, PollFlags::IN));
    }
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(Error::io("waiting", error)),
    }
}

/// The times at which the hardware was left to somebody else.
#[derive(Default)]
struct Yielding {
    since: Option<u64>,
    total_ns: u64,
}

impl Yielding {
    fn look(&mut self, reserved: bool, set: &Set, hardware: &[bool], now: u64, enabled: bool) -> Result<()> {
        let hardware = |event: usize| hardware.get(event).copied().unwrap_or(false);
        match (reserved, self.since) {
            (true, None) => {
                set.disable_where(hardware).map_err(starting)?;
                self.since = Some(now);
            }
            (false, Some(since)) => {
                if enabled {
                    set.enable_where(hardware).map_err(starting)?;
                }
                self.total_ns += now - since;
                self.since = None;
            }
            _ => {}
        }
        Ok(())
    }

    fn total(&self, now: u64) -> u64 {
        self.total_ns + self.since.map_or(0, |since| now.saturating_sub(since))
    }
}
