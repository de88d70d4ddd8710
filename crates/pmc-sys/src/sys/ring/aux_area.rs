//! The AUX area of a ring: memory to which the hardware writes a trace directly, without records.
//!
//! Maps the area for the [`Ring`] of a tracing event, and returns the raw trace, which a decoder interprets.
//! `AUX` records in the ring show when each part was written, and whether data is missing.
//!
//! ```text
//! page 0 of the ring: … | aux_head (1056) | aux_tail | aux_offset | aux_size | …
//!
//! all of it    tail ─────────────► head      Both run free. Full: the kernel stops the event, marks its AUX
//!              |■■■■■■■■■■■■■■■■■■■|         record as truncated, and it must be started again.
//!
//! the newest   |■■■■ newer ■■■■| head |■■■■ older ■■■■|     The tail is ignored. The head runs free or is a
//!                                                           position in the area, depending on the driver.
//! ```
//! Source: `perf_event_mmap_page` in `include/uapi/linux/perf_event.h`; `perf_aux_output_begin` and
//! `perf_aux_output_end` in `kernel/events/ring_buffer.c`.

use std::ffi::c_void;
use std::io;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use perf_event_open_sys::bindings::perf_event_mmap_page;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::{Direction, Ring};
use crate::sys::page_size;
use crate::sys::perf::EventFd;

/// What to do when a trace exceeds the area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuxMode {
    /// Tracing stops until there is room.
    Everything,
    /// The oldest data is overwritten.
    Newest,
}

/// A mapped area.
#[derive(Debug)]
pub(super) struct AuxArea {
    start: NonNull<c_void>,
    /// Size in bytes. The number of pages is a power of two.
    size: u64,
    mode: AuxMode,
    /// Number of bytes read since the start.
    tail: u64,
}

const HEAD: usize = std::mem::offset_of!(perf_event_mmap_page, aux_head);
const TAIL: usize = std::mem::offset_of!(perf_event_mmap_page, aux_tail);
const OFFSET: usize = std::mem::offset_of!(perf_event_mmap_page, aux_offset);
const SIZE: usize = std::mem::offset_of!(perf_event_mmap_page, aux_size);

impl Ring {
    /// Maps an AUX area of `pages` (a power of two) for a forward ring and the event on which the ring is
    /// mapped.
    ///
    /// # Errors
    /// Returns the kernel's error: `EPERM` if the mapping exceeds the limit on locked memory, `EOPNOTSUPP`
    /// if the event's PMU does not trace, `ENOMEM`.
    pub fn map_aux(&mut self, event: &EventFd, pages: usize, mode: AuxMode) -> io::Result<()> {
        if self.direction == Direction::Backward {
            // The header page of a backward ring is not writable.
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let bytes = pages.checked_mul(page_size()).ok_or(io::ErrorKind::OutOfMemory)?;
        // The kernel accepts any offset after the ring.
        let offset = self.bytes as u64;
        // ORDERING: none needed: the kernel reads both in the call below, which this thread makes.
        self.word(OFFSET).store(offset, Ordering::Relaxed);
        self.word(SIZE).store(bytes as u64, Ordering::Relaxed);
        // As with rings, the kernel respects the tail only if the mapping is writable.
        let access = match mode {
            AuxMode::Everything => ProtFlags::READ | ProtFlags::WRITE,
            AuxMode::Newest => ProtFlags::READ,
        };
        // SAFETY: the kernel chooses the address, so no existing mapping is replaced.
        let start =
            unsafe { mmap(std::ptr::null_mut(), bytes, access, MapFlags::SHARED, event.as_fd(), offset) }?;
        let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        self.aux = Some(AuxArea { start, size: bytes as u64, mode, tail: 0 });
        Ok(())
    }

    /// Passes the new part of the trace to `take`, and returns its space to the kernel. `take` receives the
    /// number of bytes traced before this part, and one or two slices. Returns the number of bytes passed,
    /// which is 0 for [`AuxMode::Newest`].
    ///
    /// # Errors
    /// Fails if `take` fails; the trace then stays in the area.
    pub fn drain_aux<E>(&mut self, take: impl FnOnce(u64, &[&[u8]]) -> Result<(), E>) -> Result<u64, E> {
        let Some(area) = &self.aux else { return Ok(0) };
        // ORDERING: acquire, so that our reads of the trace come after this read of the head. Pairs with the
        // barrier before the kernel's store of aux_head in perf_aux_output_end().
        let head = self.word(HEAD).load(Ordering::Acquire);
        let (tail, len) = (area.tail, head.wrapping_sub(area.tail));
        if area.mode == AuxMode::Newest || len == 0 {
            return Ok(0);
        }
        // Unread data cannot exceed the size of the area. If it seems to, reading restarts at the head.
        if len <= area.size {
            let (at, len) = ((tail & (area.size - 1)) as usize, len as usize);
            let first = len.min(area.size as usize - at);
            // SAFETY: the area is `size` bytes long, and neither slice exceeds it. The hardware writes only
            // outside of [tail, head) until the tail moves, which happens below, after the slices.
            let (first, second) = unsafe {
                let area = area.start.as_ptr().cast::<u8>();
                (
                    std::slice::from_raw_parts(area.add(at), first),
                    std::slice::from_raw_parts(area, len - first),
                )
            };
            match second {
                [] => take(tail, &[first])?,
                _ => take(tail, &[first, second])?,
            }
        }
        // ORDERING: release, so that our reads come before the kernel sees their space as free. Pairs with
        // the control dependency in perf_aux_output_begin(), which reads aux_tail before it lets hardware
        // write.
        self.word(TAIL).store(head, Ordering::Release);
        if let Some(area) = &mut self.aux {
            area.tail = head;
        }
        Ok(len)
    }

    /// Returns a copy of an [`AuxMode::Newest`] area, oldest data first, and the number of bytes traced
    /// before it, as far as the kernel reports it. The events that trace into the area must be disabled, or
    /// else the copy may be inconsistent.
    pub fn copy_aux(&self) -> Option<(u64, Vec<u8>)> {
        let area = self.aux.as_ref().filter(|area| area.mode == AuxMode::Newest)?;
        // ORDERING: as in `drain_aux`.
        let head = self.word(HEAD).load(Ordering::Acquire);
        let words = (0..area.size as usize).step_by(8).map(|at| {
            // SAFETY: `at` is a multiple of 8 inside the area. The read is volatile, because an event that
            // was started in the meantime may write.
            unsafe { area.start.as_ptr().cast::<u8>().add(at).cast::<u64>().read_volatile() }
        });
        let copy = words.flat_map(u64::to_ne_bytes).collect();
        Some(in_order(head, copy))
    }
}

/// Given the hardware's position `head`, returns the trace (oldest data first) and the number of bytes traced
/// before it. Since the area is initially zero, data after a head inside the area means that the trace has
/// wrapped.
fn in_order(head: u64, mut area: Vec<u8>) -> (u64, Vec<u8>) {
    let size = area.len() as u64;
    let at = (head % size) as usize;
    let mut end = head;
    if head >= size || area[at..].iter().any(|&byte| byte != 0) {
        area.rotate_left(at);
        end = head.max(size + at as u64);
    } else {
        area.truncate(at);
    }
    (end - area.len() as u64, area)
}

impl Drop for AuxArea {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, its address is not shared, and no reference into it outlives a call.
        let _ = unsafe { munmap(self.start.as_ptr(), self.size as usize) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_match_the_kernel_header() {
        assert_eq!((HEAD, TAIL, OFFSET, SIZE), (1056, 1064, 1072, 1080));
    }

    #[test]
    fn newest_data_is_returned_in_write_order() {
        let area = |bytes: [u8; 8]| bytes.to_vec();
        // Not full yet: nothing has been written after the head.
        assert_eq!(in_order(3, area([1, 2, 3, 0, 0, 0, 0, 0])), (0, vec![1, 2, 3]));
        assert_eq!(in_order(0, area([0; 8])), (0, vec![]));
        // Wrapped, with a head inside the area and with a free-running head.
        assert_eq!(in_order(3, area([6, 7, 8, 1, 2, 3, 4, 5])), (3, vec![1, 2, 3, 4, 5, 6, 7, 8]));
        assert_eq!(in_order(19, area([6, 7, 8, 1, 2, 3, 4, 5])), (11, vec![1, 2, 3, 4, 5, 6, 7, 8]));
        assert_eq!(in_order(0, area([1, 2, 3, 4, 5, 6, 7, 8])), (0, vec![1, 2, 3, 4, 5, 6, 7, 8]));
        assert_eq!(in_order(8, area([1, 2, 3, 4, 0, 0, 0, 0])), (0, vec![1, 2, 3, 4, 0, 0, 0, 0]));
    }
}
