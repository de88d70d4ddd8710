//! Records as they came out of the rings, until their round is settled.
//!
//! Receives ring memory; keeps copies of samples and of the side-band, apart from one another. Looks at
//! times, decides nothing.

use crate::record::{Layouts, kind, walk};
use crate::session::Timestamp;

/// Records that wait for their round.
#[derive(Debug, Default)]
pub struct Batch {
    pub(super) bytes: Vec<u8>,
    /// Timestamp, start in `bytes`.
    pub(super) sideband: Vec<(Timestamp, usize)>,
    /// Start in `bytes`, and the event of samples whose id nobody knows.
    pub(super) samples: Vec<(usize, Option<usize>)>,
    pub(super) joint: Vec<u8>,
}

impl Batch {
    /// Takes what a ring holds: one slice, or two with a record across both. `owner` is the event of samples
    /// that bear another listener's id, where that is known.
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

    /// Whether anything waits.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}
