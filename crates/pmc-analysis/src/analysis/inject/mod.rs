//! Rewrites a recording: the same samples, with additional data or in a different form.
//!
//! Reads a recording, changes its records as an [`InjectRequest`] specifies, and writes them through the
//! `Writer`. The writer itself creates the records that describe a stream's events and sections.
//!
//! ```text
//!             BUILD_ID: written first                     (-b: of files with samples; --buildid-all)
//!   MMAP, MMAP2 --> unchanged | with build-id | dropped   (-B, --mmap2-buildid-all)
//!   MMAP2 of a jitdump --> MMAP2 of each piece of its code, at its time        (-j)
//!   all addresses --> other ones, with the same functions          (--aslr)
//!   SAMPLE --> unchanged | stack copy becomes a call chain          (--convert-callchain)
//! ```

pub(super) mod anonymous;
pub(super) mod aslr;
mod jit;
mod mappings;

use aslr::KernelPosition;
use std::fs::File;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;

use self::jit::JitCodes;
use super::unwinding::RecordingUnwinder;
use super::{ProgressSink, is_of_this_machine, recording_quality, symbols_of};
use crate::profile::sampled::profile_quality::UnwindEnds;
use crate::session::Session;
use crate::session::module::is_jitdump;
use crate::session::order::{self, SampleUnwinding};
use pmc_perfdata::perfdata::feature::{BuildIdEntry, BuildIds, EventDesc};
use pmc_perfdata::perfdata::tally::HitFile;
use pmc_perfdata::perfdata::{
    FeatureNumber, Features, Reader, RecordTally, RecordedEvent, RecordingLayout, RecordingNote,
    WriteOptions, Writer,
};
use pmc_perfdata::record::unwound::StrippedFields;
use pmc_perfdata::record::{RawRecord, Record, Sample, kind};
use pmc_symbols::symbol::{self, BuildId, identify};
use pmc_sys::abi::sample_type;
use pmc_sys::error::{Error, Exit, Result, say};
use pmc_sys::sys::descriptor;
use pmc_sys::sys::replacement::create_temporary;

/// Number of bytes to buffer before each write.
const PIECE: usize = 256 << 10;
/// Maximum number of frames in a call chain that is unwound from a stack copy. The kernel has the same limit.
const MOST_FRAMES: usize = 127;

/// The files whose build-ids or mappings to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSelection {
    /// The files with samples.
    Hit,
    /// All mapped files.
    All,
}

/// The output of `pmc inject`, and the changes to the recording.
#[derive(Debug, Clone)]
pub struct InjectRequest {
    /// Path of the new recording; `-` is standard output.
    pub output: PathBuf,
    /// The files whose build-ids are added to the stream.
    pub build_ids: Option<FileSelection>,
    /// The files whose mappings get a build-id. Mappings of other files are dropped.
    pub mappings: Option<FileSelection>,
    /// Build-ids given by the user, by path.
    pub known: Vec<(Vec<u8>, BuildId)>,
    /// Whether to extract the JIT-compiled code in jitdumps to files.
    pub jit: bool,
    /// Whether to convert stack copies to call chains.
    pub convert_stacks: bool,
    /// Whether to replace all addresses.
    pub aslr: bool,
    /// Where to look for the recorded programs.
    pub symbols: symbol::SymbolOptions,
}

/// Rewrites a recording, warns about problems in the original, and returns the exit status.
///
/// # Errors
/// Fails if the recording cannot be read or converted, or the new one cannot be written. In these cases, no
/// new recording remains on disk.
pub fn inject(reader: Reader, request: &InjectRequest, progress: &dyn ProgressSink) -> Result<Exit> {
    if !request.aslr {
        return rewrite(reader, request, progress).map(|rewritten| rewritten.exit);
    }
    refuse(&reader, &request.output)?;
    if reader.layouts().have(sample_type::STACK_USER) && !request.convert_stacks {
        say::note(
            "--aslr removes the copied stacks, and their callers with them (--convert-callchain keeps the callers)",
        );
    }
    let ((plain, _file), exit) = plain(reader, request, progress)?;
    if Writer::form_at(&request.output) == RecordingLayout::File {
        return aslr::replace(&plain, &request.output, KernelPosition::Unrandomized, None, progress)
            .map(|()| exit);
    }
    // The sections of a file come at its end, but a stream starts with them.
    let (file, path) = temporary()?;
    aslr::replace(&plain, &path, KernelPosition::Unrandomized, None, progress)?;
    let only_form = InjectRequest { build_ids: None, mappings: None, jit: false, ..request.clone() };
    rewrite(Reader::open(&path)?, &only_form, progress)?;
    drop(file);
    Ok(exit)
}

/// Creates a file without a name, and returns it with a path to it.
fn temporary() -> Result<(File, PathBuf)> {
    let file = create_temporary().map_err(|error| Error::io("creating a temporary recording", error))?;
    let path = descriptor::path_of(&file);
    Ok((file, path))
}

/// Rewrites a recording as a plain file without a name. Returns it and the exit status.
fn plain(
    reader: Reader,
    request: &InjectRequest,
    progress: &dyn ProgressSink,
) -> Result<((Reader, File), Exit)> {
    let (file, path) = temporary()?;
    let exit = rewrite(reader, &InjectRequest { output: path.clone(), ..request.clone() }, progress)?.exit;
    Ok(((Reader::open(&path)?, file), exit))
}

/// The result of rewriting a recording.
pub(super) struct RewrittenRecording {
    pub(super) exit: Exit,
    /// How unwinding ended, if stack copies were converted.
    pub(super) ends: Option<UnwindEnds>,
}

/// Like [`inject`], but also returns how stack copies were converted.
pub(super) fn rewrite(
    reader: Reader,
    request: &InjectRequest,
    progress: &dyn ProgressSink,
) -> Result<RewrittenRecording> {
    refuse(&reader, &request.output)?;
    let session = Session::open(reader)?;
    let has_traces = session.notes().iter().any(|note| matches!(note, RecordingNote::Aux { .. }));
    if has_traces || session.reader.features().auxtrace.is_some() {
        return Err(Error::new(format!("{} contains a hardware trace", session.reader.path().display()))
            .why("the trace's index would become invalid, and pmc does not decode traces")
            .try_this("use perf inject, which decodes them"));
    }
    let lost = request.convert_stacks.then(|| StrippedFields::new(true, false));
    let symbols = lost.map(|_| symbols_of(&session, &request.symbols)).transpose()?;
    let mut unwinder =
        symbols.as_ref().map(|symbols| RecordingUnwinder::new(&session, symbols, MOST_FRAMES, true));
    let ids = FileIds::new(&session, request);
    let hits = match (request.build_ids, request.mappings) {
        (None, None) => None,
        _ => Some(RecordTally::of_files_hit(&session.reader)?),
    };
    let listed = hits.as_ref().zip(request.build_ids).map(|(tally, of)| list(tally, of, &ids));
    let mappings = hits.as_ref().zip(request.mappings);
    // Before unwinding, it is unknown to which files the callers in stack copies belong, so no mapping may be
    // dropped.
    let has_copies = session.reader.layouts().iter().any(StrippedFields::takes);
    let mappings = mappings.map(|(tally, of)| {
        let of = if has_copies { FileSelection::All } else { of };
        mappings::KeptMappings::new(tally, of, &ids)
    });
    let codes =
        if request.jit { JitCodes::collect(&session, &request.symbols)? } else { JitCodes::default() };

    let changed = |event: &RecordedEvent| {
        let attr = lost.and_then(|lost| lost.attr(&event.attr));
        RecordedEvent { attr: attr.unwrap_or_else(|| event.attr.clone()), ..event.clone() }
    };
    let changes_modules = request.build_ids.is_some() || request.mappings.is_some() || request.jit;
    let reader = &session.reader;
    let events: Vec<RecordedEvent> =
        reader.events().iter().chain(reader.fallback_events()).map(changed).collect();
    let features = features(reader, &events, listed.as_deref(), changes_modules);
    let form = Writer::form_at(&request.output);
    // A stream starts with the sections, as records; in a file, they come at the end.
    let nothing = Features::default();
    let at_the_start = if form == RecordingLayout::Pipe { &features } else { &nothing };
    let options = WriteOptions {
        hold: true,
        whole: true,
        replaced: Some(|path, was| say::note(format!("replaced {}, which was {was}", path.display()))),
        ..WriteOptions::default()
    };
    let meter = progress.begin("writing", session.index.counts().map(|(_, count)| count).sum());
    let mut output = InjectOutput {
        writer: Writer::create(&request.output, &events, at_the_start, options)?,
        bytes: Vec::with_capacity(PIECE + (64 << 10)),
    };
    let known = features.build_ids.iter().flat_map(|list| &list.0);
    // A stream has no section for build-ids, so they become records.
    let first: Vec<&BuildIdEntry> = match (form, reader.form()) {
        (RecordingLayout::Pipe, RecordingLayout::File | RecordingLayout::Directory) => known.collect(),
        _ => listed.iter().flatten().collect(),
    };
    for row in first {
        row.write_record(kind::HEADER_BUILD_ID, &mut output.bytes);
    }
    let mut editor = RecordEditor { session: &session, form, lost, mappings, codes, record: Vec::new() };
    let wants = |_: &Sample<'_>, _| true;
    let unwinding = unwinder.as_mut().map(|unwinder| SampleUnwinding { unwinder, wants: &wants });
    // Both options need records in time order: code from jitdumps is inserted by time, and truncated stacks
    // are completed from earlier samples.
    let by_time = request.jit || request.convert_stacks;
    order::records_unwound(
        &session,
        by_time,
        unwinding,
        |_| true,
        |raw, _, unwound| {
            meter.more(1);
            editor.edit(raw, unwound, &mut output)
        },
    )?;
    editor.codes.rest(&mut editor.record);
    output.push_all(&editor.record)?;
    drop(editor);
    output.flush()?;
    // A stream already contains its build-ids; a file needs a section for them.
    let rest = if form == RecordingLayout::Pipe { &nothing } else { &features };
    output.writer.finish(rest)?;
    let exit = recording_quality::warn(&session);
    let ends = unwinder.as_ref().map(RecordingUnwinder::ends);
    if let Some(ends) = &ends {
        warn_of_ends(ends);
        recording_quality::warn_of_chains(symbols.iter().flat_map(|symbols| symbols.failures()));
    }
    Ok(RewrittenRecording { exit, ends })
}

/// Rejects recordings that cannot be converted.
pub(super) fn refuse(reader: &Reader, output: &Path) -> Result<()> {
    let path = reader.path();
    let identity = |path: &Path| {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(path).ok().filter(|meta| meta.is_file()).map(|meta| (meta.dev(), meta.ino()))
    };
    if identity(output).is_some_and(|output| identity(path) == Some(output)) {
        return Err(Error::usage(format!("input and output are the same file: {}", path.display()))
            .why("pmc reads it while it writes the new recording")
            .try_options("use another file with -o"));
    }
    if reader.is_byte_swapped() {
        return Err(Error::new(format!("{} has the opposite byte order", path.display()))
            .why("pmc cannot convert tracepoint payloads to this machine's byte order")
            .try_this("run pmc inject on a machine with that byte order"));
    }
    Ok(())
}

fn warn_of_ends(ends: &UnwindEnds) {
    let copied = ends.copied;
    let unknown: u64 = ends.no_tables.iter().map(|(_, samples)| samples).sum();
    for (samples, why) in [
        (ends.compat, "are from 32-bit Arm processes: the new recording does not contain their callers"),
        (unknown, "end in code that has no unwind tables or whose file is missing"),
    ] {
        if samples > 0 {
            say::note(format!("{samples} of {copied} copied stacks {why}"));
        }
    }
}

/// Finds build-ids: first among those given by the user, then in the recording, then in the files on this
/// machine.
struct FileIds<'a> {
    given: FxHashMap<&'a [u8], BuildId>,
    listed: FxHashMap<&'a [u8], &'a [u8]>,
    /// Whether the recording was made on this machine, so that its files are the recorded ones.
    is_from_here: bool,
}

impl<'a> FileIds<'a> {
    fn new(session: &'a Session, request: &'a InjectRequest) -> Self {
        let rows = session.reader.features().build_ids.iter().flat_map(|list| &list.0);
        Self {
            given: request.known.iter().map(|(path, id)| (&path[..], *id)).collect(),
            listed: rows.map(|row| (&row.name[..], &row.id[..])).collect(),
            is_from_here: is_of_this_machine(session),
        }
    }

    fn build_id(&self, file: &HitFile) -> Option<Vec<u8>> {
        if let Some(given) = self.given.get(&file.name[..]) {
            return Some(given.bytes().to_vec());
        }
        let listed = || self.listed.get(&file.entry(Vec::new()).name[..]).map(|id| id.to_vec());
        let there = || {
            let id = self.is_from_here.then(|| identify::build_id(&file.name, file.is_kernel, file.pid));
            id.flatten().map(|id| id.bytes().to_vec())
        };
        file.build_id.clone().or_else(listed).or_else(there)
    }
}

/// Returns the build-ids for the stream.
fn list(tally: &RecordTally, of: FileSelection, ids: &FileIds<'_>) -> Vec<BuildIdEntry> {
    tally.build_ids(of == FileSelection::All, |file| ids.build_id(file))
}

/// Returns the old recording's sections, updated for the changes. `changes_modules`: whether the mappings or
/// their build-ids change.
fn features(
    reader: &Reader,
    events: &[RecordedEvent],
    listed: Option<&[BuildIdEntry]>,
    changes_modules: bool,
) -> Features {
    let mut features = reader.features().clone();
    // The new recording is one uncompressed file.
    (features.compressed, features.dir_format) = (None, None);
    if changes_modules {
        // An archive finds its modules by their recorded build-ids.
        features.archive = None;
    }
    features.event_desc = Some(described(events));
    for row in listed.into_iter().flatten() {
        let rows = &mut features.build_ids.get_or_insert_with(BuildIds::default).0;
        if !rows.iter().any(|known| known.name == row.name && known.id == row.id) {
            rows.push(row.clone());
        }
    }
    features
}

/// Describes the events. In a stream, an event's name may be in a separate record.
fn described(events: &[RecordedEvent]) -> EventDesc {
    EventDesc(events.iter().map(|event| (event.attr.clone(), event.name(), event.ids.clone())).collect())
}

/// Decides how each record changes.
struct RecordEditor<'a> {
    session: &'a Session,
    form: RecordingLayout,
    lost: Option<StrippedFields>,
    mappings: Option<mappings::KeptMappings>,
    codes: JitCodes,
    record: Vec<u8>,
}

impl RecordEditor<'_> {
    fn edit(&mut self, raw: &RawRecord<'_>, unwound: &[u64], output: &mut InjectOutput) -> Result<()> {
        if !self.is_kept(raw) {
            return Ok(());
        }
        self.record.clear();
        if let Some(time) = self.session.reader.layouts().time(raw) {
            self.codes.until(time, &mut self.record);
        }
        match raw.kind {
            kind::SAMPLE if self.lost.is_some() => {
                if !self.sample(raw, unwound) {
                    self.record.extend_from_slice(raw.bytes);
                }
            }
            kind::MMAP | kind::MMAP2 if self.mappings.is_some() => {
                if let Some(mappings) = &self.mappings {
                    mappings.write(raw, &mut self.record);
                }
            }
            _ if self.record.is_empty() => return output.push(raw.bytes),
            _ => self.record.extend_from_slice(raw.bytes),
        }
        output.push_all(&self.record)
    }

    /// Whether to keep a record. Records that the writer creates and records that no longer apply are
    /// dropped.
    fn is_kept(&self, raw: &RawRecord<'_>) -> bool {
        let was = self.session.reader.form();
        match raw.kind {
            kind::HEADER_ATTR | kind::HEADER_EVENT_TYPE => was != RecordingLayout::Pipe,
            // simpleperf writes this record to files too, with the data inside the record.
            kind::HEADER_TRACING_DATA => was != RecordingLayout::Pipe,
            kind::HEADER_FEATURE => {
                let is_compression = matches!(raw.parse(), Some(Record::HeaderFeature(section))
                    if section.feature == FeatureNumber::COMPRESSED as u64);
                was != RecordingLayout::Pipe && self.form == RecordingLayout::File && !is_compression
            }
            // In a directory, the rounds of different files are independent of each other.
            kind::FINISHED_ROUND => was != RecordingLayout::Directory,
            kind::MMAP | kind::MMAP2 if self.codes.count() > 0 => match raw.parse() {
                Some(Record::Mmap(map)) => !is_jitdump(map.name),
                Some(Record::Mmap2(map)) => !is_jitdump(map.map.name),
                _ => true,
            },
            _ => true,
        }
    }

    /// Writes a sample with `unwound` as its call chain. Returns `false` if the sample has no stack copy.
    fn sample(&mut self, raw: &RawRecord<'_>, unwound: &[u64]) -> bool {
        let Some((_, sample)) = self.session.reader.layouts().sample(raw) else { return false };
        let lost = self.lost.filter(|_| StrippedFields::takes(sample.layout()));
        lost.is_some_and(|lost| lost.write(raw, &sample, unwound, &mut self.record))
    }
}

/// Buffers records so that they are written in larger chunks.
struct InjectOutput {
    writer: Writer,
    bytes: Vec<u8>,
}

impl InjectOutput {
    fn push(&mut self, record: &[u8]) -> Result<()> {
        self.bytes.extend_from_slice(record);
        if self.bytes.len() >= PIECE { self.flush() } else { Ok(()) }
    }

    fn push_all(&mut self, records: &[u8]) -> Result<()> {
        pmc_perfdata::record::Records::new(records).try_for_each(|raw| self.push(raw.bytes))
    }

    fn flush(&mut self) -> Result<()> {
        let bytes = std::mem::take(&mut self.bytes);
        self.writer.append(&[&bytes])?;
        self.bytes = bytes;
        self.bytes.clear();
        Ok(())
    }
}
