//! Addresses and address ranges of modules, for formats that describe code by its place in memory.
//!
//! A recording may contain several processes, which map the same module at different addresses. The formats
//! have room for one range per module, so all addresses are those of the module's first process.

use std::cmp::Reverse;

use rustc_hash::{FxHashMap, FxHashSet};

use pmc_analysis::profile::sampled::StackProfile;
use pmc_analysis::profile::sampled::code::is_library;
use pmc_analysis::session::ModuleKind;

/// The addresses of a module.
pub(super) struct ModuleRange {
    /// Index of the module.
    pub(super) module: u32,
    pub(super) start: u64,
    /// End of the addresses, exclusive.
    pub(super) limit: u64,
    /// Offset in the file of the byte at `start`.
    pub(super) file_offset: u64,
}

/// Returns the modules in all stacks of the rows. The program with the most frames comes first, because
/// readers assume that the first mapping is the main program.
pub(super) fn modules(stacks: &StackProfile<'_>) -> Vec<ModuleRange> {
    let mut ends: FxHashMap<u32, (u64, u64, usize)> = FxHashMap::default();
    let mut seen = FxHashSet::default();
    let fresh = stacks.rows.iter().map(|row| row.stack).filter(|stack| seen.insert(*stack));
    for location in fresh.flat_map(|stack| stacks.stack(stack)) {
        if let Some(module) = stacks.location(location).module() {
            let address = address(stacks, location);
            let (first, last, frames) = ends.entry(module).or_insert((address, address, 0));
            (*first, *last) = (address.min(*first), address.max(*last));
            *frames += 1;
        }
    }
    let mut modules: Vec<u32> = ends.keys().copied().collect();
    modules.sort_by_key(|number| {
        let module = &stacks.modules[*number as usize];
        let is_no_program = module.kind != ModuleKind::File || is_library(&module.short_name());
        (is_no_program, Reverse(ends[number].2), *number)
    });
    let mapped = |module: u32| {
        let (first, last, _) = ends[&module];
        let described = &stacks.modules[module as usize];
        // Use the mapping of the module's first process, extended to cover all used parts of the file.
        let mapping = described.mapping.filter(|_| described.kind == ModuleKind::File);
        let start = mapping.map_or(first & !0xfff, |mapping| mapping.start.0.min(first & !0xfff));
        let limit = mapping.map_or(0, |mapping| mapping.start.0.saturating_add(mapping.len));
        let file_offset = mapping
            .map_or(0, |mapping| mapping.offset.0.saturating_sub(mapping.start.0.saturating_sub(start)));
        ModuleRange { module, start, limit: limit.max(last.saturating_add(1)), file_offset }
    };
    modules.into_iter().map(mapped).collect()
}

/// Returns the address of a location in the address space of its module's first process.
pub(super) fn address(stacks: &StackProfile<'_>, number: u32) -> u64 {
    let location = stacks.location(number);
    let module = location.module().map(|module| &stacks.modules[module as usize]);
    match module.filter(|module| module.kind == ModuleKind::File).and_then(|module| module.mapping) {
        Some(mapping) => mapping.start.0.wrapping_add(location.offset).wrapping_sub(mapping.offset.0),
        None => location.offset,
    }
}
