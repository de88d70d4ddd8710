//! Samples in our rings that contain another recorder's event id.
//!
//! Linux (6.2 to at least 6.18) writes the same sample for several software events without changing the id in
//! it. If two recorders sample page faults on the same CPU, some of one recorder's samples contain the other
//! recorder's id. perf rejects a file with such samples. If the ring has only one event of that type, the
//! sample must belong to that event. Otherwise the sample is dropped and counted as lost.

use pmc_perfdata::record::{HEADER, Layouts, RawRecord, kind};

/// Whether the record is a misattributed sample.
pub(super) fn is_misattributed(record: &RawRecord<'_>, layouts: &Layouts) -> bool {
    record.kind == kind::SAMPLE && layouts.sample(record).is_none()
}

/// Appends a misattributed sample with the id of `owner`, the only event that it can belong to. Returns
/// whether that was possible.
pub(super) fn write_with_own_id(record: &RawRecord<'_>, owner: Option<u64>, out: &mut Vec<u8>) -> bool {
    match owner {
        Some(id) if record.bytes.len() >= HEADER + 8 => {
            out.extend_from_slice(&record.bytes[..HEADER]);
            // If there are several events, every sample begins with its event's id.
            out.extend_from_slice(&id.to_ne_bytes());
            out.extend_from_slice(&record.bytes[HEADER + 8..]);
            true
        }
        _ => false,
    }
}
