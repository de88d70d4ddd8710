//! `pmc export` and `pmc flamegraph`: opens a recording, aggregates and symbolizes its samples, and passes
//! stacks, or the profile that `report` would show, to a view.

mod http;
mod push;

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pmc_analysis::analysis::{Analysis, NamedSamples, header, recording_quality};
use pmc_analysis::profile::sampled::{Profile, Query, StackProfile, StringTable, ThreadState};
use pmc_analysis::session::samples::SampleAttribute;
use pmc_analysis::session::{CodeLocation, Session};
use pmc_command::destination::{Destination, is_standard};
use pmc_command::input::with_suffix;
use pmc_command::progress::Bars;
use pmc_formats::export::folded::{self, FoldedMarks};
use pmc_formats::export::gmon::{self, LinkAddresses};
use pmc_formats::export::parquet::ParquetExport;
use pmc_formats::export::request::ExportRequest;
use pmc_formats::export::{self, ExportContents, ExportFormat, RecordingMetadata};
use pmc_formats::import;
use pmc_symbols::symbol::MissingDataReason;
use pmc_sys::error::{AdvisedOption, Error, Exit, Result, Warning, say};
use pmc_sys::sys::output_file;
use pmc_text::text::clean;
use push::PushClient;

/// Runs the command.
///
/// # Errors
/// Fails if a recording cannot be read, or the file cannot be written.
pub(super) fn run(request: &ExportRequest) -> Result<Exit> {
    check(request)?;
    let (before, of_before) =
        request.before.as_deref().map(|path| before(request, path)).transpose()?.unzip();
    let of_before = of_before.unwrap_or_default();
    let push = request.push.as_ref().map(PushClient);
    let headers = push.as_ref().map(PushClient::headers).transpose()?.unwrap_or_default();
    let LoadedRecording { mut analysis, mut named, query } = LoadedRecording::new(request, &request.input)?;
    if request.format.is_table() || request.format.has_code() {
        analysis.assess(&mut named, true);
    }
    if request.format.is_folder() {
        return folder(request, &analysis, &named, &query);
    }
    if request.format.is_two_files() {
        return tables(request, &analysis, &named, &query);
    }
    let answer = match request.format.is_table() {
        true => named.answer(&query).profile,
        false => named.quality(),
    };
    let code = if request.format.has_code() { analysis.annotate(&request.code(), &Bars).ok() } else { None };
    let listings = code.map(|code| code.listings).unwrap_or_default();
    let to = to(request);
    let (title, layout) = (request.title(), request.layout());
    let is_file = to.is_file();
    let recording = recording_metadata(&analysis, request)?;
    named.with_stacks(&query, |stacks| {
        let contents = ExportContents {
            stacks,
            event: event(&query, stacks),
            answer: &answer,
            layout: &layout,
            title: &title,
            recording: &recording,
            listings: &listings,
            before: before.as_deref(),
        };
        if let Some(push) = &push {
            return push.push(&contents, &headers, &request.output);
        }
        let written = |error| Error::output(request.output.display(), error);
        to.write(|out| export::write(out, request.format, &contents).map_err(written))
    })?;
    if is_file && request.push.is_none() {
        say::note(format!("{} is written", request.output.display()));
    }
    recording_quality::warn_of_names(analysis.name_failures().into_iter().chain(of_before));
    Ok(recording_quality::warn(analysis.session()))
}

/// Checks that the format supports what the request asks for, and that the output is not the input.
///
/// # Errors
/// Fails if it does not, or is.
pub(super) fn check(request: &ExportRequest) -> Result<()> {
    let ExportRequest { input, output, format, before, .. } = request;
    if before.is_some() && !format.is_differential() {
        return Err(Error::usage("only a flame graph supports --diff")
            .try_options("--diff FILE -o OUT.svg")
            .try_this("pmc diff FILE FILE, for tables"));
    }
    if before.as_deref().is_some_and(is_standard) && is_standard(input) {
        return Err(Error::usage("only one recording can come from standard input"));
    }
    if format.is_folder() && is_standard(output) {
        return Err(Error::usage("the gmon format writes to a directory, not to standard output")
            .try_option(AdvisedOption::ExportFolder, "{option} DIR"));
    }
    if format.is_two_files() && is_standard(output) {
        return Err(Error::usage("the parquet format writes two files, not to standard output").try_option(
            AdvisedOption::ExportFile,
            "{option} OUT, for OUT.samples.parquet and OUT.stacks.parquet",
        ));
    }
    to(request).check_is_not(input)
}

/// Returns where to write the output.
fn to(request: &ExportRequest) -> Destination<'_> {
    let option = match request.format.is_folder() {
        true => AdvisedOption::ExportFolder,
        false => AdvisedOption::ExportFile,
    };
    Destination { path: &request.output, option, keeps: false }
}

/// Writes one gprof file per program, and prints which file belongs to which program.
fn folder(request: &ExportRequest, analysis: &Analysis, named: &NamedSamples, query: &Query) -> Result<Exit> {
    let files = named.with_stacks(query, |stacks| gmon::files(stacks, &LinkTimeAddresses(analysis)));
    if files.is_empty() {
        return Err(Error::new("no samples to export")
            .why("it has no samples in programs or libraries, or the filters exclude all of them"));
    }
    let refused = |path: &Path, error| Error::create(AdvisedOption::ExportFolder, path, error);
    let held = output_file::create_folder(&request.output, 0o700)
        .map_err(|error| refused(&request.output, error))?;
    let mut lines = String::new();
    let mut taken: HashSet<PathBuf> = HashSet::new();
    for file in &files {
        let [event, name] = file.place();
        let folder = request.output.join(&event);
        let inner = output_file::create_folder(&held.path().join(event), 0o700)
            .map_err(|error| refused(&folder, error))?;
        // Programs with the same name in different directories get numbered files.
        let numbered = |number: usize| match number {
            0 => folder.join(format!("{name}.gmon")),
            _ => folder.join(format!("{name}.{number}.gmon")),
        };
        let path = (0..).map(numbered).find(|path| taken.insert(path.clone())).unwrap_or_default();
        let written = |error| Error::output(path.display(), error);
        let to = Destination { path: &path, option: AdvisedOption::ExportFolder, keeps: false };
        to.write_in(&inner, |out| file.write(out).map_err(written))?;
        lines += &format!("{} {}\n", clean(&file.program.to_string_lossy()), path.display());
    }
    if !request.is_quiet {
        let written = io::Write::write_all(&mut io::stdout(), lines.as_bytes());
        written.map_err(|error| Error::output("which file belongs to which program", error))?;
    }
    recording_quality::warn_of_names(analysis.name_failures());
    Ok(recording_quality::warn(analysis.session()))
}

/// Writes the tables `samples` and `stacks`. The stacks come first, so that samples never refer to missing
/// stacks.
fn tables(request: &ExportRequest, analysis: &Analysis, named: &NamedSamples, query: &Query) -> Result<Exit> {
    let recording = recording_metadata(analysis, request)?;
    let answer = Profile::default();
    let (title, layout) = (request.title(), request.layout());
    let start = request.start_of_tables();
    let [samples_path, stacks_path] =
        ["samples", "stacks"].map(|table| with_suffix(&start, &format!(".{table}.parquet")));
    if let Some(folder) = samples_path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        output_file::create_folder(folder, 0o777)
            .map_err(|error| Error::create(AdvisedOption::ExportFile, folder, error))?;
    }
    named.with_stacks(query, |stacks| {
        let contents = ExportContents {
            stacks,
            event: event(query, stacks),
            answer: &answer,
            layout: &layout,
            title: &title,
            recording: &recording,
            listings: &[],
            before: None,
        };
        let mut export = ParquetExport::new(&contents).ok_or_else(|| {
            Error::new("the date of the recording is unknown")
                .why("it contains no clock, and a stream has no modification time")
                .try_this("pmc export FILE, with the recording in a file")
        })?;
        let to = |path| Destination { path, option: AdvisedOption::ExportFile, keeps: false };
        let written = |path: &Path, error| Error::output(path.display(), error);
        to(&stacks_path)
            .write(|out| export.write_stacks(out).map_err(|error| written(&stacks_path, error)))?;
        to(&samples_path)
            .write(|out| export.write_samples(out).map_err(|error| written(&samples_path, error)))
    })?;
    if !request.is_quiet {
        say::note(format!("{} and {} are written", samples_path.display(), stacks_path.display()));
    }
    if !recording.is_dated {
        say::warn(times_are_estimated());
    }
    recording_quality::warn_of_names(analysis.name_failures());
    Ok(recording_quality::warn(analysis.session()))
}

fn times_are_estimated() -> Warning {
    Warning::new("the times are estimated from the recording's modification time, because it has no clock")
        .advise("pmc record stores the clock; with perf, record with -k CLOCK_MONOTONIC")
}

/// Looks up link-time addresses in an analysis whose locations are resolved.
struct LinkTimeAddresses<'a>(&'a Analysis);

impl LinkAddresses for LinkTimeAddresses<'_> {
    fn address(&self, location: &CodeLocation) -> Option<u64> {
        self.0.file_address(location)
    }

    fn width(&self, module: u32) -> usize {
        self.0.address_width(module)
    }
}

/// Returns the recording's metadata and date. The date is computed from the recorded clocks if possible;
/// otherwise, it is the file's modification time.
///
/// # Errors
/// Fails if the export requires a date that is unknown.
fn recording_metadata(analysis: &Analysis, request: &ExportRequest) -> Result<RecordingMetadata> {
    let reader = &analysis.session().reader;
    let span = analysis.span();
    let clock = reader.features().clock_data.as_ref();
    let by_clock = clock.zip(span).map(|(clock, (first, _))| first.wrapping_add_signed(clock.to_wall_ns()));
    let by_file = || {
        // The modification time of standard input says nothing about the recording.
        let is_file = reader.path().as_os_str() != "-";
        let ended = u64::try_from(header::modified_ns(reader).filter(|_| is_file)?).ok()?;
        Some(ended.saturating_sub(span.map_or(0, |(first, last)| last.saturating_sub(first))))
    };
    let started = by_clock.or_else(by_file);
    let with_times = request.format == ExportFormat::Otlp && request.has_times();
    if (with_times || request.push.is_some()) && span.is_some() {
        if !analysis.session().has_time || started.is_none() {
            let error = Error::new("the times of the samples are unknown").why("the recording has no clock");
            let record = "pmc record, or perf record -k CLOCK_MONOTONIC, which record the date";
            let error = header::advise(error, reader, record, header::FORMATS_WITH_TIMES);
            return Err(match request.push {
                Some(_) => error,
                None => error.try_options("--aggregate, which exports sums without times"),
            });
        }
        if by_clock.is_none() {
            say::warn(times_are_estimated());
        }
    }
    Ok(RecordingMetadata {
        about: header::read(reader),
        span,
        started,
        is_dated: by_clock.is_some(),
        origin: request.origin.clone(),
    })
}

/// A recording, ready for queries.
struct LoadedRecording {
    analysis: Analysis,
    named: NamedSamples,
    query: Query,
}

impl LoadedRecording {
    fn new(request: &ExportRequest, path: &Path) -> Result<Self> {
        let session = Arc::new(Session::open(import::open(path)?)?);
        let mut samples = request.analysis(&session.reader);
        samples.resolve(&session.reader)?;
        let lacks = |what: &str, formats: &str| {
            let error = header::advise(Error::new(what), &session.reader, "pmc record", formats);
            Err(error.try_this("another format: pmc export -o FILE.pb.gz"))
        };
        if request.format.is_two_files() && !session.has_time {
            let what = "the samples have no times, so they cannot be put into a table of a fleet";
            return lacks(what, header::FORMATS_WITH_TIMES);
        }
        if request.format == ExportFormat::Gmon && header::is_imported(&session.reader) {
            return lacks("the samples have no addresses, which gprof requires", "");
        }
        // Without timestamps, all samples would seem to be simultaneous.
        samples.apart.retain(|one| session.has_time || !matches!(one, SampleAttribute::Time(_)));
        let question = samples.full_query(&request.query(), &session.reader);
        let mut query = Query { event: request.event(&session.reader)?, ..question };
        let depth = request.depth().unwrap_or(samples.depth(&session.reader));
        let mut analysis = Analysis::load(session, &samples, &Bars)?;
        let named = analysis.name(depth, StringTable::default(), &Bars);
        if request.format == ExportFormat::Svg
            && request.samples.selection.states.is_none()
            && query.event.is_none()
            && let Some(event) = pictured_state(&named, request.before.is_some())
        {
            (query.states_apart, query.event) = (true, Some(event));
        }
        Ok(Self { analysis, named, query })
    }
}

/// Returns the event with the time that a picture shows: the same as the first table of a report. Pictures of
/// differences show running time, because waiting time depends on the machine's load.
fn pictured_state(named: &NamedSamples, compares: bool) -> Option<usize> {
    let events = named.state_events();
    let is_shown = |state| state == ThreadState::Running || state == ThreadState::Blocked && !compares;
    let shown = events.into_iter().filter(|(state, ..)| is_shown(*state));
    shown.max_by_key(|(_, _, time)| *time).map(|(_, event, _)| event)
}

/// Returns the event to export if the format can contain only one.
fn event(query: &Query, stacks: &StackProfile<'_>) -> usize {
    query.event.unwrap_or(stacks.first_event())
}

/// Folded stacks, each with its count of the selected event.
type FoldedStacks = Vec<(String, u64)>;

/// Returns the folded stacks of the recording to compare with, and the errors that occurred while reading
/// symbol files.
fn before(request: &ExportRequest, path: &Path) -> Result<(FoldedStacks, Vec<MissingDataReason>)> {
    let LoadedRecording { analysis, named, query } = LoadedRecording::new(request, path)?;
    let stacks = named
        .with_stacks(&query, |stacks| folded::with_marks(stacks, event(&query, stacks), FoldedMarks::Code));
    Ok((stacks, analysis.name_failures()))
}
