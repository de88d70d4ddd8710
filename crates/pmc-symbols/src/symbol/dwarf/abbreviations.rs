//! Reads the tables of abbreviations, once for all units and threads.
//!
//! Takes the sections of a file and of its supplement; stores the tables in their cache. In a hostile file,
//! units may refer to every byte of one long table, so each table ends where the table of another unit
//! begins.

use std::sync::Arc;

use gimli::{Abbreviations, DW_FORM_implicit_const, DebugAbbrev, DebugAbbrevOffset, Dwarf, Reader, Section};
use rayon::prelude::*;

use super::sections::DwarfSlice;

/// Maximum number of attributes of an abbreviation. Those of compilers have fewer than 30. An entry may take
/// one byte, although its attributes are read one by one.
const MOST_ATTRIBUTES: usize = 256;

/// Reads all tables. Malformed tables are empty, so that their units are malformed too.
pub(in crate::symbol) fn read(dwarf: &mut Dwarf<DwarfSlice<'_>>) {
    if let Some(supplement) = dwarf.sup.as_mut().and_then(Arc::get_mut) {
        read(supplement);
    }
    let mut offsets = Vec::new();
    let mut units = dwarf.units();
    while let Ok(Some(header)) = units.next() {
        offsets.push(header.debug_abbrev_offset().0);
    }
    offsets.sort_unstable();
    offsets.dedup();
    let section = *dwarf.debug_abbrev.reader();
    let ends = offsets.iter().skip(1).copied().chain([section.len()]);
    let places: Vec<(usize, usize)> = offsets.iter().copied().zip(ends).collect();
    let tables: Vec<_> = places
        .into_par_iter()
        .map(|(at, end)| (DebugAbbrevOffset(at), Arc::new(table(section, at, end).unwrap_or_default())))
        .collect();
    for (offset, table) in tables {
        dwarf.abbreviations_cache.set::<DwarfSlice<'_>>(offset, table);
    }
}

/// Reads the table at an offset; `None` if it is malformed.
fn table(mut bytes: DwarfSlice<'_>, at: usize, end: usize) -> Option<Abbreviations> {
    bytes.skip(at).ok()?;
    bytes.truncate(bytes.len().min(end.checked_sub(at)?)).ok()?;
    let is_usual = most_attributes(bytes).is_ok_and(|most| most <= MOST_ATTRIBUTES);
    if is_usual { DebugAbbrev::from(bytes).abbreviations(DebugAbbrevOffset(0)).ok() } else { None }
}

/// Returns the number of attributes of the abbreviation that has the most.
fn most_attributes(mut bytes: DwarfSlice<'_>) -> gimli::Result<usize> {
    let mut most = 0;
    // The end may be missing, as gimli allows.
    while !bytes.is_empty() && bytes.read_uleb128()? != 0 {
        bytes.skip_leb128()?;
        bytes.skip(1)?;
        let mut count = 0;
        loop {
            let (name, form) = (bytes.read_uleb128()?, bytes.read_uleb128()?);
            if (name, form) == (0, 0) {
                break;
            }
            if form == u64::from(DW_FORM_implicit_const.0) {
                bytes.skip_leb128()?;
            }
            count += 1;
        }
        most = most.max(count);
    }
    Ok(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbol::dwarf::hostile::{self, Sharing};
    use crate::symbol::dwarf::sections::{LINE_SECTIONS, endian, load, unsplit_name};

    #[test]
    fn tables_that_units_share_are_read_once() {
        let elf = hostile::elf(Sharing::Abbreviations, 1000, 1000);
        let file = object::File::parse(&*elf).unwrap();
        let sections = load(&file, &LINE_SECTIONS, unsplit_name).unwrap();
        let mut dwarf = sections.borrow(|section| DwarfSlice::new(section, endian(&file)));
        read(&mut dwarf);
        let (mut units, mut kept) = (dwarf.units(), 0);
        while let Some(header) = units.next().unwrap() {
            let table = dwarf.abbreviations(&header).unwrap();
            kept += (1..=1000).filter(|&code| table.get(code).is_some()).count();
        }
        assert_eq!(kept, 1000);
    }

    #[test]
    fn tables_with_very_many_attributes_are_empty() {
        let read = |attributes| {
            // An attribute without bytes in the entry.
            let bytes = [&[1, 0x2e, 0][..], &[0x3f, 0x19].repeat(attributes), &[0; 3]].concat();
            let bytes = DwarfSlice::new(&bytes, gimli::RunTimeEndian::Little);
            table(bytes, 0, bytes.len()).is_some_and(|table| table.get(1).is_some())
        };
        assert!(read(MOST_ATTRIBUTES) && !read(MOST_ATTRIBUTES + 1));
    }
}
