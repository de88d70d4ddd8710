//! Cells that describe code: functions, modules and lines. Each caller in a stack has its own.
//!
//! Receives the keys of a table that are properties of code. [`CodeCells`] keeps the cells of each call, so
//! that most calls cost one look-up. The functions at the end of this file are the values of the keys.

use rustc_hash::FxHashMap;

use super::code::LocationCall;
use super::place;
use super::sort::{RowCell, SortKey};
use super::strings::{StringId, StringTable};
use super::table::{CellInterner, RowSelection, TableRequest};
use super::table_input::{RowStrings, TableInput};

/// Part number of calls whose rows are excluded.
pub(super) const NOT_WANTED: u32 = u32::MAX;
/// Part number of calls that have not occurred in a row yet.
const NOT_ASKED: u32 = u32::MAX - 1;
/// Marks an offset into a function whose start is unknown.
const UNKNOWN_OFFSET: u64 = u64::MAX;

/// The properties of a call that keys depend on: function, line, offset in the function, module, address.
type CallProperties = (LocationCall, (Option<StringId>, u32), u64, Option<u32>, Option<u64>);

/// Maximum number of cached parts. In a hostile recording, each sample may have a different part.
const MOST_KNOWN: usize = 1 << 14;

/// The part number of each call and each leaf, computed when a row first needs it.
pub(super) struct CodeCells<'a> {
    input: &'a TableInput<'a>,
    /// The keys that describe code, and the functions that return their values.
    keys: Vec<(SortKey, CodeValue)>,
    only: &'a RowSelection,
    parts: CellInterner,
    of_call: Vec<u32>,
    of_leaf: Vec<u32>,
    cells: Vec<RowCell>,
    /// Part numbers by the properties that keys depend on. Most calls are found in this map, so their cells
    /// are not built again. It is a cache, which is cleared when it reaches [`MOST_KNOWN`] entries.
    known: FxHashMap<CallProperties, u32>,
    innermost: bool,
    has_lines: bool,
    has_offsets: bool,
    has_modules: bool,
}

impl<'a> CodeCells<'a> {
    pub(super) fn new(input: &'a TableInput<'a>, request: TableRequest<'a>) -> Self {
        let keys = request.keys;
        let keys: Vec<(SortKey, CodeValue)> =
            keys.iter().filter_map(|key| Some((*key, key.code_value()?))).collect();
        let contains = |wanted| keys.iter().any(|(key, _)| *key == wanted);
        Self {
            input,
            only: request.only,
            parts: CellInterner::default(),
            of_call: vec![NOT_ASKED; input.code.calls().len()],
            of_leaf: vec![NOT_ASKED; input.code.len()],
            cells: Vec::new(),
            known: FxHashMap::default(),
            innermost: request.innermost,
            has_lines: keys.iter().any(|(key, _)| key.needs_lines()),
            has_offsets: contains(SortKey::SymbolOffset),
            has_modules: contains(SortKey::DsoSize),
            keys,
        }
    }

    /// Returns the cells of a part.
    pub(super) fn get(&self, part: u32) -> &[RowCell] {
        self.parts.get(part)
    }

    /// Returns the call that receives the own cost of samples at a location.
    pub(super) fn own_call(&self, location: u32) -> usize {
        let range = self.input.code.range(location);
        if self.innermost { range.start } else { range.end - 1 }
    }

    pub(super) fn call(&mut self, call: usize, location: u32, texts: &StringTable) -> u32 {
        if self.of_call[call] == NOT_ASKED {
            self.of_call[call] = self.part(call, call, location, texts);
        }
        self.of_call[call]
    }

    /// Returns the part for a sample at a location. The part's function is the one that contains the code, or
    /// the innermost function if requested. The part's line is always the line in the innermost function,
    /// inlined or not.
    pub(super) fn leaf(&mut self, location: u32, texts: &StringTable) -> u32 {
        if self.of_leaf[location as usize] == NOT_ASKED {
            let range = self.input.code.range(location);
            self.of_leaf[location as usize] = match range.len() {
                1 => self.call(range.start, location, texts),
                _ if self.innermost => self.call(range.start, location, texts),
                _ => self.part(range.end - 1, range.start, location, texts),
            };
        }
        self.of_leaf[location as usize]
    }

    /// Returns the part for the function of the call `call` and the source line of the call `at`. Both calls
    /// are at the location.
    fn part(&mut self, call: usize, at: usize, location: u32, texts: &StringTable) -> u32 {
        let (call, at) = (&self.input.code.calls()[call], &self.input.code.calls()[at]);
        // Clear the fields that do not affect the part.
        let plain = LocationCall { file: None, line: 0, start: None, inlined: false, ..*call };
        let place = if self.has_lines { (at.file, at.line) } else { (None, 0) };
        let into = call.start.filter(|_| self.has_offsets).map_or(UNKNOWN_OFFSET, |start| {
            self.input.resolved.locations[location as usize].offset.wrapping_sub(start.get())
        });
        let is_imported = self.input.code.is_imported;
        let module = self.input.code.module(location).filter(|_| self.has_modules && !is_imported);
        let address = self.input.offset(location).filter(|_| self.has_lines && at.file.is_none());
        let asked = (plain, place, into, module, address);
        if let Some(part) = self.known.get(&asked) {
            return *part;
        }
        if self.known.len() >= MOST_KNOWN {
            self.known.clear();
        }
        if !(self.only.has_module(call, texts) && self.only.has_function(call, texts)) {
            self.known.insert(asked, NOT_WANTED);
            return NOT_WANTED;
        }
        let facts = CodeFacts { call, at, into, module, address, is_imported, words: self.input.words };
        self.cells.clear();
        self.cells.extend(self.keys.iter().map(|(_, value)| value(&facts)));
        let part = self.parts.add(&self.cells);
        self.known.insert(asked, part);
        part
    }
}

/// What the value of a key may depend on.
pub(super) struct CodeFacts<'a> {
    call: &'a LocationCall,
    /// The innermost call at the same location, whose source line is shown.
    at: &'a LocationCall,
    /// Offset from the start of the function; [`UNKNOWN_OFFSET`] if unknown or not asked for.
    into: u64,
    /// The module, if a key asks for it.
    module: Option<u32>,
    /// The address in the module, if a key asks for a line and the line is unknown.
    address: Option<u64>,
    /// Whether the recording is an imported profile.
    is_imported: bool,
    words: &'a dyn RowStrings,
}

/// Returns a key's value.
pub(super) type CodeValue = fn(&CodeFacts<'_>) -> RowCell;

pub(super) fn module(facts: &CodeFacts<'_>) -> RowCell {
    RowCell::Text(facts.call.dso)
}

pub(super) fn module_size(facts: &CodeFacts<'_>) -> RowCell {
    let size = facts.module.and_then(|module| facts.words.mapped(module));
    size.map_or(RowCell::Unknown, |size| RowCell::Number(size as i64))
}

pub(super) fn symbol(facts: &CodeFacts<'_>) -> RowCell {
    RowCell::Symbol(facts.call.level.letter(), facts.call.symbol)
}

pub(super) fn symbol_size(facts: &CodeFacts<'_>) -> RowCell {
    match facts.call.size {
        0 => RowCell::Unknown,
        size => RowCell::Number(i64::from(size)),
    }
}

pub(super) fn symbol_offset(facts: &CodeFacts<'_>) -> RowCell {
    match u32::try_from(facts.into) {
        Ok(into) => RowCell::Offset(facts.call.level.letter(), facts.call.symbol, into),
        Err(_) => symbol(facts),
    }
}

pub(super) fn line(facts: &CodeFacts<'_>) -> RowCell {
    // An imported function has no address from which an offset could be computed.
    if facts.is_imported && facts.at.file.is_none() {
        return RowCell::Text(facts.call.symbol);
    }
    place::line(facts.call, facts.at, facts.address)
}

pub(super) fn file(facts: &CodeFacts<'_>) -> RowCell {
    facts.at.file.map_or(RowCell::Unknown, RowCell::Text)
}
