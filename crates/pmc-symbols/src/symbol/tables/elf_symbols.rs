//! Reads functions and variables from an ELF file's symbol tables.
//!
//! Takes a parsed file; adds its symbols to a [`SymbolTableBuilder`]. Decides which entries of a table are
//! functions. [`plt`](super::plt) handles stubs, and [`table`](super::table) chooses among several names for
//! an address.

use std::borrow::Cow;

use object::read::{File, Object, ObjectSection, ObjectSymbol};
use object::{ObjectKind, SymbolFlags, elf};

use super::table::{NameRank, SymbolTableBuilder};
use crate::symbol::files::elf::{is_code, layout};

/// Adds the functions from both symbol tables. Calls `step` at intervals, so that the caller can release the
/// data read so far.
pub(in crate::symbol) fn add_symbols(file: &File<'_>, into: &mut SymbolTableBuilder, step: &dyn Fn()) {
    /// About one megabyte of a table.
    const STEP: usize = 1 << 15;
    let places = layout(file);
    let relocatable = file.kind() == ObjectKind::Relocatable;
    // Start and end of each code section.
    let mut code: Vec<Option<(u64, u64)>> = Vec::new();
    for section in file.sections().filter(|section| is_code(section.flags())) {
        let start = if relocatable { places.get(&section.index()).copied() } else { Some(section.address()) };
        let at = section.index().0;
        if at >= code.len() {
            code.resize(at + 1, None);
        }
        code[at] = start.map(|start| (start, start.saturating_add(section.size())));
    }
    let mut add = |symbol: object::read::Symbol<'_, '_>| {
        let SymbolFlags::Elf { st_info, .. } = symbol.flags() else { return };
        let (kind, binding) = (st_info.st_type(), st_info.st_bind());
        let function = kind == elf::STT_FUNC || kind == elf::STT_GNU_IFUNC;
        if !function && kind != elf::STT_NOTYPE || symbol.is_undefined() {
            return;
        }
        let section = symbol.section_index().and_then(|index| *code.get(index.0)?);
        let Some((start, end)) = section else { return };
        let address = if relocatable { symbol.address().wrapping_add(start) } else { symbol.address() };
        if !into.wants(address, symbol.size(), end) {
            return;
        }
        let Ok(name) = symbol.name_bytes() else { return };
        if is_mapping_symbol(name) {
            return;
        }
        let rank = NameRank { function, strong: binding != elf::STB_WEAK, global: binding != elf::STB_LOCAL };
        into.add(address, symbol.size(), end, rank, &text(name));
    };
    for (number, symbol) in file.symbols().chain(file.dynamic_symbols()).enumerate() {
        add(symbol);
        if number % STEP == STEP - 1 {
            step();
        }
    }
}

/// Adds the variables from both symbol tables.
pub(in crate::symbol) fn add_variables(file: &File<'_>, into: &mut SymbolTableBuilder) {
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        let SymbolFlags::Elf { st_info, .. } = symbol.flags() else { continue };
        let (kind, binding) = (st_info.st_type(), st_info.st_bind());
        if kind != elf::STT_OBJECT || symbol.is_undefined() || symbol.size() == 0 {
            continue;
        }
        let Ok(name) = symbol.name_bytes() else { continue };
        let (start, size) = (symbol.address(), symbol.size());
        let rank =
            NameRank { function: true, strong: binding != elf::STB_WEAK, global: binding != elf::STB_LOCAL };
        into.add(start, size, start.saturating_add(size), rank, &text(name));
    }
}

/// Like [`String::from_utf8_lossy`], but several times faster for valid UTF-8.
fn text(name: &[u8]) -> Cow<'_, str> {
    str::from_utf8(name).map_or_else(|_| String::from_utf8_lossy(name), Cow::Borrowed)
}

/// Whether a name is not a function but a marker by which assemblers distinguish code from data, such as `$x`
/// or `$d.12`.
fn is_mapping_symbol(name: &[u8]) -> bool {
    matches!(name, [b'$', b'a' | b'd' | b't' | b'x'] | [b'$', b'a' | b'd' | b't' | b'x', b'.', ..])
        || name.starts_with(b".L")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assembler_mapping_symbols_are_skipped() {
        assert!(is_mapping_symbol(b"$x") && is_mapping_symbol(b"$d.42") && is_mapping_symbol(b".Lfoo"));
        assert!(!is_mapping_symbol(b"$xylophone") && !is_mapping_symbol(b"$"));
    }
}
