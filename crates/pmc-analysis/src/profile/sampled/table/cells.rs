//! Makes the cells of rows from their sort keys.
//!
//! [`CodeCells`] keeps the cells of each call, so that most calls cost one look-up. [`sample_cells`] makes
//! those that describe samples.

use rustc_hash::FxHashMap;

use super::{CellInterner, RowSelection, TableRequest};
use crate::profile::sampled::cell::RowCell;
use crate::profile::sampled::code::LocationCall;
use crate::profile::sampled::code_cells::{CodeFacts, CodeValue, UNKNOWN_OFFSET};
use crate::profile::sampled::sample_cells::SampleCells;
use crate::profile::sampled::sort::{KeySource, SortKey};
use crate::profile::sampled::strings::{StringId, StringTable};
use crate::profile::sampled::table_input::TableInput;
use crate::session::intern::words;
use crate::session::samples::RowKey;

/// Part number of calls whose rows are excluded.
pub(in crate::profile::sampled) const NOT_WANTED: u32 = u32::MAX;
/// Part number of calls that have not occurred in a row yet.
const NOT_ASKED: u32 = u32::MAX - 1;

/// The properties of a call that keys depend on: function, line, offset in the function, module, address.
type CallProperties = (LocationCall, (Option<StringId>, u32), u64, Option<u32>, Option<u64>);

/// Maximum number of cached parts. In a hostile recording, each sample may have a different part.
const MOST_KNOWN: usize = 1 << 14;

/// The part number of each call and each leaf, computed when a row first needs it.
pub(in crate::profile::sampled) struct CodeCells<'a> {
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
    pub(in crate::profile::sampled) fn new(input: &'a TableInput<'a>, request: TableRequest<'a>) -> Self {
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
    pub(in crate::profile::sampled) fn get(&self, part: u32) -> &[RowCell] {
        self.parts.get(part)
    }

    /// Returns the call that receives the own cost of samples at a location.
    pub(in crate::profile::sampled) fn own_call(&self, location: u32) -> usize {
        let range = self.input.code.range(location);
        if self.innermost { range.start } else { range.end - 1 }
    }

    pub(in crate::profile::sampled) fn call(
        &mut self,
        call: usize,
        location: u32,
        texts: &StringTable,
    ) -> u32 {
        if self.of_call[call] == NOT_ASKED {
            self.of_call[call] = self.part(call, call, location, texts);
        }
        self.of_call[call]
    }

    /// Returns the part for a sample at a location. The part's function is the one that contains the code, or
    /// the innermost function if requested. The part's line is always the line in the innermost function,
    /// inlined or not.
    pub(in crate::profile::sampled) fn leaf(&mut self, location: u32, texts: &StringTable) -> u32 {
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

/// Returns the cells of all keys that describe samples, in the order of the keys.
pub(in crate::profile::sampled) fn sample_cells(
    input: &TableInput<'_>,
    keys: &[SortKey],
    key: &RowKey,
    texts: &mut StringTable,
) -> Vec<RowCell> {
    let attributes = match input.attribute_kinds.is_empty() {
        true => None,
        false => Some(words(input.attributes.get(key.attributes).1)),
    };
    let mut sample = SampleCells { input, comm: key.comm, attributes, texts };
    keys.iter().filter_map(|key| sample.cell(*key)).collect()
}

impl SampleCells<'_> {
    /// Returns the key's value; `None` if the key describes code.
    fn cell(&mut self, key: SortKey) -> Option<RowCell> {
        if let SortKey::TraceField(field) = key {
            return Some(self.trace_field(field));
        }
        match key.source() {
            KeySource::Name(value) => Some(value(self, None)),
            KeySource::Sample(attribute, value) => {
                let word = self.word(attribute);
                Some(value(self, word))
            }
            KeySource::Code(_) | KeySource::BranchTarget(_) => None,
        }
    }
}
