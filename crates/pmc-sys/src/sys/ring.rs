//! A ring buffer of records in shared memory, which the kernel fills and pmc drains. Both sides must access
//! it in the right order.
//!
//! Maps the ring of an open event, and returns slices of complete records directly from the ring, without
//! interpreting them. The header page, and the two ways of using the ring:
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
#[cfg(test)]
mod model;

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

/// The direction in which the kernel writes, which determines what happens when the ring is full.
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
    /// For a forward ring, the position up to which pmc has read. For a backward ring, the head at the last
    /// read.
    tail: u64,
    /// A copy of the bytes that were last read at each position of the ring, if enabled by [`Ring::keeping`].
    read: Option<Box<[u8]>>,
    /// Number of unpublished bytes after the head, and the time at which they were first seen.
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
    /// Returns the kernel's error: `EPERM` if the mapping exceeds the limit on locked memory, `EINVAL` if
    /// `pages` is not a power of two or the event inherits without being bound to a CPU.
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

    /// Continues reading a forward ring where its previous reader stopped.
    pub fn read_on(&mut self) {
        if self.direction == Direction::Forward {
            // ORDERING: acquire, because another process stored the tail after it had read the records before
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

    /// Passes all unread records of a forward ring to `take`, and returns their space to the kernel. `take`
    /// receives one slice, or two if the ring wraps; a record may be split across both. Returns the number of
    /// bytes read.
    ///
    /// # Errors
    /// Fails if `take` fails; the records then stay in the ring.
    pub fn drain<E>(&mut self, take: impl FnOnce(&[&[u8]]) -> Result<(), E>) -> Result<u64, E> {
        // After unpublished records have been read, the tail may be past the head.
        let head = if self.read.is_some() { self.head().max(self.tail) } else { self.head() };
        let len = head.wrapping_sub(self.tail);
        if len == 0 || self.direction == Direction::Backward {
            return Ok(0);
        }
        // Unread data cannot exceed the size of the ring. If it seems to, no data can be trusted, and reading
        // restarts at the head.
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

    /// Reads records that the kernel has written after the head of a [keeping](Self::keeping) ring, but has
    /// not published. Passes the records that have been complete for a while to `take`, and returns their
    /// space to the kernel. Returns the number of bytes read.
    ///
    /// An exiting thread writes its `READ` record (`inherit_stat`) to the ring of the CPU to which its event
    /// is bound, even if the thread runs on another CPU (`sync_child_event` in the kernel's
    /// `kernel/events/core.c`). Both CPUs may then write to the ring at the same time, which the count of
    /// writers (`nest` in `perf_output_put_handle`) does not support. The count can stay above 1, in which
    /// case the kernel never publishes a head again even though all data has been written.
    ///
    /// # Errors
    /// Fails if `take` fails; the records then stay in the ring.
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
        // SAFETY: these records have been complete for a while, and the kernel writes only after them.
        let (first, second) = unsafe { self.slices(self.tail, seen) };
        take(&[first, second])?;
        self.give_back(self.tail + seen);
        self.unpublished = None;
        Ok(seen)
    }

    /// Returns the size of the records after the head that have been written but not published. A writer may
    /// be about to publish them. Returns 0 unless the ring keeps a copy of its data and has been read up to
    /// its head.
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
            // Bytes that equal the copy were already read in the previous round. A new record always differs,
            // because of its timestamp.
            if !is_record || len + size > self.size || !self.is_new(len, size) {
                break;
            }
            len += size;
        }
        len
    }

    /// Whether the data after the head is not a record, because two writers have used the same space. The
    /// ring must [keep a copy](Self::keeping) of its data, and must have been read up to its head.
    pub fn is_torn(&self) -> bool {
        self.head() <= self.tail && self.unpublished() == 0 && self.is_new(0, 64)
    }

    /// Whether these bytes after the tail have changed since they were last read.
    fn is_new(&self, from: u64, len: u64) -> bool {
        let Some(read) = &self.read else { return false };
        (from..from + len).step_by(8).any(|behind| {
            let at = ((self.tail + behind) & (self.size - 1)) as usize;
            self.word_behind(behind).to_ne_bytes() != read[at..at + 8]
        })
    }

    /// Returns the word at an offset from the tail. The offset is in bytes, and a multiple of 8.
    fn word_behind(&self, behind: u64) -> u64 {
        self.word_at(((self.tail + behind) & (self.size - 1)) as usize)
    }

    /// Returns the word at an offset in the ring. The offset is a multiple of 8, and below the ring's size.
    fn word_at(&self, at: usize) -> u64 {
        // SAFETY: `at` is a multiple of 8 inside the ring, which starts after the header page. The read is
        // volatile, because the kernel may be writing the word.
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
        // SAFETY: as in `drain`. The tail does not move while the slices are borrowed, because moving it
        // requires `&mut self`.
        let (first, second) = unsafe { self.slices(self.tail, len) };
        look(&[first, second]);
    }

    /// Passes the new contents of a backward ring to `take`, newest first, as one or two slices. The last
    /// record may be cut off, because newer ones have overwritten it. Skips records that were passed by an
    /// earlier call. Returns the number of bytes passed, which is 0 if a different event is paused.
    ///
    /// # Errors
    /// Fails if `take` fails.
    pub fn snapshot<E>(
        &mut self,
        paused: &Paused<'_>,
        take: impl FnOnce(&[&[u8]]) -> Result<(), E>,
    ) -> Result<u64, E> {
        let (head, len) = self.take_since(self.tail, paused, take)?;
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

    /// Passes all data written to a backward ring after its first `after` bytes to `take`, newest first, as
    /// one or two slices. May be called repeatedly with the same position. The last record may be cut off. If
    /// at least half of the ring is new, `pause` is called; otherwise, the kernel continues writing. Returns
    /// the total number of bytes ever written.
    ///
    /// # Errors
    /// Fails if `pause` or `take` fails.
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
            // ORDERING: acquire, so that the head is read again after the records. A write that overwrote any
            // of them started at that head or an earlier one.
            fence(Ordering::Acquire);
            // The other half of the ring leaves room for writes in progress that are not published yet.
            if new(self.written()) <= self.size / 2 {
                return take(&[&copy]).map(|()| all);
            }
        }
        let (head, _) = self.take_since(after.wrapping_neg(), &pause()?, take)?;
        Ok(written(Direction::Backward, head))
    }

    /// Passes all data written since the head was at `since` to `take`. Returns the head and the number of
    /// bytes passed.
    fn take_since<E>(
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
        // ORDERING: acquire, so that our reads of the records come after this read of the head. Pairs with
        // the smp_wmb() before the store to data_head in perf_output_put_handle(): everything before that
        // head has been written.
        self.word(HEAD).load(Ordering::Acquire)
    }

    /// Returns the `len` bytes from the free-running position `from`.
    ///
    /// # Safety
    /// `len` must be at most the ring's size, and nothing may write to these bytes as long as the slices
    /// live.
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
        // SAFETY: these offsets are in the header page, which is mapped as long as `self` lives, and are
        // multiples of 8. The kernel reads and writes each of these words in a single access. pmc writes them
        // only in forward rings, whose header page is writable.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().cast::<u8>().add(offset).cast::<u64>()) }
    }
}

/// Returns the total number of bytes ever written, given the head.
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

    /// Counts complete records of 24 bytes, the size of a record with the fields above.
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
        // If most of the ring is new, the event is paused, and overwritten records are missing.
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
