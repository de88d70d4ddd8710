//! Where the fields of a sample and of the `sample_id` lie: worked out once from an attr, used for millions of records.
//!
//! Receives attrs and their ids; hands on [`Sample`]s, [`SampleId`]s, and the number of the event they belong to.
//!
//! ```text
//! SAMPLE  | id'fier | ip | pid tid | time | addr | id | stream | cpu | period | read … callchain … (`sample`)
//!         '------------- 8 bytes each, those that sample_type selects --------'
//! others  | … body … | pid tid | time | id | stream | cpu | id'fier |   the same choice, at the end
//! ```
//! A file with several kinds of samples is readable only if the id is found before the kind is known: either every
//! event has `IDENTIFIER`, or the id has the same place in all of them. [`Layouts`] finds that place.

use rustc_hash::FxHashMap;

use super::sample::{ReadValues, Sample};
use super::{Cursor, RawRecord, Thread, kind};
use crate::abi::attr::Flag;
use crate::abi::{Attr, sample_type};
use crate::units::PerfTime;

/// The fields of one word at the front of a sample, in their order.
const FRONT: [u64; 9] = [
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
/// The fields of the `sample_id`, in their order.
const TRAILER: [u64; 6] = [
    sample_type::TID,
    sample_type::TIME,
    sample_type::ID,
    sample_type::STREAM_ID,
    sample_type::CPU,
    sample_type::IDENTIFIER,
];
/// Stands for "not there".
const NONE: u8 = u8::MAX;

/// Index into [`SampleLayout::at`]: the order of [`FRONT`].
#[derive(Clone, Copy)]
#[repr(usize)]
pub(super) enum Front {
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

/// The shape of one event's samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleLayout {
    pub(super) sample_type: u64,
    pub(super) read_format: u64,
    pub(super) branch_sample_type: u64,
    pub(super) user_regs: u64,
    pub(super) intr_regs: u64,
    /// Byte offset in the body of each of [`FRONT`], [`NONE`] when not selected.
    at: [u8; FRONT.len()],
    /// Bytes that [`FRONT`] takes.
    pub(super) front: usize,
    /// Byte offset, counted back from the end, of each of [`TRAILER`].
    back: [u8; TRAILER.len()],
    /// Bytes of the trailer: 0 without `sample_id_all`.
    trailer: usize,
}

impl SampleLayout {
    /// The shape that this request makes.
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
        }
    }

    /// The `sample_type` bits it was made from.
    pub fn sample_type(&self) -> u64 {
        self.sample_type
    }

    /// Byte offset of the data's address in a sample's body, where it was selected.
    pub(super) fn place_of_addr(&self) -> Option<usize> {
        let at = self.at[Front::Addr as usize];
        (at != NONE).then_some(at.into())
    }

    /// Bytes of `sample_id` at the end of records that are not samples.
    pub fn trailer_size(&self) -> usize {
        self.trailer
    }

    /// The sample in this body; `None` when its one-word fields do not fit into it.
    #[inline]
    pub fn sample<'a>(&'a self, raw: &RawRecord<'a>) -> Option<Sample<'a>> {
        let body = raw.body();
        (body.len() >= self.front).then_some(Sample { layout: self, body, misc: raw.misc })
    }

    /// The word of a front field; `None` when it was not selected.
    #[inline]
    pub(super) fn front_word(&self, body: &[u8], field: Front) -> Option<u64> {
        let at = usize::from(self.at[field as usize]);
        // NONE may lie within a large body: ask first.
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

    /// The trailer of a record of the kernel's that is not a sample.
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

fn foreign(word: [u8; 8]) -> u64 {
    u64::from_ne_bytes(word).swap_bytes()
}

/// The bytes of the trailer that hold two u32 each, counted back from the end.
pub(super) fn halves_back(layout: &SampleLayout) -> impl Iterator<Item = usize> {
    [layout.back[0], layout.back[4]].into_iter().filter(|&back| back != NONE).map(usize::from)
}

/// The two u32 of a native word, in their order in memory.
#[inline]
pub(super) fn split(word: u64) -> (u32, u32) {
    let [a, b, c, d, e, f, g, h] = word.to_ne_bytes();
    (u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h]))
}

/// Who, when, where and for which event a record was written. Fields that were not selected are `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SampleId {
    /// Whose.
    pub thread: Option<Thread>,
    /// When.
    pub time: Option<PerfTime>,
    /// The event's instance.
    pub id: Option<u64>,
    /// The instance it was inherited to.
    pub stream_id: Option<u64>,
    /// Where.
    pub cpu: Option<u32>,
}

/// The shapes of all events of a recording.
#[derive(Debug, Clone, Default)]
pub struct Layouts {
    layouts: Vec<SampleLayout>,
    by_id: FxHashMap<u64, u32>,
    /// For each shape the event whose samples have it: its own, or the one that it is a [twin](super::unwound) of.
    events: Vec<u32>,
    /// Byte offset of the id in every sample.
    id_at: Option<usize>,
    /// Byte offset of the id from the end of every other record.
    id_back: Option<usize>,
}

impl Layouts {
    /// Takes the events in their order; samples name them by their index in it.
    pub fn new<'a, I: IntoIterator<Item = (&'a Attr, &'a [u64])>>(events: I) -> Self {
        let mut all = Self::default();
        for (index, (attr, ids)) in events.into_iter().enumerate() {
            all.layouts.push(SampleLayout::new(attr));
            let sibling = ids.first().and_then(|&id| super::unwound::without_twin(id));
            let sibling = sibling.and_then(|id| all.event_of(id)).map(|event| event as u32);
            all.events.push(sibling.unwrap_or(index as u32));
            all.by_id.extend(ids.iter().map(|&id| (id, index as u32)));
        }
        // The identifier has its place whatever else is selected; otherwise all must agree on the place of the id.
        let same = |place: fn(&SampleLayout) -> u8| {
            let mut places = all.layouts.iter().map(place);
            let first = places.next()?;
            (first != NONE && places.all(|p| p == first)).then_some(usize::from(first))
        };
        all.id_at = same(|l| l.at[Front::Identifier as usize]).or_else(|| same(|l| l.at[Front::Id as usize]));
        all.id_back = same(|l| l.back[5]).or_else(|| same(|l| l.back[2]));
        all
    }

    /// The shapes, in the order of the events.
    pub fn iter(&self) -> std::slice::Iter<'_, SampleLayout> {
        self.layouts.iter()
    }

    /// How many events there are, counted without the twins at the end.
    pub fn event_count(&self) -> usize {
        let twins = self.events.iter().enumerate().rev().take_while(|(own, event)| *own != **event as usize);
        self.events.len() - twins.count()
    }

    /// The event with this id.
    #[inline]
    pub fn event_of(&self, id: u64) -> Option<usize> {
        Some(self.events[self.shape_of(id)?] as usize)
    }

    #[inline]
    fn shape_of(&self, id: u64) -> Option<usize> {
        self.by_id.get(&id).map(|&index| index as usize)
    }

    /// The event a sample belongs to. With one event there is no question; among several, a sample whose id nobody knows
    /// belongs to none (perf drops it too and counts it as unknown), except that id 0 or no id at all means the first.
    #[inline]
    pub fn event_of_sample(&self, raw: &RawRecord<'_>) -> Option<usize> {
        let shape = self.shape_of_body(raw.body(), u64::from_ne_bytes)?;
        Some(*self.events.get(shape)? as usize)
    }

    #[inline]
    fn shape_of_body(&self, body: &[u8], read: fn([u8; 8]) -> u64) -> Option<usize> {
        if self.layouts.len() == 1 {
            return Some(0);
        }
        let Some(at) = self.id_at else { return (!self.layouts.is_empty()).then_some(0) };
        let id = read(*body.get(at..)?.first_chunk()?);
        if id == 0 { Some(0) } else { self.shape_of(id) }
    }

    /// The shape of a sample whose bytes have not been turned around yet.
    pub(super) fn of_foreign_sample(&self, body: &[u8]) -> Option<&SampleLayout> {
        self.layouts.get(self.shape_of_body(body, foreign)?)
    }

    /// The shape of the trailer of a record whose bytes have not been turned around yet.
    pub(super) fn of_foreign_trailer(&self, body: &[u8]) -> Option<&SampleLayout> {
        self.trailer_of(body, foreign)
    }

    /// A sample and the index of its event; `None` when the record is no sample, too short, or of an unknown event.
    #[inline]
    pub fn sample<'a>(&'a self, raw: &RawRecord<'a>) -> Option<(usize, Sample<'a>)> {
        if raw.kind != kind::SAMPLE {
            return None;
        }
        let shape = self.shape_of_body(raw.body(), u64::from_ne_bytes)?;
        Some((*self.events.get(shape)? as usize, self.layouts.get(shape)?.sample(raw)?))
    }

    /// The shape that a record of the kernel's other than a sample follows.
    fn trailer_of(&self, body: &[u8], read: fn([u8; 8]) -> u64) -> Option<&SampleLayout> {
        let at = self.id_back.and_then(|back| body.len().checked_sub(back));
        let id = at.and_then(|at| body[at..].first_chunk());
        let shape = id.and_then(|id| self.shape_of(read(*id))).unwrap_or(0);
        self.layouts.get(shape)
    }

    /// The `sample_id` of a record of the kernel's that is not a sample; all `None` for perf's own records.
    pub fn sample_id(&self, raw: &RawRecord<'_>) -> SampleId {
        if raw.kind >= kind::FIRST_USER || raw.kind == kind::SAMPLE {
            return SampleId::default();
        }
        self.trailer_of(raw.body(), u64::from_ne_bytes)
            .map_or_else(SampleId::default, |layout| layout.sample_id(raw))
    }

    /// A `READ` record's event and its values.
    pub fn read<'a>(&self, raw: &RawRecord<'a>) -> Option<(usize, ReadValues<'a>)> {
        let event = self.sample_id(raw).id.and_then(|id| self.event_of(id)).unwrap_or(0);
        let mut values = Cursor::new(raw.body());
        // The thread stands before them.
        values.u64()?;
        Some((event, ReadValues::parse(&mut values, self.layouts.get(event)?.read_format)?))
    }

    /// When a record was written: from the sample or the `sample_id`.
    #[inline]
    pub fn time(&self, raw: &RawRecord<'_>) -> Option<PerfTime> {
        if raw.kind == kind::SAMPLE {
            self.sample(raw).and_then(|(_, sample)| sample.time())
        } else {
            self.sample_id(raw).time
        }
    }
}
