//! Sampling events, opened in many places, whose records come out of few rings.
//!
//! Receives groups of events, [`SampleOptions`], and the slots (threads, CPUs) where they shall sample; hands
//! on the records as they lie in the rings, and at the end what was lost. An event that the kernel refuses
//! everywhere refuses the recording: a profile with a hole in it would be believed.
//!
//! ```text
//!                      CPU 0             CPU 1
//!   thread A  event 0  mapped: ring 0    mapped: ring 1   one ring a CPU: the kernel lets events share it
//!             event 1  → ring 0          → ring 1         if they are bound to the same CPU (or, bound to
//!   thread B  event 0  → ring 0          → ring 1         none, to the same thread)
//!   children of A, B   → their parents' rings (inherit)
//! ```

mod adopted;
mod readings;
mod records;
mod traces;

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;

pub use self::adopted::OpenEvents;
pub use self::readings::{Reading, by_thread};
pub use self::records::CopiedRing;
pub use self::traces::{AuxOptions, TracePiece};

use super::change::Change;
use super::filters;
use super::inherited_probes::ProbeDefinition;
use super::refusal::Refusal;
use super::request::given_up::GivenUp;
use super::request::sampling::{self, SampleOptions, SampleRole};
use super::request::{Request, check_cpus};
use super::target::{Cgroup, TargetSlot};
use crate::abi::Attr;
use crate::abi::attr::{Flag, kind};
use crate::abi::generic::DUMMY;
use crate::error::RingLimit;
use crate::event::{EventGroup, EventSpec};
use crate::host::CpuList;
use crate::sys::perf::{EventFd, OpenTarget};
use crate::sys::ring::{Direction, Ring};
use crate::sys::{errno, page_size};

/// What is opened once for all slots.
#[derive(Debug)]
struct SampledEvent {
    spec: EventSpec,
    cgroup: Option<Rc<Cgroup>>,
    request: Request,
    leads: bool,
}

/// An event in one slot.
#[derive(Debug)]
struct SampledSlot {
    event: usize,
    slot: TargetSlot,
    fd: EventFd,
    id: u64,
    /// Index of its ring.
    ring: usize,
    /// It is not to run: nobody has started it yet, or it was told to stop.
    is_off: Cell<bool>,
}

/// The size of each ring in pages, and why it is smaller than asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MappedPages {
    /// Pages of data, a power of two.
    pub pages: usize,
    /// What stopped the next larger size; `None` where that was not tried.
    pub limit: Option<RingLimit>,
}

/// A ring, and who it is mapped on.
#[derive(Debug)]
struct MappedRing {
    open: usize,
    slot: TargetSlot,
    direction: Direction,
    ring: Option<Ring>,
    /// Who is waited for: any event that writes into the ring will do, as long as its thread lives.
    watched: usize,
}

/// Where an id counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instance {
    /// Index of the event.
    pub event: usize,
    /// The kernel's id.
    pub id: u64,
    /// Index of the ring.
    pub ring: usize,
    /// Where.
    pub slot: TargetSlot,
}

/// Sampling events and their rings.
#[derive(Debug, Default)]
pub struct Rings {
    events: Vec<SampledEvent>,
    /// Indices into `events`; the first of each leads.
    groups: Vec<Vec<usize>>,
    open: Vec<SampledSlot>,
    rings: Vec<MappedRing>,
    on_exec: bool,
    has_tracker: bool,
    tracks_apart: bool,
    keeps_contexts: bool,
    per_thread: bool,
    aux: Option<AuxOptions>,
    /// Some are of whole CPUs, others of tasks.
    is_mixed: bool,
    /// See [`RingOptions::keeps_contexts`].
    guards: Vec<(u32, EventFd)>,
    /// Dropped after the events.
    probes: Vec<ProbeDefinition>,
}

/// How the events go together.
#[derive(Debug, Clone, Copy, Default)]
pub struct RingOptions {
    /// Whole CPUs are sampled, not tasks.
    pub system: bool,
    /// The (held) task starts them when it executes its command.
    pub on_exec: bool,
    /// Samples begin with their event's id, even where there is one event only.
    pub with_id: bool,
    /// Slots are threads on any CPU; only events that are bound to a CPU have slots on it.
    pub per_thread: bool,
    /// An event of its own tells of mappings, names and tasks, from the moment that it is open.
    pub tracker: bool,
    /// What that one tells of goes into rings of its own, which keep the newest: however many tasks come and
    /// go, they take no room from samples.
    pub tracks_apart: bool,
    /// Threads keep their events. Where all events of a thread are inherited, the kernel swaps them with a
    /// child's at a context switch instead of taking both off the counters, so that any of them may end with
    /// those that were opened here, of which it writes no `READ`. One event that is not inherited prevents
    /// it; before Linux 6.2, where events of hardware have a context of their own, one of each sort.
    pub keeps_contexts: bool,
    /// Where hardware traces.
    pub aux: Option<AuxOptions>,
}

impl Rings {
    /// Makes the requests. Nothing is opened yet.
    ///
    /// # Errors
    /// The event that cannot be sampled: one that the kernel does not count.
    pub fn new(
        groups: Vec<(EventGroup, Option<Rc<Cgroup>>)>,
        options: &SampleOptions,
        setting: RingOptions,
    ) -> Result<Self, Box<Refusal>> {
        let several = setting.with_id
            || setting.tracker
            || groups.iter().map(|(group, _)| group.events.len()).sum::<usize>() > 1;
        let base = SampleRole { with_id: several, system: setting.system, ..SampleRole::default() };
        let mut rings = Self {
            events: Vec::new(),
            groups: Vec::new(),
            open: Vec::new(),
            rings: Vec::new(),
            on_exec: setting.on_exec,
            has_tracker: setting.tracker,
            tracks_apart: setting.tracker && setting.tracks_apart,
            keeps_contexts: setting.keeps_contexts,
            per_thread: setting.per_thread,
            aux: setting.aux,
            is_mixed: false,
            guards: Vec::new(),
            probes: Vec::new(),
        };
        for (group, cgroup) in groups {
            let grouped = group.braces && group.events.len() > 1;
            let mut members = Vec::new();
            for (place, spec) in group.events.into_iter().enumerate() {
                let is_beside = spec.qualifiers.system && !setting.system;
                rings.is_mixed |= is_beside;
                let role = SampleRole {
                    system: setting.system || is_beside,
                    tracks: !setting.tracker && rings.events.is_empty(),
                    leads: !grouped || place == 0,
                    read_by_leader: group.leader_sampling,
                    grouped,
                    // No exec starts what is open on a CPU.
                    on_exec: setting.on_exec && !is_beside,
                    ..base
                };
                let request = sampling::request(&spec, options, role)?;
                members.push(rings.events.len());
                rings.add(spec, cgroup.clone(), request, role.leads);
                if !grouped {
                    rings.groups.push(std::mem::take(&mut members));
                }
            }
            if grouped {
                rings.groups.push(members);
            }
        }
        if setting.tracker {
            let (spec, mut request) = sampling::tracker(options, base)?;
            request.change(|attr| attr.set(Flag::WriteBackward, setting.tracks_apart));
            rings.groups.push(vec![rings.events.len()]);
            rings.add(spec, None, request, true);
        }
        Ok(rings)
    }

    /// Whether events of whole CPUs (`system`) are beside those of tasks.
    pub fn is_mixed(&self) -> bool {
        self.is_mixed
    }

    /// The CPUs that any event's text names.
    pub fn named_cpus(&self) -> CpuList {
        let named = self.events.iter().filter_map(|event| event.spec.cpus.as_ref());
        named.flat_map(CpuList::iter).collect()
    }

    /// Keeps what the events were defined by for as long as they are open.
    pub fn keep(&mut self, probes: Vec<ProbeDefinition>) {
        self.probes = probes;
    }

    /// Whether every event can be opened on the CPUs that it is bound to, and on one at least of those
    /// `sampled` (`None`: tasks are, wherever they run).
    ///
    /// # Errors
    /// As [`check_cpus`].
    pub fn check_cpus(&self, online: &CpuList, sampled: Option<&CpuList>) -> Result<(), Box<Refusal>> {
        self.events.iter().try_for_each(|event| check_cpus(&event.spec, online, sampled))
    }

    fn add(&mut self, spec: EventSpec, cgroup: Option<Rc<Cgroup>>, request: Request, leads: bool) {
        self.events.push(SampledEvent { spec, cgroup, request, leads });
    }

    /// Descriptors that opening in this many slots takes.
    pub fn descriptors(&self, slots: usize) -> u64 {
        ((self.events.len() + 2 * usize::from(self.keeps_contexts)) * slots) as u64
    }

    /// Opens every event in this slot; `false` when the thread or CPU has gone.
    ///
    /// # Errors
    /// The event that the kernel refuses.
    pub fn open(&mut self, slot: TargetSlot) -> Result<bool, Box<Refusal>> {
        let before = self.open.len();
        self.guard(slot);
        for group in 0..self.groups.len() {
            let mut leader = None;
            for position in 0..self.groups[group].len() {
                let event = self.groups[group][position];
                if !self.is_of(event, slot) || !self.events[event].takes(slot, self.per_thread) {
                    continue;
                }
                let lead = leader.map(|at: usize| &self.open[at].fd);
                match self.events[event].open(slot, lead) {
                    Ok((fd, id)) => {
                        leader = leader.or(Some(self.open.len()));
                        let attr = self.events[event].request.attr();
                        // At its exec, a task starts its own.
                        let starts = attr.get(Flag::EnableOnExec) || !attr.get(Flag::Disabled);
                        let is_off = Cell::new(!starts);
                        self.open.push(SampledSlot { event, slot, fd, id, ring: usize::MAX, is_off });
                    }
                    Err(refusal) if refusal.is_gone() => {
                        self.open.truncate(before);
                        return Ok(false);
                    }
                    Err(refusal) => return Err(Box::new(refusal.after(position))),
                }
            }
        }
        Ok(true)
    }

    /// Whether the event is of this slot's kind, where events of whole CPUs are beside those of tasks. What
    /// tracks is of both: who is sampled on a CPU must be known, and who begins below a task.
    fn is_of(&self, event: usize, slot: TargetSlot) -> bool {
        let is_system = self.events[event].spec.qualifiers.system;
        !self.is_mixed || event >= self.sampled_events() || is_system == slot.tid.is_none()
    }

    /// Keeps a thread's events with it, if that is asked for. A thread that has gone is met by its events.
    fn guard(&mut self, slot: TargetSlot) {
        let Some(tid) = slot.tid.filter(|_| self.keeps_contexts) else { return };
        if self.guards.last().is_some_and(|(last, _)| *last == tid) {
            return;
        }
        // Never enabled, it takes no counter of the hardware.
        let hardware = self.events.iter().find(|event| event.spec.takes_counter());
        let hardware = hardware.map(|event| event.request.attr()).map(|attr| (attr.kind(), attr.config()));
        for (kind, config) in [(kind::SOFTWARE, DUMMY)].into_iter().chain(hardware) {
            let mut attr = Attr::new(kind, config);
            for flag in [Flag::Disabled, Flag::ExcludeKernel, Flag::ExcludeHv] {
                attr.set(flag, true);
            }
            let guard = EventFd::open(&attr, OpenTarget::Task(tid), None);
            self.guards.extend(guard.ok().map(|guard| (tid, guard)));
        }
    }

    /// Maps the rings, of `pages` each or as many as the kernel lets us lock, and leads every event into its
    /// ring. The pages.
    ///
    /// # Errors
    /// The kernel's, when not even the smallest rings can be had.
    pub fn map(&mut self, pages: usize) -> Result<MappedPages, Box<Refusal>> {
        self.map_or_less(pages).map_err(|error| {
            let bytes = (pages as u64 + 1) * page_size() as u64;
            Box::new(Refusal::of_ring("", Attr::default(), bytes, &error))
        })
    }

    fn map_or_less(&mut self, pages: usize) -> io::Result<MappedPages> {
        self.assign(0);
        let mut mapped = MappedPages { pages: pages.next_power_of_two(), limit: None };
        while let Err(error) = self.map_all(mapped.pages) {
            let limit = match error.raw_os_error() {
                Some(errno::EPERM) => RingLimit::LockedMemory,
                Some(errno::ENOMEM) => RingLimit::Memory,
                _ => return Err(error),
            };
            if mapped.pages == 1 {
                return Err(error);
            }
            mapped = MappedPages { pages: mapped.pages / 2, limit: Some(limit) };
        }
        self.lead(0)?;
        Ok(mapped)
    }

    /// Chooses the ring of each event from `first` on.
    fn assign(&mut self, first: usize) {
        for at in first..self.open.len() {
            let direction = self.events[self.open[at].event].direction();
            let slot = self.open[at].slot;
            let is_apart = |at: usize| self.tracks_apart && self.open[at].event + 1 == self.events.len();
            // The newest rings are the likeliest: slots come thread by thread, CPU by CPU.
            let same = |mapped: &MappedRing| {
                mapped.direction == direction
                    && is_apart(mapped.open) == is_apart(at)
                    && mapped.slot.cpu == slot.cpu
                    && (slot.cpu.is_some() || mapped.slot.tid == slot.tid)
            };
            let ring = match self.rings.iter().rposition(same) {
                Some(ring) => {
                    let mapped = &self.rings[ring];
                    if mapped.ring.is_none() && self.traces(at) && !self.traces(mapped.open) {
                        self.rings[ring].open = at;
                    }
                    ring
                }
                None => {
                    self.rings.push(MappedRing { open: at, slot, direction, ring: None, watched: at });
                    self.rings.len() - 1
                }
            };
            self.open[at].ring = ring;
        }
    }

    fn lead(&mut self, first: usize) -> io::Result<()> {
        for at in first..self.open.len() {
            let SampledSlot { fd, ring, .. } = &self.open[at];
            let mapped = self.rings[*ring].open;
            if mapped != at {
                fd.set_output(&self.open[mapped].fd)?;
            }
        }
        Ok(())
    }

    /// Opens every event in one more slot, when the others have their rings already; `false` when the thread
    /// has gone.
    ///
    /// # Errors
    /// As [`Rings::open`]; and the kernel's answer to leading the events into a ring, with the first
    /// event's name.
    pub fn open_late(&mut self, slot: TargetSlot, pages: usize) -> Result<bool, Box<Refusal>> {
        let before = self.open.len();
        if !self.open(slot)? {
            return Ok(false);
        }
        self.join(before, pages).map(|()| true).map_err(|error| {
            let request = &self.events[self.open[before].event].request;
            Box::new(Refusal::new(request.event(), request.attr().clone(), slot, &error))
        })
    }

    /// Leads the events from `first` on into the rings that there are, or into new ones.
    fn join(&mut self, first: usize, pages: usize) -> io::Result<()> {
        self.assign(first);
        self.map_missing(pages)?;
        self.lead(first)
    }

    /// Bytes of a ring.
    pub fn ring_bytes(&self) -> u64 {
        self.rings.iter().find_map(|mapped| mapped.ring.as_ref()).map_or(0, Ring::size)
    }

    fn map_all(&mut self, pages: usize) -> io::Result<()> {
        self.rings.iter_mut().for_each(|mapped| mapped.ring = None);
        self.map_missing(pages)
    }

    fn map_missing(&mut self, pages: usize) -> io::Result<()> {
        for ring in 0..self.rings.len() {
            if self.rings[ring].ring.is_none() {
                self.rings[ring].ring = Some(self.map_one(ring, pages)?);
            }
        }
        Ok(())
    }

    fn map_one(&self, ring: usize, pages: usize) -> io::Result<Ring> {
        let MappedRing { open, direction, .. } = &self.rings[ring];
        let mut ring = Ring::map(&self.open[*open].fd, pages, *direction)?;
        self.map_aux(&mut ring, *open)?;
        // What the kernel does not publish shall be found, too.
        Ok(if self.keeps_contexts { ring.keeping() } else { ring })
    }

    /// How many rings are assigned.
    pub fn rings(&self) -> usize {
        self.rings.len()
    }

    /// How many rings the events opened so far need.
    pub fn count(&self) -> usize {
        let mut keys: Vec<_> = self
            .open
            .iter()
            .map(|open| (open.slot.cpu, open.slot.tid.filter(|_| open.slot.cpu.is_none())))
            .collect();
        keys.sort_unstable();
        keys.dedup();
        keys.len()
    }

    /// Has tracepoints sample only what their filters hold for.
    ///
    /// # Errors
    /// What the kernel says of the first filter that it does not take, with its event and text.
    pub fn set_filters(&self) -> Result<(), filters::Refused<'_>> {
        filters::set(self.open.iter().map(|open| (&self.events[open.event].spec, &open.fd)))
    }

    /// Starts what the kernel does not start by itself at exec.
    ///
    /// # Errors
    /// The kernel's.
    pub fn start(&self) -> io::Result<()> {
        if !self.on_exec {
            return self.switch_where(true, |_| true);
        }
        self.switch_where(true, |event| event.qualifiers.system)?;
        let of_task = self.leaders().filter(|open| open.slot.tid.is_some());
        let limited = of_task.filter_map(|open| Some((open, self.most_samples(open)?)));
        for (SampledSlot { fd, .. }, most) in limited {
            // The task is held meanwhile; the kernel keeps the limit for when it starts the event.
            fd.refresh(most)?;
            fd.switch(false)?;
        }
        Ok(())
    }

    /// Whether any event stops after so many samples.
    pub fn has_limits(&self) -> bool {
        self.events.iter().any(|event| event.spec.qualifiers.most_samples.is_some())
    }

    /// After how many samples an event stops on each of its slots.
    fn most_samples(&self, open: &SampledSlot) -> Option<u32> {
        self.events[open.event].spec.qualifiers.most_samples
    }

    fn switch_one(&self, open: &SampledSlot, on: bool) -> io::Result<()> {
        open.is_off.set(!on);
        match self.most_samples(open) {
            Some(most) if on => open.fd.refresh(most),
            _ => open.fd.switch(on),
        }
    }

    /// Starts or stops the groups whose leader `which` chooses, whatever started them before. What tells of
    /// mappings and tasks goes on.
    ///
    /// # Errors
    /// The kernel's.
    pub fn switch_where(&self, on: bool, which: impl Fn(&EventSpec) -> bool) -> io::Result<()> {
        let mut chosen = self.leaders().filter(|open| which(&self.events[open.event].spec));
        chosen.try_for_each(|open| self.switch_one(open, on))
    }

    /// The same of single events: members of groups by themselves.
    ///
    /// # Errors
    /// The kernel's.
    pub fn switch_each(&self, on: bool, which: impl Fn(&EventSpec) -> bool) -> io::Result<()> {
        let mut chosen = self.open.iter().filter(|open| which(&self.events[open.event].spec));
        chosen.try_for_each(|open| self.switch_one(open, on))
    }

    /// Changes the event of this name; without one, all that sample. `is_on`: whether they count.
    ///
    /// # Errors
    /// As [`Change::make`].
    pub fn change(&self, change: Change, name: Option<&str>, is_on: bool) -> Result<(), String> {
        let sampled = self.sampled_events();
        let meant = |event: usize| match name {
            Some(name) => self.events[event].spec.name == name,
            None => event < sampled && self.events[event].request.attr().period() != 0,
        };
        let instances = self.open.iter().filter(|open| meant(open.event));
        let attr = |open: &SampledSlot| self.events[open.event].request.attr();
        let is_inherited = |open: &SampledSlot| open.slot.tid.is_some() && attr(open).get(Flag::Inherit);
        if change.is_of_one_task() && instances.clone().any(is_inherited) {
            return Err("children inherit it, and the kernel changes it for one task, or none: \
                        record with -i, or -a"
                .to_owned());
        }
        change.make(instances.map(|open| (attr(open), &open.fd)), is_on)
    }

    /// The events with what was asked of the kernel for them, in their order.
    pub fn requests(&self) -> impl Iterator<Item = (&str, &Attr)> {
        self.events.iter().map(|event| (event.spec.name.as_str(), event.request.attr()))
    }

    fn leaders(&self) -> impl Iterator<Item = &SampledSlot> {
        self.open.iter().filter(|open| {
            let event = &self.events[open.event];
            // The tracker began with its opening and has no end.
            event.leads && event.request.attr().get(Flag::Disabled)
        })
    }

    /// The descriptors to wait for, with the number of the ring: each becomes readable when its ring is as
    /// full as was agreed, and hangs up when its thread and all who inherited from it have ended.
    pub fn descriptors_to_watch(&self) -> impl Iterator<Item = (usize, BorrowedFd<'_>)> {
        let rings = self.rings.iter().enumerate();
        rings
            .filter(|(_, mapped)| mapped.direction == Direction::Forward)
            .map(|(ring, mapped)| (ring, self.open[mapped.watched].fd.as_fd()))
    }

    /// Instead of the descriptor of a ring that has hung up: that of the next event that writes into it;
    /// `None` when there is no more.
    pub fn watch_next(&mut self, ring: usize) -> Option<BorrowedFd<'_>> {
        let mapped = self.rings.get_mut(ring)?;
        let next = (mapped.watched + 1..self.open.len()).find(|&at| self.open[at].ring == ring)?;
        mapped.watched = next;
        Some(self.open[next].fd.as_fd())
    }

    /// Whether a thread that events are open on has ended, and with it all who have inherited them.
    pub fn is_over(&self, tid: u32) -> bool {
        let mut own = self.open.iter().filter(|open| open.slot.tid == Some(tid)).peekable();
        own.peek().is_some() && own.all(|open| open.fd.has_hung_up())
    }

    /// The events' names and requests as the kernel took them, with the ids of their instances.
    pub fn events(&self) -> impl Iterator<Item = (&EventSpec, &Attr, Vec<u64>)> {
        self.events.iter().enumerate().map(|(index, event)| {
            let ids = self.open.iter().filter(|open| open.event == index).map(|open| open.id);
            (&event.spec, event.request.attr(), ids.collect())
        })
    }

    /// What each event had to do without.
    pub fn given_up(&self) -> impl Iterator<Item = (&EventSpec, GivenUp)> {
        self.events.iter().map(|event| (&event.spec, event.request.given_up()))
    }

    /// Indices of the events of each kernel group.
    pub fn groups(&self) -> &[Vec<usize>] {
        &self.groups
    }

    /// How many events are sampled: the first ones. What only tracks comes last.
    pub fn sampled_events(&self) -> usize {
        self.events.len() - usize::from(self.has_tracker)
    }

    /// Every id with its place.
    pub fn instances(&self) -> impl Iterator<Item = Instance> {
        self.open.iter().map(|open| Instance {
            event: open.event,
            id: open.id,
            ring: open.ring,
            slot: open.slot,
        })
    }

    /// For each ring the id of the one event in it whose samples the kernel hands from listener to listener:
    /// software events other than its clocks. `None` where there is no such event, or several.
    pub fn passed_on(&self) -> Vec<Option<u64>> {
        /// Which software events have no listeners but a timer, or never sample: cpu-clock, task-clock,
        /// dummy, bpf-output.
        const OTHERWISE: [u64; 4] = [0, 1, 9, 10];
        let passed_on = |open: &&SampledSlot| {
            let attr = self.events[open.event].request.attr();
            attr.kind() == kind::SOFTWARE && !OTHERWISE.contains(&attr.config())
        };
        let only = |ring: usize| {
            let mut all = self.open.iter().filter(|open| open.ring == ring).filter(passed_on);
            let first = all.next()?;
            // Other threads' instances are the same event's: readers tell events apart, not instances.
            all.all(|open| open.event == first.event).then_some(first.id)
        };
        (0..self.rings.len()).map(only).collect()
    }

    /// Closes everything, on a thread of its own where that takes the kernel long.
    pub fn close_aside(mut self) {
        if self.slow_to_close() == 0 {
            return;
        }
        // A mapping keeps its event open, too.
        self.rings.clear();
        let open: Vec<EventFd> = self.open.drain(..).map(|open| open.fd).collect();
        // Where there is no thread to be had, they are closed here.
        let _ = std::thread::Builder::new().name("closing".into()).spawn(move || drop(open));
    }

    /// How many open events the kernel takes some 35 ms each to close, so that a child may be left to do it:
    /// tracepoints. Probes of our own can only be removed once they are closed, and so by us.
    pub fn slow_to_close(&self) -> usize {
        if !self.probes.is_empty() {
            return 0;
        }
        self.open
            .iter()
            .filter(|open| self.events[open.event].request.attr().kind() == kind::TRACEPOINT)
            .count()
    }
}

impl SampledEvent {
    /// Whether the event can be in this slot at all. Where threads have slots on any CPU (`per_thread`),
    /// those on single CPUs are for the events that are bound to one.
    fn takes(&self, slot: TargetSlot, per_thread: bool) -> bool {
        let has = |cpus: &Option<CpuList>, cpu| cpus.as_ref().is_none_or(|cpus| cpus.contains(cpu));
        match slot.cpu {
            None => self.spec.cpus.is_none(),
            Some(_) if per_thread && slot.tid.is_some() && self.spec.cpus.is_none() => false,
            Some(cpu) => has(&self.spec.cpus, cpu) && has(&self.spec.core_cpus, cpu),
        }
    }

    fn direction(&self) -> Direction {
        if self.request.attr().get(Flag::WriteBackward) { Direction::Backward } else { Direction::Forward }
    }

    fn open(&mut self, slot: TargetSlot, leader: Option<&EventFd>) -> Result<(EventFd, u64), Box<Refusal>> {
        let fd = self.request.open(slot, self.cgroup.as_deref(), leader)?;
        match fd.id() {
            Ok(id) => Ok((fd, id)),
            Err(error) => {
                Err(Box::new(Refusal::new(self.request.event(), self.request.attr().clone(), slot, &error)))
            }
        }
    }
}

/// The pages of a ring of about so many bytes: a power of two, at least one.
pub fn pages_of(bytes: u64) -> usize {
    let pages = bytes.div_ceil(page_size() as u64).max(1);
    usize::try_from(pages).unwrap_or(usize::MAX / 2).next_power_of_two()
}
