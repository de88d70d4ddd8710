//! What is taken out of rings: what waits in forward ones, what backward ones hold.
//!
//! Receives [`Rings`] that are mapped; shows their records where they lie. Decides nothing about them.

use super::{MappedRing, Rings};
use crate::error::Error;
use crate::sys::perf::{EventFd, Paused};
use crate::sys::ring::{Direction, Ring};

/// What was shown of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopiedRing {
    /// Its index.
    pub ring: usize,
    /// Backward: the newest record comes first.
    pub direction: Direction,
    /// Bytes shown.
    pub len: u64,
    /// Bytes ever written into it, up to what was shown.
    pub end: u64,
}

impl Rings {
    /// Shows what waits in the forward rings, and leaves it there: one or two slices a ring.
    pub fn peek(&self, mut look: impl FnMut(&[&[u8]])) {
        self.rings.iter().filter_map(|mapped| mapped.ring.as_ref()).for_each(|ring| ring.peek(&mut look));
    }

    /// Shows the waiting records of every forward ring to `take`: the ring's index, and one or two slices.
    /// Bytes in all.
    ///
    /// # Errors
    /// What `take` says.
    pub fn drain<E>(&mut self, mut take: impl FnMut(usize, &[&[u8]]) -> Result<(), E>) -> Result<u64, E> {
        let mut bytes = 0;
        for (index, mapped) in self.rings.iter_mut().enumerate() {
            if let (Direction::Forward, Some(ring)) = (mapped.direction, &mut mapped.ring) {
                bytes += ring.drain(|slices| take(index, slices))?;
                bytes += ring.drain_unpublished(|slices| take(index, slices))?;
            }
        }
        Ok(bytes)
    }

    /// Whether a forward ring holds records that the kernel has not published, or not yet.
    pub fn has_unpublished(&self) -> bool {
        self.rings.iter().filter_map(|mapped| mapped.ring.as_ref()).any(|ring| ring.unpublished() > 0)
    }

    /// Whether records of a ring that is read were written over each other.
    pub fn is_torn(&self) -> bool {
        self.rings.iter().filter_map(|mapped| mapped.ring.as_ref()).any(Ring::is_torn)
    }

    /// Shows what the backward rings hold, newest records first in each, and goes on: the ring's index, and
    /// one or two slices. Bytes in all.
    ///
    /// # Errors
    /// What `take` says; and the kernel's, where it does not stop writing into a ring: then that one
    /// is not read.
    pub fn snapshot<E>(
        &mut self,
        mut take: impl FnMut(usize, &[&[u8]]) -> Result<(), E>,
    ) -> Result<u64, Error>
    where
        Error: From<E>,
    {
        let mut bytes = 0;
        let Self { rings, open, .. } = self;
        for (index, mapped) in rings.iter_mut().enumerate() {
            if mapped.direction == Direction::Forward {
                continue;
            }
            let Some(ring) = &mut mapped.ring else { continue };
            bytes += ring.snapshot(&pause(&open[mapped.open].fd)?, |slices| take(index, slices))?;
        }
        Ok(bytes)
    }

    /// Shows what was written into the backward rings after the first bytes of each (`after`, by the index of
    /// the ring; of others everything that they hold), as often as it is asked for, and takes out what waits
    /// in the forward ones: one or two slices a ring. What was shown.
    ///
    /// # Errors
    /// As [`Rings::snapshot`].
    pub fn copy<E>(
        &mut self,
        after: &[u64],
        mut take: impl FnMut(&[&[u8]]) -> Result<(), E>,
    ) -> Result<Vec<CopiedRing>, Error>
    where
        Error: From<E>,
    {
        let Self { rings, open, .. } = self;
        let mut copied = Vec::with_capacity(rings.len());
        for (index, MappedRing { open: at, direction, ring, .. }) in rings.iter_mut().enumerate() {
            let Some(ring) = ring else { continue };
            let mut len = 0;
            let mut take = |slices: &[&[u8]]| {
                len = slices.iter().map(|slice| slice.len() as u64).sum();
                take(slices).map_err(Error::from)
            };
            let end = match direction {
                Direction::Forward => {
                    ring.drain(&mut take)?;
                    ring.taken()
                }
                Direction::Backward => {
                    let after = after.get(index).copied().unwrap_or(0);
                    ring.copy(after, || pause(&open[*at].fd), &mut take)?
                }
            };
            copied.push(CopiedRing { ring: index, direction: *direction, len, end });
        }
        Ok(copied)
    }

    /// How far the rings are, as if nothing had been shown of them by [`copy`](Self::copy): after that it
    /// shows what is written from now on, and what waits in forward ones.
    pub fn positions(&self) -> Vec<CopiedRing> {
        let position = |(index, mapped): (usize, &MappedRing)| {
            let (ring, direction) = (mapped.ring.as_ref()?, mapped.direction);
            let end = if direction == Direction::Forward { ring.taken() } else { ring.written() };
            Some(CopiedRing { ring: index, direction, len: 0, end })
        };
        self.rings.iter().enumerate().filter_map(position).collect()
    }

    /// Whether any ring keeps the newest records until a snapshot is taken.
    pub fn has_backward(&self) -> bool {
        self.rings.iter().any(|mapped| mapped.direction == Direction::Backward)
    }
}

fn pause(event: &EventFd) -> Result<Paused<'_>, Error> {
    event.pause().map_err(|error| Error::io("pausing a ring to take a snapshot", error))
}
