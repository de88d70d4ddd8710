//! The sources of a measurement's records: our own rings, and the rings of processes that hold persistent
//! events.
//!
//! ```text
//!   events: ours │ of each holder's entry │ our tracker │ the tracker of each entry
//!   rings:  ours │ of each holder's entry
//! ```
//! Receives a plan and its events; combines all sources into one list each of events, instances and rings.
//! Delivers the records of all sources. [`open`](super::open) opens our events, and [`relay`](super::relay)
//! requests records from the holders.

use super::held_counts::HeldCounts;
use super::open::Groups;
use super::plan::{MeasurementScope, SamplePlan};
use super::relay::Relay;
use super::reservation::{EventChoice, EventSwitch};
use super::{handover, open, synthesize};
use crate::persistent::directory::RunDirectory;
use pmc_events::counter::change::EventChange;
use pmc_events::counter::request::sampling::SampleOptions;
use pmc_events::counter::rings::{Instance, InstanceReading, Rings};
use pmc_events::counter::target::TargetSlot;
use pmc_events::event::{EventSource, EventSpec};
use pmc_perfdata::perfdata::RecordedEvent;
use pmc_perfdata::record::encode::Encoder;
use pmc_sys::abi::{Attr, sample_type};
use pmc_sys::error::{Error, Result};
use pmc_sys::host::Host;
use pmc_sys::host::process::ThreadInfo as Alive;
use pmc_sys::sys::process::PausedChild;

/// Our own rings, and the holders' rings.
pub struct RecordSources {
    pub(super) rings: Rings,
    /// Relays with the names of their events.
    relays: Vec<(String, Relay)>,
    counts: HeldCounts,
}

/// Whether a holder keeps the event open.
fn is_held(spec: &EventSpec) -> bool {
    matches!(spec.source, EventSource::Held(_))
}

/// Adjusts a plan to its held events, whose options were set when they were added.
///
/// # Errors
/// Fails if the plan requires other options.
pub fn adjust_to_held_events(plan: &mut SamplePlan, groups: &Groups, host: &Host) -> Result<()> {
    let mut all = groups.iter().flat_map(|(group, _)| &group.events);
    let Some(held) = all.clone().find(|spec| is_held(spec)) else { return Ok(()) };
    refuse_targets(held, &plan.scope, host)?;
    let clock = open::held_options().clock;
    if plan.options.clock.is_some_and(|own| Some(own) != clock) {
        return Err(Error::usage(format!("{} uses the monotonic clock", held.name))
            .try_options("-k monotonic, for all events"));
    }
    plan.options.clock = clock;
    if !all.all(is_held) {
        return Ok(());
    }
    match chosen(plan) {
        Some(asked) => Err(cannot_change(held, asked)),
        None => Ok(()),
    }
}

/// Returns an option of the plan that cannot be applied to held events.
fn chosen(plan: &SamplePlan) -> Option<&'static str> {
    let options = &plan.options;
    let usual = SampleOptions::default();
    let asked = [
        (options.rate != usual.rate, "a rate (-F, -c)"),
        (options.branches.is_some(), "branches (-j, -b)"),
        // The CPU field is allowed, because samples of events on whole CPUs have it anyway.
        (
            options.data_mappings || options.fields & !sample_type::CPU != 0,
            "sample fields (-d, -W, --phys-data, …)",
        ),
        (!options.inherit, "no children (-i)"),
        (options.levels != usual.levels, "a level (--all-user, --all-kernel)"),
        (options.intr_regs.is_some() || options.user_regs.is_some(), "registers (--intr-regs, --user-regs)"),
        (options.period.is_some(), "the period in samples (-P, --no-period)"),
        (options.max_stack.is_some(), "the stack depth (--max-stack)"),
        (options.backward, "which records full ring buffers keep (--overwrite, -S)"),
        (options.no_samples, "no samples (-n)"),
        (options.stat, "counts of threads (-s)"),
        (plan.per_thread, "threads (--per-thread)"),
    ];
    asked.into_iter().find_map(|(is_asked, what)| is_asked.then_some(what))
}

/// Returns an error if targets are given for held events, which have already been opened on their targets.
///
/// # Errors
/// Fails if the scope names processes or only some CPUs. The error names the first held event.
pub(super) fn refuse_other_targets<'a>(
    mut events: impl Iterator<Item = &'a EventSpec>,
    scope: &MeasurementScope,
    host: &Host,
) -> Result<()> {
    events.find(|spec| is_held(spec)).map_or(Ok(()), |held| refuse_targets(held, scope, host))
}

fn refuse_targets(held: &EventSpec, scope: &MeasurementScope, host: &Host) -> Result<()> {
    match scope {
        MeasurementScope::Command | MeasurementScope::AllThreads => Ok(()),
        MeasurementScope::Cpus(cpus) if *cpus == host.online_cpus() => Ok(()),
        MeasurementScope::Cpus(_) => Err(cannot_change(held, "CPUs (-C)")),
        MeasurementScope::Processes(_)
        | MeasurementScope::Families(_)
        | MeasurementScope::Threads(_)
        | MeasurementScope::User(_) => Err(cannot_change(held, "processes (-p, -t, -u)")),
    }
}

fn cannot_change(held: &EventSpec, asked: &str) -> Error {
    Error::usage(format!("{}: cannot change {asked} of a running event", held.name))
        .try_this("pmc persist add ANOTHER -e EVENT, with other options")
        .try_options("pmc report --pid, --tid or --cpu, which filter the recording")
}

impl RecordSources {
    /// Opens the events on the plan's targets, maps their rings, and connects to the holders of held events.
    /// Also returns the sampled threads.
    ///
    /// # Errors
    /// Fails in the same cases as [`open::open`], and if a holder does not answer, or if a held event does
    /// not support the plan.
    pub fn open(
        plan: &SamplePlan,
        host: &Host,
        groups: Groups,
        command: Option<&PausedChild>,
    ) -> Result<(Self, Vec<Alive>)> {
        let (held, own): (Groups, Groups) =
            groups.into_iter().partition(|(group, _)| group.events.iter().any(is_held));
        let specs: Vec<&EventSpec> = held.iter().flat_map(|(group, _)| &group.events).collect();
        if let Some((group, _)) = held.iter().find(|(group, cgroup)| group.braces || cgroup.is_some()) {
            let name = &group.events[0].name;
            return Err(Error::usage(format!("{name}: a held event cannot join a group or cgroup"))
                .try_options("list each event separately, without -G"));
        }
        let counts = HeldCounts::find(specs.iter().copied());
        let relays = specs.iter().map(|spec| relay(spec, plan)).collect::<Result<Vec<_>>>()?;
        let (rings, threads) = match (own.is_empty(), relays.is_empty()) {
            (_, true) => open::open(plan, host, own, command)?,
            (false, _) => open::open(&SamplePlan { with_id: true, ..plan.clone() }, host, own, command)?,
            (true, _) => (open::none()?, Vec::new()),
        };
        Ok((Self { rings, relays, counts }, threads))
    }

    /// Wraps rings that are already open.
    pub(crate) fn from_rings(rings: Rings) -> Self {
        Self { rings, relays: Vec::new(), counts: HeldCounts::find([].iter()) }
    }

    /// Whether all sources are our own rings.
    pub(super) fn are_own(&self) -> bool {
        self.relays.is_empty()
    }

    /// Returns our own rings.
    pub fn rings(&self) -> &Rings {
        &self.rings
    }

    /// Returns all events, in the order of the diagram at the top of this module.
    pub fn events(&self) -> Vec<RecordedEvent> {
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

    /// Returns the number of sampled events, which come first in the list. The remaining events track
    /// mappings and tasks.
    pub(crate) fn sampled_events(&self) -> usize {
        self.rings.sampled_events() + self.held_events()
    }

    fn held_events(&self) -> usize {
        self.relays.iter().map(|(_, relay)| relay.sampled_events()).sum()
    }

    /// Returns the event indices of each kernel group.
    pub fn groups(&self) -> Vec<Vec<usize>> {
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

    /// Converts an index into our own events to an index into all events.
    fn index(&self, own: usize) -> usize {
        if own < self.rings.sampled_events() { own } else { own + self.held_events() }
    }

    /// For each ring, returns the id of the event to which its misattributed samples belong.
    pub fn owners(&self) -> Vec<Option<u64>> {
        let held = self.relays.iter().flat_map(|(_, relay)| relay.snapshot.owners.iter().copied());
        self.rings.passed_on().into_iter().chain(held).collect()
    }

    /// Writes the record that maps every id to its ring, CPU and thread (−1: any).
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

    /// Adds the targets of the holders' events to the processes to synthesize, and writes the idle tasks of
    /// their CPUs.
    pub(super) fn add_targets(&self, pids: Vec<u32>, host: &Host, out: &mut Encoder) -> Result<Vec<u32>> {
        let mut pids = pids;
        for (_, relay) in &self.relays {
            match relay.scope()? {
                MeasurementScope::Cpus(cpus) => {
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

    /// Passes the new records of every ring to `take`, as one or two slices, together with the ring's index.
    /// Returns the number of bytes.
    ///
    /// # Errors
    /// Fails if `take` fails, or with an error from a holder.
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

    /// Returns the nanoseconds until the next drain, at most `usual`.
    pub(super) fn pace(&self, usual: u64) -> u64 {
        self.relays.iter().map(|(_, relay)| relay.pace).fold(usual, u64::min)
    }

    /// Returns the holders' events that have ended since the last call, each with the reason. The holder has
    /// ended, has dropped the event, or does not answer.
    pub(super) fn newly_gone(&mut self) -> Vec<(String, Error)> {
        let gone = |(name, relay): &mut (String, Relay)| Some((name.clone(), relay.newly_gone()?));
        self.relays.iter_mut().filter_map(gone).collect()
    }

    /// Whether all events are holders' events and have ended.
    pub(super) fn are_gone(&self) -> bool {
        let own = self.rings.instances().next().is_some();
        !own && !self.relays.is_empty() && self.relays.iter().all(|(_, relay)| relay.is_gone())
    }

    /// Returns the number of records lost in each holder's rings while recording, with the id of an event
    /// instance.
    pub(crate) fn lost_elsewhere(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.relays.iter().map(|(_, relay)| relay.lost())
    }

    /// Starts the events that the command's exec does not start.
    pub(super) fn start(&mut self) -> Result<()> {
        self.switch_held(true)?;
        self.rings.start().map_err(open::starting)
    }

    /// Starts or stops the chosen events. For events owned by holders, starts or stops collecting their
    /// records.
    pub(super) fn switch(&mut self, on: bool, events: EventChoice) -> Result<()> {
        // A holder's events use the holder's hardware counters, not this process's.
        if events.has(false) {
            self.switch_held(on)?;
        }
        open::switch(&self.rings, on, events)
    }

    /// Starts or stops the event with this name, if it is among the chosen events.
    pub(super) fn switch_named(&mut self, on: bool, name: &str, events: EventChoice) -> Result<()> {
        let of_name = self.relays.iter_mut().filter(|(own, _)| own == name && events.has(false));
        of_name.map(|(_, relay)| relay).try_for_each(|relay| relay.switch(on))?;
        open::switch_named(&self.rings, on, name, events)
    }

    fn switch_held(&mut self, on: bool) -> Result<()> {
        self.counts.switch(on)?;
        self.relays.iter_mut().try_for_each(|(_, relay)| relay.switch(on))
    }

    /// Returns the events' names and attrs.
    pub(super) fn requests(&self) -> Vec<(&str, &Attr)> {
        let held =
            self.relays.iter().filter_map(|(name, relay)| Some((&**name, &relay.events.first()?.attr)));
        self.rings.requests().chain(held).collect()
    }

    /// Whether any of our own events uses a hardware counter.
    pub(super) fn takes_counters(&self) -> bool {
        self.rings.events().any(|(spec, ..)| spec.takes_counter())
    }

    /// Reads the count and the lost records of each instance. Counts of holders' events are per CPU, and
    /// cover only the time during which pmc collected their records.
    pub(super) fn read(&self) -> Vec<InstanceReading> {
        let mut readings = self.rings.read();
        readings.iter_mut().for_each(|reading| reading.instance.event = self.index(reading.instance.event));
        // Holders that have ended have already been reported.
        let held = self.counts.read();
        let first = |relay: usize| -> usize {
            self.relays[..relay].iter().map(|(_, relay)| relay.sampled_events()).sum()
        };
        readings.extend(held.into_iter().map(|one| {
            let event = self.rings.sampled_events() + first(one.event) + one.member;
            let slot = TargetSlot { tid: None, cpu: one.cpu };
            let instance = Instance { event, id: 0, ring: 0, slot };
            InstanceReading { instance, count: one.count.unwrap_or_default(), lost: 0 }
        }));
        readings
    }

    /// Returns the number of lost records according to the kernel's counters.
    pub(super) fn lost(&self) -> u64 {
        self.read().iter().map(|reading| reading.lost).sum()
    }
}

/// Connects to the holder of an event.
fn relay(spec: &EventSpec, plan: &SamplePlan) -> Result<(String, Relay)> {
    let EventSource::Held(held) = &spec.source else {
        return Err(Error::new(format!("{}: no holder has this event", spec.name)));
    };
    let relay = Relay::open(RunDirectory::at(&held.run_directory), held.id, plan.backlog)?;
    let has_chains = |event: &RecordedEvent| event.attr.sample_type() & sample_type::CALLCHAIN != 0;
    if plan.options.call_graph.is_some() && !relay.events.iter().any(has_chains) {
        return Err(Error::usage(format!("{}: samples have no call chains", spec.name))
            .try_this("pmc persist add ANOTHER -e EVENT --call-graph fp"));
    }
    Ok((spec.name.clone(), relay))
}

/// A measurement that has no other events than those of its sources.
pub(super) trait SourceSwitch {
    fn sources(&self) -> &RecordSources;

    fn sources_mut(&mut self) -> &mut RecordSources;

    /// Called when the hardware is yielded, and when it is taken back.
    fn yielding(&mut self, _is_yielding: bool) {}
}

impl<T: SourceSwitch> EventSwitch for T {
    fn start(&mut self) -> Result<()> {
        self.sources_mut().start()
    }

    fn switch(&mut self, on: bool, events: EventChoice) -> Result<()> {
        self.sources_mut().switch(on, events)
    }

    fn switch_named(&mut self, on: bool, name: &str, events: EventChoice) -> Result<()> {
        self.sources_mut().switch_named(on, name, events)
    }

    fn change(
        &self,
        change: EventChange,
        name: Option<&str>,
        is_on: bool,
    ) -> std::result::Result<(), String> {
        self.sources().rings().change(change, name, is_on)
    }

    fn requests(&self) -> Vec<(&str, &Attr)> {
        self.sources().requests()
    }

    fn takes_counters(&self) -> bool {
        self.sources().takes_counters()
    }

    fn yielding(&mut self, is_yielding: bool) {
        SourceSwitch::yielding(self, is_yielding);
    }
}
