//! The symbolizer: resolves addresses in modules to frames.
//!
//! Takes modules and batches of addresses. Opens each module's files once, at the first request. Resolves
//! modules in parallel, and splits huge modules among several threads. [`Depth::Names`] uses only symbol
//! tables, for a quick first result; [`Depth::Inlines`] adds lines and inlined functions. Both give the same
//! name to the outermost function.

use crate::hint::Hint;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use object::Object;
use rayon::prelude::*;

use super::archive::SymbolArchive;
use super::debuginfod::Debuginfod;
use super::dwarf::lines::LineFrame;
use super::files::image::Image;
use super::files::locate;
use super::frame::{AddressFrames, FunctionId, ResolvedFrame, SourcePosition, SymbolNames};
use super::missing_data::{MissingDataReason, ModuleDataQuality};
use super::module::{ModuleId, SymbolModule, SymbolModuleKind, SymbolQuery};
use super::name_sources::{ModuleSources, Placeholder, Placeholders, SharedSources};
use super::options::SymbolOptions;
use super::tables::table::{OwnedSymbol, Symbol, SymbolTable};
use crate::address::Avma;
use crate::worker_threads;

/// Addresses in a module. Lookups are fastest if the addresses are sorted and distinct, but neither is
/// required.
#[derive(Debug, Clone, Copy)]
pub struct SymbolRequest<'a> {
    /// The module.
    pub module: ModuleId,
    /// The addresses to look up. The results have the same order.
    pub queries: &'a [SymbolQuery],
}

/// The level of detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Function names: one frame per address.
    Names,
    /// Function names, lines and inlined functions.
    Inlines,
    /// For data addresses: the variable, or else the function.
    Data,
}

/// Progress of a resolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SymbolProgress {
    /// Number of resolved addresses.
    pub done: usize,
    /// Number of addresses in the batch.
    pub total: usize,
}

/// Resolves addresses to symbols.
#[derive(Debug)]
pub struct Symbolizer {
    /// Each module with its loaded sources. Boxed, since a recording may contain a million modules of which
    /// only a few are needed.
    modules: Vec<(SymbolModule, OnceLock<Box<ModuleSources>>)>,
    names: SymbolNames,
    shared: SharedSources,
    /// Whether no worker threads could be started. The calling thread's stack is too small for reading lines.
    is_alone: bool,
    /// Whether lines were requested but not read for this reason.
    omitted_lines: bool,
    /// The errors of the disassembler, which are few, because it stops after some.
    undecoded: Mutex<BTreeSet<String>>,
}

/// Number of modules to resolve before their names are replaced by IDs, which take less memory.
const BATCH: usize = 5000;

/// The result for an address, before its names are replaced by IDs.
struct ResolvedAddress {
    address: u64,
    symbol: Option<OwnedSymbol>,
    placeholder: Option<Placeholder>,
    lines: Vec<LineFrame>,
}

impl Symbolizer {
    /// Creates a symbolizer without modules.
    ///
    /// # Errors
    /// Fails if the worker threads cannot be started.
    pub fn new(options: SymbolOptions) -> pmc_sys::error::Result<Self> {
        let is_alone = worker_threads::start().map_err(pmc_sys::error::Error::new)?;
        Ok(Self {
            modules: Vec::new(),
            names: SymbolNames::default(),
            shared: SharedSources::new(options),
            is_alone,
            omitted_lines: false,
            undecoded: Mutex::default(),
        })
    }

    /// Adds a module without reading its files.
    pub fn add(&mut self, module: SymbolModule) -> ModuleId {
        self.modules.push((module, OnceLock::new()));
        ModuleId(self.modules.len() as u32 - 1)
    }

    /// Adds a BPF program or trampoline from a ksymbol record.
    pub fn add_ksymbol(&mut self, start: Avma, size: u64, name: Arc<Path>) {
        self.shared.add_ksymbol(start, size, name);
    }

    /// Adds a jitdump file that a process mapped. Call this before the first resolution.
    pub fn add_jitdump(&mut self, pid: u32, path: PathBuf) {
        self.shared.add_jitdump(pid, path);
    }

    /// Adds functions that the recording contains for a file, with the addresses used in queries. They serve
    /// as a fallback if the file is not found.
    pub fn add_recorded<'a>(
        &mut self,
        path: PathBuf,
        functions: impl Iterator<Item = (Range<u64>, Cow<'a, str>)>,
    ) {
        self.shared.add_recorded(path, SymbolTable::from_functions(functions));
    }

    /// Makes an archive the only source of names, lines and code. Call this before the first resolution.
    pub fn set_archive(&mut self, archive: SymbolArchive) {
        self.shared.archive = Some(archive);
    }

    /// Returns a module as it was passed to [`Symbolizer::add`].
    ///
    /// # Panics
    /// Panics if the ID belongs to another symbolizer. This applies to all functions that take an ID.
    pub fn module(&self, id: ModuleId) -> &SymbolModule {
        &self.modules[id.0 as usize].0
    }

    /// Whether the name at a query can be found without reading a file.
    pub fn knows(&self, id: ModuleId, query: SymbolQuery) -> bool {
        self.modules[id.0 as usize].1.get().is_some_and(|sources| sources.knows(query))
    }

    /// Returns the range of queries (end exclusive) around this one for which [`Depth::Names`] gives the same
    /// result, as far as known.
    pub fn around(&self, id: ModuleId, query: SymbolQuery) -> Option<(u64, u64)> {
        self.modules[id.0 as usize].1.get()?.around(query, self.shared.options.placeholders)
    }

    /// Converts a query to an address in the module's file, as assigned by the linker. `None` if the module
    /// was not loaded or its file is missing.
    pub fn file_address(&self, id: ModuleId, query: SymbolQuery) -> Option<u64> {
        self.modules[id.0 as usize].1.get()?.file_address(query)
    }

    /// Whether the module's file has 32-bit addresses.
    pub fn has_short_addresses(&self, id: ModuleId) -> bool {
        let Some(sources) = self.modules[id.0 as usize].1.get() else { return false };
        if let Some(archived) = sources.archived() {
            return archived.has_short_addresses();
        }
        sources.binary().is_some_and(|image| image.elf().is_ok_and(|file| !file.is_64()))
    }

    /// Drops all data read for a module, so that the next request reads its files again.
    pub fn forget(&mut self, id: ModuleId) {
        self.modules[id.0 as usize].1 = OnceLock::new();
    }

    /// Drops the tables read for a module, but nothing that was found with them.
    pub(super) fn forget_tables(&mut self, id: ModuleId) {
        if let Some(sources) = self.modules[id.0 as usize].1.get_mut() {
            sources.forget_tables();
        }
    }

    /// Drops all names found so far. Frames found before must not be used after this.
    pub fn forget_names(&mut self) {
        self.names = SymbolNames::default();
    }

    /// All names found so far.
    pub fn names(&self) -> &SymbolNames {
        &self.names
    }

    /// Returns which of the module's files were found, and which data is missing. Searches for the files
    /// first if necessary.
    pub fn quality(&self, id: ModuleId) -> Arc<ModuleDataQuality> {
        self.sources(id).quality()
    }

    /// Returns the errors that occurred when reading files of the loaded modules and disassembling code.
    pub fn failures(&self) -> Vec<MissingDataReason> {
        let loaded = self.modules.iter().filter_map(|(_, sources)| sources.get());
        let missing = loaded.flat_map(|sources| sources.quality().missing.clone());
        let failures = missing.filter(MissingDataReason::is_failure);
        let undecoded = self.undecoded.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let undecoded = undecoded.into_iter().map(|why| MissingDataReason::Undecoded { why });
        let no_threads = self.omitted_lines.then_some(MissingDataReason::NoThreads);
        failures.chain(undecoded).chain(no_threads).collect()
    }

    /// Adds an error that occurred when disassembling code to [`Self::failures`].
    pub(super) fn add_failure(&self, why: String) {
        self.undecoded.lock().unwrap_or_else(PoisonError::into_inner).insert(why);
    }

    /// Returns a remedy for the most important missing data. The first call may be slow.
    pub fn remedy(&self, id: ModuleId) -> Option<Hint> {
        self.sources(id).remedy(&self.shared.packages)
    }

    /// Finds the packages that the remedies for these modules name, which is faster than one at a time.
    pub(super) fn find_packages(&self, modules: &[ModuleId]) {
        let qualities: Vec<_> = modules.iter().map(|id| self.quality(*id)).collect();
        let first = qualities.iter().filter_map(|quality| quality.missing.first()?.lacks_package());
        self.shared.packages.find(first);
    }

    /// Returns the module's own file, verified by build-id, for purposes such as unwinding and disassembly.
    pub fn binary(&self, id: ModuleId) -> Option<&Image> {
        self.sources(id).binary()
    }

    /// The module's separate debug file.
    pub fn debug(&self, id: ModuleId) -> Option<&Image> {
        self.sources(id).debug()
    }

    /// Downloads missing files of the loaded modules from debuginfod servers. Returns whether any file was
    /// downloaded. May take a long time. `progress` counts modules.
    pub fn ask_servers(
        &mut self,
        servers: Arc<Debuginfod>,
        progress: &(dyn Fn(SymbolProgress) + Sync),
    ) -> bool {
        self.shared.options.debuginfod = Some(servers);
        let lacking = |(module, sources): &mut (SymbolModule, OnceLock<Box<ModuleSources>>)| {
            let before = sources.get()?.quality();
            let may_be_there =
                matches!(module.kind, SymbolModuleKind::File | SymbolModuleKind::KernelModule { .. })
                    && !before.found().lines;
            may_be_there.then(|| sources.take())?;
            Some(before)
        };
        let asked: Vec<(usize, Option<Arc<ModuleDataQuality>>)> =
            self.modules.iter_mut().map(lacking).enumerate().collect();
        let asked: Vec<(ModuleId, Arc<ModuleDataQuality>)> =
            asked.into_iter().filter_map(|(id, before)| Some((ModuleId(id as u32), before?))).collect();
        let (done, total) = (AtomicUsize::new(0), asked.len());
        let has_more = |(id, before): &(ModuleId, Arc<ModuleDataQuality>)| {
            let has_more = self.quality(*id) != *before;
            progress(SymbolProgress { done: done.fetch_add(1, Ordering::Relaxed) + 1, total });
            has_more
        };
        worker_threads::inside(|| asked.par_iter().filter(|module| has_more(module)).count()) > 0
    }

    /// Returns the reason why pmc stopped querying debuginfod servers.
    pub fn server_failure(&self) -> Option<&str> {
        self.shared.options.debuginfod.as_ref()?.failure()
    }

    /// Converts a query to an address in the module's own address space.
    pub fn address(&self, id: ModuleId, query: SymbolQuery) -> Option<u64> {
        self.sources(id).address(query)
    }

    /// Returns the function at a single query and the offset from its start, using only symbol tables.
    pub fn find(&self, id: ModuleId, query: SymbolQuery) -> Option<(&str, u64)> {
        let sources = self.sources(id);
        let symbol = sources.find(query)?;
        Some((symbol.name, sources.address(query)?.wrapping_sub(symbol.start)))
    }

    /// Returns the variable at an address in the file, and the offset from its start.
    pub fn variable(&self, id: ModuleId, address: u64) -> Option<(&str, u64)> {
        let symbol = self.sources(id).variable_at(address)?;
        Some((symbol.name, address.wrapping_sub(symbol.start)))
    }

    /// Iterates over all functions of a module, by start address.
    pub fn symbols(&self, id: ModuleId) -> impl Iterator<Item = Symbol<'_>> {
        self.sources(id).symbols()
    }

    /// Resolves a batch. Results are in the order of the requests and, within each request, in the order of
    /// its queries. Calls `progress` often and from several threads.
    pub fn resolve(
        &mut self,
        requests: &[SymbolRequest<'_>],
        depth: Depth,
        progress: &(dyn Fn(SymbolProgress) + Sync),
    ) -> AddressFrames {
        self.omitted_lines |= self.is_alone && depth != Depth::Names;
        let depth = if self.is_alone { Depth::Names } else { depth };
        let total = requests.iter().map(|request| request.queries.len()).sum();
        let count = AtomicUsize::new(0);
        let done = |more: usize| {
            let done = count.fetch_add(more, Ordering::Relaxed) + more;
            progress(SymbolProgress { done, total });
        };
        let alone = self.shared.options.alone && depth == Depth::Names;
        let first = self.names.functions().len();
        let mut answers = AddressFrames::default();
        for requests in requests.chunks(BATCH) {
            let one = |request: &SymbolRequest<'_>| {
                let name = self.shared.options.placeholders.then(|| self.placeholder_name(request.module));
                resolve_one(self.sources(request.module), request, depth, name.as_deref(), &done)
            };
            let resolved: Vec<Vec<ResolvedAddress>> = match alone {
                true => requests.iter().map(one).collect(),
                false => worker_threads::inside(|| requests.par_iter().map(one).collect()),
            };
            for (request, all) in requests.iter().zip(resolved) {
                self.merge(request.module, all, &mut answers);
            }
        }
        match alone {
            true => self.names.demangle_from_alone(first),
            false => worker_threads::inside(|| self.names.demangle_from(first)),
        }
        self.shared.release();
        answers
    }

    /// Returns the part of placeholder names that identifies the module.
    pub(super) fn placeholder_name(&self, id: ModuleId) -> String {
        let path = locate::strip_deleted(&self.module(id).path);
        path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
    }

    pub(super) fn options(&self) -> &SymbolOptions {
        &self.shared.options
    }

    pub(super) fn sources(&self, id: ModuleId) -> &ModuleSources {
        let (module, sources) = &self.modules[id.0 as usize];
        sources.get_or_init(|| ModuleSources::load(module, &self.shared).into())
    }

    /// Replaces names by IDs, and adds the results.
    ///
    /// At both depths, the name of the outermost function comes from the symbol table; the compiler's name is
    /// the fallback.
    fn merge(&mut self, module: ModuleId, all: Vec<ResolvedAddress>, answers: &mut AddressFrames) {
        let mut frames: Vec<ResolvedFrame> = Vec::new();
        // Neighbouring queries are often in the same function, so cache its ID.
        let mut last: Option<(OwnedSymbol, FunctionId)> = None;
        let mut number = |names: &mut SymbolNames, symbol: &OwnedSymbol| match &last {
            Some((same, id)) if same.start == symbol.start && Arc::ptr_eq(&same.name, &symbol.name) => *id,
            _ => last.insert((symbol.clone(), names.add_symbol(module, symbol))).1,
        };
        for item in all {
            frames.clear();
            let last = item.lines.len().checked_sub(1);
            for (at, line) in item.lines.iter().enumerate() {
                let source = line.file.as_ref().map(|file| SourcePosition {
                    file: self.names.add_file(file),
                    line: line.line,
                    column: line.column,
                });
                let inlined = Some(at) != last;
                let function = match (&item.symbol, &line.name) {
                    (Some(symbol), _) if !inlined => number(&mut self.names, symbol),
                    (_, name) => self.names.add_function(module, name.as_deref().unwrap_or("??"), None, 0),
                };
                frames.push(ResolvedFrame { function, source, inlined });
            }
            if frames.is_empty() {
                let function = match (&item.symbol, &item.placeholder) {
                    (Some(symbol), _) => Some(number(&mut self.names, symbol)),
                    (None, Some(placeholder)) => Some(self.names.add_placeholder(module, placeholder)),
                    (None, None) => None,
                };
                frames.extend(function.map(|function| ResolvedFrame {
                    function,
                    source: None,
                    inlined: false,
                }));
            }
            answers.push(item.address, frames.iter().copied());
        }
    }
}

fn resolve_one(
    sources: &ModuleSources,
    request: &SymbolRequest<'_>,
    depth: Depth,
    placeholder_name: Option<&str>,
    done: &(dyn Fn(usize) + Sync),
) -> Vec<ResolvedAddress> {
    let addresses: Vec<Option<u64>> =
        request.queries.iter().map(|query| sources.file_address(*query)).collect();
    let lines = match depth {
        Depth::Names | Depth::Data => None,
        Depth::Inlines => sources.lines(&addresses, done),
    };
    let variable = |query: SymbolQuery| match depth {
        Depth::Data => sources.find_variable(query).map(OwnedSymbol::from),
        Depth::Names | Depth::Inlines => None,
    };
    let symbols = sources.find_all(request.queries);
    let placeholders: Option<Placeholders<'_>> = match (depth, placeholder_name) {
        (Depth::Names | Depth::Inlines, Some(name)) if symbols.iter().any(Option::is_none) => {
            sources.placeholders(name)
        }
        _ => None,
    };
    let placeholder = |address: Option<u64>| {
        let found = placeholders.as_ref()?.find(address?)?;
        sources.remember(&found);
        Some(found)
    };
    let at =
        |((query, address), symbol): ((&SymbolQuery, Option<u64>), Option<OwnedSymbol>)| ResolvedAddress {
            address: sources.address(*query).unwrap_or(query.0),
            placeholder: if symbol.is_none() { placeholder(address) } else { None },
            symbol: variable(*query).or(symbol),
            lines: address.and_then(|address| lines.as_ref()?.get(&address).cloned()).unwrap_or_default(),
        };
    let resolved = request.queries.iter().zip(addresses).zip(symbols).map(at).collect();
    if lines.is_none() {
        done(request.queries.len());
    }
    resolved
}
