//! Symbolizes locations: passes the session's modules to the symbolizer, and stores its answers as
//! [`LocationCalls`].

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::profile::sampled::{LocationCalls, NameStyle, StringTable};
use crate::session::{AddedSymbol, CodeLocation, History, Module, ModuleKind};
use pmc_perfdata::perfdata::feature::DeviceFile;
use pmc_symbols::address::{Avma, FileOffset};
use pmc_symbols::symbol::{
    self, AddressFrames, Depth, Function, MissingDataReason, ModuleId, ResolvedFrame, SymbolModuleKind,
    SymbolOptions, SymbolProgress, SymbolQuery, SymbolRequest, Symbolizer,
};
use pmc_sys::error::Result;

/// A symbolizer for the modules of a recording.
#[derive(Debug)]
pub struct RecordingSymbols {
    pub(crate) symbolizer: Symbolizer,
    /// The symbolizer's ids, indexed by the session's module number.
    ids: Vec<Option<ModuleId>>,
    /// The module shared by all BPF programs, because their names come from one list.
    bpf: Option<ModuleId>,
    live: bool,
    /// See [`SymbolOptions::files`].
    files: bool,
    /// The source files that pmc failed to read.
    unread_sources: Vec<MissingDataReason>,
    /// See [`LocationCalls::is_imported`].
    pub(crate) is_imported: bool,
    /// For each module of generated code, the size of its perf map in bytes when it was last checked.
    map_sizes: FxHashMap<u32, Option<u64>>,
}

impl RecordingSymbols {
    /// Registers all modules. Does not open any files yet.
    ///
    /// # Errors
    /// Fails if the threads cannot be started.
    pub fn new(history: &History, options: SymbolOptions) -> Result<Self> {
        let mut symbols = Self::none(options)?;
        symbols.announce(&history.ksymbols, &history.jitdumps);
        symbols.add_modules(history.modules());
        Ok(symbols)
    }

    /// Creates a symbolizer without modules.
    ///
    /// # Errors
    /// Returns the errors of [`RecordingSymbols::new`].
    pub(crate) fn none(options: SymbolOptions) -> Result<Self> {
        let (live, files) = (options.live, options.files);
        Ok(Self {
            symbolizer: Symbolizer::new(options)?,
            ids: Vec::new(),
            bpf: None,
            live,
            files,
            unread_sources: Vec::new(),
            is_imported: false,
            map_sizes: FxHashMap::default(),
        })
    }

    /// Adds the kernel symbols and the jitdump files (by process) that records have announced.
    pub(crate) fn announce(&mut self, ksymbols: &[AddedSymbol], jitdumps: &[(u32, PathBuf)]) {
        if let Some(bpf) = self.bpf.filter(|_| !ksymbols.is_empty()) {
            self.symbolizer.forget(bpf);
        }
        for (start, size, name) in ksymbols {
            self.symbolizer.add_ksymbol(*start, *size, name.clone());
        }
        for (pid, path) in jitdumps {
            self.symbolizer.add_jitdump(*pid, path.clone());
        }
    }

    /// Adds recorded symbols for files that may be missing on this machine.
    pub(crate) fn add_device_symbols(&mut self, files: &[DeviceFile]) {
        for file in files {
            let name = |name| String::from_utf8_lossy(name);
            let path = PathBuf::from(OsStr::from_bytes(&file.path));
            self.symbolizer.add_recorded(path, file.places().map(|(range, raw)| (range, name(raw))));
        }
    }

    /// Registers more modules, in the order of their numbers.
    pub(crate) fn add_modules(&mut self, modules: &[Module]) {
        for module in modules {
            let is_bpf = module.kind == ModuleKind::Bpf;
            let add = || module.for_symbols(self.live).map(|module| self.symbolizer.add(module));
            let id = self.bpf.filter(|_| is_bpf).or_else(add);
            if is_bpf {
                self.bpf = id;
            }
            self.ids.push(id);
        }
    }

    /// Returns whether the perf map of a process has grown since the last call. If it has, the next lookup
    /// reads the map again.
    pub(crate) fn refresh(&mut self, module: u32) -> bool {
        let Some(id) = self.id(module) else { return false };
        let symbol::SymbolModuleKind::Anonymous { pid } = self.symbolizer.module(id).kind else {
            return false;
        };
        let size = symbol::perf_map::size(pid, self.live, None);
        let has_grown = size.is_some() && self.map_sizes.insert(module, size) != Some(size);
        if has_grown {
            self.symbolizer.forget(id);
        }
        has_grown
    }

    /// Closes a module's files. The next lookup opens them again.
    pub(crate) fn forget(&mut self, module: u32) {
        if let Some(id) = self.id(module) {
            self.symbolizer.forget(id);
        }
    }

    /// Returns the files that pmc failed to read, so that names, lines or source text are missing.
    pub fn failures(&self) -> Vec<MissingDataReason> {
        [self.symbolizer.failures(), self.unread_sources.clone()].concat()
    }

    /// Remembers a source file that pmc failed to read. A missing file is not a failure.
    pub(crate) fn add_missing_source(&mut self, reason: &MissingDataReason) {
        if reason.is_failure() && !self.unread_sources.contains(reason) {
            self.unread_sources.push(reason.clone());
        }
    }

    /// Returns the symbolizer's id of a module.
    pub(crate) fn id(&self, module: u32) -> Option<ModuleId> {
        *self.ids.get(module as usize)?
    }

    /// Returns the symbolizer query for a location.
    pub(crate) fn query(&self, location: &CodeLocation) -> Option<(ModuleId, SymbolQuery)> {
        let id = self.id(location.module()?)?;
        let by_offset = self.symbolizer.module(id).kind.by_file_offset();
        let query = if by_offset { FileOffset(location.offset).into() } else { Avma(location.offset).into() };
        Some((id, query))
    }

    /// Returns a range of offsets around a location that all have the same name at [`Depth::Names`], if
    /// known.
    pub(crate) fn around(&self, location: &CodeLocation) -> Option<(u64, u64)> {
        let (id, query) = self.query(location)?;
        self.symbolizer.around(id, query)
    }

    /// Returns the link-time address, in its file, of a location that has been symbolized.
    pub(crate) fn file_address(&self, location: &CodeLocation) -> Option<u64> {
        let (id, query) = self.query(location)?;
        self.symbolizer.file_address(id, query)
    }

    /// Looks up all locations in one batch.
    pub(crate) fn answers(
        &mut self,
        locations: &[CodeLocation],
        depth: Depth,
        progress: &(dyn Fn(SymbolProgress) + Sync),
    ) -> SymbolAnswers {
        let mut asked: Vec<(ModuleId, SymbolQuery, usize)> = (0..)
            .zip(locations)
            .filter_map(|(number, location)| self.query(location).map(|(id, query)| (id, query, number)))
            .filter(|(id, ..)| self.files || self.symbolizer.module(*id).kind != SymbolModuleKind::File)
            .collect();
        asked.sort_unstable();
        let queries: Vec<SymbolQuery> = asked.iter().map(|(_, query, _)| *query).collect();
        let mut rest = &queries[..];
        let requests: Vec<SymbolRequest<'_>> = asked
            .chunk_by(|a, b| a.0 == b.0)
            .map(|of_module| {
                let (queries, others) = rest.split_at(of_module.len());
                rest = others;
                SymbolRequest { module: of_module[0].0, queries }
            })
            .collect();
        let answers = self.symbolizer.resolve(&requests, depth, progress);
        let mut of = vec![None; locations.len()];
        for (at, (_, _, number)) in (0..).zip(asked) {
            of[number] = Some(at);
        }
        SymbolAnswers { answers, of }
    }

    pub(crate) fn function(&self, frame: &ResolvedFrame) -> &Function {
        self.symbolizer.names().function(frame.function)
    }

    /// Returns the name to show for a frame's function.
    pub(crate) fn shown(&self, frame: &ResolvedFrame) -> &Arc<str> {
        self.symbolizer.names().shown(frame.function)
    }

    /// Resolves all locations, and stores the function calls at each location. `modules` are the registered
    /// modules.
    pub fn name(
        &mut self,
        modules: &[Module],
        locations: &[CodeLocation],
        depth: Depth,
        style: NameStyle,
        texts: &mut StringTable,
        progress: &(dyn Fn(SymbolProgress) + Sync),
    ) -> LocationCalls {
        let answers = self.answers(locations, depth, progress);
        let of_data: Vec<CodeLocation> = locations.iter().filter(|at| at.data().is_some()).copied().collect();
        let variables = match of_data.is_empty() {
            true => SymbolAnswers { answers: AddressFrames::default(), of: Vec::new() },
            false => self.answers(&of_data, Depth::Data, &|_| {}),
        };
        let mut next_data = 0;
        let mut code = LocationCalls::new(style, self.is_imported);
        for (number, location) in locations.iter().enumerate() {
            let module = location.module().map(|number| &modules[number as usize]);
            if location.data().is_some() {
                let (frames, at) = variables.frames_at(next_data);
                next_data += 1;
                let function = frames.last().map(|frame| self.function(frame));
                let variable = function.and_then(|f| Some((&*f.name, at?.wrapping_sub(f.start?))));
                code.add_data(location, module, variable, texts);
                continue;
            }
            code.add(location, module, answers.frames_at(number), Some(self.symbolizer.names()), texts);
        }
        code
    }
}

/// The symbolizer's answers, indexed by location number.
pub(crate) struct SymbolAnswers {
    answers: AddressFrames,
    /// For each location, the index of its answer.
    of: Vec<Option<u32>>,
}

impl SymbolAnswers {
    /// Returns the frames at a location, innermost first, and the location's address in the module's file.
    pub(crate) fn frames_at(&self, location: usize) -> (&[ResolvedFrame], Option<u64>) {
        match self.of[location] {
            Some(at) => (self.answers.frames(at as usize), self.answers.address(at as usize)),
            None => (&[], None),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::session::module::Modules;
    use pmc_symbols::address::Mapping;

    #[test]
    fn bpf_programs_share_one_growing_name_list() {
        let options = SymbolOptions { live: false, kallsyms: None, ..SymbolOptions::from_environment() };
        let mut symbols = RecordingSymbols::none(options).expect("a symbolizer");
        let mut modules = Modules::default();
        for number in 0..3u64 {
            let (name, start) = (format!("bpf_{number}"), Avma((1 << 63) + number * 4096));
            let mapping = Mapping { start, len: 64, offset: FileOffset(0) };
            let module = modules.add(ModuleKind::Bpf, name.as_bytes(), None, 0, mapping, None);
            symbols.announce(&[(start, 64, Path::new(&name).into())], &[]);
            symbols.add_modules(&modules.all()[module as usize..]);
            let id = symbols.id(module).expect("a module that has names");
            assert_eq!(symbols.id(0), Some(id));
            assert_eq!(symbols.symbolizer.find(id, Avma(start.0 + 8).into()), Some((&*name, 8)));
        }
    }
}
