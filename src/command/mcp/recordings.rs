//! The tools that read recordings: `hot`, `tree`, `source`, `waits`, `locks`, `diff` and `timeline`.
//!
//! Each opens the recording again, because files may change between calls. Returns an [`AgentAnswer`] that is
//! not yet limited.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use pmc_analysis::analysis::annotate::AnnotationRequest;
use pmc_analysis::analysis::annotate::listing::ListingOptions;
use pmc_analysis::analysis::diff::{DiffRequest, DiffSides, WAIT_KEYS};
use pmc_analysis::analysis::request::SampleSelection;
use pmc_analysis::analysis::{Analysis, AnalysisRequest, NamedSamples, header};
use pmc_analysis::profile::diff::Compute;
use pmc_analysis::profile::sampled::call_sites::{CallSite, call_sites};
use pmc_analysis::profile::sampled::table::{RowRank, RowSelection};
use pmc_analysis::profile::sampled::{
    Filter, Profile, ProfileEvent, Query, SampleValue, SortKey, StackDirection, StringTable, ThreadState,
};
use pmc_analysis::session::Session;
use pmc_formats::import;
use pmc_symbols::symbol::SymbolOptions;
use pmc_sys::error::{Error, Result};
use pmc_text::text::clean;
use pmc_view::agent::{self, AgentAnswer, AnswerLimit, CodeRows};

/// The arguments that select samples, which most tools have.
#[derive(Debug, Deserialize)]
pub(super) struct SampleArguments {
    /// Path of the recording.
    #[serde(default = "usual_recording")]
    recording: PathBuf,
    /// The event; `None`: the first one with samples.
    event: Option<String>,
    /// Name of the threads to include.
    command: Option<String>,
    /// The thread to include.
    tid: Option<i32>,
}

fn usual_recording() -> PathBuf {
    "perf.data".into()
}

/// Arguments of the tool `hot`.
#[derive(Debug, Deserialize)]
pub(super) struct HotArguments {
    #[serde(flatten)]
    samples: SampleArguments,
    /// What distinguishes rows; empty: the default.
    #[serde(default)]
    by: Vec<RowKey>,
    /// Part of the functions' names.
    function: Option<String>,
}

/// Arguments of the tool `tree`.
#[derive(Debug, Deserialize)]
pub(super) struct TreeArguments {
    #[serde(flatten)]
    samples: SampleArguments,
    /// Name of the function at the root.
    function: Option<String>,
    #[serde(default)]
    direction: TreeDirection,
    /// Minimum size of a branch in percent.
    #[serde(default = "usual_branch")]
    min_percent: f64,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum TreeDirection {
    #[default]
    Callees,
    Callers,
}

fn usual_branch() -> f64 {
    1.0
}

/// Arguments of the tool `source`.
#[derive(Debug, Deserialize)]
pub(super) struct SourceArguments {
    #[serde(flatten)]
    samples: SampleArguments,
    /// Name of the function; `None`: the costliest.
    function: Option<String>,
    /// Name or path of the function's module.
    module: Option<String>,
    #[serde(default)]
    rows: SourceRows,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SourceRows {
    #[default]
    Lines,
    Instructions,
}

/// Arguments of the tool `waits`.
#[derive(Debug, Deserialize)]
pub(super) struct WaitsArguments {
    #[serde(flatten)]
    samples: SampleArguments,
    /// Whether to include the waits of idle threads.
    #[serde(default)]
    idle: bool,
}

/// Arguments of the tool `locks`.
#[derive(Debug, Deserialize)]
pub(super) struct LocksArguments {
    /// Path of the recording.
    #[serde(default = "usual_recording")]
    recording: PathBuf,
}

/// Arguments of the tool `diff`.
#[derive(Debug, Deserialize)]
pub(super) struct DiffArguments {
    before: PathBuf,
    after: PathBuf,
    /// The event; `None`: the first one with samples.
    event: Option<String>,
    /// What distinguishes rows; empty: the default.
    #[serde(default)]
    by: Vec<RowKey>,
}

/// Arguments of the tool `timeline`.
#[derive(Debug, Deserialize)]
pub(super) struct TimelineArguments {
    #[serde(flatten)]
    samples: SampleArguments,
    /// Number of time slices.
    #[serde(default = "usual_slices")]
    slices: u64,
}

fn usual_slices() -> u64 {
    20
}

/// A recording whose samples have names.
struct RecordingWithNames {
    analysis: Analysis,
    named: NamedSamples,
    query: Query,
}

impl SampleArguments {
    /// Returns a request for the selected samples.
    fn request(&self, symbols: &SymbolOptions) -> AnalysisRequest {
        AnalysisRequest {
            selection: SampleSelection {
                comms: self.command.clone().into_iter().collect(),
                tids: self.tid.into_iter().collect(),
                ..SampleSelection::default()
            },
            ..AnalysisRequest::new(symbols.clone())
        }
    }

    /// Returns the path of the recording, as the caller wrote it.
    fn shown_path(&self) -> Cow<'_, str> {
        self.recording.to_string_lossy()
    }

    /// Returns the index of the event, among those of a profile whose states are apart. The default is the
    /// first event with samples that does not measure waits.
    fn event_of(&self, profile: &Profile) -> Result<usize> {
        let measures_waits =
            |event: &ProfileEvent| matches!(event.state, Some(ThreadState::Blocked | ThreadState::Runnable));
        let is_usual = |event: &ProfileEvent| event.total.samples > 0 && !measures_waits(event);
        let events = profile.events.iter();
        event(self.event.as_deref(), events.map(|event| (event.name.as_str(), is_usual(event))))
    }
}

/// What distinguishes rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RowKey {
    Process,
    Command,
    Module,
    Function,
    Line,
    Tid,
    Cpu,
}

impl RowKey {
    /// Returns pmc's sort key.
    fn sort_key(self) -> SortKey {
        match self {
            Self::Process => SortKey::ProcessName,
            Self::Command => SortKey::Comm,
            Self::Module => SortKey::Dso,
            Self::Function => SortKey::Symbol,
            Self::Line => SortKey::SrcLine,
            Self::Tid => SortKey::Tid,
            Self::Cpu => SortKey::Cpu,
        }
    }
}

/// Returns the sort keys that the caller chose.
fn keys(by: &[RowKey]) -> Vec<SortKey> {
    let mut keys: Vec<SortKey> = Vec::new();
    for key in by.iter().map(|key| key.sort_key()) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

/// Reads and symbolizes the samples.
fn load(session: Arc<Session>, mut request: AnalysisRequest, query: &Query) -> Result<RecordingWithNames> {
    request.resolve(&session.reader)?;
    let query = request.full_query(query, &session.reader);
    let depth = request.depth(&session.reader);
    let mut analysis = Analysis::load(session, &request, &())?;
    let mut named = analysis.name(depth, StringTable::default(), &());
    analysis.assess(&mut named, false);
    Ok(RecordingWithNames { analysis, named, query })
}

/// Returns the index of the event with this name or else of the first usual one.
fn event<'n>(typed: Option<&str>, events: impl Iterator<Item = (&'n str, bool)>) -> Result<usize> {
    let events: Vec<(&str, bool)> = events.collect();
    let Some(wanted) = typed else {
        return Ok(events.iter().position(|(_, is_usual)| *is_usual).unwrap_or(0));
    };
    // The answer of `hot` lists the names, as data.
    events.iter().position(|(name, _)| *name == wanted).ok_or_else(|| {
        Error::usage(format!("the recording has no event {:?}", clean(wanted)))
            .try_this("call the tool without event: the answer lists the events")
    })
}

/// Runs the tool `hot`.
///
/// # Errors
/// Fails if the recording cannot be read.
pub(super) fn hot(of: &HotArguments, symbols: &SymbolOptions, limit: AnswerLimit) -> Result<AgentAnswer> {
    let session = open(&of.samples.recording)?;
    let keys = keys(&of.by);
    let usual_keys = keys.is_empty();
    let request = AnalysisRequest { usual_keys, by_process: true, keys, ..of.samples.request(symbols) };
    let only = RowSelection { part: of.function.clone(), ..RowSelection::default() };
    let filter = Filter { only, ..Filter::default() };
    let ranks = vec![RowRank::Own];
    let query =
        Query { totals: true, innermost: true, states_apart: true, ranks, filter, ..Query::default() };
    let RecordingWithNames { analysis, named, query } = load(session, request, &query)?;
    let profile = analysis.answer(named, &query).profile;
    Ok(agent::hot(&of.samples.shown_path(), &profile, of.samples.event_of(&profile)?, limit))
}

/// Runs the tool `tree`.
///
/// # Errors
/// Fails if the recording cannot be read, or has no call chains.
pub(super) fn tree(of: &TreeArguments, symbols: &SymbolOptions, limit: AnswerLimit) -> Result<AgentAnswer> {
    let session = open(&of.samples.recording)?;
    if !pmc_analysis::analysis::has_chains(&session.reader) {
        return Err(Error::new("the recording has no call chains")
            .try_this("call the tool record with stacks, or pmc record --call-graph auto"));
    }
    let direction = match of.direction {
        TreeDirection::Callers => StackDirection::Callee,
        TreeDirection::Callees => StackDirection::Caller,
    };
    let query = Query {
        totals: true,
        states_apart: true,
        tree: Some(direction),
        root: of.function.clone(),
        limit: of.min_percent / 100.0,
        ..Query::default()
    };
    let request = AnalysisRequest { keys: vec![SortKey::Symbol], ..of.samples.request(symbols) };
    let RecordingWithNames { analysis, named, query } = load(session, request, &query)?;
    let profile = analysis.answer(named, &query).profile;
    let event = of.samples.event_of(&profile)?;
    Ok(agent::tree(&of.samples.shown_path(), &profile, (event, direction), limit))
}

/// Runs the tool `source`.
///
/// # Errors
/// Fails if the recording cannot be read, or no function with this name has samples.
pub(super) fn source(
    of: &SourceArguments,
    symbols: &SymbolOptions,
    limit: AnswerLimit,
) -> Result<AgentAnswer> {
    let session = open(&of.samples.recording)?;
    let request =
        AnalysisRequest { callers: false, keys: vec![SortKey::Symbol], ..of.samples.request(symbols) };
    let RecordingWithNames { mut analysis, named, query } =
        load(session.clone(), request, &Query::default())?;
    let request = AnnotationRequest {
        function: of.function.clone(),
        dsos: of.module.clone().into_iter().collect(),
        most: 1,
        options: ListingOptions { with_source: true, ..ListingOptions::default() },
        ..AnnotationRequest::default()
    };
    let to_hot = "call the tool hot for the names of functions and modules";
    // The usual error suggests names from the recording, which must not become part of a sentence.
    let code = analysis.annotate(&request, &()).map_err(|error| match of.function {
        Some(_) => Error::new(error.headline()).try_this(to_hot),
        None => Error::new("no function in this module has samples").try_this(to_hot),
    })?;
    let Some(listing) = code.listings.first() else {
        return Err(Error::new("no function has samples").try_this(to_hot));
    };
    let events = listing.events.iter().map(|event| (event.name.as_str(), event.own.samples > 0));
    let event = event(of.samples.event.as_deref(), events)?;
    let rows = match of.rows {
        SourceRows::Instructions => CodeRows::Instructions,
        SourceRows::Lines => CodeRows::Lines,
    };
    let profile = analysis.answer(named, &query).profile;
    let callers = callers(of, symbols, session, &listing.symbol)?;
    Ok(agent::source(&of.samples.shown_path(), listing, &profile, (event, rows), &callers, limit))
}

/// Returns the lines that call a function, and the sum of all samples in it and its callees. Without call
/// chains, there are no such lines.
fn callers(
    of: &SourceArguments,
    symbols: &SymbolOptions,
    session: Arc<Session>,
    function: &str,
) -> Result<(Vec<CallSite>, SampleValue)> {
    if !pmc_analysis::analysis::has_chains(&session.reader) {
        return Ok(<_>::default());
    }
    let request = AnalysisRequest { keys: vec![SortKey::Symbol], ..of.samples.request(symbols) };
    let query = Query { states_apart: true, ..Query::default() };
    let RecordingWithNames { analysis, named, query } = load(session, request, &query)?;
    let calls = named.with_stacks(&query, |stacks| {
        let typed = of.samples.event.as_deref();
        let at = stacks.events.iter().position(|event| Some(event.name.as_str()) == typed);
        call_sites(stacks, at.unwrap_or_else(|| stacks.first_event()), function)
    });
    drop(analysis);
    Ok(calls)
}

/// Runs the tool `waits`.
///
/// # Errors
/// Fails if the recording cannot be read, or has no waits.
pub(super) fn waits(of: &WaitsArguments, symbols: &SymbolOptions, limit: AnswerLimit) -> Result<AgentAnswer> {
    let session = open(&of.samples.recording)?;
    let request = AnalysisRequest { usual_keys: true, idle: of.idle, ..of.samples.request(symbols) };
    let query = Query { states_apart: true, idle: of.idle, ..Query::default() };
    let RecordingWithNames { analysis, named, query } = load(session, request, &query)?;
    let profile = analysis.answer(named, &query).profile;
    let measures_waits = |event: &ProfileEvent| event.state == Some(ThreadState::Blocked);
    let event = profile.events.iter().position(measures_waits).ok_or_else(|| {
        Error::new("the recording has no waits").try_this("call the tool record with wall and wakers")
    })?;
    Ok(agent::waits(&of.samples.shown_path(), &profile, event, limit))
}

/// Runs the tool `locks`.
///
/// # Errors
/// Fails if the recording cannot be read, or has no calls of `futex`.
pub(super) fn locks(of: &LocksArguments, symbols: &SymbolOptions, limit: AnswerLimit) -> Result<AgentAnswer> {
    let session = open(&of.recording)?;
    let locks = pmc_tools::lock::agent_locks(session, symbols).map_err(|error| {
        // The usual error lists the events of the recording, which must not become part of a sentence.
        Error::new(error.headline()).try_this("call the tool record with locks")
    })?;
    let mut head = locks.head;
    head.insert("recording".to_owned(), of.recording.to_string_lossy().into());
    let all_rows = locks.rows.len();
    let rows = locks.rows.into_iter().skip(limit.offset).take(limit.most_rows()).collect();
    Ok(AgentAnswer { head, rows, all_rows, trust: locks.trust })
}

/// Runs the tool `diff`.
///
/// # Errors
/// Fails if a recording cannot be read, or the recordings have no event in common.
pub(super) fn diff(of: &DiffArguments, symbols: &SymbolOptions, limit: AnswerLimit) -> Result<AgentAnswer> {
    let files = [&of.before, &of.after].map(PathBuf::clone);
    files.iter().try_for_each(|path| check(path))?;
    let mut keys = keys(&of.by);
    let mut wait_keys = None;
    if keys.is_empty() {
        keys = vec![SortKey::Dso, SortKey::Symbol];
        wait_keys = Some(WAIT_KEYS.to_vec());
    }
    let request = DiffRequest {
        files: files.to_vec(),
        analysis: AnalysisRequest { keys, ..AnalysisRequest::new(symbols.clone()) },
        wait_keys,
        compute: Some(Compute::DeltaAbs),
        ..DiffRequest::default()
    };
    let sides = DiffSides::load(&request, |path| import::open(path), &())?;
    // The usual error lists the events of the recordings, which must not become part of a sentence.
    let comparison = sides.compare(&request).map_err(|_| {
        Error::new("the recordings have no event in common")
            .try_this("record both with the tool record and the same event, or with pmc profile")
    })?;
    let samples = |event: &pmc_analysis::profile::diff::DiffEvent| {
        event.totals.iter().flatten().any(|total| total.samples > 0)
    };
    let events = comparison.events.iter().map(|event| (event.name.as_str(), samples(event)));
    Ok(agent::diff(&comparison, event(of.event.as_deref(), events)?, limit))
}

/// Runs the tool `timeline`.
///
/// # Errors
/// Fails if the recording cannot be read, or has no timestamps.
pub(super) fn timeline(
    of: &TimelineArguments,
    symbols: &SymbolOptions,
    limit: AnswerLimit,
) -> Result<AgentAnswer> {
    let session = open(&of.samples.recording)?;
    let (begin, end) = session.sample_span().ok_or_else(|| {
        let error = Error::new("the recording has no timestamps, or no samples");
        let record = "record again without options that omit the time";
        header::advise(error, &session.reader, record, header::FORMATS_WITH_TIMES)
    })?;
    let slice = ((end - begin) / of.slices + 1).max(1);
    let keys = vec![SortKey::Time, SortKey::Dso, SortKey::Symbol];
    let request = AnalysisRequest { keys, slice, callers: false, ..of.samples.request(symbols) };
    let RecordingWithNames { analysis, named, query } = load(session, request, &Query::default())?;
    let by_slice = named.answer(&Query { keys: vec![SortKey::Time], ..query.clone() }).profile;
    let by_function = analysis.answer(named, &query).profile;
    let event = of.samples.event_of(&by_slice)?;
    Ok(agent::timeline(&of.samples.shown_path(), (&by_slice, &by_function), event, (begin, slice), limit))
}

/// Opens a recording, which must be a regular file.
fn open(path: &Path) -> Result<Arc<Session>> {
    check(path)?;
    Ok(Arc::new(Session::open(import::open(path)?)?))
}

/// Refuses everything that is not a regular file: a pipe or a terminal would block the server.
fn check(path: &Path) -> Result<()> {
    let shown = clean(&path.to_string_lossy()).into_owned();
    let about = fs::metadata(path).map_err(|error| Error::io(format!("opening {shown}"), error))?;
    match about.is_file() {
        true => Ok(()),
        false => Err(Error::new(format!("{shown} is not a regular file")).try_this("a perf.data file")),
    }
}
