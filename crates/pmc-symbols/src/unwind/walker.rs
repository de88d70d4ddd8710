//! Walks a stack copy, using the tables of its process.
//!
//! ```text
//!   sp ->  +-------+ low           the copy: the bytes from sp upwards, at most the dump size
//!          | stack |
//!          +-------+ sp + copied   a read beyond it ends the chain, which is then cut
//! ```

use std::fmt;

use framehop::aarch64::{CacheAarch64, PtrAuthMask, UnwindRegsAarch64};
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64};
use framehop::{FrameAddress, Unwinder};
use gimli::UnwindContext;
use rustc_hash::FxHashMap;

use super::callers::{Caller, InnerFrames};
use super::entries::FramePointer;
use super::frame::{AddressKind, ChainEnd, StackFrame};
use super::registers::UnwindRegisters;
use super::signal_frame::SignalFrame;
use super::space::{ArchUnwinder, Coverage, Space};
use super::tracked::{FrameRegisters, TrackedRegisters};
use super::x86;
use crate::address::Avma;

/// The unwinder of one worker thread. Caches the rules for addresses, in all spaces.
#[derive(Default)]
pub struct Walker {
    /// framehop's caches of rules.
    x86_64: CacheX86_64,
    aarch64: CacheAarch64,
    /// Storage for an unwind row.
    context: UnwindContext<usize>,
    /// For each of framehop's 16-bit numbers whose rules may be cached: the full value of pmc's counter.
    seen: FxHashMap<u16, u64>,
    /// What is known about addresses, by space and address.
    facts: FxHashMap<(u64, u64), AddressFacts>,
    /// Cached results of [`Space::frame_pointer`], by space and address.
    frame_pointers: FxHashMap<(u64, u64), Option<FramePointer>>,
    /// Return addresses in the chain of frame records, from the sampled frame pointer to where the last walk
    /// ended.
    records: Vec<u64>,
    /// Whether `records` lead beyond the copy, to a record of the walk's outermost frame or one of its
    /// callers.
    leads_on: bool,
}

impl fmt::Debug for Walker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Walker")
    }
}

impl Walker {
    /// Extends the last walk beyond the end of the copy with `recorded`, the user part of the kernel's
    /// frame-pointer chain. Returns whether it added frames. Never shortens or changes a walk.
    ///
    /// ```text
    ///   frame   what the kernel found   record
    ///   hash    hash, sampled           -                   it has no record: the register is its caller's
    ///   sort    sort                    sort's, in the copy the same caller at the same place as the walk's
    ///   run     run                     run's, beyond it    from here on only the kernel's chain
    ///   -       main                    main's
    ///   -       0x1234                                      not code: the rest is rejected
    /// ```
    ///
    /// The frame-pointer register may contain any value, and the kernel may have followed it to words that
    /// look like code addresses. A caller is therefore accepted only if:
    ///
    /// * Each record in the copy returns to a frame of the walk at the same stack pointer, and leads further
    ///   out, until one is outside the copy (or on another stack, if the stack was switched).
    /// * The tables agree: either the record's function keeps a frame pointer, or it leaves the register to a
    ///   caller that does, in which case the chain lacks that caller. Without tables, the kernel is trusted.
    /// * The caller is code that follows a call.
    pub(crate) fn complete(
        &mut self,
        space: &Space,
        recorded: impl Iterator<Item = u64>,
        most: usize,
        chain: &mut Vec<StackFrame>,
    ) -> bool {
        let (Some(outermost), true) = (chain.last(), self.leads_on) else { return false };
        let (walked, mut innermost) = (chain.len(), outermost.lookup());
        let mut recorded = recorded.skip(1);
        let agrees = |record: &u64| recorded.next().is_some_and(|caller| is_same(caller, *record));
        if !self.records.iter().all(agrees) {
            return false;
        }
        for caller in recorded.take(most.saturating_sub(walked)) {
            let lookup = caller.wrapping_sub(1);
            let is_vouched_for = match self.frame_pointer(space, innermost) {
                Some(FramePointer::Own) | None => true,
                Some(FramePointer::Callers) => {
                    matches!(self.frame_pointer(space, lookup), Some(FramePointer::Own) | None)
                }
                Some(FramePointer::Other) => false,
            };
            if !is_vouched_for || !space.is_caller(caller) {
                break;
            }
            chain.push(StackFrame::returned_to(Avma(caller), 0));
            innermost = lookup;
        }
        chain.len() > walked
    }

    fn frame_pointer(&mut self, space: &Space, address: u64) -> Option<FramePointer> {
        if self.frame_pointers.len() > MOST_REMEMBERED {
            self.frame_pointers.clear();
        }
        let key = (space.generation, address);
        *self.frame_pointers.entry(key).or_insert_with(|| space.frame_pointer(address))
    }

    /// Collects in `records` the frame records inside the copy. Returns whether they agree with the walk and
    /// lead beyond the copy. `end` is the frame pointer in the outermost frame.
    fn follow_records(
        &mut self,
        space: &Space,
        from: u64,
        end: u64,
        chain: &[StackFrame],
        copied: impl Fn(u64) -> Option<u64>,
    ) -> bool {
        self.records.clear();
        let Some(outermost) = chain.last() else { return false };
        let width = space.word();
        let has_record_at_end = !matches!(space.unwinder, ArchUnwinder::Aarch64(_));
        let mut walked = chain[1..].iter();
        let mut at = from;
        let record = |at: u64| copied(at).zip(copied(at.wrapping_add(width)));
        while let Some((next, caller)) = record(at) {
            let mut is_walked = |frame: &StackFrame| {
                let is_place = !has_record_at_end || frame.sp == at.wrapping_add(2 * width);
                is_place && is_same(frame.address.0, caller)
            };
            // The walk has already rejected any record further out than its outermost frame.
            let goes_out = next > at || record(next).is_none();
            if at >= outermost.sp || !goes_out || !walked.any(&mut is_walked) {
                return false;
            }
            self.records.push(caller);
            at = next;
        }
        // If the tables have a rule for the frame pointer, the unwinder has already applied it.
        let is_known = self.frame_pointer(space, outermost.lookup()).is_some();
        !is_known || at == end
    }

    /// Unwinds one sample: the instruction pointer, then return addresses from the inside out. `stack`
    /// contains the bytes from `registers.sp` upwards, without padding. Stores at most `most` frames in
    /// `chain`.
    pub fn walk(
        &mut self,
        space: &Space,
        registers: &UnwindRegisters,
        stack: &[u8],
        most: usize,
        chain: &mut Vec<StackFrame>,
    ) -> ChainEnd {
        chain.clear();
        let known = *self.seen.entry(space.generation as u16).or_insert(space.generation);
        if known != space.generation {
            *self = Self::default();
            self.seen.insert(space.generation as u16, space.generation);
        }
        if self.facts.len() > MOST_REMEMBERED {
            self.facts.clear();
        }
        let mut code = KnownCode { space, facts: &mut self.facts, context: &mut self.context };
        let mut cut = false;
        let offset = |address: u64| address.checked_sub(registers.sp).and_then(|at| usize::try_from(at).ok());
        let width = space.word() as usize;
        let copied = |address: u64| {
            let at = offset(address)?;
            let mut word = [0; 8];
            word[..width].copy_from_slice(stack.get(at..at.checked_add(width)?)?);
            Some(u64::from_le_bytes(word))
        };
        let mut read = |address: u64| {
            let word = copied(address);
            // An address slightly above the copy is on the stack too; other addresses are invalid.
            let is_near = || offset(address).is_some_and(|at| at < stack.len().saturating_add(FAR));
            cut |= word.is_none() && is_near();
            word.ok_or(())
        };
        let (failed, fp) = match &space.unwinder {
            ArchUnwinder::X86_64(unwinder) => {
                let mut regs = UnwindRegsX86_64::new(registers.ip, registers.sp, registers.fp);
                let caller = caller_of(unwinder, &mut self.x86_64, space, registers, &mut read);
                let end = follow(registers.ip, &mut regs, caller, &copied, &mut code, most, chain);
                (end, regs.bp())
            }
            ArchUnwinder::X86 => {
                let mut regs =
                    x86::DwarfRegisters::new(registers.ip, registers.sp, registers.fp, &registers.others);
                let caller = |frame: Frame<'_>, regs: &mut _, context: &mut _| {
                    let entries = space.entries(frame.address.address_for_lookup());
                    Ok(x86::unwind_frame(entries, frame.address, regs, context, &mut read)?)
                };
                let end = follow(registers.ip, &mut regs, caller, &copied, &mut code, most, chain);
                (end, regs.fp().into())
            }
            ArchUnwinder::Aarch64(unwinder) => {
                let mask =
                    PtrAuthMask::from_max_known_address(unwinder.max_known_code_address().max(1 << 47));
                let mut regs =
                    UnwindRegsAarch64::new_with_ptr_auth_mask(mask, registers.lr, registers.sp, registers.fp);
                let caller = caller_of(unwinder, &mut self.aarch64, space, registers, &mut read);
                let end = follow(registers.ip, &mut regs, caller, &copied, &mut code, most, chain);
                (end, regs.fp())
            }
        };
        // A root that the tables mark may only be the end of a stack to which the program has switched. If
        // the tables do not mention the frame pointer, it may lead to more callers.
        let may_lead_on = match failed {
            WalkOutcome::Failed => true,
            WalkOutcome::Root => {
                chain.last().is_some_and(|last| self.frame_pointer(space, last.lookup()).is_none())
            }
            WalkOutcome::Long => false,
        };
        self.leads_on = may_lead_on && self.follow_records(space, registers.fp, fp, chain, copied);
        let last = chain.last().copied().unwrap_or_default();
        let looked_up = last.lookup();
        let last = last.address;
        match failed {
            WalkOutcome::Root => ChainEnd::Root,
            WalkOutcome::Long => ChainEnd::Long,
            WalkOutcome::Failed if space.coverage(looked_up) != Coverage::Entry => ChainEnd::NoTables(last),
            WalkOutcome::Failed if cut => ChainEnd::Cut,
            WalkOutcome::Failed => ChainEnd::Lost,
        }
    }
}

/// Maximum distance of a frame above the copy. Stacks are usually limited to 8 MiB.
const FAR: usize = 8 << 20;

enum WalkOutcome {
    Root,
    Failed,
    Long,
}

/// Maximum number of addresses about which a walker remembers one kind of fact.
const MOST_REMEMBERED: usize = 1 << 16;

/// What the tables say about an address.
#[derive(Clone, Copy)]
struct AddressFacts {
    coverage: Coverage,
    /// Whether framehop applies the rule, which is faster than pmc, because it caches the rule of each
    /// address. But it knows only three registers, reads no memory in expressions, and if it fails, it
    /// follows the frame pointer, and caches this rule for the address. So it applies only rows that always
    /// succeed ([`Row::is_simple`](super::row::Row::is_simple)), and decides what to do where no table has a
    /// row.
    is_simple: bool,
}

/// The code of a process, with cached lookups.
struct KnownCode<'a> {
    space: &'a Space,
    /// The walker's cache.
    facts: &'a mut FxHashMap<(u64, u64), AddressFacts>,
    /// The walker's storage for an unwind row.
    context: &'a mut UnwindContext<usize>,
}

impl KnownCode<'_> {
    fn facts(&mut self, address: u64) -> AddressFacts {
        let key = (self.space.generation, address);
        if let Some(known) = self.facts.get(&key) {
            return *known;
        }
        let is_simple = self.space.entries(address).is_none_or(|(entries, slide)| {
            let row = entries.row(address.wrapping_sub(slide), self.context);
            row.is_none_or(|row| row.is_simple())
        });
        let found = AddressFacts { coverage: self.space.coverage(address), is_simple };
        // Unmapped addresses are not cached, because code may be generated there later.
        if found.coverage != Coverage::Nowhere {
            self.facts.insert(key, found);
        }
        found
    }
}

/// A frame whose caller is looked for.
struct Frame<'a> {
    address: FrameAddress,
    /// Whether framehop applies the rule of the address.
    is_simple: bool,
    /// The walk up to the frame.
    chain: &'a [StackFrame],
}

/// Returns a function that finds the caller of a frame, by framehop's or by pmc's rules, and changes the
/// registers to the caller's.
fn caller_of<U: Unwinder<UnwindRegs: TrackedRegisters>>(
    unwinder: &U,
    cache: &mut U::Cache,
    space: &Space,
    sampled: &UnwindRegisters,
    mut read: impl FnMut(u64) -> Result<u64, ()>,
) -> impl FnMut(Frame<'_>, &mut U::UnwindRegs, &mut UnwindContext<usize>) -> Result<Option<Caller>, NoCaller>
{
    move |frame, regs, context| {
        if frame.is_simple {
            let caller = unwinder.unwind_frame(frame.address, regs, cache, &mut read)?;
            return Ok(caller.map(Caller::returned_to));
        }
        let mut inner = InnerFrames::new(space, frame.chain, sampled, regs.fp(), &mut read);
        let Some(found) = inner.caller(context)? else { return Ok(None) };
        let address = regs.go_to(&found);
        Ok(Some(Caller { address, ..found.caller }))
    }
}

/// Continues the walk until a frame is rejected.
///
/// If the tables have no entry, the unwinder (`caller`) follows the frame pointer, which may contain any
/// value; see [`Space::is_caller`]. If this fails, the function may have a small frame and no frame pointer;
/// in that case, only an address that is known to follow a call is accepted.
fn follow<R: FrameRegisters>(
    ip: u64,
    regs: &mut R,
    mut caller: impl FnMut(Frame<'_>, &mut R, &mut UnwindContext<usize>) -> Result<Option<Caller>, NoCaller>,
    copied: &impl Fn(u64) -> Option<u64>,
    code: &mut KnownCode<'_>,
    most: usize,
    chain: &mut Vec<StackFrame>,
) -> WalkOutcome {
    let (mut frame, mut kind) = (FrameAddress::InstructionPointer(ip), AddressKind::Sampled);
    loop {
        if chain.len() >= most {
            return WalkOutcome::Long;
        }
        // A caller's address is the one after its call.
        let (address, facts) = (frame.address(), code.facts(frame.address_for_lookup()));
        let here = facts.coverage;
        let is_address = here != Coverage::Nowhere || (FIRST_PAGES..USER_END).contains(&address);
        // Functions that switch stacks, such as Go's, have tables that lead to words which are no addresses.
        let is_on_stack = here == Coverage::Nowhere && copied(address & !(code.space.word() - 1)).is_some();
        if !chain.is_empty() && (!is_address || is_on_stack) {
            return WalkOutcome::Failed;
        }
        chain.push(StackFrame { address: Avma(address), sp: regs.sp(), kind });
        let before = *regs;
        let signal_frame = match here {
            Coverage::Entry => None,
            _ => SignalFrame::find(code.space, address, regs.sp(), &mut |address| copied(address)),
        };
        let mut next = match signal_frame {
            Some(signal_frame) => {
                regs.interrupt(&signal_frame, copied);
                Ok(Some(Caller { address: signal_frame.ip, is_interrupted: true }))
            }
            None => caller(Frame { address: frame, is_simple: facts.is_simple, chain }, regs, code.context),
        };
        let is_good = |next: &Result<Option<Caller>, _>| {
            let Ok(Some(caller)) = next else { return false };
            caller.is_interrupted || code.space.is_caller(caller.address)
        };
        if here == Coverage::Gap && kind != AddressKind::Returned && !is_good(&next) {
            // The function has not just been entered, so it may have set up its frame pointer.
            *regs = before;
            if let Some(address) = FrameAddress::from_return_address(address.saturating_add(1)) {
                next = caller(Frame { address, is_simple: facts.is_simple, chain }, regs, code.context);
            }
        }
        if here != Coverage::Entry && !is_good(&next) {
            let other = before.behind_small_frame(copied);
            match other.filter(|(address, _)| code.space.is_behind_call(*address) == Some(true)) {
                Some((address, registers)) => {
                    *regs = registers;
                    next = Ok(Some(Caller::returned_to(address)));
                }
                None if matches!(next, Ok(Some(_))) => {
                    *regs = before;
                    return WalkOutcome::Failed;
                }
                None => {}
            }
        }
        (frame, kind) = match next {
            Ok(Some(Caller { address, is_interrupted: true })) => {
                // The kernel has called the code that returns from the signal: there is no call before it.
                if let Some(handlers_caller) = chain.last_mut() {
                    handlers_caller.kind = AddressKind::Interrupted;
                }
                (FrameAddress::InstructionPointer(address), AddressKind::Interrupted)
            }
            Ok(Some(Caller { address, .. })) => match FrameAddress::from_return_address(address) {
                Some(caller) => (caller, AddressKind::Returned),
                None => return WalkOutcome::Root,
            },
            // Some start-up code ends the stack with a null return address.
            Ok(None) | Err(NoCaller::NullAddress) => return WalkOutcome::Root,
            Err(NoCaller::Failed) => return WalkOutcome::Failed,
        };
    }
}

/// Why a frame has no caller, although it is not the root.
enum NoCaller {
    /// The return address is null.
    NullAddress,
    /// The rules did not lead to a caller.
    Failed,
}

impl From<framehop::Error> for NoCaller {
    fn from(error: framehop::Error) -> Self {
        match error {
            framehop::Error::ReturnAddressIsNull => Self::NullAddress,
            _ => Self::Failed,
        }
    }
}

impl From<()> for NoCaller {
    fn from((): ()) -> Self {
        Self::Failed
    }
}

/// Whether two addresses refer to the same code. arm64 signs return addresses in unused address bits, but the
/// kernel's chain contains them without the signature.
fn is_same(one: u64, other: u64) -> bool {
    (one ^ other) & ADDRESS_BITS == 0
}

/// The address bits of an arm64 process that are never signed.
const ADDRESS_BITS: u64 = (1 << 48) - 1;

/// Lowest address that can be mapped. User addresses are below [`USER_END`] with any page table layout.
const FIRST_PAGES: u64 = 1 << 16;
const USER_END: u64 = 1 << 56;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{FileOffset, Mapping};
    use crate::unwind::{Arch, UnwindTables};

    fn addresses(chain: &[StackFrame]) -> Vec<u64> {
        chain.iter().map(|frame| frame.address.0).collect()
    }

    #[test]
    fn frame_pointers_are_used_without_tables() {
        for (arch, width) in [(Arch::X86_64, 8), (Arch::X86, 4), (Arch::Aarch64, 8)] {
            let sp = 0x7ffe_0000u64;
            let at = |word: usize| sp + (word * width) as u64;
            // Two frames, each with a saved frame pointer and a return address, then zeros.
            let words: [u64; 8] = [0, 0, at(4), 0x40_1234, at(6), 0x40_2345, 0, 0];
            let stack: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()[..width].to_vec()).collect();
            let registers =
                UnwindRegisters { ip: 0x40_0010, sp, fp: at(2), lr: 0x40_1234, ..UnwindRegisters::default() };
            let mut space = Space::new(arch);
            space.add(&Mapping { start: Avma(0x40_0000), len: 0x1_0000, offset: FileOffset(0) }, None);
            let mut chain = Vec::new();
            let end = Walker::default().walk(&space, &registers, &stack, 100, &mut chain);
            let callers = [0x40_1234, 0x40_2345].map(|want| addresses(&chain).contains(&want));
            assert_eq!(callers, [true; 2], "{arch:?} {chain:x?} {end:?}");
            // The stack pointer at the return address identifies a frame.
            assert_eq!(chain.last().map(|frame| frame.sp), Some(at(6)), "{arch:?} {chain:x?}");
            let end = Walker::default().walk(&space, &registers, &stack, 2, &mut chain);
            assert_eq!((chain.len(), end), (2, ChainEnd::Long));
            let end = Walker::default().walk(&space, &registers, &[], 100, &mut chain);
            assert_eq!(chain[0], StackFrame::sampled(Avma(0x40_0010), sp));
            assert!(matches!(end, ChainEnd::NoTables(_)), "{end:?}");
        }
    }

    #[test]
    fn walk_continues_after_frame_pointers() {
        let sp = 0x7ffe_0000u64;
        // One frame record; the next one is beyond the copy.
        let words: [u64; 4] = [0, 0, sp + 8000, 0x40_1234];
        let stack: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let registers = UnwindRegisters { ip: 0x40_0010, sp, fp: sp + 16, ..UnwindRegisters::default() };
        let mut space = Space::new(Arch::X86_64);
        space.add(&Mapping { start: Avma(0x40_0000), len: 0x1_0000, offset: FileOffset(0) }, None);
        let (mut walker, mut chain) = (Walker::default(), Vec::new());
        let recorded = [0x40_0010, 0x40_1234, 0x40_2345, 0x40_3456, 0x99, 0x40_4567];
        let mut whole = |most: usize, fp: u64| {
            walker.walk(&space, &UnwindRegisters { fp, ..registers }, &stack, most, &mut chain);
            let goes_on = walker.complete(&space, recorded.into_iter(), most, &mut chain);
            (goes_on, addresses(&chain))
        };
        // The chain ends before the first address that is not code.
        assert_eq!(whole(9, registers.fp), (true, recorded[..4].to_vec()));
        assert_eq!(whole(3, registers.fp), (true, recorded[..3].to_vec()));
        assert_eq!(whole(2, registers.fp), (false, recorded[..2].to_vec()));
        // The walk found no frames, so the whole chain comes from the kernel.
        assert_eq!(whole(9, sp + 8000), (true, recorded[..4].to_vec()));
    }

    #[test]
    fn frame_pointer_return_address_must_be_in_code() {
        let program = std::fs::read("/proc/self/exe").unwrap();
        let tables = UnwindTables::read(&program, None).unwrap();
        let (bare, covered) = (0x40_0000u64, 0x7f00_0000_0000u64);
        let mut space = Space::new(Arch::X86_64);
        space.add(&Mapping { start: Avma(bare), len: 0x1_0000, offset: FileOffset(0) }, None);
        let mapping = Mapping { start: Avma(covered), len: program.len() as u64, offset: FileOffset(0) };
        space.add(&mapping, Some(&tables));
        let entry = tables.covered()[0].start + tables.slide(&mapping) + 1;
        let sp = 0x7ffe_0000u64;
        // The sampled code, which has no tables, was called by other code without tables, which was called
        // from `address`. Frame pointers lead through both.
        let callers = |address: u64| {
            let words: [u64; 6] = [0, 0, sp + 32, bare + 0x1234, 0, address];
            let stack: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let registers = UnwindRegisters { ip: bare, sp, fp: sp + 16, ..UnwindRegisters::default() };
            let mut chain = Vec::new();
            let end = Walker::default().walk(&space, &registers, &stack, 100, &mut chain);
            assert_eq!(addresses(&chain[..2]), [bare, bare + 0x1234]);
            (chain.get(2).map(|caller| caller.address.0), end)
        };
        assert_eq!(callers(bare + 0x2345).0, Some(bare + 0x2345));
        assert_eq!(callers(entry).0, Some(entry));
        // Addresses that are unmapped, non-canonical, on the stack, or in a file but outside all functions.
        // The tables lead to an address on the stack.
        let row = UnwindRegisters { ip: entry - 1, sp, fp: 0, ..UnwindRegisters::default() };
        let mut chain = Vec::new();
        let words: Vec<u8> = (0..64).flat_map(|_| (sp + 16).to_le_bytes()).collect();
        Walker::default().walk(&space, &row, &words, 100, &mut chain);
        assert_eq!(addresses(&chain), [entry - 1]);
        for address in [8, 0x50_0000, 1 << 63 | 5, 0x1234_5678_9abc_def0, sp + 8, covered + 8] {
            assert_eq!(callers(address), (None, ChainEnd::NoTables(Avma(bare + 0x1234))), "{address:x}");
        }
    }

    #[test]
    fn frame_pointer_return_address_must_follow_a_call() {
        let program = std::fs::read("/proc/self/exe").unwrap();
        let tables =
            UnwindTables::read(&program, None).unwrap().with_program(std::sync::Arc::new(program.clone()));
        let (bare, covered) = (0x40_0000u64, 0x7f00_0000_0000u64);
        let mut space = Space::new(Arch::X86_64);
        space.add(&Mapping { start: Avma(bare), len: 0x1_0000, offset: FileOffset(0) }, None);
        let mapping = Mapping { start: Avma(covered), len: program.len() as u64, offset: FileOffset(0) };
        space.add(&mapping, Some(&tables));
        let code = tables.covered().iter().map(|range| range.end - range.start).max().unwrap();
        let code = tables.covered().iter().find(|range| range.end - range.start == code).unwrap().clone();
        let slide = tables.slide(&mapping);
        let find = |is_call| {
            let mut addresses = (code.start + 16..code.end).map(|address| address + slide);
            addresses.find(|address| space.is_behind_call(*address) == Some(is_call)).unwrap()
        };
        let (call, other) = (find(true), find(false));
        let sp = 0x7ffe_0000u64;
        // Returns the caller found with this frame pointer and these words on the stack.
        let callers = |fp: u64, words: [u64; 5]| {
            let stack: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let registers = UnwindRegisters { ip: bare, sp, fp, ..UnwindRegisters::default() };
            let mut chain = Vec::new();
            Walker::default().walk(&space, &registers, &stack, 2, &mut chain);
            chain.get(1).map(|caller| (caller.address.0, caller.sp - sp))
        };
        let fp = sp + 16;
        assert_eq!(callers(fp, [0, 0, 0, call, 0]), Some((call, 32)));
        assert_eq!(callers(fp, [0, 0, 0, other, 0]), None);
        // A frame of one word, then the return address. The frame pointer is 0 or invalid.
        for fp in [0, 0x5500_0000, fp] {
            assert_eq!(callers(fp, [0, call, 0, other, 0]), Some((call, 16)), "{fp:x}");
            assert_eq!(callers(fp, [call, other, call, other, 0]), None, "{fp:x}");
        }
    }

    #[test]
    fn kernel_chain_is_used_only_if_it_agrees_with_the_walk() {
        let sp = 0x7ffe_0000u64;
        let mut space = Space::new(Arch::X86_64);
        space.add(&Mapping { start: Avma(0x40_0000), len: 0x1_0000, offset: FileOffset(0) }, None);
        let (ip, first, second) = (0x40_0010, 0x40_1234, 0x40_2345);
        // Two frame records; the second leads beyond the copy.
        let words: [u64; 6] = [0, 0, sp + 32, first, sp + 8000, second];
        let stack: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let registers = UnwindRegisters { ip, sp, fp: sp + 16, ..UnwindRegisters::default() };
        let (mut walker, mut chain) = (Walker::default(), Vec::new());
        let mut after = |recorded: &[u64]| {
            walker.walk(&space, &registers, &stack, 99, &mut chain);
            assert_eq!(addresses(&chain), [ip, first, second]);
            walker.complete(&space, recorded.iter().copied(), 99, &mut chain);
            addresses(&chain)[3..].to_vec()
        };
        assert_eq!(after(&[ip, first, second, 0x40_3456, 0x40_4567]), [0x40_3456, 0x40_4567]);
        // Rejected chains: one from a different time, one with an extra address (from a kernel that also
        // reads the word on the stack), and one that is too short.
        assert!(after(&[ip, first, 0x40_9999, 0x40_3456]).is_empty());
        assert!(after(&[ip, 0x40_0100, first, second, 0x40_3456]).is_empty());
        assert!(after(&[ip, first]).is_empty());
    }

    proptest::proptest! {
        /// For any contents of stack, registers and kernel chain, existing frames stay unchanged, and every
        /// added frame is a code address.
        #[test]
        fn kernel_chain_never_shortens_or_changes_a_walk(
            words in proptest::collection::vec((0usize..6, 0u64..0x40), 0..64),
            recorded in proptest::collection::vec((0usize..6, 0u64..0x40), 0..64),
            (fp, ip) in ((0usize..6, 0u64..0x40), (0usize..6, 0u64..0x40)),
            most in 1usize..40,
        ) {
            static TABLES: std::sync::OnceLock<(u64, UnwindTables)> = std::sync::OnceLock::new();
            let (len, tables) = TABLES.get_or_init(|| {
                let program = std::fs::read("/proc/self/exe").unwrap();
                (program.len() as u64, UnwindTables::read(&program, None).unwrap())
            });
            let (bare, covered, sp) = (0x40_0000u64, 0x7f00_0000_0000u64, 0x7ffe_0000u64);
            let mut space = Space::new(Arch::X86_64);
            space.add(&Mapping { start: Avma(bare), len: 0x1_0000, offset: FileOffset(0) }, None);
            let mapping = Mapping { start: Avma(covered), len: *len, offset: FileOffset(0) };
            space.add(&mapping, Some(tables));
            let entry = tables.covered()[0].start + tables.slide(&mapping);
            // Values of each kind: code with and without tables, the stack, unmapped memory, small numbers.
            let value = |(kind, at): (usize, u64)| {
                [entry + at, bare + at * 16, sp + at * 8, sp + at * 4096, covered + at, at][kind]
            };
            let stack: Vec<u8> = words.iter().flat_map(|word| value(*word).to_le_bytes()).collect();
            let recorded: Vec<u64> = recorded.into_iter().map(value).collect();
            let registers = UnwindRegisters { ip: value(ip), sp, fp: value(fp), ..UnwindRegisters::default() };
            let (mut walker, mut chain) = (Walker::default(), Vec::new());
            walker.walk(&space, &registers, &stack, most, &mut chain);
            let walked = chain.clone();
            let is_longer = walker.complete(&space, recorded.into_iter(), most, &mut chain);
            proptest::prop_assert!(chain.starts_with(&walked) && chain.len() <= most);
            proptest::prop_assert_eq!(is_longer, chain.len() > walked.len());
            let added = &chain[walked.len()..];
            proptest::prop_assert!(added.iter().all(|frame| space.is_caller(frame.address.0)));
        }
    }

    #[test]
    fn cached_rules_are_dropped_if_the_short_id_is_reused() {
        let space = Space::new(Arch::X86_64);
        let mut other = space.clone();
        other.generation += 1 << 16;
        let mut walker = Walker::default();
        let registers = UnwindRegisters::default();
        walker.walk(&space, &registers, &[], 10, &mut Vec::new());
        walker.walk(&other, &registers, &[], 10, &mut Vec::new());
        assert_eq!(walker.seen.get(&(space.generation as u16)), Some(&other.generation));
    }
}
