//! The sources of a module's names. Each source is opened only once.
//!
//! Takes the files and tables found by [`load`]; returns names for addresses in the module. Decides which
//! source takes precedence. [`files`](super::files) searches for files.

mod load;
mod placeholder;

use crate::hint::Hint;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use rustc_hash::FxHashMap;

use super::archive::{ArchivedModule, SymbolArchive};
use super::build_id::BuildId;
use super::dwarf::cache::Cache;
use super::dwarf::lines::{self, LineFrame};
use super::files::elf::{self, Segments};
use super::files::image::Image;
use super::files::locate::ModuleFiles;
use super::jit::jitdump::Jitdump;
use super::jit::perf_map::PerfMaps;
use super::kernel::{KallsymsError, KallsymsTable};
use super::missing_data::{DebugPackages, MissingDataReason, ModuleDataQuality};
use super::module::SymbolQuery;
use super::options::SymbolOptions;
use super::tables::elf_symbols;
use super::tables::sparse::SparseTable;
use super::tables::table::{OwnedSymbol, Symbol, SymbolTable, SymbolTableBuilder};
use crate::address::{Avma, FileOffset, IntervalMap, Svma};
use crate::go_table::{GoLine, GoTable};
pub(super) use placeholder::{Placeholder, Placeholders};

/// Data shared by all modules: the options, the kernel's symbols, and ksymbol and jitdump records.
#[derive(Debug)]
pub(super) struct SharedSources {
    pub(super) options: SymbolOptions,
    kallsyms: OnceLock<Result<Arc<KallsymsTable>, KallsymsError>>,
    running: OnceLock<Result<Option<BuildId>, MissingDataReason>>,
    ksymbols: IntervalMap<Arc<Path>>,
    jitdumps: Vec<(u32, PathBuf)>,
    pub(super) perf_maps: PerfMaps,
    pub(super) packages: DebugPackages,
    /// Functions from the recording itself, by the file's path.
    recorded: HashMap<PathBuf, Arc<SymbolTable>>,
    /// The recording's archive. If there is one, modules have no other sources.
    pub(super) archive: Option<SymbolArchive>,
}

impl SharedSources {
    pub(super) fn new(options: SymbolOptions) -> Self {
        Self {
            perf_maps: PerfMaps::new(options.owners.clone()),
            options,
            kallsyms: OnceLock::new(),
            running: OnceLock::new(),
            ksymbols: IntervalMap::default(),
            jitdumps: Vec::new(),
            packages: DebugPackages::default(),
            recorded: HashMap::default(),
            archive: None,
        }
    }

    pub(super) fn add_ksymbol(&mut self, start: Avma, size: u64, name: Arc<Path>) {
        self.ksymbols.replace(start.0..start.0.saturating_add(size), name);
    }

    pub(super) fn add_jitdump(&mut self, pid: u32, path: PathBuf) {
        self.jitdumps.push((pid, path));
    }

    pub(super) fn add_recorded(&mut self, path: PathBuf, functions: SymbolTable) {
        self.recorded.insert(path, Arc::new(functions));
    }

    /// Returns the kernel's functions, from the specified copy of kallsyms or from the running kernel.
    fn kallsyms(&self) -> Result<Arc<KallsymsTable>, KallsymsError> {
        let read = || {
            let kallsyms = match self.options.kallsyms.as_deref() {
                Some(given) => KallsymsTable::read(given),
                None => self.options.kernel.kallsyms(self.options.cache.as_deref()),
            };
            kallsyms.map(Arc::new)
        };
        self.kallsyms.get_or_init(read).clone()
    }

    /// Releases memory that only lookups need.
    pub(super) fn release(&self) {
        if let Some(Ok(kallsyms)) = self.kallsyms.get() {
            kallsyms.release();
        }
    }

    fn running(&self) -> Result<Option<BuildId>, MissingDataReason> {
        self.running.get_or_init(|| self.options.kernel.read_build_id()).clone()
    }
}

/// A module after the search for its files.
#[derive(Debug, Default)]
pub(super) struct ModuleSources {
    quality: Arc<ModuleDataQuality>,
    /// Boxed, since most modules of a very large recording have no file.
    opened: Option<Box<OpenedFiles>>,
    numbering: Numbering,
    /// All functions by address in the file, or by memory address if there is no file. Read when a caller
    /// needs all of them.
    table: OnceLock<Arc<SymbolTable>>,
    /// Sources that most modules do not have; boxed, since a recording may contain a million modules.
    other: Option<Box<OtherSources>>,
}

/// Sources of a module's names other than its files.
#[derive(Debug, Default)]
struct OtherSources {
    /// The module's data in the recording's archive. It replaces all other sources.
    archived: Option<ArchivedModule>,
    /// Functions from the recording, with the addresses used in queries. A fallback if there is no other
    /// source.
    recorded: Option<Arc<SymbolTable>>,
    /// The kernel's functions, and the distance in bytes of the kernel's current address above the recorded
    /// one.
    kallsyms: Option<(Arc<KallsymsTable>, u64)>,
    /// Memory from which the running code can be read.
    memory: LiveMemory,
    /// Dumps of generated code.
    dumps: Vec<(PathBuf, Jitdump)>,
}

/// A module's files (at least one) and the data read from them.
#[derive(Debug, Default)]
struct OpenedFiles {
    files: ModuleFiles,
    /// Functions that were looked up by single addresses.
    sparse: SparseTable,
    /// Variables, read on first use.
    variables: OnceLock<SymbolTable>,
    cache: Option<Mutex<Cache>>,
    /// The error if line lookup failed for the whole file.
    bad_lines: OnceLock<String>,
    /// The remedy, which is cached because finding it may query the package manager.
    remedy: OnceLock<Option<Hint>>,
}

impl OpenedFiles {
    /// Returns the table of a Go program without debug information.
    fn go_table(&self) -> Option<GoTable<'_>> {
        let files = || self.files.images().filter_map(|image| image.elf().ok());
        let has_lines = files().any(|file| elf::has_lines(&file));
        let table = || files().find_map(|file| Some(GoTable::find(&file)?.with_inlined_calls(&file)));
        if has_lines { None } else { table() }
    }
}

impl From<GoLine> for LineFrame {
    fn from(GoLine { function, file, line }: GoLine) -> Self {
        Self { name: Some(function.into()), file: Some(file.into()), line, column: 0 }
    }
}

/// Memory from which running code can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum LiveMemory {
    /// Not available.
    #[default]
    Gone,
    /// The kernel's memory, this many bytes above the recorded address.
    Kernel(u64),
    /// The memory of this process.
    Process(u32),
}

/// How to convert a query to an address in the file.
#[derive(Debug)]
enum Numbering {
    /// The query is a file offset.
    Offset(Segments),
    /// The query is a memory address, which is this many bytes above the address in the file.
    Slide(u64),
}

impl Default for Numbering {
    fn default() -> Self {
        Self::Slide(0)
    }
}

impl ModuleSources {
    /// Returns which files were found, and which data is missing.
    pub(super) fn quality(&self) -> Arc<ModuleDataQuality> {
        let Some(opened) = &self.opened else { return self.quality.clone() };
        let mut quality = ModuleDataQuality::clone(&self.quality);
        if let Some(why) = opened.bad_lines.get() {
            let found = quality.found_mut();
            found.lines = false;
            let path = found.debug.as_ref().or(found.binary.as_ref()).cloned().unwrap_or_default();
            quality.missing.push(MissingDataReason::BadLines { path, why: why.clone() });
        }
        let cut = opened.files.images().filter(|image| image.is_cut());
        let cut: Vec<MissingDataReason> =
            cut.map(|image| MissingDataReason::Shortened { path: image.path.clone() }).collect();
        quality.missing.splice(0..0, cut);
        quality.into()
    }

    fn quality_mut(&mut self) -> &mut ModuleDataQuality {
        Arc::make_mut(&mut self.quality)
    }

    fn lacks(&mut self, reason: MissingDataReason) {
        self.quality_mut().missing.push(reason);
    }

    /// Returns a remedy for the most important missing data.
    pub(super) fn remedy(&self, packages: &DebugPackages) -> Option<Hint> {
        let remedy = || self.quality().missing.first()?.remedy(packages);
        match &self.opened {
            Some(opened) => opened.remedy.get_or_init(remedy).clone(),
            None => remedy(),
        }
    }

    pub(super) fn binary(&self) -> Option<&Image> {
        self.opened.as_ref()?.files.binary.as_ref()
    }

    pub(super) fn debug(&self) -> Option<&Image> {
        self.opened.as_ref()?.files.debug.as_ref()
    }

    fn other_mut(&mut self) -> &mut OtherSources {
        self.other.get_or_insert_default()
    }

    fn kallsyms(&self) -> Option<&(Arc<KallsymsTable>, u64)> {
        self.other.as_ref()?.kallsyms.as_ref()
    }

    pub(super) fn archived(&self) -> Option<&ArchivedModule> {
        self.other.as_ref()?.archived.as_ref()
    }

    pub(super) fn memory(&self) -> LiveMemory {
        self.other.as_ref().map_or(LiveMemory::Gone, |other| other.memory)
    }

    pub(super) fn dumps(&self) -> &[(PathBuf, Jitdump)] {
        self.other.as_ref().map_or(&[], |other| &other.dumps)
    }

    /// Returns the segments that convert queries to addresses, if queries are file offsets.
    pub(super) fn offset_segments(&self) -> Option<&Segments> {
        match &self.numbering {
            Numbering::Offset(segments) => Some(segments),
            Numbering::Slide(_) => None,
        }
    }

    /// Inverse of [`ModuleSources::address`].
    pub(super) fn query_at(&self, address: u64) -> Option<SymbolQuery> {
        match &self.numbering {
            Numbering::Offset(segments) => segments.offset(Svma(address)).map(SymbolQuery::from),
            Numbering::Slide(_) => Some(Avma(address).into()),
        }
    }

    /// Returns the address to show to users: the address in the file, or else the memory address.
    pub(super) fn address(&self, query: SymbolQuery) -> Option<u64> {
        match &self.numbering {
            Numbering::Offset(segments) => segments.address(FileOffset(query.0)).map(|svma| svma.0),
            Numbering::Slide(_) => Some(query.0),
        }
    }

    /// Returns the address that the file's debug information uses.
    pub(super) fn file_address(&self, query: SymbolQuery) -> Option<u64> {
        match &self.numbering {
            Numbering::Offset(_) => self.address(query),
            Numbering::Slide(slide) => Some(query.0.wrapping_sub(*slide)),
        }
    }

    /// Returns the function at a query, with addresses as returned by [`ModuleSources::address`]. Reads whole
    /// tables, since callers usually look up more than one function.
    pub(super) fn find(&self, query: SymbolQuery) -> Option<Symbol<'_>> {
        if let Some(symbol) = self.find_known(query) {
            return Some(symbol);
        }
        self.table();
        self.find_known(query)
    }

    /// Like [`ModuleSources::find`]; also returns the number of bytes from the query on for which the result
    /// is the same, as far as known.
    pub(super) fn find_run(&self, query: SymbolQuery) -> (Option<Symbol<'_>>, u64) {
        let symbol = self.find(query);
        let in_kernel = self.in_kernel(query).filter(|in_kernel| symbol == Some(*in_kernel));
        let length = match (&self.other, in_kernel) {
            (None, _) => self.file_address(query).map(|at| self.table().same_until(at) - at),
            (Some(_), in_kernel) => in_kernel.map(|symbol| symbol.end.wrapping_sub(query.0)),
        };
        (symbol, length.unwrap_or(1).max(1))
    }

    /// Like [`ModuleSources::find`], but does not read any file.
    fn find_known(&self, query: SymbolQuery) -> Option<Symbol<'_>> {
        if let Some(archived) = self.archived() {
            return archived.function(self.address(query)?);
        }
        if let Some(recorded) = self.other.as_ref().and_then(|other| other.recorded.as_ref()) {
            let by = self.slide();
            return recorded.find(query.0.wrapping_sub(by)).map(|symbol| moved(symbol, by));
        }
        self.in_kernel(query).or_else(|| {
            let symbol = self.table.get()?.find(self.file_address(query)?)?;
            Some(moved(symbol, self.slide()))
        })
    }

    fn table(&self) -> &SymbolTable {
        let whole = |opened: &OpenedFiles| opened.sparse.whole(&opened.files);
        self.table.get_or_init(|| Arc::new(self.opened.as_deref().map(whole).unwrap_or_default()))
    }

    /// Returns how many bytes memory addresses are above addresses in the file.
    pub(super) fn slide(&self) -> u64 {
        if let Numbering::Slide(slide) = self.numbering { slide } else { 0 }
    }

    fn in_kernel(&self, query: SymbolQuery) -> Option<Symbol<'_>> {
        let (kallsyms, by) = self.kallsyms()?;
        Some(moved(kallsyms.find(query.0.wrapping_add(*by))?, by.wrapping_neg()))
    }

    /// Returns the variable at a query, with its address in the file.
    pub(super) fn find_variable(&self, query: SymbolQuery) -> Option<Symbol<'_>> {
        let Numbering::Offset(_) = self.numbering else { return None };
        self.variable_at(self.file_address(query)?)
    }

    /// Returns the variable at an address in the file. Uninitialized variables have an address, but no file
    /// offset that could be used as a query.
    pub(super) fn variable_at(&self, address: u64) -> Option<Symbol<'_>> {
        if let Some(archived) = self.archived() {
            return archived.variable(address);
        }
        self.variable_table()?.find(address)
    }

    /// Returns the variables in the file by address. Each applies up to the next address.
    pub(super) fn variables(&self) -> Vec<(u64, Option<OwnedSymbol>)> {
        let owned = |(at, symbol): (u64, Option<Symbol<'_>>)| (at, symbol.map(OwnedSymbol::from));
        match self.archived() {
            Some(archived) => archived.variables().map(owned).collect(),
            None => self.variable_table().into_iter().flat_map(SymbolTable::areas).map(owned).collect(),
        }
    }

    fn variable_table(&self) -> Option<&SymbolTable> {
        let opened = self.opened.as_ref()?;
        let read = || {
            let mut builder = SymbolTableBuilder::default();
            builder.limit_names(opened.files.images().map(|image| image.len()).sum());
            for image in opened.files.images() {
                if let Ok(file) = image.elf() {
                    builder.leave_names_in(image);
                    elf_symbols::add_variables(&file, &mut builder);
                }
            }
            let table = builder.finish();
            opened.files.images().for_each(Image::release);
            table
        };
        Some(opened.variables.get_or_init(read))
    }

    /// Releases the memory of the files' pages, which the next access reads again.
    pub(super) fn release_files(&self) {
        self.opened.iter().flat_map(|opened| opened.files.images()).for_each(Image::release);
    }

    /// Drops the tables that were read from the files, which the next lookup reads again.
    pub(super) fn forget_tables(&mut self) {
        if let Some(opened) = &mut self.opened {
            self.table = OnceLock::new();
            opened.variables = OnceLock::new();
        }
    }

    /// Whether a lookup works without scanning a symbol table.
    pub(super) fn knows(&self, query: SymbolQuery) -> bool {
        let Some(opened) = &self.opened else { return true };
        self.file_address(query).is_none_or(|address| opened.sparse.knows(address))
            || self.find_known(query).is_some()
    }

    /// Returns the range of queries (end exclusive) around this one for which [`ModuleSources::find_all`]
    /// returns the same name, as far as known. If `placeholders` is set, functions with different placeholder
    /// names count as having different names.
    pub(super) fn around(&self, query: SymbolQuery, placeholders: bool) -> Option<(u64, u64)> {
        if let Some(symbol) = self.in_kernel(query) {
            return Some((symbol.start, symbol.end));
        }
        let address = self.file_address(query)?;
        let sparse = &self.opened.as_ref()?.sparse;
        let (known, is_named) = sparse.around(address)?;
        let known = if is_named || !placeholders {
            known
        } else {
            let function = sparse.nameless(address)?;
            known.start.max(function.start)..known.end.min(function.end)
        };
        let by = address.wrapping_sub(query.0);
        let Numbering::Offset(segments) = &self.numbering else { return None };
        let (first, behind) = segments.around(FileOffset(query.0))?;
        // The known range may extend beyond the segment in both directions.
        let from = if known.start < first.wrapping_add(by) { first } else { known.start.wrapping_sub(by) };
        let to = if known.end > behind.wrapping_add(by) { behind } else { known.end.wrapping_sub(by) };
        (from..to).contains(&query.0).then_some((from, to))
    }

    /// Returns the functions at these queries, with addresses as returned by [`ModuleSources::address`].
    pub(super) fn find_all(&self, queries: &[SymbolQuery]) -> Vec<Option<OwnedSymbol>> {
        // Neighbouring queries are often in the same function, so they share its name.
        let mut last: Option<OwnedSymbol> = None;
        let mut owned = |symbol: Symbol<'_>| match &last {
            Some(same) if (same.start, same.end, &*same.name) == (symbol.start, symbol.end, symbol.name) => {
                same.clone()
            }
            _ => last.insert(symbol.into()).clone(),
        };
        let mut all: Vec<Option<OwnedSymbol>> =
            queries.iter().map(|query| self.find_known(*query).map(&mut owned)).collect();
        let Some(opened) = &self.opened else { return all };
        let lacking = |(query, named): (&SymbolQuery, &Option<OwnedSymbol>)| match named {
            None => self.file_address(*query),
            Some(_) => None,
        };
        let addresses: Vec<Option<u64>> = queries.iter().zip(&all).map(lacking).collect();
        let slide = self.slide();
        for (named, found) in all.iter_mut().zip(opened.sparse.find(&addresses, &opened.files)) {
            if let Some(OwnedSymbol { start, end, name }) = found {
                *named = Some(OwnedSymbol {
                    start: start.wrapping_add(slide),
                    end: end.wrapping_add(slide),
                    name,
                });
            }
        }
        all
    }

    /// Returns names for code without a symbol; `None` if the module has no file. `module` is the part of
    /// these names that identifies the module.
    pub(super) fn placeholders<'a>(&'a self, module: &'a str) -> Option<Placeholders<'a>> {
        let Numbering::Offset(_) = self.numbering else { return None };
        if let Some(archived) = self.archived() {
            return Some(Placeholders::archived(archived));
        }
        let image = self.opened.as_ref()?.files.images().next()?;
        Some(Placeholders::new(module, &image.elf().ok()?))
    }

    /// Records the bounds of a function with a placeholder name, for [`ModuleSources::around`].
    pub(super) fn remember(&self, placeholder: &Placeholder) {
        if let (Some(opened), Some(function)) = (&self.opened, placeholder.function) {
            opened.sparse.add_nameless(function);
        }
    }

    /// Iterates over all known functions, by start address, with addresses as returned by
    /// [`ModuleSources::address`].
    pub(super) fn symbols(&self) -> impl Iterator<Item = Symbol<'_>> {
        let archived = self.archived().map(ArchivedModule::functions);
        let kernel = self.kallsyms().map(|(kallsyms, by)| {
            let by = by.wrapping_neg();
            kallsyms.iter().map(move |symbol| moved(symbol, by))
        });
        let is_own = archived.is_none() && kernel.is_none();
        let own = is_own.then(|| self.table().iter().map(|symbol| moved(symbol, self.slide())));
        let others = kernel.into_iter().flatten().chain(own.into_iter().flatten());
        archived.into_iter().flatten().chain(others)
    }

    /// Returns the lines and inlined functions at addresses in the file; `None` if the module has no line
    /// information.
    pub(super) fn lines(
        &self,
        addresses: &[Option<u64>],
        done: &(dyn Fn(usize) + Sync),
    ) -> Option<FxHashMap<u64, Vec<LineFrame>>> {
        if let Some(archived) = self.archived().filter(|_| self.quality.found().lines) {
            done(addresses.iter().flatten().count());
            return Some(archived.lines(addresses.iter().flatten().copied()));
        }
        let opened = self.opened.as_ref().filter(|_| self.quality.found().lines)?;
        let mut wanted: Vec<u64> = addresses.iter().flatten().copied().collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut known = FxHashMap::default();
        let mut cache = opened.cache.as_ref().and_then(|cache| cache.lock().ok());
        if let Some(cache) = &mut cache {
            wanted.retain(|address| match cache.get(*address) {
                Some(frames) => {
                    known.insert(*address, frames);
                    false
                }
                None => true,
            });
            done(known.len());
        }
        if wanted.is_empty() {
            return Some(known);
        }
        let resolved = match opened.go_table() {
            Some(go) => {
                done(wanted.len());
                Ok(wanted
                    .iter()
                    .map(|address| go.lines(*address).into_iter().map(LineFrame::from).collect())
                    .collect())
            }
            None => lines::resolve(&opened.files, &wanted, done),
        };
        match resolved {
            Ok(list) => {
                if let Some(cache) = &mut cache {
                    cache.add(wanted.iter().copied().zip(list.iter()));
                }
                known.extend(wanted.into_iter().zip(list));
            }
            Err(why) => {
                let _ = opened.bad_lines.set(why);
            }
        }
        Some(known)
    }
}

/// Returns a symbol whose addresses are higher by a number of bytes.
fn moved(symbol: Symbol<'_>, by: u64) -> Symbol<'_> {
    Symbol { start: symbol.start.wrapping_add(by), end: symbol.end.wrapping_add(by), ..symbol }
}
