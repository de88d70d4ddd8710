//! Functions in the symbol tables, for programs without debug information.

use object::SymbolKind;
use object::read::{Object, ObjectSection, ObjectSymbol};

use crate::symbol::demangle::demangle;
use crate::symbol::files::elf;
use crate::symbol::tables::table::most_names;
use pmc_text::text::glob;

/// A function in a symbol table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ElfFunction {
    pub(super) address: u64,
    pub(super) size: u64,
    pub(super) name: String,
}

/// The functions in a file's symbol tables, sorted by address.
#[derive(Debug)]
pub(super) struct ElfFunctions {
    functions: Vec<ElfFunction>,
    /// Whether the file has only the symbols for dynamic linking.
    pub(super) is_stripped: bool,
    imported: Vec<String>,
}

impl ElfFunctions {
    /// Reads the symbol tables of the program and its debug file, and the program's compressed reduced table
    /// (`.gnu_debugdata`).
    pub(super) fn read(file: &object::File<'_>, debug: Option<&object::File<'_>>) -> Self {
        let mut found = Self { functions: Vec::new(), is_stripped: true, imported: Vec::new() };
        found.add(file);
        if let Some(debug) = debug {
            found.add(debug);
        }
        if found.is_stripped
            && let Some(bytes) = elf::mini_debug(file)
            && let Ok(reduced) = object::File::parse(&*bytes)
        {
            found.add(&reduced);
        }
        found.functions.sort_unstable();
        found.functions.dedup();
        found
    }

    fn add(&mut self, file: &object::File<'_>) {
        self.is_stripped &= !elf::has_symtab(file);
        let strings = [".strtab", ".dynstr"].into_iter().filter_map(|name| file.section_by_name(name));
        let mut left = most_names(
            strings.map(|section| section.data().map_or(0, <[u8]>::len)).fold(0, usize::saturating_add),
        );
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            let Ok(name) = symbol.name() else { continue };
            if name.is_empty() || symbol.kind() != SymbolKind::Text && !symbol.is_undefined() {
                continue;
            }
            let name = name.split_once('@').map_or(name, |(name, _)| name).to_owned();
            let Some(rest) = left.checked_sub(name.len()) else { break };
            left = rest;
            match symbol.is_undefined() {
                true => self.imported.push(name),
                false => {
                    let (address, size) = (symbol.address(), symbol.size());
                    self.functions.push(ElfFunction { address, size, name });
                }
            }
        }
    }

    /// Returns the functions whose names equal or match `wanted`. Each address appears only once.
    pub(super) fn find(&self, wanted: &str) -> Vec<&ElfFunction> {
        let fits = |name: &str| glob::matches(wanted, name);
        let has_name = |name: &str| fits(name) || demangle(name).is_some_and(|demangled| fits(&demangled));
        let mut found: Vec<&ElfFunction> =
            self.functions.iter().filter(|function| has_name(&function.name)).collect();
        found.dedup_by_key(|function| function.address);
        found
    }

    /// The function that contains an address.
    pub(super) fn at(&self, address: u64) -> Option<&ElfFunction> {
        let end = self.functions.partition_point(|function| function.address <= address);
        let last = self.functions[..end].last()?;
        let is_inside = address - last.address < last.size.max(1);
        is_inside.then_some(last)
    }

    pub(super) fn is_imported(&self, name: &str) -> bool {
        self.imported.iter().any(|imported| imported == name)
    }

    /// All names, demangled and sorted.
    pub(super) fn names(&self) -> Vec<String> {
        let readable =
            |function: &ElfFunction| demangle(&function.name).unwrap_or_else(|| function.name.clone());
        let mut names: Vec<String> = self.functions.iter().map(readable).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}
