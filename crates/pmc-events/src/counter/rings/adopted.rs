//! Takes over the descriptors and rings of events that another process opened.
//!
//! Takes the other process's description of the events ([`OpenEvents`]); returns [`Rings`] that continue
//! reading where that process stopped.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::super::request::OpenRequest;
use super::{Instance, MappedRing, RingEvent, Rings, SampledSlot};
use crate::event::{EventSource, EventSpec};
use pmc_sys::abi::Attr;
use pmc_sys::sys::perf::EventFd;
use pmc_sys::sys::ring::Direction;

/// Open events that are passed to another process.
#[derive(Debug)]
pub struct OpenEvents {
    /// Names and attributes of the sampling events, then of the tracker, if any.
    pub events: Vec<(String, Attr)>,
    /// Number of sampling events.
    pub sampled: usize,
    /// The open instances with their descriptors.
    pub instances: Vec<(Instance, OwnedFd)>,
    /// Guard events that prevent the sampling events from moving to another thread.
    pub guards: Vec<OwnedFd>,
    /// For each ring, the index of the instance on which it is mapped.
    pub rings: Vec<usize>,
    /// Number of pages of each ring.
    pub pages: usize,
}

impl Rings {
    /// Takes over open events: maps each existing ring, and continues reading where the former owner stopped.
    ///
    /// # Errors
    /// Returns `InvalidData` if a descriptor does not belong to its event, and otherwise the kernel's error.
    pub fn adopt(open: OpenEvents) -> io::Result<Self> {
        let wrong =
            || io::Error::new(io::ErrorKind::InvalidData, "the received descriptors belong to other events");
        let OpenEvents { events, sampled, instances, guards, rings, pages } = open;
        let count = events.len();
        let adopt = |(name, attr): (String, Attr)| {
            let spec = EventSpec::new(name, EventSource::Kernel(attr.clone()));
            let request = OpenRequest::from_open_event(&spec.name, attr);
            RingEvent { spec, cgroup: None, request, leads: true }
        };
        let take = |(Instance { event, id, ring, slot }, fd): (Instance, OwnedFd)| {
            let fd = EventFd::from(fd);
            // A recording that only counts has no rings.
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

    /// All open descriptors: the instances in order, then [the guards](super::RingOptions::keeps_contexts).
    pub fn all_descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.open
            .iter()
            .map(|open| &open.fd)
            .chain(self.guards.iter().map(|(_, guard)| guard))
            .map(AsFd::as_fd)
    }

    /// For each ring, the index of the instance on which it is mapped.
    pub fn mapped_on(&self) -> Vec<usize> {
        self.rings.iter().map(|mapped| mapped.open).collect()
    }

    /// Whether the sample rings keep the newest records.
    pub fn keeps_newest(&self) -> bool {
        let mut sampled = self.open.iter().filter(|open| open.event < self.sampled_events());
        let keeps = |mapped: &MappedRing| mapped.direction == Direction::Backward;
        sampled.all(|open| self.rings.get(open.ring).is_some_and(keeps))
    }
}
