//! Where a measurement's records come from: rings of our own, and those of holders of persistent events.
//!
//! ```text
//!   events: ours │ of each holder's entry │ our tracker │ of each entry its tracker
//!   rings:  ours │ of each holder's entry
//! ```
//! Receives a plan and its events; hands on one list of events, of instances and of rings, and the records,
//! whoever has them open. Leaves opening to [`open`](super::open), asking holders to [`relay`](super::relay).

use super::held_counts::HeldCounts;
use super::open::Groups;
use super::plan::{SamplePlan, Scope};
use super::relay::Relay;
use super::reservation::EventChoice;
use super::{handover, open, synthesize};
use crate::abi::{Attr, sample_type};
use crate::counter::request::sampling::SampleOptions;
use crate::counter::rings::{Instance, Reading, Rings};
use crate::counter::target::TargetSlot;
use crate::error::{Error, Result};
use crate::event::{EventSpec, Source};
use crate::host::Host;
use crate::host::process::Thread as Alive;
use crate::perfdata::RecordedEvent;
use crate::persistent::directory::RunDirectory;
use crate::record::encode::Encoder;
use crate::sys::process::Held;

/// Rings of our own, and of holders.
pub(crate) struct Sources {
    pub(super) rings: Rings,
    /// With their events' names.
    relays: Vec<(String, Relay)>,
    counts: HeldCounts,
}

/// Whether an event is kept open by a holder.
fn is_held(spec: &EventSpec) -> bool {
    matches!(spec.source, Source::Held(_))
}

/// Has a plan agree with those of its events that a holder keeps open: they run as they were added.
///
/// # Errors
/// What the plan asks of them besides.
pub(crate) fn settle(plan: &mut SamplePlan, groups: &Groups, host: &Host) -> Result<()> {
    let mut all = groups.iter().flat_map(|(group, _)| &group.events);
    let Some(held) = all.clone().find(|spec| is_held(spec)) else { return Ok(()) };
    refuse_targets(held, &plan.scope, host)?;
    let clock = open::held_options().clock;
    if plan.options.clock.is_some_and(|own| Some(own) != clock) {
        return Err(Error::usage(format!("{} uses the monotonic clock", held.name))
            .try_this("-k monotonic, for all events"));
    }
    plan.options.clock = clock;
    if !all.all(is_held) {
        return Ok(());
    }
    match chosen(plan) {
        Some(asked) => Err(as_it_was_added(held, asked)),
        None => Ok(()),
    }
}

/// What a plan asks of events that are opened for it, and cannot have of one that is open.
fn chosen(plan: &SamplePlan) -> Option<&'static str> {
    let options = &plan.options;
    let usual = SampleOptions::default();
    let asked = [
        (options.rate != usual.rate, "a rate (-F, -c)"),
        (options.branches.is_some(), "branches (-j, -b)"),
        // Who sorts by CPU has it of whole CPUs.
        (
            options.data_mappings || options.fields & !sample_type::CPU != 0,
            "fields of samples (-d, -W, --phys-data and the like)",
        ),
        (!options.inherit, "no children (-i)"),
        (options.levels != usual.levels, "a level (--all-user, --all-kernel)"),
        (options.intr_regs.is_some() || options.user_regs.is_some(), "registers (--intr-regs, --user-regs)"),
        (options.period.is_some(), "the period in samples (-P, --no-period)"),
        (options.max_stack.is_some(), "the depth of stacks (--max-stack)"),
        (options.backward, "which records full rings keep (--overwrite, -S)"),
        (options.no_samples, "no samples (-n)"),
        (options.stat, "counts of threads (-s)"),
        (plan.per_thread, "threads (--per-thread)"),
    ];
    asked.into_iter().find_map(|(is_asked, what)| is_asked.then_some(what))
}

/// Refuses targets beside an event that a holder keeps open: its own were chosen when it was added.
///
/// # Errors
/// The first such event, where processes or some CPUs were named.
pub(super) fn refuse_other_targets<'a>(
    mut events: impl Iterator<Item = &'a EventSpec>,
    scope: &Scope,
    host: &Host,
) -> Result<()> {
    events.find(|spec| is_held(spec)).map_or(Ok(()), |held| refuse_targets(held, scope, host))
}

fn refuse_targets(held: &EventSpec, scope: &Scope, host: &Host) -> Result<()> {
    match scope {
        Scope::Command | Scope::AllThreads => Ok(()),
        Scope::Cpus(cpus) if *cpus == host.online_cpus() => Ok(()),
        Scope::Cpus(_) => Err(as_it_was_added(held, "CPUs (-C)")),
        _ => Err(as_it_was_added(held, "processes (-p, -t, -u)")),
    }
}

fn as_it_was_added(held: &EventSpec, asked: &str) -> Error {
    Error::usage(format!("{}: cannot change {asked} of a running event", held.name))
        .try_this("pmc persist add ANOTHER -e EVENT, with other options")
        .try_this("pmc report --pid, --tid or --cpu, which filter the recording")
}

impl Sources {
    /// Opens the events wherever the scope says, maps their rings, and finds the holders of those that are
    /// held. With the threads that are sampled.
    ///
    /// # Errors
    /// As [`open::open`]; a holder that does not answer; what cannot be had of an event that is held.
    pub(crate) fn open(
        plan: &SamplePlan,
        host: &Host,
        groups: Groups,
        command: Option<&Held>,
    ) -> Result<(Self, Vec<Alive>)> {
        let (held, own): (Groups, Groups) =
            groups.into_iter().partition(|(group, _)| group.events.iter().any(is_held));
        let specs: Vec<&EventSpec> = held.iter().flat_map(|(group, _)| &group.events).collect();
        if let Some((group, _)) = held.iter().find(|(group, cgroup)| group.braces || cgroup.is_some()) {
            let name = &group.events[0].name;
            return Err(Error::usage(format!("{name}: a held event cannot join a group or cgroup"))
                .try_this("list each event separately, without -G"));
        }
        let counts = HeldCounts::of(specs.iter().copied());
        let relays = specs.iter().map(|spec| relay(spec, plan)).collect::<Result<Vec<_>>>()?;
        let (rings, threads) = match (own.is_empty(), relays.is_empty()) {
            (_, true) => open::open(plan, host, own, command)?,
            (false, _) => open::open(&SamplePlan { with_id: true, ..plan.clone() }, host, own, command)?,
            (true, _) => (open::none()?, Vec::new()),
        };
        Ok((Self { rings, relays, counts }, threads))
    }

    /// Rings that are open already.
    pub(crate) fn of(rings: Rings) -> Self {
        Self { rings, relays: Vec::new(), counts: HeldCounts::of([].iter()) }
    }

    /// Whether all is our own.
    pub(super) fn are_own(&self) -> bool {
        self.relays.is_empty()
    }

    /// Rings of our own.
    pub(crate) fn rings(&self) -> &Rings {
        &self.rings
    }

    /// The events, in their order.
    pub(crate) fn events(&self) -> Vec<RecordedEvent> {
        let own = self.rings.events().map(|(spec, attr, ids)| RecordedEvent {
            attr: attr.clone(),
            ids,
            name: Some(spec.name.clone()),
        });
        let mut own: Vec<RecordedEvent> = own.collect();
        let trackers = own.split_off(self.rings.sampled_events());
        let (sampled, theirs): (Vec<_>, Vec<_>) =
            self.relays.iter().map(|(_, relay)| relay.events.split_at(relay.sampled_events())).unzip();
        own.into_iter().chain(sampled.concat()).chain(trackers).chain(theirs.concat()).collect()
    }

    /// How many of them are sampled: the first ones. The others tell of mappings and tasks.
    pub(crate) fn sampled_events(&self) -> usize {
        self.rings.sampled_events() + self.held_events()
    }

    fn held_events(&self) -> usize {
        self.relays.iter().map(|(_, relay)| relay.sampled_events()).sum()
    }

    /// Indices of the events of each kernel group.
    pub(crate) fn groups(&self) -> Vec<Vec<usize>> {
        let own =
            self.rings.groups().iter().map(|group| group.iter().map(|&event| self.index(event)).collect());
        let mut groups: Vec<Vec<usize>> = own.collect();
        let known: usize = groups.iter().map(Vec::len).sum();
        debug_assert_eq!(known, self.rings.events().count());
        let first = self.rings.sampled_events();
        let trackers = self.sampled_events() + (known - first);
        groups.extend((first..self.sampled_events()).chain(trackers..self.events().len()).map(|at| vec![at]));
        groups
    }

    /// Where an event of our own stands among all.
    fn index(&self, own: usize) -> usize {
        if own < self.rings.sampled_events() { own } else { own + self.held_events() }
    }

    /// For each ring the id that misattributed samples in it belong to.
    pub(crate) fn owners(&self) -> Vec<Option<u64>> {
        let held = self.relays.iter().flat_map(|(_, relay)| relay.snapshot.owners.iter().copied());
        self.rings.passed_on().into_iter().chain(held).collect()
    }

    /// Every id with its ring, CPU and thread (−1: any), as readers of recordings have it.
    pub(super) fn id_index(&self, out: &mut Encoder) {
        let any = |number: Option<u32>| number.map_or(u64::MAX, u64::from);
        let own = |one: Instance| [one.id, one.ring as u64, any(one.slot.cpu), any(one.slot.tid)];
        let mut rows: Vec<[u64; 4]> = self.rings.instances().map(own).collect();
        let mut first = self.rings.rings();
        for (_, relay) in &self.relays {
            let of = |one: &[u64; 4]| [one[0], one[1] + first as u64, one[2], one[3]];
            rows.extend(relay.snapshot.open.instances.iter().map(of));
            first += relay.rings();
        }
        out.id_index(&rows);
    }

    /// Adds those to the processes that are told of whom the events of holders are open on, and the idle
    /// tasks of CPUs.
    pub(super) fn add_targets(&self, pids: Vec<u32>, host: &Host, out: &mut Encoder) -> Result<Vec<u32>> {
        let mut pids = pids;
        for (_, relay) in &self.relays {
            match relay.scope()? {
                Scope::Cpus(cpus) => {
                    synthesize::idle(&cpus, out);
                    pids = host.processes();
                }
                scope => pids.extend(synthesize::pids(&handover::threads(&scope, host))),
            }
        }
        pids.sort_unstable();
        pids.dedup();
        Ok(pids)
    }

    /// Shows what waits in every ring to `take`: the ring's index, and one or two slices. Bytes in all.
    ///
    /// # Errors
    /// What `take` says, and the holders.
    pub(super) fn drain<E>(
        &mut self,
        mut take: impl FnMut(usize, &[&[u8]]) -> std::result::Result<(), E>,
    ) -> Result<u64>
    where
        Error: From<E>,
    {
        let mut bytes = self.rings.drain(&mut take)?;
        let mut first = self.rings.rings();
        for (_, relay) in &mut self.relays {
            bytes += relay.drain(|ring, records| take(first + ring, &[records]))?;
            first += relay.rings();
        }
        Ok(bytes)
    }

    /// Nanoseconds until they must be drained again, at most `usual`.
    pub(super) fn pace(&self, usual: u64) -> u64 {
        self.relays.iter().map(|(_, relay)| relay.pace).fold(usual, u64::min)
    }

    /// Which holders' events have ended since this was asked last, and why: their holder has ended, has let
    /// them go, or does not answer.
    pub(super) fn newly_gone(&mut self) -> Vec<(String, Error)> {
        let gone = |(name, relay): &mut (String, Relay)| Some((name.clone(), relay.newly_gone()?));
        self.relays.iter_mut().filter_map(gone).collect()
    }

    /// Whether all events were of holders, and have ended.
    pub(super) fn are_gone(&self) -> bool {
        let own = self.rings.instances().next().is_some();
        !own && !self.relays.is_empty() && self.relays.iter().all(|(_, relay)| relay.is_gone())
    }

    /// What holders' rings had no room for while we recorded: an instance, and how many records.
    pub(crate) fn lost_elsewhere(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.relays.iter().map(|(_, relay)| relay.lost())
    }

    /// Starts what the kernel does not start by itself at exec.
    pub(super) fn start(&mut self) -> Result<()> {
        self.switch_held(true)?;
        self.rings.start().map_err(open::starting)
    }

    /// Starts or stops some events, whatever started them before; of holders' events, taking their records.
    pub(super) fn switch(&mut self, on: bool, events: EventChoice) -> Result<()> {
        // What is held takes no counter of ours.
        if events.has(false) {
            self.switch_held(on)?;
        }
        open::switch(&self.rings, on, events)
    }

    /// Starts or stops the event of this name, if it is among these.
    pub(super) fn switch_named(&mut self, on: bool, name: &str, events: EventChoice) -> Result<()> {
        let of_name = self.relays.iter_mut().filter(|(own, _)| own == name && events.has(false));
        of_name.map(|(_, relay)| relay).try_for_each(|relay| relay.switch(on))?;
        open::switch_named(&self.rings, on, name, events)
    }

    fn switch_held(&mut self, on: bool) -> Result<()> {
        self.counts.switch(on)?;
        self.relays.iter_mut().try_for_each(|(_, relay)| relay.switch(on))
    }

    /// The events' names, with what was asked of the kernel for them.
    pub(super) fn requests(&self) -> Vec<(&str, &Attr)> {
        let held =
            self.relays.iter().filter_map(|(name, relay)| Some((&**name, &relay.events.first()?.attr)));
        self.rings.requests().chain(held).collect()
    }

    /// Whether any of our own events takes a counter of the hardware.
    pub(super) fn takes_counters(&self) -> bool {
        self.rings.events().any(|(spec, ..)| spec.takes_counter())
    }

    /// What each instance has counted, and what its ring had no room for. What holders' events have counted
    /// is by CPU, while it was taken.
    pub(super) fn read(&self) -> Vec<Reading> {
        let mut readings = self.rings.read();
        readings.iter_mut().for_each(|reading| reading.instance.event = self.index(reading.instance.event));
        // A holder that has gone has said so before.
        let held = self.counts.read();
        let first = |relay: usize| -> usize {
            self.relays[..relay].iter().map(|(_, relay)| relay.sampled_events()).sum()
        };
        readings.extend(held.into_iter().map(|one| {
            let event = self.rings.sampled_events() + first(one.event) + one.member;
            let slot = TargetSlot { tid: None, cpu: one.cpu };
            let instance = Instance { event, id: 0, ring: 0, slot };
            Reading { instance, count: one.count.unwrap_or_default(), lost: 0 }
        }));
        readings
    }
}

/// Finds the holder of an event.
fn relay(spec: &EventSpec, plan: &SamplePlan) -> Result<(String, Relay)> {
    let Source::Held(held) = &spec.source else {
        return Err(Error::new(format!("{}: no holder has it open", spec.name)));
    };
    let relay = Relay::open(RunDirectory::at(&held.run_directory), held.id, plan.backlog)?;
    let has_chains = |event: &RecordedEvent| event.attr.sample_type() & sample_type::CALLCHAIN != 0;
    if plan.options.call_graph.is_some() && !relay.events.iter().any(has_chains) {
        return Err(Error::usage(format!("{}: its samples have no call chains", spec.name))
            .try_this("pmc persist add ANOTHER -e EVENT --call-graph fp"));
    }
    Ok((spec.name.clone(), relay))
}
