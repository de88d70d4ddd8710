//! A list of event groups, opened in many slots and read together.
//!
//! Takes the groups first, then the slots (threads or CPUs) one by one. Records whether the kernel accepted
//! each event, and does not retry refused events. Returns counts per event and slot, which `profile` adds up.
//!
//! ```text
//!              group 0          group 1
//!            ┌───────────┐  ┌─────────────┐
//!   slot A   │ cycles    │  │ page-faults │      a bundle: the descriptors of one group in one slot;
//!            │ instr.    │  └─────────────┘      the first is the leader; one read(2) reads the group
//!            └───────────┘
//!   slot B   │ cycles …  │  │ page-faults │
//! ```

use std::io;
use std::rc::Rc;

use super::change::EventChange;
use super::filters;
use super::inherited_probes::ProbeDefinition;
use super::refusal::{Refusal, RefusalKind};
use super::request::given_up::Fallback;
use super::request::{CounterFlags, CountingStart, Levels, Mode, OpenRequest, allocate, check_cpus};
use super::target::{TargetCgroup, TargetSlot};
use crate::event::{EventGroup, EventSpec};
use pmc_sys::abi::Attr;
use pmc_sys::abi::attr::{Flag, kind};
use pmc_sys::host::CpuList;
use pmc_sys::sys::errno;
use pmc_sys::sys::perf::EventFd;
use pmc_text::units::Count;

/// Options for opening the set.
#[derive(Debug, Clone, Copy, Default)]
pub struct CountOptions {
    /// Count child processes too.
    pub inherit: bool,
    /// Start counting when the waiting child process executes the command.
    pub enable_on_exec: bool,
    /// Privilege levels for all events.
    pub levels: Levels,
}

/// The counters of one group in one slot.
#[derive(Debug)]
struct GroupCounters {
    group: usize,
    slot: TargetSlot,
    /// The first member is the group's leader.
    members: Vec<Member>,
    /// Whether one read returns the counts of all members.
    grouped: bool,
    /// Whether the kernel starts the group at exec.
    on_exec: bool,
}

#[derive(Debug)]
struct Member {
    /// Index of the event, in the order of [`CounterSet::new`].
    event: usize,
    fd: EventFd,
    /// The event's kernel ID, which identifies its value in a group read; 0 if it is not grouped.
    id: u64,
}

#[derive(Debug)]
struct CountedGroup {
    members: Vec<usize>,
    weak: bool,
}

#[derive(Debug)]
struct CounterSetEvent {
    spec: EventSpec,
    cgroup: Option<Rc<TargetCgroup>>,
    /// The request, created on the first open. It records the dropped parts.
    request: Option<OpenRequest>,
    /// Why the kernel refused the event. A refused event has no counters.
    refusal: Option<Box<Refusal>>,
    /// Slots in which the refused event would have been opened.
    refused_in: Vec<TargetSlot>,
}

/// Event groups and their counters.
#[derive(Debug)]
pub struct CounterSet {
    options: CountOptions,
    events: Vec<CounterSetEvent>,
    groups: Vec<CountedGroup>,
    bundles: Vec<GroupCounters>,
    broken_groups: usize,
    words: Vec<u64>,
    /// Probe definitions; dropped after the counters.
    probes: Vec<ProbeDefinition>,
}

/// A reading of one event's counter in one slot.
#[derive(Debug, Clone, Copy)]
pub struct CounterReading {
    /// Index of the event, in the order of [`CounterSet::new`].
    pub event: usize,
    /// The slot.
    pub slot: TargetSlot,
    /// Totals since the counter was opened. `None` if the event was refused, or if a pinned event got no
    /// counter.
    pub count: Option<Count>,
}

/// Result of opening the set in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotOpenResult {
    /// The slot exists; the kernel may have refused some events.
    Yes,
    /// The thread or CPU no longer exists.
    Gone,
}

impl CounterSet {
    /// Creates a set without opening any events. Events are numbered across the groups in order. Each group
    /// may be bound to a cgroup.
    pub fn new(groups: Vec<(EventGroup, Option<Rc<TargetCgroup>>)>, options: CountOptions) -> Self {
        let mut set = Self {
            options,
            events: Vec::new(),
            groups: Vec::new(),
            bundles: Vec::new(),
            broken_groups: 0,
            words: Vec::new(),
            probes: Vec::new(),
        };
        for (group, cgroup) in groups {
            let first = set.events.len();
            let events = group.events.into_iter();
            set.events.extend(events.map(|spec| CounterSetEvent {
                spec,
                cgroup: cgroup.clone(),
                request: None,
                refusal: None,
                refused_in: Vec::new(),
            }));
            let members = first..set.events.len();
            if group.braces {
                set.groups.push(CountedGroup { members: members.collect(), weak: group.weak });
            } else {
                set.groups.extend(members.map(|event| CountedGroup { members: vec![event], weak: false }));
            }
        }
        set
    }

    /// Keeps these probe definitions until the counters are closed.
    pub fn keep(&mut self, probes: Vec<ProbeDefinition>) {
        self.probes = probes;
    }

    /// The events' specs, in order.
    pub fn specs(&self) -> impl ExactSizeIterator<Item = &EventSpec> {
        self.events.iter().map(|event| &event.spec)
    }

    /// The refusal of each event, in order; `None` if the event counts.
    pub fn refusals(&self) -> impl ExactSizeIterator<Item = Option<&Refusal>> {
        self.events.iter().map(|event| event.refusal.as_deref())
    }

    /// For each event, in order: whether it counts only in user mode because this user may not observe the
    /// kernel.
    pub fn user_only(&self) -> impl ExactSizeIterator<Item = bool> {
        let given_up =
            |event: &CounterSetEvent| event.request.as_ref().map(OpenRequest::given_up).unwrap_or_default();
        self.events.iter().map(move |event| given_up(event).has(Fallback::UserOnly))
    }

    /// For each event, in order: whether it counts in kernel mode. Events that were never opened yield
    /// `true`.
    pub fn sees_kernel(&self) -> impl ExactSizeIterator<Item = bool> {
        let sees = |request: &OpenRequest| !request.attr().get(Flag::ExcludeKernel);
        self.events.iter().map(move |event| event.request.as_ref().is_none_or(sees))
    }

    /// The attributes passed to the kernel, in order; `None` for events that need no counter.
    pub fn attrs(&self) -> impl ExactSizeIterator<Item = Option<&Attr>> {
        self.events.iter().map(|event| event.request.as_ref().map(OpenRequest::attr).or(event.spec.attr()))
    }

    /// The index of each event's kernel group, in order. Events with the same index are always counted at the
    /// same time.
    pub fn group_of_events(&self) -> Vec<usize> {
        let mut numbers = vec![0; self.events.len()];
        for (number, group) in self.groups.iter().enumerate() {
            for &event in &group.members {
                numbers[event] = number;
            }
        }
        numbers
    }

    /// The open counters: event index, slot and descriptor.
    pub fn counters(&self) -> impl Iterator<Item = (usize, TargetSlot, &EventFd)> {
        self.bundles
            .iter()
            .flat_map(|bundle| bundle.members.iter().map(|member| (member.event, bundle.slot, &member.fd)))
    }

    /// Number of weak groups that were broken up.
    pub fn broken_groups(&self) -> usize {
        self.broken_groups
    }

    /// Number of descriptors needed to open the set in this many slots.
    pub fn descriptors(&self, slots: usize) -> u64 {
        let per_slot = self.events.iter().filter(|event| event.spec.attr().is_some()).count();
        (per_slot * slots) as u64
    }

    /// Whether no counter is open.
    pub fn is_empty(&self) -> bool {
        self.bundles.is_empty()
    }

    /// Opens every group in this slot, disabled. Skips groups that count whole devices if the slot is a
    /// thread; see [`CounterSet::open_devices`].
    pub fn open(&mut self, slot: TargetSlot) -> SlotOpenResult {
        let mut group = 0;
        while group < self.groups.len() {
            let leader = &self.events[self.groups[group].members[0]].spec;
            let bound = leader.cpus.as_ref();
            let opened = match (slot.tid, slot.cpu) {
                // A device event is opened only once, on the CPUs designated for the device.
                (Some(_), _) if leader.system_wide => SlotOpenResult::Yes,
                // `cpu=LIST` on a task: one counter per listed CPU.
                (Some(_), _) if bound.is_some() => {
                    let cpus = bound.cloned().unwrap_or_default();
                    self.open_on_each(group, slot.tid, &cpus)
                }
                (None, Some(cpu)) if !leader.takes_cpu(cpu) => SlotOpenResult::Yes,
                _ => self.open_group(group, slot),
            };
            if opened == SlotOpenResult::Gone {
                return SlotOpenResult::Gone;
            }
            group += 1;
        }
        SlotOpenResult::Yes
    }

    /// Opens the groups that count whole devices, regardless of the target. Uses the CPUs designated for each
    /// device.
    pub fn open_devices(&mut self, online: &CpuList) {
        for group in 0..self.groups.len() {
            let leader = &self.events[self.groups[group].members[0]].spec;
            if leader.system_wide {
                let cpus =
                    leader.cpus.as_ref().map_or_else(|| online.clone(), |cpus| cpus.intersection(online));
                self.open_on_each(group, None, &cpus);
            }
        }
    }

    fn open_on_each(&mut self, group: usize, tid: Option<u32>, cpus: &CpuList) -> SlotOpenResult {
        let mut there = SlotOpenResult::Gone;
        for cpu in cpus.iter() {
            if self.open_group(group, TargetSlot { tid, cpu: Some(cpu) }) == SlotOpenResult::Yes {
                there = SlotOpenResult::Yes;
            }
        }
        there
    }

    fn open_group(&mut self, group: usize, slot: TargetSlot) -> SlotOpenResult {
        match self.try_group(group, slot) {
            Attempt::Opened(bundle) => {
                self.bundles.extend(bundle);
                SlotOpenResult::Yes
            }
            Attempt::Gone => SlotOpenResult::Gone,
            Attempt::DoesNotFit => {
                self.break_up(group);
                self.open_group(group, slot)
            }
        }
    }

    /// Splits a weak group that the kernel refused into single events, even in slots in which the group was
    /// already open.
    fn break_up(&mut self, group: usize) {
        self.broken_groups += 1;
        let slots: Vec<TargetSlot> =
            self.bundles.iter().filter(|b| b.group == group).map(|b| b.slot).collect();
        self.bundles.retain(|bundle| bundle.group != group);
        let rest = self.groups[group].members.split_off(1);
        self.groups[group].weak = false;
        for event in rest {
            self.events[event].refusal = None;
            self.events[event].refused_in.clear();
            self.groups.push(CountedGroup { members: vec![event], weak: false });
            for &slot in &slots {
                self.open_group(self.groups.len() - 1, slot);
            }
        }
        for slot in slots {
            self.open_group(group, slot);
        }
    }

    fn try_group(&mut self, group: usize, slot: TargetSlot) -> Attempt {
        let CountedGroup { members, weak } = &self.groups[group];
        let (members, weak) = (members.clone(), *weak);
        let grouped = members.len() > 1;
        let mut opened: Vec<Member> = Vec::with_capacity(members.len());
        let on_exec = self.options.enable_on_exec && slot.tid.is_some();
        for (position, &event) in members.iter().enumerate() {
            let counted = &self.events[event];
            let Some(attr) = counted.spec.attr() else { continue };
            if counted.refusal.is_some() {
                self.events[event].refused_in.push(slot);
                continue;
            }
            let leader = &self.events[members[0]];
            if position > 0 && leader.refusal.is_some() {
                // A kernel group cannot exist without its leader.
                let cause = format!("its group leader, {}, cannot be counted", leader.spec.name);
                let known = (RefusalKind::BadRequest, cause.as_str(), "omit the braces");
                let refusal = Refusal::before_the_kernel(&counted.spec.name, attr.clone(), None, known);
                self.refuse(event, slot, Box::new(refusal));
                continue;
            }
            let leads = opened.is_empty();
            let start = match (leads, on_exec) {
                (false, _) => CountingStart::AtOnce,
                (true, false) => CountingStart::Enabled,
                (true, true) => CountingStart::Exec,
            };
            match self.open_event(event, slot, opened.first().map(|leader| &leader.fd), start, grouped) {
                Ok(member) => opened.push(member),
                Err(refusal) if refusal.is_gone() => return Attempt::Gone,
                Err(refusal) if refusal.errno == Some(errno::EINVAL) && weak && !leads => {
                    return Attempt::DoesNotFit;
                }
                // The group is weak: pmc created it, or the user allowed pmc to break it up. Once it is
                // broken up, each event gets a separate refusal.
                Err(_) if weak && leads && grouped => return Attempt::DoesNotFit,
                Err(refusal) => self.refuse(event, slot, Box::new(refusal.after(opened.len()))),
            }
        }
        let bundle = GroupCounters { group, slot, members: opened, grouped, on_exec };
        Attempt::Opened((!bundle.members.is_empty()).then_some(bundle))
    }

    /// Marks an event as refused. An event refused in one slot loses its counters in all slots, since a
    /// partial sum would be wrong.
    fn refuse(&mut self, event: usize, slot: TargetSlot, refusal: Box<Refusal>) {
        let counted = &mut self.events[event];
        for bundle in &mut self.bundles {
            let before = bundle.members.len();
            bundle.members.retain(|member| member.event != event);
            counted.refused_in.extend((bundle.members.len() < before).then_some(bundle.slot));
        }
        self.bundles.retain(|bundle| !bundle.members.is_empty());
        counted.refused_in.push(slot);
        counted.refusal = Some(refusal);
    }

    /// Marks groups as refused if they cannot be opened in any of these slots because they are bound to other
    /// CPUs. The refusal explains why they have no counts.
    pub fn refuse_unplaced(&mut self, slots: &[TargetSlot], online: &CpuList) {
        let counted: Option<CpuList> = slots.iter().map(|slot| slot.cpu).collect();
        for group in &self.groups {
            let Err(refusal) = check_cpus(&self.events[group.members[0]].spec, online, counted.as_ref())
            else {
                continue;
            };
            for &member in &group.members {
                let CounterSetEvent { spec, refusal: refused, refused_in, .. } = &mut self.events[member];
                let own = refused.insert(refusal.clone());
                own.event.clone_from(&spec.name);
                refused_in.extend_from_slice(slots);
            }
        }
    }

    fn open_event(
        &mut self,
        event: usize,
        slot: TargetSlot,
        leader: Option<&EventFd>,
        start: CountingStart,
        grouped: bool,
    ) -> Result<Member, Box<Refusal>> {
        let CountOptions { inherit, levels, .. } = self.options;
        let CounterSetEvent { spec, cgroup, request, .. } = &mut self.events[event];
        let request = match request {
            Some(request) => request,
            None => {
                let mode = if slot.tid.is_some() { Mode::TaskCounting } else { Mode::SystemCounting };
                let callchain = spec.qualifiers.callchain;
                let flags = CounterFlags { descendants: inherit, callchain, ..CounterFlags::default() };
                let made = allocate(spec, mode, flags, slot.cpu.filter(|_| slot.tid.is_none()))?;
                let request = request.insert(made);
                request.levels(levels);
                request
            }
        };
        request.start(start);
        request.read_as_group(grouped);
        let (fd, id) = match grouped {
            true => request.open_with_id(slot, cgroup.as_deref(), leader)?,
            false => (request.open(slot, cgroup.as_deref(), leader)?, 0),
        };
        Ok(Member { event, fd, id })
    }

    /// Starts the counters that the kernel does not start at exec.
    ///
    /// # Errors
    /// Returns the kernel's error for the first counter that it refuses to start.
    pub fn enable(&self) -> io::Result<()> {
        self.bundles.iter().filter(|b| !b.on_exec).try_for_each(|bundle| bundle.members[0].fd.switch(true))
    }

    /// Starts or stops the groups that contain an event selected by `which`. Counts are kept.
    ///
    /// # Errors
    /// Returns the kernel's error for the first counter that it refuses to start or stop.
    pub fn switch_where(&self, on: bool, which: impl Fn(&EventSpec) -> bool) -> io::Result<()> {
        self.leaders(which).try_for_each(|leader| leader.switch(on))
    }

    /// Starts or stops single events, including individual members of groups.
    ///
    /// # Errors
    /// Fails in the same cases as [`CounterSet::switch_where`].
    pub fn switch_each(&self, on: bool, which: impl Fn(&EventSpec) -> bool) -> io::Result<()> {
        let members = self.bundles.iter().flat_map(|bundle| &bundle.members);
        let mut chosen = members.filter(|member| which(&self.events[member.event].spec));
        chosen.try_for_each(|member| member.fd.switch(on))
    }

    /// Changes the event with this name, or all events if no name is given. `is_on` is true if they are
    /// currently counting.
    ///
    /// # Errors
    /// Fails in the same cases as [`EventChange::make`].
    pub fn change(&self, change: EventChange, name: Option<&str>, is_on: bool) -> Result<(), String> {
        let members = self.bundles.iter().flat_map(|bundle| &bundle.members).filter_map(|member| {
            let event = &self.events[member.event];
            let is_meant = name.is_none_or(|name| name == event.spec.name);
            event.request.as_ref().filter(|_| is_meant).map(|request| (request.attr(), &member.fd))
        });
        change.make(members, is_on)
    }

    /// The events' names and the attributes requested for them, in order.
    pub fn requests(&self) -> impl Iterator<Item = (&str, &Attr)> {
        self.events.iter().filter_map(|event| Some((event.spec.name.as_str(), event.spec.attr()?)))
    }

    /// Applies the filters of the tracepoints.
    ///
    /// # Errors
    /// Returns the kernel's error for the first filter that it refuses, with the event and the filter text.
    pub fn set_filters(&self) -> Result<(), filters::RefusedFilter<'_>> {
        let members = self.bundles.iter().flat_map(|bundle| &bundle.members);
        filters::set(members.map(|member| (&self.events[member.event].spec, &member.fd)))
    }

    fn leaders(&self, which: impl Fn(&EventSpec) -> bool) -> impl Iterator<Item = &EventFd> {
        self.bundles
            .iter()
            .filter(move |b| b.members.iter().any(|m| which(&self.events[m.event].spec)))
            .map(|b| &b.members[0].fd)
    }

    /// Reads every counter once, and passes each reading to `receive`. Then passes a reading without a count
    /// for each slot in which a refused event would have been opened.
    ///
    /// # Errors
    /// Returns the kernel's error. While inherited counters are changing, reads can fail with `ECHILD`; pmc
    /// retries them a few times.
    pub fn read(&mut self, mut receive: impl FnMut(CounterReading)) -> io::Result<()> {
        for bundle in &self.bundles {
            let GroupCounters { slot, members, grouped, .. } = bundle;
            if *grouped {
                // The kernel writes nr, enabled and running, then value and id for each member.
                self.words.resize(3 + 2 * members.len(), 0);
                let got = read_again(&members[0].fd, &mut self.words)?.min(self.words.len());
                // Reading a leader in the error state (pinned, but without a counter) returns nothing.
                let (times, values) = self.words[..got].split_at(got.min(3));
                for member in members {
                    let value = values.chunks_exact(2).find(|pair| pair[1] == member.id);
                    let count = value.map(|pair| Count {
                        value: pair[0],
                        enabled_ns: times[1],
                        running_ns: times[2],
                    });
                    receive(CounterReading { event: member.event, slot: *slot, count });
                }
            } else {
                self.words.resize(3, 0);
                let Member { event, fd, .. } = &members[0];
                let got = read_again(fd, &mut self.words)?;
                let count = (got == 3).then(|| Count {
                    value: self.words[0],
                    enabled_ns: self.words[1],
                    running_ns: self.words[2],
                });
                receive(CounterReading { event: *event, slot: *slot, count });
            }
        }
        for (event, counted) in self.events.iter().enumerate() {
            counted.refused_in.iter().for_each(|&slot| receive(CounterReading { event, slot, count: None }));
        }
        Ok(())
    }

    /// Number of open tracepoint counters. The kernel takes about 35 ms to close each one, so a child process
    /// may close them instead. Returns 0 if pmc defined probes. Probes can only be removed after their
    /// counters are closed, so pmc must close those itself.
    pub fn slow_to_close(&self) -> usize {
        if !self.probes.is_empty() {
            return 0;
        }
        let slow =
            |event: usize| self.events[event].spec.attr().is_some_and(|a| a.kind() == kind::TRACEPOINT);
        self.bundles.iter().flat_map(|bundle| &bundle.members).filter(|member| slow(member.event)).count()
    }
}

enum Attempt {
    Opened(Option<GroupCounters>),
    DoesNotFit,
    Gone,
}

fn read_again(fd: &EventFd, words: &mut [u64]) -> io::Result<usize> {
    for _ in 0..16 {
        match fd.read(words) {
            Err(error) if error.raw_os_error() == Some(errno::ECHILD) => std::thread::yield_now(),
            other => return other,
        }
    }
    fd.read(words)
}
