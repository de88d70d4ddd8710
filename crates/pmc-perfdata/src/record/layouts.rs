//! Finds the event and the layout of each record in a recording of several events.
//!
//! Receives the attrs and ids of all events; returns samples with the index of their event, and the
//! `sample_id` of the other records. A sample that could not be unwound in time has the id of its event's
//! *fallback event* ([`fallback_event_id`]).

use rustc_hash::FxHashMap;

use super::bytes::Cursor;
use super::sample::{ReadValue, ReadValues, Sample};
use super::sample_layout::{FixedField, NONE, SampleId, SampleLayout};
use super::{RawRecord, kind};
use pmc_sys::abi::Attr;
use pmc_text::units::{Count, PerfTime};

/// A counter's final value when its thread ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterRead {
    /// Index of the event.
    pub event: usize,
    /// Id of the event's instance; 0 if the records have no ids.
    pub id: u64,
    /// The count; its times are 0 if they were not recorded.
    pub count: Count,
    /// Number of lost samples.
    pub lost: u64,
}

/// The bit that distinguishes the id of a fallback event from its instance's id. The kernel assigns ids from
/// 1 upwards, so it never sets this bit.
const FALLBACK: u64 = 1 << 62;

/// Returns the id of the fallback event for an event instance.
pub fn fallback_event_id(id: u64) -> u64 {
    id | FALLBACK
}

/// Returns the id of the event instance whose fallback event has this id.
fn without_fallback_bit(id: u64) -> Option<u64> {
    (id & FALLBACK != 0).then_some(id & !FALLBACK)
}

fn byte_swapped(word: [u8; 8]) -> u64 {
    u64::from_ne_bytes(word).swap_bytes()
}

/// The layouts of all events of a recording.
#[derive(Debug, Clone, Default)]
pub struct Layouts {
    layouts: Vec<SampleLayout>,
    by_id: FxHashMap<u64, u32>,
    /// For each layout, the index of the event to which its samples belong. For a [fallback
    /// event](fallback_event_id), this is the original event.
    events: Vec<u32>,
    /// Byte offset of the id in every sample.
    id_at: Option<usize>,
    /// Byte offset of the id from the end of every other record.
    id_back: Option<usize>,
}

impl Layouts {
    /// Collects the layouts of the events. Samples refer to an event by its index in this order.
    pub fn new<'a, I: IntoIterator<Item = (&'a Attr, &'a [u64])>>(events: I) -> Self {
        let mut all = Self::default();
        for (index, (attr, ids)) in events.into_iter().enumerate() {
            all.layouts.push(SampleLayout::new(attr));
            let sibling = ids.first().and_then(|&id| without_fallback_bit(id));
            let sibling = sibling.and_then(|id| all.event_of(id)).map(|event| event as u32);
            all.events.push(sibling.unwrap_or(index as u32));
            all.by_id.extend(ids.iter().map(|&id| (id, index as u32)));
        }
        // `IDENTIFIER` has a fixed offset. Without it, the id must be at the same offset in all layouts.
        let same = |place: fn(&SampleLayout) -> u8| {
            let mut places = all.layouts.iter().map(place);
            let first = places.next()?;
            (first != NONE && places.all(|p| p == first)).then_some(usize::from(first))
        };
        all.id_at = same(|l| l.at[FixedField::Identifier as usize])
            .or_else(|| same(|l| l.at[FixedField::Id as usize]));
        all.id_back = same(|l| l.back[5]).or_else(|| same(|l| l.back[2]));
        all
    }

    /// Iterates over the layouts in the order of the events.
    pub fn iter(&self) -> std::slice::Iter<'_, SampleLayout> {
        self.layouts.iter()
    }

    /// Whether the samples of any event have one of these fields (`PERF_SAMPLE_*`).
    pub fn have(&self, fields: u64) -> bool {
        self.iter().any(|layout| layout.sample_type() & fields != 0)
    }

    /// Returns the number of events, not counting the fallback events at the end.
    pub fn event_count(&self) -> usize {
        let fallback_events =
            self.events.iter().enumerate().rev().take_while(|(own, event)| *own != **event as usize);
        self.events.len() - fallback_events.count()
    }

    /// Returns the event with this id.
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

    /// Returns the layout of a sample that has not been converted to native byte order yet.
    pub(super) fn of_byte_swapped_sample(&self, body: &[u8]) -> Option<&SampleLayout> {
        self.layouts.get(self.shape_of_body(body, byte_swapped)?)
    }

    /// Returns the layout of a record's trailer before the record is converted to native byte order.
    pub(super) fn of_byte_swapped_trailer(&self, body: &[u8]) -> Option<&SampleLayout> {
        self.trailer_of(body, byte_swapped)
    }

    /// Decodes a sample, with the index of its event. `None` if the record is not a sample, is too short, or
    /// belongs to an unknown event.
    #[inline]
    pub fn sample<'a>(&'a self, raw: &RawRecord<'a>) -> Option<(usize, Sample<'a>)> {
        if raw.kind != kind::SAMPLE {
            return None;
        }
        let shape = self.shape_of_body(raw.body(), u64::from_ne_bytes)?;
        Some((*self.events.get(shape)? as usize, self.layouts.get(shape)?.sample(raw)?))
    }

    /// Like [`sample`](Self::sample). A sample with an unknown id belongs to the event `owner`, if known.
    pub fn sample_of<'a>(&'a self, raw: &RawRecord<'a>, owner: Option<usize>) -> Option<(usize, Sample<'a>)> {
        self.sample(raw).or_else(|| {
            let event = owner?;
            Some((event, self.layouts.get(event)?.sample(raw)?))
        })
    }

    /// Returns the layout of a kernel record other than a sample.
    fn trailer_of(&self, body: &[u8], read: fn([u8; 8]) -> u64) -> Option<&SampleLayout> {
        let at = self.id_back.and_then(|back| body.len().checked_sub(back));
        let id = at.and_then(|at| body[at..].first_chunk());
        let shape = id.and_then(|id| self.shape_of(read(*id))).unwrap_or(0);
        self.layouts.get(shape)
    }

    /// Decodes the `sample_id` of a kernel record that is not a sample. All fields are `None` for perf's own
    /// records.
    pub fn sample_id(&self, raw: &RawRecord<'_>) -> SampleId {
        if raw.kind >= kind::FIRST_USER || raw.kind == kind::SAMPLE {
            return SampleId::default();
        }
        self.trailer_of(raw.body(), u64::from_ne_bytes)
            .map_or_else(SampleId::default, |layout| layout.sample_id(raw))
    }

    /// Decodes a `READ` record's event and values.
    pub fn read<'a>(&self, raw: &RawRecord<'a>) -> Option<(usize, ReadValues<'a>)> {
        let event = self.sample_id(raw).id.and_then(|id| self.event_of(id)).unwrap_or(0);
        let mut values = Cursor::new(raw.body());
        // The thread precedes the values.
        values.u64()?;
        Some((event, ReadValues::parse(&mut values, self.layouts.get(event)?.read_format)?))
    }

    /// Decodes the count of the counter to which a `READ` record belongs. Each member of a group has its own
    /// record, which contains the values of all members.
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

    /// Returns the time of a record, from the sample or the `sample_id`.
    #[inline]
    pub fn time(&self, raw: &RawRecord<'_>) -> Option<PerfTime> {
        if raw.kind == kind::SAMPLE {
            self.sample(raw).and_then(|(_, sample)| sample.time())
        } else {
            self.sample_id(raw).time
        }
    }
}
