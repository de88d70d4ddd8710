//! Navigates between the entries (DIEs) of untrusted debug information.
//!
//! Takes the sections of a file; returns entries and their attributes, including those that an entry inherits
//! from its abstract origin or declaration. The number of references followed is bounded, because a hostile
//! file may contain cycles. The work of a request is bounded ([`RequestLimits`]), because many entries of
//! a hostile file may share one long list.

use std::cell::RefCell;
use std::rc::Rc;

use gimli::{
    AttributeValue, DebuggingInformationEntry, Dwarf, IncompleteLineProgram, Range, Unit, UnitHeader,
    UnitOffset, UnitType, constants as dw,
};
use rustc_hash::FxHashMap;

use crate::symbol::dwarf::abbreviations::DW_AT_partial_stmt_list;
use crate::symbol::dwarf::sections::{DwarfSlice, SmallFile, WorkLimit, ranges, ranges_size, units_size};
use crate::symbol::dwarf::units::{LONGEST_HEADER, line_program_offset, line_program_size};

/// Maximum number of references followed for one attribute.
const MOST_ORIGINS: usize = 16;
/// Maximum number of qualifiers and typedefs around a type.
const MOST_QUALIFIERS: usize = 64;
/// Maximum number of units that are kept open because an entry of another unit refers to them.
const MOST_OPENED: usize = 1024;
/// Maximum length of a path, which is also the kernel's.
const LONGEST_PATH: usize = 4 << 10;

/// Maximum number of steps of a request per byte of debug information. Requests about programs of compilers
/// take less than one step per byte.
const MOST_STEPS: usize = 16;
/// The steps take a few seconds.
const SMALL_STEPS: SmallFile = SmallFile { per_byte: 64, most: 256 << 20 };
/// Bytes of debug information per address range that may be stored. A range takes at least 3 bytes in a file,
/// and up to 50 in memory.
pub(super) const BYTES_PER_RANGE: usize = 2;

/// Keeps the time and memory of a request in proportion to the file. In a hostile file, many entries share
/// one long list of ranges or locations, one long name, or one line program.
#[derive(Debug)]
pub(super) struct RequestLimits {
    /// A step is an entry, an item of a list, or a byte of a line program or name. After the last step,
    /// entries have no attributes, so that each search ends soon.
    pub(super) steps: WorkLimit,
    /// Ranges that are stored.
    pub(super) ranges: WorkLimit,
    /// Bytes of the headers of line programs that are stored for partial units. The headers of usual files do
    /// not overlap.
    headers: WorkLimit,
}

impl RequestLimits {
    /// Returns the limits for debug information of this many bytes.
    fn new(bytes: usize) -> Self {
        let steps = WorkLimit::in_proportion(bytes, MOST_STEPS, SMALL_STEPS);
        Self { steps, ranges: WorkLimit::new(bytes / BYTES_PER_RANGE), headers: WorkLimit::new(bytes) }
    }

    /// Starts a new request. The ranges and headers of earlier requests are still stored.
    pub(super) fn restart(&self) {
        self.steps.restart();
        self.ranges.resume();
        self.headers.resume();
    }

    /// Whether a request needed more than allowed, so that its result is incomplete.
    pub(super) fn are_exceeded(&self) -> bool {
        self.steps.is_exceeded() || self.ranges.is_exceeded() || self.headers.is_exceeded()
    }
}

/// A unit, and the sections that contain it.
pub(super) struct DieUnit<'a> {
    pub(super) dwarf: &'a Dwarf<DwarfSlice<'a>>,
    pub(super) unit: Unit<DwarfSlice<'a>>,
    /// Number of bytes of the line program after its header.
    pub(super) instructions: usize,
    /// Whether the unit is in the supplementary file written by dwz.
    is_supplement: bool,
    partial_lines: Rc<PartialLines<'a>>,
    pub(super) work: Rc<RequestLimits>,
}

/// The line programs of partial units. dwz makes thousands of these units, which share few programs.
#[derive(Default)]
struct PartialLines<'a>(RefCell<FxHashMap<(bool, usize), Option<LineProgram<'a>>>>);

type LineProgram<'a> = Rc<IncompleteLineProgram<DwarfSlice<'a>>>;

impl<'a> PartialLines<'a> {
    fn program(&self, home: &DieUnit<'a>) -> Option<LineProgram<'a>> {
        let (dwarf, header) = (home.dwarf, home.unit.header);
        let at = line_program_offset(dwarf, header, DW_AT_partial_stmt_list)?;
        if let Some(known) = self.0.borrow().get(&(home.is_supplement, at.0)) {
            return known.clone();
        }
        let (size, _) = line_program_size(dwarf, at)?;
        let may_read = size <= LONGEST_HEADER && home.work.steps.take(size) && home.work.headers.take(size);
        if !may_read {
            return None;
        }
        // Units in different folders may share the program.
        let program = dwarf.debug_line.program(at, header.address_size(), None, None).ok().map(Rc::new);
        self.0.borrow_mut().insert((home.is_supplement, at.0), program.clone());
        program
    }
}

/// An entry.
#[derive(Clone)]
pub(super) struct Die<'a> {
    pub(super) home: Rc<DieUnit<'a>>,
    pub(super) offset: UnitOffset,
}

/// The entries of a file and of its supplement.
pub(super) struct Dies<'a> {
    dwarf: &'a Dwarf<DwarfSlice<'a>>,
    /// The unit headers of the file and of its supplement, sorted by offset.
    headers: [Vec<UnitHeader<DwarfSlice<'a>>>; 2],
    opened: RefCell<FxHashMap<(bool, usize), Rc<DieUnit<'a>>>>,
    partial_lines: Rc<PartialLines<'a>>,
    pub(super) work: Rc<RequestLimits>,
}

impl<'a> Dies<'a> {
    pub(super) fn new(dwarf: &'a Dwarf<DwarfSlice<'a>>) -> Self {
        let headers = |dwarf: &Dwarf<DwarfSlice<'a>>| {
            let mut units = dwarf.units();
            std::iter::from_fn(|| units.next().ok().flatten()).collect()
        };
        let headers = [headers(dwarf), dwarf.sup().map(headers).unwrap_or_default()];
        let work = Rc::new(RequestLimits::new(size(dwarf) + dwarf.sup().map_or(0, size)));
        Self { dwarf, headers, opened: RefCell::default(), partial_lines: Rc::default(), work }
    }

    /// Iterates over the readable units of the file itself, without caching them. Omits the units that only
    /// describe types, many of which share the line program of another unit.
    pub(super) fn units(&self) -> impl Iterator<Item = Rc<DieUnit<'a>>> + '_ {
        let is_type = |kind| matches!(kind, UnitType::Type { .. } | UnitType::SplitType { .. });
        let headers = self.headers[0].iter().filter(move |header| !is_type(header.type_()));
        headers.filter_map(|header| Some(Rc::new(self.open(false, *header)?)))
    }

    /// Opens a unit. Reads the header of its line program, except for partial units.
    fn open(&self, is_supplement: bool, header: UnitHeader<DwarfSlice<'a>>) -> Option<DieUnit<'a>> {
        let dwarf = if is_supplement { self.dwarf.sup()? } else { self.dwarf };
        let program = line_program_offset(dwarf, header, dw::DW_AT_stmt_list);
        let (size, instructions) = program.and_then(|at| line_program_size(dwarf, at)).unwrap_or_default();
        if size > LONGEST_HEADER || !self.work.steps.take(1 + size) {
            return None;
        }
        let unit = dwarf.unit(header).ok()?;
        let (partial_lines, work) = (self.partial_lines.clone(), self.work.clone());
        Some(DieUnit { dwarf, unit, instructions, is_supplement, partial_lines, work })
    }

    /// Whether the file has no units.
    pub(super) fn is_empty(&self) -> bool {
        self.headers[0].is_empty()
    }

    fn unit(&self, is_supplement: bool, number: usize) -> Option<Rc<DieUnit<'a>>> {
        if let Some(unit) = self.opened.borrow().get(&(is_supplement, number)) {
            return Some(unit.clone());
        }
        let unit = Rc::new(self.open(is_supplement, self.headers[usize::from(is_supplement)][number])?);
        let mut opened = self.opened.borrow_mut();
        if opened.len() >= MOST_OPENED {
            opened.clear();
        }
        opened.insert((is_supplement, number), unit.clone());
        Some(unit)
    }

    /// The entry at an offset of `.debug_info`.
    fn at(&self, is_supplement: bool, offset: gimli::DebugInfoOffset) -> Option<Die<'a>> {
        let headers = &self.headers[usize::from(is_supplement)];
        let start = |header: &UnitHeader<DwarfSlice<'a>>| header.debug_info_offset().map_or(0, |at| at.0);
        let number = headers.partition_point(|header| start(header) <= offset.0).checked_sub(1)?;
        let offset = offset.to_unit_offset(&headers[number])?;
        Some(Die { home: self.unit(is_supplement, number)?, offset })
    }

    /// The entry that an attribute of `die` refers to.
    fn referred(&self, die: &Die<'a>, value: AttributeValue<DwarfSlice<'a>>) -> Option<Die<'a>> {
        match value {
            AttributeValue::UnitRef(offset) => Some(Die { home: die.home.clone(), offset }),
            AttributeValue::DebugInfoRef(offset) => self.at(die.home.is_supplement, offset),
            AttributeValue::DebugInfoRefSup(offset) => self.at(true, offset),
            _ => None,
        }
    }

    /// Returns an attribute of the entry, or of its abstract origin or declaration, with the entry that
    /// contains the attribute.
    fn inherited(
        &self,
        die: &Die<'a>,
        name: gimli::DwAt,
    ) -> Option<(Die<'a>, AttributeValue<DwarfSlice<'a>>)> {
        let mut die = die.clone();
        for _ in 0..MOST_ORIGINS {
            let entry = die.entry()?;
            if let Some(value) = entry.attr_value(name) {
                return Some((die, value));
            }
            let origin = entry
                .attr_value(dw::DW_AT_abstract_origin)
                .or_else(|| entry.attr_value(dw::DW_AT_specification))?;
            die = self.referred(&die, origin)?;
        }
        None
    }

    /// The entry that an attribute refers to.
    pub(super) fn reference(&self, die: &Die<'a>, name: gimli::DwAt) -> Option<Die<'a>> {
        let (holder, value) = self.inherited(die, name)?;
        self.referred(&holder, value)
    }

    /// The abstract function of an inlined or out-of-line instance; the entry itself if it has none.
    pub(super) fn origin(&self, die: &Die<'a>) -> Die<'a> {
        let mut die = die.clone();
        for _ in 0..MOST_ORIGINS {
            let origin = die.entry().and_then(|entry| entry.attr_value(dw::DW_AT_abstract_origin));
            match origin.and_then(|origin| self.referred(&die, origin)) {
                Some(origin) => die = origin,
                None => break,
            }
        }
        die
    }

    pub(super) fn number(&self, die: &Die<'a>, name: gimli::DwAt) -> Option<u64> {
        self.inherited(die, name)?.1.udata_value()
    }

    /// A string attribute.
    fn text(&self, die: &Die<'a>, name: gimli::DwAt) -> Option<String> {
        let (holder, value) = self.inherited(die, name)?;
        let text = holder.home.dwarf.attr_string(&holder.home.unit, value).ok()?;
        self.work.steps.take(text.len()).then(|| text.to_string_lossy().into_owned())
    }

    /// The source name.
    pub(super) fn name(&self, die: &Die<'a>) -> Option<String> {
        self.text(die, dw::DW_AT_name)
    }

    /// The linker's name.
    pub(super) fn linkage_name(&self, die: &Die<'a>) -> Option<String> {
        self.text(die, dw::DW_AT_linkage_name).or_else(|| self.text(die, dw::DW_AT_MIPS_linkage_name))
    }

    /// The file and line of the declaration.
    pub(super) fn declared(&self, die: &Die<'a>) -> Option<(Die<'a>, u64, u32)> {
        let (holder, value) = self.inherited(die, dw::DW_AT_decl_file)?;
        let file = match value {
            AttributeValue::FileIndex(file) => file,
            value => value.udata_value()?,
        };
        Some((holder, file, u32::try_from(self.number(die, dw::DW_AT_decl_line)?).ok()?))
    }

    /// The type, with qualifiers and typedefs.
    pub(super) fn kind(&self, die: &Die<'a>) -> Option<Die<'a>> {
        self.reference(die, dw::DW_AT_type)
    }

    /// The type without qualifiers and typedefs.
    pub(super) fn plain_kind(&self, die: &Die<'a>) -> Option<Die<'a>> {
        let mut kind = self.kind(die)?;
        for _ in 0..MOST_QUALIFIERS {
            match kind.tag()? {
                tag if is_qualifier(tag) || tag == dw::DW_TAG_typedef => kind = self.kind(&kind)?,
                _ => return Some(kind),
            }
        }
        None
    }
}

/// Returns the number of bytes of the entries, rows and ranges.
fn size(dwarf: &Dwarf<DwarfSlice<'_>>) -> usize {
    units_size(dwarf) + ranges_size(dwarf)
}

/// Whether a type only adds a qualifier such as `const` to another type.
pub(super) fn is_qualifier(tag: gimli::DwTag) -> bool {
    matches!(
        tag,
        dw::DW_TAG_const_type
            | dw::DW_TAG_volatile_type
            | dw::DW_TAG_restrict_type
            | dw::DW_TAG_atomic_type
            | dw::DW_TAG_shared_type
    )
}

impl<'a> DieUnit<'a> {
    /// The path of a source file. It is absolute if the compiler's directory is known.
    pub(super) fn path(&self, file: u64) -> Option<String> {
        let short = |text: DwarfSlice<'a>| {
            let is_short = self.work.steps.take(text.len()) && text.len() <= LONGEST_PATH;
            is_short.then(|| text.to_string_lossy().into_owned())
        };
        let text = |value| short(self.dwarf.attr_string(&self.unit, value).ok()?);
        let below = |folder: &str, name: String| match name.starts_with('/') || folder.is_empty() {
            true => name,
            false => format!("{}/{name}", folder.trim_end_matches('/')),
        };
        let shared = self.unit.line_program.is_none().then(|| self.partial_lines.program(self)).flatten();
        let header = self.unit.line_program.as_ref().or(shared.as_deref())?.header();
        let file = header.file(file)?;
        let base = self.unit.comp_dir.and_then(short).unwrap_or_default();
        let folder = file.directory(header).and_then(text).map(|folder| below(&base, folder));
        Some(below(folder.as_deref().unwrap_or(&base), text(file.path_name())?))
    }

    /// Number of source files, including an unused number 0 before DWARF 5.
    pub(super) fn path_count(&self) -> u64 {
        let program = self.unit.line_program.as_ref();
        program.map_or(0, |program| program.header().file_names().len() as u64 + 1)
    }
}

impl<'a> Die<'a> {
    pub(super) fn entry(&self) -> Option<DebuggingInformationEntry<DwarfSlice<'a>>> {
        if self.home.work.steps.take(1) { self.home.unit.entry(self.offset).ok() } else { None }
    }

    pub(super) fn tag(&self) -> Option<gimli::DwTag> {
        Some(self.entry()?.tag())
    }

    /// The entry's position, which identifies the entry.
    pub(super) fn position(&self) -> (bool, usize) {
        let at = self.offset.to_unit_section_offset(&self.home.unit.header).0;
        (self.home.is_supplement, at)
    }

    /// Returns an attribute of the entry itself, ignoring its origin.
    pub(super) fn own(&self, name: gimli::DwAt) -> Option<AttributeValue<DwarfSlice<'a>>> {
        self.entry()?.attr_value(name)
    }

    pub(super) fn sibling(&self, offset: UnitOffset) -> Self {
        Self { home: self.home.clone(), offset }
    }

    /// The direct children. Reads at most `left` entries, including indirect children, and subtracts their
    /// number from `left`.
    pub(super) fn children(&self, left: &mut usize) -> Vec<Self> {
        let mut children = Vec::new();
        let Ok(mut entries) = self.home.unit.entries_at_offset(self.offset) else { return children };
        while let Ok(Some(entry)) = entries.next_dfs() {
            let Some(rest) = left.checked_sub(1) else { break };
            *left = rest;
            match entry.depth() {
                0 if entry.offset() == self.offset => {}
                ..=0 => break,
                1 => children.push(self.sibling(entry.offset())),
                _ => {}
            }
        }
        children
    }

    /// The non-empty address ranges.
    pub(super) fn ranges(&self) -> impl Iterator<Item = Range> + use<'a> {
        let work = self.home.work.clone();
        let read = |entry| ranges(self.home.dwarf, &self.home.unit, &entry, move || work.steps.take(1));
        let all = self.entry().map(read).into_iter().flatten();
        all.filter(|range| range.begin < range.end && range.begin != 0)
    }

    /// Whether the entry has code.
    pub(super) fn has_code(&self) -> bool {
        self.ranges().next().is_some()
    }

    /// The address of the first instruction.
    pub(super) fn entry_address(&self) -> Option<u64> {
        let address = |name| {
            let value = self.own(name)?;
            self.home.dwarf.attr_address(&self.home.unit, value).ok().flatten()
        };
        let entry = address(dw::DW_AT_entry_pc).or_else(|| {
            // DWARF 5 also allows an offset from the base address.
            let offset = self.own(dw::DW_AT_entry_pc)?.udata_value()?;
            address(dw::DW_AT_low_pc)?.checked_add(offset)
        });
        let low = || address(dw::DW_AT_low_pc).filter(|low| *low != 0);
        entry.filter(|entry| *entry != 0).or_else(low).or_else(|| Some(self.ranges().next()?.begin))
    }
}
