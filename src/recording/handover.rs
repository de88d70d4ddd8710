//! Open events from one owner to another: from a recorder to a holder, and back.
//!
//! Receives [`Rings`] and says what another process must know to go on with them ([`Handover`]); and the
//! other way round. The descriptors go beside that, and only to who could have opened the events himself.

use std::os::fd::OwnedFd;

use super::plan::Scope;
use crate::abi::Attr;
use crate::abi::attr::WORDS;
use crate::counter::rings::{Instance, OpenEvents, Rings};
use crate::counter::target::{self, TargetSlot};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::host::process::Thread as Alive;
use crate::perfdata::RecordedEvent;
use crate::persistent::message::{Handover, SnapshotEvent};
use crate::sys::page_size;

/// What a recorder's events are called until they are given a name.
pub(crate) fn name(recorder: u32) -> String {
    format!("record-{recorder}")
}

/// The words of a request.
pub(crate) fn words(attr: &Attr) -> Vec<u64> {
    (0..WORDS).map_while(|index| attr.word(index)).collect()
}

/// An event as readers of recordings have it.
pub(super) fn recorded(event: &SnapshotEvent) -> RecordedEvent {
    let mut attr = Attr::default();
    for (index, word) in event.attr.iter().enumerate() {
        attr.set_word(index, *word);
    }
    RecordedEvent { attr, ids: event.ids.clone(), name: Some(event.name.clone()) }
}

/// What there is to know of open events, opened on these.
pub(crate) fn describe(rings: &Rings, scope: &Scope) -> Handover {
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
            Scope::Cpus(cpus) => Some(cpus.to_string()),
            _ => None,
        },
        pids,
    }
}

/// On whom they are open.
///
/// # Errors
/// A list of CPUs that is none.
pub(crate) fn scope(handover: &Handover) -> Result<Scope> {
    match &handover.cpus {
        Some(cpus) => Ok(Scope::Cpus(cpus.parse().map_err(|wrong| Error::new(format!("{cpus}: {wrong}")))?)),
        None => Ok(Scope::Processes(handover.pids.clone())),
    }
}

/// The threads that run now of those whom events of this scope record: threads, whose numbers it has, and
/// their descendants. The children of one that has ended are nobody's: then any may be meant. None where
/// whole CPUs are recorded.
pub(crate) fn threads(scope: &Scope, host: &Host) -> Vec<Alive> {
    let Scope::Processes(tids) = scope else { return Vec::new() };
    let pids: Option<Vec<u32>> = tids.iter().map(|&tid| Some(host.thread(tid)?.pid)).collect();
    let families = pids.and_then(|pids| target::threads_of_families(host, &pids).ok());
    families.unwrap_or_else(|| target::all_threads(host))
}

/// Takes over events that somebody has handed over.
///
/// # Errors
/// What does not belong together; what the kernel says of mapping their rings.
pub(crate) fn take(handover: &Handover, descriptors: Vec<OwnedFd>) -> Result<Rings> {
    let wrong = || Error::usage("what was handed over is not whole");
    let mut descriptors = descriptors;
    if descriptors.len() != handover.instances.len() + handover.guards {
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
    Rings::adopt(open).map_err(|error| Error::io("taking over events that are open", error))
}
