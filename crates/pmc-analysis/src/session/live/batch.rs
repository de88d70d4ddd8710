//! Buffers records from the rings until their round is settled.
//!
//! Receives ring memory; stores copies of samples and side-band records separately. Reads their times, but
//! does not interpret the records.

use crate::session::Timestamp;
use pmc_perfdata::record::{Layouts, kind, walk};

/// Records that wait for the end of their round.
#[derive(Debug, Default)]
pub struct Batch {
    pub(super) bytes: Vec<u8>,
    /// Timestamp and start in `bytes` of each record.
    pub(super) sideband: Vec<(Timestamp, usize)>,
    /// Start in `bytes` of each sample, and the event for samples with an unknown id.
    pub(super) samples: Vec<(usize, Option<usize>)>,
    pub(super) joint: Vec<u8>,
}

impl Batch {
    /// Adds the contents of a ring: one slice, or two slices if the contents wrap around. A record may cross
    /// both slices. `owner` is the event of samples that carry another listener's id, if known.
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

    /// Whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}
