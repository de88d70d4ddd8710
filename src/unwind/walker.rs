//! Walking one copied stack with the tables of its process.
//!
//! ```text
//!   sp ->  +-------+ low           the copy: what was at sp and above it, as much as the dump size allows
//!          | stack |
//!          +-------+ sp + copied   a read beyond it ends the chain: cut by the dump size
//! ```

use std::fmt;
use std::sync::{Mutex, PoisonError};

use framehop::aarch64::{CacheAarch64, PtrAuthMask, UnwindRegsAarch64, UnwinderAarch64};
use framehop::x86_64::{CacheX86_64, Reg, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{FrameAddress, Module, Unwinder};

use rustc_hash::FxHashMap;

use super::tables::{Arch, Bytes, Tables};
use crate::address::{Avma, IntervalMap, Mapping};

/// The registers of a sample that unwinding needs. perf's numbers of them (`perf_regs.h`): x86-64 bp 6, sp 7,
/// ip 8; aarch64 x29 29, lr 30, sp 31, pc 32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Registers {
    /// Instruction pointer.
    pub ip: u64,
    /// Stack pointer.
    pub sp: u64,
    /// Frame pointer.
    pub fp: u64,
    /// Link register (aarch64); nothing on x86-64.
    pub lr: u64,
    /// x86-64: the other registers by their DWARF number (0 rax, 1 rdx, 2 rcx, 3 rbx, 4 rsi, 5 rdi, 8 to 15).
    /// A few hand-written functions say by them where their frame is.
    pub others: [u64; 16],
}

impl Registers {
    /// From a sample's user registers, given the mask that was asked for and the values in its order.
    ///
    /// `None` when the mask lacks one that is needed, or fewer values came than it has bits.
    pub fn from_sample(arch: Arch, mask: u64, values: &[u64]) -> Option<Self> {
        let get = |register: u32| {
            let bit = 1u64 << register;
            (mask & bit != 0).then(|| values.get((mask & (bit - 1)).count_ones() as usize).copied()).flatten()
        };
        match arch {
            Arch::X86_64 => {
                // perf's order: ax bx cx dx si di bp sp ip flags cs ss ds es fs gs r8 … r15 at 16 to 23.
                let mut others = [0; 16];
                for (dwarf, perf) in [(0, 0), (1, 3), (2, 2), (3, 1), (4, 4), (5, 5)] {
                    others[dwarf] = get(perf).unwrap_or(0);
                }
                for (number, other) in others.iter_mut().enumerate().skip(8) {
                    *other = get(number as u32 + 8).unwrap_or(0);
                }
                Some(Self { ip: get(8)?, sp: get(7)?, fp: get(6)?, lr: 0, others })
            }
            Arch::Aarch64 => {
                Some(Self { ip: get(32)?, sp: get(31)?, fp: get(29)?, lr: get(30)?, others: [0; 16] })
            }
        }
    }
}

/// The modules of a process at one time.
#[derive(Clone)]
pub struct Space {
    unwinder: ArchUnwinder,
    /// Whether each mapping has tables.
    known: IntervalMap<bool>,
    /// Which state of all spaces' modules this is; see [`GENERATIONS`].
    generation: u64,
}

/// framehop tells the rules in its cache apart by a count of 16 bits that all unwinders share and that goes
/// up with each of them and each module. After 65,536 steps two spaces may bear the same one. We keep the
/// whole count beside it, in step because each step is taken under this lock, and forget cached rules when a
/// number comes again for another space.
static GENERATIONS: Mutex<u64> = Mutex::new(0);

/// Takes one step of the count together with framehop.
fn step<T>(act: impl FnOnce() -> T) -> (T, u64) {
    let mut count = GENERATIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let done = act();
    *count += 1;
    (done, *count)
}

#[derive(Clone)]
enum ArchUnwinder {
    X86_64(UnwinderX86_64<Bytes>),
    Aarch64(UnwinderAarch64<Bytes>),
}

impl fmt::Debug for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Space").field("known", &self.known).finish_non_exhaustive()
    }
}

/// Why a chain ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The tables say that there is no caller.
    Root,
    /// The next frame lies beyond the copied bytes.
    Cut,
    /// No unwind tables for the code at this address; the frame pointer was tried and led nowhere.
    NoTables(Avma),
    /// What the tables say leads nowhere: they are wrong, or the stack is damaged.
    Lost,
    /// The longest chain that was asked for.
    Long,
}

impl Space {
    /// A process without code.
    pub fn new(arch: Arch) -> Self {
        let (unwinder, generation) = step(|| match arch {
            Arch::X86_64 => ArchUnwinder::X86_64(UnwinderX86_64::new()),
            Arch::Aarch64 => ArchUnwinder::Aarch64(UnwinderAarch64::new()),
        });
        Self { unwinder, known: IntervalMap::default(), generation }
    }

    /// Adds a mapping of code, with its file's tables if it has any. Mappings must not overlap; of two that
    /// do, the earlier holds.
    pub fn add(&mut self, mapping: &Mapping, tables: Option<&Tables>) {
        let range = mapping.start.0..mapping.start.0.saturating_add(mapping.len);
        if range.is_empty() || self.known.overlaps(&range) {
            return;
        }
        self.known.replace(range.clone(), tables.is_some());
        let Some(tables) = tables else { return };
        let base = tables.slide(mapping);
        let module = Module::new(String::new(), range, base, tables.sections());
        ((), self.generation) = step(|| match &mut self.unwinder {
            ArchUnwinder::X86_64(unwinder) => unwinder.add_module(module),
            ArchUnwinder::Aarch64(unwinder) => unwinder.add_module(module),
        });
    }

    fn has_tables(&self, address: u64) -> bool {
        self.known.find(address).is_some_and(|(_, has_tables)| *has_tables)
    }
}

/// One thread's unwinder: remembers the rules of addresses it has seen, in whichever space.
pub struct Walker {
    x86_64: CacheX86_64,
    aarch64: CacheAarch64,
    /// The whole count behind each short one whose rules may be remembered.
    seen: FxHashMap<u16, u64>,
}

impl fmt::Debug for Walker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Walker")
    }
}

impl Default for Walker {
    fn default() -> Self {
        Self { x86_64: CacheX86_64::new(), aarch64: CacheAarch64::new(), seen: FxHashMap::default() }
    }
}

impl Walker {
    /// Unwinds one sample: the instruction pointer first, then return addresses, outwards. `stack` is what
    /// lay at `registers.sp` and above (its valid part, `dyn_size`). The chain is put into `chain`, at most
    /// `most` addresses.
    pub fn walk(
        &mut self,
        space: &Space,
        registers: &Registers,
        stack: &[u8],
        most: usize,
        chain: &mut Vec<Avma>,
    ) -> End {
        chain.clear();
        let known = *self.seen.entry(space.generation as u16).or_insert(space.generation);
        if known != space.generation {
            *self = Self::default();
            self.seen.insert(space.generation as u16, space.generation);
        }
        let mut cut = false;
        let mut read = |address: u64| {
            let at = address.checked_sub(registers.sp).and_then(|at| usize::try_from(at).ok()).ok_or(())?;
            let word: Option<[u8; 8]> = at.checked_add(8).and_then(|end| stack.get(at..end)?.try_into().ok());
            // What lies not far above the copy was on the stack too; the rest is nonsense.
            cut |= word.is_none() && at < stack.len().saturating_add(FAR);
            word.map(u64::from_le_bytes).ok_or(())
        };
        let failed = match &space.unwinder {
            ArchUnwinder::X86_64(unwinder) => {
                let mut regs = UnwindRegsX86_64::new(registers.ip, registers.sp, registers.fp);
                for (register, value) in X86_64_OTHERS.into_iter().zip(registers.others) {
                    if let Some(register) = register {
                        regs.set(register, value);
                    }
                }
                follow(unwinder, registers.ip, regs, &mut self.x86_64, &mut read, most, chain)
            }
            ArchUnwinder::Aarch64(unwinder) => {
                let mask =
                    PtrAuthMask::from_max_known_address(unwinder.max_known_code_address().max(1 << 47));
                let regs =
                    UnwindRegsAarch64::new_with_ptr_auth_mask(mask, registers.lr, registers.sp, registers.fp);
                follow(unwinder, registers.ip, regs, &mut self.aarch64, &mut read, most, chain)
            }
        };
        let last = chain.last().copied().unwrap_or_default();
        // A caller's address is behind its call.
        let looked_up = if chain.len() > 1 { last.0.wrapping_sub(1) } else { last.0 };
        match failed {
            Outcome::Root => End::Root,
            Outcome::Long => End::Long,
            Outcome::Failed if !space.has_tables(looked_up) => End::NoTables(last),
            Outcome::Failed if cut => End::Cut,
            Outcome::Failed => End::Lost,
        }
    }
}

/// How far above the copy a frame may be expected: stacks have 8 MiB by custom.
const FAR: usize = 8 << 20;

/// The registers by DWARF number that are not set otherwise.
const X86_64_OTHERS: [Option<Reg>; 16] = [
    Some(Reg::RAX),
    Some(Reg::RDX),
    Some(Reg::RCX),
    Some(Reg::RBX),
    Some(Reg::RSI),
    Some(Reg::RDI),
    None,
    None,
    Some(Reg::R8),
    Some(Reg::R9),
    Some(Reg::R10),
    Some(Reg::R11),
    Some(Reg::R12),
    Some(Reg::R13),
    Some(Reg::R14),
    Some(Reg::R15),
];

enum Outcome {
    Root,
    Failed,
    Long,
}

fn follow<U: Unwinder>(
    unwinder: &U,
    ip: u64,
    regs: U::UnwindRegs,
    cache: &mut U::Cache,
    read: &mut impl FnMut(u64) -> Result<u64, ()>,
    most: usize,
    chain: &mut Vec<Avma>,
) -> Outcome {
    let mut frames = unwinder.iter_frames(ip, regs, cache, read);
    loop {
        if chain.len() >= most {
            return Outcome::Long;
        }
        match frames.next() {
            Ok(Some(FrameAddress::InstructionPointer(address))) => chain.push(Avma(address)),
            Ok(Some(FrameAddress::ReturnAddress(address))) => chain.push(Avma(address.get())),
            Ok(None) => return Outcome::Root,
            // A null return address is how several start files end the stack.
            Err(framehop::Error::ReturnAddressIsNull) => return Outcome::Root,
            Err(_) => return Outcome::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::FileOffset;

    #[test]
    fn registers_are_found_by_their_bits() {
        // bp, sp and ip, and r8, of x86-64: perf packs the values in the order of the bits.
        let mask = 1 << 6 | 1 << 7 | 1 << 8 | 1 << 16;
        let registers = Registers::from_sample(Arch::X86_64, mask, &[10, 11, 12, 13]).unwrap();
        assert_eq!((registers.fp, registers.sp, registers.ip, registers.others[8]), (10, 11, 12, 13));
        assert!(Registers::from_sample(Arch::X86_64, mask, &[10, 11]).is_none());
        assert!(Registers::from_sample(Arch::X86_64, 1 << 8, &[1]).is_none());
        let all: Vec<u64> = (0..33).collect();
        let registers = Registers::from_sample(Arch::Aarch64, (1 << 33) - 1, &all).unwrap();
        assert_eq!((registers.fp, registers.lr, registers.sp, registers.ip), (29, 30, 31, 32));
    }

    #[test]
    fn frame_pointers_are_followed_where_there_are_no_tables() {
        for arch in [Arch::X86_64, Arch::Aarch64] {
            let sp = 0x7ffe_0000u64;
            // Two frames: saved frame pointer and return address each; then zeros.
            let words: [u64; 8] = [0, 0, sp + 32, 0x40_1234, sp + 48, 0x40_2345, 0, 0];
            let stack: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
            let registers =
                Registers { ip: 0x40_0010, sp, fp: sp + 16, lr: 0x40_1234, ..Registers::default() };
            let mut space = Space::new(arch);
            space.add(&Mapping { start: Avma(0x40_0000), len: 0x1_0000, offset: FileOffset(0) }, None);
            let mut chain = Vec::new();
            let end = Walker::default().walk(&space, &registers, &stack, 100, &mut chain);
            assert!(
                chain.contains(&Avma(0x40_1234)) && chain.contains(&Avma(0x40_2345)),
                "{arch:?} {chain:x?} {end:?}"
            );
            let end = Walker::default().walk(&space, &registers, &stack, 2, &mut chain);
            assert_eq!((chain.len(), end), (2, End::Long));
            let end = Walker::default().walk(&space, &registers, &[], 100, &mut chain);
            assert_eq!(chain[0], Avma(0x40_0010));
            assert!(matches!(end, End::NoTables(_)), "{end:?}");
        }
    }

    #[test]
    fn rules_of_another_space_with_the_same_short_number_are_forgotten() {
        let space = Space::new(Arch::X86_64);
        let other = Space { generation: space.generation + (1 << 16), ..space.clone() };
        let mut walker = Walker::default();
        let registers = Registers::default();
        walker.walk(&space, &registers, &[], 10, &mut Vec::new());
        walker.walk(&other, &registers, &[], 10, &mut Vec::new());
        assert_eq!(walker.seen.get(&(space.generation as u16)), Some(&other.generation));
    }
}
