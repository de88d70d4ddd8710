//! The debug sections of a file, decompressed.
//!
//! Takes an untrusted ELF file; returns the requested sections. Bounds the uncompressed size, and rejects
//! files whose debug information needs relocation.

use std::borrow::Cow;

use gimli::{Dwarf, DwarfSections, EndianSlice, RunTimeEndian, Section, SectionId};
use object::read::{Object, ObjectSection};
use rayon::prelude::*;

use crate::symbol::files::elf;

/// Bytes of a DWARF section.
pub(in crate::symbol) type DwarfSlice<'a> = EndianSlice<'a, RunTimeEndian>;

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
    load(file, &[&LINE_SECTIONS[..], &LOCATION_SECTIONS].concat())
}

/// Loads these sections.
pub(super) fn load<'a>(
    file: &object::File<'a>,
    sections: &[SectionId],
) -> Result<DwarfSections<Cow<'a, [u8]>>, String> {
    // The file that dwz writes is of the relocatable type, but has no relocations.
    let relocated = |section: object::read::Section<'_, '_>| section.relocations().next().is_some();
    if file.kind() == object::ObjectKind::Relocatable
        && file.section_by_name(".debug_info").is_some_and(relocated)
    {
        return Err("its debug information requires relocation".into());
    }
    let mut unpacked: Vec<_> =
        sections.par_iter().map(|&id| (id, elf::section(file, id.name()).unwrap_or_default())).collect();
    let mut take = |id| unpacked.iter_mut().find(|(of, _)| *of == id).map(|(_, bytes)| std::mem::take(bytes));
    DwarfSections::load(|id| Ok(take(id).unwrap_or_default()))
}

/// Number of address ranges that a file of any size may have.
pub(in crate::symbol) const FREE_RANGES: usize = 1 << 16;

/// Returns the number of bytes of the lists of ranges.
pub(in crate::symbol) fn ranges_size(dwarf: &Dwarf<DwarfSlice<'_>>) -> usize {
    let lists = &dwarf.ranges;
    lists.debug_ranges().reader().len() + lists.debug_rnglists().reader().len()
}
