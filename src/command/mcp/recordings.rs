//! The tools that read recordings: `hot`, `tree`, `source`, `diff` and `timeline`.
//!
//! Each opens the recording again, because files may change between calls. Returns an [`AgentAnswer`] that is
//! not yet limited.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::tools::{KEYS, ToolArguments};
use pmc_analysis::analysis::annotate::AnnotationRequest;
use pmc_analysis::analysis::annotate::listing::ListingOptions;
use pmc_analysis::analysis::diff::{DiffRequest, DiffSides, WAIT_KEYS};
use pmc_analysis::analysis::request::SampleSelection;
use pmc_analysis::analysis::{Analysis, AnalysisRequest, NamedSamples, header};
use pmc_analysis::profile::diff::Compute;
use pmc_analysis::profile::sampled::table::{RowRank, RowSelection};
use pmc_analysis::profile::sampled::{Filter, Profile, Query, SortKey, StackDirection, StringTable};
use pmc_analysis::session::Session;
use pmc_formats::import;
use pmc_symbols::symbol::SymbolOptions;
use pmc_sys::error::{Error, Result};
use pmc_text::text::clean;
use pmc_view::agent::{self, AgentAnswer, AnswerLimit, CodeRows};

/// Default minimum size of a branch in percent.
const BRANCH: f64 = 1.0;
/// Default number of time slices.
const SLICES: u64 = 20;

/// A call of a tool that reads recordings.
pub(super) struct RecordingCall<'a> {
    pub(super) arguments: &'a ToolArguments<'a>,
    pub(super) symbols: &'a SymbolOptions,
    pub(super) limit: AnswerLimit,
}

/// A recording whose samples have names.
struct RecordingWithNames {
    analysis: Analysis,
    named: NamedSamples,
    query: Query,
}

impl RecordingCall<'_> {
    /// Returns the path of the recording.
    fn path(&self) -> PathBuf {
        self.arguments.text("recording").unwrap_or("perf.data").into()
    }

    /// Returns a request for the selected samples.
    fn request(&self) -> AnalysisRequest {
        AnalysisRequest {
            selection: SampleSelection {
                comms: self.arguments.text("command").map(str::to_owned).into_iter().collect(),
                tids: self.arguments.integer("tid").map(|tid| tid as i32).into_iter().collect(),
                ..SampleSelection::default()
            },
            ..AnalysisRequest::new(self.symbols.clone())
        }
    }

    /// Returns the sort keys that the caller chose.
    fn keys(&self) -> Vec<SortKey> {
        let key =
            |word: &str| KEYS.iter().find(|(name, _)| *name == word).and_then(|(_, key)| key.parse().ok());
        let mut keys: Vec<SortKey> = Vec::new();
        for key in self.arguments.words("by").into_iter().filter_map(key) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        keys
    }

    /// Reads and symbolizes the samples.
    fn load(
        &self,
        session: Arc<Session>,
        mut request: AnalysisRequest,
        query: &Query,
    ) -> Result<RecordingWithNames> {
        request.resolve(&session.reader)?;
        let query = request.question(query, &session.reader);
        let depth = request.depth(&session.reader);
        let mut analysis = Analysis::load(session, &request, &())?;
        let mut named = analysis.name(depth, StringTable::default(), &());
        analysis.assess(&mut named, false);
        Ok(RecordingWithNames { analysis, named, query })
    }

    /// Returns the index of the chosen event, or of the first event with samples.
    fn event<'n>(&self, events: impl Iterator<Item = (&'n str, u64)>) -> Result<usize> {
        let events: Vec<(&str, u64)> = events.collect();
        let Some(wanted) = self.arguments.text("event") else {
            return Ok(events.iter().position(|(_, samples)| *samples > 0).unwrap_or(0));
        };
        // The answer of `hot` lists the names, as data.
        events.iter().position(|(name, _)| *name == wanted).ok_or_else(|| {
            Error::usage(format!("the recording has no event {:?}", clean(wanted)))
                .try_this("call the tool without event: the answer lists the events")
        })
    }

    fn event_of(&self, profile: &Profile) -> Result<usize> {
        self.event(profile.events.iter().map(|event| (event.name.as_str(), event.total.samples)))
    }

    /// Runs the tool `hot`.
    ///
    /// # Errors
    /// Fails if the recording cannot be read.
    pub(super) fn hot(&self) -> Result<AgentAnswer> {
        let path = self.path();
        let session = open(&path)?;
        let keys = self.keys();
        let request = AnalysisRequest { usual_keys: keys.is_empty(), keys, ..self.request() };
        let only = RowSelection {
            part: self.arguments.text("function").map(str::to_owned),
            ..RowSelection::default()
        };
        let filter = Filter { only, ..Filter::default() };
        let ranks = vec![RowRank::Own];
        let query = Query { totals: true, innermost: true, ranks, filter, ..Query::default() };
        let RecordingWithNames { analysis, named, query } = self.load(session, request, &query)?;
        let profile = analysis.answer(named, &query).profile;
        Ok(agent::hot(&path.to_string_lossy(), &profile, self.event_of(&profile)?, self.limit))
    }

    /// Runs the tool `tree`.
    ///
    /// # Errors
    /// Fails if the recording cannot be read, or has no call chains.
    pub(super) fn tree(&self) -> Result<AgentAnswer> {
        let path = self.path();
        let session = open(&path)?;
        if !pmc_analysis::analysis::has_chains(&session.reader) {
            return Err(Error::new("the recording has no call chains")
                .try_this("call the tool record with stacks, or pmc record --call-graph auto"));
        }
        let direction = match self.arguments.text("direction") {
            Some("callers") => StackDirection::Callee,
            _ => StackDirection::Caller,
        };
        let query = Query {
            totals: true,
            tree: Some(direction),
            root: self.arguments.text("function").map(str::to_owned),
            limit: self.arguments.number("min_percent").unwrap_or(BRANCH) / 100.0,
            ..Query::default()
        };
        let request = AnalysisRequest { keys: vec![SortKey::Symbol], ..self.request() };
        let RecordingWithNames { analysis, named, query } = self.load(session, request, &query)?;
        let profile = analysis.answer(named, &query).profile;
        let event = self.event_of(&profile)?;
        Ok(agent::tree(&path.to_string_lossy(), &profile, (event, direction), self.limit))
    }

    /// Runs the tool `source`.
    ///
    /// # Errors
    /// Fails if the recording cannot be read, or no function with this name has samples.
    pub(super) fn source(&self) -> Result<AgentAnswer> {
        let path = self.path();
        let session = open(&path)?;
        let request = AnalysisRequest { callers: false, keys: vec![SortKey::Symbol], ..self.request() };
        let RecordingWithNames { mut analysis, named, query } =
            self.load(session, request, &Query::default())?;
        let function = self.arguments.text("function");
        let request = AnnotationRequest {
            function: function.map(str::to_owned),
            dsos: self.arguments.text("module").map(str::to_owned).into_iter().collect(),
            most: 1,
            options: ListingOptions { with_source: true, ..ListingOptions::default() },
            ..AnnotationRequest::default()
        };
        let to_hot = "call the tool hot for the names of functions and modules";
        // The usual error suggests names from the recording, which must not become part of a sentence.
        let code = analysis.annotate(&request, &()).map_err(|error| match function {
            Some(_) => Error::new(error.headline()).try_this(to_hot),
            None => Error::new("no function in this module has samples").try_this(to_hot),
        })?;
        let Some(listing) = code.listings.first() else {
            return Err(Error::new("no function has samples").try_this(to_hot));
        };
        let events = listing.events.iter().map(|event| (event.name.as_str(), event.own.samples));
        let event = self.event(events)?;
        let rows = match self.arguments.text("rows") {
            Some("instructions") => CodeRows::Instructions,
            _ => CodeRows::Lines,
        };
        let profile = analysis.answer(named, &query).profile;
        Ok(agent::source(&path.to_string_lossy(), listing, &profile, (event, rows), self.limit))
    }

    /// Runs the tool `diff`.
    ///
    /// # Errors
    /// Fails if a recording cannot be read, or the recordings have no event in common.
    pub(super) fn diff(&self) -> Result<AgentAnswer> {
        let files =
            ["before", "after"].map(|name| PathBuf::from(self.arguments.text(name).unwrap_or_default()));
        files.iter().try_for_each(|path| check(path))?;
        let mut keys = self.keys();
        let mut wait_keys = None;
        if keys.is_empty() {
            keys = vec![SortKey::Dso, SortKey::Symbol];
            wait_keys = Some(WAIT_KEYS.to_vec());
        }
        let request = DiffRequest {
            files: files.to_vec(),
            analysis: AnalysisRequest { keys, ..self.request() },
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
            event.totals.iter().flatten().map(|total| total.samples).sum()
        };
        let event =
            self.event(comparison.events.iter().map(|event| (event.name.as_str(), samples(event))))?;
        Ok(agent::diff(&comparison, event, self.limit))
    }

    /// Runs the tool `timeline`.
    ///
    /// # Errors
    /// Fails if the recording cannot be read, or has no timestamps.
    pub(super) fn timeline(&self) -> Result<AgentAnswer> {
        let path = self.path();
        let session = open(&path)?;
        let (begin, end) = session.sample_span().ok_or_else(|| {
            let error = Error::new("the recording has no timestamps, or no samples");
            let record = "record again without options that omit the time";
            header::advise(error, &session.reader, record, header::FORMATS_WITH_TIMES)
        })?;
        let slices = self.arguments.integer("slices").unwrap_or(SLICES);
        let slice = ((end - begin) / slices + 1).max(1);
        let keys = vec![SortKey::Time, SortKey::Dso, SortKey::Symbol];
        let request = AnalysisRequest { keys, slice, callers: false, ..self.request() };
        let RecordingWithNames { analysis, named, query } = self.load(session, request, &Query::default())?;
        let by_slice = named.answer(&Query { keys: vec![SortKey::Time], ..query.clone() }).profile;
        let by_function = analysis.answer(named, &query).profile;
        let event = self.event_of(&by_slice)?;
        Ok(agent::timeline(
            &path.to_string_lossy(),
            (&by_slice, &by_function),
            event,
            (begin, slice),
            self.limit,
        ))
    }
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
