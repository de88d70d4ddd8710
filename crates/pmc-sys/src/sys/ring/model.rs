//! Tests of the ring's arithmetic and memory order, without a kernel.
//!
//! [`RingWriter`] writes to a ring in ordinary memory as the kernel does (`kernel/events/ring_buffer.c`).
//! Miri can run these tests, and reports each access that races with a write by the other side:
//! `cargo +nightly miri test -p pmc-sys --lib -- ring::model`.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;

/// A ring of one page in ordinary memory.
struct ModelRing {
    /// Never dropped, because it would unmap the memory.
    ring: ManuallyDrop<Ring>,
    layout: Layout,
}

impl ModelRing {
    fn new(direction: Direction) -> Self {
        let page = page_size();
        let layout = Layout::from_size_align(2 * page, page).unwrap();
        // SAFETY: the size is not 0.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap().cast();
        let ring = Ring {
            start,
            bytes: layout.size(),
            size: page as u64,
            direction,
            event: -1,
            tail: 0,
            read: None,
            unpublished: None,
            aux: None,
        };
        Self { ring: ManuallyDrop::new(ring), layout }
    }

    fn writer(&self) -> RingWriter {
        RingWriter { start: self.ring.start, size: self.ring.size, head: 0 }
    }
}

impl Drop for ModelRing {
    fn drop(&mut self) {
        self.ring.read = None;
        // SAFETY: allocated in `new` with this layout. Neither the ring nor its writer is used afterwards.
        unsafe { dealloc(self.ring.start.as_ptr().cast(), self.layout) };
    }
}

/// The kernel's side of a ring.
struct RingWriter {
    start: NonNull<c_void>,
    size: u64,
    /// Position after the last written record, which may be unpublished.
    head: u64,
}

// SAFETY: the tests end the thread with the writer before they free the memory.
unsafe impl Send for RingWriter {}

impl RingWriter {
    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the offset is in the header page, and both sides access these words as atomics.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().cast::<u8>().add(offset).cast::<u64>()) }
    }

    /// Writes a record after the head, but does not publish it. Returns whether there was room.
    fn write(&mut self, record: &[u8]) -> bool {
        // ORDERING: acquire, for the control dependency in __perf_output_begin().
        let tail = self.word(TAIL).load(Ordering::Acquire);
        if self.size - (self.head - tail) < record.len() as u64 {
            return false;
        }
        self.put(self.head, record);
        self.head += record.len() as u64;
        true
    }

    /// Writes a record before the head of a backward ring, over the oldest records, and publishes it.
    fn write_backward(&mut self, record: &[u8]) {
        self.head = self.head.wrapping_sub(record.len() as u64);
        self.put(self.head, record);
        self.publish();
    }

    fn put(&self, at: u64, record: &[u8]) {
        let at = (at & (self.size - 1)) as usize;
        let (first, second) = record.split_at(record.len().min(self.size as usize - at));
        for (at, part) in [(at, first), (0, second)] {
            // SAFETY: the part is inside the ring. The reader does not touch free space.
            unsafe {
                let ring = self.start.as_ptr().cast::<u8>().add(page_size());
                part.as_ptr().copy_to_nonoverlapping(ring.add(at), part.len());
            }
        }
    }

    fn publish(&self) {
        // ORDERING: release, as smp_wmb() in perf_output_put_handle().
        self.word(HEAD).store(self.head, Ordering::Release);
    }
}

/// Returns a record whose size and contents depend on its number.
fn record(number: u64) -> Vec<u8> {
    let size = 16 + 8 * (number % 9);
    let header = 9 | size << 48; // PERF_RECORD_SAMPLE
    let words = std::iter::once(header).chain((1..size / 8).map(|word| number << 8 | word));
    words.flat_map(u64::to_ne_bytes).collect()
}

#[test]
fn reader_gets_each_record_while_the_writer_continues() {
    // At least two rounds through the ring. Miri is slow.
    const RECORDS: u64 = if cfg!(miri) { 100 } else { 20_000 };
    let records: Vec<Vec<u8>> = (0..RECORDS).map(record).collect();
    let len = records.iter().map(|record| record.len() as u64).sum();
    for keeps in [false, true] {
        let mut model = ModelRing::new(Direction::Forward);
        let mut writer = model.writer();
        if keeps {
            model.ring.read = Some(vec![0; model.ring.size as usize].into());
        }
        let mut bytes = Vec::new();
        std::thread::scope(|scope| {
            let records = &records;
            scope.spawn(move || {
                for record in records {
                    while !writer.write(record) {
                        std::thread::yield_now();
                    }
                    writer.publish();
                }
            });
            while model.ring.taken() < len {
                let drained = model.ring.drain(|slices| {
                    bytes.extend(slices.concat());
                    Ok::<(), ()>(())
                });
                if drained == Ok(0) {
                    std::thread::yield_now();
                }
            }
        });
        assert!(bytes == records.concat(), "keeps a copy: {keeps}");
    }
}

#[test]
fn unpublished_records_are_measured_and_torn_space_is_noticed() {
    let mut model = ModelRing::new(Direction::Forward);
    let mut writer = model.writer();
    model.ring.read = Some(vec![0; model.ring.size as usize].into());
    // In each round, the records start at another position, so that some of them wrap.
    for round in 0..40 {
        assert!(writer.write(&record(round)));
        writer.publish();
        assert_eq!(model.ring.unpublished(), 0, "the ring buffer was not read up to its head");
        model.ring.drain(|_| Ok::<(), ()>(())).unwrap();
        assert!(writer.write(&record(100 + round)) && writer.write(&record(200 + round)));
        let len = (record(100 + round).len() + record(200 + round).len()) as u64;
        assert_eq!((model.ring.unpublished(), model.ring.is_torn()), (len, false), "round {round}");
        writer.publish();
        assert_eq!(model.ring.drain(|_| Ok::<(), ()>(())), Ok(len));
    }
    writer.put(writer.head, &[0xff; 64]);
    assert_eq!((model.ring.unpublished(), model.ring.is_torn()), (0, true));
}

#[test]
fn backward_ring_is_copied_across_the_wrap() {
    let model = ModelRing::new(Direction::Backward);
    let mut writer = model.writer();
    let mut known = 0;
    for round in 0..60 {
        let newest_first: Vec<u8> = (0..10).rev().flat_map(|number| record(10 * round + number)).collect();
        (0..10).for_each(|number| writer.write_backward(&record(10 * round + number)));
        let mut copied = Vec::new();
        let written = model.ring.copy(
            known,
            || Err("less than half of the ring buffer is new"),
            |slices| {
                copied = slices.concat();
                Ok(())
            },
        );
        known += newest_first.len() as u64;
        assert_eq!(written, Ok(known));
        assert!(copied == newest_first, "round {round}");
    }
}
