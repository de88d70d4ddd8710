//! The symbolizer: modules in, frames out.
//!
//! Receives modules and batches of addresses; opens each module's files once, when it is first asked about;
//! resolves modules side by side and one huge module in several threads. [`Depth::Names`] answers from symbol
//! tables alone, for a first picture; [`Depth::Inlines`] adds lines and inlined functions. Both name the
//! function that has the code alike.

use std::borrow::Cow;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use object::Object;
use rayon::prelude::*;

use super::debuginfod::Artifact;
use super::dwarf::lines::LineFrame;
use super::files::locate;
use super::name_sources::{ModuleSources, Placeholder, Placeholders, SharedSources};
use super::tables::table::{OwnedSymbol, Symbol, Table};
use super::{
    Answer, DataQuality, Debuginfod, Frame, FunctionId, Image, Kind, Missing, Module, ModuleId, Names,
    Options, Source, SymbolQuery, elf,
};
use crate::address::Avma;
use crate::session::worker_threads;

/// Addresses in a module. Sorted and distinct ones are answered fastest; other orders are answered too.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The module.
    pub module: ModuleId,
    /// What is asked for; the answer has the same order.
    pub queries: &'a [SymbolQuery],
}

/// How much is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// The function's name: one frame an address.
    Names,
    /// Lines and inlined functions too.
    Inlines,
    /// The addresses are of data: the variable, or else the function.
    Data,
}

/// How far a resolution is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Addresses that are done.
    pub done: usize,
    /// All addresses of the batch.
    pub total: usize,
}

/// Finds symbols.
#[derive(Debug)]
pub struct Symbolizer {
    /// Each with what was read for it; boxed, since a recording may name a million modules and ask for few.
    modules: Vec<(Module, OnceLock<Box<ModuleSources>>)>,
    names: Names,
    shared: SharedSources,
    /// No other thread could be started; our own has too small a stack for lines.
    is_alone: bool,
}

/// Modules that are resolved before their names get numbers: text takes more memory than numbers do.
const BATCH: usize = 5000;

/// What stands at an address before its names have numbers.
struct Resolved {
    address: u64,
    symbol: Option<OwnedSymbol>,
    placeholder: Option<Placeholder>,
    lines: Vec<LineFrame>,
}

impl Symbolizer {
    /// A symbolizer that has read nothing yet.
    ///
    /// # Errors
    /// When the threads cannot be put to work.
    pub fn new(options: Options) -> crate::error::Result<Self> {
        let is_alone = worker_threads::start().map_err(crate::error::Error::new)?;
        Ok(Self {
            modules: Vec::new(),
            names: Names::default(),
            shared: SharedSources::new(options),
            is_alone,
        })
    }

    /// Makes a module known; nothing is read yet.
    pub fn add(&mut self, module: Module) -> ModuleId {
        self.modules.push((module, OnceLock::new()));
        ModuleId(self.modules.len() as u32 - 1)
    }

    /// A BPF program or trampoline that a ksymbol record announced.
    pub fn add_ksymbol(&mut self, start: Avma, size: u64, name: Arc<Path>) {
        self.shared.add_ksymbol(start, size, name);
    }

    /// A jitdump file that a process mapped; call before the first resolution.
    pub fn add_jitdump(&mut self, pid: u32, path: PathBuf) {
        self.shared.add_jitdump(pid, path);
    }

    /// Functions of a file as the recording holds them, each where its module's queries have it; they count
    /// where the file has none to be found.
    pub fn add_recorded<'a>(
        &mut self,
        path: PathBuf,
        functions: impl Iterator<Item = (Range<u64>, Cow<'a, str>)>,
    ) {
        self.shared.add_recorded(path, Table::of(functions));
    }

    /// A module as it was added.
    ///
    /// # Panics
    /// When the number is another symbolizer's, as all functions that take one.
    pub fn module(&self, id: ModuleId) -> &Module {
        &self.modules[id.0 as usize].0
    }

    /// Whether the name at a query is known without reading any file.
    pub fn knows(&self, id: ModuleId, query: SymbolQuery) -> bool {
        self.modules[id.0 as usize].1.get().is_some_and(|sources| sources.knows(query))
    }

    /// The queries around this one for which [`Depth::Names`] has the same answer, first and first behind, as
    /// far as that is known by now.
    pub fn around(&self, id: ModuleId, query: SymbolQuery) -> Option<(u64, u64)> {
        self.modules[id.0 as usize].1.get()?.around(query, self.shared.options.placeholders)
    }

    /// The address in the module's file that a query is about, as its linker gave it; `None` of a module that
    /// was not asked about, or whose file is not to be had.
    pub fn file_address(&self, id: ModuleId, query: SymbolQuery) -> Option<u64> {
        self.modules[id.0 as usize].1.get()?.file_address(query)
    }

    /// Whether the addresses of a module have 32 bits, by its file.
    pub fn has_short_addresses(&self, id: ModuleId) -> bool {
        let binary = self.modules[id.0 as usize].1.get().and_then(|sources| sources.binary());
        binary.is_some_and(|image| image.elf().is_ok_and(|file| !file.is_64()))
    }

    /// Forgets what was read for a module: the next question reads its files again.
    pub fn forget(&mut self, id: ModuleId) {
        self.modules[id.0 as usize].1 = OnceLock::new();
    }

    /// All names found so far.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// What was found and what is missing; looks for the module's files if nobody asked about it yet.
    pub fn quality(&self, id: ModuleId) -> DataQuality {
        self.sources(id).quality()
    }

    /// Failures to read files of the modules that were asked about.
    pub fn failures(&self) -> Vec<String> {
        let loaded = self.modules.iter().filter_map(|(_, sources)| sources.get());
        let missing = loaded.flat_map(|sources| sources.quality().missing);
        missing.filter(Missing::is_failure).map(|one| one.to_string()).collect()
    }

    /// What would bring the worst of what is missing; the first question may take long.
    pub fn remedy(&self, id: ModuleId) -> Option<String> {
        self.sources(id).remedy()
    }

    /// The module's own file, verified; for unwinding, disassembly and the like.
    pub fn binary(&self, id: ModuleId) -> Option<&Image> {
        self.sources(id).binary()
    }

    /// The module's separate debug file.
    pub fn debug(&self, id: ModuleId) -> Option<&Image> {
        self.sources(id).debug()
    }

    /// Where a copy of one of the module's source files lies, if a debuginfod server has it.
    pub fn fetch_source(&self, id: ModuleId, path: &str) -> Option<PathBuf> {
        let servers = self.shared.options.debuginfod.as_ref()?;
        let of_file = |image: &Image| elf::build_id(&image.elf().ok()?);
        let build_id = self.binary(id).or(self.debug(id)).and_then(of_file);
        servers.fetch(Artifact::Source(path), build_id.or(self.module(id).build_id)?)
    }

    /// Asks debuginfod servers for what modules lack that were looked at without any; whether something came.
    /// May take long. `progress` counts modules.
    pub fn ask_servers(&mut self, servers: Arc<Debuginfod>, progress: &(dyn Fn(Progress) + Sync)) -> bool {
        self.shared.options.debuginfod = Some(servers);
        let lacking = |(module, sources): &mut (Module, OnceLock<Box<ModuleSources>>)| {
            let before = sources.get()?.quality();
            let may_be_there = matches!(module.kind, Kind::File | Kind::KernelModule { .. }) && !before.lines;
            may_be_there.then(|| sources.take())?;
            Some(before)
        };
        let asked: Vec<(usize, Option<DataQuality>)> =
            self.modules.iter_mut().map(lacking).enumerate().collect();
        let asked: Vec<(ModuleId, DataQuality)> =
            asked.into_iter().filter_map(|(id, before)| Some((ModuleId(id as u32), before?))).collect();
        let (done, total) = (AtomicUsize::new(0), asked.len());
        let has_more = |(id, before): &(ModuleId, DataQuality)| {
            let has_more = self.quality(*id) != *before;
            progress(Progress { done: done.fetch_add(1, Ordering::Relaxed) + 1, total });
            has_more
        };
        worker_threads::inside(|| asked.par_iter().filter(|module| has_more(module)).count()) > 0
    }

    /// Why debuginfod servers are not asked any more.
    pub fn server_failure(&self) -> Option<&str> {
        self.shared.options.debuginfod.as_ref()?.failure()
    }

    /// The address in the module's own numbering that a query means.
    pub fn address(&self, id: ModuleId, query: SymbolQuery) -> Option<u64> {
        self.sources(id).address(query)
    }

    /// The function at a single query, by symbol tables alone, and the distance from its start.
    pub fn find(&self, id: ModuleId, query: SymbolQuery) -> Option<(&str, u64)> {
        let sources = self.sources(id);
        let symbol = sources.find(query)?;
        Some((symbol.name, sources.address(query)?.wrapping_sub(symbol.start)))
    }

    /// All functions of a module, by start: address, end, raw name.
    pub fn symbols(&self, id: ModuleId) -> impl Iterator<Item = Symbol<'_>> {
        self.sources(id).symbols()
    }

    /// Resolves a batch; the answers are in the order of the requests. `progress` is called from several
    /// threads, often.
    pub fn resolve(
        &mut self,
        requests: &[Request<'_>],
        depth: Depth,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Vec<Answer> {
        let depth = if self.is_alone { Depth::Names } else { depth };
        let total = requests.iter().map(|request| request.queries.len()).sum();
        let count = AtomicUsize::new(0);
        let done = |more: usize| {
            let done = count.fetch_add(more, Ordering::Relaxed) + more;
            progress(Progress { done, total });
        };
        let alone = self.shared.options.alone && depth == Depth::Names;
        let first = self.names.functions().len();
        let mut answers = Vec::with_capacity(requests.len());
        for requests in requests.chunks(BATCH) {
            let one = |request: &Request<'_>| {
                let name = self.shared.options.placeholders.then(|| self.placeholder_name(request.module));
                resolve_one(self.sources(request.module), request, depth, name.as_deref(), &done)
            };
            let resolved: Vec<Vec<Resolved>> = match alone {
                true => requests.iter().map(one).collect(),
                false => worker_threads::inside(|| requests.par_iter().map(one).collect()),
            };
            for (request, all) in requests.iter().zip(resolved) {
                answers.push(self.merge(request.module, all));
            }
        }
        match alone {
            true => self.names.demangle_from_alone(first),
            false => worker_threads::inside(|| self.names.demangle_from(first)),
        }
        self.shared.release();
        answers
    }

    /// How code of a module is called that no symbol names.
    fn placeholder_name(&self, id: ModuleId) -> String {
        let path = locate::strip_deleted(&self.module(id).path);
        path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
    }

    pub(super) fn options(&self) -> &Options {
        &self.shared.options
    }

    pub(super) fn sources(&self, id: ModuleId) -> &ModuleSources {
        let (module, sources) = &self.modules[id.0 as usize];
        sources.get_or_init(|| ModuleSources::load(module, &self.shared).into())
    }

    /// Gives names their numbers.
    ///
    /// The symbol table names the function that has the code, in both depths; the compiler's name stands in
    /// where the table has none.
    fn merge(&mut self, module: ModuleId, all: Vec<Resolved>) -> Answer {
        let mut answer = Answer::default();
        let mut frames: Vec<Frame> = Vec::new();
        // Neighbours share their function's name: its number is asked for once.
        let mut last: Option<(OwnedSymbol, FunctionId)> = None;
        let mut number = |names: &mut Names, symbol: &OwnedSymbol| match &last {
            Some((same, id)) if same.start == symbol.start && Arc::ptr_eq(&same.name, &symbol.name) => *id,
            _ => last.insert((symbol.clone(), names.add_symbol(module, symbol))).1,
        };
        for item in all {
            frames.clear();
            let last = item.lines.len().checked_sub(1);
            for (at, line) in item.lines.iter().enumerate() {
                let source = line.file.as_ref().map(|file| Source {
                    file: self.names.add_file(file),
                    line: line.line,
                    column: line.column,
                });
                let inlined = Some(at) != last;
                let function = match (&item.symbol, &line.name) {
                    (Some(symbol), _) if !inlined => number(&mut self.names, symbol),
                    (_, name) => self.names.add_function(module, name.as_deref().unwrap_or("??"), None, 0),
                };
                frames.push(Frame { function, source, inlined });
            }
            if frames.is_empty() {
                let function = match (&item.symbol, &item.placeholder) {
                    (Some(symbol), _) => Some(number(&mut self.names, symbol)),
                    (None, Some(placeholder)) => Some(self.names.add_placeholder(module, placeholder)),
                    (None, None) => None,
                };
                frames.extend(function.map(|function| Frame { function, source: None, inlined: false }));
            }
            answer.push(item.address, frames.iter().copied());
        }
        answer
    }
}

fn resolve_one(
    sources: &ModuleSources,
    request: &Request<'_>,
    depth: Depth,
    placeholder_name: Option<&str>,
    done: &(dyn Fn(usize) + Sync),
) -> Vec<Resolved> {
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
    let at = |((query, address), symbol): ((&SymbolQuery, Option<u64>), Option<OwnedSymbol>)| Resolved {
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
