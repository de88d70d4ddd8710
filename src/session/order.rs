//! Records in the order of time, without sorting the file.
//!
//! A recorder writes what it finds in each CPU's ring, one ring after the other, and marks the end of such a
//! round. What a round brings is younger than everything that the round before the last brought:
//!
//! ```text
//!   round 1   | cpu0: 1 3 7 | cpu1: 2 6 8 | end: nothing is sure yet; 8 is the youngest
//!   round 2   | cpu0: 9 12  | cpu1: 10 11 | end: all up to 8 can go, in order
//!   round 3   …                             end: all up to 12 can go
//! ```
//! So two rounds are held at a time. Equal times keep the order of the file. Without times, or without marks,
//! the order of the file, or all at once.
//!
//! Copies of stacks are unwound in that order, since what a stack is joined with was seen before it: many at
//! a time, all that can go.

use super::call_chain::{Chains, Unwind, UnwindSample, kept_calls};
use super::{Session, Timestamp};
use crate::perfdata::{Buffer, Chunk, Error};
use crate::record::{RawRecord, Sample, kind};

/// Where a record stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Bytes of records before it: its timestamp, where there are no times.
    pub position: Timestamp,
    /// Its offset in its file.
    pub offset: u64,
    /// Its file: see [`crate::perfdata::Reader::file`].
    pub file: u32,
}

impl Place {
    fn new(chunk: &Chunk, position: Timestamp) -> Self {
        Self { position, offset: chunk.offset(), file: chunk.file() }
    }

    fn advance(&mut self, bytes: usize) {
        self.position += bytes as u64;
        self.offset += bytes as u64;
    }
}

/// What is held back.
#[derive(Default)]
struct Held {
    bytes: Vec<u8>,
    /// Time, place, start in `bytes`; by start between releases.
    order: Vec<(u64, Place, usize)>,
}

impl Held {
    fn add(&mut self, time: u64, place: Place, raw: &[u8]) {
        self.order.push((time, place, self.bytes.len()));
        self.bytes.extend_from_slice(raw);
    }

    /// Shows all up to `limit`, some at a time, and keeps the rest.
    fn release<E>(
        &mut self,
        limit: u64,
        show: &mut impl FnMut(&[(RawRecord<'_>, Place)]) -> Result<(), E>,
    ) -> Result<(), E> {
        // Rings lie one behind the other, each in the order of time: runs, which this sort merges.
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

    /// Removes the first `count` records, and closes the gaps between the others.
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

/// What unwinds the copied stacks of samples.
pub struct Unwinding<'a> {
    /// Makes the chains.
    pub unwinder: &'a mut dyn Unwind,
    /// Whether a sample, of this timestamp, is asked for.
    pub wants: &'a dyn Fn(&Sample<'_>, Timestamp) -> bool,
}

impl Unwinding<'_> {
    /// The chains of the records in their order; those without a copy have empty ones.
    fn unwind(&mut self, session: &Session, records: &[(RawRecord<'_>, Place)], chains: &mut Chains) {
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

/// Records that are shown at a time: what unwinding them comes to is held until then.
const AT_A_TIME: usize = 4000;

/// Shows every record of the kinds that `wants` names, with its place in the file, in the order of time (or,
/// unless `by_time`, of the file).
///
/// Records that are no samples and have no time are shown where they stand in the file: what a recorder made
/// up itself (the threads and mappings that were there before it began) has none.
///
/// # Errors
/// When the file cannot be read, or what `visit` says.
pub fn records<E: From<Error>>(
    session: &Session,
    by_time: bool,
    wants: impl Fn(u32) -> bool,
    mut visit: impl FnMut(&RawRecord<'_>, Place) -> Result<(), E>,
) -> Result<(), E> {
    records_unwound(session, by_time, None, wants, |raw, place, _| visit(raw, place))
}

/// The same, with what each sample's copy of the stack came to: empty where there is none, or nothing
/// unwinds.
///
/// # Errors
/// As [`records`].
pub fn records_unwound<E: From<Error>>(
    session: &Session,
    by_time: bool,
    mut unwinding: Option<Unwinding<'_>>,
    wants: impl Fn(u32) -> bool,
    mut visit: impl FnMut(&RawRecord<'_>, Place, &[u64]) -> Result<(), E>,
) -> Result<(), E> {
    let mut chains = Chains::default();
    let mut show = |records: &[(RawRecord<'_>, Place)]| {
        if let Some(unwinding) = &mut unwinding {
            unwinding.unwind(session, records, &mut chains);
        }
        let mut all = records.iter().enumerate();
        all.try_for_each(|(number, (raw, place))| visit(raw, *place, chains.get(number)))
    };
    let mut held = Held::default();
    let (mut limit, mut youngest) = (0, 0);
    let mut buffer = Buffer::default();
    let mut position = 0;
    let layouts = session.reader.layouts();
    let has_time = session.has_time && by_time;
    for chunk in &session.index.chunks {
        let mut at = Place::new(chunk, position);
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

    /// A record of so many bytes; its kind says which it is.
    fn record(kind: u32, size: u16) -> Vec<u8> {
        let mut bytes = vec![0; size.into()];
        bytes[..4].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&size.to_ne_bytes());
        bytes
    }

    #[test]
    fn records_come_by_time_and_equal_times_by_place() {
        let mut held = Held::default();
        let mut shown = Vec::new();
        let mut release = |held: &mut Held, limit| {
            let mut show = |records: &[(RawRecord<'_>, Place)]| -> Result<(), ()> {
                shown.extend(records.iter().map(|(raw, place)| (raw.kind, place.offset, raw.bytes.len())));
                Ok(())
            };
            held.release(limit, &mut show).unwrap();
            std::mem::take(&mut shown)
        };
        let mut offset = 0;
        let mut add = |held: &mut Held, time, kind, size| {
            held.add(time, Place { position: offset, offset, file: 0 }, &record(kind, size));
            offset += u64::from(size);
        };
        // Two rings, one behind the other.
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
