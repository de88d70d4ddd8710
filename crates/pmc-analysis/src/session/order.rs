//! Reads records in time order without sorting the whole file.
//!
//! A recorder drains the rings of all CPUs one after the other, and writes a marker at the end of each round.
//! All records in a round are later than all records in the round before the previous one, so it is enough to
//! buffer two rounds at a time:
//!
//! ```text
//!   round 1   | cpu0: 1 3 7 | cpu1: 2 6 8 | end: nothing is certain yet; 8 is the latest
//!   round 2   | cpu0: 9 12  | cpu1: 10 11 | end: pass on all records up to 8, in order
//!   round 3   …                             end: pass on all records up to 12
//! ```

use super::Session;
use super::call_chain::{CallChains, Unwind, UnwindSample, kept_calls};
use super::history::Timestamp;
use pmc_perfdata::perfdata::{Buffer, Chunk, PerfdataError};
use pmc_perfdata::record::{RawRecord, Sample, kind};

/// Where a record is in the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordPosition {
    /// Number of bytes of records before this record. Serves as the timestamp if there are no times.
    pub position: Timestamp,
    /// Offset in the record's file.
    pub offset: u64,
    /// Number of the record's file; see [`pmc_perfdata::perfdata::Reader::file`].
    pub file: u32,
}

impl RecordPosition {
    fn new(chunk: &Chunk, position: Timestamp) -> Self {
        Self { position, offset: chunk.offset(), file: chunk.file() }
    }

    fn advance(&mut self, bytes: usize) {
        self.position += bytes as u64;
        self.offset += bytes as u64;
    }
}

/// Records that are waiting for earlier ones. `P` is the caller's data for each record, such as its position.
pub(super) struct BufferedRecords<P> {
    bytes: Vec<u8>,
    /// Time, data and start in `bytes` of each record. Sorted by start between releases.
    order: Vec<(u64, P, usize)>,
}

impl<P> Default for BufferedRecords<P> {
    fn default() -> Self {
        Self { bytes: Vec::new(), order: Vec::new() }
    }
}

impl<P: Copy> BufferedRecords<P> {
    pub(super) fn add(&mut self, time: u64, place: P, raw: &[u8]) {
        self.order.push((time, place, self.bytes.len()));
        self.bytes.extend_from_slice(raw);
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// Returns the records added since `len` was `before`. A release makes earlier values of `before`
    /// invalid.
    pub(super) fn added_after(&self, before: usize) -> impl Iterator<Item = (RawRecord<'_>, P)> {
        let added = self.order.get(before..).unwrap_or_default();
        added.iter().filter_map(|&(_, place, start)| Some((self.record(start)?, place)))
    }

    /// Passes all records with times up to `limit` to `show`, in batches, and keeps later records.
    pub(super) fn release<E>(
        &mut self,
        limit: u64,
        show: &mut impl FnMut(&[(RawRecord<'_>, P)]) -> Result<(), E>,
    ) -> Result<(), E> {
        // The buffer has one sorted run per ring; this stable sort merges them.
        self.order.sort_by_key(|(time, ..)| *time);
        let ripe = self.order.partition_point(|(time, ..)| *time <= limit);
        let mut now = Vec::with_capacity(ripe.min(AT_A_TIME));
        for part in self.order[..ripe].chunks(AT_A_TIME) {
            let record = |&(_, place, start): &_| Some((self.record(start)?, place));
            now.clear();
            now.extend(part.iter().filter_map(record));
            show(&now)?;
        }
        self.forget(ripe);
        Ok(())
    }

    fn record(&self, start: usize) -> Option<RawRecord<'_>> {
        RawRecord::first(self.bytes.get(start..)?)
    }

    /// Removes the first `count` records, and compacts the remaining records.
    fn forget(&mut self, count: usize) {
        self.order.drain(..count);
        self.order.sort_unstable_by_key(|(.., start)| *start);
        let mut end = 0;
        for at in 0..self.order.len() {
            let start = self.order[at].2;
            let len = self.record(start).map_or(0, |raw| raw.bytes.len());
            self.bytes.copy_within(start..start + len, end);
            self.order[at].2 = end;
            end += len;
        }
        self.bytes.truncate(end);
    }
}

/// Unwinds the copied stacks of samples.
pub struct SampleUnwinding<'a> {
    /// Computes the chains.
    pub unwinder: &'a mut dyn Unwind,
    /// Whether a sample with this timestamp needs a chain.
    pub wants: &'a dyn Fn(&Sample<'_>, Timestamp) -> bool,
}

impl SampleUnwinding<'_> {
    /// Computes one chain per record; empty for records without a stack copy.
    fn unwind(
        &mut self,
        session: &Session,
        records: &[(RawRecord<'_>, RecordPosition)],
        chains: &mut CallChains,
    ) {
        let stacks = records.iter().map(|(raw, place)| self.stack(session, raw, place.position));
        let stacks: Vec<_> = stacks.collect();
        chains.clear();
        self.unwinder.unwind(&stacks, chains);
    }

    fn stack<'a>(
        &self,
        session: &'a Session,
        raw: &RawRecord<'a>,
        position: Timestamp,
    ) -> Option<UnwindSample<'a>> {
        let (_, sample) = session.reader.layouts().sample(raw)?;
        let timestamp = session.timestamp(sample.time().map(|time| time.0), position);
        let parts = sample.parts()?;
        let kept_calls = kept_calls(&sample, &parts);
        let is_copied = parts.user_regs.is_some() && parts.user_stack.is_some();
        if !(is_copied || kept_calls.is_some()) || !(self.wants)(&sample, timestamp) {
            return None;
        }
        let thread = sample.thread().unwrap_or_default();
        let epoch = session.history.epoch(thread.pid, timestamp);
        Some(UnwindSample { thread, epoch, parts, kept_calls })
    }
}

/// Number of records per batch. The unwound chains of a whole batch are in memory at the same time.
const AT_A_TIME: usize = 4000;

/// Calls `visit` for every record of the kinds that `wants` selects, with its position. Visits the records in
/// time order if `by_time` is set, otherwise in file order.
///
/// Non-sample records without a time are visited at their position in the file. Recorders synthesize such
/// records for threads and mappings that existed before the recording.
///
/// Records with equal times stay in file order. Without times, file order is used. Without markers, all
/// records are buffered.
///
/// # Errors
/// Fails if the file cannot be read, or `visit` fails.
pub fn records<E: From<PerfdataError>>(
    session: &Session,
    by_time: bool,
    wants: impl Fn(u32) -> bool,
    mut visit: impl FnMut(&RawRecord<'_>, RecordPosition) -> Result<(), E>,
) -> Result<(), E> {
    records_unwound(session, by_time, None, wants, |raw, place, _| visit(raw, place))
}

/// Like [`records`], but also passes the unwound chain of each sample. The chain is empty if there is no
/// stack copy or no unwinder.
///
/// Stack copies are unwound in time order, since earlier stacks complete truncated ones. All records that are
/// ready are unwound together.
///
/// # Errors
/// Fails in the same cases as [`records`].
pub fn records_unwound<E: From<PerfdataError>>(
    session: &Session,
    by_time: bool,
    mut unwinding: Option<SampleUnwinding<'_>>,
    wants: impl Fn(u32) -> bool,
    mut visit: impl FnMut(&RawRecord<'_>, RecordPosition, &[u64]) -> Result<(), E>,
) -> Result<(), E> {
    let mut chains = CallChains::default();
    let mut show = |records: &[(RawRecord<'_>, RecordPosition)]| {
        if let Some(unwinding) = &mut unwinding {
            unwinding.unwind(session, records, &mut chains);
        }
        let mut all = records.iter().enumerate();
        all.try_for_each(|(number, (raw, place))| visit(raw, *place, chains.get(number)))
    };
    let mut held = BufferedRecords::default();
    let (mut limit, mut youngest) = (0, 0);
    let mut buffer = Buffer::default();
    let mut position = 0;
    let layouts = session.reader.layouts();
    let has_time = session.has_time && by_time;
    for chunk in &session.index.chunks {
        let mut at = RecordPosition::new(chunk, position);
        position += chunk.bytes();
        for raw in session.reader.load(chunk, &mut buffer)? {
            let is_sample = raw.kind == kind::SAMPLE;
            if wants(raw.kind) {
                let time = if has_time { layouts.time(&raw).map(|time| time.0) } else { None };
                match time {
                    Some(time) if is_sample || time != 0 && time != u64::MAX => {
                        youngest = youngest.max(time);
                        held.add(time, at, raw.bytes);
                    }
                    None if is_sample && has_time => held.add(0, at, raw.bytes),
                    _ => show(&[(raw, at)])?,
                }
            }
            if raw.kind == kind::FINISHED_ROUND {
                held.release(limit, &mut show)?;
                limit = youngest;
            }
            at.advance(raw.bytes.len());
        }
    }
    held.release(u64::MAX, &mut show)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a record of this size; its kind identifies it.
    fn record(kind: u32, size: u16) -> Vec<u8> {
        let mut bytes = vec![0; size.into()];
        bytes[..4].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&size.to_ne_bytes());
        bytes
    }

    #[test]
    fn records_are_sorted_by_time_then_offset() {
        let mut held = BufferedRecords::default();
        let mut shown = Vec::new();
        let mut release = |held: &mut BufferedRecords<RecordPosition>, limit| {
            let mut show = |records: &[(RawRecord<'_>, RecordPosition)]| -> Result<(), ()> {
                shown.extend(records.iter().map(|(raw, place)| (raw.kind, place.offset, raw.bytes.len())));
                Ok(())
            };
            held.release(limit, &mut show).unwrap();
            std::mem::take(&mut shown)
        };
        let mut offset = 0;
        let mut add = |held: &mut BufferedRecords<RecordPosition>, time, kind, size| {
            held.add(time, RecordPosition { position: offset, offset, file: 0 }, &record(kind, size));
            offset += u64::from(size);
        };
        // Two rings, one after the other.
        [(1, 1, 8), (7, 2, 16), (9, 3, 24), (2, 4, 32), (7, 5, 8)]
            .into_iter()
            .for_each(|(time, kind, size)| add(&mut held, time, kind, size));
        assert_eq!(release(&mut held, 2), [(1, 0, 8), (4, 48, 32)]);
        assert_eq!(held.bytes.len(), 16 + 24 + 8, "nothing else is kept");
        add(&mut held, 8, 6, 16);
        add(&mut held, 7, 7, 8);
        assert_eq!(release(&mut held, 8), [(2, 8, 16), (5, 80, 8), (7, 104, 8), (6, 88, 16)]);
        assert_eq!(release(&mut held, u64::MAX), [(3, 24, 24)]);
        assert!(held.bytes.is_empty() && held.order.is_empty());
    }
}
