//! Portable recordings: a recording with the symbols, lines and code of its sampled addresses.
//!
//! [`write()`] collects the addresses that any command may show, has the symbolizer look them up, and stores
//! the result as a section of a copy of the recording. [`of_session`] reads the section again, so that
//! [`symbols_of`](super::symbols_of) uses it instead of the files on this machine. `symbol` defines the
//! contents of the section.
//!
//! ```text
//!   stream, directory, stack copies, damaged --inject--> plain recording
//!   plain recording --samples--> addresses --symbolizer--> section
//!   copy of the recording + section = archive
//! ```

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::inject::anonymous::AnonymousNames;
use super::inject::aslr::KernelPosition;
use super::inject::{self, InjectRequest};
use super::request::AnalysisRequest;
use super::{Analysis, ProgressSink, header, recording_quality};
use crate::profile::sampled::profile_quality::UnwindEnds;
use crate::session::distinct_addresses::{self, AddressKinds, Addresses};
use crate::session::location::{SampledAddress, locate};
use crate::session::{CodeLocation, Session};
use pmc_perfdata::perfdata::{FeatureNumber, Reader, RecordingLayout, RecordingNote, copy_with_section};
use pmc_perfdata::record::kind;
use pmc_perfdata::record::unwound::StrippedFields;
use pmc_symbols::symbol::{
    ArchiveContent, ArchiveError, ArchiveRequest, ConvertedStacks, ModuleId, OriginalFacts, SymbolArchive,
    SymbolOptions, SymbolProgress, rename_archive,
};
use pmc_sys::abi::sample_type;
use pmc_sys::error::{Error, Exit, Result, Warning, say};
use pmc_sys::sys::output_file::{self, OutputPlace};
use pmc_sys::sys::replacement::Replacement;

/// What to archive.
#[derive(Debug, Clone)]
pub struct RecordingArchiveRequest {
    /// Path of the archive.
    pub output: PathBuf,
    /// What to include in addition to names and line numbers.
    pub content: ArchiveContent,
    /// Whether to include the code of callers, instead of only that of functions with samples.
    pub callers: bool,
    /// Where to look for the recorded programs.
    pub symbols: SymbolOptions,
    /// Whether to hide names and replace addresses.
    pub anonymous: bool,
}

/// Sizes of a finished archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchiveSizes {
    /// Size of the file in bytes.
    pub file: u64,
    /// Size of the section with symbols, lines and code in bytes.
    pub section: u64,
}

/// Writes the archive of a recording, and warns about problems in the recording. Returns the sizes and the
/// exit status.
///
/// # Errors
/// Fails if the recording cannot be read or has no samples, or if the archive cannot be written. In these
/// cases, no archive remains on disk.
pub fn write(
    reader: Reader,
    request: &RecordingArchiveRequest,
    progress: &dyn ProgressSink,
) -> Result<(ArchiveSizes, Exit)> {
    inject::refuse(&reader, &request.output)?;
    let failed = |error| Error::io(format!("creating {}", request.output.display()), error);
    let place =
        output_file::resolve_links(&request.output).and_then(OutputPlace::file_path).map_err(failed)?;
    if request.anonymous && reader.features().archive.is_some() && !reader.is_converted() {
        return Err(Error::new(format!("{} is an archive already", reader.path().display()))
            .why("its symbols belong to its addresses, which --anonymous replaces")
            .try_this("pmc archive --anonymous with the original recording"));
    }
    let kernel = match reader.is_converted() {
        true => KernelPosition::Unchanged,
        false => KernelPosition::Unrandomized,
    };
    let mut session = Session::open(reader)?;
    let exit;
    let mut facts = header::original_facts(&session.reader);
    // Exists only while the archive is written.
    let plain = Replacement::new(&place);
    if request.anonymous || is_rewritten(&session) {
        let events = session.reader.events().iter();
        let copy_size = events.map(|event| event.attr.sample_stack_user()).max().unwrap_or(0);
        let layouts = session.reader.layouts().iter();
        let had_copies = layouts.map(|layout| layout.sample_type() & sample_type::STACK_USER != 0).collect();
        let converted = inject::rewrite(session.reader, &rewriting(request, plain.path()), progress)?;
        exit = converted.exit;
        let ends = converted.ends.filter(|ends| ends.copied > 0);
        facts.stacks = ends.map(|ends| stored(ends, copy_size, had_copies)).or(facts.stacks);
        session = Session::open(Reader::open(plain.path())?)?;
    } else {
        exit = recording_quality::warn(&session);
    }
    // Exist only while the archive is written.
    let [moved, nameless] = [Replacement::new(&place), Replacement::new(&place)];
    // An import made up its addresses, which reveal nothing, and by which it knows its names.
    if request.anonymous && kernel == KernelPosition::Unrandomized {
        inject::aslr::replace(&session.reader, moved.path(), kernel, None, progress)?;
        session = Session::open(Reader::open(moved.path())?)?;
    }
    let session = Arc::new(session);
    let mut section = section(&session, request, &facts, progress)?;
    let mut copied = session.reader.path();
    if request.anonymous {
        let names = &mut AnonymousNames::default();
        inject::aslr::replace(&session.reader, nameless.path(), kernel, Some(names), progress)?;
        section = anonymous(&section, facts, names)?;
        copied = nameless.path();
    }
    let new = Replacement::new(&place);
    let mut file = new.create(0o600).map_err(failed)?;
    copy_with_section(copied, (&mut file, &place), FeatureNumber::ARCHIVE, &section)?;
    let size = file.metadata().map_err(failed)?.len();
    // `put` would take them for files of a killed process.
    drop((plain, moved, nameless));
    new.put().map_err(failed)?;
    Ok((ArchiveSizes { file: size, section: section.len() as u64 }, exit))
}

/// Hides names in a section.
fn anonymous(section: &[u8], mut facts: OriginalFacts, names: &mut AnonymousNames) -> Result<Vec<u8>> {
    facts.modified_ns = 0;
    for name in facts.stacks.iter_mut().flat_map(|stacks| &mut stacks.no_tables) {
        *name = names.text(name);
    }
    let names = RefCell::new(names);
    let path = &mut |path: &[u8]| names.borrow_mut().path(path);
    rename_archive(section, &facts, path, &mut |text| names.borrow_mut().text(text))
        .map_err(|error| Error::new(format!("cannot write the archive: {error}")))
}

/// Whether the recording must be rewritten as a plain file with call chains instead of stack copies.
fn is_rewritten(session: &Session) -> bool {
    let reader = &session.reader;
    reader.form() != RecordingLayout::File
        || reader.path() == Path::new("-")
        || reader.is_converted()
        || session.notes().iter().any(RecordingNote::is_incomplete)
        || reader.layouts().iter().any(StrippedFields::takes)
}

fn rewriting(request: &RecordingArchiveRequest, output: &Path) -> InjectRequest {
    InjectRequest {
        output: output.to_owned(),
        build_ids: None,
        mappings: None,
        known: Vec::new(),
        jit: false,
        convert_stacks: true,
        aslr: false,
        symbols: request.symbols.clone(),
    }
}

/// Collects the addresses that commands may show, and looks them up.
fn section(
    session: &Arc<Session>,
    request: &RecordingArchiveRequest,
    facts: &OriginalFacts,
    progress: &dyn ProgressSink,
) -> Result<Vec<u8>> {
    let everything = AnalysisRequest { idle: true, ..AnalysisRequest::new(request.symbols.clone()) };
    let analysis = Analysis::load(session.clone(), &everything, progress)?;
    let symbols = &analysis.symbols;
    let resolved = &analysis.samples.resolved;
    let mut modules: FxHashMap<ModuleId, ArchiveRequest> = FxHashMap::default();
    let mut add = |location: &CodeLocation, has_code: bool| {
        let Some((id, query)) = symbols.query(location) else { return };
        let of_module = modules.entry(id).or_insert_with(|| ArchiveRequest::new(id));
        of_module.queries.push(query);
        match location.data() {
            Some(_) => of_module.data.push(query),
            None if has_code => of_module.executed.push(query),
            None => {}
        }
    };
    let callers = request.callers;
    for location in resolved.locations.iter() {
        add(location, callers);
    }
    for (key, _) in &resolved.rows {
        if let Some(leaf) = resolved.stack(key.stack).next() {
            add(&resolved.locations[leaf as usize], true);
        }
    }
    let branches = AddressKinds { branches: true, ..AddressKinds::default() };
    if session.reader.layouts().have(sample_type::BRANCH_STACK) {
        for address in addresses(session, &everything, branches, progress)?.all().iter() {
            add(&locate(&session.history, *address), true);
        }
    }
    // `script` also shows samples that other commands omit, and also looks up callers by their return
    // addresses.
    let all = AddressKinds { chains: true, branches: false, data: true, in_calls: true };
    for address in addresses(session, &everything, all, progress)?.all().iter() {
        add(&locate(&session.history, *address), callers);
        if address.in_call {
            add(&locate(&session.history, SampledAddress { in_call: false, ..*address }), false);
        }
    }
    // The samples are no longer needed, and take as much memory as the symbols.
    let Analysis { mut symbols, .. } = analysis;
    let meter = progress.begin("collecting symbols and code", 0);
    let at = |p: SymbolProgress| meter.at(p.done as u64, p.total as u64);
    let section = symbols.symbolizer.archive(modules.into_values().collect(), request.content, facts, &at);
    recording_quality::warn_of_names(symbols.failures());
    section.map_err(|error| Error::new(format!("cannot write the archive: {error}")))
}

fn addresses(
    session: &Session,
    request: &AnalysisRequest,
    kinds: AddressKinds,
    progress: &dyn ProgressSink,
) -> Result<Addresses> {
    let meter = progress.begin("reading samples", session.index.count(kind::SAMPLE));
    let wanted = request.selection.sample_query(session)?;
    Ok(distinct_addresses::collect(session, &wanted, kinds, None, &|count| meter.more(count))?)
}

/// Reads the archive in a recording; `None` for other recordings. Warns about a damaged archive.
pub(super) fn of_session(session: &Session) -> Option<SymbolArchive> {
    let section = session.reader.features().archive.as_ref()?;
    let read = SymbolArchive::read(&section.0);
    let unusable = |error: &ArchiveError| {
        let path = session.reader.path().display();
        say::warn(Warning::new(format!("the archive in {path} cannot be used: {error}")).advise(
            "run pmc archive again on the recorded machine; until then, pmc searches this machine for symbols",
        ));
    };
    read.inspect_err(unusable).ok()
}

/// Returns what the archive stores about unwinding. `copy_size` is the size of the largest copies in bytes,
/// and `had_copies` says which layouts of samples had them.
fn stored(ends: UnwindEnds, copy_size: u32, had_copies: Vec<bool>) -> ConvertedStacks {
    let UnwindEnds { copied, cut, lost, lost_in, long, compat, no_tables } = ends;
    let apart = |modules: Vec<(Option<String>, u64)>| -> (Vec<String>, Vec<u64>) {
        modules.into_iter().map(|(module, samples)| (module.unwrap_or_default(), samples)).unzip()
    };
    let (no_tables, no_tables_samples) = apart(no_tables);
    let (lost_in, lost_in_samples) = apart(lost_in);
    ConvertedStacks {
        copied,
        cut,
        lost,
        long,
        compat,
        no_tables,
        no_tables_samples,
        copy_size,
        all_events: had_copies.iter().all(|had| *had),
        layouts: had_copies,
        lost_in,
        lost_in_samples,
    }
}

/// Returns how unwinding ended for the stack copies that an archive no longer contains.
pub(super) fn converted_ends(session: &Session) -> Option<UnwindEnds> {
    let stacks = session.converted.clone()?;
    let module = |name: String| Some(name).filter(|name| !name.is_empty());
    let together =
        |names: Vec<String>, samples| names.into_iter().map(module).zip::<Vec<u64>>(samples).collect();
    let ConvertedStacks { copied, cut, lost, long, compat, .. } = stacks;
    let no_tables = together(stacks.no_tables, stacks.no_tables_samples);
    let lost_in = together(stacks.lost_in, stacks.lost_in_samples);
    Some(UnwindEnds { copied, cut, lost, lost_in, long, compat, no_tables })
}
