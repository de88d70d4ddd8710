//! Unpacks compressed records (`perf record -z`) once, into a temporary file of plain records.
//!
//! Receives a segment whose records may be `COMPRESSED`; returns a segment without such records. In perf's
//! format, a recording contains one continuous zstd stream, which is divided into records of at most 64 KiB
//! and must therefore be read from its start. A ring buffer record may start in one `COMPRESSED` record and
//! end in a later one.
//!
//! ```text
//! | COMM | COMPRESSED ▒▒▒ | COMPRESSED ▒▒▒ | FINISHED_ROUND | COMPRESSED ▒▒ |
//! | COMM | SAMPLE | SAMPLE | SAM·PLE | FINISHED_ROUND | SAMPLE | …
//! ```

use std::sync::Arc;

use zstd::stream::raw::{Decoder, Operation};

use super::error::{PerfdataError, RecordingNote};
use super::scan::{Segment, behind_tracing, header_at};
use super::source::{TempFile, limit};
use crate::record::{HEADER, kind};

const READ: usize = 1 << 20;

/// Whether the first sample of a segment is in a compressed record. Since either all ring buffer data is
/// compressed or none of it, the search stops at the first sample or compressed record.
pub(super) fn is_compressed(segment: &Segment, is_byte_swapped: bool) -> Result<bool, PerfdataError> {
    let mut found = false;
    walk(segment, is_byte_swapped, |kind, _, _| {
        found = matches!(kind, kind::COMPRESSED | kind::COMPRESSED2);
        Ok(!found && kind != kind::SAMPLE)
    })?;
    Ok(found)
}

/// Visits every record, as stored, until the visitor returns `false`. Stops at an incomplete record.
/// Returns the offset of the end.
fn walk(
    segment: &Segment,
    is_byte_swapped: bool,
    mut visit: impl FnMut(u32, &[u8], u64) -> Result<bool, PerfdataError>,
) -> Result<u64, PerfdataError> {
    let mut buffer = vec![0; READ];
    let mut at = segment.start;
    while at < segment.end {
        let want = usize::try_from(segment.end - at).unwrap_or(READ).min(READ);
        let got = segment.source.read_at(&mut buffer[..want], at)?;
        let mut bytes = &buffer[..got];
        let before = at;
        while let Some((kind, size)) = header_at(bytes, is_byte_swapped) {
            let Some((record, left)) = bytes.split_at_checked(size) else { break };
            if !visit(kind, record, at)? {
                return Ok(at);
            }
            at += size as u64;
            bytes = left;
            let skip = skipped(kind, record, is_byte_swapped);
            if skip > 0 {
                at = at.saturating_add(skip);
                break;
            }
        }
        if at == before {
            break;
        }
    }
    Ok(at)
}

/// Returns the number of payload bytes that follow a record but are not included in its size. They occur in
/// compressed recordings too.
fn skipped(kind: u32, record: &[u8], is_byte_swapped: bool) -> u64 {
    let word = |bytes: &[u8; 8]| {
        let word = u64::from_ne_bytes(*bytes);
        if is_byte_swapped { word.swap_bytes() } else { word }
    };
    match (kind, record.get(HEADER..)) {
        (kind::AUXTRACE, Some(body)) => body.first_chunk().map_or(0, word),
        (kind::HEADER_TRACING_DATA, Some(body)) => body.first_chunk::<4>().map_or(0, |size| {
            let size = u32::from_ne_bytes(*size);
            behind_tracing(record.len(), if is_byte_swapped { size.swap_bytes() } else { size })
        }),
        _ => 0,
    }
}

/// Unpacks a segment into a temporary file. Drops AUX data together with its records. Adds the kind of each
/// compressed record to `kinds`.
pub(super) fn expand(
    segment: &Segment,
    is_byte_swapped: bool,
    notes: &mut Vec<RecordingNote>,
    kinds: &mut Vec<u32>,
) -> Result<Segment, PerfdataError> {
    let mut temp_file = TempFile::for_unpacked_bytes(&segment.source)?;
    unpack(segment, is_byte_swapped, notes, kinds, |records| temp_file.write(records))?;
    let source = temp_file.finish()?;
    let end = source.len();
    Ok(Segment { source: Arc::new(source), start: 0, end })
}

/// Returns the number of records of a kind in a segment, without a temporary file.
pub(super) fn count(segment: &Segment, is_byte_swapped: bool, wanted: u32) -> Result<u64, PerfdataError> {
    let mut count = 0;
    unpack(segment, is_byte_swapped, &mut Vec::new(), &mut Vec::new(), |mut records| {
        while let Some((kind, size)) = header_at(records, is_byte_swapped) {
            let Some((record, rest)) = records.split_at_checked(size) else { break };
            count += u64::from(kind == wanted);
            let skip = usize::try_from(skipped(kind, record, is_byte_swapped)).unwrap_or(usize::MAX);
            records = rest.get(skip..).unwrap_or_default();
        }
        Ok(())
    })?;
    Ok(count)
}

/// Unpacks a segment, and passes complete records to `write`, each with its payload.
fn unpack(
    segment: &Segment,
    is_byte_swapped: bool,
    notes: &mut Vec<RecordingNote>,
    kinds: &mut Vec<u32>,
    mut write: impl FnMut(&[u8]) -> Result<(), PerfdataError>,
) -> Result<(), PerfdataError> {
    let path = segment.source.path();
    let mut decoder = Decoder::new().map_err(PerfdataError::io("starting to unpack", path))?;
    // Unpacked bytes that do not form a complete record yet.
    let mut pending: Vec<u8> = Vec::new();
    let mut unpacked = vec![0; 1 << 18];
    let mut packed = 0u64;
    let mut total = 0u64;
    let mut aux = 0;
    let mut tear = None;
    let end = segment.end;
    let walked = walk(segment, is_byte_swapped, |kind, record, at| {
        let data = match kind {
            kind::COMPRESSED => &record[HEADER..],
            kind::COMPRESSED2 => exact(record, is_byte_swapped),
            kind::AUXTRACE => {
                aux += skipped(kind, record, is_byte_swapped).min(end - at);
                return Ok(true);
            }
            kind::HEADER_TRACING_DATA => {
                let behind = at + record.len() as u64;
                if let Some(payload) =
                    segment.source.section(behind, skipped(kind, record, is_byte_swapped))?
                {
                    write(&[record, &payload].concat())?;
                }
                return Ok(true);
            }
            _ => {
                write(record)?;
                return Ok(true);
            }
        };
        packed += record.len() as u64;
        kinds.push(kind);
        let mut left = data;
        loop {
            let status = match decoder.run_on_buffers(left, &mut unpacked) {
                Ok(status) => status,
                Err(_) => {
                    tear = Some(RecordingNote::BadCompression { at });
                    return Ok(false);
                }
            };
            left = &left[status.bytes_read..];
            total += status.bytes_written as u64;
            if total > limit(packed) {
                return Err(PerfdataError::Bomb { path: path.to_owned(), packed, limit: limit(packed) });
            }
            pending.extend_from_slice(&unpacked[..status.bytes_written]);
            let whole = whole_records(&pending, is_byte_swapped);
            write(&pending[..whole])?;
            pending.drain(..whole);
            if pending.len() > usize::from(u16::MAX) {
                // The pending bytes are not a record, because the size in their header is less than the size
                // of a header.
                tear = Some(RecordingNote::BadCompression { at });
                return Ok(false);
            }
            if left.is_empty() && status.bytes_written < unpacked.len() {
                return Ok(true);
            }
            if status.bytes_read == 0 && status.bytes_written == 0 {
                tear = Some(RecordingNote::BadCompression { at });
                return Ok(false);
            }
        }
    })?;
    // If a record that begins in the last compressed bytes is cut off, the cause is the same: the truncated
    // file.
    let tear = match tear {
        None if walked < end => Some(RecordingNote::Torn { at: walked, lost: end - walked, header: None }),
        None if !pending.is_empty() => {
            Some(RecordingNote::Torn { at: end, lost: pending.len() as u64, header: None })
        }
        tear => tear,
    };
    if let Some(tear) = tear {
        tear.join(notes);
    }
    if aux > 0 {
        notes.push(RecordingNote::Aux { bytes: aux });
    }
    Ok(())
}

/// Returns the data of a `COMPRESSED2` record without its padding.
fn exact(record: &[u8], is_byte_swapped: bool) -> &[u8] {
    let Some((size, data)) = record[HEADER..].split_first_chunk::<8>() else { return &[] };
    let size = u64::from_ne_bytes(*size);
    let size = if is_byte_swapped { size.swap_bytes() } else { size };
    &data[..usize::try_from(size).unwrap_or(usize::MAX).min(data.len())]
}

/// Returns the size of the complete records at the front, in bytes.
fn whole_records(bytes: &[u8], is_byte_swapped: bool) -> usize {
    let mut at = 0;
    while let Some((_, size)) = header_at(&bytes[at..], is_byte_swapped) {
        if size > bytes.len() - at {
            break;
        }
        at += size;
    }
    at
}
