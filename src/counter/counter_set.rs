//! A list of event groups, opened in many places, read as one.
//!
//! Receives groups and, one after another, the slots (threads, CPUs) where they shall count. Remembers for
//! each event whether the kernel took it; an event that is refused once is not tried again. Hands on counts
//! by event and slot. Adds nothing up: `profile` does.
//!
//! ```text
//!              group 0          group 1
//!            ┌───────────┐  ┌─────────────┐
//!   slot A   │ cycles    │  │ page-faults │      a bundle: the descriptors of one group in one slot;
//!            │ instr.    │  └─────────────┘      the first leads, one read(2) gives all of a kernel group
//!            └───────────┘
//!   slot B   │ cycles …  │  │ page-faults │
//! ```

use std::io;
use std::os::fd::AsFd;
use std::rc::Rc;

use super::target::Cgroup;
use super::{Allocated, Flags, Mode, allocate};
use crate::abi::attr::{Flag, kind};
use crate::abi::{Attr, read_format};
use crate::event::{EventGroup, EventSpec};
use crate::host::CpuList;
use crate::sys::errno;
use crate::sys::perf::{EventFd, OpenTarget};
use crate::units::Count;

/// Where a bundle counts: a thread, a CPU, or a thread while it is on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TargetSlot {
    /// The thread; `None`: everything on the CPU.
    pub tid: Option<u32>,
    /// The CPU; `None`: wherever the thread runs.
    pub cpu: Option<u32>,
}

/// Which privilege levels are counted where the event's text does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Levels {
    /// As the events say.
    #[default]
    AsWritten,
    /// `--all-user`.
    User,
    /// `--all-kernel`.
    Kernel,
}

/// How the set is opened.
#[derive(Debug, Clone, Copy, Default)]
pub struct CountOptions {
    /// Children are counted too.
    pub inherit: bool,
    /// Counting starts when the (held) task executes its command.
    pub enable_on_exec: bool,
    /// Levels for all events.
    pub levels: Levels,
}

/// What became of an event.
#[derive(Debug, Default)]
pub struct Fate {
    /// Why the kernel would not have it. Such an event has no counters.
    pub refused: Option<Refused>,
    /// Only user mode is counted, since the kernel's is not allowed.
    pub user_only: bool,
    /// Guests and host are counted together, since the PMU cannot tell them apart.
    pub all_sides: bool,
}

/// A refusal as it happened.
#[derive(Debug)]
pub struct Refused {
    /// What the kernel said.
    pub error: io::Error,
    /// What it was asked.
    pub attr: Attr,
    /// Where.
    pub slot: TargetSlot,
    /// Members of its kernel group that were open already: the group as a whole may be what does not fit.
    pub group_before: usize,
    /// The event itself was not tried, because its group's leader (an index into the events) was refused.
    pub leader: Option<usize>,
}

/// Events opened together in one slot.
#[derive(Debug)]
struct Bundle {
    group: usize,
    slot: TargetSlot,
    /// The first leads.
    members: Vec<Member>,
    /// One read gives all members.
    grouped: bool,
    /// The kernel starts it at exec.
    on_exec: bool,
}

/// One event's counter in one slot.
#[derive(Debug)]
struct Member {
    /// Index into the events.
    event: usize,
    fd: EventFd,
    /// The kernel's id, by which its value is found in a read of the group; 0 outside one.
    id: u64,
}

#[derive(Debug)]
struct CountedGroup {
    /// Indices into `events`.
    members: Vec<usize>,
    weak: bool,
}

#[derive(Debug)]
struct CountedEvent {
    spec: EventSpec,
    cgroup: Option<Rc<Cgroup>>,
    fate: Fate,
}

/// Event groups and their counters.
#[derive(Debug)]
pub struct CounterSet {
    options: CountOptions,
    events: Vec<CountedEvent>,
    groups: Vec<CountedGroup>,
    bundles: Vec<Bundle>,
    broken_groups: usize,
    words: Vec<u64>,
}

/// One event's counter in one slot, read.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    /// Index into the events, in the order of [`CounterSet::new`].
    pub event: usize,
    /// Where.
    pub slot: TargetSlot,
    /// The totals since the counter was opened; `None` when a pinned event could not be put on a counter.
    pub count: Option<Count>,
}

/// What came of opening in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    /// The slot is there; events may have been refused.
    Yes,
    /// The thread or CPU is gone.
    Gone,
}

impl CounterSet {
    /// A set of nothing opened yet. Events are numbered through the groups in order; each may be bound to a cgroup.
    pub fn new(groups: Vec<(EventGroup, Option<Rc<Cgroup>>)>, options: CountOptions) -> Self {
        let mut set = Self {
            options,
            events: Vec::new(),
            groups: Vec::new(),
            bundles: Vec::new(),
            broken_groups: 0,
            words: Vec::new(),
        };
        for (group, cgroup) in groups {
            let first = set.events.len();
            let events = group.events.into_iter();
            set.events.extend(events.map(|spec| CountedEvent {
                spec,
                cgroup: cgroup.clone(),
                fate: Fate::default(),
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

    /// The events' specs, in order.
    pub fn specs(&self) -> impl ExactSizeIterator<Item = &EventSpec> {
        self.events.iter().map(|event| &event.spec)
    }

    /// What became of each event, in order.
    pub fn fates(&self) -> impl ExactSizeIterator<Item = &Fate> {
        self.events.iter().map(|event| &event.fate)
    }

    /// The number of the kernel group that each event is in, in order: events with the same number are counted
    /// over exactly the same time.
    pub fn group_of_events(&self) -> Vec<usize> {
        let mut numbers = vec![0; self.events.len()];
        for (number, group) in self.groups.iter().enumerate() {
            for &event in &group.members {
                numbers[event] = number;
            }
        }
        numbers
    }

    /// How many weak groups had to be broken up.
    pub fn broken_groups(&self) -> usize {
        self.broken_groups
    }

    /// Descriptors that opening in this many slots takes.
    pub fn descriptors(&self, slots: usize) -> u64 {
        let per_spot = self.events.iter().filter(|event| event.spec.attr().is_some()).count();
        (per_spot * slots) as u64
    }

    /// Whether any counter is open.
    pub fn is_empty(&self) -> bool {
        self.bundles.is_empty()
    }

    /// Opens every group in this slot, disabled. Groups that count whole devices are left to [`CounterSet::open_devices`] in a
    /// thread's slot.
    pub fn open(&mut self, slot: TargetSlot) -> Opened {
        let mut group = 0;
        while group < self.groups.len() {
            let leader = &self.events[self.groups[group].members[0]].spec;
            let bound = leader.cpus.as_ref();
            let opened = match (slot.tid, slot.cpu) {
                // What counts a device is opened once, on the CPUs that stand for it.
                (Some(_), _) if leader.uncore => Opened::Yes,
                // `cpu=LIST` on a task: a counter for each of these CPUs.
                (Some(_), _) if bound.is_some() => {
                    let cpus = bound.cloned().unwrap_or_default();
                    self.open_on_each(group, slot.tid, &cpus)
                }
                (None, Some(cpu)) => {
                    let there = |cpus: Option<&CpuList>| cpus.is_none_or(|cpus| cpus.contains(cpu));
                    if there(bound) && there(leader.core_cpus.as_ref()) {
                        self.open_group(group, slot)
                    } else {
                        Opened::Yes
                    }
                }
                _ => self.open_group(group, slot),
            };
            if opened == Opened::Gone {
                return Opened::Gone;
            }
            group += 1;
        }
        Opened::Yes
    }

    /// Opens the groups that count a whole device, whatever the target, on the CPUs that stand for it.
    pub fn open_devices(&mut self, online: &CpuList) {
        for group in 0..self.groups.len() {
            let leader = &self.events[self.groups[group].members[0]].spec;
            if leader.uncore {
                let cpus =
                    leader.cpus.as_ref().map_or_else(|| online.clone(), |cpus| cpus.intersection(online));
                self.open_on_each(group, None, &cpus);
            }
        }
    }

    fn open_on_each(&mut self, group: usize, tid: Option<u32>, cpus: &CpuList) -> Opened {
        let mut there = Opened::Gone;
        for cpu in cpus.iter() {
            if self.open_group(group, TargetSlot { tid, cpu: Some(cpu) }) == Opened::Yes {
                there = Opened::Yes;
            }
        }
        there
    }

    fn open_group(&mut self, group: usize, slot: TargetSlot) -> Opened {
        match self.try_group(group, slot) {
            Attempt::Opened(bundle) => {
                self.bundles.extend(bundle);
                Opened::Yes
            }
            Attempt::Gone => Opened::Gone,
            Attempt::DoesNotFit => {
                self.break_up(group);
                self.open_group(group, slot)
            }
        }
    }

    /// A weak group that the kernel refuses becomes single events, where it was already opened too.
    fn break_up(&mut self, group: usize) {
        self.broken_groups += 1;
        let slots: Vec<TargetSlot> =
            self.bundles.iter().filter(|b| b.group == group).map(|b| b.slot).collect();
        self.bundles.retain(|bundle| bundle.group != group);
        let rest = self.groups[group].members.split_off(1);
        self.groups[group].weak = false;
        for event in rest {
            self.events[event].fate = Fate::default();
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
            let Some(attr) = self.events[event].spec.attr().cloned() else { continue };
            if self.events[event].fate.refused.is_some() {
                continue;
            }
            if position > 0 && self.events[members[0]].fate.refused.is_some() {
                // Without its leader the kernel's group cannot be.
                let error = io::Error::from_raw_os_error(errno::EINVAL);
                let leader = Some(members[0]);
                let refused = Refused { error, attr, slot, group_before: 0, leader };
                self.refuse(event, refused);
                continue;
            }
            let leads = opened.is_empty();
            match self
                .open_event(event, slot, opened.first().map(|leader| &leader.fd), leads && on_exec, grouped)
                .and_then(|fd| {
                    Member::new(event, fd, grouped).map_err(|error| Denied::new(Some(&attr), error))
                }) {
                Ok(member) => opened.push(member),
                Err(Denied { attr, error }) => match error.raw_os_error() {
                    Some(errno::ESRCH) if slot.tid.is_some() => return Attempt::Gone,
                    Some(errno::ENODEV) if slot.cpu.is_some() => return Attempt::Gone,
                    Some(errno::EINVAL) if weak && !leads => return Attempt::DoesNotFit,
                    // Nobody wrote the group as such, or he said that it may be broken: each event has its own fate.
                    _ if weak && leads && grouped => return Attempt::DoesNotFit,
                    _ => {
                        let group_before = opened.len();
                        self.refuse(event, Refused { error, attr: *attr, slot, group_before, leader: None });
                    }
                },
            }
        }
        let bundle = Bundle { group, slot, members: opened, grouped, on_exec };
        Attempt::Opened((!bundle.members.is_empty()).then_some(bundle))
    }

    /// An event that is refused in one slot has no counters in any: a sum with holes would be wrong.
    fn refuse(&mut self, event: usize, refused: Refused) {
        for bundle in &mut self.bundles {
            bundle.members.retain(|member| member.event != event);
        }
        self.bundles.retain(|bundle| !bundle.members.is_empty());
        self.events[event].fate.refused = Some(refused);
    }

    /// Opens one event, giving up one by one what the kernel may not have: the kernel's levels where this user may not see
    /// them, the exclusion of guests where the PMU cannot tell guests apart.
    fn open_event(
        &mut self,
        event: usize,
        slot: TargetSlot,
        leader: Option<&EventFd>,
        on_exec: bool,
        grouped: bool,
    ) -> Result<EventFd, Denied> {
        let options = self.options;
        let CountedEvent { spec, cgroup, fate } = &mut self.events[event];
        let mode = if slot.tid.is_some() { Mode::TaskCounting } else { Mode::SystemCounting };
        let flags = Flags { descendants: options.inherit, ..Flags::default() };
        let mut request = allocate(spec, mode, flags, slot.cpu.filter(|_| slot.tid.is_none()))
            .map_err(|error| Denied::new(spec.attr(), error))?;
        let attr = request.attr_mut();
        attr.set(Flag::Disabled, leader.is_none());
        attr.set(Flag::EnableOnExec, on_exec);
        if grouped {
            attr.set_read_format(attr.read_format() | read_format::GROUP | read_format::ID);
        }
        match options.levels {
            Levels::AsWritten => {}
            Levels::User => {
                attr.set(Flag::ExcludeKernel, true);
                attr.set(Flag::ExcludeUser, false);
            }
            Levels::Kernel => {
                attr.set(Flag::ExcludeKernel, false);
                attr.set(Flag::ExcludeUser, true);
            }
        }
        if fate.user_only {
            drop_kernel(&mut request);
        }
        if fate.all_sides {
            drop_sides(&mut request);
        }
        let place = match (slot.tid, slot.cpu, cgroup.as_deref()) {
            (_, Some(cpu), Some(cgroup)) => OpenTarget::CgroupOnCpu(cgroup.as_fd(), cpu),
            (Some(tid), Some(cpu), None) => OpenTarget::TaskOnCpu(tid, cpu),
            (Some(tid), None, _) => OpenTarget::Task(tid),
            (None, Some(cpu), None) => OpenTarget::Cpu(cpu),
            (None, None, _) => {
                return Err(Denied::new(Some(request.attr()), io::Error::from_raw_os_error(errno::EINVAL)));
            }
        };
        let mut error = match request.open(place, leader) {
            Err(error) => error,
            Ok(fd) => return Ok(fd),
        };
        if error.raw_os_error() == Some(errno::EACCES)
            && !request.attr().get(Flag::ExcludeKernel)
            && !request.attr().get(Flag::ExcludeUser)
        {
            drop_kernel(&mut request);
            match request.open(place, leader) {
                Ok(fd) => {
                    fate.user_only = true;
                    return Ok(fd);
                }
                Err(again) => error = again,
            }
        }
        if error.raw_os_error() == Some(errno::EINVAL)
            && (request.attr().get(Flag::ExcludeGuest) || request.attr().get(Flag::ExcludeHost))
            && !spec.sides_chosen
        {
            drop_sides(&mut request);
            if let Ok(fd) = request.open(place, leader) {
                fate.all_sides = true;
                return Ok(fd);
            }
        }
        Err(Denied::new(Some(request.attr()), error))
    }

    /// Starts what the kernel does not start by itself at exec.
    ///
    /// # Errors
    /// What the kernel says of the first counter that it refuses to start.
    pub fn enable(&self) -> io::Result<()> {
        self.bundles.iter().filter(|b| !b.on_exec).try_for_each(|bundle| bundle.members[0].fd.enable(false))
    }

    /// Starts the counters whose event is chosen by `which` (an event index), whatever started them before.
    ///
    /// # Errors
    /// As [`CounterSet::enable`].
    pub fn enable_where(&self, which: impl Fn(usize) -> bool) -> io::Result<()> {
        self.leaders(which).try_for_each(|leader| leader.enable(false))
    }

    /// Stops the counters whose event is chosen by `which`; they keep their counts.
    ///
    /// # Errors
    /// What the kernel says of the first counter that it refuses to stop.
    pub fn disable_where(&self, which: impl Fn(usize) -> bool) -> io::Result<()> {
        self.leaders(which).try_for_each(|leader| leader.disable(false))
    }

    fn leaders(&self, which: impl Fn(usize) -> bool) -> impl Iterator<Item = &EventFd> {
        self.bundles
            .iter()
            .filter(move |b| b.members.iter().any(|m| which(m.event)))
            .map(|b| &b.members[0].fd)
    }

    /// Reads every counter once.
    ///
    /// # Errors
    /// The kernel's; a group whose inherited copies are just changing (`ECHILD`) is tried again a few times.
    pub fn read(&mut self, mut receive: impl FnMut(Reading)) -> io::Result<()> {
        for bundle in &self.bundles {
            let Bundle { slot, members, grouped, .. } = bundle;
            if *grouped {
                // nr, enabled, running, then value and id for each member
                self.words.resize(3 + 2 * members.len(), 0);
                let got = read_again(&members[0].fd, &mut self.words)?.min(self.words.len());
                // A leader that is in error (pinned, without a counter) reads nothing.
                let (times, values) = self.words[..got].split_at(got.min(3));
                for member in members {
                    let value = values.chunks_exact(2).find(|pair| pair[1] == member.id);
                    let count = value.map(|pair| Count {
                        value: pair[0],
                        enabled_ns: times[1],
                        running_ns: times[2],
                    });
                    receive(Reading { event: member.event, slot: *slot, count });
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
                receive(Reading { event: *event, slot: *slot, count });
            }
        }
        Ok(())
    }

    /// How many open counters the kernel takes some 35 ms each to close: tracepoints and probes.
    pub fn slow_to_close(&self) -> usize {
        let slow =
            |event: usize| self.events[event].spec.attr().is_some_and(|a| a.kind() == kind::TRACEPOINT);
        self.bundles.iter().flat_map(|bundle| &bundle.members).filter(|member| slow(member.event)).count()
    }
}

impl Member {
    fn new(event: usize, fd: EventFd, grouped: bool) -> io::Result<Self> {
        let id = if grouped { fd.id()? } else { 0 };
        Ok(Self { event, fd, id })
    }
}

/// A request that the kernel would not have, as it was last put.
struct Denied {
    attr: Box<Attr>,
    error: io::Error,
}

impl Denied {
    fn new(attr: Option<&Attr>, error: io::Error) -> Self {
        Self { attr: Box::new(attr.cloned().unwrap_or_default()), error }
    }
}

enum Attempt {
    Opened(Option<Bundle>),
    DoesNotFit,
    Gone,
}

fn drop_kernel(request: &mut Allocated) {
    request.attr_mut().set(Flag::ExcludeKernel, true);
    request.attr_mut().set(Flag::ExcludeHv, true);
}

fn drop_sides(request: &mut Allocated) {
    request.attr_mut().set(Flag::ExcludeGuest, false);
    request.attr_mut().set(Flag::ExcludeHost, false);
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
