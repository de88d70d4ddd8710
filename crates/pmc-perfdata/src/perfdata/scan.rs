//! Reads the records of a recording: once in order, then in parallel.
//!
//! Receives segments (runs of records in a [`ByteSource`]). [`scan`] reads them once, passes every record to
//! a visitor, which handles records other than samples, and returns a [`RecordingIndex`] of record-aligned
//! [`Chunk`]s. Any number of threads can then [`load`] chunks in any order, each into its own [`Buffer`]. No
//! memory is allocated per record.
//!
//! ```text
//! segment  |r|rrr|rr|rrrr|r| AUXTRACE |···payload···|r|rr|rrr|…| torn
//!          '-- chunk 0 ---'            (skipped)     '- chunk 1 -'
//! ```
//! A chunk is the result of one read into the buffer, cut after the last complete record. Loading the chunk
//! repeats this read.

use std::sync::Arc;

use super::error::{PerfdataError, RecordingNote};
use super::source::ByteSource;
use crate::record::{HEADER, Layouts, RawRecord, Record, Records, kind, swap};

/// Maximum size of a chunk in bytes: large enough for several records of the maximum size (64 KiB), but small
/// enough for a core's cache.
const CHUNK: usize = 1 << 20;

/// A run of records.
#[derive(Debug, Clone)]
pub(super) struct Segment {
    pub(super) source: Arc<ByteSource>,
    pub(super) start: u64,
    pub(super) end: u64,
}

/// A run of complete records that can be loaded independently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// Number of the chunk's file in the recording.
    segment: u32,
    /// Offset in the file.
    offset: u64,
    /// Size in bytes.
    len: u32,
    /// Number of samples in the chunk.
    pub samples: u32,
}

impl Chunk {
    /// Returns the offset of the chunk's first record in its file.
    pub fn offset(&self) -> u64 {
        self.offset
    }
    /// Returns the chunk's file: see [`super::Reader::file`].
    pub fn file(&self) -> u32 {
        self.segment
    }
    /// Returns the size of the chunk's records, in bytes.
    pub fn bytes(&self) -> u64 {
        self.len.into()
    }
}

/// Reusable memory for loading chunks.
#[derive(Debug, Default)]
pub struct Buffer {
    bytes: Vec<u8>,
}

impl Buffer {
    /// Returns the records of the last chunk, in native byte order.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Results of one pass over a recording.
#[derive(Debug, Clone, Default)]
pub struct RecordingIndex {
    /// The chunks, in file order.
    pub chunks: Vec<Chunk>,
    /// Number of records of each kind below 128.
    counts: Vec<u64>,
    /// Number of records of unknown kinds.
    pub unknown: u64,
    /// Number of samples that are truncated or do not belong to a known event.
    pub unknown_samples: u64,
    /// Size of all records, in bytes.
    pub bytes: u64,
    /// Notes from opening the file, and notes on its records.
    pub notes: Vec<RecordingNote>,
}

impl RecordingIndex {
    /// Returns the number of records of a kind.
    pub fn count(&self, kind: u32) -> u64 {
        self.counts.get(kind as usize).copied().unwrap_or(0)
    }

    /// Counts a record that the scan does not see because it has already been unpacked.
    pub(super) fn count_one(&mut self, kind: u32) {
        if let Some(count) = self.counts.get_mut(kind as usize) {
            *count += 1;
        }
    }

    /// Returns the kinds that occur, with the number of records, ordered by kind.
    pub fn counts(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.counts.iter().enumerate().filter(|(_, n)| **n > 0).map(|(kind, n)| (kind as u32, *n))
    }
}

/// Converts the bytes of a recording to records in native byte order.
#[derive(Clone, Copy)]
pub(super) struct NativeConverter<'a> {
    pub(super) is_byte_swapped: bool,
    pub(super) layouts: &'a Layouts,
}

impl NativeConverter<'_> {
    /// Converts the complete records at the front of the buffer to native byte order. Returns their size in
    /// bytes.
    fn make_native(self, buffer: &mut [u8]) -> usize {
        if self.is_byte_swapped {
            return swap::records(buffer, self.layouts);
        }
        let mut records = Records::new(buffer);
        records.by_ref().for_each(drop);
        buffer.len() - records.rest().len()
    }
}

/// Returns the number of bytes after a record that belong to it but are not records themselves.
pub(super) fn payload(record: &RawRecord<'_>) -> u64 {
    if record.kind != kind::AUXTRACE && record.kind != kind::HEADER_TRACING_DATA {
        return 0;
    }
    match record.parse() {
        Some(Record::Auxtrace(aux)) => aux.size,
        Some(Record::TracingData(size)) => behind_tracing(record.bytes.len(), size),
        _ => 0,
    }
}

/// Returns the number of bytes of tracing data after a record of this size; 0 if they are inside the
/// record, as simpleperf writes them.
pub(super) fn behind_tracing(record: usize, size: u32) -> u64 {
    let is_inside = record as u64 >= HEADER as u64 + 4 + u64::from(size);
    if is_inside { 0 } else { u64::from(size).next_multiple_of(8) }
}

/// Counts malformed records.
#[derive(Debug, Default)]
struct MalformedRecords {
    count: u64,
    /// Offset and kind of the first record.
    first: Option<(u64, u32)>,
}

impl MalformedRecords {
    fn add(&mut self, at: u64, kind: u32) {
        self.count += 1;
        self.first.get_or_insert((at, kind));
    }
}

/// Defects found by a scan.
#[derive(Debug, Default)]
struct ScanDefects {
    malformed: MalformedRecords,
    misshapen: MalformedRecords,
    /// Number of bytes in malformed samples that do not belong to a field.
    hidden: u64,
    unknown: MalformedRecords,
}

impl ScanDefects {
    /// Adds a note for each kind of defect.
    fn note(&self, index: &mut RecordingIndex) {
        if let (count, Some(first)) = (self.malformed.count, self.malformed.first) {
            index.notes.push(RecordingNote::Malformed { count, first });
        }
        if let (count, Some((first, _))) = (self.misshapen.count, self.misshapen.first) {
            index.notes.push(RecordingNote::Misshapen { count, first, bytes: self.hidden });
        }
        if let Some(first) = self.unknown.first {
            index.notes.push(RecordingNote::Unknown { count: index.unknown, first });
        }
    }
}

/// Reads all records once. Passes each record and its offset to `visit`.
pub(super) fn scan(
    segments: &[Segment],
    order: NativeConverter<'_>,
    visit: &mut dyn FnMut(&RawRecord<'_>, u64),
) -> Result<RecordingIndex, PerfdataError> {
    let mut index = RecordingIndex { counts: vec![0; 128], ..RecordingIndex::default() };
    let mut aux = 0;
    let mut found = ScanDefects::default();
    let mut buffer = vec![0; CHUNK];
    for (number, segment) in segments.iter().enumerate() {
        let mut at = segment.start;
        while at < segment.end {
            let want = usize::try_from(segment.end - at).unwrap_or(CHUNK).min(CHUNK);
            let got = segment.source.read_at(&mut buffer[..want], at)?;
            let bytes = &mut buffer[..got];
            // Only records of simpleperf itself are larger than the buffer.
            if let Some((kind, size)) = header_at(bytes, order.is_byte_swapped)
                && size > CHUNK
                && size as u64 <= segment.end - at
            {
                index.unknown += 1;
                found.unknown.add(at, kind);
                at += size as u64;
                continue;
            }
            if order.is_byte_swapped {
                swap::records(bytes, order.layouts);
            }
            let mut chunk = Chunk { segment: number as u32, offset: at, len: 0, samples: 0 };
            let (mut skip, mut skipping) = (0, None);
            for record in Records::new(bytes) {
                let place = at + u64::from(chunk.len);
                match index.counts.get_mut(record.kind as usize) {
                    Some(count) => *count += 1,
                    None => index.unknown += 1,
                }
                if kind::name(record.kind).is_none() {
                    found.unknown.add(place, record.kind);
                }
                if record.kind == kind::SAMPLE {
                    chunk.samples += 1;
                    match order.layouts.sample(&record).map(|(_, sample)| sample.excess()) {
                        None => index.unknown_samples += 1,
                        Some(Some(0)) => {}
                        Some(excess) => {
                            found.misshapen.add(place, record.kind);
                            found.hidden += excess.unwrap_or(0);
                        }
                    }
                } else if record.kind < kind::FIRST_USER && record.parse().is_none() {
                    found.malformed.add(place, record.kind);
                }
                visit(&record, place);
                chunk.len += record.bytes.len() as u32;
                if record.kind >= kind::FIRST_USER {
                    skip = payload(&record);
                    if skip > 0 {
                        skipping = Some((place, record.kind, record.bytes.len()));
                        aux += if record.kind == kind::AUXTRACE { skip } else { 0 };
                        break;
                    }
                }
            }
            if chunk.len == 0 {
                let header = header_in(bytes, order.is_byte_swapped);
                index.notes.push(RecordingNote::Torn { at, lost: segment.end - at, header });
                break;
            }
            index.bytes += u64::from(chunk.len);
            at += u64::from(chunk.len);
            if skip > segment.end - at {
                // Report the record before the payload as cut off, since the payload belongs to it.
                let (at, header) = skipping.map_or((at, None), |(at, kind, size)| (at, Some((kind, size))));
                index.notes.push(RecordingNote::Torn { at, lost: segment.end - at, header });
                skip = segment.end - at;
            }
            at += skip;
            index.chunks.push(chunk);
        }
    }
    index.unknown += index
        .counts
        .iter()
        .enumerate()
        .filter(|(k, _)| kind::name(*k as u32).is_none())
        .map(|(_, n)| n)
        .sum::<u64>();
    if aux > 0 {
        index.notes.push(RecordingNote::Aux { bytes: aux });
    }
    found.note(&mut index);
    Ok(index)
}

/// Loads a chunk. The records borrow from the buffer.
pub(super) fn load<'b>(
    segments: &[Segment],
    order: NativeConverter<'_>,
    chunk: &Chunk,
    buffer: &'b mut Buffer,
) -> Result<Records<'b>, PerfdataError> {
    let Some(segment) = segments.get(chunk.segment as usize) else { return Ok(Records::new(&[])) };
    buffer.bytes.resize(chunk.len as usize, 0);
    let got = segment.source.read_at(&mut buffer.bytes, chunk.offset)?;
    // If the file was truncated after the scan, the chunk has fewer records.
    buffer.bytes.truncate(got);
    order.make_native(&mut buffer.bytes);
    Ok(Records::new(&buffer.bytes))
}

/// Returns the kind and size from the record header at the front of the bytes, in native byte order. Returns
/// `None` if there are too few bytes, or if the size is smaller than a header.
pub(super) fn header_at(bytes: &[u8], is_byte_swapped: bool) -> Option<(u32, usize)> {
    header_in(bytes, is_byte_swapped).filter(|(_, size)| *size >= HEADER)
}

/// Same as [`header_at`], but accepts any size.
fn header_in(bytes: &[u8], is_byte_swapped: bool) -> Option<(u32, usize)> {
    let mut head = *bytes.first_chunk::<HEADER>()?;
    if is_byte_swapped {
        swap::header(&mut head);
    }
    let [a, b, c, d, e, f, g, h] = head;
    let kind = u32::from_ne_bytes([a, b, c, d]);
    let size = crate::record::size(kind, u16::from_ne_bytes([e, f]), u16::from_ne_bytes([g, h]));
    Some((kind, size))
}
