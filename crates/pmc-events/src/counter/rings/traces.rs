//! Hardware traces in the AUX areas of rings.
//!
//! Takes mapped [`Rings`]. Passes the trace to callbacks without copying it, or as a copy if the area keeps
//! the newest data. Decoders interpret the trace.
//!
//! ```text
//! CPU 0   thread A, tracing event   mapped: ring 0 + AUX area    an area is mapped on a tracing event,
//!         thread A, other events    → ring 0                     on which its ring is mapped too
//!         thread B, tracing event   → ring 0 and its area
//! ```

use std::io;

use super::super::target::TargetSlot;
use super::Rings;
use pmc_sys::error::Error;
use pmc_sys::sys::page_size;
use pmc_sys::sys::ring::{AuxMode, Ring};

/// Options for the AUX areas of a recording.
#[derive(Debug, Clone, Copy)]
pub struct AuxOptions {
    /// Number of pages of each area, a power of two.
    pub pages: usize,
    /// Behaviour when an area is full.
    pub mode: AuxMode,
}

/// Origin of a piece of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TracePiece {
    /// Index of the ring to which the AUX area belongs.
    pub ring: usize,
    /// The CPU or thread of the ring.
    pub slot: TargetSlot,
    /// Number of bytes traced into this area before this piece.
    pub offset: u64,
}

impl Rings {
    /// Maps the AUX area of a ring if the ring is mapped on a tracing event.
    pub(super) fn map_aux(&self, ring: &mut Ring, on: usize) -> io::Result<()> {
        match self.aux.filter(|_| self.traces(on)) {
            Some(AuxOptions { pages, mode }) => ring.map_aux(&self.open[on].fd, pages, mode),
            None => Ok(()),
        }
    }

    /// Whether this instance belongs to a tracing event.
    pub(super) fn traces(&self, open: usize) -> bool {
        self.events[self.open[open].event].spec.trace.is_some()
    }

    /// Passes new trace data to `take`, as one or two slices per ring. Restarts events that the kernel
    /// stopped because an area was full. This applies to rings from which data was taken, and to the rings in
    /// `cut`, whose records report that tracing stopped. Returns the total number of bytes.
    ///
    /// ```text
    /// area full   The kernel has disabled the event, and ENABLE restarts it. But Linux 6.1 leaves an event
    ///             on CPU 0 enabled (perf_aux_output_end marks the event to disable by its CPU number), so
    ///             it must be disabled first.
    /// otherwise   The event is running, and ENABLE does nothing.
    /// ```
    ///
    /// # Errors
    /// Returns the error from `take`, or the kernel's error if the events cannot be restarted.
    pub fn drain_traces<E>(
        &mut self,
        cut: &[usize],
        mut take: impl FnMut(TracePiece, &[&[u8]]) -> Result<(), E>,
    ) -> Result<u64, Error>
    where
        Error: From<E>,
    {
        let Some(aux) = self.aux else { return Ok(0) };
        let full = (aux.pages * page_size()) as u64 / 4 * 3;
        let mut bytes = 0;
        for ring in 0..self.rings.len() {
            let slot = self.rings[ring].slot;
            let Some(mapped) = &mut self.rings[ring].ring else { continue };
            let len = mapped.drain_aux(|offset, slices| take(TracePiece { ring, slot, offset }, slices))?;
            bytes += len;
            // An event that starts while the area is full writes no record.
            let is_cut = cut.contains(&ring) || len >= full;
            if is_cut {
                self.switch_traces(false, |own| own == ring)?;
            }
            if is_cut || len > 0 {
                self.switch_traces(true, |own| own == ring)?;
            }
        }
        Ok(bytes)
    }

    /// Passes a copy of each AUX area in overwrite mode to `take`. Tracing is stopped during the copy.
    /// Returns the total number of bytes.
    ///
    /// # Errors
    /// Returns the error from `take`, or the kernel's error if the events cannot be stopped or
    /// restarted.
    pub fn copy_traces<E>(
        &mut self,
        mut take: impl FnMut(TracePiece, &[&[u8]]) -> Result<(), E>,
    ) -> Result<u64, Error>
    where
        Error: From<E>,
    {
        if self.aux.is_none_or(|aux| aux.mode != AuxMode::Newest) {
            return Ok(0);
        }
        self.switch_traces(false, |_| true)?;
        let mut bytes = 0;
        let taken = self.rings.iter().enumerate().try_for_each(|(ring, mapped)| {
            let Some((offset, trace)) = mapped.ring.as_ref().and_then(Ring::copy_aux) else { return Ok(()) };
            if trace.is_empty() {
                return Ok(());
            }
            bytes += trace.len() as u64;
            take(TracePiece { ring, slot: mapped.slot, offset }, &[&trace])
        });
        self.switch_traces(true, |_| true)?;
        taken?;
        Ok(bytes)
    }

    /// Starts or stops tracing for the rings selected by `which`. Skips events that are off.
    fn switch_traces(&self, on: bool, which: impl Fn(usize) -> bool) -> Result<(), Error> {
        let is_meant = |at: &usize| {
            let open = &self.open[*at];
            which(open.ring) && !open.is_off.get() && self.traces(*at)
        };
        let mut meant = (0..self.open.len()).filter(is_meant);
        meant.try_for_each(|at| self.open[at].fd.switch(on)).map_err(|error| {
            Error::io(if on { "starting the trace again" } else { "stopping the trace" }, error)
        })
    }
}
