//! A ring buffer of records, which the kernel fills and pmc drains through shared memory. Both sides must
//! access it in the right order.
//!
//! Receives an open event; returns slices of complete records, straight from the ring. Does not interpret
//! the records. The header page and the two ways to use the ring:
//!
//! ```text
//! page 0: … | data_head (1024) | data_tail (1032) | …          pages 1 to 2^n: the ring
//!
//! forward   tail ─────────────► head          head and tail run free; position in the ring: modulo its size.
//!           |■■■■■■■■■■■■■■■■■■■|             Full: the kernel drops records and counts them.
//!
//!           |■■■■■ head      tail ■■■■■■|     Wrapped: two slices, the second at the start of the ring.
//!
//! backward  head ─────────────► older …       The kernel writes downwards from 0, over the oldest records,
//!           |newest … oldest| torn            and ignores the tail. Read only while paused.
//! ```
//! Source: `struct perf_event_mmap_page` in `include/uapi/linux/perf_event.h`; `kernel/events/ring_buffer.c`.

mod aux_area;

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::{Duration, Instant};

use perf_event_open_sys::bindings::{PERF_RECORD_MAX, perf_event_mmap_page};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use self::aux_area::AuxArea;
pub use self::aux_area::AuxMode;
use super::page_size;
use super::perf::{EventFd, Paused};

/// Direction in which the kernel writes, and its behaviour when the ring is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Upwards; drops records that do not fit.
    Forward,
    /// Downwards, overwriting the oldest records (`write_backward`): a flight recorder.
    Backward,
}

/// A mapped ring.
#[derive(Debug)]
pub struct Ring {
    start: NonNull<c_void>,
    /// Size of the mapping in bytes, including the header page.
    bytes: usize,
    /// Size of the ring in bytes: a power of two.
    size: u64,
    direction: Direction,
    /// The event on which the ring is mapped.
    event: RawFd,
    /// Forward: position up to which pmc has read. Backward: the head at the last reading.
    tail: u64,
    /// The bytes last read from each position of the ring, if kept: see [`Ring::keeping`].
    read: Option<Box<[u8]>>,
    /// Number of unpublished bytes after the head, and the time since which they have been there.
    unpublished: Option<(u64, Instant)>,
    aux: Option<AuxArea>,
}

/// Time after which an unpublished record is assumed to be complete.
const SETTLED: Duration = Duration::from_millis(50);

// SAFETY: the mapping belongs to the process, not to a thread; only the owner of the `Ring` moves the tail.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps a ring of `pages` (a power of two) after the header page. [`EventFd::set_output`] redirects
    /// other events to it.
    ///
    /// # Errors
    /// The kernel's error: `EPERM` if the mapping exceeds the limit of locked memory, `EINVAL` if `pages`
    /// is not a power of two or the event inherits without being bound to a CPU.
    pub fn map(event: &EventFd, pages: usize, direction: Direction) -> io::Result<Self> {
        let page = page_size();
        let bytes =
            pages.checked_add(1).and_then(|all| all.checked_mul(page)).ok_or(io::ErrorKind::OutOfMemory)?;
        // The kernel respects the tail only if the mapping is writable.
        let access = match direction {
            Direction::Forward => ProtFlags::READ | ProtFlags::WRITE,
            Direction::Backward => ProtFlags::READ,
        };
        // SAFETY: the kernel chooses the address, so no existing mapping is replaced.
        let start = unsafe { mmap(std::ptr::null_mut(), bytes, access, MapFlags::SHARED, event.as_fd(), 0) }?;
        let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self {
            start,
            bytes,
            size: (pages * page) as u64,
            direction,
            event: event.as_fd().as_raw_fd(),
            tail: 0,
            read: None,
            unpublished: None,
            aux: None,
        })
    }

    /// Continues in a forward ring where its previous reader stopped.
    pub fn read_on(&mut self) {
        if self.direction == Direction::Forward {
            // ORDERING: acquire, because another process stored the tail after reading the records before
            // it.
            self.tail = self.word(TAIL).load(Ordering::Acquire);
        }
    }

    /// Makes the ring keep a copy of its data, so that [`drain_unpublished`](Self::drain_unpublished) can
    /// detect new records.
    pub fn keeping(mut self) -> Self {
        let is_read = self.direction == Direction::Forward;
        self.read = is_read.then(|| vec![0; self.size as usize].into());
        self
    }

    /// Returns the size of the ring in bytes, without its header page.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Passes all unread records of a forward ring to `take`, and returns their space to the kernel. There
    /// is one slice, or two if the ring wraps (a record may be split across both). Returns the number of
    /// bytes read.
    ///
    /// # Errors
    /// The errors of `take`; the records then stay in the ring.
    pub fn drain<E>(&mut self, take: impl FnOnce(&[&[u8]]) -> Result<(), E>) -> Result<u64, E> {
        // After reading unpublished records, the tail may be past the head.
        let head = if self.read.is_some() { self.head().max(self.tail) } else { self.head() };
        let len = head.wrapping_sub(self.tail);
        if len == 0 || self.direction == Direction::Backward {
            return Ok(0);
        }
        // There cannot be more unread data than the ring holds: if there is, nothing in it can be trusted,
        // and reading restarts at the head.
        if len <= self.size {
            // SAFETY: the kernel writes only outside of [tail, head) until the tail moves, which happens
            // below, after the slices are gone. So nothing writes to these bytes while they are borrowed.
            let (first, second) = unsafe { self.slices(self.tail, len) };
            match second {
                [] => take(&[first])?,
                _ => take(&[first, second])?,
            }
        }
        self.give_back(head);
        Ok(len)
    }

    /// Passes complete records after the head of a [keeping](Self::keeping) ring that have been unpublished
    /// for a while to `take`, and returns their space. Returns the number of bytes read.
    ///
    /// An exiting thread writes its `READ` record (`inherit_stat`) to the ring of the CPU to which its
    /// event is bound, from any CPU (`sync_child_event` in the kernel's `kernel/events/core.c`). That CPU
    /// may write to the ring at the same time. The count of writers (`nest` in `perf_output_put_handle`)
    /// does not support two CPUs. It can stay above 1, and then the kernel never publishes a head again
    /// although all data is written.
    ///
    /// # Errors
    /// The errors of `take`; the records then stay in the ring.
    pub fn drain_unpublished<E>(&mut self, take: impl FnOnce(&[&[u8]]) -> Result<(), E>) -> Result<u64, E> {
        let len = self.unpublished();
        if len == 0 {
            self.unpublished = None;
            return Ok(0);
        }
        let known = self.unpublished.filter(|(seen, _)| *seen <= len);
        let (seen, since) = *self.unpublished.insert(known.unwrap_or_else(|| (len, Instant::now())));
        if since.elapsed() < SETTLED {
            return Ok(0);
        }
        // SAFETY: these records were complete a while ago, and the kernel writes after them.
        let (first, second) = unsafe { self.slices(self.tail, seen) };
        take(&[first, second])?;
        self.give_back(self.tail + seen);
        self.unpublished = None;
        Ok(seen)
    }

    /// Returns the size of the unpublished records after the head of a keeping ring that was read to its
    /// head. A writer may be about to publish them.
    pub fn unpublished(&self) -> u64 {
        if self.read.is_none() || self.head() > self.tail {
            return 0;
        }
        let mut len = 0;
        while len < self.size {
            // Header layout: type 32 | misc 16 | size 16
            let header = self.word_behind(len);
            let (kind, size) = (header as u32, header >> 48);
            let is_record = kind != 0 && kind < PERF_RECORD_MAX && size >= 8 && size % 8 == 0;
            // Bytes from the previous round were already read; timestamps make every record different.
            if !is_record || len + size > self.size || !self.is_new(len, size) {
                break;
            }
            len += size;
        }
        len
    }

    /// Whether a keeping ring that was read to its end has data after the head that is not a record: two
    /// writers have used the same space.
    pub fn is_torn(&self) -> bool {
        self.head() <= self.tail && self.unpublished() == 0 && self.is_new(0, 64)
    }

    /// Whether these bytes after the tail were written since they were last read.
    fn is_new(&self, from: u64, len: u64) -> bool {
        let Some(read) = &self.read else { return false };
        (from..from + len).step_by(8).any(|behind| {
            let at = ((self.tail + behind) & (self.size - 1)) as usize;
            self.word_behind(behind).to_ne_bytes() != read[at..at + 8]
        })
    }

    /// Returns the word at an offset from the tail, in bytes; a multiple of 8.
    fn word_behind(&self, behind: u64) -> u64 {
        self.word_at(((self.tail + behind) & (self.size - 1)) as usize)
    }

    /// Returns the word at an offset in the ring, a multiple of 8 below its size.
    fn word_at(&self, at: usize) -> u64 {
        // SAFETY: a multiple of 8 inside the ring, which starts after the header page; volatile, because
        // the kernel may be writing it.
        unsafe { self.start.as_ptr().cast::<u8>().add(page_size() + at).cast::<u64>().read_volatile() }
    }

    /// Returns the space up to `tail` to the kernel.
    fn give_back(&mut self, tail: u64) {
        if let Some(mut read) = self.read.take() {
            let len = tail.wrapping_sub(self.tail).min(self.size);
            let at = (self.tail & (self.size - 1)) as usize;
            // SAFETY: as in `drain`: the tail has not moved yet.
            let (first, second) = unsafe { self.slices(self.tail, len) };
            read[at..at + first.len()].copy_from_slice(first);
            read[..second.len()].copy_from_slice(second);
            self.read = Some(read);
        }
        self.tail = tail;
        // ORDERING: release, so that our reads of the records come before the kernel sees their space as
        // free. Pairs with the control dependency in __perf_output_begin(), which reads data_tail before it
        // stores new records.
        self.word(TAIL).store(tail, Ordering::Release);
    }

    /// Passes all unread records of a forward ring to `look`, and leaves them in the ring.
    pub fn peek(&self, look: impl FnOnce(&[&[u8]])) {
        let len = self.head().wrapping_sub(self.tail);
        if len == 0 || len > self.size || self.direction == Direction::Backward {
            return;
        }
        // SAFETY: as in `drain`; the tail does not move while the slices are borrowed, because moving it
        // takes `&mut self`.
        let (first, second) = unsafe { self.slices(self.tail, len) };
        look(&[first, second]);
    }

    /// Passes the new contents of a backward ring to `take`, newest first, as one or two slices. The last
    /// record may be cut off, because newer ones have overwritten it. Skips records that an earlier call
    /// passed. Returns the number of bytes passed, which is 0 if a different event is paused.
    ///
    /// # Errors
    /// The errors of `take`.
    pub fn snapshot<E>(
        &mut self,
        paused: &Paused<'_>,
        take: impl FnOnce(&[&[u8]]) -> Result<(), E>,
    ) -> Result<u64, E> {
        let (head, len) = self.look(self.tail, paused, take)?;
        self.tail = head;
        Ok(len)
    }

    /// Returns the total number of bytes ever written to the ring.
    pub fn written(&self) -> u64 {
        written(self.direction, self.head())
    }

    /// Returns the total number of bytes ever read from a forward ring.
    pub fn taken(&self) -> u64 {
        self.tail
    }

    /// Passes to `take` everything written to a backward ring after its first `after` bytes, newest first, as
    /// one or two slices. May be called repeatedly with the same position. The last record may be cut off.
    /// While less than half of the ring is new, the kernel continues writing; otherwise `pause` is called.
    /// Returns the total number of bytes ever written.
    ///
    /// # Errors
    /// The errors of `pause` and `take`.
    pub fn copy<'a, E>(
        &self,
        after: u64,
        pause: impl FnOnce() -> Result<Paused<'a>, E>,
        take: impl FnOnce(&[&[u8]]) -> Result<(), E>,
    ) -> Result<u64, E> {
        let head = self.head();
        let all = written(Direction::Backward, head);
        let new = |written: u64| written.saturating_sub(after);
        if new(all) <= self.size / 2 {
            let from = |behind: u64| (head.wrapping_add(behind) & (self.size - 1)) as usize;
            let copy: Vec<u8> =
                (0..new(all)).step_by(8).flat_map(|at| self.word_at(from(at)).to_ne_bytes()).collect();
            // ORDERING: acquire, so that the head is read again after the records. Whatever the kernel
            // wrote over them, it started writing when the head was at that position.
            fence(Ordering::Acquire);
            // The other half covers unpublished writes in progress.
            if new(self.written()) <= self.size / 2 {
                return take(&[&copy]).map(|()| all);
            }
        }
        let (head, _) = self.look(after.wrapping_neg(), &pause()?, take)?;
        Ok(written(Direction::Backward, head))
    }

    /// Passes everything written since the head was at `since` to `take`. Returns the head and the number
    /// of bytes passed.
    fn look<E>(
        &self,
        since: u64,
        paused: &Paused<'_>,
        take: impl FnOnce(&[&[u8]]) -> Result<(), E>,
    ) -> Result<(u64, u64), E> {
        if !paused.is(self.event) {
            return Ok((since, 0));
        }
        let head = self.head();
        // The head runs downwards from 0, so new data lies between the head and its old position.
        let len = since.wrapping_sub(head).min(self.size);
        if len > 0 && self.direction == Direction::Backward {
            // SAFETY: `paused` guarantees that the kernel has stopped writing to this ring, and resumes
            // writing only when it is dropped, after the slices.
            let (first, second) = unsafe { self.slices(head, len) };
            match second {
                [] => take(&[first])?,
                _ => take(&[first, second])?,
            }
        }
        Ok((head, len))
    }

    fn head(&self) -> u64 {
        // ORDERING: acquire, so that our reads of the records come after this one. Pairs with the smp_wmb()
        // before the store to data_head in perf_output_put_handle(): everything before that head has been
        // written.
        self.word(HEAD).load(Ordering::Acquire)
    }

    /// Returns the `len` bytes from the free-running position `from`.
    ///
    /// # Safety
    /// `len` is at most the ring's size, and nothing writes to these bytes as long as the slices live.
    unsafe fn slices(&self, from: u64, len: u64) -> (&[u8], &[u8]) {
        let (at, len) = ((from & (self.size - 1)) as usize, len as usize);
        let first = len.min(self.size as usize - at);
        // SAFETY: the ring starts after the header page and is `size` bytes long; `at + first` and `len -
        // first` do not exceed it. The caller guarantees the rest.
        unsafe {
            let ring = self.start.as_ptr().cast::<u8>().add(page_size());
            (std::slice::from_raw_parts(ring.add(at), first), std::slice::from_raw_parts(ring, len - first))
        }
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: these offsets are in the header page, which is mapped as long as `self`, and are
        // multiples of 8. The kernel reads and writes these words as a whole. They are stored to only in
        // forward rings, whose page is writable.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().cast::<u8>().add(offset).cast::<u64>()) }
    }
}

/// Returns the total number of bytes ever written, for this head.
fn written(direction: Direction, head: u64) -> u64 {
    match direction {
        Direction::Forward => head,
        Direction::Backward => head.wrapping_neg(),
    }
}

const HEAD: usize = std::mem::offset_of!(perf_event_mmap_page, data_head);
const TAIL: usize = std::mem::offset_of!(perf_event_mmap_page, data_tail);

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, its address is not shared, and no reference into it outlives a call.
        let _ = unsafe { munmap(self.start.as_ptr(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::Attr;
    use crate::abi::attr::{Flag, kind};
    use crate::sys::perf::OpenTarget;

    #[test]
    fn offsets_match_the_kernel_header() {
        assert_eq!((HEAD, TAIL), (1024, 1032));
    }

    /// Opens an event that writes one record per page fault of this thread.
    fn faults(backward: bool) -> Option<EventFd> {
        let mut attr = Attr::new(kind::SOFTWARE, 2);
        attr.set_period(1);
        attr.set_sample_type(1 | 8); // IP, ADDR
        attr.set(Flag::ExcludeKernel, true);
        attr.set(Flag::WriteBackward, backward);
        EventFd::open(&attr, OpenTarget::Task(0), None).ok()
    }

    fn touch(pages: usize) {
        let memory = memmap2::MmapMut::map_anon(pages * page_size()).unwrap();
        let mut memory = memory;
        for page in memory.chunks_mut(page_size()) {
            page[0] = 1;
        }
    }

    /// Counts complete records of 24 bytes, the size for the fields above.
    fn count(slices: &[&[u8]]) -> usize {
        let bytes = slices.concat();
        let (mut at, mut records) = (0, 0);
        while let Some(size) =
            bytes.get(at + 6..at + 8).map(|s| usize::from(u16::from_ne_bytes([s[0], s[1]])))
        {
            if size < 8 || at + size > bytes.len() {
                break;
            }
            at += size;
            records += 1;
        }
        records
    }

    #[test]
    fn records_are_complete_across_the_wrap() {
        let Some(event) = faults(false) else { return };
        let mut ring = Ring::map(&event, 1, Direction::Forward).unwrap();
        let (mut records, mut split, mut bytes) = (0, 0, 0);
        for _ in 0..20 {
            touch(50);
            let drained = ring.drain(|slices| {
                records += count(slices);
                split += usize::from(slices.len() == 2);
                assert_eq!(slices.concat().len() % 8, 0);
                Ok::<(), ()>(())
            });
            bytes += drained.unwrap();
        }
        assert!(records >= 1000, "{records} records of 1000 faults");
        assert!(split >= 2 && bytes > 4 * ring.size(), "{split} wraps in {bytes} bytes");
        assert_eq!(ring.drain(|_| Ok::<(), ()>(())), Ok(0));
    }

    #[test]
    fn backward_ring_is_copied_consistently_while_written() {
        let Some(event) = faults(true) else { return };
        let ring = Ring::map(&event, 8, Direction::Backward).unwrap();
        let copy = |after: u64, may_pause: bool| {
            let mut records = 0;
            let pause = || if may_pause { event.pause() } else { Err(std::io::Error::other("not now")) };
            let written = ring.copy(after, pause, |slices| {
                records = count(slices);
                Ok(())
            });
            written.map(|written| (written, records as u64))
        };
        touch(100);
        let (first, records) = copy(0, false).unwrap();
        assert!(records >= 100 && first == records * 24, "{records} records in {first} bytes");
        touch(200);
        let (second, records) = copy(first, false).unwrap();
        assert!(records >= 200 && second - first == records * 24);
        assert_eq!(copy(u64::MAX, false).unwrap().1, 0);
        // If most of the ring is new, it is paused; overwritten records are missing.
        touch(1000);
        assert!(copy(second, false).is_err());
        assert_eq!(copy(second, true).unwrap().1 / 1000, 1);
        touch(2000);
        assert_eq!(copy(second, true).unwrap().1, ring.size() / 24);
    }

    #[test]
    fn backward_ring_keeps_the_newest_records() {
        let Some(event) = faults(true) else { return };
        let mut ring = Ring::map(&event, 1, Direction::Backward).unwrap();
        touch(2000);
        let paused = event.pause().unwrap();
        let mut records = 0;
        let shown = ring.snapshot(&paused, |slices| {
            records = count(slices);
            Ok::<(), ()>(())
        });
        assert_eq!(shown, Ok(ring.size()));
        assert_eq!(records as u64, ring.size() / 24);
        assert_eq!(ring.snapshot(&paused, |_| Ok::<(), ()>(())), Ok(0));
    }
}
