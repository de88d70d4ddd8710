//! The code of a process at some point in time, and the unwind data available for each address.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use framehop::aarch64::UnwinderAarch64;
use framehop::x86_64::UnwinderX86_64;
use framehop::{Module, Unwinder};

use super::arch::Arch;
use super::code::{ProgramCode, is_signal_return};
use super::entries::{Entries, FramePointer};
use super::section::SharedBytes;
use super::tables::UnwindTables;
use crate::address::{IntervalMap, Mapping};

/// The modules of a process at some point in time.
#[derive(Clone)]
pub struct Space {
    pub(super) unwinder: ArchUnwinder,
    /// The tables of each mapping.
    known: IntervalMap<Option<CoveredRanges>>,
    /// Version of this space's modules, unique among all spaces; see [`GENERATIONS`].
    pub(super) generation: u64,
}

/// The addresses for which the tables of a mapped file have entries.
#[derive(Debug, Clone)]
struct CoveredRanges {
    /// The covered ranges, as addresses in the file.
    ranges: Arc<[Range<u64>]>,
    /// Difference between mapped addresses and addresses in the file.
    slide: u64,
    entries: Arc<Entries>,
    code: Option<ProgramCode>,
}

/// The unwind data available for the code at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coverage {
    /// The file's tables have an entry for the address.
    Entry,
    /// The file has tables, but no entry for the address. Code that returns from a signal counts as having
    /// none, because its caller is in the signal frame.
    Gap,
    /// The address is in code without tables.
    Bare,
    /// Nothing is mapped at the address.
    Nowhere,
}

/// framehop identifies the space of a cached rule by a 16-bit number from a counter that all unwinders share.
/// Each new unwinder and each new module increments the counter. After 65,536 increments, two spaces may have
/// the same number, so pmc keeps a wider counter in parallel. This lock is held during each increment to keep
/// both counters in step. Cached rules are dropped when a number is reused for another space.
static GENERATIONS: Mutex<u64> = Mutex::new(0);

/// Runs an action that increments framehop's counter, and also increments pmc's counter.
fn step<T>(act: impl FnOnce() -> T) -> (T, u64) {
    let mut count = GENERATIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let done = act();
    *count += 1;
    (done, *count)
}

#[derive(Clone)]
pub(super) enum ArchUnwinder {
    X86_64(UnwinderX86_64<SharedBytes>),
    X86,
    Aarch64(UnwinderAarch64<SharedBytes>),
}

impl fmt::Debug for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Space").field("known", &self.known).finish_non_exhaustive()
    }
}

impl Space {
    /// Creates an empty space.
    pub fn new(arch: Arch) -> Self {
        let (unwinder, generation) = step(|| match arch {
            Arch::X86_64 => ArchUnwinder::X86_64(UnwinderX86_64::new()),
            Arch::X86 => {
                // pmc's 32-bit unwinder does not use framehop's counter, so increment it here to keep the
                // counters in step.
                drop(UnwinderX86_64::<SharedBytes>::new());
                ArchUnwinder::X86
            }
            Arch::Aarch64 => ArchUnwinder::Aarch64(UnwinderAarch64::new()),
        });
        Self { unwinder, known: IntervalMap::default(), generation }
    }

    /// Adds a mapping of code, with its file's tables if available. Tables with a different word size are
    /// ignored. Mappings must not overlap; if they do, the earlier one wins.
    pub fn add(&mut self, mapping: &Mapping, tables: Option<&UnwindTables>) {
        let range = mapping.start.0..mapping.start.0.saturating_add(mapping.len);
        if range.is_empty() || self.known.overlaps(&range) {
            return;
        }
        let is_x86 = matches!(self.unwinder, ArchUnwinder::X86);
        let tables = tables.filter(|tables| tables.is_x86() == is_x86);
        let slide = tables.map_or(0, |tables| tables.slide(mapping));
        let covered = |tables: &UnwindTables| CoveredRanges {
            ranges: tables.covered(),
            slide,
            entries: Arc::clone(tables.entries()),
            code: tables.code().cloned(),
        };
        self.known.replace(range.clone(), tables.map(covered));
        let Some(tables) = tables.filter(|_| !is_x86) else { return };
        let module = Module::new(String::new(), range, slide, tables.sections());
        ((), self.generation) = step(|| match &mut self.unwinder {
            ArchUnwinder::X86_64(unwinder) => unwinder.add_module(module),
            ArchUnwinder::X86 => {}
            ArchUnwinder::Aarch64(unwinder) => unwinder.add_module(module),
        });
    }

    pub(super) fn arch(&self) -> Arch {
        match self.unwinder {
            ArchUnwinder::X86_64(_) => Arch::X86_64,
            ArchUnwinder::X86 => Arch::X86,
            ArchUnwinder::Aarch64(_) => Arch::Aarch64,
        }
    }

    /// Word size on the stack, in bytes.
    pub(super) fn word(&self) -> u64 {
        if matches!(self.unwinder, ArchUnwinder::X86) { 4 } else { 8 }
    }

    pub(super) fn coverage(&self, address: u64) -> Coverage {
        let Some((_, known)) = self.known.find(address) else { return Coverage::Nowhere };
        let Some(CoveredRanges { ranges, slide, code, .. }) = known else { return Coverage::Bare };
        let address = address.wrapping_sub(*slide);
        let before = ranges.partition_point(|range| range.start <= address);
        let is_covered = before.checked_sub(1).is_some_and(|last| address < ranges[last].end);
        let is_signal_return = || {
            let code = code.as_ref().and_then(|code| code.at(address.wrapping_add(1)));
            code.is_some_and(|code| is_signal_return(self.arch(), code))
        };
        if is_covered && !is_signal_return() { Coverage::Entry } else { Coverage::Gap }
    }

    /// Returns the tables of the file that is mapped at an address, and the difference between mapped
    /// addresses and addresses in the file.
    pub(super) fn entries(&self, address: u64) -> Option<(&Entries, u64)> {
        let (_, covered) = self.known.find(address)?;
        let covered = covered.as_ref()?;
        Some((&covered.entries, covered.slide))
    }

    /// Whether an address found through a frame pointer may be a caller. The address must be in code. If the
    /// file's code is available, the address must follow a call. If not, the file's tables must cover the
    /// address, unless the file has no tables.
    pub(super) fn is_caller(&self, address: u64) -> bool {
        let is_code = || matches!(self.coverage(address.wrapping_sub(1)), Coverage::Entry | Coverage::Bare);
        self.is_behind_call(address).unwrap_or_else(is_code)
    }

    /// Whether an address follows a call; `None` if its file's code is not available.
    pub(super) fn is_behind_call(&self, address: u64) -> Option<bool> {
        let (_, covered) = self.known.find(address.wrapping_sub(1))?;
        let CoveredRanges { code, slide, .. } = covered.as_ref()?;
        Some(code.as_ref()?.is_behind_call(address.wrapping_sub(*slide)))
    }

    /// Returns the code from an address to the end of its segment; `None` if its file is not available.
    pub(super) fn code(&self, address: u64) -> Option<&[u8]> {
        let (_, covered) = self.known.find(address)?;
        let CoveredRanges { code, slide, .. } = covered.as_ref()?;
        code.as_ref()?.at(address.wrapping_sub(*slide))
    }

    /// Returns the content of the frame-pointer register at an address; `None` if unknown.
    pub(super) fn frame_pointer(&self, address: u64) -> Option<FramePointer> {
        let (entries, slide) = self.entries(address)?;
        entries.frame_pointer(address.wrapping_sub(slide))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{Avma, FileOffset};

    #[test]
    fn tables_of_another_word_size_are_ignored() {
        let program = std::fs::read("/proc/self/exe").unwrap();
        let tables = UnwindTables::read(&program, None).unwrap();
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
}
