//! Walking one copied stack with the tables of its process.
//!
//! ```text
//!   sp ->  +-------+ low           the copy: what was at sp and above it, as much as the dump size allows
//!          | stack |
//!          +-------+ sp + copied   a read beyond it ends the chain: cut by the dump size
//! ```

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use framehop::aarch64::{CacheAarch64, PtrAuthMask, UnwindRegsAarch64, UnwinderAarch64};
use framehop::x86_64::{CacheX86_64, Reg, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{FrameAddress, Module, Unwinder};
use gimli::UnwindContext;
use rustc_hash::FxHashMap;

use super::tables::{Arch, Bytes, Tables};
use super::x86;
use crate::address::{Avma, IntervalMap, Mapping};

/// The registers of a sample that unwinding needs. perf's numbers of them (`perf_regs.h`): x86 bp 6, sp 7,
/// ip 8; aarch64 x29 29, lr 30, sp 31, pc 32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Registers {
    /// Instruction pointer.
    pub ip: u64,
    /// Stack pointer.
    pub sp: u64,
    /// Frame pointer.
    pub fp: u64,
    /// Link register (aarch64); nothing on x86.
    pub lr: u64,
    /// x86-64: the other registers by their DWARF number (0 rax, 1 rdx, 2 rcx, 3 rbx, 4 rsi, 5 rdi, 8 to 15).
    /// A few hand-written functions say by them where their frame is. 32-bit x86 likewise: 0 eax, 1 ecx,
    /// 2 edx, 3 ebx, 6 esi, 7 edi.
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
            Arch::X86 => {
                let mut others = [0; 16];
                for (dwarf, perf) in [(0, 0), (1, 2), (2, 3), (3, 1), (6, 4), (7, 5)] {
                    others[dwarf] = get(perf).unwrap_or(0);
                }
                let narrow = |register| get(register).map(|value| value & u64::from(u32::MAX));
                Some(Self { ip: narrow(8)?, sp: narrow(7)?, fp: narrow(6)?, lr: 0, others })
            }
            Arch::Aarch64 => {
                Some(Self { ip: get(32)?, sp: get(31)?, fp: get(29)?, lr: get(30)?, others: [0; 16] })
            }
        }
    }
}

/// A frame of a walked stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Frame {
    /// The sampled address in the innermost frame; in others, where the call returns to.
    pub address: Avma,
    /// The stack pointer there: with the address, what tells this frame from others of its thread. 0 where
    /// the kernel found it.
    pub sp: u64,
}

/// The modules of a process at one time.
#[derive(Clone)]
pub struct Space {
    unwinder: ArchUnwinder,
    /// What tables each mapping has.
    known: IntervalMap<Option<Covered>>,
    /// Which state of all spaces' modules this is; see [`GENERATIONS`].
    generation: u64,
}

/// Where the tables of a mapped file have entries.
#[derive(Debug, Clone)]
struct Covered {
    /// In the file's own addresses.
    ranges: Arc<[Range<u64>]>,
    /// By how much the mapping lies above them.
    slide: u64,
    /// Of 32-bit files.
    entries: Option<Arc<x86::Entries>>,
}

/// What is known of the code at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coverage {
    /// The tables say how to go on from it.
    Entry,
    /// Its file has tables, and nothing in them about it.
    Gap,
    /// Code without tables.
    Bare,
    /// Nothing is mapped there.
    Nowhere,
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
    X86,
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
            Arch::X86 => {
                // Its own has no number: it takes another's, so that the count stays in step.
                drop(UnwinderX86_64::<Bytes>::new());
                ArchUnwinder::X86
            }
            Arch::Aarch64 => ArchUnwinder::Aarch64(UnwinderAarch64::new()),
        });
        Self { unwinder, known: IntervalMap::default(), generation }
    }

    /// Adds a mapping of code, with its file's tables if it has any; those of another word size are none.
    /// Mappings must not overlap; of two that do, the earlier holds.
    pub fn add(&mut self, mapping: &Mapping, tables: Option<&Tables>) {
        let range = mapping.start.0..mapping.start.0.saturating_add(mapping.len);
        if range.is_empty() || self.known.overlaps(&range) {
            return;
        }
        let is_x86 = matches!(self.unwinder, ArchUnwinder::X86);
        let tables = tables.filter(|tables| tables.entries().is_some() == is_x86);
        let slide = tables.map_or(0, |tables| tables.slide(mapping));
        let covered =
            |tables: &Tables| Covered { ranges: tables.covered(), slide, entries: tables.entries().cloned() };
        self.known.replace(range.clone(), tables.map(covered));
        let Some(tables) = tables.filter(|_| !is_x86) else { return };
        let module = Module::new(String::new(), range, slide, tables.sections());
        ((), self.generation) = step(|| match &mut self.unwinder {
            ArchUnwinder::X86_64(unwinder) => unwinder.add_module(module),
            ArchUnwinder::X86 => {}
            ArchUnwinder::Aarch64(unwinder) => unwinder.add_module(module),
        });
    }

    fn coverage(&self, address: u64) -> Coverage {
        let Some((_, known)) = self.known.find(address) else { return Coverage::Nowhere };
        let Some(Covered { ranges, slide, .. }) = known else { return Coverage::Bare };
        let address = address.wrapping_sub(*slide);
        let before = ranges.partition_point(|range| range.start <= address);
        let is_covered = before.checked_sub(1).is_some_and(|last| address < ranges[last].end);
        if is_covered { Coverage::Entry } else { Coverage::Gap }
    }

    /// The rules of the 32-bit file that is mapped there, and how far above its own addresses.
    fn entries(&self, address: u64) -> Option<(&x86::Entries, u64)> {
        let (_, covered) = self.known.find(address)?;
        let covered = covered.as_ref()?;
        Some((covered.entries.as_deref()?, covered.slide))
    }
}

/// One thread's unwinder: remembers the rules of addresses it has seen, in whichever space.
pub struct Walker {
    x86_64: CacheX86_64,
    aarch64: CacheAarch64,
    /// Room for a row; made when a 32-bit process is met.
    x86: Option<UnwindContext<usize>>,
    /// The whole count behind each short one whose rules may be remembered.
    seen: FxHashMap<u16, u64>,
    /// By space and address.
    coverage: FxHashMap<(u64, u64), Coverage>,
    /// How many frame records the last walk passed; `None` if it reached the root, or lost the way.
    frame_records: Option<usize>,
}

/// Addresses whose coverage is remembered.
const MOST_COVERAGE: usize = 1 << 16;

impl fmt::Debug for Walker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Walker")
    }
}

impl Default for Walker {
    fn default() -> Self {
        Self {
            x86_64: CacheX86_64::new(),
            aarch64: CacheAarch64::new(),
            x86: None,
            seen: FxHashMap::default(),
            coverage: FxHashMap::default(),
            frame_records: None,
        }
    }
}

impl Walker {
    /// Goes on where the last walk ended without reaching the root, with what the kernel found by frame
    /// pointers: `recorded` is the process's part of its chain. What it found in frames that were walked is
    /// known by the number of frame records that the walk has passed, beginning at the sampled frame pointer.
    /// Whether anything was added.
    ///
    /// ```text
    ///   walked              compare  sort  run       run's frame lies beyond the copy
    ///   by frame pointers   compare  sort       main  _start     sort has no record; 1 was passed, compare's
    ///   together            compare  sort  run  main  _start
    /// ```
    /// (A caller is missing between them where the outermost frame that was walked has no frame pointer.)
    pub fn complete(
        &self,
        space: &Space,
        recorded: impl Iterator<Item = u64>,
        most: usize,
        chain: &mut Vec<Frame>,
    ) -> bool {
        let Some(passed) = self.frame_records else { return false };
        let walked = chain.len();
        let is_code = |caller: &u64| {
            let coverage = space.coverage(caller.wrapping_sub(1));
            matches!(coverage, Coverage::Entry | Coverage::Bare)
        };
        let callers = recorded.skip(1 + passed).take_while(is_code);
        let frame = |caller| Frame { address: Avma(caller), sp: 0 };
        chain.extend(callers.take(most.saturating_sub(walked)).map(frame));
        chain.len() > walked
    }

    /// Unwinds one sample: the instruction pointer first, then return addresses, outwards. `stack` is what
    /// lay at `registers.sp` and above (its valid part, `dyn_size`). The chain is put into `chain`, at most
    /// `most` addresses.
    pub fn walk(
        &mut self,
        space: &Space,
        registers: &Registers,
        stack: &[u8],
        most: usize,
        chain: &mut Vec<Frame>,
    ) -> End {
        chain.clear();
        let known = *self.seen.entry(space.generation as u16).or_insert(space.generation);
        if known != space.generation {
            *self = Self::default();
            self.seen.insert(space.generation as u16, space.generation);
        }
        if self.coverage.len() > MOST_COVERAGE {
            self.coverage.clear();
        }
        let coverage = &mut self.coverage;
        let mut coverage = |address: u64| {
            let key = (space.generation, address);
            *coverage.entry(key).or_insert_with(|| space.coverage(address))
        };
        let mut cut = false;
        let offset = |address: u64| address.checked_sub(registers.sp).and_then(|at| usize::try_from(at).ok());
        let width = if matches!(space.unwinder, ArchUnwinder::X86) { 4 } else { 8 };
        let copied = |address: u64| {
            let at = offset(address)?;
            let mut word = [0; 8];
            word[..width].copy_from_slice(stack.get(at..at.checked_add(width)?)?);
            Some(u64::from_le_bytes(word))
        };
        let mut read = |address: u64| {
            let word = copied(address);
            // What lies not far above the copy was on the stack too; the rest is nonsense.
            let is_near = || offset(address).is_some_and(|at| at < stack.len().saturating_add(FAR));
            cut |= word.is_none() && is_near();
            word.ok_or(())
        };
        let (failed, fp) = match &space.unwinder {
            ArchUnwinder::X86_64(unwinder) => {
                let mut regs = UnwindRegsX86_64::new(registers.ip, registers.sp, registers.fp);
                for (register, value) in X86_64_OTHERS.into_iter().zip(registers.others) {
                    if let Some(register) = register {
                        regs.set(register, value);
                    }
                }
                let cache = &mut self.x86_64;
                let caller = |frame, regs: &mut _| unwinder.unwind_frame(frame, regs, cache, &mut read);
                let sp = UnwindRegsX86_64::sp;
                let end = follow(registers.ip, &mut regs, sp, caller, &mut coverage, most, chain);
                (end, regs.bp())
            }
            ArchUnwinder::X86 => {
                let mut regs =
                    x86::Registers::new(registers.ip, registers.sp, registers.fp, &registers.others);
                let context = self.x86.get_or_insert_default();
                let caller = |frame: FrameAddress, regs: &mut _| {
                    let entries = space.entries(frame.address_for_lookup());
                    let caller = x86::unwind_frame(entries, frame, regs, context, &mut read);
                    caller.map_err(|()| framehop::Error::DidNotAdvance)
                };
                let sp = |regs: &x86::Registers| regs.sp().into();
                let end = follow(registers.ip, &mut regs, sp, caller, &mut coverage, most, chain);
                (end, regs.fp().into())
            }
            ArchUnwinder::Aarch64(unwinder) => {
                let mask =
                    PtrAuthMask::from_max_known_address(unwinder.max_known_code_address().max(1 << 47));
                let mut regs =
                    UnwindRegsAarch64::new_with_ptr_auth_mask(mask, registers.lr, registers.sp, registers.fp);
                let cache = &mut self.aarch64;
                let caller = |frame, regs: &mut _| unwinder.unwind_frame(frame, regs, cache, &mut read);
                let sp = UnwindRegsAarch64::sp;
                let end = follow(registers.ip, &mut regs, sp, caller, &mut coverage, most, chain);
                (end, regs.fp())
            }
        };
        let is_short = matches!(failed, Outcome::Failed);
        self.frame_records = if is_short { records_between(registers.fp, fp, copied) } else { None };
        let last = chain.last().map_or(Avma::default(), |frame| frame.address);
        // A caller's address is behind its call.
        let looked_up = if chain.len() > 1 { last.0.wrapping_sub(1) } else { last.0 };
        match failed {
            Outcome::Root => End::Root,
            Outcome::Long => End::Long,
            Outcome::Failed if space.coverage(looked_up) != Coverage::Entry => End::NoTables(last),
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

/// Walks on as long as frames are believed.
///
/// Where the tables have nothing to say the unwinder (`caller`) follows the frame pointer, which may hold
/// anything: such a caller is believed if it lies in code, and where that code has tables, in theirs.
fn follow<R>(
    ip: u64,
    regs: &mut R,
    sp: impl Fn(&R) -> u64,
    mut caller: impl FnMut(FrameAddress, &mut R) -> Result<Option<u64>, framehop::Error>,
    coverage: &mut impl FnMut(u64) -> Coverage,
    most: usize,
    chain: &mut Vec<Frame>,
) -> Outcome {
    let mut frame = FrameAddress::InstructionPointer(ip);
    let mut is_guess = false;
    loop {
        if chain.len() >= most {
            return Outcome::Long;
        }
        // A caller's address is behind its call.
        let (address, here) = (frame.address(), coverage(frame.address_for_lookup()));
        let is_caller = !chain.is_empty();
        let is_believed = match here {
            Coverage::Entry | Coverage::Bare => true,
            Coverage::Gap => !is_guess,
            Coverage::Nowhere => !is_guess && (FIRST_PAGES..USER_END).contains(&address),
        };
        if is_caller && !is_believed {
            return Outcome::Failed;
        }
        chain.push(Frame { address: Avma(address), sp: sp(regs) });
        is_guess = here != Coverage::Entry;
        frame = match caller(frame, regs) {
            // A null return address is how several start files end the stack.
            Ok(None) | Err(framehop::Error::ReturnAddressIsNull) => return Outcome::Root,
            Ok(Some(address)) => match FrameAddress::from_return_address(address) {
                Some(caller) => caller,
                None => return Outcome::Root,
            },
            Err(_) => return Outcome::Failed,
        };
    }
}

/// Longest chain of frame records that is followed.
const MOST_RECORDS: usize = 1024;

/// How many frame records (a frame pointer and, behind it, the return address) lie on the way from one frame
/// pointer to another; `None` where no way through the copy leads there.
fn records_between(from: u64, to: u64, copied: impl Fn(u64) -> Option<u64>) -> Option<usize> {
    let mut at = from;
    for passed in 0..MOST_RECORDS {
        if at == to {
            return Some(passed);
        }
        at = copied(at).filter(|next| *next > at)?;
    }
    None
}

/// Below, nothing can be mapped; from [`USER_END`] on nothing of a process is, whatever the page tables.
const FIRST_PAGES: u64 = 1 << 16;
const USER_END: u64 = 1 << 56;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::FileOffset;

    fn addresses(chain: &[Frame]) -> Vec<u64> {
        chain.iter().map(|frame| frame.address.0).collect()
    }

    #[test]
    fn registers_are_found_by_their_bits() {
        // bp, sp and ip, and r8, of x86-64: perf packs the values in the order of the bits.
        let mask = 1 << 6 | 1 << 7 | 1 << 8 | 1 << 16;
        let registers = Registers::from_sample(Arch::X86_64, mask, &[10, 11, 12, 13]).unwrap();
        assert_eq!((registers.fp, registers.sp, registers.ip, registers.others[8]), (10, 11, 12, 13));
        assert!(Registers::from_sample(Arch::X86_64, mask, &[10, 11]).is_none());
        assert!(Registers::from_sample(Arch::X86_64, 1 << 8, &[1]).is_none());
        // 32-bit x86: ax bx cx dx si di bp sp ip, and DWARF's order of the others.
        let values = [0, 1, 2, 3, 4, 5, 6, 7, 0xffff_ffff_0000_0008];
        let registers = Registers::from_sample(Arch::X86, 0x1ff, &values).unwrap();
        assert_eq!((registers.fp, registers.sp, registers.ip), (6, 7, 8));
        assert_eq!(registers.others[..8], [0, 2, 3, 1, 0, 0, 4, 5]);
        let all: Vec<u64> = (0..33).collect();
        let registers = Registers::from_sample(Arch::Aarch64, (1 << 33) - 1, &all).unwrap();
        assert_eq!((registers.fp, registers.lr, registers.sp, registers.ip), (29, 30, 31, 32));
    }

    #[test]
    fn frame_pointers_are_followed_where_there_are_no_tables() {
        for (arch, width) in [(Arch::X86_64, 8), (Arch::X86, 4), (Arch::Aarch64, 8)] {
            let sp = 0x7ffe_0000u64;
            let at = |word: usize| sp + (word * width) as u64;
            // Two frames: saved frame pointer and return address each; then zeros.
            let words: [u64; 8] = [0, 0, at(4), 0x40_1234, at(6), 0x40_2345, 0, 0];
            let stack: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()[..width].to_vec()).collect();
            let registers = Registers { ip: 0x40_0010, sp, fp: at(2), lr: 0x40_1234, ..Registers::default() };
            let mut space = Space::new(arch);
            space.add(&Mapping { start: Avma(0x40_0000), len: 0x1_0000, offset: FileOffset(0) }, None);
            let mut chain = Vec::new();
            let end = Walker::default().walk(&space, &registers, &stack, 100, &mut chain);
            let callers = [0x40_1234, 0x40_2345].map(|want| addresses(&chain).contains(&want));
            assert_eq!(callers, [true; 2], "{arch:?} {chain:x?} {end:?}");
            // A frame is told from others by the stack pointer where it is returned to.
            assert_eq!(chain.last().map(|frame| frame.sp), Some(at(6)), "{arch:?} {chain:x?}");
            let end = Walker::default().walk(&space, &registers, &stack, 2, &mut chain);
            assert_eq!((chain.len(), end), (2, End::Long));
            let end = Walker::default().walk(&space, &registers, &[], 100, &mut chain);
            assert_eq!(chain[0], Frame { address: Avma(0x40_0010), sp });
            assert!(matches!(end, End::NoTables(_)), "{end:?}");
        }
    }

    #[test]
    fn a_walk_goes_on_with_what_frame_pointers_led_to() {
        let sp = 0x7ffe_0000u64;
        // One frame record; the one it leads to lies beyond the copy.
        let words: [u64; 4] = [0, 0, sp + 8000, 0x40_1234];
        let stack: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let registers = Registers { ip: 0x40_0010, sp, fp: sp + 16, ..Registers::default() };
        let mut space = Space::new(Arch::X86_64);
        space.add(&Mapping { start: Avma(0x40_0000), len: 0x1_0000, offset: FileOffset(0) }, None);
        let (mut walker, mut chain) = (Walker::default(), Vec::new());
        let recorded = [0x40_0010, 0x40_1234, 0x40_2345, 0x40_3456, 0x99, 0x40_4567];
        let mut whole = |most: usize, fp: u64| {
            walker.walk(&space, &Registers { fp, ..registers }, &stack, most, &mut chain);
            let goes_on = walker.complete(&space, recorded.into_iter(), most, &mut chain);
            (goes_on, addresses(&chain))
        };
        // Up to what is no code.
        assert_eq!(whole(9, registers.fp), (true, recorded[..4].to_vec()));
        assert_eq!(whole(3, registers.fp), (true, recorded[..3].to_vec()));
        assert_eq!(whole(2, registers.fp), (false, recorded[..2].to_vec()));
        // Nothing could be walked: it is all the kernel's.
        assert_eq!(whole(9, sp + 8000), (true, recorded[..4].to_vec()));
    }

    #[test]
    fn tables_of_another_word_size_are_none() {
        let program = std::fs::read("/proc/self/exe").unwrap();
        let tables = Tables::read(&program, None).unwrap();
        let mapping = Mapping { start: Avma(0x40_0000), len: program.len() as u64, offset: FileOffset(0) };
        let entry = tables.covered()[0].start + tables.slide(&mapping);
        for (arch, want) in [(Arch::X86_64, Coverage::Entry), (Arch::X86, Coverage::Bare)] {
            let mut space = Space::new(arch);
            space.add(&mapping, Some(&tables));
            assert_eq!(space.coverage(entry), want);
        }
        let arch = |machine: Arch| [0, 1, 2, 3].map(|abi| machine.of_process(abi));
        assert_eq!(arch(Arch::X86_64), [None, Some(Arch::X86), Some(Arch::X86_64), None]);
        assert_eq!(arch(Arch::Aarch64), [None, None, Some(Arch::Aarch64), None]);
    }

    #[test]
    fn what_a_frame_pointer_leads_to_is_believed_only_in_code() {
        let program = std::fs::read("/proc/self/exe").unwrap();
        let tables = Tables::read(&program, None).unwrap();
        let (bare, covered) = (0x40_0000u64, 0x7f00_0000_0000u64);
        let mut space = Space::new(Arch::X86_64);
        space.add(&Mapping { start: Avma(bare), len: 0x1_0000, offset: FileOffset(0) }, None);
        let mapping = Mapping { start: Avma(covered), len: program.len() as u64, offset: FileOffset(0) };
        space.add(&mapping, Some(&tables));
        let entry = tables.covered()[0].start + tables.slide(&mapping) + 1;
        let sp = 0x7ffe_0000u64;
        // From code without tables the frame pointer leads to a caller there, and from there to this address.
        let callers = |address: u64| {
            let words: [u64; 6] = [0, 0, sp + 32, bare + 0x1234, 0, address];
            let stack: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let registers = Registers { ip: bare, sp, fp: sp + 16, ..Registers::default() };
            let mut chain = Vec::new();
            let end = Walker::default().walk(&space, &registers, &stack, 100, &mut chain);
            assert_eq!(addresses(&chain[..2]), [bare, bare + 0x1234]);
            (chain.get(2).map(|caller| caller.address.0), end)
        };
        assert_eq!(callers(bare + 0x2345).0, Some(bare + 0x2345));
        assert_eq!(callers(entry).0, Some(entry));
        // Nowhere, in nothing's address space, on the stack, and in a file where no function is.
        for address in [8, 0x50_0000, 1 << 63 | 5, 0x1234_5678_9abc_def0, sp + 8, covered + 8] {
            assert_eq!(callers(address), (None, End::NoTables(Avma(bare + 0x1234))), "{address:x}");
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
