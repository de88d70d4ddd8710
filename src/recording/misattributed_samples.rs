//! Samples in our rings that bear another recorder's id.
//!
//! Linux (6.2 to at least 6.18) hands one sample of a software event from one listener to the next and keeps
//! the id of the first: where two recorders listen to page faults on the same CPU, the samples of one bear an
//! id of the other's. perf refuses such a file. Which event they belong to is known where the ring has but
//! one of that kind; elsewhere they are left out and counted as lost.

use crate::record::{HEADER, Layouts, RawRecord, kind};

/// Whether it is one.
pub(super) fn is_one(record: &RawRecord<'_>, layouts: &Layouts) -> bool {
    record.kind == kind::SAMPLE && layouts.sample(record).is_none()
}

/// Appends a record that is one, given back to `owner` (the id of the only event that it can belong to).
/// Whether it was.
pub(super) fn mend(record: &RawRecord<'_>, owner: Option<u64>, out: &mut Vec<u8>) -> bool {
    match owner {
        Some(id) if record.bytes.len() >= HEADER + 8 => {
            out.extend_from_slice(&record.bytes[..HEADER]);
            // Every sample begins with its event's id where there are several events.
            out.extend_from_slice(&id.to_ne_bytes());
            out.extend_from_slice(&record.bytes[HEADER + 8..]);
            true
        }
        _ => false,
    }
}
