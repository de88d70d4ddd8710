//! Checks the units of a file before addr2line reads them, so that a small hostile file cannot take much time
//! or memory.
//!
//! Takes the sections and the sampled addresses; returns the references to split units with samples. Rejects
//! files in which many units or entries share long lists of ranges, line programs or paths ([`UnitLimits`]),
//! and units that are nested too deeply for the stack ([`depth`]).
//!
//! addr2line reads these parts, in each thread:
//!
//! ```text
//!   all units            root entry, list of ranges, header of the line program with its table of files
//!   units with samples   entries, rows, paths of the table of files
//! ```
//!
//! Partial units have no line programs here ([`abbreviations`](super::abbreviations)).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use gimli::{
    AttributeValue, DW_AT_ranges, DW_AT_stmt_list, DebugLineOffset, DwAt, Dwarf, DwoId, LineInstruction,
    Reader, Section, UnitHeader, UnitType,
};
use rayon::prelude::*;

use super::depth::{self, MOST_DEEP, count_ranges};
use super::sections::{DwarfSlice, SmallFile, WorkLimit, ranges, ranges_size, units_size};

/// Maximum number of bytes of line programs to read per byte of entries and line programs. Compilers write a
/// program for each unit.
const LINE_BYTES: usize = 4;
/// Maximum number of bytes in the paths of source files per byte of entries and line programs. Those of
/// compilers have less than 1 byte.
const PATH_BYTES: usize = 16;
/// Bytes that are copied, but not stored, in the time in which a byte of a path is stored.
const COPIED_BYTES: usize = 16;
/// A byte of a header may take 100 bytes of memory, and a byte of instructions 24.
const SMALL_HEADERS: SmallFile = SmallFile { per_byte: 64, most: 16 << 20 };
const SMALL_INSTRUCTIONS: SmallFile = SmallFile { per_byte: 64, most: 64 << 20 };
const SMALL_PATHS: SmallFile = SmallFile { per_byte: 256, most: 64 << 20 };
/// Maximum size of a line program's header. Memory is reserved for a file per byte.
pub(in crate::symbol) const LONGEST_HEADER: usize = 16 << 20;
/// Maximum length of the folders of source files that the instructions of a line program may add without
/// being counted. Such an instruction takes 7 bytes.
const LONGEST_FOLDER: usize = 1 << 10;

/// A skeleton's reference to a unit in another file.
pub(super) struct SplitReference {
    pub(super) id: DwoId,
    /// The `.dwo` file.
    pub(super) path: Option<PathBuf>,
}

/// The work that the units of one file may cause.
pub(super) struct UnitLimits {
    /// Items in the lists of ranges of units, all of which addr2line keeps.
    unit_ranges: WorkLimit,
    /// Items in the lists of ranges of functions.
    pub(super) function_ranges: WorkLimit,
    headers: WorkLimit,
    instructions: WorkLimit,
    paths: WorkLimit,
}

impl UnitLimits {
    /// Takes the number of bytes of entries and line programs, and of lists of ranges.
    pub(super) fn new(units: usize, ranges: usize) -> Self {
        Self {
            unit_ranges: WorkLimit::new(ranges),
            function_ranges: WorkLimit::new(ranges),
            headers: WorkLimit::in_proportion(units, LINE_BYTES, SMALL_HEADERS),
            instructions: WorkLimit::in_proportion(units, LINE_BYTES, SMALL_INSTRUCTIONS),
            paths: WorkLimit::in_proportion(units, PATH_BYTES, SMALL_PATHS),
        }
    }

    /// Counts the header of a unit's line program, which is read with the unit. Returns the size of the rest.
    pub(super) fn count_header(
        &self,
        dwarf: &Dwarf<DwarfSlice<'_>>,
        header: UnitHeader<DwarfSlice<'_>>,
    ) -> Result<usize, String> {
        let program = line_program_offset(dwarf, header, DW_AT_stmt_list);
        let (size, rest) = program.and_then(|at| line_program_size(dwarf, at)).unwrap_or_default();
        if size > LONGEST_HEADER {
            return Err(format!("the header of a line program has {size} bytes"));
        }
        if self.headers.take(size) { Ok(rest) } else { Err(SHARED_LINES.to_owned()) }
    }

    /// Counts the instructions of a unit's line program, and the paths of its source files.
    fn count_lines(
        &self,
        dwarf: &Dwarf<DwarfSlice<'_>>,
        unit: &gimli::Unit<DwarfSlice<'_>>,
        instructions: usize,
    ) -> Result<(), String> {
        let Some(program) = &unit.line_program else { return Ok(()) };
        if !self.instructions.take(instructions) {
            return Err(SHARED_LINES.to_owned());
        }
        let header = program.header();
        let size = |text| dwarf.attr_string(unit, text).map_or(0, |text| text.len());
        let base = unit.comp_dir.map_or(0, |folder| folder.len());
        // addr2line copies the base, and replaces it with an absolute folder.
        let below_base = |folder| match dwarf.attr_string(unit, folder) {
            Ok(folder) if folder.slice().starts_with(b"/") => base / COPIED_BYTES + folder.len(),
            Ok(folder) => base + folder.len(),
            Err(_) => base,
        };
        for file in header.file_names() {
            let folder = if file.directory_index() == 0 { None } else { file.directory(header) };
            self.take_path(folder.map_or(base, below_base) + size(file.path_name()))?;
        }
        if header.version() >= 5 {
            return Ok(());
        }
        self.take_path(base + unit.name.map_or(0, |name| name.len()))?;
        // Compilers do not add files in the instructions, and their folders are shorter.
        let longest = header.include_directories().iter().map(|folder| below_base(*folder)).max();
        let folder = longest.unwrap_or(0).max(base);
        if folder > LONGEST_FOLDER {
            let mut instructions = header.instructions();
            while let Ok(Some(instruction)) = instructions.next_instruction(header) {
                if let LineInstruction::DefineFile(_) = instruction {
                    self.take_path(folder)?;
                }
            }
        }
        Ok(())
    }

    fn take_path(&self, size: usize) -> Result<(), String> {
        match self.paths.take(size) {
            true => Ok(()),
            false => Err("the paths of very many of its source files share long texts".to_owned()),
        }
    }
}

const SHARED_LINES: &str = "very many of its units refer to the same line program";

/// Returns the offset of a unit's line program, to which this attribute of the unit refers.
pub(in crate::symbol) fn line_program_offset(
    dwarf: &Dwarf<DwarfSlice<'_>>,
    header: UnitHeader<DwarfSlice<'_>>,
    attribute: DwAt,
) -> Option<DebugLineOffset> {
    let abbreviations = dwarf.abbreviations(&header).ok()?;
    let root = header.entry(&abbreviations, header.root_offset()).ok()?;
    match root.attr_value(attribute)? {
        AttributeValue::DebugLineRef(at) => Some(at),
        AttributeValue::SecOffset(at) => Some(DebugLineOffset(at)),
        value => Some(DebugLineOffset(usize::try_from(value.udata_value()?).ok()?)),
    }
}

/// Returns the sizes of the header and of the instructions of a line program.
pub(in crate::symbol) fn line_program_size(
    dwarf: &Dwarf<DwarfSlice<'_>>,
    at: DebugLineOffset,
) -> Option<(usize, usize)> {
    let mut bytes = *dwarf.debug_line.reader();
    bytes.skip(at.0).ok()?;
    let (size, format) = bytes.read_initial_length().ok()?;
    bytes.truncate(size).ok()?;
    if bytes.read_u16().ok()? >= 5 {
        bytes.skip(2).ok()?;
    }
    let size = bytes.read_length(format).ok()?;
    Some((size, bytes.len().checked_sub(size)?))
}

/// Checks all units. Returns the split units of the units that may contain one of the sorted addresses.
///
/// # Errors
/// Returns the reason why addr2line must not read the file.
pub(super) fn check(dwarf: &Dwarf<DwarfSlice<'_>>, addresses: &[u64]) -> Result<Vec<SplitReference>, String> {
    let sup = dwarf.sup();
    let limits = UnitLimits::new(units_size(dwarf) + sup.map_or(0, units_size), ranges_size(dwarf));
    // addr2line reads no entries of these units but those to which others refer.
    if let Some(sup) = sup {
        headers(sup)?.into_par_iter().try_for_each(|header| limits.count_header(sup, header).map(|_| ()))?;
    }
    let headers = headers(dwarf)?.into_par_iter();
    let split =
        headers.map(|header| check_unit(dwarf, header, addresses, &limits)).collect::<Result<Vec<_>, _>>()?;
    Ok(split.into_iter().flatten().collect())
}

fn headers<'a>(dwarf: &Dwarf<DwarfSlice<'a>>) -> Result<Vec<UnitHeader<DwarfSlice<'a>>>, String> {
    let mut headers = Vec::new();
    let mut units = dwarf.units();
    while let Some(header) = units.next().map_err(|error| error.to_string())? {
        headers.push(header);
    }
    Ok(headers)
}

fn check_unit(
    dwarf: &Dwarf<DwarfSlice<'_>>,
    header: UnitHeader<DwarfSlice<'_>>,
    addresses: &[u64],
    limits: &UnitLimits,
) -> Result<Option<SplitReference>, String> {
    // addr2line skips these units.
    if matches!(header.type_(), UnitType::Type { .. } | UnitType::SplitType { .. }) {
        return Ok(None);
    }
    let instructions = limits.count_header(dwarf, header)?;
    // addr2line looks for no code in partial units.
    if header.type_() == UnitType::Partial {
        return Ok(None);
    }
    let Ok(unit) = dwarf.unit(header) else { return Ok(None) };
    limits
        .take_path(unit.comp_dir.map_or(0, |folder| folder.len()) + unit.name.map_or(0, |name| name.len()))?;
    let root = unit.entry(header.root_offset()).ok().and_then(|root| root.attr_value(DW_AT_ranges));
    let list = root.and_then(|value| dwarf.attr_ranges_offset(&unit, value).ok().flatten());
    if let Some(list) = list.and_then(|list| dwarf.raw_ranges(&unit, list).ok()) {
        count_ranges(list, &limits.unit_ranges)?;
    }
    if !holds_any(dwarf, &unit, addresses, || true) {
        return Ok(None);
    }
    limits.count_lines(dwarf, &unit, instructions)?;
    let checked = depth::check(dwarf, &unit, &limits.function_ranges);
    // Each level takes at least one byte. A malformed unit does not prevent the use of other units.
    let is_small = header.length_including_self() <= MOST_DEEP && !limits.function_ranges.is_exceeded();
    if !is_small {
        checked?;
    }
    Ok(unit.dwo_id.map(|id| {
        let name = unit.dwo_name().ok().flatten().and_then(|name| dwarf.attr_string(&unit, name).ok());
        let part = |slice: DwarfSlice<'_>| PathBuf::from(OsStr::from_bytes(slice.slice()));
        let path = name.map(|name| unit.comp_dir.map(part).unwrap_or_default().join(part(name)));
        SplitReference { id, path }
    }))
}

/// Whether a unit may contain one of the sorted addresses. This includes units without a list of ranges, and
/// units whose list is not read further because `may_read` forbids it.
pub(in crate::symbol) fn holds_any<'a>(
    dwarf: &Dwarf<DwarfSlice<'a>>,
    unit: &gimli::Unit<DwarfSlice<'a>>,
    addresses: &[u64],
    may_read: impl FnMut() -> bool,
) -> bool {
    let Ok(root) = unit.entry(unit.header.root_offset()) else { return true };
    let mut is_empty = true;
    for range in ranges(dwarf, unit, &root, may_read) {
        is_empty = false;
        let at = addresses.partition_point(|address| *address < range.begin);
        if addresses.get(at).is_some_and(|address| *address < range.end) {
            return true;
        }
    }
    is_empty
}
