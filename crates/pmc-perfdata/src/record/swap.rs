//! Converts records from the opposite byte order in place, once, before they are decoded.
//!
//! Receives a buffer of byte-swapped records and the file's [`Layouts`]. The result looks as if a machine
//! with native byte order had written it, so all other code handles only native order, and reading native
//! files costs nothing extra. A malformed record may be left partly converted; the parsers check all sizes
//! again.
//! Tracepoint payloads (`RAW`) and stack copies are not converted, because only the code that reads them
//! knows their fields.
//!
//! For each record type, the table in [`super::kind`] lists the field widths and how to convert the rest:
//! ```text
//! MMAP2   4 4 8 8 8  4 4 8 8  4 4   text …            | trailer: 8s, pid/tid and cpu as 4 4
//! ID_INDEX  8  words …
//! ```

use super::decode::BranchFlags;
use super::kernel::build_id;
use super::kind::Rest;
use super::layouts::Layouts;
use super::sample_layout::SampleLayout;
use super::sample_layout::{FRONT, halves_back};
use super::{HEADER, attr, kind};
use pmc_sys::abi::{branch_sample_type, misc, read_format, sample_type};

/// Field widths of an `MMAP2` with a build-id, whose 24 bytes stay unchanged.
const MMAP2_BY_BUILD_ID: &[u8] =
    &[4, 4, 8, 8, 8, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 4, 4];

/// Converts a header.
pub fn header(bytes: &mut [u8; HEADER]) {
    bytes[..4].reverse();
    bytes[4..6].reverse();
    bytes[6..].reverse();
}

/// Converts all complete records at the front of the buffer and returns their total size in bytes. Leaves the
/// rest unchanged.
pub fn records(buffer: &mut [u8], layouts: &Layouts) -> usize {
    let mut done = 0;
    while let Some(size) = record(&mut buffer[done..], layouts) {
        done += size;
    }
    done
}

/// Converts the first record and returns its size. If the record is incomplete, returns `None` and changes
/// nothing.
pub fn record(buffer: &mut [u8], layouts: &Layouts) -> Option<usize> {
    let mut head = *buffer.first_chunk::<HEADER>()?;
    header(&mut head);
    let [a, b, c, d, e, f, g, h] = head;
    let (kind, flags) = (u32::from_ne_bytes([a, b, c, d]), u16::from_ne_bytes([e, f]));
    let size = super::size(kind, flags, u16::from_ne_bytes([g, h]));
    if size < HEADER || size > buffer.len() {
        return None;
    }
    buffer[..HEADER].copy_from_slice(&head);
    let mut body = &mut buffer[HEADER..size];
    if kind < kind::FIRST_USER && kind != kind::SAMPLE {
        let layout = layouts.of_byte_swapped_trailer(body);
        if let Some(layout) = layout.filter(|layout| layout.trailer_size() <= body.len()) {
            let (front, back) = body.split_at_mut(body.len() - layout.trailer_size());
            trailer(back, layout);
            body = front;
        }
    }
    // The parser will detect a truncated body.
    let _ = turn_body(body, kind, flags, layouts);
    Some(size)
}

fn trailer(bytes: &mut [u8], layout: &SampleLayout) {
    let end = bytes.len();
    SwapCursor::new(bytes).all_words();
    for back in halves_back(layout) {
        // Reversing two `u32`s as one `u64` has exchanged them, so exchange them again.
        bytes[end - back..][..8].rotate_left(4);
    }
}

fn turn_body(body: &mut [u8], kind: u32, flags: u16, layouts: &Layouts) -> Option<()> {
    let (mut widths, rest) = kind::shape(kind);
    // The flag may be set without a build-id.
    let has_build_id =
        flags & misc::MMAP_BUILD_ID != 0 && body.get(32..56).is_some_and(|id| build_id(id).is_some());
    if kind == kind::MMAP2 && has_build_id {
        widths = MMAP2_BY_BUILD_ID;
    }
    if rest == Rest::Sample {
        let layout = layouts.of_byte_swapped_sample(body)?.clone();
        return sample(&mut SwapCursor::new(body), &layout);
    }
    let update = body.first_chunk().map_or(0, |word| u64::from_ne_bytes(*word).swap_bytes());
    let mut t = SwapCursor::new(body);
    for &width in widths {
        t.field(width.into())?;
    }
    match rest {
        Rest::Keep | Rest::Sample => {}
        Rest::Words => t.all_words(),
        Rest::Attr => {
            let size =
                t.rest().get(4..8)?.first_chunk().map(|s| u32::from_ne_bytes(*s).swap_bytes())? as usize;
            attr::swap(t.take(if size == 0 { attr::SMALLEST } else { size })?);
            t.all_words();
        }
        Rest::Threads => {
            while t.u64().is_some() {
                t.take(16)?;
            }
        }
        Rest::Cpus => cpus(&mut t)?,
        Rest::Update if update == 1 => t.all_words(),
        Rest::Update if update == 3 => cpus(&mut t)?,
        Rest::Update => {}
    }
    Some(())
}

fn cpus(t: &mut SwapCursor<'_>) -> Option<()> {
    match t.u16()? {
        1 => {
            t.u16()?;
            let width = usize::from(t.u16()?);
            if width == 8 {
                t.take(4)?;
            }
            if width == 4 || width == 8 {
                while t.field(width).is_some() {}
            }
        }
        2 => {
            t.take(2)?;
            t.u16()?;
            t.u16()?;
        }
        _ => while t.u16().is_some() {},
    }
    Some(())
}

fn sample(t: &mut SwapCursor<'_>, layout: &SampleLayout) -> Option<()> {
    let has = |bit: u64| layout.sample_type & bit != 0;
    for bit in FRONT.into_iter().filter(|bit| has(*bit)) {
        match bit {
            sample_type::TID | sample_type::CPU => t.halves()?,
            _ => drop(t.u64()?),
        }
    }
    if has(sample_type::READ) {
        let each = 1
            + u64::from(layout.read_format & read_format::ID != 0)
            + u64::from(layout.read_format & read_format::LOST != 0);
        let times = u64::from(layout.read_format & read_format::TOTAL_TIME_ENABLED != 0)
            + u64::from(layout.read_format & read_format::TOTAL_TIME_RUNNING != 0);
        if layout.read_format & read_format::GROUP != 0 {
            let members = t.u64()?;
            t.words(members.checked_mul(each)?.checked_add(times)?)?;
        } else {
            t.words(each + times)?;
        }
    }
    if has(sample_type::CALLCHAIN) {
        let count = t.u64()?;
        t.words(count)?;
    }
    if has(sample_type::RAW) {
        let size = t.u32()?;
        t.take(size as usize)?;
    }
    if has(sample_type::BRANCH_STACK) {
        branches(t, layout.branch_sample_type)?;
    }
    if has(sample_type::REGS_USER) && t.u64()? != 0 {
        t.words(layout.user_regs.count_ones().into())?;
    }
    if has(sample_type::STACK_USER) {
        let size = t.u64()?;
        if size != 0 {
            t.take(usize::try_from(size).ok()?)?;
            t.u64()?;
        }
    }
    if has(sample_type::WEIGHT | sample_type::WEIGHT_STRUCT) {
        // On big-endian machines, the struct declares its parts in reverse order, so they convert like one
        // number.
        t.u64()?;
    }
    t.words(u64::from(has(sample_type::DATA_SRC)) + u64::from(has(sample_type::TRANSACTION)))?;
    if has(sample_type::REGS_INTR) && t.u64()? != 0 {
        t.words(layout.intr_regs.count_ones().into())?;
    }
    let numbers = [
        sample_type::PHYS_ADDR,
        sample_type::CGROUP,
        sample_type::DATA_PAGE_SIZE,
        sample_type::CODE_PAGE_SIZE,
        sample_type::AUX,
    ];
    t.words(numbers.iter().filter(|&&bit| has(bit)).count() as u64)
}

fn branches(t: &mut SwapCursor<'_>, branch_sample_type: u64) -> Option<()> {
    let count = t.u64()?;
    if branch_sample_type & branch_sample_type::HW_INDEX != 0 {
        t.u64()?;
    }
    for _ in 0..count {
        t.words(2)?;
        let flags = t.u64()?;
        // The flags are bit fields, which a machine of the opposite byte order allocates from the other end.
        t.replace_word(BranchFlags::from_byte_swapped(flags).0);
    }
    if branch_sample_type & branch_sample_type::COUNTERS != 0 {
        t.words(count)?;
    }
    Some(())
}

/// A position in a body; the bytes before it are converted.
struct SwapCursor<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl<'a> SwapCursor<'a> {
    fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    fn rest(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    /// Skips `count` bytes without converting them.
    fn take(&mut self, count: usize) -> Option<&mut [u8]> {
        let taken = self.bytes.get_mut(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(taken)
    }

    /// Converts one field of `width` bytes.
    fn field(&mut self, width: usize) -> Option<()> {
        self.take(width).map(<[u8]>::reverse)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let taken = self.take(N)?.first_chunk_mut::<N>()?;
        taken.reverse();
        Some(*taken)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_ne_bytes)
    }
    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_ne_bytes)
    }
    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_ne_bytes)
    }

    /// Converts a word that consists of two `u32`s.
    fn halves(&mut self) -> Option<()> {
        self.field(4)?;
        self.field(4)
    }

    fn words(&mut self, count: u64) -> Option<()> {
        let bytes = usize::try_from(count).ok()?.checked_mul(8)?;
        self.take(bytes)?.as_chunks_mut::<8>().0.iter_mut().for_each(|word| word.reverse());
        Some(())
    }

    fn all_words(&mut self) {
        let count = self.rest().len() / 8;
        // Cannot fail, because that many words remain.
        let _ = self.words(count as u64);
    }

    /// Overwrites the last word with another value.
    fn replace_word(&mut self, value: u64) {
        if let Some(word) = self.at.checked_sub(8).and_then(|at| self.bytes.get_mut(at..self.at)) {
            word.copy_from_slice(&value.to_ne_bytes());
        }
    }
}
