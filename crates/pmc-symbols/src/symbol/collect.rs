//! Writes archives: looks up the data of sampled addresses that later readers need.
//!
//! Takes the addresses in each module, by the way in which readers use them. Returns the bytes of an
//! [`archive`]. The caller decides which addresses to include, and stores the bytes in a recording.
//!
//! ```text
//!   queries   --> names, placeholders, lines, inlined functions
//!   executed  --> functions --> code --scan--> instructions --> lines, names of their targets
//!   data      --> variables; with debug data: all variables of the module
//!   lines     --> source excerpts
//! ```

use pmc_sys::error::Advice;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;

use super::archive::answers::{
    AnswerRun, FrameWriter, SymbolWriter, TextColumnWriter, answers_in, answers_of,
};
use super::archive::format::{ModuleData, ModuleKey};
use super::archive::{self, ArchiveError, OriginalFacts, SectionWriter};
use super::code::scan::{AddressOperand, ScannedInstruction, scan};
use super::code::{LONGEST_INSTRUCTION, MOST_CODE, MachineCode, NoCode};
use super::dwarf::lines::LineFrame;
use super::files::source_text::SourceFolders;
use super::module::{ModuleId, SymbolModuleKind, SymbolQuery};
use super::name_sources::{ModuleSources, Placeholder, Placeholders};
use super::symbolizer::{SymbolProgress, Symbolizer};
use super::tables::table::{OwnedSymbol, Symbol};
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
        &mut self,
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
        let modules: Vec<ModuleId> = by_key.values().map(|(_, request)| request.module).collect();
        self.find_packages(&modules);
        let total = by_key.len();
        let mut section = SectionWriter::new(facts, archive::LEVEL)?;
        for (done, (key, request)) in by_key.into_values().enumerate() {
            progress(SymbolProgress { done, total });
            let (id, name) = (request.module, self.placeholder_name(request.module));
            let collect = || ModuleCollector::new(self, id, content, &name).finish(key, request);
            let data = worker_threads::inside(collect);
            self.forget_tables(id);
            section.add(&data)?;
        }
        section.finish()
    }
}

/// The lines to include, by source file.
type WantedLines = BTreeMap<String, BTreeSet<u32>>;

/// The addresses in the operands of instructions, in any order.
#[derive(Default)]
struct OperandAddresses {
    targets: Vec<u64>,
    slots: Vec<u64>,
    data: Vec<u64>,
}

impl OperandAddresses {
    fn add(&mut self, operand: AddressOperand) {
        let (list, address) = match operand {
            AddressOperand::Target(address) => (&mut self.targets, address),
            AddressOperand::Slot(address) => (&mut self.slots, address),
            AddressOperand::Data(address) => (&mut self.data, address),
        };
        list.push(address);
    }

    fn sort(&mut self) {
        for list in [&mut self.targets, &mut self.slots, &mut self.data] {
            list.sort_unstable();
            list.dedup();
        }
    }
}

/// Collects the data of a module.
struct ModuleCollector<'a> {
    symbolizer: &'a Symbolizer,
    id: ModuleId,
    sources: &'a ModuleSources,
    content: ArchiveContent,
    data: ModuleData,
    texts: TextColumnWriter,
    symbols: SymbolWriter,
    frames: FrameWriter,
    /// Finds names for code without a symbol.
    areas: Option<Placeholders<'a>>,
    functions: Vec<AnswerRun>,
    placeholders: Vec<AnswerRun>,
    variables: Vec<AnswerRun>,
    slots: Vec<AnswerRun>,
    /// Addresses of instructions in functions whose code is included, in the module's own address space.
    /// Empty if the module has no line information, which is the only use for them.
    instructions: Vec<u64>,
    has_lines: bool,
    operands: OperandAddresses,
    wanted_lines: WantedLines,
}

impl<'a> ModuleCollector<'a> {
    /// `name` is the part of placeholder names that identifies the module.
    fn new(symbolizer: &'a Symbolizer, id: ModuleId, content: ArchiveContent, name: &'a str) -> Self {
        let sources = symbolizer.sources(id);
        Self {
            symbolizer,
            id,
            sources,
            content,
            data: ModuleData::default(),
            texts: TextColumnWriter::default(),
            symbols: SymbolWriter::default(),
            frames: FrameWriter::default(),
            areas: sources.placeholders(name),
            functions: Vec::new(),
            placeholders: Vec::new(),
            variables: Vec::new(),
            slots: Vec::new(),
            instructions: Vec::new(),
            has_lines: sources.quality().found().lines,
            operands: OperandAddresses::default(),
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
                self.variables.push(AnswerRun::at(address, number));
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
        let addresses = executed.iter().filter_map(|query| self.sources.address(*query));
        let mut others: BTreeSet<u64> = addresses.collect();
        for (start, size) in self.functions(executed) {
            match self.read_code(start, size) {
                Ok(mut code) => {
                    self.instructions_of(&mut code, size, &mut others);
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
        let (symbolizer, id) = (self.symbolizer, self.id);
        let code = |address| symbolizer.code_at(id, address, LONGEST_INSTRUCTION);
        for code in others.into_iter().filter_map(code) {
            let ScannedInstruction { size, operand } = scan(code.machine, &code.bytes, code.start);
            self.add_operand(&code, size, operand);
            pieces.push(code);
        }
        self.sources.release_files();
        let pieces = join(pieces);
        self.data.code_bytes.reserve_exact(pieces.iter().map(|code| code.bytes.len()).sum());
        for code in pieces {
            self.add_piece(&code);
        }
        self.operand_names();
        self.sources.release_files();
    }

    /// Returns start and size of the functions at these queries.
    fn functions(&self, executed: &[SymbolQuery]) -> BTreeSet<(u64, u64)> {
        let symbols = self.sources.find_all(executed);
        let function = |(query, symbol): (&SymbolQuery, Option<OwnedSymbol>)| match symbol {
            Some(symbol) => Some((symbol.start, symbol.end.wrapping_sub(symbol.start))),
            None => {
                let found = self.areas.as_ref()?.find(self.sources.file_address(*query)?)?;
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

    /// Adds the instructions that start in the first `size` bytes of a function, and drops the bytes after
    /// the last one. Removes their addresses from `others`.
    fn instructions_of(&mut self, code: &mut MachineCode, size: u64, others: &mut BTreeSet<u64>) {
        let inside = usize::try_from(size).unwrap_or(usize::MAX).min(code.bytes.len());
        let end = code.start.wrapping_add(inside as u64);
        let executed: Vec<u64> = others.range(code.start..end.max(code.start)).copied().collect();
        let mut executed = executed.into_iter().peekable();
        // The current run of instructions with the same name, and where it ends.
        let (mut run, mut run_end) = (AnswerRun::at(code.start, None), code.start);
        let mut at = 0;
        while at < inside {
            let address = code.start.wrapping_add(at as u64);
            let ScannedInstruction { size, operand } = scan(code.machine, &code.bytes[at..], address);
            if address < run_end {
                run.last = address;
            } else if let Some(query) = self.sources.query_at(address) {
                if run_end > code.start {
                    self.functions.push(run);
                }
                let (answer, length) = self.name_run(query);
                (run, run_end) = (AnswerRun::at(address, answer), address.saturating_add(length));
            }
            while executed.next_if(|executed| *executed < address).is_some() {}
            if executed.next_if_eq(&address).is_some() {
                others.remove(&address);
            }
            if self.has_lines {
                self.instructions.push(address);
            }
            let is_here = |target| (run.first..run_end.min(end)).contains(&target);
            if !matches!(operand, Some(AddressOperand::Target(target)) if is_here(target)) {
                self.add_operand(code, size, operand);
            }
            at += size;
        }
        if run_end > code.start {
            self.functions.push(run);
        }
        code.bytes.truncate(at);
    }

    /// Returns the number of the function at a query, and the number of bytes for which it is the same.
    /// Adds the placeholder if there is no function.
    fn name_run(&mut self, query: SymbolQuery) -> (Option<u32>, u64) {
        let (symbol, length) = self.sources.find_run(query);
        let Some(Symbol { start, end, name }) = symbol else {
            self.placeholder(query);
            return (None, 1);
        };
        let name = self.texts.add(name);
        (Some(self.symbols.add(start, end.wrapping_sub(start), name)), length)
    }

    fn placeholder(&mut self, query: SymbolQuery) {
        let Some(address) = self.sources.file_address(query) else { return };
        let found = self.areas.as_ref().and_then(|areas| areas.find(address));
        let number = found.map(|Placeholder { name, function }| {
            let (start, end) = function.unwrap_or_default();
            let name = self.texts.add(&name);
            self.symbols.add(start, end.wrapping_sub(start), name)
        });
        self.placeholders.push(AnswerRun::at(address, number));
    }

    /// Adds the address in an operand of an instruction of `size` bytes.
    fn add_operand(&mut self, code: &MachineCode, size: usize, operand: Option<AddressOperand>) {
        // In code that is not linked, only the targets of short jumps are known.
        let is_known = |operand: &AddressOperand| {
            !code.is_unlinked || size <= 2 && matches!(operand, AddressOperand::Target(_))
        };
        if let Some(operand) = operand.filter(is_known) {
            self.operands.add(operand);
        }
    }

    /// Adds the names to which operands refer.
    fn operand_names(&mut self) {
        let mut operands = std::mem::take(&mut self.operands);
        operands.sort();
        let is_file = matches!(self.symbolizer.module(self.id).kind, SymbolModuleKind::File);
        let mut is_named = |address: &u64| {
            let Some(query) = self.sources.query_at(*address) else { return false };
            let (answer, _) = self.name_run(query);
            self.functions.push(AnswerRun::at(*address, answer));
            answer.is_some()
        };
        for address in &operands.targets {
            is_named(address);
        }
        operands.slots.retain(|address| !is_named(address) && is_file);
        operands.data.retain(|address| !is_named(address) && is_file);
        for address in operands.data {
            if let Some(variable) = self.sources.variable_at(address).map(OwnedSymbol::from) {
                let number = self.symbol(&variable);
                self.variables.push(AnswerRun::at(address, Some(number)));
            }
        }
        let mut slots: Vec<_> = self.symbolizer.slot_names(self.id, operands.slots).into_iter().collect();
        // Numbers depend on the order, and equal input must give an equal archive.
        slots.sort_unstable();
        for (address, (name, into)) in slots {
            let name = self.texts.add(&name);
            let number = self.symbols.add(address.wrapping_sub(into), into + 1, name);
            self.slots.push(AnswerRun::at(address, Some(number)));
        }
    }

    fn add_piece(&mut self, code: &MachineCode) {
        let piece = self.data.code.len() as u64 / 5;
        let path = self.symbolizer.path_in_process(self.id, &code.from);
        let from = self.texts.add(&path.to_string_lossy());
        if self.symbolizer.is_own_file(self.id, &code.from) {
            self.data.image = Some(path.as_os_str().as_bytes().to_vec());
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

    /// Adds the functions and placeholders of sampled addresses, and the lines of all addresses.
    fn names(&mut self, sampled: Vec<SymbolQuery>) {
        if self.has_lines {
            self.lines(&sampled);
        }
        for (query, symbol) in sampled.iter().zip(self.sources.find_all(&sampled)) {
            if symbol.is_none() {
                self.placeholder(*query);
            }
            if let Some(address) = self.sources.address(*query) {
                let number = symbol.map(|symbol| self.symbol(&symbol));
                self.functions.push(AnswerRun::at(address, number));
            }
        }
        self.data.functions = Some(answers_of(std::mem::take(&mut self.functions)));
        self.data.placeholders = Some(answers_of(std::mem::take(&mut self.placeholders)));
    }

    /// Adds lines and inlined functions.
    fn lines(&mut self, sampled: &[SymbolQuery]) {
        let mut instructions = std::mem::take(&mut self.instructions);
        instructions.sort_unstable();
        instructions.dedup();
        let query = |address: &u64| self.sources.query_at(*address);
        let instructions: Vec<SymbolQuery> = instructions.iter().filter_map(query).collect();
        let queries = instructions.iter().chain(sampled);
        let addresses: Vec<Option<u64>> = queries.map(|query| self.sources.file_address(*query)).collect();
        let found = self.sources.lines(&addresses, &|_| {}).unwrap_or_default();
        // Frame numbers depend on the order, and equal input must give an equal archive.
        let mut sorted: Vec<(&u64, &Vec<LineFrame>)> = found.iter().collect();
        sorted.sort_unstable_by_key(|(address, _)| **address);
        let lines =
            sorted.into_iter().map(|(at, list)| AnswerRun::at(*at, self.frames.add(list, &mut self.texts)));
        self.data.lines = Some(answers_of(lines.collect()));
        if !self.content.code {
            return;
        }
        let sources = self.sources;
        let frames = |query: &SymbolQuery| found.get(&sources.file_address(*query)?);
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
            let remedy = if at == 0 { self.symbolizer.remedy(self.id) } else { None };
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
