//! The encoding of values in a section: numbers, strings, lists, and structs of these. A single declaration
//! defines both reading and writing.
//!
//! Counts are not trusted: lists grow as items are read, so memory use is limited to a small multiple of
//! the section's size.

use super::Features;
use crate::record::{Cursor, attr, bytes::until_nul};
use pmc_sys::abi::Attr;

/// A value that can be read from and written to a section.
pub(in crate::perfdata) trait Wire: Sized {
    /// Reads a value. Returns `None` if the bytes end early or are invalid. `so_far` contains the sections
    /// that have already been read, that is, the sections with smaller numbers.
    fn read(f: &mut FeatureFields<'_>, so_far: &Features) -> Option<Self>;
    /// Appends the value.
    fn write(&self, out: &mut Vec<u8>);
}

/// Fields in the file's byte order.
pub(in crate::perfdata) struct FeatureFields<'a> {
    bytes: Cursor<'a>,
    is_byte_swapped: bool,
}

impl<'a> FeatureFields<'a> {
    pub(super) fn new(bytes: Cursor<'a>, is_byte_swapped: bool) -> Self {
        Self { bytes, is_byte_swapped }
    }
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.rest().is_empty()
    }
    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        self.bytes.take(count)
    }
    pub(super) fn u16(&mut self) -> Option<u16> {
        self.bytes.u16().map(|n| if self.is_byte_swapped { n.swap_bytes() } else { n })
    }
    pub(super) fn u32(&mut self) -> Option<u32> {
        self.bytes.u32().map(|n| if self.is_byte_swapped { n.swap_bytes() } else { n })
    }
    pub(super) fn u64(&mut self) -> Option<u64> {
        self.bytes.u64().map(|n| if self.is_byte_swapped { n.swap_bytes() } else { n })
    }
}

impl Wire for u32 {
    fn read(f: &mut FeatureFields<'_>, _: &Features) -> Option<Self> {
        f.u32()
    }
    fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.to_ne_bytes());
    }
}

impl Wire for u64 {
    fn read(f: &mut FeatureFields<'_>, _: &Features) -> Option<Self> {
        f.u64()
    }
    fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.to_ne_bytes());
    }
}

/// The last field of a section, which other writers leave out.
impl Wire for Option<u64> {
    fn read(f: &mut FeatureFields<'_>, _: &Features) -> Option<Self> {
        if f.is_empty() { Some(None) } else { f.u64().map(Some) }
    }
    fn write(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|value| value.write(out));
    }
}

/// Strings are padded to a multiple of this many bytes, including the NUL.
const TEXT_ALIGN: usize = 64;

impl Wire for String {
    fn read(f: &mut FeatureFields<'_>, _: &Features) -> Option<Self> {
        let len = f.u32()?;
        let bytes = f.take(usize::try_from(len).ok()?)?;
        Some(Self::from_utf8_lossy(until_nul(bytes)).into_owned())
    }
    fn write(&self, out: &mut Vec<u8>) {
        let padded = (self.len() + 1).next_multiple_of(TEXT_ALIGN);
        out.extend((padded as u32).to_ne_bytes());
        out.extend(self.as_bytes());
        out.resize(out.len() + padded - self.len(), 0);
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    fn read(f: &mut FeatureFields<'_>, so_far: &Features) -> Option<Self> {
        Some((A::read(f, so_far)?, B::read(f, so_far)?))
    }
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
        self.1.write(out);
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn read(f: &mut FeatureFields<'_>, so_far: &Features) -> Option<Self> {
        let count = f.u32()?;
        // Every item consumes bytes, so the loop ends with the data even if the count is invalid.
        (0..count).map(|_| T::read(f, so_far)).collect()
    }
    fn write(&self, out: &mut Vec<u8>) {
        (self.len() as u32).write(out);
        self.iter().for_each(|item| item.write(out));
    }
}

impl Wire for u8 {
    fn read(f: &mut FeatureFields<'_>, _: &Features) -> Option<Self> {
        f.take(1).map(|b| b[0])
    }
    fn write(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }
}

/// A list whose count is a u64.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LongList<T>(pub Vec<T>);

impl<T: Wire> Wire for LongList<T> {
    fn read(f: &mut FeatureFields<'_>, so_far: &Features) -> Option<Self> {
        let count = f.u64()?;
        (0..count).map(|_| T::read(f, so_far)).collect::<Option<_>>().map(Self)
    }
    fn write(&self, out: &mut Vec<u8>) {
        (self.0.len() as u64).write(out);
        self.0.iter().for_each(|item| item.write(out));
    }
}

/// A bitmap: the number of bits (u64), followed by the words that contain them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bitmap {
    /// Number of bits.
    pub bits: u64,
    /// The bits.
    pub words: Vec<u64>,
}

impl Wire for Bitmap {
    fn read(f: &mut FeatureFields<'_>, _: &Features) -> Option<Self> {
        let bits = f.u64()?;
        let words = (0..bits.div_ceil(64)).map(|_| f.u64()).collect::<Option<_>>()?;
        Some(Self { bits, words })
    }
    fn write(&self, out: &mut Vec<u8>) {
        self.bits.write(out);
        self.words.iter().for_each(|word| word.write(out));
    }
}

/// An unparsed or empty section.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RawSection(pub Vec<u8>);

impl Wire for RawSection {
    fn read(f: &mut FeatureFields<'_>, _: &Features) -> Option<Self> {
        Some(Self(f.take(f.bytes.rest().len())?.to_vec()))
    }
    fn write(&self, out: &mut Vec<u8>) {
        out.extend(&self.0);
    }
}

/// `EVENT_DESC`: attributes, name and ids of each event.
///
/// ```text
/// | u32 events | u32 size of an attr | { attr | u32 ids | text name | u64 × ids } × events |
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EventDesc(pub Vec<(Attr, String, Vec<u64>)>);

impl Wire for EventDesc {
    fn read(f: &mut FeatureFields<'_>, so_far: &Features) -> Option<Self> {
        let (count, size) = (f.u32()?, f.u32()? as usize);
        if size < attr::SMALLEST {
            return None;
        }
        let mut events = Vec::new();
        for _ in 0..count {
            let mut bytes = f.take(size)?.to_vec();
            if f.is_byte_swapped {
                attr::swap(&mut bytes);
            }
            let ids = f.u32()?;
            let name = String::read(f, so_far)?;
            let ids = (0..ids).map(|_| f.u64()).collect::<Option<_>>()?;
            events.push((attr::of_size(&bytes), name, ids));
        }
        Some(Self(events))
    }

    fn write(&self, out: &mut Vec<u8>) {
        let size = self.0.iter().map(|(attr, ..)| attr.size()).max().unwrap_or(attr::SMALLEST);
        (self.0.len() as u32).write(out);
        (size as u32).write(out);
        for (attr, name, ids) in &self.0 {
            out.extend(attr::to_bytes(attr, size));
            (ids.len() as u32).write(out);
            name.write(out);
            ids.iter().for_each(|id| id.write(out));
        }
    }
}

/// simpleperf's `META_INFO`: NUL-terminated keys and values. pmc writes this section too.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MetaInfo(pub Vec<(String, String)>);

/// Key for the count of each event over the whole recording, as numbers separated by commas.
const COUNTED: &str = "pmc_counted";
/// Key for the number of stacks unwound while recording, and of those that end at the end of their copy.
const STACKS: &str = "pmc_stacks_unwound_cut";
/// Key for the owners of processes with generated code: a process ID, a colon and a user ID, separated by
/// commas.
const OWNERS: &str = "pmc_owners";

impl MetaInfo {
    /// Creates a section with the count of each event.
    pub fn of_counts(counts: &[u64]) -> Self {
        let words: Vec<String> = counts.iter().map(u64::to_string).collect();
        Self(vec![(COUNTED.to_owned(), words.join(","))])
    }

    /// Adds the number of stacks unwound while recording, and of those that end at the end of their copy.
    pub fn add_stacks(&mut self, unwound: u64, cut: u64) {
        self.0.push((STACKS.to_owned(), format!("{unwound},{cut}")));
    }

    /// Adds the owners of processes: a process ID and a user ID each.
    pub fn add_owners(&mut self, owners: impl IntoIterator<Item = (i32, u32)>) {
        let words: Vec<String> = owners.into_iter().map(|(pid, uid)| format!("{pid}:{uid}")).collect();
        self.0.push((OWNERS.to_owned(), words.join(",")));
    }

    /// Returns the recorded owners of processes: a process ID and a user ID each.
    pub fn owners(&self) -> impl Iterator<Item = (u32, u32)> {
        let lists = self.0.iter().filter(|(key, _)| key == OWNERS);
        lists.flat_map(|(_, list)| list.split(',')).filter_map(|word| {
            let (pid, uid) = word.split_once(':')?;
            Some((pid.parse().ok()?, uid.parse().ok()?))
        })
    }

    /// Removes everything except the counts of events and stacks.
    pub fn keep_counts(&mut self) {
        self.0.retain(|(key, _)| key == COUNTED || key == STACKS);
    }

    /// Returns the number of stacks unwound while recording, and of those that end at the end of their copy.
    pub fn stacks(&self) -> Option<(u64, u64)> {
        let (_, words) = self.0.iter().find(|(key, _)| key == STACKS)?;
        let (unwound, cut) = words.split_once(',')?;
        Some((unwound.parse().ok()?, cut.parse().ok()?))
    }

    /// Returns the count of an event, if pmc wrote the recording.
    pub fn counted(&self, event: usize) -> Option<u64> {
        let (_, words) = self.0.iter().find(|(key, _)| key == COUNTED)?;
        words.split(',').nth(event)?.parse().ok()
    }

    /// Returns the name of an event. Lines of `event_type_info` are `NAME,TYPE,CONFIG`.
    pub fn event_name(&self, attr: &Attr) -> Option<&str> {
        let (_, lines) = self.0.iter().find(|(key, _)| key == "event_type_info")?;
        lines.lines().find_map(|line| {
            let mut fields = line.rsplitn(3, ',');
            let (config, kind) = (fields.next()?.parse::<u64>(), fields.next()?.parse::<u32>());
            (kind == Ok(attr.kind()) && config == Ok(attr.config())).then(|| fields.next()).flatten()
        })
    }
}

impl Wire for MetaInfo {
    fn read(f: &mut FeatureFields<'_>, _: &Features) -> Option<Self> {
        let text = String::from_utf8_lossy(f.take(f.bytes.rest().len())?).into_owned();
        let words: Vec<&str> = text.strip_suffix('\0').unwrap_or(&text).split('\0').collect();
        let (pairs, _) = words.as_chunks::<2>();
        Some(Self(pairs.iter().map(|[key, value]| ((*key).to_owned(), (*value).to_owned())).collect()))
    }
    fn write(&self, out: &mut Vec<u8>) {
        for word in self.0.iter().flat_map(|(key, value)| [key, value]) {
            out.extend(word.as_bytes());
            out.push(0);
        }
    }
}

/// Declares structs whose fields are stored in order.
macro_rules! wire {
    ($($(#[$doc:meta])* pub struct $name:ident { $($(#[$field_doc:meta])* pub $field:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Default)]
        pub struct $name { $($(#[$field_doc])* pub $field: $type,)* }

        impl Wire for $name {
            fn read(f: &mut FeatureFields<'_>, so_far: &Features) -> Option<Self> {
                Some(Self { $($field: Wire::read(f, so_far)?,)* })
            }
            fn write(&self, out: &mut Vec<u8>) {
                $(self.$field.write(out);)*
            }
        }
    )*};
}
pub(super) use wire;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simpleperf_event_names_are_read() {
        let bytes = b"simpleperf_version\x001.0\0event_type_info\0cpu-cycles,0,0\nsched:a,b,2,47\n\0";
        let mut fields = FeatureFields::new(Cursor::new(bytes), false);
        let meta = MetaInfo::read(&mut fields, &Features::default()).expect("it is whole");
        assert_eq!(meta.event_name(&Attr::new(0, 0)), Some("cpu-cycles"));
        assert_eq!(meta.event_name(&Attr::new(2, 47)), Some("sched:a,b"));
        assert_eq!(meta.event_name(&Attr::new(2, 48)), None);
        let mut out = Vec::new();
        meta.write(&mut out);
        assert_eq!(out, bytes);
    }

    #[test]
    fn event_counts_are_kept() {
        let meta = MetaInfo::of_counts(&[7, 0, u64::MAX]);
        assert_eq!([0, 1, 2, 3].map(|event| meta.counted(event)), [Some(7), Some(0), Some(u64::MAX), None]);
        assert_eq!(MetaInfo::default().counted(0), None);
        let mut meta = MetaInfo::default();
        meta.add_owners([(7, 1001), (9, 0)]);
        assert_eq!(meta.owners().collect::<Vec<_>>(), [(7, 1001), (9, 0)]);
        meta.keep_counts();
        assert_eq!(meta.owners().count(), 0);
    }

    #[test]
    fn stack_counts_are_kept() {
        let mut meta = MetaInfo::of_counts(&[7]);
        assert_eq!(meta.stacks(), None);
        meta.add_stacks(100, 3);
        meta.0.push(("other".to_owned(), "1,2".to_owned()));
        meta.keep_counts();
        assert_eq!((meta.counted(0), meta.stacks(), meta.0.len()), (Some(7), Some((100, 3)), 2));
    }
}
