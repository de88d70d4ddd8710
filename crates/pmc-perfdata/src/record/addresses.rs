//! Replaces the addresses in a sample, and overwrites the fields whose contents cannot be replaced.
//!
//! Receives a sample's body and its [`SampleLayout`]; changes the body in place. The size of the record and
//! the attr stay the same, so readers need not know about the change.
//!
//! ```text
//! replaced     ip, addr, call chain, branches
//! overwritten  registers, stack copy, raw data after its 8 common bytes, physical address, AUX data
//! ```

use super::sample_layout::{FRONT, SampleLayout};
use pmc_sys::abi::{branch_sample_type, context, read_format, sample_type};

/// Number of bytes at the start of a tracepoint's raw data that are the same for all tracepoints: its id,
/// flags, and the thread.
const COMMON: usize = 8;

/// Replaces every address in a sample's body by the result of `map`, and overwrites fields that may contain
/// addresses in other forms. Returns `None` if a size in the record reaches past its end; the rest of the
/// body is then overwritten too.
pub fn replace_addresses(
    body: &mut [u8],
    layout: &SampleLayout,
    map: &mut dyn FnMut(u64) -> u64,
) -> Option<()> {
    let mut fields = FieldCursor { left: body };
    let done = replace(&mut fields, layout, map);
    if done.is_none() {
        fields.left.fill(0);
    }
    done
}

fn replace(c: &mut FieldCursor<'_>, layout: &SampleLayout, map: &mut dyn FnMut(u64) -> u64) -> Option<()> {
    let has = |bit: u64| layout.sample_type & bit != 0;
    for bit in FRONT.into_iter().filter(|bit| has(*bit)) {
        match bit {
            sample_type::IP | sample_type::ADDR => c.addresses(1, map)?,
            _ => drop(c.u64()?),
        }
    }
    if has(sample_type::READ) {
        let has = |bit: u64| u64::from(layout.read_format & bit != 0);
        let each = 1 + has(read_format::ID) + has(read_format::LOST);
        let times = has(read_format::TOTAL_TIME_ENABLED) + has(read_format::TOTAL_TIME_RUNNING);
        let members = if has(read_format::GROUP) == 1 { c.u64()? } else { 1 };
        c.words(members.checked_mul(each)?.checked_add(times)?)?;
    }
    if has(sample_type::CALLCHAIN) {
        let count = c.u64()?;
        c.addresses(count, map)?;
    }
    if has(sample_type::RAW) {
        let size = c.u32()?;
        let raw = c.take(usize::try_from(size).ok()?)?;
        raw.get_mut(COMMON..).unwrap_or_default().fill(0);
    }
    if has(sample_type::BRANCH_STACK) {
        let count = c.u64()?;
        if layout.branch_sample_type & branch_sample_type::HW_INDEX != 0 {
            c.u64()?;
        }
        for _ in 0..count {
            c.addresses(2, map)?;
            c.u64()?;
        }
        if layout.branch_sample_type & branch_sample_type::COUNTERS != 0 {
            c.words(count)?;
        }
    }
    if has(sample_type::REGS_USER) && c.u64()? != 0 {
        c.words(layout.user_regs.count_ones().into())?.fill(0);
    }
    if has(sample_type::STACK_USER) {
        let size = c.u64()?;
        if size != 0 {
            c.take(usize::try_from(size).ok()?)?.fill(0);
            // The number of copied bytes.
            c.words(1)?.fill(0);
        }
    }
    let weight = has(sample_type::WEIGHT | sample_type::WEIGHT_STRUCT);
    c.words(
        u64::from(weight) + u64::from(has(sample_type::DATA_SRC)) + u64::from(has(sample_type::TRANSACTION)),
    )?;
    if has(sample_type::REGS_INTR) && c.u64()? != 0 {
        c.words(layout.intr_regs.count_ones().into())?.fill(0);
    }
    if has(sample_type::PHYS_ADDR) {
        c.words(1)?.fill(0);
    }
    let sizes = [sample_type::CGROUP, sample_type::DATA_PAGE_SIZE, sample_type::CODE_PAGE_SIZE];
    c.words(sizes.iter().filter(|bit| has(**bit)).count() as u64)?;
    if has(sample_type::AUX) {
        let size = c.u64()?;
        c.take(usize::try_from(size).ok()?)?.fill(0);
    }
    // Fields that only newer kernels define.
    c.left.fill(0);
    Some(())
}

/// Replaces the addresses in a list of words. Markers of contexts stay the same.
pub fn replace_words(words: &mut [u8], map: &mut dyn FnMut(u64) -> u64) {
    for word in words.as_chunks_mut::<8>().0 {
        let address = u64::from_ne_bytes(*word);
        if address < context::MAX {
            *word = map(address).to_ne_bytes();
        }
    }
}

/// A position in a body.
struct FieldCursor<'a> {
    left: &'a mut [u8],
}

impl<'a> FieldCursor<'a> {
    fn take(&mut self, count: usize) -> Option<&'a mut [u8]> {
        if count > self.left.len() {
            return None;
        }
        let (taken, left) = std::mem::take(&mut self.left).split_at_mut(count);
        self.left = left;
        Some(taken)
    }

    fn words(&mut self, count: u64) -> Option<&'a mut [u8]> {
        self.take(usize::try_from(count).ok()?.checked_mul(8)?)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take(8)?.first_chunk().map(|word| u64::from_ne_bytes(*word))
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4)?.first_chunk().map(|half| u32::from_ne_bytes(*half))
    }

    fn addresses(&mut self, count: u64, map: &mut dyn FnMut(u64) -> u64) -> Option<()> {
        self.words(count).map(|words| replace_words(words, map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmc_sys::abi::Attr;

    #[test]
    fn addresses_are_replaced_and_other_contents_overwritten() {
        let mut attr = Attr::new(1, 0);
        let fields = [
            sample_type::IP,
            sample_type::TID,
            sample_type::ADDR,
            sample_type::READ,
            sample_type::CALLCHAIN,
            sample_type::RAW,
            sample_type::BRANCH_STACK,
            sample_type::REGS_USER,
            sample_type::STACK_USER,
            sample_type::WEIGHT,
            sample_type::PHYS_ADDR,
        ];
        attr.set_sample_type(fields.iter().fold(0, |all, bit| all | bit));
        attr.set_sample_regs_user(0b11);
        let words = |raw: u64, branch: [u64; 2], copied: [u64; 5]| -> Vec<u64> {
            let [register, stack, dynamic, physical, _] = copied;
            let front = [branch[0], 5, branch[1], 42];
            let chain = [3, context::USER, branch[0], branch[1]];
            // 20 bytes: the common ones, and 12 more.
            let raw = [20 | 0x0707_0707 << 32, 0x0808_0808 | raw << 32, raw | raw << 32];
            let rest =
                [1, branch[0], branch[1], 0xf1a6, 2, register, register, 8, stack, dynamic, 9, physical];
            [&front[..], &chain, &raw, &rest].concat()
        };
        let bytes = |words: Vec<u64>| -> Vec<u8> { words.into_iter().flat_map(u64::to_ne_bytes).collect() };
        let mut body = bytes(words(0x5ec, [0x1000, 0x2000], [0xbad, 0xbad, 8, 0xbad, 0]));
        let layout = SampleLayout::new(&attr);
        assert_eq!(replace_addresses(&mut body, &layout, &mut |address| address + 7), Some(()));
        assert_eq!(body, bytes(words(0, [0x1007, 0x2007], [0; 5])));
        // A size beyond the end: nothing that follows remains.
        let mut cut = bytes(words(0x5ec, [0x1000, 0x2000], [0xbad, 0xbad, 8, 0xbad, 0]));
        cut[32..40].copy_from_slice(&u64::MAX.to_ne_bytes());
        assert_eq!(replace_addresses(&mut cut, &layout, &mut |address| address), None);
        assert!(cut[40..].iter().all(|byte| *byte == 0));
    }
}
