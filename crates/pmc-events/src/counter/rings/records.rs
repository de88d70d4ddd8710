//! Reads records from rings: the unread records of forward rings, and the contents of backward rings.
//!
//! Takes mapped [`Rings`]; passes their records to callbacks without copying or interpreting them.

use super::{MappedRing, Rings};
use pmc_sys::error::Error;
use pmc_sys::sys::perf::{EventFd, Paused};
use pmc_sys::sys::ring::{Direction, Ring};

/// A part of a ring that was passed to a callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopiedRing {
    /// Index of the ring.
    pub ring: usize,
    /// In a backward ring, the newest record comes first.
    pub direction: Direction,
    /// Number of bytes passed to the callback.
    pub len: u64,
    /// Total number of bytes written into the ring up to the end of this part.
    pub end: u64,
}

impl Rings {
    /// Passes the forward rings' unread records to `look`, as one or two slices per ring. Leaves them in the
    /// rings.
    pub fn peek(&self, mut look: impl FnMut(&[&[u8]])) {
        self.rings.iter().filter_map(|mapped| mapped.ring.as_ref()).for_each(|ring| ring.peek(&mut look));
    }

    /// Passes the unread records of every forward ring to `take`, and marks them as read. `take` gets the
    /// ring's index and one or two slices. Returns the total number of bytes.
    ///
    /// # Errors
    /// Returns the error returned by `take`.
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

    /// Whether a forward ring holds records that the kernel has not published.
    pub fn has_unpublished(&self) -> bool {
        self.rings.iter().filter_map(|mapped| mapped.ring.as_ref()).any(|ring| ring.unpublished() > 0)
    }

    /// Whether records in a forward ring have overwritten each other.
    pub fn is_torn(&self) -> bool {
        self.rings.iter().filter_map(|mapped| mapped.ring.as_ref()).any(Ring::is_torn)
    }

    /// Passes the contents of the backward rings to `take`, newest records first, then lets the kernel resume
    /// writing. `take` gets the ring's index and one or two slices. Returns the total number of bytes.
    ///
    /// # Errors
    /// Returns the error from `take`, or the kernel's error if a ring cannot be paused;
    /// that ring is not read.
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

    /// For each backward ring, passes the bytes written after position `after[ring]` to `take`, as one or two
    /// slices. A ring without an entry in `after` is passed completely. Also drains the unread records of
    /// forward rings. Returns the parts that were passed. Can be called repeatedly.
    ///
    /// # Errors
    /// Fails in the same cases as [`Rings::snapshot`].
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

    /// The current position of each ring. A later [`copy`](Self::copy) from these positions passes only newly
    /// written records, and unread records in forward rings.
    pub fn positions(&self) -> Vec<CopiedRing> {
        let position = |(index, mapped): (usize, &MappedRing)| {
            let (ring, direction) = (mapped.ring.as_ref()?, mapped.direction);
            let end = if direction == Direction::Forward { ring.taken() } else { ring.written() };
            Some(CopiedRing { ring: index, direction, len: 0, end })
        };
        self.rings.iter().enumerate().filter_map(position).collect()
    }

    /// Whether any ring keeps the newest records until a snapshot.
    pub fn has_backward(&self) -> bool {
        self.rings.iter().any(|mapped| mapped.direction == Direction::Backward)
    }
}

fn pause(event: &EventFd) -> Result<Paused<'_>, Error> {
    event.pause().map_err(|error| Error::io("pausing a ring to take a snapshot", error))
}
