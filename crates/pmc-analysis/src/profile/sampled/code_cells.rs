//! Cells that describe code: functions, modules and lines. Each caller in a stack has its own.
//!
//! The functions are the values of the sort keys that are properties of code: see the rows in `sort`.

use super::cell::RowCell;
use super::code::LocationCall;
use super::place;
use super::table_input::RowStrings;

/// Marks an offset into a function whose start is unknown.
pub(super) const UNKNOWN_OFFSET: u64 = u64::MAX;

/// What the value of a key may depend on.
pub(super) struct CodeFacts<'a> {
    pub(super) call: &'a LocationCall,
    /// The innermost call at the same location, whose source line is shown.
    pub(super) at: &'a LocationCall,
    /// Offset from the start of the function; [`UNKNOWN_OFFSET`] if unknown or not asked for.
    pub(super) into: u64,
    /// The module, if a key asks for it.
    pub(super) module: Option<u32>,
    /// The address in the module, if a key asks for a line and the line is unknown.
    pub(super) address: Option<u64>,
    /// Whether the recording is an imported profile.
    pub(super) is_imported: bool,
    pub(super) words: &'a dyn RowStrings,
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
