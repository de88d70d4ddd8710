//! What hardware traces into the AUX areas beside rings.
//!
//! Receives [`Rings`] that are mapped; shows the trace where it lies, or a copy of what an area holds that
//! keeps the newest. Leaves what it says to decoders.
//!
//! ```text
//! CPU 0   thread A, trace   mapped: ring 0 + AUX area    an area is mapped on an event that traces: it is
//!         thread A, others  → ring 0                     the one that the ring is mapped on
//!         thread B, trace   → ring 0 and its area
//! ```

use std::io;

use super::{Rings, TargetSlot};
use crate::error::Error;
use crate::sys::ring::{AuxMode, Ring};

/// The areas of a recording.
#[derive(Debug, Clone, Copy)]
pub struct AuxOptions {
    /// Of each: a power of two.
    pub pages: usize,
    /// What becomes of what finds no room.
    pub mode: AuxMode,
}

/// Where a piece of a trace comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TracePiece {
    /// Index of the ring that its area is beside.
    pub ring: usize,
    /// The CPU or thread that the ring is for.
    pub slot: TargetSlot,
    /// Bytes that were traced there before it.
    pub offset: u64,
}

impl Rings {
    /// Maps the area of a ring, if it is mapped on an event that traces.
    pub(super) fn map_aux(&self, ring: &mut Ring, on: usize) -> io::Result<()> {
        match self.aux.filter(|_| self.traces(on)) {
            Some(AuxOptions { pages, mode }) => ring.map_aux(&self.open[on].fd, pages, mode),
            None => Ok(()),
        }
    }

    /// Whether this instance traces.
    pub(super) fn traces(&self, open: usize) -> bool {
        self.events[self.open[open].event].spec.trace.is_some()
    }

    /// Whether something is traced, and kept until it is asked for.
    pub fn keeps_newest_trace(&self) -> bool {
        self.aux.is_some_and(|aux| aux.mode == AuxMode::Newest)
    }

    /// Shows what was traced since the last time to `take`, as one or two slices a ring. Bytes in all.
    ///
    /// # Errors
    /// What `take` says.
    pub fn drain_traces<E>(
        &mut self,
        mut take: impl FnMut(TracePiece, &[&[u8]]) -> Result<(), E>,
    ) -> Result<u64, E> {
        let mut bytes = 0;
        for (ring, mapped) in self.rings.iter_mut().enumerate() {
            let slot = mapped.slot;
            let Some(mapped) = &mut mapped.ring else { continue };
            bytes += mapped.drain_aux(|offset, slices| take(TracePiece { ring, slot, offset }, slices))?;
        }
        Ok(bytes)
    }

    /// Starts traces again that the kernel has stopped for want of room. They are told to stop before: on CPU
    /// 0, Linux 6.1 leaves an event on whose trace has stopped (`perf_aux_output_end` marks what is to be
    /// disabled by the CPU's number), and has nothing to start then.
    ///
    /// # Errors
    /// The kernel's.
    pub fn restart_traces(&self) -> Result<(), Error> {
        self.switch_traces(false)?;
        self.switch_traces(true)
    }

    /// Shows a copy of what the areas hold that keep the newest. Nothing is traced meanwhile. Bytes in all.
    ///
    /// # Errors
    /// What `take` says, and the kernel's, where it does not stop them or start them again.
    pub fn copy_traces<E>(
        &mut self,
        mut take: impl FnMut(TracePiece, &[&[u8]]) -> Result<(), E>,
    ) -> Result<u64, Error>
    where
        Error: From<E>,
    {
        if !self.keeps_newest_trace() {
            return Ok(0);
        }
        self.switch_traces(false)?;
        let mut bytes = 0;
        let taken = self.rings.iter().enumerate().try_for_each(|(ring, mapped)| {
            let Some((offset, trace)) = mapped.ring.as_ref().and_then(Ring::copy_aux) else { return Ok(()) };
            if trace.is_empty() {
                return Ok(());
            }
            bytes += trace.len() as u64;
            take(TracePiece { ring, slot: mapped.slot, offset }, &[&trace])
        });
        self.switch_traces(true)?;
        taken?;
        Ok(bytes)
    }

    /// Starts or stops, for a moment, the traces that nobody has switched off.
    fn switch_traces(&self, on: bool) -> Result<(), Error> {
        let mut running = (0..self.open.len()).filter(|&at| self.traces(at) && !self.open[at].is_off.get());
        running.try_for_each(|at| self.open[at].fd.switch(on)).map_err(|error| {
            Error::io(if on { "starting the trace again" } else { "stopping the trace" }, error)
        })
    }
}
