//! A held event: opened according to its definition, then counted and copied on request.
//!
//! Receives an [`EntryDefinition`]; provides the published [`PersistentEntry`], [`EntryCounts`], and copies
//! of the rings in sealed memory. Only the holder accesses the rings, so readers cannot affect each other or
//! the event, and no ring stays paused if a reader dies.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

use pmc_events::counter::request::given_up::Fallback;
use pmc_events::counter::request::sampling::{CallGraph, SampleOptions};
use pmc_events::counter::rings::{CopiedRing, Instance, InstanceReading, Rings, by_thread};
use pmc_events::counter::target::TargetSlot;
use pmc_recording::persistent::message::{CpuCounts, EntryCounts, Handover, RingCopy, RingSnapshot};
use pmc_recording::persistent::{EntryDefinition, PersistentEntry, RingMode, SharingLevel};
use pmc_recording::recording::plan::{MeasurementScope, SamplePlan};
use pmc_recording::recording::ring_size::RingSize;
use pmc_recording::recording::{handover, open, targets, trace};
use pmc_sys::abi::attr::kind;
use pmc_sys::abi::sample_type;
use pmc_sys::error::{Error, Result};
use pmc_sys::host::{CpuList, Host};
use pmc_sys::sys::page_size;
use pmc_sys::sys::process;
use pmc_sys::sys::ring::Direction;
use pmc_text::units::Count;

/// Maximum number of pages per ring: 1 GiB with 4 KiB pages.
const MOST_PAGES: usize = 1 << 18;

pub(super) struct HeldEvent {
    pub(super) entry: PersistentEntry,
    rings: Rings,
    scope: MeasurementScope,
    /// Threads on which the event was opened.
    threads: Vec<u32>,
    /// The online CPUs on which the event is open.
    cpus: CpuList,
    /// Index of the instance that is watched to detect when its process exits.
    watched: usize,
}

impl HeldEvent {
    /// Opens the event, which does not count until it is [started](Self::start). `since` is the current Unix
    /// time in seconds. A device or package event that does not support sampling is only counted.
    pub(super) fn open(host: &Host, definition: EntryDefinition, id: u64, since: i64) -> Result<Self> {
        let opened = Self::open_as(host, definition.clone(), id, since);
        let Err(error) = opened else { return opened };
        let groups = open::groups(
            &SamplePlan {
                events: vec![definition.event.clone()],
                strict: true,
                ..SamplePlan::on(MeasurementScope::Command, open::held_options())
            },
            host,
        )?;
        let mut attrs = groups.iter().flat_map(|(group, _)| &group.events).map(|spec| spec.attr());
        let are_devices = attrs.all(|attr| attr.is_some_and(|attr| attr.kind() >= kind::FIRST_DYNAMIC));
        if definition.counts_only || definition.filter.is_some() || !are_devices {
            return Err(error);
        }
        let counting = EntryDefinition { counts_only: true, pages: Some(1), ..definition };
        Self::open_as(host, counting, id, since).map_err(|_| error)
    }

    fn open_as(host: &Host, mut definition: EntryDefinition, id: u64, since: i64) -> Result<Self> {
        if definition.pages.is_some_and(|pages| !(1..=MOST_PAGES).contains(&pages)) {
            return Err(Error::usage(format!("--pages must be between 1 and {MOST_PAGES}")));
        }
        let scope = scope(&definition, host)?;
        let options = SampleOptions {
            call_graph: definition.call_graph.then_some(CallGraph::Fp),
            backward: definition.mode == RingMode::Overwrite,
            no_samples: definition.counts_only,
            build_ids: !definition.counts_only,
            ..open::held_options()
        };
        let plan = SamplePlan {
            events: vec![definition.event.clone()],
            filters: definition.filter.iter().map(|filter| (0, filter.clone())).collect(),
            ring: Some(definition.pages.map_or(RingSize::HELD, RingSize::of_pages)),
            tracks_apart: true,
            // Open exactly the requested event, without falling back to another one.
            strict: true,
            with_id: true,
            ..SamplePlan::on(scope.clone(), options)
        };
        let groups = open::groups(&plan, host)?;
        trace::refuse(&groups, "a holder only stores records")?;
        let specs: Vec<_> = groups.iter().flat_map(|(group, _)| &group.events).collect();
        if specs.iter().any(|spec| spec.attr().is_none()) {
            return Err(Error::usage(format!("{}: not a kernel event", definition.event))
                .why("only kernel events can be held"));
        }
        if !definition.pids.is_empty() && specs.iter().any(|spec| spec.qualifiers.system) {
            return Err(Error::usage(format!("{}: -p cannot be combined with `system`", definition.event))
                .try_this("use only one of them"));
        }
        // On a hybrid CPU, the event's variants for the core types form one entry.
        if specs.len() > 1 && specs.iter().any(|spec| spec.merge.is_none() || spec.merge != specs[0].merge) {
            return Err(Error::usage(format!("{} is more than one event", definition.event))
                .why("an entry holds one event, with one ring buffer per CPU")
                .try_this("use pmc persist add for each event"));
        }
        // An event that is bound to CPUs (by `cpu=0`, or because it belongs to a device) is opened only on
        // those CPUs.
        if specs.iter().all(|spec| spec.cpus.is_some()) {
            let bound: CpuList =
                specs.iter().flat_map(|spec| spec.cpus.iter().flat_map(CpuList::iter)).collect();
            let typed = definition.cpus.as_ref().and_then(|list| list.parse::<CpuList>().ok());
            definition.cpus =
                Some(typed.map_or(bound.clone(), |typed| typed.intersection(&bound)).to_string());
        }
        let unit = specs.first().filter(|spec| spec.scale != 1.0 || !spec.unit.is_empty());
        let unit = unit.map(|spec| (spec.scale.to_string(), spec.unit.clone()));
        let (rings, threads) = open::open(&plan, host, groups, None)?;
        let user_only = rings.given_up().next().is_some_and(|(_, given_up)| given_up.has(Fallback::UserOnly));
        let entry = PersistentEntry { unit, ..entry(id, definition, since, &rings, user_only) };
        let threads = threads.iter().map(|thread| thread.tid).collect();
        let cpus = cpus_of(&entry.definition, host);
        Ok(Self { entry, rings, scope, threads, cpus, watched: 0 })
    }

    /// Starts the event.
    ///
    /// # Errors
    /// Returns the kernel's error.
    pub(super) fn start(&self) -> Result<()> {
        let event = &self.entry.definition.event;
        self.rings.start().map_err(|error| Error::io(format!("starting {event}"), error))
    }

    /// Opens the event on CPUs that have come online since the last call. Returns whether the set of CPUs has
    /// changed. A CPU that comes back online continues with its old ring and count.
    ///
    /// # Errors
    /// Fails if the event cannot be opened.
    pub(super) fn follow_cpus(&mut self, host: &Host) -> Result<bool> {
        let online = cpus_of(&self.entry.definition, host);
        let gone = self.cpus.iter().any(|cpu| !online.contains(cpu));
        let new: Vec<u32> = online.iter().filter(|&cpu| !self.cpus.contains(cpu)).collect();
        // The kernel has permanently removed the events on a CPU that went offline.
        self.cpus = online;
        if new.is_empty() {
            return Ok(gone);
        }
        let living = self.threads.iter().filter(|&&tid| process::exists(tid as i32));
        let tids: Vec<Option<u32>> = match &mut self.scope {
            MeasurementScope::Cpus(cpus) => {
                *cpus = cpus.iter().chain(new.iter().copied()).collect();
                vec![None]
            }
            _ => living.map(|&tid| Some(tid)).collect(),
        };
        let pages = self.entry.ring_bytes as usize / page_size();
        for (cpu, tid) in new.into_iter().flat_map(|cpu| tids.iter().map(move |&tid| (cpu, tid))) {
            let opened = self.rings.open_late(TargetSlot { tid, cpu: Some(cpu) }, pages);
            opened.map_err(|refusal| targets::explain(*refusal, host))?;
        }
        self.entry.rings = sample_rings(&self.rings);
        let name = &self.entry.definition.name;
        self.rings.start().map_err(|error| Error::io(format!("starting {name} on a new CPU"), error))?;
        Ok(true)
    }

    /// Returns the event descriptor for one of the event's processes. It hangs up when this process and all
    /// children that inherited the event have ended. Returns `None` for whole CPUs, or if all processes have
    /// ended.
    pub(super) fn process_watch(&self) -> Option<BorrowedFd<'_>> {
        let is_of_processes = !matches!(self.scope, MeasurementScope::Cpus(_)) && self.entry.ended.is_none();
        self.rings.all_descriptors().nth(self.watched).filter(|_| is_of_processes)
    }

    /// Handles the end of the [watched](Self::process_watch) process by watching another one. Returns whether
    /// all processes have ended.
    pub(super) fn follow_end(&mut self, now: i64) -> bool {
        let instances = self.rings.instances().count();
        let over = self.rings.all_descriptors().take(instances).skip(self.watched);
        self.watched += over.take_while(|fd| has_hung_up(*fd)).count();
        if self.watched < instances {
            return false;
        }
        self.entry.ended = Some(now);
        true
    }

    /// Closes the event.
    pub(super) fn close(self) {
        self.rings.close_in_background();
    }

    /// Takes over events that another process has opened, and holds them under this name.
    pub(super) fn adopt(
        name: String,
        open: &Handover,
        descriptors: Vec<OwnedFd>,
        id: u64,
        since: i64,
    ) -> Result<Self> {
        let scope = handover::scope(open)?;
        let rings = handover::take(open, descriptors)?;
        let sampled = open.events.iter().take(open.sampled).map(|event| event.name.as_str());
        let definition = EntryDefinition {
            name,
            event: sampled.collect::<Vec<_>>().join(","),
            pages: None,
            mode: if rings.keeps_newest() { RingMode::Overwrite } else { RingMode::Normal },
            cpus: open.cpus.clone(),
            pids: open.pids.clone(),
            filter: None,
            counts_only: rings.events().take(open.sampled).all(|(_, attr, _)| attr.period() == 0),
            call_graph: rings.events().any(|(_, attr, _)| attr.sample_type() & sample_type::CALLCHAIN != 0),
            share: SharingLevel::Nothing,
        };
        let cpus = rings.instances().filter_map(|one| one.slot.cpu).collect();
        let entry = entry(id, definition, since, &rings, false);
        Ok(Self { entry, rings, scope, threads: open.pids.clone(), cpus, watched: 0 })
    }

    /// Returns the event's description and descriptors for another owner.
    pub(super) fn hand_over(&self) -> Result<(Handover, Vec<OwnedFd>)> {
        let failed = |error| Error::io(format!("handing {} over", self.entry.definition.name), error);
        let descriptors: io::Result<Vec<OwnedFd>> =
            self.rings.all_descriptors().map(|fd| fd.try_clone_to_owned()).collect();
        Ok((handover::describe(&self.rings, &self.scope), descriptors.map_err(failed)?))
    }

    /// Whether any of these kernel ids belongs to this event.
    pub(super) fn has_any(&self, open: &Handover) -> bool {
        self.rings.instances().any(|one| open.instances.iter().any(|[id, ..]| *id == one.id))
    }

    /// Reads all instances of the event.
    ///
    /// # Errors
    /// Fails if one of them cannot be read, since the sum would then be too small.
    fn readings(&self) -> Result<Vec<InstanceReading>> {
        let readings = self.rings.read();
        if readings.len() < self.rings.instances().count() {
            let name = &self.entry.definition.name;
            return Err(Error::new(format!("cannot read all counts of {name}"))
                .why("the kernel refused to read one of its counters")
                .try_this("repeat the command"));
        }
        Ok(readings)
    }

    /// Reads the counts.
    ///
    /// # Errors
    /// Fails if a counter cannot be read.
    pub(super) fn counts(&self) -> Result<EntryCounts> {
        let sampled = self.rings.sampled_events();
        let readings: Vec<InstanceReading> =
            self.readings()?.into_iter().filter(|reading| reading.instance.event < sampled).collect();
        let specs: Vec<_> = self.rings.events().map(|(spec, ..)| spec).take(sampled).collect();
        // Add up the variants for the core types of a hybrid CPU.
        let is_one = specs.iter().all(|spec| spec.merge.is_some());
        let row_of = |event: usize| if is_one { 0 } else { event };
        let mut counts: BTreeMap<(usize, Option<u32>), (Count, u64)> = BTreeMap::new();
        let is_system = matches!(self.scope, MeasurementScope::Cpus(_));
        for reading in &readings {
            let cpu = reading.instance.slot.cpu.filter(|_| is_system);
            let row = counts.entry((row_of(reading.instance.event), cpu)).or_default();
            row.0 += if is_system { reading.count } else { Count::default() };
            row.1 = row.1.saturating_add(reading.lost);
        }
        if !is_system {
            for ((event, _), count) in by_thread(&readings) {
                counts.entry((row_of(event), None)).or_default().0 += count;
            }
        }
        let row = |((event, cpu), (count, lost)): ((usize, Option<u32>), (Count, u64))| {
            // Only events that use hardware counters can have a running time below their enabled time.
            let waits = specs[event].takes_counter();
            CpuCounts {
                event,
                cpu,
                value: count.value,
                enabled: if waits { count.enabled_ns.max(count.running_ns) } else { count.running_ns },
                running: count.running_ns,
                lost,
            }
        };
        let living = self.threads.iter().filter(|&&tid| process::exists(tid as i32)).count();
        Ok(EntryCounts {
            events: specs
                .iter()
                .take(if is_one { 1 } else { sampled })
                .map(|spec| spec.name.clone())
                .collect(),
            rows: counts.into_iter().map(row).collect(),
            living: (!is_system).then_some(living),
        })
    }

    /// Copies the rings: returns a [`RingSnapshot`] as JSON, and the bytes. Both are readable by all users
    /// and sealed against changes. For `after`, see
    /// [`HolderRequest::Snapshot`](pmc_recording::persistent::message::HolderRequest::Snapshot).
    pub(super) fn copy(&mut self, after: Option<&[u64]>) -> Result<[OwnedFd; 2]> {
        let failed = |error: io::Error| {
            Error::io(format!("copying the rings of {}", self.entry.definition.name), error)
        };
        let mut bytes = memory("records").map_err(failed)?;
        let rings = match after {
            Some(after) => self.rings.copy(after, |slices| {
                slices.iter().try_for_each(|slice| bytes.write_all(slice)).map_err(failed)
            })?,
            None => self.rings.positions(),
        };
        let copy = |ring: &CopiedRing| RingCopy {
            ring: ring.ring,
            len: ring.len,
            is_backward: ring.direction == Direction::Backward,
            end: ring.end,
        };
        let snapshot = RingSnapshot {
            open: handover::describe(&self.rings, &self.scope),
            owners: self.rings.passed_on(),
            copies: rings.iter().map(copy).collect(),
            lost: self.readings()?.iter().map(|reading| reading.lost).sum(),
        };
        let mut description = memory("snapshot").map_err(failed)?;
        serde_json::to_writer(&mut description, &snapshot)
            .map_err(|error| Error::new(format!("describing a snapshot: {error}")))?;
        Ok([sealed(description).map_err(failed)?, sealed(bytes).map_err(failed)?])
    }
}

fn has_hung_up(fd: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::empty())];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&at_once)).is_ok() && fds[0].revents().contains(PollFlags::HUP)
}

/// Returns the online CPUs on which the event should be open.
fn cpus_of(definition: &EntryDefinition, host: &Host) -> CpuList {
    let online = host.online_cpus();
    let named = definition.cpus.as_ref().and_then(|list| list.parse::<CpuList>().ok());
    named.map_or_else(|| online.clone(), |named| online.intersection(&named))
}

fn scope(definition: &EntryDefinition, host: &Host) -> Result<MeasurementScope> {
    if !definition.pids.is_empty() {
        return Ok(MeasurementScope::Processes(definition.pids.clone()));
    }
    let online = host.online_cpus();
    let Some(list) = &definition.cpus else { return Ok(MeasurementScope::Cpus(online)) };
    let cpus: CpuList = list.parse().map_err(|wrong: Error| wrong.of_option("-C ", list))?;
    let missing = cpus.iter().find(|cpu| !online.contains(*cpu));
    match missing {
        Some(cpu) => Err(Error::usage(format!("-C {list}: CPU {cpu} is not online"))
            .try_this(format!("use one of {online}"))),
        None => Ok(MeasurementScope::Cpus(cpus)),
    }
}

/// Returns the number of rings with samples.
fn sample_rings(rings: &Rings) -> usize {
    let with_ring = |one: &Instance| one.event < rings.sampled_events() && one.ring < rings.rings();
    let sampled = rings.instances().filter(with_ring);
    sampled.map(|one| one.ring).collect::<BTreeSet<_>>().len()
}

/// Returns the entry to publish.
fn entry(
    id: u64,
    definition: EntryDefinition,
    since: i64,
    rings: &Rings,
    user_only: bool,
) -> PersistentEntry {
    let pages = Some(rings.ring_bytes() as usize / page_size()).filter(|&pages| pages > 0);
    let attr = rings.events().next().map(|(_, attr, _)| attr.clone()).unwrap_or_default();
    PersistentEntry {
        id,
        definition: EntryDefinition { pages, ..definition },
        since,
        ended: None,
        unit: None,
        ring_bytes: rings.ring_bytes(),
        rings: sample_rings(rings),
        user_only,
        attr: handover::words(&attr).iter().map(|word| format!("{word:#x}")).collect(),
    }
}

fn memory(name: &str) -> io::Result<File> {
    Ok(memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?.into())
}

fn sealed(file: File) -> io::Result<OwnedFd> {
    fcntl_add_seals(file.as_fd(), SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL)?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::need;

    #[test]
    fn cpus_that_come_online_are_counted_from_then() {
        let all = Host::live().online_cpus();
        let last = all.iter().last().unwrap_or(0);
        if !need("two-cpus", last > 0, "this machine has one CPU") {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let cpu = folder.path().join("sys/devices/system/cpu");
        std::fs::create_dir_all(&cpu).unwrap();
        let online = |list: &str| std::fs::write(cpu.join("online"), list).unwrap();
        let host = Host::rooted(folder.path());
        online("0");
        let definition = |cpus: Option<&str>| EntryDefinition {
            name: "faults".to_owned(),
            event: "page-faults:u".to_owned(),
            pages: Some(1),
            mode: RingMode::Overwrite,
            cpus: cpus.map(str::to_owned),
            pids: Vec::new(),
            call_graph: false,
            filter: None,
            counts_only: false,
            share: SharingLevel::Nothing,
        };
        let held = HeldEvent::open(&host, definition(None), 1, 0);
        if !need("root", held.is_ok(), "this user may not open events on whole CPUs") {
            return;
        }
        let mut held = held.unwrap();
        let mut bound = HeldEvent::open(&host, definition(Some("0")), 2, 0).unwrap();
        let cpus = |held: &HeldEvent| {
            held.counts().unwrap().rows.iter().filter_map(|row| row.cpu).collect::<Vec<u32>>()
        };
        assert!(!held.follow_cpus(&host).unwrap());
        assert_eq!((cpus(&held), held.entry.rings), (vec![0], 1));
        online(&format!("0,{last}"));
        assert!(held.follow_cpus(&host).unwrap() && !bound.follow_cpus(&host).unwrap());
        assert_eq!((cpus(&held), held.entry.rings, cpus(&bound)), (vec![0, last], 2, vec![0]));
        assert!(held.counts().unwrap().rows.iter().all(|row| row.running > 0), "all of them run");
        // A CPU that comes back online still has its ring.
        online("0");
        assert!(held.follow_cpus(&host).unwrap());
        online(&format!("0,{last}"));
        assert!(held.follow_cpus(&host).unwrap());
        assert_eq!((cpus(&held), held.entry.rings), (vec![0, last], 2));
        assert!(held.copy(Some(&[])).is_ok());
    }

    #[test]
    fn open_events_are_handed_over() {
        let host = Host::live();
        let definition = EntryDefinition {
            name: "faults".to_owned(),
            event: "page-faults:u,period=1".to_owned(),
            pages: Some(8),
            mode: RingMode::Overwrite,
            cpus: None,
            pids: vec![std::process::id()],
            call_graph: false,
            filter: None,
            counts_only: false,
            share: SharingLevel::Nothing,
        };
        let held = HeldEvent::open(&host, definition, 1, 0);
        if !need("perf_events", held.is_ok(), "this user may not open events of own processes") {
            return;
        }
        let held = held.unwrap();
        held.start().unwrap();
        let (open, descriptors) = held.hand_over().unwrap();
        assert!(held.has_any(&open) && open.sampled == 1);
        let adopt =
            |open: &Handover, descriptors| HeldEvent::adopt("again".to_owned(), open, descriptors, 2, 0);
        let mut again = adopt(&open, descriptors).unwrap();
        drop(held);
        let value = |held: &HeldEvent| held.counts().unwrap().rows.iter().map(|row| row.value).sum::<u64>();
        let before = value(&again);
        // For blocks above 32 MiB, malloc(3) always maps new memory. Smaller blocks may reuse existing pages.
        std::hint::black_box(vec![1u8; 64 << 20]);
        assert!(value(&again) > before, "it counts on with its former owner gone");
        assert!(again.copy(Some(&[])).is_ok() && again.entry.definition.mode == RingMode::Overwrite);
        // A handover is refused if it is incomplete, or if it contains descriptors that are not events.
        assert!(adopt(&open, Vec::new()).is_err());
        let files = || open.instances.iter().map(|_| memory("no event").map(OwnedFd::from)).collect();
        let files: io::Result<Vec<OwnedFd>> = files();
        assert!(adopt(&open, files.unwrap()).is_err());
        let mut wrong = open.clone();
        wrong.rings = vec![99];
        assert!(adopt(&wrong, again.hand_over().unwrap().1).is_err());
    }
}
