//! Sampling events that are opened in many slots and write their records to a few ring buffers.
//!
//! Takes groups of events, [`SampleOptions`], and the slots (threads or CPUs) in which to sample. Returns the
//! records as stored in the rings and, at the end, the number of lost records. If the kernel refuses an
//! event, the whole recording fails, since users would mistake an incomplete profile for a complete one.
//!
//! ```text
//!                      CPU 0             CPU 1
//!   thread A  event 0  mapped: ring 0    mapped: ring 1   one ring per CPU: events share a ring
//!             event 1  → ring 0          → ring 1         if they are bound to the same CPU (or to
//!   thread B  event 0  → ring 0          → ring 1         no CPU, but to the same thread)
//!   children of A, B   → their parents' rings (inherit)
//! ```

mod adopted;
mod readings;
mod records;
mod traces;

use crate::hint::Hint;
use pmc_sys::error::Advice;
use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;

pub use self::adopted::OpenEvents;
pub use self::readings::{InstanceReading, by_thread};
pub use self::records::CopiedRing;
pub use self::traces::{AuxOptions, TracePiece};

use super::change::EventChange;
use super::filters;
use super::inherited_probes::ProbeDefinition;
use super::refusal::Refusal;
use super::request::given_up::GivenUp;
use super::request::sampling::{self, SampleOptions, SampleRole};
use super::request::{CounterFlags, OpenRequest, check_cpus};
use super::target::{TargetCgroup, TargetSlot};
use crate::event::{EventGroup, EventSpec};
use pmc_sys::abi::Attr;
use pmc_sys::abi::attr::{Flag, kind};
use pmc_sys::abi::generic::DUMMY;
use pmc_sys::host::CpuList;
use pmc_sys::sys::perf::EventFd;
use pmc_sys::sys::ring::{Direction, Ring};
use pmc_sys::sys::{errno, page_size};

/// An event and its request, which are the same for all slots.
#[derive(Debug)]
struct RingEvent {
    spec: EventSpec,
    cgroup: Option<Rc<TargetCgroup>>,
    request: OpenRequest,
    leads: bool,
}

#[derive(Debug)]
struct SampledSlot {
    event: usize,
    slot: TargetSlot,
    fd: EventFd,
    id: u64,
    /// Index of the ring that the event writes to.
    ring: usize,
    /// Whether the event is off: not yet started, or stopped.
    is_off: Cell<bool>,
}

/// The limit that keeps the ring buffers below the requested size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RingLimit {
    /// The user's locked-memory limit (EPERM).
    LockedMemory,
    /// Memory or address space (ENOMEM).
    Memory,
}

/// The size of each ring in pages, and the limit that kept it below the requested size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MappedPages {
    /// Pages of data, a power of two.
    pub pages: usize,
    /// The limit that prevented the next larger size; `None` if that size was not tried.
    pub limit: Option<RingLimit>,
}

/// A ring and the event on which it is mapped.
#[derive(Debug)]
struct MappedRing {
    open: usize,
    slot: TargetSlot,
    direction: Direction,
    ring: Option<Ring>,
    /// The event whose descriptor is polled. This can be any event that writes into the ring and whose thread
    /// is still alive.
    watched: usize,
}

/// An event opened in one slot, with its kernel ID and ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instance {
    /// Index of the event.
    pub event: usize,
    /// The kernel's ID.
    pub id: u64,
    /// Index of the ring.
    pub ring: usize,
    /// The slot.
    pub slot: TargetSlot,
}

/// Sampling events and their rings.
#[derive(Debug, Default)]
pub struct Rings {
    events: Vec<RingEvent>,
    /// Indices into `events`; the first event of each group is its leader.
    groups: Vec<Vec<usize>>,
    open: Vec<SampledSlot>,
    rings: Vec<MappedRing>,
    on_exec: bool,
    has_tracker: bool,
    tracks_apart: bool,
    keeps_contexts: bool,
    per_thread: bool,
    aux: Option<AuxOptions>,
    /// Whether some of the events sample whole CPUs and others sample tasks.
    is_mixed: bool,
    /// Whether events on whole CPUs sample wake-ups for the events on tasks.
    samples_wakeups: bool,
    /// See [`RingOptions::keeps_contexts`].
    guards: Vec<(u32, EventFd)>,
    /// Probe definitions; dropped after the events.
    probes: Vec<ProbeDefinition>,
}

/// Options for a recording's rings.
#[derive(Debug, Clone, Copy, Default)]
pub struct RingOptions {
    /// Sample whole CPUs, not tasks.
    pub system: bool,
    /// The kernel starts the events when the waiting child process executes the command.
    pub on_exec: bool,
    /// Start samples with their event's ID, even if there is only one event.
    pub with_id: bool,
    /// Each slot is a thread on any CPU. Only events bound to a CPU have slots on that CPU.
    pub per_thread: bool,
    /// Open a separate event that records mappings, names and tasks from the start.
    pub tracker: bool,
    /// Write the tracker's records to separate rings that keep the newest records. Otherwise, the records of
    /// many short-lived tasks would crowd out samples.
    pub tracks_apart: bool,
    /// Keep events on their threads. If all events of a thread are inherited, the kernel may swap the events
    /// of parent and child at a context switch instead of rescheduling them. An event opened here may then be
    /// on another thread when this thread ends, and the kernel writes no `READ` record for it. A single event
    /// that is not inherited prevents the swap. Before Linux 6.2, hardware events have a separate context, so
    /// both a hardware and a software guard event are needed.
    pub keeps_contexts: bool,
    /// AUX areas for hardware traces.
    pub aux: Option<AuxOptions>,
}

impl Rings {
    /// Builds the requests without opening events.
    ///
    /// # Errors
    /// Returns the refusal of an event that cannot be sampled because it is not a kernel event.
    pub fn new(
        groups: Vec<(EventGroup, Option<Rc<TargetCgroup>>)>,
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
            samples_wakeups: false,
            guards: Vec::new(),
            probes: Vec::new(),
        };
        for (group, cgroup) in groups {
            let grouped = group.braces && group.events.len() > 1;
            let mut members = Vec::new();
            for (place, spec) in group.events.into_iter().enumerate() {
                let is_beside = spec.qualifiers.system && !setting.system;
                rings.is_mixed |= is_beside && !spec.qualifiers.samples_wakeups;
                rings.samples_wakeups |= is_beside && spec.qualifiers.samples_wakeups;
                let role = SampleRole {
                    system: setting.system || is_beside,
                    tracks: !setting.tracker && rings.events.is_empty(),
                    leads: !grouped || place == 0,
                    read_by_leader: group.leader_sampling,
                    grouped,
                    // Exec does not start CPU-wide events.
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

    /// Whether the recording has both events on whole CPUs (`system`) and events on tasks.
    pub fn is_mixed(&self) -> bool {
        self.is_mixed
    }

    /// Whether the recording of tasks also has events on whole CPUs. Unlike in a mixed recording, events that
    /// sample wake-ups do not record all tasks that run on their CPU.
    pub fn has_cpu_events(&self) -> bool {
        self.is_mixed || self.samples_wakeups
    }

    /// The CPUs that the events' texts select.
    pub fn named_cpus(&self) -> CpuList {
        let named = self.events.iter().filter_map(|event| event.spec.cpus.as_ref());
        named.flat_map(CpuList::iter).collect()
    }

    /// Keeps these probe definitions until the events are closed.
    pub fn keep(&mut self, probes: Vec<ProbeDefinition>) {
        self.probes = probes;
    }

    /// Checks that every event can be opened on the CPUs to which it is bound. At least one of these CPUs
    /// must be in `sampled`. `None` means that tasks are sampled on any CPU.
    ///
    /// # Errors
    /// Fails in the same cases as [`check_cpus`].
    pub fn check_cpus(&self, online: &CpuList, sampled: Option<&CpuList>) -> Result<(), Box<Refusal>> {
        self.events.iter().try_for_each(|event| check_cpus(&event.spec, online, sampled))
    }

    fn add(&mut self, spec: EventSpec, cgroup: Option<Rc<TargetCgroup>>, request: OpenRequest, leads: bool) {
        self.events.push(RingEvent { spec, cgroup, request, leads });
    }

    /// Number of descriptors needed to open the events in this many slots.
    pub fn descriptors(&self, slots: usize) -> u64 {
        ((self.events.len() + 2 * usize::from(self.keeps_contexts)) * slots) as u64
    }

    /// Opens every event in this slot. Returns `false` if the thread or CPU no longer exists.
    ///
    /// # Errors
    /// Returns the refusal of the first event that the kernel refuses.
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
                let RingEvent { request, cgroup, .. } = &mut self.events[event];
                match request.open_with_id(slot, cgroup.as_deref(), lead) {
                    Ok((fd, id)) => {
                        leader = leader.or(Some(self.open.len()));
                        let attr = self.events[event].request.attr();
                        // Events with `enable_on_exec` start at exec.
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

    /// Whether the event is to be opened in this kind of slot, for recordings with both CPU and task events.
    /// The tracker is opened in both kinds, because it must record the tasks sampled on a CPU and the
    /// children of sampled tasks.
    fn is_of(&self, event: usize, slot: TargetSlot) -> bool {
        let is_of_cpu = slot.tid.is_none();
        if event >= self.sampled_events() {
            return self.is_mixed || !self.samples_wakeups || !is_of_cpu;
        }
        !self.has_cpu_events() || self.events[event].spec.qualifiers.system == is_of_cpu
    }

    /// Opens the guard events that keep other events on this thread, if requested. Ignores errors: if the
    /// thread no longer exists, opening its events will report that.
    fn guard(&mut self, slot: TargetSlot) {
        let Some(tid) = slot.tid.filter(|_| self.keeps_contexts) else { return };
        if self.guards.last().is_some_and(|(last, _)| *last == tid) {
            return;
        }
        // Guards are never enabled, so they use no hardware counter.
        let hardware = self.events.iter().find(|event| event.spec.takes_counter());
        let hardware = hardware.map(|event| event.request.attr()).map(|attr| (attr.kind(), attr.config()));
        for (kind, config) in [(kind::SOFTWARE, DUMMY)].into_iter().chain(hardware) {
            let request = OpenRequest::in_user_mode(kind, config, CounterFlags::default());
            let slot = TargetSlot { tid: Some(tid), cpu: None };
            let guard = request.and_then(|mut request| request.open(slot, None, None));
            self.guards.extend(guard.ok().map(|guard| (tid, guard)));
        }
    }

    /// Maps rings with `pages` pages each, or smaller ones if the kernel limits locked memory, and redirects
    /// every event into its ring. Returns the size used.
    ///
    /// # Errors
    /// Returns the kernel's refusal if not even the smallest rings can be mapped.
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

    /// Assigns a ring to each open event, starting at index `first`.
    fn assign(&mut self, first: usize) {
        for at in first..self.open.len() {
            let direction = self.events[self.open[at].event].direction();
            let slot = self.open[at].slot;
            let is_apart = |at: usize| self.tracks_apart && self.open[at].event + 1 == self.events.len();
            // Searches the newest rings first. Slots are opened thread by thread and CPU by CPU, so the
            // newest rings are the most likely to match.
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

    /// Opens every event in one more slot after the rings have been mapped. Returns `false` if the thread no
    /// longer exists.
    ///
    /// # Errors
    /// Fails in the same cases as [`Rings::open`], and if the kernel cannot redirect events into a ring. In
    /// the latter case, the refusal names the first event.
    pub fn open_late(&mut self, slot: TargetSlot, pages: usize) -> Result<bool, Box<Refusal>> {
        let before = self.open.len();
        if !self.open(slot)? {
            return Ok(false);
        }
        self.join(before, pages)
            .map(|()| true)
            .map_err(|error| self.events[self.open[before].event].request.failed(slot, &error))
    }

    /// Redirects the events, starting at index `first`, into existing or new rings.
    fn join(&mut self, first: usize, pages: usize) -> io::Result<()> {
        self.assign(first);
        self.map_missing(pages)?;
        self.lead(first)
    }

    /// Size of a ring in bytes.
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
        // With `keeping`, the ring also returns records that the kernel has not published.
        Ok(if self.keeps_contexts { ring.keeping() } else { ring })
    }

    /// Number of assigned rings.
    pub fn rings(&self) -> usize {
        self.rings.len()
    }

    /// Number of rings needed by the events opened so far.
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

    /// Applies the filters of the tracepoints.
    ///
    /// # Errors
    /// Returns the kernel's error for the first filter that it refuses, with the event and the filter text.
    pub fn set_filters(&self) -> Result<(), filters::RefusedFilter<'_>> {
        filters::set(self.open.iter().map(|open| (&self.events[open.event].spec, &open.fd)))
    }

    /// Starts the events that the kernel does not start at exec.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub fn start(&self) -> io::Result<()> {
        if !self.on_exec {
            return self.switch_where(true, |_| true);
        }
        self.switch_where(true, |event| event.qualifiers.system)?;
        let of_task = self.leaders().filter(|open| open.slot.tid.is_some());
        let limited = of_task.filter_map(|open| Some((open, self.most_samples(open)?)));
        for (SampledSlot { fd, .. }, most) in limited {
            // The task has not called exec yet. The kernel keeps the limit until it starts the event.
            fd.refresh(most)?;
            fd.switch(false)?;
        }
        Ok(())
    }

    /// Whether any event has a sample limit.
    pub fn has_limits(&self) -> bool {
        self.events.iter().any(|event| event.spec.qualifiers.most_samples.is_some())
    }

    /// The event's sample limit per slot.
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

    /// Starts or stops the groups whose leader is selected by `which`. The tracker keeps running.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub fn switch_where(&self, on: bool, which: impl Fn(&EventSpec) -> bool) -> io::Result<()> {
        let mut chosen = self.leaders().filter(|open| which(&self.events[open.event].spec));
        chosen.try_for_each(|open| self.switch_one(open, on))
    }

    /// Starts or stops single events, including individual members of groups.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub fn switch_each(&self, on: bool, which: impl Fn(&EventSpec) -> bool) -> io::Result<()> {
        let mut chosen = self.open.iter().filter(|open| which(&self.events[open.event].spec));
        chosen.try_for_each(|open| self.switch_one(open, on))
    }

    /// Changes the event with this name, or all sampling events if no name is given. `is_on` is true if they
    /// are currently counting.
    ///
    /// # Errors
    /// Fails in the same cases as [`EventChange::make`].
    pub fn change(&self, change: EventChange, name: Option<&str>, is_on: bool) -> Result<(), String> {
        let sampled = self.sampled_events();
        let meant = |event: usize| match name {
            Some(name) => self.events[event].spec.name == name,
            None => event < sampled && self.events[event].request.attr().period() != 0,
        };
        let instances = self.open.iter().filter(|open| meant(open.event));
        let attr = |open: &SampledSlot| self.events[open.event].request.attr();
        let is_inherited = |open: &SampledSlot| open.slot.tid.is_some() && attr(open).get(Flag::Inherit);
        if change.is_of_one_task() && instances.clone().any(is_inherited) {
            let remedy = Advice::from(Hint::RecordAlone);
            return Err(format!(
                "child processes inherit it, and the kernel cannot change it for all of them: {remedy}"
            ));
        }
        change.make(instances.map(|open| (attr(open), &open.fd)), is_on)
    }

    /// The events' names and the attributes requested for them, in order.
    pub fn requests(&self) -> impl Iterator<Item = (&str, &Attr)> {
        self.events.iter().map(|event| (event.spec.name.as_str(), event.request.attr()))
    }

    fn leaders(&self) -> impl Iterator<Item = &SampledSlot> {
        self.open.iter().filter(|open| {
            let event = &self.events[open.event];
            // The tracker starts when it is opened and is never stopped.
            event.leads && event.request.attr().get(Flag::Disabled)
        })
    }

    /// The descriptors to poll, with their ring's index. Each descriptor becomes readable when its ring
    /// reaches the wake-up threshold. It hangs up when its thread and all tasks that inherited the event have
    /// ended.
    pub fn descriptors_to_watch(&self) -> impl Iterator<Item = (usize, BorrowedFd<'_>)> {
        let rings = self.rings.iter().enumerate();
        rings
            .filter(|(_, mapped)| mapped.direction == Direction::Forward)
            .map(|(ring, mapped)| (ring, self.open[mapped.watched].fd.as_fd()))
    }

    /// Returns the next event descriptor to poll for a ring whose current descriptor has hung up. Returns
    /// `None` if no event is left.
    pub fn watch_next(&mut self, ring: usize) -> Option<BorrowedFd<'_>> {
        let mapped = self.rings.get_mut(ring)?;
        let next = (mapped.watched + 1..self.open.len()).find(|&at| self.open[at].ring == ring)?;
        mapped.watched = next;
        Some(self.open[next].fd.as_fd())
    }

    /// Whether this thread and all tasks that inherited its events have ended. Returns `false` if no events
    /// are open on the thread.
    pub fn is_over(&self, tid: u32) -> bool {
        let mut own = self.open.iter().filter(|open| open.slot.tid == Some(tid)).peekable();
        own.peek().is_some() && own.all(|open| open.fd.has_hung_up())
    }

    /// Each event's spec, the attributes that the kernel accepted, and the IDs of its instances.
    pub fn events(&self) -> impl Iterator<Item = (&EventSpec, &Attr, Vec<u64>)> {
        self.events.iter().enumerate().map(|(index, event)| {
            let ids = self.open.iter().filter(|open| open.event == index).map(|open| open.id);
            (&event.spec, event.request.attr(), ids.collect())
        })
    }

    /// The parts that each event's request has dropped.
    pub fn given_up(&self) -> impl Iterator<Item = (&EventSpec, GivenUp)> {
        self.events.iter().map(|event| (&event.spec, event.request.given_up()))
    }

    /// Indices of the events in each kernel group.
    pub fn groups(&self) -> &[Vec<usize>] {
        &self.groups
    }

    /// Number of sampled events. These events come first, and the tracker is last.
    pub fn sampled_events(&self) -> usize {
        self.events.len() - usize::from(self.has_tracker)
    }

    /// Every open instance, with its event, ID, ring and slot.
    pub fn instances(&self) -> impl Iterator<Item = Instance> {
        self.open.iter().map(|open| Instance {
            event: open.event,
            id: open.id,
            ring: open.ring,
            slot: open.slot,
        })
    }

    /// For each ring, returns the ID of its only software event that is not a clock. The kernel passes each
    /// sample of such an event to its listeners one after another. `None` if the ring has no such event, or
    /// several.
    pub fn passed_on(&self) -> Vec<Option<u64>> {
        /// Software events that are driven by a timer or never sample: cpu-clock, task-clock, dummy,
        /// bpf-output.
        const OTHERWISE: [u64; 4] = [0, 1, 9, 10];
        let passed_on = |open: &&SampledSlot| {
            let attr = self.events[open.event].request.attr();
            attr.kind() == kind::SOFTWARE && !OTHERWISE.contains(&attr.config())
        };
        let only = |ring: usize| {
            let mut all = self.open.iter().filter(|open| open.ring == ring).filter(passed_on);
            let first = all.next()?;
            // Several instances of one event are allowed, since readers only distinguish between events.
            all.all(|open| open.event == first.event).then_some(first.id)
        };
        (0..self.rings.len()).map(only).collect()
    }

    /// Closes all events and rings, in a separate thread if closing is slow.
    pub fn close_in_background(mut self) {
        if self.slow_to_close() == 0 {
            return;
        }
        // A mapped ring keeps its event open.
        self.rings.clear();
        let open: Vec<EventFd> = self.open.drain(..).map(|open| open.fd).collect();
        // If the thread cannot be started, the events are closed in this thread.
        let _ = std::thread::Builder::new().name("closing".into()).spawn(move || drop(open));
    }

    /// Number of open tracepoint events. The kernel takes about 35 ms to close each one, so a child process
    /// may close them instead. Returns 0 if pmc defined probes. Probes can only be removed after their events
    /// are closed, so pmc must close those itself.
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

impl RingEvent {
    /// Whether the event can be opened in this slot. With `per_thread`, a thread's slot on a single CPU is
    /// only for events bound to that CPU.
    fn takes(&self, slot: TargetSlot, per_thread: bool) -> bool {
        match slot.cpu {
            None => self.spec.cpus.is_none(),
            Some(_) if per_thread && slot.tid.is_some() && self.spec.cpus.is_none() => false,
            Some(cpu) => self.spec.takes_cpu(cpu),
        }
    }

    fn direction(&self) -> Direction {
        if self.request.attr().get(Flag::WriteBackward) { Direction::Backward } else { Direction::Forward }
    }
}

/// Number of pages for a ring of about this many bytes: a power of two, at least 1.
pub fn pages_of(bytes: u64) -> usize {
    let pages = bytes.div_ceil(page_size() as u64).max(1);
    usize::try_from(pages).unwrap_or(usize::MAX / 2).next_power_of_two()
}
