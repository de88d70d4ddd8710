//! Cells for branches and data accesses. They describe addresses in a sample other than the address of its
//! instruction.

use super::{LocationCall, LocationCalls, RowCell, SortKey, StringTable};
use crate::session::samples::SampleAttribute;
use pmc_perfdata::record::decode::{BranchFlags, DataSource};

/// A function that returns an attribute of a row.
type RowAttribute<'a> = dyn Fn(fn(&SampleAttribute) -> bool) -> Option<u64> + 'a;

/// Returns the call at the location whose number is in an attribute.
fn call(code: &LocationCalls, word: Option<u64>) -> Option<&LocationCall> {
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

/// Returns a cell for the source, target or flags of a branch.
///
/// `offset` returns the address of a location in its module's own address space.
pub(super) fn of_branch(
    key: SortKey,
    code: &LocationCalls,
    word: &RowAttribute<'_>,
    offset: &dyn Fn(u32) -> Option<u64>,
    texts: &mut StringTable,
) -> RowCell {
    let address = |word: Option<u64>| match word {
        Some(word) if word != u64::MAX => RowCell::Address(word),
        _ => RowCell::Unknown,
    };
    match key {
        SortKey::AddrFrom => return address(word(|e| *e == SampleAttribute::FromAddr)),
        SortKey::AddrTo => return address(word(|e| *e == SampleAttribute::ToAddr)),
        SortKey::SymbolFrom | SortKey::DsoFrom | SortKey::SrcLineFrom => {
            let Some(call) = call(code, word(|e| *e == SampleAttribute::From)) else {
                return RowCell::Unknown;
            };
            return match key {
                SortKey::SymbolFrom => RowCell::Symbol(call.level.letter(), call.symbol),
                SortKey::DsoFrom => RowCell::Text(call.dso),
                _ => {
                    let location = word(|e| *e == SampleAttribute::From);
                    line(call, call, location.and_then(|location| offset(location as u32)))
                }
            };
        }
        _ => {}
    }
    let Some(flags) = word(|e| *e == SampleAttribute::BranchFlags).filter(|word| *word != u64::MAX) else {
        return RowCell::Unknown;
    };
    let flags = BranchFlags(flags);
    let mut letter = |letter: &str| RowCell::Text(texts.add(letter));
    // These are the letters that perf prints.
    match key {
        SortKey::Mispredict if flags.is_predicted() => letter("N"),
        SortKey::Mispredict if flags.is_mispredicted() => letter("Y"),
        SortKey::Mispredict => letter("N/A"),
        SortKey::InTx => letter(if flags.in_tx() { "T" } else { "." }),
        SortKey::Abort => letter(if flags.is_abort() { "A" } else { "." }),
        _ if flags.cycles() == 0 => letter("-"),
        _ => RowCell::Number(flags.cycles().into()),
    }
}

/// Returns a cell for the data that a sample accesses.
pub(super) fn of_data(key: SortKey, code: &LocationCalls, word: &RowAttribute<'_>) -> RowCell {
    let word = match key {
        SortKey::DCacheLine => word(|e| *e == SampleAttribute::DataLine),
        _ => word(|e| *e == SampleAttribute::Data),
    };
    let Some(call) = call(code, word) else { return RowCell::Unknown };
    match key {
        SortKey::DsoDaddr => RowCell::Text(call.dso),
        _ => RowCell::Symbol(call.level.letter(), call.symbol),
    }
}

/// Returns a cell for the source of the accessed data, in perf's wording.
pub(super) fn of_source(key: SortKey, word: u64, texts: &mut StringTable) -> RowCell {
    let source = DataSource(word);
    RowCell::Text(match key {
        SortKey::Mem => texts.add(&source.level_words()),
        SortKey::Snoop => texts.add(&source.snoop_words()),
        SortKey::Tlb => texts.add(&source.tlb_words()),
        SortKey::Locked => texts.add(source.lock_words()),
        SortKey::MemOp => texts.add(source.operation_class()),
        SortKey::Cache => texts.add(source.cache_class()),
        SortKey::Memory => texts.add(source.memory_class()),
        SortKey::DTlb => texts.add(source.dtlb_class()),
        _ => texts.add(source.blocked_words().trim_start()),
    })
}
