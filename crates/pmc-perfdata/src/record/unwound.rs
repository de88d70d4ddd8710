//! Converts an event's samples with stack copies to samples with call chains: first the attr, then each
//! record.
//!
//! Receives attrs, samples with registers and a stack copy, and the unwinder's call chains. Returns the attr
//! and the records of an ordinary recording with call chains. Does not unwind stacks itself.
//!
//! ```text
//! | id'fier ip tid time (addr) … | read | nr, kernel part | raw | branches | regs | stack | weight (…)
//!                              becomes
//! | id'fier ip tid time        … | read | nr, the whole chain | raw | branches            | weight …
//! ```
//! Data addresses and data sources are recorded only because perf requests them together with stack copies.
//! They are removed too, unless the user requested them.
//!
//! A sample that could not be unwound in time keeps its stack copy and is assigned to the *fallback event* of
//! its event, which has the original attr and separate ids ([`fallback_event_id`]).

use super::bytes::Cursor;
use super::layouts::fallback_event_id;
use super::sample::ReadValues;
use super::sample::Sample;
use super::sample_layout::SampleLayout;
use super::{HEADER, RawRecord};
use pmc_sys::abi::attr::Flag;
use pmc_sys::abi::{Attr, CpuMode, context, sample_type};

/// The fields of a stack copy.
const COPY: u64 = sample_type::REGS_USER | sample_type::STACK_USER;

/// The fields that are removed from unwound samples, as `sample_type` bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StrippedFields {
    fields: u64,
}

impl StrippedFields {
    /// Determines the fields to remove. `wants_data`: whether the user requested data addresses and data
    /// sources; `wants_registers`: whether the user requested user-space registers.
    pub fn new(wants_data: bool, wants_registers: bool) -> Self {
        let data = if wants_data { 0 } else { sample_type::ADDR | sample_type::DATA_SRC };
        let registers = if wants_registers { 0 } else { sample_type::REGS_USER };
        Self { fields: data | registers | sample_type::STACK_USER }
    }

    /// Whether data addresses and data mappings are kept.
    pub fn keeps_data(self) -> bool {
        self.fields & sample_type::ADDR == 0
    }

    /// Whether samples with this layout contain a stack copy.
    pub fn takes(layout: &SampleLayout) -> bool {
        has_copy(layout.sample_type())
    }

    /// Returns the attr with call chains instead of stack copies; `None` if the event's samples have no stack
    /// copy.
    pub fn attr(self, attr: &Attr) -> Option<Attr> {
        if !has_copy(attr.sample_type()) {
            return None;
        }
        let mut plain = attr.clone();
        plain.set_sample_type(attr.sample_type() & !self.fields | sample_type::CALLCHAIN);
        plain.set_sample_stack_user(0);
        if self.fields & sample_type::REGS_USER != 0 {
            plain.set_sample_regs_user(0);
        }
        plain.set(Flag::ExcludeCallchainUser, false);
        plain.set(Flag::MmapData, attr.get(Flag::MmapData) && self.keeps_data());
        Some(plain)
    }

    /// Appends a sample's record with `chain` in place of the stack copy. `chain` is the user part, innermost
    /// first. Returns `false` and appends nothing if the record is truncated.
    pub fn write(self, raw: &RawRecord<'_>, sample: &Sample<'_>, chain: &[u64], out: &mut Vec<u8>) -> bool {
        let start = out.len();
        let written = self.body(raw, sample, chain, out);
        let size = u16::try_from(out.len() - start).ok().filter(|_| written.is_some());
        match size {
            Some(size) => out[start + HEADER - 2..start + HEADER].copy_from_slice(&size.to_ne_bytes()),
            None => out.truncate(start),
        }
        size.is_some()
    }

    fn body(self, raw: &RawRecord<'_>, sample: &Sample<'_>, chain: &[u64], out: &mut Vec<u8>) -> Option<()> {
        let layout = sample.layout();
        let has = |bit: u64| layout.sample_type & bit != 0;
        let keeps = |bit: u64| layout.sample_type & !self.fields & bit != 0;
        let body = sample.body();
        out.extend_from_slice(raw.bytes.get(..HEADER)?);
        // The front: one word each.
        let front = body.get(..layout.front)?;
        match layout.place_of_addr().filter(|_| !keeps(sample_type::ADDR)) {
            Some(at) => {
                out.extend_from_slice(&front[..at]);
                out.extend_from_slice(&front[at + 8..]);
            }
            None => out.extend_from_slice(front),
        }
        let mut c = Cursor::new(&body[layout.front..]);
        let all = c.rest();
        let at = |c: &Cursor<'_>| all.len() - c.rest().len();
        if has(sample_type::READ) {
            ReadValues::parse(&mut c, layout.read_format)?;
        }
        out.extend_from_slice(&all[..at(&c)]);
        if has(sample_type::CALLCHAIN) {
            let count = c.u64()?;
            c.words(count)?;
        }
        let whole = whole_chain(sample, chain);
        out.extend((whole.len() as u64).to_ne_bytes());
        whole.iter().for_each(|word| out.extend(word.to_ne_bytes()));
        // Raw data and branches.
        let from = at(&c);
        if has(sample_type::RAW) {
            let size = c.u32()?;
            c.take(usize::try_from(size).ok()?)?;
        }
        if has(sample_type::BRANCH_STACK) {
            super::sample::Branches::parse(&mut c, layout.branch_sample_type)?;
        }
        out.extend_from_slice(&all[from..at(&c)]);
        let from = at(&c);
        if has(sample_type::REGS_USER) {
            super::sample::SampledRegisters::parse(&mut c, layout.user_regs)?;
        }
        if keeps(sample_type::REGS_USER) {
            out.extend_from_slice(&all[from..at(&c)]);
        }
        if has(sample_type::STACK_USER) {
            super::sample::UserStack::parse(&mut c)?;
        }
        let from = at(&c);
        if has(sample_type::WEIGHT | sample_type::WEIGHT_STRUCT) {
            c.u64()?;
        }
        out.extend_from_slice(&all[from..at(&c)]);
        let from = at(&c);
        if has(sample_type::DATA_SRC) {
            c.u64()?;
        }
        if keeps(sample_type::DATA_SRC) {
            out.extend_from_slice(&all[from..at(&c)]);
        }
        out.extend_from_slice(c.rest());
        Some(())
    }
}

/// Whether samples of this type have the fields that an unwinder needs.
pub fn has_copy(sample_type: u64) -> bool {
    sample_type & COPY == COPY
}

/// Appends a sample without most of the padding after its stack copy. The new record states a smaller
/// requested stack size, but one that is still larger than the valid part.
pub fn write_without_padding(raw: &RawRecord<'_>, sample: &Sample<'_>, out: &mut Vec<u8>) {
    let stack = sample.parts().and_then(|parts| parts.user_stack);
    // Padding after the valid part shows the reader that the copy includes the whole stack.
    let shorter = stack.map(|stack| (stack, stack.bytes.len().next_multiple_of(8) + 8));
    let Some((stack, asked)) = shorter.filter(|(stack, asked)| *asked < stack.asked) else {
        return out.extend_from_slice(raw.bytes);
    };
    let at = raw.bytes.len() - stack.from_end;
    let size = (raw.bytes.len() - (stack.asked - asked)) as u16;
    out.extend_from_slice(&raw.bytes[..HEADER - 2]);
    out.extend_from_slice(&size.to_ne_bytes());
    out.extend_from_slice(&raw.bytes[HEADER..at]);
    out.extend_from_slice(&(asked as u64).to_ne_bytes());
    out.extend_from_slice(&raw.bytes[at + 8..][..asked]);
    out.extend_from_slice(&raw.bytes[at + 8 + stack.asked..]);
}

/// Appends a sample with the id of the fallback event. Returns `false` if the sample's first word is not its
/// id (`PERF_SAMPLE_IDENTIFIER`).
pub fn write_with_fallback_id(raw: &RawRecord<'_>, sample: &Sample<'_>, out: &mut Vec<u8>) -> bool {
    let first = raw.bytes.get(HEADER..HEADER + 8).and_then(|word| word.first_chunk());
    let id = first.map(|word| u64::from_ne_bytes(*word));
    let Some(id) = id.filter(|_| sample.layout().sample_type & sample_type::IDENTIFIER != 0) else {
        return false;
    };
    out.extend_from_slice(&raw.bytes[..HEADER]);
    out.extend(fallback_event_id(id).to_ne_bytes());
    out.extend_from_slice(&raw.bytes[HEADER + 8..]);
    true
}

/// Builds a call chain like one that the kernel records by frame pointers: the kernel part, then the user
/// part, each after its marker. The unwound chain always replaces the recorded user part, even a longer one,
/// because the unwinder has already adopted the reliable frames of that part.
pub fn whole_chain(sample: &Sample<'_>, user: &[u64]) -> Vec<u64> {
    let mut whole: Vec<u64> = sample.callchain().map_or_else(Vec::new, |words| words.iter().collect());
    let at = whole.iter().position(|&word| word == context::USER).unwrap_or(whole.len());
    let followed = whole.split_off(at);
    let user = if user.is_empty() { followed.get(1..).unwrap_or_default() } else { user };
    // Drop markers that no entries follow.
    while whole.last().is_some_and(|&word| word >= context::MAX) {
        whole.pop();
    }
    let own = [sample.ip().unwrap_or(0)];
    let user = match (user, sample.cpu_mode()) {
        ([], CpuMode::User) => &own,
        (user, _) => user,
    };
    if !user.is_empty() {
        whole.push(context::USER);
        whole.extend(user);
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Layouts, SampleParts, kind};

    const ALL: u64 = sample_type::IDENTIFIER
        | sample_type::IP
        | sample_type::TID
        | sample_type::TIME
        | sample_type::ADDR
        | sample_type::CPU
        | sample_type::PERIOD
        | sample_type::READ
        | sample_type::CALLCHAIN
        | sample_type::RAW
        | sample_type::REGS_USER
        | sample_type::STACK_USER
        | sample_type::WEIGHT
        | sample_type::DATA_SRC
        | sample_type::TRANSACTION
        | sample_type::CGROUP;

    fn attr(sample_type: u64) -> Attr {
        let mut attr = Attr::new(1, 0);
        attr.set_sample_type(sample_type);
        attr.set_sample_regs_user(0b111);
        attr.set_sample_stack_user(16);
        attr.set(Flag::ExcludeCallchainUser, true);
        attr
    }

    /// A sample in kernel mode with every field of [`ALL`].
    fn record(misc: u16) -> Vec<u8> {
        record_with(misc, &[16, 0xaaaa, 0xbbbb, 16])
    }

    /// The same, with this stack copy: the requested size, the words, and the valid size.
    fn record_with(misc: u16, stack: &[u64]) -> Vec<u8> {
        let kernel = -128i64 as u64;
        let words: Vec<u64> = [
            &[77, 0x1000, 5 | 5 << 32, 99, 0xadd7, 3, 1000][..], // front
            &[42],                                               // read: the value
            &[3, kernel, 0x1000, 0x2000],                        // chain
            &[8u64 | 7 << 32, 6 << 32 | 5], // raw: size 8, then 8 bytes… of 16 with the size
        ]
        .concat();
        let mut body: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        // The raw field is a `u32` size and that many bytes: 4 + 12 here.
        let raw_at = body.len() - 16;
        body[raw_at..raw_at + 4].copy_from_slice(&12u32.to_ne_bytes());
        let rest = [&[2u64, 10, 11, 12], stack, &[55, 0xd5, 66, 88]].concat();
        body.extend(rest.iter().flat_map(|word| word.to_ne_bytes()));
        let mut record = Vec::new();
        record.extend(kind::SAMPLE.to_ne_bytes());
        record.extend(misc.to_ne_bytes());
        record.extend(((body.len() + HEADER) as u16).to_ne_bytes());
        record.extend(body);
        record
    }

    fn parts(layouts: &Layouts, bytes: &[u8], see: impl FnOnce(Sample<'_>, SampleParts<'_>)) {
        let raw = RawRecord::first(bytes).unwrap();
        assert_eq!(raw.bytes.len(), bytes.len());
        let (_, sample) = layouts.sample(&raw).unwrap();
        see(sample, sample.parts().unwrap());
    }

    #[test]
    fn stack_copy_becomes_a_chain_and_other_fields_stay() {
        let before = attr(ALL);
        for (data, registers) in [(false, false), (true, true)] {
            let lost = StrippedFields::new(data, registers);
            let after = lost.attr(&before).unwrap();
            assert!(!after.get(Flag::ExcludeCallchainUser) && after.sample_stack_user() == 0);
            let old = Layouts::new([(&before, &[77][..])]);
            let new = Layouts::new([(&after, &[77][..])]);
            let bytes = record(1);
            let raw = RawRecord::first(&bytes).unwrap();
            let (_, sample) = old.sample(&raw).unwrap();
            let mut out = vec![1, 2, 3];
            assert!(lost.write(&raw, &sample, &[0x7000, 0x7100], &mut out));
            parts(&new, &out[3..], |sample, parts| {
                assert_eq!((sample.id(), sample.ip(), sample.period()), (Some(77), Some(0x1000), Some(1000)));
                assert_eq!(sample.addr(), data.then_some(0xadd7));
                let chain: Vec<u64> = parts.callchain.unwrap().iter().collect();
                assert_eq!(
                    chain,
                    [context::marker(CpuMode::Kernel), 0x1000, 0x2000, context::USER, 0x7000, 0x7100]
                );
                assert_eq!(parts.raw.map(<[u8]>::len), Some(12));
                assert_eq!(parts.user_regs.map(|r| r.values.len()), registers.then_some(3));
                assert!(parts.user_stack.is_none());
                assert_eq!(parts.weight.map(|w| w.value()), Some(55));
                assert_eq!(parts.data_src, data.then_some(0xd5));
                assert_eq!((parts.transaction, parts.cgroup), (Some(66), Some(88)));
            });
        }
    }

    #[test]
    fn failed_unwinding_keeps_the_sampled_address() {
        let before = attr(ALL);
        let lost = StrippedFields::new(false, false);
        let after = lost.attr(&before).unwrap();
        let old = Layouts::new([(&before, &[77][..])]);
        let new = Layouts::new([(&after, &[77][..])]);
        let bytes = record(2);
        let raw = RawRecord::first(&bytes).unwrap();
        let (_, sample) = old.sample(&raw).unwrap();
        let mut out = Vec::new();
        assert!(lost.write(&raw, &sample, &[], &mut out));
        parts(&new, &out, |_, parts| {
            assert_eq!(parts.callchain.unwrap().iter().last(), Some(0x1000));
        });
    }

    #[test]
    fn fallback_event_differs_only_by_id() {
        let before = attr(ALL);
        let layouts = Layouts::new([(&before, &[fallback_event_id(77)][..])]);
        let bytes = record(2);
        let raw = RawRecord::first(&bytes).unwrap();
        let (_, sample) = layouts.sample(&raw).unwrap();
        let mut out = Vec::new();
        assert!(write_with_fallback_id(&raw, &sample, &mut out));
        parts(&layouts, &out, |sample, parts| {
            assert_eq!(sample.id(), Some(fallback_event_id(77)));
            assert!(parts.user_stack.is_some());
        });
    }

    #[test]
    fn padding_after_a_stack_copy_is_dropped() {
        let before = attr(ALL);
        let layouts = Layouts::new([(&before, &[77][..])]);
        let padded = |valid: u64, words: usize| {
            let stack: Vec<u64> = std::iter::once(words as u64 * 8).chain(0..words as u64).collect();
            record_with(2, &[&stack[..], &[valid]].concat())
        };
        // One word of padding remains, which shows that the copy includes the whole stack.
        for (valid, asked) in [(64, 64), (56, 64), (48, 56), (44, 56), (8, 16), (0, 8)] {
            let (bytes, mut out) = (padded(valid, 8), vec![1, 2, 3]);
            let raw = RawRecord::first(&bytes).unwrap();
            write_without_padding(&raw, &layouts.sample(&raw).unwrap().1, &mut out);
            assert_eq!(out[3..], padded(valid, asked / 8), "{valid}");
        }
        // A sample without a copy, and one with a wrong size.
        for bytes in [record_with(2, &[0]), padded(8, 8)[..100].to_vec()] {
            let mut out = Vec::new();
            let raw = RawRecord { bytes: &bytes, kind: kind::SAMPLE, misc: 2 };
            write_without_padding(&raw, &layouts.sample(&raw).unwrap().1, &mut out);
            assert_eq!(out, bytes);
        }
    }

    #[test]
    fn truncated_samples_are_not_written() {
        let before = attr(ALL);
        let layouts = Layouts::new([(&before, &[77][..])]);
        let whole = record(1);
        for size in (HEADER..whole.len()).step_by(8) {
            let mut bytes = whole[..size].to_vec();
            bytes[6..8].copy_from_slice(&(size as u16).to_ne_bytes());
            let raw = RawRecord::first(&bytes).unwrap();
            let Some((_, sample)) = layouts.sample(&raw) else { continue };
            let mut out = Vec::new();
            let written = StrippedFields::new(false, false).write(&raw, &sample, &[1], &mut out);
            assert_eq!(written, !out.is_empty());
        }
        assert!(StrippedFields::new(false, false).attr(&attr(sample_type::IP)).is_none());
    }
}
