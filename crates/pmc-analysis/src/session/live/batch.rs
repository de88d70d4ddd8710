//! Buffers records from the rings until their round is complete.
//!
//! Copies records from ring memory, and stores samples and side-band records separately. Reads only the times
//! of the records.

use crate::session::history::Timestamp;
use pmc_perfdata::record::{Layouts, RawRecord, kind, walk};

/// Records that are waiting for the end of their round.
#[derive(Debug, Default)]
pub struct Batch {
    pub(super) bytes: Vec<u8>,
    /// Timestamp of each record, and its offset in `bytes`.
    pub(super) sideband: Vec<(Timestamp, usize)>,
    /// Offset of each sample in `bytes`, and the event for samples with an unknown id.
    pub(super) samples: Vec<(usize, Option<usize>)>,
    pub(super) joint: Vec<u8>,
}

impl Batch {
    /// Adds the contents of a ring: one slice, or two if the contents wrap around, in which case a record may
    /// be split across both. Samples may contain the id of another listener; `owner`, if known, is their
    /// event.
    pub fn take(&mut self, slices: &[&[u8]], layouts: &Layouts, owner: Option<usize>) {
        let Self { bytes, sideband, samples, joint } = self;
        walk(slices, joint, |raw| {
            match raw.kind {
                kind::SAMPLE => samples.push((bytes.len(), owner)),
                kind::MMAP
                | kind::MMAP2
                | kind::COMM
                | kind::FORK
                | kind::EXIT
                | kind::KSYMBOL
                | kind::CGROUP => {
                    let timestamp = layouts.sample_id(raw).time.map_or(0, |time| time.0);
                    sideband.push((timestamp, bytes.len()));
                }
                kind::LOST | kind::LOST_SAMPLES | kind::THROTTLE => sideband.push((0, bytes.len())),
                _ => return,
            }
            bytes.extend_from_slice(raw.bytes);
        });
    }

    /// Returns the side-band records up to `horizon`, in the order in which they were added.
    pub fn sideband_until(&self, horizon: Timestamp) -> impl Iterator<Item = RawRecord<'_>> {
        let is_before = move |&&(timestamp, _): &&(Timestamp, usize)| timestamp <= horizon;
        let records = self.sideband.iter().filter(is_before);
        records.filter_map(|&(_, start)| RawRecord::first(&self.bytes[start..]))
    }

    /// Whether the batch contains no records.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}
