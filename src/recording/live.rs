//! The thread that samples: opens the events, drains their rings, keeps [`Live`] true.
//!
//! Receives the plan; hands on what everybody shares ([`Shared`]), then works until it is told to stop or nobody is left
//! to be sampled. Nothing that may wait (files, terminals, symbols) happens here once the events run, so that no ring fills.
//!
//! ```text
//!   rings ──epoll: half full, or half a second──► Batch ──┐
//!      every ring is read, then what is older than        ├─ lock ─► Live.settle ─► new locations ─► names
//!      the moment before the reading is settled           ┘
//! ```

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};

use super::open;
use super::plan::{SamplePlan, Scope};
use super::synthesize::{self, ENOUGH, Extent};
use crate::abi::Attr;
use crate::counter::reservation::{self, LockFile, State, Watcher};
use crate::counter::rings::Rings;
use crate::counter::target::any_lives;
use crate::error::{Error, Result, say};
use crate::event::EventSpec;
use crate::host::Host;
use crate::host::process::Thread as Alive;
use crate::record::Layouts;
use crate::record::encode::Encoder;
use crate::session::SampleQuery;
use crate::session::live::{Batch, Live};
use crate::sys::clock::monotonic_ns;

/// Rings are drained at least so often, and twice a table.
const DRAIN_NS: u64 = 500_000_000;
/// At first more often, so that there is something to show.
const FIRST_DRAINS: [u64; 3] = [20_000_000, 60_000_000, 100_000_000];
/// A record is in its ring so long after the time that stands in it, at most.
const WRITING_NS: u64 = 2_000_000;
/// How often the life of foreign threads, and a reservation, is looked at.
const TICK_NS: u64 = 100_000_000;

fn drain_ns(delay: Duration) -> u64 {
    DRAIN_NS.min(u64::try_from(delay.as_nanos() / 2).unwrap_or(u64::MAX))
}

/// What is sampled, and what is kept of it.
pub(crate) struct LivePlan {
    pub(crate) sample: SamplePlan,
    pub(crate) wanted: SampleQuery,
    /// The longest stack.
    pub(crate) max_stack: usize,
    /// A table is made so often.
    pub(crate) delay: Duration,
}

/// Called with what is known whenever something was settled; with `true` when nothing more will come.
pub(crate) type Follow = Box<dyn FnMut(&mut Live, bool) + Send>;

/// An event that is sampled.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) attr: Attr,
    /// Index of the leader of its group.
    pub(crate) leader: usize,
}

/// What the sampling thread and those who look have in common.
pub(crate) struct Shared {
    live: Mutex<Live>,
    /// Sampled events by number. What only tracks comes last in the rings and is not among them.
    pub(crate) events: Vec<Event>,
    /// Nobody is left to be sampled, or sampling failed: nothing more will come.
    over: AtomicBool,
    /// Somebody else has reserved the hardware, and the plan is to yield.
    yielding: AtomicBool,
    /// The last moment that was settled.
    settled: AtomicU64,
    /// Rings are drained at least so often.
    drain_ns: AtomicU64,
}

impl Shared {
    pub(crate) fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    pub(crate) fn is_yielding(&self) -> bool {
        self.yielding.load(Ordering::Relaxed)
    }

    /// A table is made so often from now on.
    pub(crate) fn set_delay(&self, delay: Duration) {
        self.drain_ns.store(drain_ns(delay), Ordering::Relaxed);
    }

    pub(crate) fn settled(&self) -> u64 {
        self.settled.load(Ordering::Relaxed)
    }
}

/// The running thread.
pub(crate) struct Sampler {
    pub(crate) shared: Arc<Shared>,
    stop: OwnedFd,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Sampler {
    /// Opens everything and starts.
    ///
    /// # Errors
    /// As in `record`: what cannot be opened, and why.
    pub(crate) fn start(plan: LivePlan, follow: Follow) -> Result<Self> {
        let stop = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| Error::io("making an eventfd", std::io::Error::from(error)))?;
        let told = stop.try_clone().map_err(|error| Error::io("making an eventfd", error))?;
        let (ready, is_ready) = sync_channel(1);
        let thread = std::thread::Builder::new().name("sampler".into()).spawn(move || {
            let host = Host::live();
            let (sampling, shared) = match Sampling::open(&plan, &host, follow) {
                Ok(opened) => opened,
                Err(error) => {
                    let _ = ready.send(Err(error));
                    return Ok(());
                }
            };
            let _ = ready.send(Ok(shared));
            let shared = sampling.shared.clone();
            let done = sampling.run(&told);
            shared.over.store(true, Ordering::Release);
            done
        });
        let thread = thread.map_err(|error| Error::io("starting the sampling thread", error))?;
        let shared = wait_for(&is_ready)?;
        Ok(Self { shared, stop, thread: Some(thread) })
    }

    /// Stops, and says how it went.
    ///
    /// # Errors
    /// What ended the sampling before.
    pub(crate) fn stop(mut self) -> Result<()> {
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(Error::new("the sampling thread failed")),
            None => Ok(()),
        }
    }
}

fn wait_for(is_ready: &Receiver<Result<Arc<Shared>>>) -> Result<Arc<Shared>> {
    is_ready.recv().unwrap_or_else(|_| Err(Error::new("the sampling thread failed")))
}

/// What the thread owns.
struct Sampling<'a> {
    plan: &'a LivePlan,
    host: &'a Host,
    shared: Arc<Shared>,
    rings: Rings,
    layouts: Arc<Layouts>,
    /// By ring: the event of samples that bear another listener's id.
    owners: Vec<Option<usize>>,
    threads: Vec<Alive>,
    watcher: Option<Watcher>,
    is_yielding: bool,
    batch: Batch,
    follow: Follow,
    /// Kept as long as events are open.
    _reservation: Option<reservation::Reservation>,
}

impl<'a> Sampling<'a> {
    fn open(plan: &'a LivePlan, host: &'a Host, follow: Follow) -> Result<(Self, Arc<Shared>)> {
        let groups = open::groups(&plan.sample, host)?;
        let takes_counter =
            groups.iter().flat_map(|(group, _)| &group.events).any(|event| event.takes_counter());
        let mut prepared = match takes_counter {
            true => reservation::prepare(plan.sample.reserve, &LockFile::default_path(host))?,
            false => Default::default(),
        };
        prepared.findings.iter().for_each(say::warn);
        let (rings, threads) = open::open(&plan.sample, host, groups, None)?;
        open::say_fallbacks(&rings);
        let leaders: Vec<usize> = {
            let mut leaders: Vec<usize> = (0..rings.events().count()).collect();
            for group in rings.groups() {
                group.iter().for_each(|member| leaders[*member] = group[0]);
            }
            leaders
        };
        let events: Vec<(Event, Vec<u64>)> = rings
            .events()
            .zip(leaders)
            .map(|((spec, attr, ids), leader)| {
                (Event { name: spec.name.clone(), attr: attr.clone(), leader }, ids)
            })
            .collect();
        let layouts = Arc::new(Layouts::new(events.iter().map(|(event, ids)| (&event.attr, ids.as_slice()))));
        let owners = rings.passed_on().into_iter().map(|id| id.and_then(|id| layouts.event_of(id))).collect();
        let periods = events.iter().map(|(event, _)| event.attr.period()).collect();
        let live = Live::new(layouts.clone(), periods, plan.wanted.clone(), plan.max_stack);
        let sampled = rings.groups().len().saturating_sub(1);
        let sampled: usize = rings.groups().iter().take(sampled).map(Vec::len).sum();
        let shared = Arc::new(Shared {
            live: Mutex::new(live),
            events: events.into_iter().take(sampled).map(|(event, _)| event).collect(),
            over: AtomicBool::new(false),
            yielding: AtomicBool::new(false),
            settled: Default::default(),
            drain_ns: drain_ns(plan.delay).into(),
        });
        let sampling = Self {
            plan,
            host,
            shared: shared.clone(),
            rings,
            layouts,
            owners,
            threads,
            watcher: prepared.watcher.take(),
            is_yielding: false,
            batch: Batch::default(),
            follow,
            _reservation: prepared.reservation.take(),
        };
        Ok((sampling, shared))
    }

    fn run(mut self, stop: &OwnedFd) -> Result<()> {
        let poll = self.watch(stop)?;
        let starting = |error| Error::io("starting the events", error);
        self.give_way()?;
        self.rings.enable_where(|event| !(self.is_yielding && event.takes_counter())).map_err(starting)?;
        self.tell_what_is_there();
        let watches_threads = !matches!(self.plan.sample.scope, Scope::Cpus(_));
        let mut next_tick = (watches_threads || self.watcher.is_some()).then(|| monotonic_ns() + TICK_NS);
        let mut first = FIRST_DRAINS.into_iter();
        loop {
            let now = monotonic_ns();
            let next_drain =
                now + first.next().unwrap_or_else(|| self.shared.drain_ns.load(Ordering::Relaxed));
            let deadline = next_tick.map_or(next_drain, |tick| tick.min(next_drain));
            if self.wait(&poll, deadline.saturating_sub(now))? {
                break;
            }
            self.drain();
            let now = monotonic_ns();
            if next_tick.is_some_and(|at| now >= at) {
                next_tick = Some(now + TICK_NS);
                self.give_way()?;
                if watches_threads && !any_lives(self.host, &mut self.threads) {
                    break;
                }
            }
        }
        let _ = self.rings.disable_where(|_| true);
        self.drain();
        let settled = self.settle(u64::MAX);
        self.shared.settled.store(settled, Ordering::Relaxed);
        Ok(())
    }

    fn drain(&mut self) {
        // What is older than this has been written, wherever; what is younger waits.
        let horizon = monotonic_ns().saturating_sub(WRITING_NS);
        let Self { rings, batch, layouts, owners, .. } = self;
        let taken = rings.drain(|ring, slices| {
            batch.take(slices, layouts, owners.get(ring).copied().flatten());
            Ok::<(), std::convert::Infallible>(())
        });
        let Ok(_) = taken;
        if !self.batch.is_empty() {
            self.settle(horizon);
        }
        self.shared.settled.store(horizon, Ordering::Relaxed);
    }

    fn settle(&mut self, horizon: u64) -> u64 {
        let mut live = self.shared.live();
        live.settle(&mut self.batch, horizon);
        // In the end nobody asks again.
        (self.follow)(&mut live, horizon == u64::MAX);
        horizon
    }

    /// `--reserve=yield`: the hardware's counters are left to whoever reserves them, as long as that lasts.
    fn give_way(&mut self) -> Result<()> {
        let Some(watcher) = &mut self.watcher else { return Ok(()) };
        let is_reserved = matches!(watcher.poll(), State::Reserved(_));
        if is_reserved == self.is_yielding {
            return Ok(());
        }
        self.is_yielding = is_reserved;
        self.shared.yielding.store(is_reserved, Ordering::Relaxed);
        let switched = match is_reserved {
            true => self.rings.disable_where(EventSpec::takes_counter),
            false => self.rings.enable_where(EventSpec::takes_counter),
        };
        switched.map_err(|error| Error::io("giving way to a reservation", error))
    }

    // --- what is there before ---

    fn tell_what_is_there(&mut self) {
        let mut out = Encoder::new(self.layouts.iter().next().map_or(0, |layout| layout.trailer_size()));
        synthesize::kernel(self.host, &mut out);
        if self.plan.sample.options.cgroups {
            synthesize::cgroups(self.host, &mut out);
        }
        let mut pids: Vec<u32> = match self.plan.sample.scope {
            Scope::Cpus(_) => self.host.processes(),
            _ => self.threads.iter().map(|thread| thread.pid).collect(),
        };
        pids.sort_unstable();
        pids.dedup();
        let extent = Extent { data_mappings: false, namespaces: false };
        for pid in pids {
            if let Some(threads) = self.host.threads(pid) {
                synthesize::process(self.host, pid, &threads, extent, &mut out);
            }
            if out.bytes().len() >= ENOUGH {
                self.shared.live().tell(out.bytes());
                out.clear();
                // This takes its time where there are many processes, and the events run.
                self.take();
            }
        }
        let mut live = self.shared.live();
        live.tell(out.bytes());
        live.told();
    }

    /// Empties the rings without settling anything.
    fn take(&mut self) {
        let Self { rings, batch, layouts, owners, .. } = self;
        let taken = rings.drain(|ring, slices| {
            batch.take(slices, layouts, owners.get(ring).copied().flatten());
            Ok::<(), std::convert::Infallible>(())
        });
        let Ok(_) = taken;
    }

    // --- waiting ---

    /// Collects what can wake us. Rings have their index as their number.
    fn watch(&self, stop: &OwnedFd) -> Result<OwnedFd> {
        let watching =
            |error: rustix::io::Errno| Error::io("watching the rings", std::io::Error::from(error));
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(watching)?;
        for (ring, fd) in self.rings.descriptors_to_watch() {
            epoll::add(&poll, fd, epoll::EventData::new_u64(ring as u64), epoll::EventFlags::IN)
                .map_err(watching)?;
        }
        epoll::add(&poll, stop.as_fd(), epoll::EventData::new_u64(u64::MAX), epoll::EventFlags::IN)
            .map_err(watching)?;
        Ok(poll)
    }

    /// Sleeps until a ring has something, or the time is over; `true` when it is time to stop.
    fn wait(&mut self, poll: &OwnedFd, ns: u64) -> Result<bool> {
        let nothing = epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) };
        let mut events = [nothing; 64];
        let time = Duration::from_nanos(ns);
        let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
        let count = match epoll::wait(poll, &mut events[..], Some(&time)) {
            Ok(count) => count,
            Err(rustix::io::Errno::INTR) => 0,
            Err(error) => return Err(Error::io("waiting", std::io::Error::from(error))),
        };
        let over = epoll::EventFlags::HUP | epoll::EventFlags::ERR;
        for event in &events[..count] {
            let (flags, number) = (event.flags, event.data.u64());
            if number == u64::MAX {
                return Ok(true);
            }
            if flags.intersects(over) {
                self.forget(poll, number as usize);
            }
        }
        Ok(false)
    }

    /// A descriptor that has hung up would wake us for ever; its ring may have other threads to write into it.
    fn forget(&mut self, poll: &OwnedFd, ring: usize) {
        if let Some((_, fd)) = self.rings.descriptors_to_watch().find(|(at, _)| *at == ring) {
            let _ = epoll::delete(poll, fd);
        }
        if let Some(fd) = self.rings.watch_next(ring) {
            let _ = epoll::add(poll, fd, epoll::EventData::new_u64(ring as u64), epoll::EventFlags::IN);
        }
    }
}
