//! Lookup results: functions, source lines, and the frames at an address.
//!
//! A [`ResolvedFrame`] is small and `Copy`; the [`Symbolizer`](super::Symbolizer)'s [`SymbolNames`] store
//! each name once. Names are stored as they are in the file, and must be escaped before they are shown on a
//! terminal.

use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::demangle::{demangle, with_parameters};
use super::module::ModuleId;
use super::name_sources::Placeholder;
use super::tables::table::OwnedSymbol;

/// Identifies a function in [`SymbolNames`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(pub u32);

/// Identifies a source file in [`SymbolNames`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceFileId(pub u32);

/// A function of a module.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Function {
    /// The module that contains it.
    pub module: ModuleId,
    /// The demangled name.
    pub name: Arc<str>,
    /// The mangled name from the symbol table or debug information, for matching.
    pub raw: Arc<str>,
    /// Start of its code, in the module's own address space ([`AddressFrames::address`]). `None` if it is
    /// unknown, or if only inlined copies were found.
    pub start: Option<u64>,
    /// Size of its code in bytes; 0 if unknown.
    pub size: u64,
    /// Whether the name is a placeholder that describes the location, because there is no symbol.
    pub is_placeholder: bool,
}

/// A position in a source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourcePosition {
    /// The file.
    pub file: SourceFileId,
    /// Line number, starting at 1; 0 if the compiler did not record one.
    pub line: u32,
    /// Column number, starting at 1; 0 if unknown.
    pub(crate) column: u32,
}

/// One function at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ResolvedFrame {
    /// The function.
    pub function: FunctionId,
    /// In the innermost frame, the line being executed; in other frames, the line of the call to the next
    /// inner frame.
    pub source: Option<SourcePosition>,
    /// Whether the function was inlined into the next outer frame.
    pub inlined: bool,
}

/// The frames for each address of a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressFrames {
    pub(super) frames: Vec<ResolvedFrame>,
    pub(super) ends: Vec<u32>,
    pub(super) addresses: Vec<u64>,
}

impl AddressFrames {
    /// Returns the frames for the address at `index` in the batch, innermost first; empty if nothing is
    /// known.
    pub fn frames(&self, index: usize) -> &[ResolvedFrame] {
        let Some(&end) = self.ends.get(index) else { return &[] };
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.frames[start as usize..end as usize]
    }

    /// Returns the address in the module's own address space: the address in the file (`Svma`) for ELF files,
    /// the memory address for the kernel and JIT code. The offset that perf prints after `+` is this address
    /// minus [`Function::start`].
    pub fn address(&self, index: usize) -> Option<u64> {
        self.addresses.get(index).copied()
    }

    pub(super) fn push(&mut self, address: u64, frames: impl IntoIterator<Item = ResolvedFrame>) {
        self.frames.extend(frames);
        self.ends.push(self.frames.len() as u32);
        self.addresses.push(address);
    }
}

/// All names found so far, without duplicates.
#[derive(Debug, Default)]
pub struct SymbolNames {
    functions: Vec<Function>,
    function_ids: FxHashMap<(ModuleId, Option<u64>, Arc<str>), FunctionId>,
    /// The first function with each demangled name.
    first: FxHashMap<Arc<str>, FunctionId>,
    /// Functions that share their demangled name with another function, by that name.
    overloads: FxHashMap<Arc<str>, Overloads>,
    /// Number of functions in `first` and `overloads`.
    compared: usize,
    files: Vec<Arc<str>>,
    file_ids: FxHashMap<Arc<str>, SourceFileId>,
}

/// Functions with the same demangled name and different mangled names.
#[derive(Debug)]
struct Overloads {
    /// The functions with their parameters, by mangled name.
    names: FxHashMap<Arc<str>, Arc<str>>,
    /// Whether these names differ. Variants of one constructor are equal.
    differ: bool,
}

impl Function {
    fn demangle(&mut self) {
        if let Some(name) = demangle(&self.raw).filter(|_| !self.is_placeholder) {
            self.name = name.into();
        }
    }

    fn with_parameters(&self) -> Arc<str> {
        with_parameters(&self.raw).map_or_else(|| self.name.clone(), Arc::from)
    }
}

impl SymbolNames {
    /// Returns the function with this ID.
    ///
    /// # Panics
    /// Panics if the ID belongs to another `SymbolNames`.
    pub fn function(&self, id: FunctionId) -> &Function {
        &self.functions[id.0 as usize]
    }

    /// Returns the name to show: with parameters if another function found so far has the same name without.
    pub fn shown(&self, id: FunctionId) -> &Arc<str> {
        let Function { name, raw, .. } = self.function(id);
        let overloads = self.overloads.get(name).filter(|overloads| overloads.differ);
        overloads.and_then(|overloads| overloads.names.get(raw)).unwrap_or(name)
    }

    /// Returns the function's name with its parameters.
    pub fn with_parameters(&self, id: FunctionId) -> Arc<str> {
        self.function(id).with_parameters()
    }

    /// Iterates over the names without parameters that several functions have.
    pub fn overloaded(&self) -> impl Iterator<Item = &Arc<str>> {
        self.overloads.iter().filter(|(_, overloads)| overloads.differ).map(|(name, _)| name)
    }

    /// Iterates over the names of all functions, without parameters.
    pub fn short_names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.first.keys()
    }

    /// Finds functions that share a name, among those demangled since the last call.
    fn compare(&mut self) {
        let Self { functions, first, overloads, compared, .. } = self;
        for (number, function) in functions.iter().enumerate().skip(*compared) {
            if function.is_placeholder {
                continue;
            }
            let id = FunctionId(number as u32);
            let earlier = *first.entry(function.name.clone()).or_insert(id);
            let other = &functions[earlier.0 as usize];
            if other.raw == function.raw {
                continue;
            }
            let alike = overloads.entry(function.name.clone()).or_insert_with(|| {
                let names = FxHashMap::from_iter([(other.raw.clone(), other.with_parameters())]);
                Overloads { names, differ: false }
            });
            let name = function.with_parameters();
            alike.differ |= alike.names.values().any(|other| *other != name);
            alike.names.insert(function.raw.clone(), name);
        }
        *compared = functions.len();
    }

    /// Returns the source file's path, as passed to the compiler.
    ///
    /// # Panics
    /// Panics if the ID belongs to another `SymbolNames`.
    pub fn file(&self, id: SourceFileId) -> &Arc<str> {
        &self.files[id.0 as usize]
    }

    /// All functions, indexed by ID.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// Returns the ID of a function. The same module, name and start always give the same ID. The name stays
    /// mangled until [`SymbolNames::demangle_from`] is called.
    pub(super) fn add_function(
        &mut self,
        module: ModuleId,
        raw: &str,
        start: Option<u64>,
        size: u64,
    ) -> FunctionId {
        let raw: Arc<str> = raw.into();
        *self.function_ids.entry((module, start, raw.clone())).or_insert_with(|| {
            self.functions.push(Function {
                module,
                name: raw.clone(),
                raw,
                start,
                size,
                is_placeholder: false,
            });
            FunctionId(self.functions.len() as u32 - 1)
        })
    }

    /// Returns the ID of a function in a symbol table.
    pub(super) fn add_symbol(&mut self, module: ModuleId, symbol: &OwnedSymbol) -> FunctionId {
        self.add_function(module, &symbol.name, Some(symbol.start), symbol.end.wrapping_sub(symbol.start))
    }

    /// Returns the ID of a function without a symbol.
    pub(super) fn add_placeholder(&mut self, module: ModuleId, placeholder: &Placeholder) -> FunctionId {
        let (start, end) = placeholder.function.unzip();
        let size = end.unwrap_or(0).wrapping_sub(start.unwrap_or(0));
        let id = self.add_function(module, &placeholder.name, start, size);
        self.functions[id.0 as usize].is_placeholder = true;
        id
    }

    /// Demangles the names of all functions from this index on, in parallel.
    pub(super) fn demangle_from(&mut self, first: usize) {
        self.functions[first..].par_iter_mut().for_each(Function::demangle);
        self.compare();
    }

    /// Like [`SymbolNames::demangle_from`], but only on the calling thread.
    pub(super) fn demangle_from_alone(&mut self, first: usize) {
        self.functions[first..].iter_mut().for_each(Function::demangle);
        self.compare();
    }

    /// Returns the ID of a source file.
    pub(super) fn add_file(&mut self, path: &str) -> SourceFileId {
        if let Some(id) = self.file_ids.get(path) {
            return *id;
        }
        let path: Arc<str> = path.into();
        self.files.push(path.clone());
        let id = SourceFileId(self.files.len() as u32 - 1);
        self.file_ids.insert(path, id);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_shown_only_where_names_are_not_unique() {
        let mut names = SymbolNames::default();
        let add = |names: &mut SymbolNames, raw: &str, start: Option<u64>| {
            let first = names.functions().len();
            let id = names.add_function(ModuleId(0), raw, start, 0);
            names.demangle_from_alone(first);
            id
        };
        let int = add(&mut names, "_Z4funci", Some(1));
        assert_eq!(&**names.shown(int), "func");
        // Two variants of one constructor, and another of it without a start, are no overloads.
        let shops = ["_ZN4ShopC1Ei", "_ZN4ShopC2Ei", "_ZN4ShopC1Ei"];
        let starts = [Some(2), Some(3), None];
        let shops = [0, 1, 2].map(|at| add(&mut names, shops[at], starts[at]));
        assert!(shops.iter().all(|shop| &**names.shown(*shop) == "Shop::Shop"));
        let bool = add(&mut names, "_Z4funcb", Some(4));
        let inlined = add(&mut names, "_Z4funci", None);
        let c = add(&mut names, "func", Some(5));
        let cold = add(&mut names, "_Z4funci.cold", Some(6));
        let shown = [int, bool, inlined, c, cold].map(|id| names.shown(id).to_string());
        assert_eq!(shown, ["func(int)", "func(bool)", "func(int)", "func", "func.cold"]);
        let other = add(&mut names, "_ZN4ShopC1EPKc", Some(7));
        let shown = [shops[0], shops[1], shops[2], other].map(|id| names.shown(id).to_string());
        let int = "Shop::Shop(int)";
        assert_eq!(shown, [int, int, int, "Shop::Shop(char const*)"]);
        let mut overloaded: Vec<&str> = names.overloaded().map(|name| &**name).collect();
        overloaded.sort_unstable();
        assert_eq!(overloaded, ["Shop::Shop", "func"]);
        assert_eq!(&*names.with_parameters(bool), "func(bool)");
    }
}
