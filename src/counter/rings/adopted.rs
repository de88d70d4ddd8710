//! Events that somebody else has opened: their descriptors and rings, with a new owner.
//!
//! Receives what the former owner knew of them ([`OpenEvents`]); hands on [`Rings`] that go on where he
//! stopped reading.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::{Instance, MappedRing, Request, Rings, SampledEvent, SampledSlot};
use crate::abi::Attr;
use crate::event::{EventSpec, Source};
use crate::sys::perf::EventFd;
use crate::sys::ring::Direction;

/// Open events on their way to another owner.
#[derive(Debug)]
pub struct OpenEvents {
    /// Names and requests: those that sample, then the one that only tracks, if there is one.
    pub events: Vec<(String, Attr)>,
    /// How many sample.
    pub sampled: usize,
    /// Where each was opened.
    pub instances: Vec<(Instance, OwnedFd)>,
    /// What keeps them with their threads.
    pub guards: Vec<OwnedFd>,
    /// For each ring the index of the instance that it is mapped on.
    pub rings: Vec<usize>,
    /// Pages of each ring.
    pub pages: usize,
}

impl Rings {
    /// Takes over what is open: maps each ring as it is, and reads on where the former owner stopped.
    ///
    /// # Errors
    /// `InvalidData` for descriptors that are not those events; the kernel's.
    pub fn adopt(open: OpenEvents) -> io::Result<Self> {
        let wrong =
            || io::Error::new(io::ErrorKind::InvalidData, "they are not the events that they should be");
        let OpenEvents { events, sampled, instances, guards, rings, pages } = open;
        let count = events.len();
        let adopt = |(name, attr): (String, Attr)| {
            let spec = EventSpec::new(name, Source::Kernel(attr.clone()));
            let request = Request::as_it_is(&spec.name, attr);
            SampledEvent { spec, cgroup: None, request, leads: true }
        };
        let take = |(Instance { event, id, ring, slot }, fd): (Instance, OwnedFd)| {
            let fd = EventFd::from(fd);
            // What only counts has no ring.
            let has_ring = ring < rings.len() || (rings.is_empty() && ring == usize::MAX);
            if event >= count || !has_ring || fd.id()? != id {
                return Err(wrong());
            }
            Ok(SampledSlot { event, slot, fd, id, ring, is_off: Cell::new(false) })
        };
        let mut adopted = Self {
            events: events.into_iter().map(adopt).collect(),
            groups: (0..count).map(|event| vec![event]).collect(),
            open: instances.into_iter().map(take).collect::<io::Result<_>>()?,
            has_tracker: sampled < count,
            keeps_contexts: !guards.is_empty(),
            guards: guards.into_iter().map(|fd| (0, EventFd::from(fd))).collect(),
            ..Self::default()
        };
        for at in rings {
            let Some(slot) = adopted.open.get(at) else { return Err(wrong()) };
            let direction = adopted.events[slot.event].direction();
            adopted.rings.push(MappedRing { open: at, slot: slot.slot, direction, ring: None, watched: at });
            let last = adopted.rings.len() - 1;
            let mut ring = adopted.map_one(last, pages)?;
            ring.read_on();
            adopted.rings[last].ring = Some(ring);
        }
        Ok(adopted)
    }

    /// All that is open: the descriptor of each instance, in their order, then those of [the
    /// guards](super::RingOptions::keeps_contexts).
    pub fn all_descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.open
            .iter()
            .map(|open| &open.fd)
            .chain(self.guards.iter().map(|(_, guard)| guard))
            .map(AsFd::as_fd)
    }

    /// For each ring the index of the instance that it is mapped on.
    pub fn mapped_on(&self) -> Vec<usize> {
        self.rings.iter().map(|mapped| mapped.open).collect()
    }

    /// Whether the rings of samples keep the newest.
    pub fn keeps_newest(&self) -> bool {
        let mut sampled = self.open.iter().filter(|open| open.event < self.sampled_events());
        let keeps = |mapped: &MappedRing| mapped.direction == Direction::Backward;
        sampled.all(|open| self.rings.get(open.ring).is_some_and(keeps))
    }
}
