//! Samples and other records one by one, with names, in the order of time.
//!
//! Receives a [`Session`] and a [`ScriptRequest`]; [`Transcript::load`] names all addresses first,
//! [`Transcript::entries`] then goes through the records and hands each on as a [`ScriptLine`]. Decides which
//! fields an event has. Printing is left to `view::script`.

mod dump;
mod entries;
mod fields;
mod places;

use std::sync::Arc;

pub use dump::{DumpOrder, dump};

use super::request::SampleSelection;
use super::symbols::Symbols;
use super::unwinding::RecordingUnwinder;
use super::{ProgressSink, quality, symbols_of};
use crate::abi::sample_type;
use crate::error::{Exit, Result};
use crate::profile::script::{Dumped, Entry, Field, Fields, Places};
use crate::record::{Record, kind};
use crate::session::distinct_addresses::{self, Addresses, Kinds};
use crate::session::{SampleQuery, Session};
use crate::symbol::{Depth, Options};

/// What is asked of the records.
#[derive(Debug, Clone)]
pub struct ScriptRequest {
    /// Which samples count.
    pub selection: SampleSelection,
    /// How the usual fields change, each as perf's `-F` has it.
    pub fields: Vec<String>,
    /// Everything that was recorded is wanted, whatever the fields are.
    pub everything: bool,
    /// The fields of tracepoints by name.
    pub trace_fields: bool,
    /// Callers too.
    pub callers: bool,
    /// Longest call chain, in frames.
    pub max_stack: usize,
    /// Stacks that end with their copy are joined with what was seen of their threads before.
    pub joins: bool,
    /// Calls that the processor kept are completed with those of earlier samples of their threads.
    pub stitches: bool,
    /// Only samples taken in functions of these names; empty: in all.
    pub functions: Vec<String>,
    /// Only samples taken in modules of these paths or short names; empty: in all.
    pub dsos: Vec<String>,
    /// Inlined functions; `None`: where stacks were copied, or lines are shown.
    pub inlines: Option<bool>,
    /// Names are as the compiler wrote them.
    pub raw_names: bool,
    /// Kinds of records besides samples.
    pub records: Vec<u32>,
    /// All records, byte by byte, too.
    pub dump: Option<DumpOrder>,
    /// Where symbols are looked for. Whether the recording is from this machine is found out.
    pub symbols: Options,
}

/// What one line is made of.
#[derive(Debug)]
pub enum ScriptLine<'a> {
    /// A sample.
    Sample(&'a Entry<'a>),
    /// A record of another kind: whose it is and when, its kind, what it says.
    Record(&'a Entry<'a>, u32, &'a Record<'a>),
    /// Any record, as it lies there.
    Dumped(&'a Dumped<'a>),
    /// No more records can be read from here on.
    Torn {
        /// Offset in the file.
        offset: u64,
        /// The file.
        file: &'a str,
        /// What is wrong.
        words: &'a str,
    },
}

/// A recording whose addresses have names.
#[derive(Debug)]
pub struct Transcript<'a> {
    session: Arc<Session>,
    request: &'a ScriptRequest,
    wanted: SampleQuery,
    symbols: Symbols,
    /// By event.
    fields: Vec<Fields>,
    /// What the fields need to know of addresses.
    kinds: Kinds,
    addresses: Addresses,
    places: Places,
}

impl<'a> Transcript<'a> {
    /// Names all addresses.
    ///
    /// # Errors
    /// When the file cannot be read, or does not say what the request needs to know, or a field is none.
    pub fn load(
        session: Arc<Session>,
        request: &'a ScriptRequest,
        progress: &dyn ProgressSink,
    ) -> Result<Self> {
        let fields = fields::of_events(&request.fields, request.callers, session.reader.events())?;
        let wanted =
            SampleQuery { ignore_stacks: !request.callers, ..request.selection.sample_query(&session)? };
        let mut symbols = symbols_of(&session, &request.symbols)?;
        let has = |list: &[Field]| fields.iter().any(|fields| fields.has_any(list));
        let has_bit = |fields| session.reader.layouts().have(fields);
        let has_copies = has_bit(sample_type::STACK_USER);
        let lines = has(&[Field::SrcLine, Field::SrcCode]);
        let inlines = request.inlines.unwrap_or(has_copies || lines);
        let all = request.everything;
        let kinds = Kinds {
            chains: has(&[Field::Ip, Field::Sym, Field::SrcCode])
                || !request.functions.is_empty()
                || !request.dsos.is_empty()
                || all,
            branches: has(&[Field::BrStack, Field::BrStackSym, Field::BrStackOff])
                || all && has_bit(sample_type::BRANCH_STACK),
            data: has(&[Field::Addr]) && has(&[Field::Sym, Field::Dso]) || all && has_bit(sample_type::ADDR),
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
            let at = |p: crate::symbol::Progress| meter.at(p.done as u64, p.total as u64);
            places::name(&session.history, &addresses, &mut symbols, depth, request.raw_names, &at)
        };
        Ok(Self { session, request, wanted, symbols, fields, kinds, addresses, places })
    }

    /// Warns about everything worth knowing about the file, about losses, and about names that could not be
    /// read. Returns the exit status.
    pub fn warn(&self) -> Exit {
        quality::warn_of_names(self.symbols.symbolizer.failures());
        quality::warn(&self.session)
    }

    /// The fields of each event.
    pub fn fields(&self) -> &[Fields] {
        &self.fields
    }

    /// What stands at the addresses; entries have their numbers.
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// Numbers of the addresses at which one of the functions, in one of the modules, stands; `None`: all.
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
            has(functions, place.symbol.as_deref()) && (has(dsos, dso) || has(dsos, short))
        };
        Some((0..self.places.len() as u32).map(is_one).collect())
    }
}
