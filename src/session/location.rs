//! From an address to a module and an offset in it.
//!
//! Receives addresses as they were recorded, each with the epoch it was seen in; hands on [`Location`]s.
//! Knows what of a raw chain is an address, and whose.

use std::hash::{Hash, Hasher};
use std::num::{NonZeroU32, NonZeroU64};

use super::{Epoch, History, Kind};
use crate::abi::{CpuMode, context};
use crate::address::Avma;
use crate::record::{ChainEntry, Words};

/// Where in the code. Many thousands of them are kept, so they are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Location {
    /// Offset in the file for modules that are files (and the vdso), else the address in memory. For a
    /// caller's frame it is one less than the return address, so that it lies in the call.
    pub offset: u64,
    /// The complement of the address: the highest one is free.
    data: Option<NonZeroU64>,
    /// The number and one.
    module: Option<NonZeroU32>,
    /// Where the code ran.
    pub level: CpuMode,
}

const _: () = assert!(size_of::<Location>() == 24);

impl Location {
    /// Number of the module in [`History::modules`]; `None` where nothing was mapped.
    pub fn module(&self) -> Option<u32> {
        self.module.map(|number| number.get() - 1)
    }

    /// Another place in the same module.
    #[must_use]
    pub fn at(self, offset: u64) -> Self {
        Self { offset, ..self }
    }

    /// The address itself, where it is one of data.
    pub fn data(&self) -> Option<u64> {
        self.data.map(|complement| !complement.get())
    }
}

/// An address as it was recorded, in its context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampledAddress {
    /// The epoch of the process; the kernel's for its addresses.
    pub epoch: Epoch,
    /// In which privilege it was seen.
    pub level: CpuMode,
    /// The address itself.
    pub address: u64,
    /// It is data, not code.
    pub is_data: bool,
    /// The call before it is meant: it is where that call returns to.
    pub in_call: bool,
}

impl SampledAddress {
    /// An address of code.
    pub fn code(epoch: Epoch, level: CpuMode, address: u64) -> Self {
        let epoch = if level == CpuMode::User { epoch } else { Epoch::KERNEL };
        Self { epoch, level, address, is_data: false, in_call: false }
    }

    /// An address that says itself whether it is the kernel's, as those of branches and data do.
    pub fn by_half(epoch: Epoch, address: u64, is_data: bool) -> Self {
        let level = if address >> 63 == 0 { CpuMode::User } else { CpuMode::Kernel };
        Self { is_data, ..Self::code(epoch, level, address) }
    }

    /// The same as where a call returns to, if it is.
    pub fn returned_to(self, in_call: bool) -> Self {
        Self { in_call, ..self }
    }
}

impl Hash for SampledAddress {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let kind = u64::from(self.in_call) << 1 | u64::from(self.is_data);
        state.write_u64(self.address);
        state.write_u64(u64::from(self.epoch.0) << 8 | (self.level as u64) << 2 | kind);
    }
}

/// Looks up one address.
pub fn locate(history: &History, at: SampledAddress) -> Location {
    let address = if at.in_call { at.address.saturating_sub(1) } else { at.address };
    let data = NonZeroU64::new(!at.address).filter(|_| at.is_data);
    let is_known = matches!(at.level, CpuMode::User | CpuMode::Kernel);
    let Some(mapped) = history.find(at.epoch, Avma(address)).filter(|_| is_known) else {
        return Location { offset: address, data, module: None, level: at.level };
    };
    let by_offset = matches!(history.modules()[mapped.module as usize].kind, Kind::File | Kind::Vdso);
    let offset = mapped.mapping.file_offset(Avma(address)).filter(|_| by_offset);
    Location {
        offset: offset.map_or(address, |offset| offset.0),
        data,
        module: NonZeroU32::new(mapped.module.wrapping_add(1)),
        level: at.level,
    }
}

/// Walks a raw stack: level, address, and whether it is a caller's return address, innermost first. At most
/// `most` addresses are shown.
pub fn walk(words: Words<'_>, most: usize, mut visit: impl FnMut(CpuMode, u64, bool)) {
    let mut level = CpuMode::Unknown;
    let mut is_caller = false;
    let mut count = 0;
    for word in words.iter() {
        match ChainEntry::from(word) {
            ChainEntry::Context(context) => {
                // The first address of a context is where it was left, not a return address. Behind the same
                // marker again stand callers that were taken over.
                is_caller &= level == context.mode();
                level = context.mode();
            }
            ChainEntry::Address(address) => {
                if count == most {
                    return;
                }
                count += 1;
                visit(level, address, is_caller);
                is_caller = true;
            }
        }
    }
}

/// Whether callers of a raw stack were taken over from another of its thread: they stand behind the marker of
/// their context, which is there for the second time. perf knows no such sign, and reads on.
pub fn is_joined(words: Words<'_>) -> bool {
    let mut markers = words.iter().filter(|word| *word >= context::MAX);
    let mut before = markers.next();
    markers.any(|marker| before.replace(marker) == Some(marker))
}
