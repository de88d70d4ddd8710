//! The debug sections of a file, decompressed, and the limits for reading them.
//!
//! Takes an untrusted ELF file; returns the requested sections. Bounds the uncompressed size, and rejects
//! files whose debug information needs relocation. [`WorkLimit`] bounds what readers do with the sections.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use gimli::{
    DW_AT_ranges, DebuggingInformationEntry, Dwarf, DwarfSections, Range, RunTimeEndian, Section, SectionId,
    Unit,
};
use object::read::{Object, ObjectSection};
use rayon::prelude::*;

use crate::symbol::files::elf;

pub(in crate::symbol) use super::slice::DwarfSlice;

/// The sections needed to find lines. Omits the locations of variables (`.debug_loclists`), which are among
/// the largest sections.
pub(super) const LINE_SECTIONS: [SectionId; 11] = [
    SectionId::DebugInfo,
    SectionId::DebugStr,
    SectionId::DebugLine,
    SectionId::DebugLineStr,
    SectionId::DebugRngLists,
    SectionId::DebugRanges,
    SectionId::DebugAbbrev,
    SectionId::DebugAddr,
    SectionId::DebugAranges,
    SectionId::DebugStrOffsets,
    SectionId::DebugTypes,
];

/// The locations of variables.
const LOCATION_SECTIONS: [SectionId; 2] = [SectionId::DebugLoc, SectionId::DebugLocLists];

/// The file's byte order.
pub(in crate::symbol) fn endian(file: &object::File<'_>) -> RunTimeEndian {
    if file.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big }
}

/// Loads the sections that describe lines and variables.
pub(in crate::symbol) fn load_with_locations<'a>(
    file: &object::File<'a>,
) -> Result<DwarfSections<Cow<'a, [u8]>>, String> {
    load(file, &[&LINE_SECTIONS[..], &LOCATION_SECTIONS].concat(), unsplit_name)
}

/// Loads these sections, under the names that `name` returns.
pub(super) fn load<'a>(
    file: &object::File<'a>,
    sections: &[SectionId],
    name: fn(SectionId) -> Option<&'static str>,
) -> Result<DwarfSections<Cow<'a, [u8]>>, String> {
    // The file that dwz writes is of the relocatable type, but has no relocations.
    let relocated = |section: object::read::Section<'_, '_>| section.relocations().next().is_some();
    // With `-gsplit-dwarf=single`, an object file has a skeleton with relocations, and a split unit without.
    if file.kind() == object::ObjectKind::Relocatable
        && name(SectionId::DebugInfo).and_then(|name| file.section_by_name(name)).is_some_and(relocated)
    {
        return Err("its debug information requires relocation".into());
    }
    let unpack = |&id| (id, name(id).and_then(|name| elf::section(file, name)).unwrap_or_default());
    let mut unpacked: Vec<_> = sections.par_iter().map(unpack).collect();
    let mut take = |id| unpacked.iter_mut().find(|(of, _)| *of == id).map(|(_, bytes)| std::mem::take(bytes));
    DwarfSections::load(|id| Ok(take(id).unwrap_or_default()))
}

/// The name of a section in a file that is not split.
pub(super) fn unsplit_name(id: SectionId) -> Option<&'static str> {
    Some(id.name())
}

/// Amount of work that a file of any size may cause.
pub(in crate::symbol) const FREE_WORK: usize = 1 << 18;

/// Keeps the time or memory of a request in proportion to the size of the file, although many entries of a
/// hostile file may share one long list, table or text. The threads of a request share the limit.
#[derive(Debug)]
pub(in crate::symbol) struct WorkLimit {
    most: usize,
    left: AtomicUsize,
    is_exceeded: AtomicBool,
}

/// Higher limits for small files. All units of a program share one line program if it is optimized as a
/// whole, and assembled by another program than the compiler.
pub(in crate::symbol) struct SmallFile {
    pub(in crate::symbol) per_byte: usize,
    pub(in crate::symbol) most: usize,
}

impl WorkLimit {
    /// Allows `most` steps, and a few more for small files.
    pub(in crate::symbol) fn new(most: usize) -> Self {
        let most = most.saturating_add(FREE_WORK);
        Self { most, left: AtomicUsize::new(most), is_exceeded: AtomicBool::new(false) }
    }

    /// Allows `per_byte` steps per byte of the file. Small files may take `small.per_byte` steps per byte, up
    /// to `small.most` steps.
    pub(in crate::symbol) fn in_proportion(bytes: usize, per_byte: usize, small: SmallFile) -> Self {
        let most_if_small = bytes.saturating_mul(small.per_byte).min(small.most);
        Self::new(bytes.saturating_mul(per_byte).max(most_if_small))
    }

    /// Starts a new request, which may take all steps again.
    pub(in crate::symbol) fn restart(&self) {
        self.left.store(self.most, Ordering::Relaxed);
        self.is_exceeded.store(false, Ordering::Relaxed);
    }

    /// Starts a new request, which may take only the steps that are left, because the results of earlier
    /// requests are kept.
    pub(in crate::symbol) fn resume(&self) {
        self.is_exceeded.store(false, Ordering::Relaxed);
    }

    /// Counts steps. Returns whether the request may take them; if not, it may take no others.
    pub(in crate::symbol) fn take(&self, steps: usize) -> bool {
        let rest = |left: usize| left.checked_sub(steps);
        let is_allowed =
            !self.is_exceeded() && self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest).is_ok();
        if !is_allowed {
            self.is_exceeded.store(true, Ordering::Relaxed);
        }
        is_allowed
    }

    /// Returns steps, because their result is no longer kept.
    pub(in crate::symbol) fn give_back(&self, steps: usize) {
        self.left.fetch_add(steps, Ordering::Relaxed);
    }

    /// Whether the request needed more steps than allowed, so that its result is incomplete.
    pub(in crate::symbol) fn is_exceeded(&self) -> bool {
        self.is_exceeded.load(Ordering::Relaxed)
    }
}

/// Returns the number of bytes of the lists of ranges.
pub(in crate::symbol) fn ranges_size(dwarf: &Dwarf<DwarfSlice<'_>>) -> usize {
    let lists = &dwarf.ranges;
    lists.debug_ranges().reader().len() + lists.debug_rnglists().reader().len()
}

/// Returns the number of bytes of the entries and the line programs.
pub(in crate::symbol) fn units_size(dwarf: &Dwarf<DwarfSlice<'_>>) -> usize {
    dwarf.debug_info.reader().len() + dwarf.debug_line.reader().len()
}

/// Returns the address ranges of an entry, until `may_read` forbids it. Asks before each item of a list,
/// since a list may consist only of base addresses.
pub(in crate::symbol) fn ranges<'a, F: FnMut() -> bool>(
    dwarf: &Dwarf<DwarfSlice<'a>>,
    unit: &Unit<DwarfSlice<'a>>,
    entry: &DebuggingInformationEntry<DwarfSlice<'a>>,
    mut may_read: F,
) -> impl Iterator<Item = Range> + use<'a, F> {
    let list = entry.attr_value(DW_AT_ranges);
    let mut list = list.and_then(|value| dwarf.attr_ranges(unit, value).ok().flatten());
    let mut single = if list.is_none() { dwarf.die_ranges(unit, entry).ok() } else { None };
    std::iter::from_fn(move || {
        while may_read() {
            let Some(list) = &mut list else { return single.as_mut()?.next().ok().flatten() };
            let item = list.next_raw().ok().flatten()?;
            if let Some(range) = list.convert_raw(item).ok()? {
                return Some(range);
            }
        }
        None
    })
}
