//! The symbolizer: modules in, frames out.
//!
//! Receives modules and batches of addresses; opens each module's files once, when it is first asked about; resolves modules side by side
//! and one huge module in several threads. [`Depth::Names`] answers from symbol tables alone, for a first picture;
//! [`Depth::Inlines`] adds lines and inlined functions. Both name the function that has the code alike.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::dwarf::lines::{self, LineFrame};
use super::module_sources::{Loaded, Shared};
use super::tables::table::Symbol;
use super::{Answer, DataQuality, Frame, Module, ModuleId, Names, Options, Source, SymbolQuery};
use crate::address::Avma;

/// Addresses in a module. Sorted and distinct ones are answered fastest; other orders are answered too.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The module.
    pub module: ModuleId,
    /// What is asked for; the answer has the same order.
    pub probes: &'a [SymbolQuery],
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
    modules: Vec<(Module, OnceLock<Loaded>)>,
    names: Names,
    shared: Shared,
    pool: rayon::ThreadPool,
}

/// One module's answer before its names have numbers.
struct Local {
    items: Vec<Item>,
}

struct Item {
    address: u64,
    symbol: Option<Named>,
    lines: Vec<LineFrame>,
}

struct Named {
    start: u64,
    size: u64,
    name: Box<str>,
}

impl Symbolizer {
    /// A symbolizer that has read nothing yet.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn new(options: Options) -> crate::error::Result<Self> {
        let pool = rayon::ThreadPoolBuilder::new()
            .stack_size(lines::STACK)
            .thread_name(|number| format!("symbol-{number}"))
            .build()
            .map_err(|error| crate::error::Error::new(format!("starting threads for symbols: {error}")))?;
        Ok(Self { modules: Vec::new(), names: Names::default(), shared: Shared::new(options), pool })
    }

    /// Makes a module known; nothing is read yet.
    pub fn add(&mut self, module: Module) -> ModuleId {
        self.modules.push((module, OnceLock::new()));
        ModuleId(self.modules.len() as u32 - 1)
    }

    /// A BPF program or trampoline that a ksymbol record announced.
    pub fn add_ksymbol(&mut self, start: Avma, size: u64, name: &str) {
        self.shared.add_ksymbol(start, size, name);
    }

    /// A jitdump file that a process mapped; call before the first resolution.
    pub fn add_jitdump(&mut self, pid: u32, path: PathBuf) {
        self.shared.add_jitdump(pid, path);
    }

    /// A module as it was added.
    ///
    /// # Panics
    /// When the number is another symbolizer's, as all functions that take one.
    pub fn module(&self, id: ModuleId) -> &Module {
        &self.modules[id.0 as usize].0
    }

    /// Whether the name at a probe is known without reading any file.
    pub fn knows(&self, id: ModuleId, probe: SymbolQuery) -> bool {
        self.modules[id.0 as usize].1.get().is_some_and(|loaded| loaded.knows(probe))
    }

    /// The probes around this one for which [`Depth::Names`] has the same answer, first and first behind, as far as that is
    /// known by now.
    pub fn around(&self, id: ModuleId, probe: SymbolQuery) -> Option<(u64, u64)> {
        self.modules[id.0 as usize].1.get()?.around(probe)
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
    pub fn trust(&self, id: ModuleId) -> DataQuality {
        self.loaded(id).trust()
    }

    /// The module's own file, verified; for unwinding, disassembly and the like.
    pub fn binary(&self, id: ModuleId) -> Option<&super::Image> {
        self.loaded(id).binary()
    }

    /// The module's separate debug file.
    pub fn debug(&self, id: ModuleId) -> Option<&super::Image> {
        self.loaded(id).debug()
    }

    /// The address in the module's own numbering that a probe means.
    pub fn address(&self, id: ModuleId, probe: SymbolQuery) -> Option<u64> {
        self.loaded(id).address(probe)
    }

    /// The function at a single probe, by symbol tables alone, and the distance from its start.
    pub fn find(&self, id: ModuleId, probe: SymbolQuery) -> Option<(&str, u64)> {
        let loaded = self.loaded(id);
        let symbol = loaded.find(probe)?;
        Some((symbol.name, loaded.address(probe)?.wrapping_sub(symbol.start)))
    }

    /// All functions of a module, by start: address, end, raw name.
    pub fn symbols(&self, id: ModuleId) -> impl Iterator<Item = Symbol<'_>> {
        self.loaded(id).symbols()
    }

    /// Resolves a batch; the answers are in the order of the requests. `progress` is called from several threads, often.
    pub fn resolve(
        &mut self,
        requests: &[Request<'_>],
        depth: Depth,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Vec<Answer> {
        let total = requests.iter().map(|request| request.probes.len()).sum();
        let count = AtomicUsize::new(0);
        let done = |more: usize| {
            let done = count.fetch_add(more, Ordering::Relaxed) + more;
            progress(Progress { done, total });
        };
        let one = |request: &Request<'_>| resolve_one(self.loaded(request.module), request, depth, &done);
        // A few names at a time, for ever: to wake other threads for them would cost more than the names.
        let alone = self.shared.options.sparse && depth == Depth::Names;
        let locals: Vec<Local> = match alone {
            true => requests.iter().map(one).collect(),
            false => self.pool.install(|| requests.par_iter().map(one).collect()),
        };
        let first = self.names.functions().len();
        let answers = requests.iter().zip(locals).map(|(request, local)| self.merge(request.module, local));
        let answers = answers.collect();
        match alone {
            true => {
                self.names.demangle_from_alone(first);
                self.shared.release();
            }
            false => self.pool.install(|| self.names.demangle_from(first)),
        }
        answers
    }

    pub(super) fn options(&self) -> &Options {
        &self.shared.options
    }

    pub(super) fn loaded(&self, id: ModuleId) -> &Loaded {
        let (module, loaded) = &self.modules[id.0 as usize];
        loaded.get_or_init(|| Loaded::load(module, &self.shared))
    }

    /// Gives names their numbers.
    ///
    /// The symbol table names the function that has the code, in both depths; the compiler's name stands in
    /// where the table has none.
    fn merge(&mut self, module: ModuleId, local: Local) -> Answer {
        let mut answer = Answer::default();
        let mut frames: Vec<Frame> = Vec::new();
        for item in local.items {
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
                    (Some(symbol), _) if !inlined => {
                        self.names.add_function(module, &symbol.name, Some(symbol.start), symbol.size)
                    }
                    (_, name) => self.names.add_function(module, name.as_deref().unwrap_or("??"), None, 0),
                };
                frames.push(Frame { function, source, inlined });
            }
            if let (Some(symbol), true) = (&item.symbol, frames.is_empty()) {
                let function = self.names.add_function(module, &symbol.name, Some(symbol.start), symbol.size);
                frames.push(Frame { function, source: None, inlined: false });
            }
            answer.push(item.address, frames.iter().copied());
        }
        answer
    }
}

fn resolve_one(loaded: &Loaded, request: &Request<'_>, depth: Depth, done: &(dyn Fn(usize) + Sync)) -> Local {
    let addresses: Vec<Option<u64>> =
        request.probes.iter().map(|probe| loaded.file_address(*probe)).collect();
    let lines = match depth {
        Depth::Names | Depth::Data => None,
        Depth::Inlines => loaded.lines(&addresses, done),
    };
    let variable = |probe: SymbolQuery| {
        let symbol = if depth == Depth::Data { loaded.find_variable(probe) } else { None };
        symbol.map(|s| Named { start: s.start, size: s.end - s.start, name: s.name.into() })
    };
    let function = |(start, end, name)| Named { start, size: end - start, name };
    let items = request
        .probes
        .iter()
        .zip(addresses)
        .zip(loaded.find_all(request.probes))
        .map(|((probe, address), symbol)| Item {
            address: loaded.address(*probe).unwrap_or(probe.0),
            symbol: variable(*probe).or_else(|| symbol.map(function)),
            lines: address.and_then(|address| lines.as_ref()?.get(&address).cloned()).unwrap_or_default(),
        })
        .collect();
    if lines.is_none() {
        done(request.probes.len());
    }
    Local { items }
}
