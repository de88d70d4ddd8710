//! Reads the tables of abbreviations, once for all units and threads.
//!
//! Takes the sections of a file and of its supplement; stores the tables in their cache. In a hostile file,
//! units may refer to every byte of one long table, so each table ends where the table of another unit
//! begins.
//!
//! Hides the line programs of partial units ([`DW_AT_partial_stmt_list`]). dwz makes thousands of partial
//! units that refer to the same line program, whose header gimli would read and store for each of them.

use std::sync::Arc;

use gimli::{
    Abbreviations, DW_AT_stmt_list, DW_FORM_implicit_const, DW_TAG_partial_unit, DebugAbbrev,
    DebugAbbrevOffset, DwAt, Dwarf, Reader, Section,
};
use rayon::prelude::*;

use super::sections::DwarfSlice;

/// Maximum number of attributes of an abbreviation. Those of compilers have fewer than 30. An entry may take
/// one byte, although its attributes are read one by one.
const MOST_ATTRIBUTES: usize = 256;

/// The attribute that replaces `DW_AT_stmt_list` in partial units. DWARF does not use this number. Partial
/// units have no code, so only the declarations in them need source files.
#[expect(non_upper_case_globals, reason = "gimli's names")]
pub(in crate::symbol) const DW_AT_partial_stmt_list: DwAt = DwAt(0x04);

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
    let scan = scan(bytes).ok().filter(|scan| scan.most_attributes <= MOST_ATTRIBUTES)?;
    let read = |bytes| DebugAbbrev::from(bytes).abbreviations(DebugAbbrevOffset(0)).ok();
    if scan.partial_stmt_lists.is_empty() {
        return read(bytes);
    }
    let mut hidden = bytes.slice().to_vec();
    for at in scan.partial_stmt_lists {
        // Keeps the bit of a longer encoding.
        hidden[at] = hidden[at] & 0x80 | DW_AT_partial_stmt_list.0 as u8;
    }
    read(DwarfSlice::new(&hidden, bytes.endian()))
}

struct TableScan {
    /// Number of attributes of the abbreviation that has the most.
    most_attributes: usize,
    /// Offsets of the line programs' attributes in abbreviations of partial units.
    partial_stmt_lists: Vec<usize>,
}

fn scan(mut bytes: DwarfSlice<'_>) -> gimli::Result<TableScan> {
    let (size, mut most, mut partial_stmt_lists) = (bytes.len(), 0, Vec::new());
    // The end may be missing, as gimli allows.
    while !bytes.is_empty() && bytes.read_uleb128()? != 0 {
        let tag = bytes.read_uleb128()?;
        bytes.skip(1)?;
        let mut count = 0;
        loop {
            let at = size - bytes.len();
            let (name, form) = (bytes.read_uleb128()?, bytes.read_uleb128()?);
            if (name, form) == (0, 0) {
                break;
            }
            if tag == u64::from(DW_TAG_partial_unit.0) && name == u64::from(DW_AT_stmt_list.0) {
                partial_stmt_lists.push(at);
            }
            if form == u64::from(DW_FORM_implicit_const.0) {
                bytes.skip_leb128()?;
            }
            count += 1;
        }
        most = most.max(count);
    }
    Ok(TableScan { most_attributes: most, partial_stmt_lists })
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
    fn line_programs_of_partial_units_are_hidden() {
        for name in [&[0x10][..], &[0x90, 0]] {
            // A partial unit and a compilation unit, each with a name and a line program.
            let of = |tag| [&[tag, tag, 0, 0x03, 0x08][..], name, &[0x17, 0, 0]].concat();
            let bytes = [of(0x3c), of(0x11), vec![0]].concat();
            let bytes = DwarfSlice::new(&bytes, gimli::RunTimeEndian::Little);
            let table = table(bytes, 0, bytes.len()).unwrap();
            let names = |code| table.get(code).unwrap().attributes().iter().map(|attribute| attribute.name());
            assert!(names(0x3c).eq([gimli::DW_AT_name, DW_AT_partial_stmt_list]));
            assert!(names(0x11).eq([gimli::DW_AT_name, DW_AT_stmt_list]));
        }
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
