//! Offsets of the fields in a sample and in the `sample_id`, computed once per attr for use with millions of
//! records.
//!
//! Receives attrs; decodes [`SampleId`]s and the fixed part of [`Sample`](super::Sample)s.
//!
//! ```text
//! SAMPLE | id'fier | ip | pid tid | time | addr | id | stream | cpu | period | read … callchain … (`sample`)
//!        '------------- 8 bytes each, if selected by sample_type ---------------'
//! others | … body … | pid tid | time | id | stream | cpu | id'fier |   the same selection, at the end
//! ```
//! In a file with several layouts, a record's id must be readable before its layout is known. So either every
//! event has `IDENTIFIER`, or the id is at the same offset in all layouts. [`Layouts`](super::Layouts) finds
//! this offset.

use super::RawRecord;
use super::kernel::Thread;
use pmc_sys::abi::attr::Flag;
use pmc_sys::abi::{Attr, sample_type};
use pmc_text::units::PerfTime;

/// The one-word fields at the front of a sample, in record order.
pub(super) const FRONT: [u64; 9] = [
    sample_type::IDENTIFIER,
    sample_type::IP,
    sample_type::TID,
    sample_type::TIME,
    sample_type::ADDR,
    sample_type::ID,
    sample_type::STREAM_ID,
    sample_type::CPU,
    sample_type::PERIOD,
];
/// The fields of the `sample_id`, in record order.
const TRAILER: [u64; 6] = [
    sample_type::TID,
    sample_type::TIME,
    sample_type::ID,
    sample_type::STREAM_ID,
    sample_type::CPU,
    sample_type::IDENTIFIER,
];
/// Marks a missing field.
pub(super) const NONE: u8 = u8::MAX;

/// The bits of [`FRONT`].
pub(super) const FRONT_BITS: u64 = {
    let (mut bits, mut at) = (0, 0);
    while at < FRONT.len() {
        bits |= FRONT[at];
        at += 1;
    }
    bits
};

/// Index into [`SampleLayout::at`], whose entries are in the order of [`FRONT`].
#[derive(Clone, Copy)]
#[repr(usize)]
pub(super) enum FixedField {
    Identifier,
    Ip,
    Tid,
    Time,
    Addr,
    Id,
    StreamId,
    Cpu,
    Period,
}

/// The layout of one event's samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleLayout {
    pub(super) sample_type: u64,
    pub(super) read_format: u64,
    pub(super) branch_sample_type: u64,
    pub(super) user_regs: u64,
    pub(super) intr_regs: u64,
    /// Byte offset of each field of [`FRONT`] in the body; [`NONE`] if not selected.
    pub(super) at: [u8; FRONT.len()],
    /// Size of the fields of [`FRONT`] in bytes.
    pub(super) front: usize,
    /// Byte offset of each field of [`TRAILER`], counted back from the end.
    pub(super) back: [u8; TRAILER.len()],
    /// Size of the trailer in bytes: 0 without `sample_id_all`.
    trailer: usize,
    /// Whether the counts in a sample cover only the sample's thread.
    counts_by_thread: bool,
}

impl SampleLayout {
    /// Computes the layout for an attr.
    pub fn new(attr: &Attr) -> Self {
        let sample_type = attr.sample_type();
        let mut at = [NONE; FRONT.len()];
        let mut front = 0u8;
        for (place, bit) in at.iter_mut().zip(FRONT) {
            if sample_type & bit != 0 {
                *place = front;
                front += 8;
            }
        }
        let mut back = [NONE; TRAILER.len()];
        let mut trailer = 0u8;
        if attr.get(Flag::SampleIdAll) {
            for (place, bit) in back.iter_mut().zip(TRAILER).rev() {
                if sample_type & bit != 0 {
                    trailer += 8;
                    *place = trailer;
                }
            }
        }
        Self {
            sample_type,
            read_format: attr.read_format(),
            branch_sample_type: attr.branch_sample_type(),
            user_regs: attr.sample_regs_user(),
            intr_regs: attr.sample_regs_intr(),
            at,
            front: front.into(),
            back,
            trailer: trailer.into(),
            counts_by_thread: attr.get(Flag::Inherit),
        }
    }

    /// Whether the counts in a sample cover only the sample's thread (`inherit`, Linux 6.13) instead of the
    /// whole counter.
    pub fn counts_by_thread(&self) -> bool {
        self.counts_by_thread
    }

    /// The event's `sample_type` bits.
    pub fn sample_type(&self) -> u64 {
        self.sample_type
    }

    /// The event's `branch_sample_type` bits.
    pub fn branch_sample_type(&self) -> u64 {
        self.branch_sample_type
    }

    /// Byte offset of the data address in a sample's body, if selected.
    pub(super) fn place_of_addr(&self) -> Option<usize> {
        let at = self.at[FixedField::Addr as usize];
        (at != NONE).then_some(at.into())
    }

    /// Size of the `sample_id` at the end of records other than samples, in bytes.
    pub fn trailer_size(&self) -> usize {
        self.trailer
    }

    /// Returns the word of a front field; `None` if it was not selected.
    #[inline]
    pub(super) fn fixed_word(&self, body: &[u8], field: FixedField) -> Option<u64> {
        let at = usize::from(self.at[field as usize]);
        // `NONE` could be a valid offset in a large body, so check for it first.
        if at == usize::from(NONE) {
            return None;
        }
        body.get(at..)?.first_chunk().map(|word| u64::from_ne_bytes(*word))
    }

    fn trailer_word(&self, body: &[u8], index: usize) -> Option<u64> {
        let back = usize::from(self.back[index]);
        if back == usize::from(NONE) {
            return None;
        }
        let at = body.len().checked_sub(back)?;
        body[at..].first_chunk().map(|word| u64::from_ne_bytes(*word))
    }

    /// Encodes a trailer; missing fields are zero.
    pub fn trailer(&self, id: &SampleId) -> Vec<u8> {
        let mut out = vec![0; self.trailer];
        let mut put = |field: usize, halves: [Option<u32>; 2], word: Option<u64>| {
            let Some(at) = self.trailer.checked_sub(self.back[field].into()) else { return };
            match (word, halves) {
                (Some(word), _) => out[at..at + 8].copy_from_slice(&word.to_ne_bytes()),
                (None, [Some(first), second]) => {
                    out[at..at + 4].copy_from_slice(&first.to_ne_bytes());
                    out[at + 4..at + 8].copy_from_slice(&second.unwrap_or(0).to_ne_bytes());
                }
                (None, _) => {}
            }
        };
        let none = [None, None];
        let thread = id.thread.unwrap_or_default();
        put(0, [Some(thread.pid as u32), Some(thread.tid as u32)], None);
        put(1, none, id.time.map(|time| time.0));
        put(2, none, id.id);
        put(3, none, id.stream_id);
        put(4, [id.cpu, None], None);
        put(5, none, id.id);
        out
    }

    /// Decodes the trailer of a kernel record that is not a sample.
    pub fn sample_id(&self, raw: &RawRecord<'_>) -> SampleId {
        let body = raw.body();
        let word = |index| self.trailer_word(body, index);
        SampleId {
            thread: word(0).map(split).map(|(pid, tid)| Thread { pid: pid as i32, tid: tid as i32 }),
            time: word(1).map(PerfTime),
            id: word(5).or_else(|| word(2)),
            stream_id: word(3),
            cpu: word(4).map(|w| split(w).0),
        }
    }
}

/// Offsets of the trailer's fields that contain two `u32`s, counted back from the end.
pub(super) fn halves_back(layout: &SampleLayout) -> impl Iterator<Item = usize> {
    [layout.back[0], layout.back[4]].into_iter().filter(|&back| back != NONE).map(usize::from)
}

/// Splits a word in native byte order into its two `u32`s, in memory order.
#[inline]
pub(super) fn split(word: u64) -> (u32, u32) {
    let [a, b, c, d, e, f, g, h] = word.to_ne_bytes();
    (u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h]))
}

/// The thread, time, CPU and event of a record. Fields are `None` if they were not selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SampleId {
    /// The thread.
    pub thread: Option<Thread>,
    /// The time.
    pub time: Option<PerfTime>,
    /// Id of the event's instance.
    pub id: Option<u64>,
    /// Id of the inherited instance.
    pub stream_id: Option<u64>,
    /// The CPU.
    pub cpu: Option<u32>,
}
