//! Branches and data accesses: addresses in a sample other than the address of its instruction.

use super::cell::RowCell;
use super::code::{LocationCall, LocationCalls};
use pmc_perfdata::record::decode::BranchFlags;

/// Returns the call at the location whose number is in an attribute.
pub(super) fn call(code: &LocationCalls, word: Option<u64>) -> Option<&LocationCall> {
    let location = u32::try_from(word?).ok()?;
    if location as usize >= code.len() {
        return None;
    }
    code.calls().get(code.own(location))
}

/// Returns a cell for the source line of `at` in the function `of`. If the line is unknown, the cell
/// describes `offset` in the function or module.
pub(super) fn line(of: &LocationCall, at: &LocationCall, offset: Option<u64>) -> RowCell {
    match (at.file, offset, of.start) {
        (Some(file), ..) => RowCell::Line(file, at.line),
        (None, Some(offset), Some(start))
            if of.named && offset.wrapping_sub(start.get()) <= u64::from(u32::MAX) =>
        {
            RowCell::InFunction(of.symbol, (offset - start.get()) as u32)
        }
        (None, Some(offset), _) => RowCell::InModule(of.dso, offset),
        (None, None, _) => RowCell::Unknown,
    }
}

/// Returns the letter that perf prints for the prediction of a branch.
pub(super) fn prediction(flags: BranchFlags) -> &'static str {
    if flags.is_predicted() {
        "N"
    } else if flags.is_mispredicted() {
        "Y"
    } else {
        "N/A"
    }
}
