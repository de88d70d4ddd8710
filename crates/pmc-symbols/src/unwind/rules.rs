//! Applies framehop's rules for addresses, and lets it cache only those that hold for all stacks.
//!
//! framehop caches simple rules, and computes complex ones anew in each frame. But if a complex rule needs a
//! word beyond the copy, framehop falls back to the frame pointer, and caches this fallback for the address.
//! Later stacks through the same address would then be unwound by frame pointers, too. Therefore the cache is
//! only used for addresses whose rule is known to be simple.

use framehop::aarch64::CacheAarch64;
use framehop::x86_64::CacheX86_64;
use framehop::{FrameAddress, Unwinder};
use rustc_hash::FxHashMap;

/// Maximum number of addresses about which a walker remembers one kind of fact.
pub(super) const MOST_REMEMBERED: usize = 1 << 16;

/// One worker's cache of rules.
#[derive(Default)]
pub(super) struct Rules<C> {
    cache: C,
    /// Whether the rule is simple, by space and address.
    is_simple: FxHashMap<(u64, u64), bool>,
}

/// A cache of framehop that counts how often it was used.
pub(super) trait CountingCache: Default {
    fn hits(&self) -> u64;
}

impl CountingCache for CacheX86_64 {
    fn hits(&self) -> u64 {
        self.stats().hits()
    }
}

impl CountingCache for CacheAarch64 {
    fn hits(&self) -> u64 {
        self.stats().hits()
    }
}

impl<C: CountingCache> Rules<C> {
    /// Finds a frame's caller, and changes the registers to the caller's. `generation` identifies the space.
    pub(super) fn unwind_frame<U: Unwinder<Cache = C, UnwindRegs: Copy>>(
        &mut self,
        unwinder: &U,
        generation: u64,
        frame: FrameAddress,
        regs: &mut U::UnwindRegs,
        read: &mut impl FnMut(u64) -> Result<u64, ()>,
    ) -> Result<Option<u64>, framehop::Error> {
        let key = (generation, frame.address_for_lookup());
        let is_simple = self.is_simple.get(&key).copied();
        if is_simple == Some(true) {
            return unwinder.unwind_frame(frame, regs, &mut self.cache, read);
        }
        let (mut cache, mut again, mut has_failed) = (C::default(), *regs, false);
        let mut noting = |address| read(address).inspect_err(|()| has_failed = true);
        let caller = unwinder.unwind_frame(frame, regs, &mut cache, &mut noting);
        if is_simple.is_none() && !has_failed {
            let _same_caller = unwinder.unwind_frame(frame, &mut again, &mut cache, read);
            if self.is_simple.len() > MOST_REMEMBERED {
                self.is_simple.clear();
            }
            self.is_simple.insert(key, cache.hits() > 0);
        }
        caller
    }
}

#[cfg(test)]
mod tests {
    use framehop::x86_64::UnwindRegsX86_64;

    use super::*;

    #[test]
    fn rule_that_needed_a_word_beyond_a_copy_is_used_for_the_next_stack() {
        let entry = |head: &[u8], rest: &[u8]| {
            let mut body = [head, rest].concat();
            body.resize(body.len().next_multiple_of(8) + 4, 0);
            [&(body.len() as u32).to_le_bytes()[..], &body].concat()
        };
        // Version 1, no augmentation, factors 1 and -8, return address 16. The caller's frame is at rsp+16,
        // its return address below it, and its frame pointer where rbp points.
        let common = entry(&u32::MAX.to_le_bytes(), &[1, 0, 1, 0x78, 16]);
        let rules = [0x0c, 7, 16, 0x90, 1, 0x10, 6, 2, 0x76, 0];
        let place = [0x1000u64, 0x100].map(u64::to_le_bytes).concat();
        let function = entry(&[&0u32.to_le_bytes()[..], &place].concat(), &rules);
        let sections = framehop::ExplicitModuleSectionInfo {
            text_svma: Some(0x1000..0x1100),
            debug_frame: Some([common, function].concat()),
            ..Default::default()
        };
        let mut unwinder = framehop::x86_64::UnwinderX86_64::<Vec<u8>>::new();
        unwinder.add_module(framehop::Module::new(String::new(), 0..0x2000, 0, sections));
        let mut rules = Rules::<CacheX86_64>::default();
        let caller = |rules: &mut Rules<_>, ip: u64, stack: &[u64]| {
            let mut regs = UnwindRegsX86_64::new(ip, 0x7000, 0x7010);
            let mut read = |address: u64| stack.get((address as usize - 0x7000) / 8).copied().ok_or(());
            let frame = FrameAddress::from_instruction_pointer(ip);
            let caller = rules.unwind_frame(&unwinder, 1, frame, &mut regs, &mut read);
            (caller.ok().flatten(), regs.sp())
        };
        let stack = [0x7020, 0x1234, 0x7040, 0x2345];
        for _ in 0..3 {
            assert_eq!(caller(&mut rules, 0x1010, &stack[..1]).0, None);
            assert_eq!(caller(&mut rules, 0x1010, &stack), (Some(0x1234), 0x7010));
        }
        assert_eq!(rules.is_simple, FxHashMap::from_iter([((1, 0x1010), false)]));
        // Without an entry, framehop assumes that the function has just been entered.
        assert_eq!(caller(&mut rules, 0x1810, &stack).0, Some(stack[0]));
        assert_eq!(rules.is_simple.get(&(1, 0x1810)), Some(&true));
    }
}
