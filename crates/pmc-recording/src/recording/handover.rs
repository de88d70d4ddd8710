//! Hands over open events between processes: from a recorder to a holder, and back.
//!
//! Describes [`Rings`] for another process ([`Handover`]), and rebuilds rings from such a description. The
//! descriptors are sent separately, and only to a process that may open such events itself.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::plan::MeasurementScope;
use crate::persistent::client::hand_over;
use crate::persistent::directory::RunDirectory;
use crate::persistent::message::{Handover, HolderRequest, MOST_DESCRIPTORS, SnapshotEvent};
use pmc_events::counter::counter_set::CounterSet;
use pmc_events::counter::rings::{Instance, OpenEvents, Rings};
use pmc_events::counter::target::{self, TargetSlot};
use pmc_perfdata::perfdata::RecordedEvent;
use pmc_sys::abi::Attr;
use pmc_sys::abi::attr::WORDS;
use pmc_sys::error::{Error, Result};
use pmc_sys::host::Host;
use pmc_sys::host::process::ThreadInfo as Alive;
use pmc_sys::sys::page_size;

/// Returns the names under which `pmc record` and `pmc stat` with this pid hand over their events. Users may
/// rename the events later.
pub fn names(pid: u32) -> [String; 2] {
    [format!("record-{pid}"), format!("stat-{pid}")]
}

/// Hands open events over to this user's holder, under the given name.
///
/// # Errors
/// Fails if there is no run directory, if the message cannot carry that many descriptors, or if the holder
/// refuses.
pub(super) fn give(
    host: &Host,
    name: String,
    events: Handover,
    descriptors: &[BorrowedFd<'_>],
) -> Result<()> {
    let Some(directory) = host.own_run_directory().map(RunDirectory::at) else {
        return Err(Error::new("this user has no runtime directory (XDG_RUNTIME_DIR)"));
    };
    if descriptors.len() > MOST_DESCRIPTORS {
        return Err(Error::new("they have more than 253 file descriptors, the limit for one message"));
    }
    hand_over(&directory, &HolderRequest::Adopt { name, events }, descriptors).map(drop)
}

/// Describes counters, which are events without rings, and returns their descriptors. Excludes refused events
/// and events that pmc measures itself.
///
/// # Errors
/// Returns the kernel's error.
pub(super) fn describe_counters<'a>(
    set: &'a CounterSet,
    scope: &MeasurementScope,
) -> io::Result<(Handover, Vec<BorrowedFd<'a>>)> {
    let any = |number: Option<u32>| number.map_or(u64::MAX, u64::from);
    let (specs, attrs): (Vec<_>, Vec<_>) = (set.specs().collect(), set.attrs().collect());
    let event = |index: usize| SnapshotEvent {
        name: specs[index].name.clone(),
        attr: attrs[index].map(words).unwrap_or_default(),
        ids: Vec::new(),
    };
    let mut events: Vec<(usize, SnapshotEvent)> = Vec::new();
    let (mut instances, mut pids, mut descriptors) = (Vec::new(), Vec::new(), Vec::new());
    for (index, slot, fd) in set.counters() {
        let id = fd.id()?;
        match events.iter_mut().find(|(known, _)| *known == index) {
            Some((_, event)) => event.ids.push(id),
            None => events.push((index, SnapshotEvent { ids: vec![id], ..event(index) })),
        }
        instances.push([id, u64::MAX, any(slot.cpu), any(slot.tid)]);
        pids.extend(slot.tid);
        descriptors.push(fd.as_fd());
    }
    pids.sort_unstable();
    pids.dedup();
    let open = Handover {
        sampled: events.len(),
        events: events.into_iter().map(|(_, event)| event).collect(),
        instances,
        guards: 0,
        rings: Vec::new(),
        ring_bytes: 0,
        cpus: match scope {
            MeasurementScope::Cpus(cpus) => Some(cpus.to_string()),
            _ => None,
        },
        pids,
    };
    Ok((open, descriptors))
}

/// Refuses events without samples, for commands that need records.
///
/// # Errors
/// Fails if the events are only counted.
pub(super) fn refuse_counted(open: &Handover, id: u64) -> Result<()> {
    let mut sampled = open.events.iter().take(open.sampled).map(recorded);
    if sampled.any(|event| event.attr.period() != 0) {
        return Ok(());
    }
    let names: Vec<&str> = open.events.iter().take(open.sampled).map(|event| event.name.as_str()).collect();
    Err(Error::usage(format!("{} was counted, not sampled, and has no records", names.join(", ")))
        .try_this(format!("pmc persist read {id}, or pmc stat -e persistent/{id}/")))
}

/// Returns the attr as 64-bit words.
pub fn words(attr: &Attr) -> Vec<u64> {
    (0..WORDS).map_while(|index| attr.word(index)).collect()
}

/// Converts an event to the form that recordings use.
pub(super) fn recorded(event: &SnapshotEvent) -> RecordedEvent {
    let mut attr = Attr::default();
    for (index, word) in event.attr.iter().enumerate() {
        attr.set_word(index, *word);
    }
    RecordedEvent { attr, ids: event.ids.clone(), name: Some(event.name.clone()) }
}

/// Describes open events and their scope.
pub fn describe(rings: &Rings, scope: &MeasurementScope) -> Handover {
    let any = |number: Option<u32>| number.map_or(u64::MAX, u64::from);
    let row = |one: Instance| [one.id, one.ring as u64, any(one.slot.cpu), any(one.slot.tid)];
    let mut pids: Vec<u32> = rings.instances().filter_map(|one| one.slot.tid).collect();
    pids.sort_unstable();
    pids.dedup();
    Handover {
        events: rings
            .events()
            .map(|(spec, attr, ids)| SnapshotEvent { name: spec.name.clone(), attr: words(attr), ids })
            .collect(),
        sampled: rings.sampled_events(),
        instances: rings.instances().map(row).collect(),
        guards: rings.all_descriptors().count() - rings.instances().count(),
        rings: rings.mapped_on(),
        ring_bytes: rings.ring_bytes(),
        cpus: match scope {
            MeasurementScope::Cpus(cpus) => Some(cpus.to_string()),
            _ => None,
        },
        pids,
    }
}

/// Returns the scope of handed-over events.
///
/// # Errors
/// Fails if the list of CPUs is invalid.
pub fn scope(handover: &Handover) -> Result<MeasurementScope> {
    match &handover.cpus {
        Some(cpus) => {
            Ok(MeasurementScope::Cpus(cpus.parse().map_err(|wrong| Error::new(format!("{cpus}: {wrong}")))?))
        }
        None => Ok(MeasurementScope::Processes(handover.pids.clone())),
    }
}

/// Returns the running threads that events in this scope record: the scope's threads and their descendants.
/// If a thread has ended, its children cannot be found, so all threads of the machine are returned. Returns
/// no threads if whole CPUs are recorded.
pub fn threads(scope: &MeasurementScope, host: &Host) -> Vec<Alive> {
    let MeasurementScope::Processes(tids) = scope else { return Vec::new() };
    let pids: Option<Vec<u32>> = tids.iter().map(|&tid| Some(host.thread(tid)?.pid)).collect();
    let families = pids.and_then(|pids| target::threads_of_families(host, &pids).ok());
    families.unwrap_or_else(|| target::all_threads(host))
}

/// Takes over events from another process.
///
/// # Errors
/// Fails if the description and the descriptors do not match, or if the rings cannot be mapped.
pub fn take(handover: &Handover, descriptors: Vec<OwnedFd>) -> Result<Rings> {
    let wrong = || Error::usage("incomplete handover from the other process");
    let mut descriptors = descriptors;
    if handover.instances.len().checked_add(handover.guards) != Some(descriptors.len()) {
        return Err(wrong());
    }
    let guards = descriptors.split_off(handover.instances.len());
    let event = |id: u64| handover.events.iter().position(|event| event.ids.contains(&id));
    let number = |word: u64| u32::try_from(word).ok();
    let instance = |(&[id, ring, cpu, tid], fd): (&[u64; 4], OwnedFd)| {
        let slot = TargetSlot { cpu: number(cpu), tid: number(tid) };
        Some((Instance { event: event(id)?, id, ring: ring as usize, slot }, fd))
    };
    let instances = handover.instances.iter().zip(descriptors).map(instance).collect::<Option<Vec<_>>>();
    let events = handover.events.iter().map(recorded).map(|event| (event.name(), event.attr));
    let open = OpenEvents {
        events: events.collect(),
        sampled: handover.sampled,
        instances: instances.ok_or_else(wrong)?,
        guards,
        rings: handover.rings.clone(),
        pages: handover.ring_bytes as usize / page_size(),
    };
    Rings::adopt(open).map_err(|error| Error::io("taking over open events", error))
}
