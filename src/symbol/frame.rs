//! The answer: functions, source lines, and the frames that stand at an address.
//!
//! A [`Frame`] is small and copied freely; its names are kept once in the [`Names`] of the
//! [`Symbolizer`](super::Symbolizer). Names are as the file has them, not cleaned for a terminal.

use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::ModuleId;
use super::demangle::demangle;
use super::name_sources::Placeholder;
use super::tables::table::OwnedSymbol;

/// A function's number in [`Names`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(pub u32);

/// A source file's number in [`Names`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// A function of a module.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Function {
    /// The module that holds it.
    pub module: ModuleId,
    /// The demangled name.
    pub name: Arc<str>,
    /// The name as the symbol table or the debug information has it, for matching.
    pub raw: Arc<str>,
    /// Where its code starts, in the module's own numbering ([`Answer::address`]); `None` when only inlined
    /// copies were seen or the start is not known.
    pub start: Option<u64>,
    /// Bytes of code; 0 when not known.
    pub size: u64,
    /// No symbol names it: its name says where it is.
    pub is_placeholder: bool,
}

/// A place in a source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source {
    /// The file.
    pub file: FileId,
    /// Counted from 1; 0 when the compiler named no line.
    pub line: u32,
    /// Counted from 1; 0 when not known.
    pub column: u32,
}

/// One function standing at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The function.
    pub function: FunctionId,
    /// The line being executed in it (innermost), or the line of the call to the next inner frame.
    pub source: Option<Source>,
    /// Whether the function was inlined into the next outer frame.
    pub inlined: bool,
}

/// The frames at each of a request's addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    pub(super) frames: Vec<Frame>,
    pub(super) ends: Vec<u32>,
    pub(super) addresses: Vec<u64>,
}

impl Answer {
    /// The frames at the request's address of this index, innermost first; empty when nothing is known there.
    pub fn frames(&self, index: usize) -> &[Frame] {
        let Some(&end) = self.ends.get(index) else { return &[] };
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.frames[start as usize..end as usize]
    }

    /// The address in the module's own numbering: the file's address (`Svma`) for ELF files, the address in
    /// memory for the kernel and for JIT code; what perf prints behind `+` is this less [`Function::start`].
    pub fn address(&self, index: usize) -> Option<u64> {
        self.addresses.get(index).copied()
    }

    pub(super) fn push(&mut self, address: u64, frames: impl IntoIterator<Item = Frame>) {
        self.frames.extend(frames);
        self.ends.push(self.frames.len() as u32);
        self.addresses.push(address);
    }
}

/// All names that were found so far, each once.
#[derive(Debug, Default)]
pub struct Names {
    functions: Vec<Function>,
    function_ids: FxHashMap<(ModuleId, Option<u64>, Arc<str>), FunctionId>,
    files: Vec<Arc<str>>,
    file_ids: FxHashMap<Arc<str>, FileId>,
}

impl Function {
    fn demangle(&mut self) {
        if let Some(name) = demangle(&self.raw).filter(|_| !self.is_placeholder) {
            self.name = name.into();
        }
    }
}

impl Names {
    /// The function of this number.
    ///
    /// # Panics
    /// When the number is another `Names`'s.
    pub fn function(&self, id: FunctionId) -> &Function {
        &self.functions[id.0 as usize]
    }

    /// The path of the source file, as the compiler was given it.
    ///
    /// # Panics
    /// When the number is another `Names`'s.
    pub fn file(&self, id: FileId) -> &Arc<str> {
        &self.files[id.0 as usize]
    }

    /// All functions, by number.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// The number of a function: the same name, start and module give the same number. Its name stays as it
    /// is in the file until [`Names::demangle_from`].
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

    /// The number of a function that a symbol table names.
    pub(super) fn add_symbol(&mut self, module: ModuleId, symbol: &OwnedSymbol) -> FunctionId {
        self.add_function(module, &symbol.name, Some(symbol.start), symbol.end - symbol.start)
    }

    /// The number of a function that no symbol names.
    pub(super) fn add_placeholder(&mut self, module: ModuleId, placeholder: &Placeholder) -> FunctionId {
        let (start, end) = placeholder.function.unzip();
        let size = end.unwrap_or(0) - start.unwrap_or(0);
        let id = self.add_function(module, &placeholder.name, start, size);
        self.functions[id.0 as usize].is_placeholder = true;
        id
    }

    /// Works out the names that a programmer reads, of the functions from this number on, side by side.
    pub(super) fn demangle_from(&mut self, first: usize) {
        self.functions[first..].par_iter_mut().for_each(Function::demangle);
    }

    /// The same without other threads.
    pub(super) fn demangle_from_alone(&mut self, first: usize) {
        self.functions[first..].iter_mut().for_each(Function::demangle);
    }

    /// The number of a source file.
    pub(super) fn add_file(&mut self, path: &str) -> FileId {
        if let Some(id) = self.file_ids.get(path) {
            return *id;
        }
        let path: Arc<str> = path.into();
        self.files.push(path.clone());
        let id = FileId(self.files.len() as u32 - 1);
        self.file_ids.insert(path, id);
        id
    }
}
