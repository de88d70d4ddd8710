//! Writes archives: looks up the data of sampled addresses that later readers need.
//!
//! Takes the addresses in each module, by the way in which readers use them. Returns the bytes of an
//! [`archive`]. The caller decides which addresses to include, and stores the bytes in a recording.
//!
//! ```text
//!   queries   --> names, placeholders, lines, inlined functions
//!   executed  --> functions --> code --> instructions --> lines, names of their targets
//!   data      --> variables; with debug data: all variables of the module
//!   lines     --> source excerpts
//! ```

use pmc_sys::error::Advice;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::archive::answers::{FrameWriter, SymbolWriter, TextColumnWriter, answers_in, answers_of};
use super::archive::format::{ModuleData, ModuleKey};
use super::archive::{self, ArchiveError, OriginalFacts};
use super::code::disassemble::{self, Flow, Instruction, Syntax};
use super::code::{LONGEST_INSTRUCTION, MOST_CODE, MachineCode, NoCode};
use super::dwarf::lines::LineFrame;
use super::files::source_text::SourceFolders;
use super::module::{ModuleId, SymbolQuery};
use super::name_sources::{ModuleSources, Placeholder};
use super::symbolizer::{SymbolProgress, Symbolizer};
use super::tables::table::OwnedSymbol;
use crate::worker_threads;

/// Number of lines before a line with code that listings may show.
const LINES_BEFORE: u32 = 12;

/// The addresses of a module to include in an archive, in any order.
#[derive(Debug, Clone)]
pub struct ArchiveRequest {
    /// The module.
    pub module: ModuleId,
    /// Addresses of code whose functions and lines are shown.
    pub queries: Vec<SymbolQuery>,
    /// Addresses whose functions' code is included. They must be in `queries` too.
    pub executed: Vec<SymbolQuery>,
    /// Addresses of data.
    pub data: Vec<SymbolQuery>,
}

impl ArchiveRequest {
    /// Creates a request without addresses.
    pub fn new(module: ModuleId) -> Self {
        Self { module, queries: Vec::new(), executed: Vec::new(), data: Vec::new() }
    }
}

/// What an archive contains in addition to names and line numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchiveContent {
    /// Whether to include the machine code of functions with samples, and excerpts of their sources.
    pub code: bool,
    /// Whether to include whole source files instead of excerpts.
    pub whole_sources: bool,
    /// Whether to include the names of all variables of the modules, instead of those at sampled addresses.
    pub variables: bool,
}

impl Symbolizer {
    /// Returns an archive of these modules as a section of a recording.
    ///
    /// # Errors
    /// Fails if the archive cannot be compressed.
    pub fn archive(
        &self,
        requests: Vec<ArchiveRequest>,
        content: ArchiveContent,
        facts: &OriginalFacts,
        progress: &(dyn Fn(SymbolProgress) + Sync),
    ) -> Result<Vec<u8>, ArchiveError> {
        let mut by_key: BTreeMap<Vec<u8>, (ModuleKey, ArchiveRequest)> = BTreeMap::new();
        for mut request in requests {
            let key = archive::key_of(self.module(request.module));
            let all = by_key.entry(prost::Message::encode_to_vec(&key));
            all.and_modify(|(_, all)| {
                all.queries.append(&mut request.queries);
                all.executed.append(&mut request.executed);
                all.data.append(&mut request.data);
            })
            .or_insert((key, request));
        }
        // Finding remedies may query the package manager, which takes long, so do it in parallel.
        let modules: Vec<ModuleId> = by_key.values().map(|(_, request)| request.module).collect();
        worker_threads::inside(|| modules.par_iter().for_each(|module| drop(self.remedy(*module))));
        let total = by_key.len();
        let collect = |(at, (key, request)): (usize, (ModuleKey, ArchiveRequest))| {
            progress(SymbolProgress { done: at, total });
            worker_threads::inside(|| ModuleCollector::new(self, &request, content).finish(key, request))
        };
        let modules: Vec<ModuleData> = by_key.into_values().enumerate().map(collect).collect();
        archive::encode(&modules, facts, archive::LEVEL)
    }
}

/// The lines to include, by source file.
type WantedLines = BTreeMap<String, BTreeSet<u32>>;

/// Collects the data of a module.
struct ModuleCollector<'a> {
    symbolizer: &'a Symbolizer,
    id: ModuleId,
    sources: &'a ModuleSources,
    content: ArchiveContent,
    /// The part of placeholder names that identifies the module.
    name: String,
    data: ModuleData,
    texts: TextColumnWriter,
    symbols: SymbolWriter,
    frames: FrameWriter,
    variables: Vec<(u64, Option<u32>)>,
    slots: Vec<(u64, Option<u32>)>,
    /// Addresses of instructions in functions whose code is included, in the module's own address space.
    instructions: Vec<u64>,
    /// Addresses to which instructions refer.
    targets: Vec<u64>,
    wanted_lines: WantedLines,
}

impl<'a> ModuleCollector<'a> {
    fn new(symbolizer: &'a Symbolizer, request: &ArchiveRequest, content: ArchiveContent) -> Self {
        Self {
            symbolizer,
            id: request.module,
            sources: symbolizer.sources(request.module),
            content,
            name: symbolizer.placeholder_name(request.module),
            data: ModuleData::default(),
            texts: TextColumnWriter::default(),
            symbols: SymbolWriter::default(),
            frames: FrameWriter::default(),
            variables: Vec::new(),
            slots: Vec::new(),
            instructions: Vec::new(),
            targets: Vec::new(),
            wanted_lines: WantedLines::new(),
        }
    }

    fn finish(mut self, key: ModuleKey, mut request: ArchiveRequest) -> ModuleData {
        for list in [&mut request.queries, &mut request.executed, &mut request.data] {
            list.sort_unstable();
            list.dedup();
        }
        if self.content.code {
            self.code(&request.executed);
        }
        self.names(request.queries);
        for query in request.data {
            if let Some(address) = self.sources.file_address(query) {
                let variable = self.sources.find_variable(query).map(OwnedSymbol::from);
                let number = variable.map(|symbol| self.symbol(&symbol));
                self.variables.push((address, number));
            }
        }
        if self.content.code {
            self.source_files();
        }
        self.describe(key)
    }

    fn symbol(&mut self, symbol: &OwnedSymbol) -> u32 {
        let name = self.texts.add(&symbol.name);
        self.symbols.add(symbol.start, symbol.end.wrapping_sub(symbol.start), name)
    }

    /// Adds the code of all functions that were executed, and of executed addresses outside of functions.
    fn code(&mut self, executed: &[SymbolQuery]) {
        let mut pieces: Vec<MachineCode> = Vec::new();
        for (start, size) in self.functions(executed) {
            match self.read_code(start, size) {
                Ok(mut code) => {
                    self.instructions_of(&mut code, size);
                    pieces.push(code);
                }
                Err(NoCode { why, remedy }) => {
                    let remedy =
                        remedy.map_or(0, |remedy| self.texts.add(&Advice::from(remedy).to_string()) + 1);
                    let why = self.texts.add(&why);
                    self.data.no_code.extend([start, u64::from(why), u64::from(remedy)]);
                }
            }
        }
        self.instructions.sort_unstable();
        self.instructions.dedup();
        let addresses = executed.iter().filter_map(|query| self.sources.address(*query));
        let others = addresses.filter(|address| self.instructions.binary_search(address).is_err());
        let code = |address| self.symbolizer.code_at(self.id, address, LONGEST_INSTRUCTION);
        let others: Vec<MachineCode> = others.filter_map(code).collect();
        let codes: Vec<_> = others.iter().map(|code| (self.id, code)).collect();
        for instruction in self.symbolizer.first_instructions(&codes).iter().flatten() {
            self.targets_of(instruction);
        }
        pieces.extend(others);
        for code in join(pieces) {
            self.add_piece(&code);
        }
    }

    /// Returns start and size of the functions at these queries.
    fn functions(&self, executed: &[SymbolQuery]) -> BTreeSet<(u64, u64)> {
        let symbols = self.sources.find_all(executed);
        let placeholders = self.sources.placeholders(&self.name);
        let function = |(query, symbol): (&SymbolQuery, Option<OwnedSymbol>)| match symbol {
            Some(symbol) => Some((symbol.start, symbol.end.wrapping_sub(symbol.start))),
            None => {
                let found = placeholders.as_ref()?.find(self.sources.file_address(*query)?)?;
                found.function.map(|(start, end)| (start, end.wrapping_sub(start)))
            }
        };
        executed.iter().zip(symbols).filter_map(function).filter(|(_, size)| *size > 0).collect()
    }

    /// Reads a function's code, and the rest of an instruction that extends beyond its end.
    fn read_code(&self, start: u64, size: u64) -> Result<MachineCode, NoCode> {
        let size = size.min(MOST_CODE);
        let longer = self.symbolizer.code(self.id, start, size.saturating_add(LONGEST_INSTRUCTION), None);
        longer.or_else(|_| self.symbolizer.code(self.id, start, size, None))
    }

    /// Adds the instructions in the first `size` bytes of a function, and drops the bytes after the last one.
    fn instructions_of(&mut self, code: &mut MachineCode, size: u64) {
        let inside = usize::try_from(size).unwrap_or(usize::MAX).min(code.bytes.len());
        let whole = MachineCode { bytes: code.bytes[..inside].to_vec(), ..code.clone() };
        let Ok(all) = self.symbolizer.disassemble(self.id, &whole, Syntax::default()) else {
            return code.bytes.truncate(inside);
        };
        for instruction in &all {
            self.instructions.push(instruction.address);
            self.targets_of(instruction);
        }
        // Only an instruction near the end can extend beyond it.
        let near = all.len().saturating_sub(LONGEST_INSTRUCTION as usize + 1);
        let from = all.get(near).map_or(0, |first| first.address.wrapping_sub(code.start) as usize);
        let rest = code.bytes.get(from..).unwrap_or_default();
        let start = code.start.wrapping_add(from as u64);
        let rest = disassemble::disassemble(code.machine, Syntax::default(), rest, start);
        let rest = rest.inspect_err(|error| self.symbolizer.report(self.id, error)).unwrap_or_default();
        let last = rest.iter().rev().find(|it| it.address.wrapping_sub(code.start) < inside as u64);
        let end = last.map_or(inside, |it| (it.address - code.start) as usize + it.bytes.len());
        code.bytes.truncate(end.max(inside));
    }

    /// Adds the names that an instruction's operands refer to.
    fn targets_of(&mut self, instruction: &Instruction) {
        for target in [&instruction.target, &instruction.refers].into_iter().flatten() {
            self.targets.push(target.address);
            let Some((name, into)) = &target.name else { continue };
            if self.symbolizer.name_at(self.id, target.address).is_some() {
                continue;
            }
            if instruction.flow == Flow::Next {
                let variable = self.sources.variable_at(target.address).map(OwnedSymbol::from);
                let number = variable.map(|symbol| self.symbol(&symbol));
                self.variables.push((target.address, number));
            } else {
                let name = self.texts.add(name);
                let number = self.symbols.add(target.address.wrapping_sub(*into), into + 1, name);
                self.slots.push((target.address, Some(number)));
            }
        }
    }

    fn add_piece(&mut self, code: &MachineCode) {
        let piece = self.data.code.len() as u64 / 5;
        let from = self.texts.add(&code.from.to_string_lossy());
        if self.symbolizer.is_own_file(self.id, &code.from) {
            self.data.image = Some(code.from.as_os_str().as_bytes().to_vec());
        }
        let machine = u64::from(code.machine.elf_number());
        let size = code.bytes.len() as u64;
        self.data.code.extend([code.start, size, machine, u64::from(from), u64::from(code.is_unlinked)]);
        self.data.code_bytes.extend(&code.bytes);
        for (address, file, line) in &code.lines {
            let number = self.texts.add(file);
            self.data.code_lines.extend([piece, *address, u64::from(number), u64::from(*line)]);
            self.want_lines(file, *line);
        }
    }

    /// Includes a source line with code, and the lines that listings show before it.
    fn want_lines(&mut self, file: &str, line: u32) {
        let lines = self.wanted_lines.entry(file.to_owned()).or_default();
        lines.extend(line.saturating_sub(LINES_BEFORE).max(1)..=line);
    }

    /// Adds the functions, placeholders and lines of all addresses.
    fn names(&mut self, sampled: Vec<SymbolQuery>) {
        let query = |address: &u64| self.sources.query_at(*address);
        let instructions: Vec<SymbolQuery> = self.instructions.iter().filter_map(query).collect();
        let targets: Vec<SymbolQuery> = self.targets.iter().filter_map(query).collect();
        let mut queries = [&sampled[..], &instructions].concat();
        queries.sort_unstable();
        queries.dedup();
        let addresses: Vec<Option<u64>> =
            queries.iter().map(|query| self.sources.file_address(*query)).collect();
        let lines = self.sources.lines(&addresses, &|_| {}).unwrap_or_default();
        self.lines(&lines, &sampled, &instructions);
        queries.extend(targets);
        queries.sort_unstable();
        queries.dedup();
        let found = self.sources.find_all(&queries);
        let is_nameless = found.iter().any(Option::is_none);
        let areas = if is_nameless { self.sources.placeholders(&self.name) } else { None };
        let (mut functions, mut placeholders) = (Vec::new(), Vec::new());
        for (query, symbol) in queries.iter().zip(found) {
            let file_address = self.sources.file_address(*query);
            if let (None, Some(at)) = (&symbol, file_address) {
                let place = areas.as_ref().and_then(|areas| areas.find(at));
                placeholders.push((at, place));
            }
            if let Some(address) = self.sources.address(*query) {
                functions.push((address, symbol));
            }
        }
        drop(areas);
        let mut number = |symbol: Option<OwnedSymbol>| symbol.map(|symbol| self.symbol(&symbol));
        let functions = functions.into_iter().map(|(address, symbol)| (address, number(symbol))).collect();
        let mut number = |place: Placeholder| {
            let (start, end) = place.function.unwrap_or_default();
            let name = self.texts.add(&place.name);
            self.symbols.add(start, end.wrapping_sub(start), name)
        };
        let placeholders = placeholders.into_iter().map(|(at, place)| (at, place.map(&mut number))).collect();
        self.data.functions = Some(answers_of(functions));
        self.data.placeholders = Some(answers_of(placeholders));
    }

    /// Adds lines and inlined functions.
    fn lines(
        &mut self,
        found: &FxHashMap<u64, Vec<LineFrame>>,
        sampled: &[SymbolQuery],
        instructions: &[SymbolQuery],
    ) {
        // Frame numbers depend on the order, and equal input must give an equal archive.
        let mut sorted: Vec<(&u64, &Vec<LineFrame>)> = found.iter().collect();
        sorted.sort_unstable_by_key(|(address, _)| **address);
        let lines = sorted.into_iter().map(|(at, list)| (*at, self.frames.add(list, &mut self.texts)));
        self.data.lines = Some(answers_of(lines.collect()));
        if !self.content.code {
            return;
        }
        let frames = |query: &SymbolQuery| found.get(&self.sources.file_address(*query)?);
        let in_code: Vec<&LineFrame> =
            instructions.iter().chain(sampled).filter_map(|query| frames(query)?.first()).collect();
        for frame in in_code {
            if let Some(file) = &frame.file {
                self.want_lines(file, frame.line);
            }
        }
        let outer = sampled.iter().filter_map(frames).flat_map(|list| list.iter().skip(1));
        for frame in outer {
            if let Some(file) = &frame.file {
                self.wanted_lines.entry(file.to_string()).or_default().insert(frame.line);
            }
        }
    }

    /// Adds excerpts of the source files.
    fn source_files(&mut self) {
        for (number, (path, lines)) in (0..).zip(std::mem::take(&mut self.wanted_lines)) {
            let name = u64::from(self.texts.add(&path));
            match self.symbolizer.source(self.id, &path, &SourceFolders::default()) {
                Ok(source) => {
                    let count = source.lines.count();
                    self.data.sources.extend([name, 0, 0, u64::from(source.is_newer), u64::from(count)]);
                    let lines = if self.content.whole_sources { (1..=count).collect() } else { lines };
                    let there: Vec<(u32, &str)> =
                        lines.into_iter().filter_map(|line| Some((line, source.lines.get(line)?))).collect();
                    for excerpt in there.chunk_by(|(line, _), (next, _)| next - line == 1) {
                        let texts: Vec<u32> = excerpt.iter().map(|(_, text)| self.texts.push(text)).collect();
                        let (first, len) = (u64::from(excerpt[0].0), texts.len() as u64);
                        self.data.excerpts.extend([number, first, len, u64::from(texts[0])]);
                    }
                }
                Err(reason) => {
                    let why = u64::from(self.texts.add(&reason.to_string())) + 1;
                    self.data.sources.extend([name, why, u64::from(reason.is_failure()), 0, 0]);
                }
            }
        }
    }

    /// Adds the description of the module, and returns its data.
    fn describe(mut self, key: ModuleKey) -> ModuleData {
        let quality = self.sources.quality();
        let found = quality.found();
        let path = |path: &std::path::PathBuf| path.as_os_str().as_bytes().to_vec();
        self.data.key = Some(key);
        self.data.binary = found.binary.as_ref().map(path);
        self.data.debug = found.debug.as_ref().map(path);
        self.data.symbols_found = found.symbols as u64;
        self.data.has_lines = found.lines;
        for (at, missing) in quality.missing.iter().enumerate() {
            // Only the remedy for the most important missing data is shown.
            let remedy = if at == 0 { self.sources.remedy() } else { None };
            let remedy = remedy.map_or(0, |remedy| self.texts.add(&Advice::from(remedy).to_string()) + 1);
            let why = self.texts.add(&missing.to_string());
            self.data.missing.extend([why.into(), remedy.into(), u64::from(missing.is_failure())]);
        }
        match self.sources.offset_segments() {
            Some(segments) => self.data.segments = segments.to_rows().flatten().collect(),
            None => self.data.slide = Some(self.sources.slide()),
        }
        self.data.has_short_addresses = self.symbolizer.has_short_addresses(self.id);
        self.data.variables = Some(match self.content.variables {
            true => {
                let all = self.sources.variables();
                let mut number =
                    |(at, symbol): (u64, Option<OwnedSymbol>)| (at, symbol.map(|it| self.symbol(&it)));
                answers_in(all.into_iter().map(&mut number).collect())
            }
            false => answers_of(std::mem::take(&mut self.variables)),
        });
        self.data.slots = Some(answers_of(self.slots));
        self.data.symbols = Some(self.symbols.columns);
        self.data.frames = Some(self.frames.columns);
        self.data.texts = self.texts.texts;
        self.data.text_lengths = self.texts.lengths;
        self.data
    }
}

/// Joins pieces of code that overlap or touch, so that each address is in one piece.
fn join(mut pieces: Vec<MachineCode>) -> Vec<MachineCode> {
    pieces.sort_by_key(|code| code.start);
    let mut joined: Vec<MachineCode> = Vec::new();
    for code in pieces {
        let Some(last) = joined.last_mut() else {
            joined.push(code);
            continue;
        };
        let known = last.start.saturating_add(last.bytes.len() as u64);
        let is_same = last.from == code.from && last.lines.is_empty() && code.lines.is_empty();
        if is_same && code.start <= known {
            let skipped = usize::try_from(known - code.start).unwrap_or(usize::MAX);
            last.bytes.extend(code.bytes.get(skipped..).unwrap_or_default());
        } else {
            joined.push(code);
        }
    }
    joined
}
