//! Maps addresses to modules and offsets.
//!
//! Converts recorded addresses, each with its epoch, to [`CodeLocation`]s. Determines which words of a raw
//! chain are addresses, and in which CPU mode they were recorded.

use std::hash::{Hash, Hasher};
use std::num::{NonZeroU32, NonZeroU64};

use super::history::{Epoch, History};
use super::module::ModuleKind;
use pmc_perfdata::record::{ChainEntry, MissingStack, RecordWords};
use pmc_symbols::address::Avma;
use pmc_sys::abi::{CpuMode, context};

/// A position in code or data. Packed, because a recording contains many thousands of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CodeLocation {
    /// File offset for modules with a file (and the vdso), otherwise the memory address. For a caller's
    /// frame, it is the return address minus 1, which is inside the call instruction.
    pub offset: u64,
    /// The complement of the data address. It is never zero, since the highest address is never used.
    data: Option<NonZeroU64>,
    /// The module's number plus 1.
    module: Option<NonZeroU32>,
    /// The CPU mode of the code.
    pub(crate) level: CpuMode,
}

const _: () = assert!(size_of::<CodeLocation>() == 24);

impl CodeLocation {
    /// The module's index in [`History::modules`]; `None` if nothing was mapped at the address.
    pub fn module(&self) -> Option<u32> {
        self.module.map(|number| number.get() - 1)
    }

    /// Returns the reason why the sample has no stack; `None` for a code address.
    pub(crate) fn missing_stack(&self) -> Option<MissingStack> {
        let has_code = self.module.is_some() || self.level != CpuMode::Unknown;
        MissingStack::of_address(self.offset).filter(|_| !has_code)
    }

    #[cfg(test)]
    pub(crate) fn in_module(module: u32, offset: u64) -> Self {
        Self { offset, data: None, module: NonZeroU32::new(module + 1), level: CpuMode::User }
    }

    /// Returns the location at another offset in the same module.
    #[must_use]
    pub fn at(self, offset: u64) -> Self {
        Self { offset, ..self }
    }

    /// The data address, if this is a location of data.
    pub fn data(&self) -> Option<u64> {
        self.data.map(|complement| !complement.get())
    }
}

/// A recorded address with its context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SampledAddress {
    /// The epoch of the process, or of the kernel for kernel addresses.
    pub(crate) epoch: Epoch,
    /// The CPU mode in which the address was recorded.
    pub(crate) level: CpuMode,
    pub(crate) address: u64,
    /// Whether the address is a data address.
    pub(crate) is_data: bool,
    /// Whether the address is a return address. If it is, the lookup must use the call before it.
    pub(crate) in_call: bool,
}

/// Returns the CPU mode of a branch or data address. The highest bit determines whether the address belongs
/// to the kernel.
pub(crate) fn level(address: u64) -> CpuMode {
    if address >> 63 == 1 { CpuMode::Kernel } else { CpuMode::User }
}

impl SampledAddress {
    pub(crate) fn code(epoch: Epoch, level: CpuMode, address: u64) -> Self {
        let epoch = if level == CpuMode::User { epoch } else { Epoch::KERNEL };
        Self { epoch, level, address, is_data: false, in_call: false }
    }

    /// Creates a branch or data address.
    pub(crate) fn in_user_or_kernel(epoch: Epoch, address: u64, is_data: bool) -> Self {
        Self { is_data, ..Self::code(epoch, level(address), address) }
    }

    /// Returns the same address, marked as a return address if `in_call` is set.
    pub(crate) fn returned_to(self, in_call: bool) -> Self {
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

/// Looks up an address.
pub(crate) fn locate(history: &History, at: SampledAddress) -> CodeLocation {
    let address = if at.in_call { at.address.saturating_sub(1) } else { at.address };
    let data = NonZeroU64::new(!at.address).filter(|_| at.is_data);
    let is_known = matches!(at.level, CpuMode::User | CpuMode::Kernel);
    let mapped = match at.is_data {
        true => history.find_data(at.epoch, Avma(address)),
        false => history.find(at.epoch, Avma(address)).copied(),
    };
    let Some(mapped) = mapped.filter(|_| is_known) else {
        return CodeLocation { offset: address, data, module: None, level: at.level };
    };
    let by_offset =
        matches!(history.modules()[mapped.module as usize].kind, ModuleKind::File | ModuleKind::Vdso);
    let offset = mapped.mapping.file_offset(Avma(address)).filter(|_| by_offset);
    CodeLocation {
        offset: offset.map_or(address, |offset| offset.0),
        data,
        module: NonZeroU32::new(mapped.module.wrapping_add(1)),
        level: at.level,
    }
}

/// Iterates over a raw stack, innermost first. Calls `visit` with the CPU mode, the address, and whether it
/// is a return address. Visits at most `most` addresses.
pub(crate) fn walk(words: RecordWords<'_>, most: usize, mut visit: impl FnMut(CpuMode, u64, bool)) {
    let mut level = CpuMode::Unknown;
    let mut is_caller = false;
    let mut count = 0;
    for word in words.iter() {
        match ChainEntry::from(word) {
            ChainEntry::Context(context) => {
                // The first address of a context is the address at which execution left the context, not a
                // return address. A repeated marker precedes callers from another stack.
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

/// Whether some callers in a raw stack come from another stack of the same thread. A repeated marker of the
/// same context precedes these callers. perf does not know this convention and ignores the marker.
pub(crate) fn is_joined(words: RecordWords<'_>) -> bool {
    let mut markers = words.iter().filter(|word| *word >= context::MAX);
    let mut before = markers.next();
    markers.any(|marker| before.replace(marker) == Some(marker))
}
