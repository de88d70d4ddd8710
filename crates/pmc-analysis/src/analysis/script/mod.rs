//! Visits samples and other records one by one, symbolized and in time order.
//!
//! First, [`NamedRecording::load`] symbolizes all addresses of a [`Session`]; then,
//! [`NamedRecording::entries`] passes each record to the visitor as a [`ScriptLine`]. The [`ScriptRequest`]
//! and the recorded data determine the fields of each event. `view::script` prints the lines.

mod blocks;
mod dump;
mod entries;
mod fields;
mod instructions;
mod places;

use std::sync::Arc;

pub use dump::{DumpOrder, dump};
pub use fields::FieldChange;

use super::request::SampleSelection;
use super::symbols::RecordingSymbols;
use super::unwinding::RecordingUnwinder;
use super::{ProgressSink, recording_quality, symbols_of};
use crate::profile::script::{
    AddressFunctions, BLOCK_FIELDS, DumpedRecord, ScriptEntry, ScriptField, ScriptFields,
};
use crate::session::distinct_addresses::{self, AddressKinds, Addresses};
use crate::session::space::MappedModule;
use crate::session::{ModuleKind, SampleQuery, Session};
use pmc_perfdata::record::{Record, kind};
use pmc_symbols::address::{Avma, FileOffset};
use pmc_symbols::symbol::demangle::{demangle, without_parameters};
use pmc_symbols::symbol::source_text::{SourceFolders, SourceLines};
use pmc_symbols::symbol::{Depth, SymbolOptions};
use pmc_sys::abi::sample_type;
use pmc_sys::error::{Exit, Result};

/// Which records to show, and how.
#[derive(Debug, Clone)]
pub struct ScriptRequest {
    /// Which samples to include.
    pub selection: SampleSelection,
    /// Changes to the default fields.
    pub fields: Vec<FieldChange>,
    /// Whether to collect all recorded data regardless of the fields.
    pub everything: bool,
    /// Whether to include tracepoint fields by name.
    pub trace_fields: bool,
    /// Whether to include callers.
    pub callers: bool,
    /// Maximum length of a call chain, in frames.
    pub max_stack: usize,
    /// Whether to complete truncated stack copies from earlier samples of the same thread.
    pub joins: bool,
    /// Whether to complete hardware-recorded call stacks (LBR) from earlier samples of the same thread.
    pub stitches: bool,
    /// Names of the functions whose samples to include; empty for all.
    pub functions: Vec<String>,
    /// Paths or short names of the modules whose samples to include; empty for all.
    pub dsos: Vec<String>,
    /// Whether to show inlined functions. `None` shows them if stacks were copied or lines are shown.
    pub inlines: Option<bool>,
    /// Whether to show names as the compiler wrote them.
    pub raw_names: bool,
    /// Kinds of records to show besides samples.
    pub records: Vec<u32>,
    /// Whether to also dump all records byte by byte, and in which order.
    pub dump: Option<DumpOrder>,
    /// Maximum number of code blocks between branches to show.
    pub max_blocks: usize,
    /// Where to look for symbols. [`NamedRecording::load`] detects whether the recording is from this
    /// machine.
    pub symbols: SymbolOptions,
}

impl ScriptRequest {
    /// Returns a request for all samples with the functions in their call chains, with the default fields and
    /// records.
    pub fn with_callers(max_stack: usize, symbols: SymbolOptions) -> Self {
        Self {
            selection: SampleSelection::default(),
            fields: Vec::new(),
            everything: false,
            trace_fields: false,
            callers: true,
            max_stack,
            joins: true,
            stitches: false,
            functions: Vec::new(),
            dsos: Vec::new(),
            inlines: None,
            raw_names: false,
            records: Vec::new(),
            dump: None,
            max_blocks: 0,
            symbols,
        }
    }
}

/// Fields that show the sampled instruction.
const CODE_FIELDS: [ScriptField; 3] = [ScriptField::Insn, ScriptField::InsnLen, ScriptField::Disasm];

/// Maximum number of cached instructions.
const MOST_CACHED: usize = 50_000;

/// The contents of one line.
#[derive(Debug)]
pub enum ScriptLine<'a> {
    /// A sample.
    Sample(&'a ScriptEntry<'a>),
    /// Any other record: an entry with its thread and time, its kind, and its contents.
    Record(&'a ScriptEntry<'a>, u32, &'a Record<'a>),
    /// Any record, as stored.
    Dumped(&'a DumpedRecord<'a>),
    /// A place where the file is damaged.
    Torn {
        /// Offset in the file.
        offset: u64,
        /// The file.
        file: &'a str,
        /// Description of the damage.
        words: &'a str,
    },
}

/// A recording whose addresses are symbolized.
#[derive(Debug)]
pub struct NamedRecording<'a> {
    session: Arc<Session>,
    request: &'a ScriptRequest,
    wanted: SampleQuery,
    symbols: RecordingSymbols,
    /// Fields to show for each event.
    fields: Vec<ScriptFields>,
    /// The kinds of addresses required by the fields.
    kinds: AddressKinds,
    addresses: Addresses,
    places: AddressFunctions,
}

impl<'a> NamedRecording<'a> {
    /// Symbolizes all addresses.
    ///
    /// # Errors
    /// Fails if the file cannot be read, lacks data that the request needs, or a requested field does not
    /// exist.
    pub fn load(
        session: Arc<Session>,
        request: &'a ScriptRequest,
        progress: &dyn ProgressSink,
    ) -> Result<Self> {
        let fields = fields::of_events(&request.fields, request.callers, session.reader.events());
        let wanted =
            SampleQuery { ignore_stacks: !request.callers, ..request.selection.sample_query(&session)? };
        let mut symbols = symbols_of(&session, &request.symbols)?;
        let has = |list: &[ScriptField]| fields.iter().any(|fields| fields.has_any(list));
        let has_bit = |fields| session.reader.layouts().have(fields);
        let has_copies = has_bit(sample_type::STACK_USER) || session.converted.is_some();
        let lines = has(&[ScriptField::SrcLine, ScriptField::SrcCode]);
        let inlines = request.inlines.unwrap_or(has_copies || lines);
        let all = request.everything;
        let kinds = AddressKinds {
            chains: has(&[ScriptField::Ip, ScriptField::Sym, ScriptField::SrcCode])
                || has(&CODE_FIELDS)
                || !request.functions.is_empty()
                || !request.dsos.is_empty()
                || all,
            branches: has(&[ScriptField::BrStack, ScriptField::BrStackSym, ScriptField::BrStackOff])
                || has(&BLOCK_FIELDS)
                || all && has_bit(sample_type::BRANCH_STACK),
            data: has(&[ScriptField::Addr]) && has(&[ScriptField::Sym, ScriptField::Dso])
                || all && has_bit(sample_type::ADDR),
            in_calls: inlines,
        };
        let addresses = if kinds.chains || kinds.branches || kinds.data {
            let meter = progress.begin("reading samples", session.index.count(kind::SAMPLE));
            let mut unwinding = RecordingUnwinder::new(&session, &symbols, request.max_stack, false);
            let unwind = unwinding.if_needed();
            distinct_addresses::collect(&session, &wanted, kinds, unwind, &|count| meter.more(count))?
        } else {
            Addresses::default()
        };
        let places = {
            let meter = progress.begin("finding names", 0);
            let depth = if inlines { Depth::Inlines } else { Depth::Names };
            let at = |p: pmc_symbols::symbol::SymbolProgress| meter.at(p.done as u64, p.total as u64);
            places::name(&session.history, &addresses, &mut symbols, depth, request.raw_names, &at)
        };
        Ok(Self { session, request, wanted, symbols, fields, kinds, addresses, places })
    }

    /// Warns about problems with the file, lost records, and symbol files that could not be read. Returns the
    /// exit status.
    pub fn warn(&self) -> Exit {
        recording_quality::warn_of_names(self.symbols.failures());
        recording_quality::warn(&self.session)
    }

    /// Returns the lines of a source file of a module; `None` if the file is missing. Warns if it cannot be
    /// read.
    pub fn source(&self, module: u32, path: &str) -> Option<SourceLines> {
        let id = self.symbols.id(module)?;
        let read = self.symbols.symbolizer.source(id, path, &SourceFolders::default());
        recording_quality::warn_of_names(read.as_ref().err().filter(|reason| reason.is_failure()).cloned());
        read.ok().map(|source| source.lines)
    }

    /// Returns the fields of each event.
    pub fn fields(&self) -> &[ScriptFields] {
        &self.fields
    }

    /// Returns the variable that contains an address of a process, and the offset into it.
    ///
    /// A file's variables are at a fixed distance from its code, so the mapping of the code is enough to find
    /// them. This works even for uninitialized variables, which do not belong to any of the file's mappings.
    pub fn variable(&self, pid: i32, address: u64, time: u64) -> Option<(String, u64)> {
        let history = &self.session.history;
        let is_file = |mapped: &&MappedModule| {
            mapped.mapping.start.0 <= address
                && history.modules()[mapped.module as usize].kind == ModuleKind::File
        };
        let mapped = history.mappings(history.epoch(pid, time)).filter(is_file).last()?;
        let symbols = &self.symbols;
        let id = symbols.id(mapped.module)?;
        let (Avma(start), FileOffset(offset)) = (mapped.mapping.start, mapped.mapping.offset);
        // The first and last page of the mapping may also contain parts of other segments.
        let middle = mapped.mapping.len / 2;
        let in_file = symbols.symbolizer.address(id, FileOffset(offset.wrapping_add(middle)).into())?;
        let distance = address.wrapping_sub(start.wrapping_add(middle));
        let (name, into) = symbols.symbolizer.variable(id, in_file.wrapping_add(distance))?;
        Some((demangle(name).unwrap_or_else(|| name.to_owned()), into))
    }

    /// Returns the functions and lines at all addresses, to which entries refer by number.
    pub fn places(&self) -> &AddressFunctions {
        &self.places
    }

    /// Returns for each address whether it is in one of the requested functions and modules; `None` if all
    /// are included.
    fn leaves(&self) -> Option<Vec<bool>> {
        let ScriptRequest { functions, dsos, .. } = self.request;
        if functions.is_empty() && dsos.is_empty() {
            return None;
        }
        let has = |list: &[String], name: Option<&str>| {
            list.is_empty() || name.is_some_and(|name| list.iter().any(|one| one == name))
        };
        let is_one = |number| {
            let Some(place) = self.places.at(number).last() else { return false };
            let dso = place.dso.as_deref();
            let short = dso.map(|path| path.rsplit('/').next().unwrap_or(path));
            let symbol = place.symbol.as_deref();
            (has(functions, symbol) || has(functions, symbol.map(without_parameters)))
                && (has(dsos, dso) || has(dsos, short))
        };
        Some((0..self.places.len() as u32).map(is_one).collect())
    }
}
