//! Which event a record belongs to, and which layout it follows, in a recording of several events.
//!
//! Receives the attrs and ids of all events; hands on samples with the index of their event, and the
//! `sample_id` of the other records. A sample that could not be unwound in time belongs to a *twin* of its
//! event ([`twin_id`]).

use rustc_hash::FxHashMap;

use super::sample::{ReadValue, ReadValues, Sample};
use super::sample_layout::{Front, NONE, SampleId, SampleLayout};
use super::{Cursor, RawRecord, kind};
use crate::abi::Attr;
use crate::units::{Count, PerfTime};

/// What a counter said when its thread ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterRead {
    /// Index of its event.
    pub event: usize,
    /// The id of its instance; 0 where records name none.
    pub id: u64,
    /// What it has counted; times are 0 where they are not recorded.
    pub count: Count,
    /// Samples that it says it lost.
    pub lost: u64,
}

/// The bit that makes an instance's id its twin's. The kernel counts ids up from 1.
const TWIN: u64 = 1 << 62;

/// The id of an instance's twin.
pub fn twin_id(id: u64) -> u64 {
    id | TWIN
}

/// The id of the instance that this one is a twin of.
fn without_twin(id: u64) -> Option<u64> {
    (id & TWIN != 0).then_some(id & !TWIN)
}

fn foreign(word: [u8; 8]) -> u64 {
    u64::from_ne_bytes(word).swap_bytes()
}

/// The shapes of all events of a recording.
#[derive(Debug, Clone, Default)]
pub struct Layouts {
    layouts: Vec<SampleLayout>,
    by_id: FxHashMap<u64, u32>,
    /// For each shape the event whose samples have it: its own, or the one that it is a [twin](twin_id) of.
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
            let sibling = ids.first().and_then(|&id| without_twin(id));
            let sibling = sibling.and_then(|id| all.event_of(id)).map(|event| event as u32);
            all.events.push(sibling.unwrap_or(index as u32));
            all.by_id.extend(ids.iter().map(|&id| (id, index as u32)));
        }
        // The identifier has its place whatever else is selected; otherwise all must agree on the place of
        // the id.
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

    /// Whether some event's samples have one of these fields (`PERF_SAMPLE_*`).
    pub fn have(&self, fields: u64) -> bool {
        self.iter().any(|layout| layout.sample_type() & fields != 0)
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

    /// A sample and the index of its event; `None` when the record is no sample, too short, or of an unknown
    /// event.
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

    /// What a `READ` record says of the counter that it is about. In a group each member has a record of its
    /// own, and each record holds the values of all.
    pub fn counter_read(&self, raw: &RawRecord<'_>) -> Option<CounterRead> {
        let (event, values) = self.read(raw)?;
        let own = self.sample_id(raw).id;
        let is_own = |value: &ReadValue| own.is_none() || value.id.is_none_or(|id| Some(id) == own);
        let value = values.iter().find(is_own)?;
        let id = value.id.or(own).unwrap_or(0);
        Some(CounterRead {
            event: self.event_of(id).unwrap_or(event),
            id,
            count: Count {
                value: value.value,
                enabled_ns: values.enabled_ns().unwrap_or(0),
                running_ns: values.running_ns().unwrap_or(0),
            },
            lost: value.lost.unwrap_or(0),
        })
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
