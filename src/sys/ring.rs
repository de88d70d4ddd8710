//! A ring of records that the kernel fills and we empty: memory shared with it, and the order in which both
//! look at it.
//!
//! Receives an open event; hands on slices of whole records, straight from the ring. Decides nothing about
//! what they say. The header page and the two ways to use the ring:
//!
//! ```text
//! page 0: … | data_head (1024) | data_tail (1032) | …          pages 1 to 2^n: the ring
//!
//! forward   tail ─────────────► head          head and tail run free; position in the ring: modulo its size.
//!           |■■■■■■■■■■■■■■■■■■■|             Full: the kernel drops records and counts them.
//!
//!           |■■■■■ head      tail ■■■■■■|     Wrapped: two slices, the second at the start of the ring.
//!
//! backward  head ─────────────► older …       The kernel writes downwards from 0, over what is oldest, and
//!           |newest … oldest| torn            never looks at the tail. Read only while paused.
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

/// Which way the kernel writes, and what it does when the ring is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Upwards; drops what finds no room.
    Forward,
    /// Downwards, over the oldest records (`write_backward`): a flight recorder.
    Backward,
}

/// A mapped ring.
#[derive(Debug)]
pub struct Ring {
    start: NonNull<c_void>,
    /// Bytes mapped, header page included.
    bytes: usize,
    /// Bytes of the ring: a power of two.
    size: u64,
    direction: Direction,
    /// The event that it is mapped on.
    event: RawFd,
    /// Forward: how far we have read. Backward: the head at the last reading.
    tail: u64,
    /// What was read last from each place of the ring, where that is kept: see [`Ring::keeping`].
    read: Option<Box<[u8]>>,
    /// Bytes that stood behind the head without being published, and since when.
    unpublished: Option<(u64, Instant)>,
    aux: Option<AuxArea>,
}

/// A writer has long finished a record that stands behind the head for so long.
const SETTLED: Duration = Duration::from_millis(50);

// SAFETY: the mapping belongs to the process, not to a thread; whoever owns the `Ring` is the only one that
// moves the tail.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps a ring of `pages` (a power of two) behind the header page. Other events are led into it by
    /// [`EventFd::set_output`].
    ///
    /// # Errors
    /// The kernel's: `EPERM` when that is more locked memory than is allowed, `EINVAL` when `pages`
    /// is no power of two or the event inherits without being bound to a CPU.
    pub fn map(event: &EventFd, pages: usize, direction: Direction) -> io::Result<Self> {
        let page = page_size();
        let bytes =
            pages.checked_add(1).and_then(|all| all.checked_mul(page)).ok_or(io::ErrorKind::OutOfMemory)?;
        // The kernel asks for write access where it shall respect our tail, and for none where it shall not.
        let access = match direction {
            Direction::Forward => ProtFlags::READ | ProtFlags::WRITE,
            Direction::Backward => ProtFlags::READ,
        };
        // SAFETY: the kernel chooses the place, so nothing that exists is replaced.
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

    /// Goes on in a forward ring where its former reader has stopped.
    pub fn read_on(&mut self) {
        if self.direction == Direction::Forward {
            // ORDERING: acquire, as another process has stored it after reading what lies before it.
            self.tail = self.word(TAIL).load(Ordering::Acquire);
        }
    }

    /// The same ring, of which [`drain_unpublished`](Self::drain_unpublished) knows what is new, at the price
    /// of a copy.
    pub fn keeping(mut self) -> Self {
        let is_read = self.direction == Direction::Forward;
        self.read = is_read.then(|| vec![0; self.size as usize].into());
        self
    }

    /// Bytes of the ring, without its header page.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Bytes that wait to be read in a forward ring.
    pub fn waiting(&self) -> u64 {
        self.head().wrapping_sub(self.tail).min(self.size)
    }

    /// Shows all waiting records of a forward ring to `take`, as one slice or, where the ring wraps, two (a
    /// record may lie across both), and gives their room back to the kernel. Bytes read.
    ///
    /// # Errors
    /// What `take` says; the records then stay in the ring.
    pub fn drain<E>(&mut self, take: impl FnOnce(&[&[u8]]) -> Result<(), E>) -> Result<u64, E> {
        // The tail may have run ahead of a head that is not published any more.
        let head = if self.read.is_some() { self.head().max(self.tail) } else { self.head() };
        let len = head.wrapping_sub(self.tail);
        if len == 0 || self.direction == Direction::Backward {
            return Ok(0);
        }
        // More than the ring holds cannot be: then nothing of it can be trusted, and reading starts anew at
        // the head.
        if len <= self.size {
            // SAFETY: the kernel writes only outside of [tail, head) until the tail moves, which happens
            // below, after the slices are gone; so nobody writes to these bytes while they are borrowed.
            let (first, second) = unsafe { self.slices(self.tail, len) };
            match second {
                [] => take(&[first])?,
                _ => take(&[first, second])?,
            }
        }
        self.give_back(head);
        Ok(len)
    }

    /// Shows whole records that stand behind the head of a [keeping](Self::keeping) ring and have not been
    /// published for a while to `take`, and gives their room back. Bytes read.
    ///
    /// A thread that ends writes its `READ` (`inherit_stat`) into the ring of the CPU that its event is
    /// bound to, on whatever CPU it runs (`sync_child_event` in the kernel's `kernel/events/core.c`), while
    /// that CPU may write there too. The count of writers (`nest` in `perf_output_put_handle`) is not made
    /// for two: it can stay above 1, and then no head is published any more although all is written.
    ///
    /// # Errors
    /// What `take` says; the records then stay in the ring.
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
        // SAFETY: these records were whole a while ago, and the kernel writes behind them.
        let (first, second) = unsafe { self.slices(self.tail, seen) };
        take(&[first, second])?;
        self.give_back(self.tail + seen);
        self.unpublished = None;
        Ok(seen)
    }

    /// Bytes of the records that stand behind the head of a keeping ring that is read to its head; a writer
    /// may be about to publish them.
    pub fn unpublished(&self) -> u64 {
        if self.read.is_none() || self.head() > self.tail {
            return 0;
        }
        let mut len = 0;
        while len < self.size {
            // type 32 | misc 16 | size 16
            let header = self.word_behind(len);
            let (kind, size) = (header as u32, header >> 48);
            let is_record = kind != 0 && kind < PERF_RECORD_MAX && size >= 8 && size % 8 == 0;
            // What stands there from the round before was read; no record is the same again, by its time.
            if !is_record || len + size > self.size || !self.is_new(len, size) {
                break;
            }
            len += size;
        }
        len
    }

    /// Whether there is something behind the head of a keeping ring that is read to its end, and no record:
    /// two writers have taken the same room.
    pub fn is_torn(&self) -> bool {
        self.head() <= self.tail && self.unpublished() == 0 && self.is_new(0, 64)
    }

    /// Whether something was written into these bytes behind the tail since they were read.
    fn is_new(&self, from: u64, len: u64) -> bool {
        let Some(read) = &self.read else { return false };
        (from..from + len).step_by(8).any(|behind| {
            let at = ((self.tail + behind) & (self.size - 1)) as usize;
            self.word_behind(behind).to_ne_bytes() != read[at..at + 8]
        })
    }

    /// The word so many bytes, a multiple of 8, behind the tail.
    fn word_behind(&self, behind: u64) -> u64 {
        self.word_at(((self.tail + behind) & (self.size - 1)) as usize)
    }

    /// The word at this offset of the ring, a multiple of 8 below its size.
    fn word_at(&self, at: usize) -> u64 {
        // SAFETY: a multiple of 8 inside the ring, which begins behind the header page; volatile, since the
        // kernel may be writing it.
        unsafe { self.start.as_ptr().cast::<u8>().add(page_size() + at).cast::<u64>().read_volatile() }
    }

    /// Gives the room up to there back to the kernel.
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
        // ORDERING: release, so that our reads of the records come before the kernel sees their room as free.
        // Pairs with the control dependency in __perf_output_begin(), which reads data_tail before it stores
        // new records.
        self.word(TAIL).store(tail, Ordering::Release);
    }

    /// Shows all waiting records of a forward ring to `look`, and leaves them there.
    pub fn peek(&self, look: impl FnOnce(&[&[u8]])) {
        let len = self.head().wrapping_sub(self.tail);
        if len == 0 || len > self.size || self.direction == Direction::Backward {
            return;
        }
        // SAFETY: as in `drain`; the tail does not move while the slices are borrowed, since that takes `&mut
        // self`.
        let (first, second) = unsafe { self.slices(self.tail, len) };
        look(&[first, second]);
    }

    /// Shows what a backward ring holds to `take`, newest first, as one or two slices. The last record may be
    /// cut off, where newer ones were written over it. What an earlier call has shown is not shown again.
    /// Bytes shown: none if another event than this ring's is paused.
    ///
    /// # Errors
    /// What `take` says.
    pub fn snapshot<E>(
        &mut self,
        paused: &Paused<'_>,
        take: impl FnOnce(&[&[u8]]) -> Result<(), E>,
    ) -> Result<u64, E> {
        let (head, len) = self.look(self.tail, paused, take)?;
        self.tail = head;
        Ok(len)
    }

    /// Bytes that were ever written into the ring.
    pub fn written(&self) -> u64 {
        written(self.direction, self.head())
    }

    /// Bytes that were read, ever, of those that were written into a forward ring.
    pub fn taken(&self) -> u64 {
        self.tail
    }

    /// Shows what was written into a backward ring after its first `after` bytes, newest first, as often as
    /// it is asked for: one or two slices. The last record may be cut off. As long as less than half of the
    /// ring is new, the kernel writes on meanwhile; otherwise it is told to `pause`. Bytes ever written.
    ///
    /// # Errors
    /// What `pause` and `take` say.
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
            // ORDERING: acquire, so that the head is read again after the records: what the kernel wrote
            // over them, it began when the head was that far.
            fence(Ordering::Acquire);
            // The other half is room for what it was writing and had not published yet.
            if new(self.written()) <= self.size / 2 {
                return take(&[&copy]).map(|()| all);
            }
        }
        let (head, _) = self.look(after.wrapping_neg(), &pause()?, take)?;
        Ok(written(Direction::Backward, head))
    }

    /// Shows what was written since the head was at `since`; the head, and bytes shown.
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
        // The head runs downwards from 0: what was written since then lies between it and where it was.
        let len = since.wrapping_sub(head).min(self.size);
        if len > 0 && self.direction == Direction::Backward {
            // SAFETY: `paused` says that the kernel has stopped writing into this ring, and lets it go on
            // only when it is dropped, after the slices.
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
        // before the store to data_head in perf_output_put_handle(): whatever lies before that head has been
        // written.
        self.word(HEAD).load(Ordering::Acquire)
    }

    /// The `len` bytes from `from` on, which runs free.
    ///
    /// # Safety
    /// `len` is at most the ring's size, and nobody writes to these bytes as long as the slices live.
    unsafe fn slices(&self, from: u64, len: u64) -> (&[u8], &[u8]) {
        let (at, len) = ((from & (self.size - 1)) as usize, len as usize);
        let first = len.min(self.size as usize - at);
        // SAFETY: the ring begins behind the header page and is `size` bytes long; `at + first` and `len -
        // first` do not reach beyond it. The rest is the caller's promise.
        unsafe {
            let ring = self.start.as_ptr().cast::<u8>().add(page_size());
            (std::slice::from_raw_parts(ring.add(at), first), std::slice::from_raw_parts(ring, len - first))
        }
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: these offsets lie in the header page, which is mapped as long as `self`, and are multiples
        // of 8; the kernel reads and writes these words whole. They are stored to only in forward rings,
        // whose page is writable.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().cast::<u8>().add(offset).cast::<u64>()) }
    }
}

/// Bytes that were ever written where the head is there.
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
        // SAFETY: this is our mapping, nobody else has its address, and no reference into it outlives a call.
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
    fn words_lie_where_the_header_has_them() {
        assert_eq!((HEAD, TAIL), (1024, 1032));
    }

    /// Page faults of our own, a record each.
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

    /// Whole records of 24 bytes, as they were asked for above.
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
    fn records_come_out_whole_across_the_wrap() {
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
    fn what_is_new_in_a_backward_ring_is_copied_while_it_is_written() {
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
        // When most of it is new, it is paused; and what was written over is missing.
        touch(1000);
        assert!(copy(second, false).is_err());
        assert_eq!(copy(second, true).unwrap().1 / 1000, 1);
        touch(2000);
        assert_eq!(copy(second, true).unwrap().1, ring.size() / 24);
    }

    #[test]
    fn a_backward_ring_keeps_the_newest() {
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
