//! Analyses an open recording: selects, symbolizes and aggregates its samples, and answers queries.
//!
//! Produces the data that views show from a [`Session`] and an [`AnalysisRequest`]. Decides which samples
//! count, where to look for symbols, how to unwind stack copies, and how to convert numeric ids to names.
//! Also assesses the quality of the data. `command` parses options and `view` prints; `profile` aggregates
//! samples and answers queries.
//!
//! ```text
//!   Session ── Analysis::load ── name ──┬─ (assess) ── answer   tables, trees, quality: report, screen, diff
//!      │             └─ functions ── listing                    annotate, the screen's code
//!      └── script::NamedRecording::load ── entries              records in time order
//! ```

pub mod annotate;
pub mod archive;
pub mod counts;
pub mod diff;
pub mod header;
pub mod inject;
pub mod live;
pub(crate) mod names;
pub mod recording_quality;
pub mod request;
pub mod script;
pub mod symbols;
pub mod tasks;
pub mod unwinding;

use std::borrow::Cow;
use std::sync::Arc;

use annotate::functions::SampledFunction;
use names::RecordingNames;
pub use request::AnalysisRequest;
use request::{StackChanges, TraceField};
use symbols::RecordingSymbols;
use unwinding::RecordingUnwinder;

use crate::profile::sampled::event_totals::EventTotals;
use crate::profile::sampled::idle::{self, IdleInput, IdleWaits, MeasuredThread};
use crate::profile::sampled::profile_quality::UnwindEnds;
use crate::profile::sampled::query;
use crate::profile::sampled::table_input::TableInput;
use crate::profile::sampled::time_sums::TimeSums;
use crate::profile::sampled::waits::ThreadTimeSums;
use crate::profile::sampled::{
    LocationCalls, ModuleQuality, NameStyle, Profile, ProfileQuality, Query, QueryAnswer, StackProfile,
    StringTable, callers, waits,
};
use crate::session::samples::{self, RowKey, SampleAttribute};
use crate::session::thread_time::{ThreadState, ThreadTime};
use crate::session::{CodeLocation, ModuleKind, ResolvedStacks, SampleValue, Samples, Session, resolver};
use pmc_perfdata::perfdata::Reader;
use pmc_perfdata::perfdata::feature::DeviceFile;
use pmc_perfdata::record::kind;
use pmc_symbols::symbol::{BuildId, Debuginfod, Depth, MissingDataReason, RunningKernel, SymbolOptions};
use pmc_sys::abi::sample_type;
use pmc_sys::error::{Error, Result, Warning, say};
use pmc_text::text::shell_word;

/// Shows the progress of long tasks.
pub trait ProgressSink: Sync {
    /// Starts a task, which ends when the returned meter is dropped. `total` is 0 if it is unknown.
    fn begin(&self, what: &'static str, total: u64) -> Box<dyn ProgressMeter + '_>;
}

/// Progress of one task. Called often and from any thread.
pub trait ProgressMeter: Sync {
    /// Reports that `count` more units have been processed.
    fn more(&self, count: u64);
    /// Reports that `done` of `total` units have been processed.
    fn at(&self, done: u64, total: u64);
}

/// Ignores progress updates.
impl ProgressSink for () {
    fn begin(&self, _: &'static str, _: u64) -> Box<dyn ProgressMeter + '_> {
        Box::new(())
    }
}

impl ProgressMeter for () {
    fn more(&self, _: u64) {}
    fn at(&self, _: u64, _: u64) {}
}

/// Whether the recording was made on this machine with the running kernel, so that its processes may still
/// exist. Returns `false` if the recording does not identify its machine.
pub fn is_of_this_machine(session: &Session) -> bool {
    let (here, features) = (rustix::system::uname(), session.reader.features());
    let said = [(&features.hostname, here.nodename()), (&features.os_release, here.release())];
    let mut said = said.iter().filter_map(|(recorded, here)| Some((recorded.as_ref()?, here))).peekable();
    if said.peek().is_some() {
        return said.all(|(recorded, here)| recorded.as_bytes() == here.to_bytes());
    }
    let kernels =
        session.history.modules().iter().filter(|module| matches!(module.kind, ModuleKind::Kernel(_)));
    let mut ids = kernels.filter_map(|module| BuildId::new(module.build_id.as_deref()?));
    RunningKernel::live().build_id().is_some_and(|running| ids.any(|id| id.same(&running)))
}

/// Whether any event was recorded with call chains.
pub fn has_chains(reader: &Reader) -> bool {
    reader.layouts().have(sample_type::CALLCHAIN)
}

/// Rejects a recording that contains counts but no samples, because an empty table would be misleading.
fn has_samples(session: &Session) -> Result<()> {
    if !counts::holds_counts(session) {
        return Ok(());
    }
    let path = session.reader.path();
    Err(Error::new(format!("{} has no samples", path.display()))
        .why("it contains counts from `pmc stat record`, not samples")
        .try_this(format!("pmc stat report -i {}", shell_word(path))))
}

/// Creates a symbolizer for the modules of a recording. Does not open any files yet.
///
/// # Errors
/// Fails if the threads cannot be started.
pub fn symbols_of(session: &Session, options: &SymbolOptions) -> Result<RecordingSymbols> {
    // If the user provides another machine's files (`--symfs`), this machine's files are ignored.
    let archive = archive::of_session(session);
    if archive.is_some() && names_files(options) {
        say::warn(Warning::note_once(
            "the recording is an archive with its own symbols: --symfs, --vmlinux and --kallsyms have no effect",
        ));
    }
    let live = archive.is_none() && options.symfs.is_none() && is_of_this_machine(session);
    let meta = session.reader.features().meta_info.as_ref();
    let owners = meta.map(|meta| meta.owners().collect()).unwrap_or_default();
    let options = SymbolOptions { live, owners, ..options.clone() };
    let mut symbols = RecordingSymbols::new(&session.history, options)?;
    symbols.is_imported = header::is_imported(&session.reader);
    symbols.add_device_symbols(&DeviceFile::all(session.reader.features()));
    if let Some(archive) = archive {
        symbols.symbolizer.set_archive(archive);
    }
    Ok(symbols)
}

/// Whether the user has named files with symbols.
fn names_files(options: &SymbolOptions) -> bool {
    options.symfs.is_some() || options.vmlinux.is_some() || options.kallsyms.is_some()
}

/// The samples of a recording, aggregated by stack. [`Analysis::name`] adds names.
#[derive(Debug)]
pub struct Analysis {
    symbols: RecordingSymbols,
    samples: Arc<AggregatedSamples>,
    /// Stack changes that require names. The first call to [`Analysis::name`] takes and applies them.
    changes: Option<StackChanges>,
    name_style: NameStyle,
    /// Whether to ask debuginfod servers for missing files.
    asks_servers: bool,
    /// The functions with samples; `None` until requested.
    functions: Option<Arc<[SampledFunction]>>,
}

/// The data shared by all stages of symbolization.
#[derive(Debug)]
struct AggregatedSamples {
    session: Arc<Session>,
    /// The results of pass 2, except for rows and stacks, which are in `resolved`.
    samples: Samples,
    /// The rows, with resolved stacks.
    resolved: ResolvedStacks,
    /// The attributes that distinguish rows.
    attributes: Vec<SampleAttribute>,
    /// How the stacks that pmc unwound end.
    ends: UnwindEnds,
    /// Whether the recording has call chains and the request asks for callers.
    has_stacks: bool,
    raw_traces: bool,
    /// Tracepoint fields used as sort keys.
    trace_fields: Vec<TraceField>,
    /// If the recording has off-CPU time, the states that its events measure.
    thread_time: Option<ThreadTime>,
    /// The states to include; `None` for all.
    states: Option<Vec<ThreadState>>,
    /// Whether the rows include the waits of idle threads.
    shows_idle: bool,
    /// Removed waits of idle threads.
    idle: IdleWaits,
}

impl Analysis {
    /// Runs pass 2: reads the selected samples, unwinds stack copies, aggregates the samples, and resolves
    /// each distinct address once.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or lacks data that the request needs.
    pub fn load(
        session: Arc<Session>,
        request: &AnalysisRequest,
        progress: &dyn ProgressSink,
    ) -> Result<Self> {
        has_samples(&session)?;
        let wanted = request.sample_query(&session)?;
        let symbols = symbols_of(&session, &request.symbols)?;
        let (mut samples, ends) = {
            let meter = progress.begin("reading samples", session.index.count(kind::SAMPLE));
            let mut unwinding = RecordingUnwinder::new(&session, &symbols, request.max_stack, request.joins);
            if request.stitches {
                unwinding = unwinding.stitching(&session)?;
            }
            let count = |count| meter.more(count);
            let samples = samples::collect(&session, &wanted, unwinding.if_needed(), &count)?;
            (samples, archive::converted_ends(&session).unwrap_or_else(|| unwinding.ends()))
        };
        let resolved = {
            let _meter = progress.begin("looking up addresses", 0);
            resolver::resolve(&session.history, &mut samples, request.max_stack)
        };
        let has_stacks = request.callers && request.has_chains(&session.reader);
        let attributes = wanted.attributes;
        let (raw_traces, trace_fields) = (request.raw_traces, request.trace_fields.clone());
        let samples = AggregatedSamples {
            session,
            samples,
            resolved,
            attributes,
            ends,
            has_stacks,
            raw_traces,
            trace_fields,
            thread_time: wanted.thread_time,
            states: request.selection.states.clone(),
            shows_idle: request.idle,
            idle: IdleWaits::default(),
        };
        Ok(Self {
            symbols,
            samples: samples.into(),
            changes: Some(request.stack_changes.clone()),
            name_style: request.name_style.clone(),
            asks_servers: request.symbols.debuginfod.is_some(),
            functions: None,
        })
    }

    /// Returns the recording.
    pub fn session(&self) -> &Session {
        &self.samples.session
    }

    /// Returns the errors that occurred when reading files with names or line numbers.
    pub fn name_failures(&self) -> Vec<MissingDataReason> {
        self.symbols.failures()
    }

    /// Returns the total of each event, including samples removed by thread filters.
    pub(crate) fn totals(&self) -> &[SampleValue] {
        &self.samples.samples.totals
    }

    /// Returns the times of the first and last selected samples, in nanoseconds of the recording's clock.
    pub fn span(&self) -> Option<(u64, u64)> {
        self.samples.samples.span
    }

    /// Returns the total number of samples of all events.
    pub fn sample_count(&self) -> u64 {
        self.totals().iter().map(|total| total.samples).sum()
    }

    /// Resolves the names of all locations at this level of detail. `texts` may already contain strings, for
    /// example from another recording that is compared with this one.
    ///
    /// The first call also applies the requested stack changes.
    pub fn name(
        &mut self,
        depth: Depth,
        mut texts: StringTable,
        progress: &dyn ProgressSink,
    ) -> NamedSamples {
        let what = match &self.changes {
            Some(_) if self.asks_servers => "looking up names with debuginfod",
            Some(_) => "finding names",
            None => "finding inlined functions",
        };
        let code = {
            let meter = progress.begin(what, 0);
            let (modules, locations) =
                (self.samples.session.history.modules(), &self.samples.resolved.locations);
            let at = |p: pmc_symbols::symbol::SymbolProgress| meter.at(p.done as u64, p.total as u64);
            self.symbols.name(modules, locations, depth, self.name_style.clone(), &mut texts, &at)
        };
        // Until the first call, this is the only reference to the samples.
        if let (Some(changes), Some(samples)) = (self.changes.take(), Arc::get_mut(&mut self.samples)) {
            samples.change_stacks(&changes, &code, &texts);
            samples.select_states();
        }
        let samples = self.samples.clone();
        NamedSamples { samples, code, texts, modules: Vec::new(), trust: ProfileQuality::default() }
    }

    /// Returns the names of the functions found so far.
    pub(crate) fn symbol_names(&self) -> &pmc_symbols::symbol::SymbolNames {
        self.symbols.symbolizer.names()
    }

    /// Returns the link-time address of a named location in its file.
    pub fn file_address(&self, location: &CodeLocation) -> Option<u64> {
        self.symbols.file_address(location)
    }

    /// Returns the size of an address in a named module, in bytes: 4 or 8.
    pub fn address_width(&self, module: u32) -> usize {
        let is_short =
            self.symbols.id(module).is_some_and(|id| self.symbols.symbolizer.has_short_addresses(id));
        if is_short { 4 } else { 8 }
    }

    /// Asks debuginfod servers for missing files of the named modules. Returns whether any file was
    /// downloaded, in which case calling [`Analysis::name`] again finds more names.
    pub fn ask_servers(&mut self, servers: Arc<Debuginfod>, progress: &dyn ProgressSink) -> bool {
        let meter = progress.begin("asking debuginfod servers", 0);
        let at = |p: pmc_symbols::symbol::SymbolProgress| meter.at(p.done as u64, p.total as u64);
        let has_more = self.symbols.symbolizer.ask_servers(servers, &at);
        if has_more {
            self.functions = None;
        }
        has_more
    }

    /// Assesses the quality of the data and the names. With `remedies`, also looks for remedies for missing
    /// names, which may take longer than the report itself.
    pub fn assess(&self, named: &mut NamedSamples, remedies: bool) {
        let AggregatedSamples { session, samples, resolved, ends, has_stacks, .. } = &*self.samples;
        let counts =
            crate::profile::sampled::profile_quality::count(resolved, &named.code, &named.texts, *has_stacks);
        named.modules = recording_quality::modules(session, &self.symbols, &counts, &mut named.texts);
        if remedies {
            recording_quality::add_remedies(&mut named.modules, session, &self.symbols);
        }
        named.trust = recording_quality::trust(session, samples, &counts, ends.clone(), *has_stacks);
        // The waits of idle threads were recorded too.
        let idle = self.samples.idle.rows.iter().map(|(_, value)| value.samples);
        named.trust.samples = idle.fold(named.trust.samples, u64::saturating_add);
        named.trust.notes.extend(self.symbols.symbolizer.server_failure().map(str::to_owned));
    }

    /// Answers queries in order and consumes the names. Only the last answer has the string table, which is
    /// that of all answers.
    pub(crate) fn answer_all(&self, mut named: NamedSamples, queries: &[Query]) -> Vec<QueryAnswer> {
        let mut texts = std::mem::take(&mut named.texts);
        let names = named.words().with_symbols(&self.symbols);
        let mut answers: Vec<QueryAnswer> = Vec::new();
        for query in queries {
            if let Some(last) = answers.last_mut() {
                texts = std::mem::take(&mut last.profile.texts);
            }
            answers.push(named.answer_with(&names, query, std::mem::take(&mut texts)));
        }
        answers
    }

    /// Answers a single query and consumes the names.
    pub fn answer(&self, mut named: NamedSamples, query: &Query) -> QueryAnswer {
        let texts = std::mem::take(&mut named.texts);
        let names = named.words().with_symbols(&self.symbols);
        let answer = named.answer_with(&names, query, texts);
        let trace_fields = self.samples.trace_field_names();
        let profile = Profile { modules: named.modules, trust: named.trust, trace_fields, ..answer.profile };
        QueryAnswer { profile, ..answer }
    }
}

impl AggregatedSamples {
    fn change_stacks(&mut self, changes: &StackChanges, code: &LocationCalls, texts: &StringTable) {
        let (resolved, samples, kinds) = (&mut self.resolved, &mut self.samples, &self.attributes);
        if self.thread_time.is_some() {
            if let Some(marked) = waits::classify(resolved, &samples.attributes, kinds, code, texts) {
                samples.attributes = marked;
            }
            if !self.shows_idle {
                let thread = |tid: i32| MeasuredThread::from_history(&self.session.history, tid);
                let attributes = &samples.attributes;
                let input = IdleInput { attributes, kinds, code, texts, thread: &thread };
                self.idle = idle::remove_idle(resolved, input);
                for (key, value) in &self.idle.rows {
                    let total = &mut samples.totals[key.event as usize];
                    *total = total.without(value);
                }
            }
        }
        let idle = &mut self.idle.rows;
        if let Some(pattern) = &changes.ignore_callees {
            callers::ignore_callees(resolved, idle, code, texts, &|name| pattern.finds(name));
        }
        let Some(pattern) = &changes.parent else { return };
        callers::mark_parents(resolved, idle, &mut samples.attributes, kinds, code, texts, &|name| {
            pattern.finds(name)
        });
        if changes.parents_only {
            for (event, value) in callers::without_others(&mut resolved.rows, &samples.attributes, kinds) {
                samples.filtered[event] += value;
            }
            callers::without_others(idle, &samples.attributes, kinds);
        }
    }

    /// Drops the samples of all states except the selected ones. Shares then refer to the selected states.
    fn select_states(&mut self) {
        let (Some(states), Some(thread_time)) = (&self.states, &self.thread_time) else { return };
        let is_kept = |event: usize| thread_time.state(event).is_none_or(|state| states.contains(&state));
        self.resolved.rows.retain(|(key, _)| is_kept(key.event as usize));
        self.idle.rows.retain(|(key, _)| is_kept(key.event as usize));
        let Samples { totals, filtered, .. } = &mut self.samples;
        for (event, (total, filtered)) in totals.iter_mut().zip(filtered).enumerate() {
            if !is_kept(event) {
                (*total, *filtered) = (SampleValue::default(), SampleValue::default());
            }
        }
    }

    fn trace_field_names(&self) -> Vec<String> {
        self.trace_fields.iter().map(|field| field.field.clone()).collect()
    }

    /// Returns the rows that a query refers to, sorted by key.
    fn rows(&self, query: &Query) -> Cow<'_, [(RowKey, SampleValue)]> {
        let rows = self.idle.select(&self.resolved.rows, query.idle);
        let Some(thread_time) = self.thread_time.as_ref().filter(|_| !query.states_apart) else {
            return rows;
        };
        let mut rows = rows.into_owned();
        rows.iter_mut().for_each(|(key, _)| key.event = thread_time.joint(key.event as usize).0 as u32);
        rows.sort_unstable_by_key(|(key, _)| *key);
        rows.into()
    }

    /// Returns the events that a query refers to, with their totals.
    fn events_totals(&self, query: &Query) -> Vec<EventTotals> {
        let reader = &self.session.reader;
        let thread_time = self.thread_time.as_ref();
        let sums = thread_time.map(|_| {
            let (first, last) = self.samples.span.unwrap_or_default();
            let sums = ThreadTimeSums::new(last - first, &self.idle, self.samples.threads.values());
            let Some(selected) = &self.states else { return sums };
            // The selected states are only a part of the threads' time.
            let running_ns = sums.running_ns.filter(|_| selected.contains(&ThreadState::Running));
            ThreadTimeSums { coverage: None, running_ns, ..sums }
        });
        let source = |(index, event): (usize, &pmc_perfdata::perfdata::RecordedEvent)| {
            let state = thread_time.and_then(|of| of.state(index));
            EventTotals {
                name: state.map_or_else(|| event.name(), |state| state.event_name().to_owned()),
                leader: state.map_or_else(|| reader.features().group_leader(index), |_| index),
                state,
                is_only_sum: state == Some(ThreadState::Runnable) && self.states.is_none(),
                thread_time: sums.clone().filter(|_| state.is_some()),
                total: self.samples.totals[index].clone(),
                filtered: self.samples.filtered[index].clone(),
            }
        };
        let mut totals: Vec<EventTotals> = reader.events().iter().enumerate().map(source).collect();
        if query.idle {
            EventTotals::add_idle(&mut totals, &self.idle);
        }
        if let Some(thread_time) = thread_time.filter(|_| !query.states_apart) {
            EventTotals::join(&mut totals, thread_time, |index| reader.events()[index].name());
        }
        totals
    }
}

/// Symbolized samples, which answer queries without reading files again.
#[derive(Debug)]
pub struct NamedSamples {
    samples: Arc<AggregatedSamples>,
    /// The function calls at each location.
    code: LocationCalls,
    /// The strings of `code`.
    texts: StringTable,
    /// Quality of the modules; empty until assessed.
    modules: Vec<ModuleQuality>,
    /// Quality of the data; the default value until assessed.
    trust: ProfileQuality,
}

impl NamedSamples {
    /// Returns the resolver that converts numeric ids in rows to names.
    fn words(&self) -> RecordingNames<'_> {
        let AggregatedSamples { session, samples, raw_traces, trace_fields, .. } = &*self.samples;
        RecordingNames::new(session)
            .with_payloads(&samples.payloads, *raw_traces)
            .with_trace_fields(trace_fields)
    }

    /// Answers a query and keeps the names for further queries.
    pub fn answer(&self, query: &Query) -> QueryAnswer {
        let answer = self.answer_with(&self.words(), query, self.texts.clone());
        let profile = Profile {
            modules: self.modules.clone(),
            trust: self.trust.clone(),
            trace_fields: self.samples.trace_field_names(),
            ..answer.profile
        };
        QueryAnswer { profile, ..answer }
    }

    /// Calls `visit` with the samples that pass the query's filter, grouped by stack; used for exports.
    pub fn with_stacks<R>(&self, query: &Query, visit: impl FnOnce(&StackProfile<'_>) -> R) -> R {
        let (words, of) = (self.words(), &*self.samples);
        let modules = of.session.history.modules();
        let (rows, totals) = (of.rows(query), of.events_totals(query));
        visit(&StackProfile::new(&self.input(&rows, &words), modules, &totals, query, &self.texts))
    }

    /// Returns the events that measure one state of threads each, for queries in which states are apart:
    /// index and total time in nanoseconds.
    pub fn state_events(&self) -> Vec<(ThreadState, usize, u64)> {
        let events = self.samples.events_totals(&Query { states_apart: true, ..Query::default() });
        let events = events.iter().enumerate();
        events.filter_map(|(index, event)| Some((event.state?, index, event.total.period))).collect()
    }

    /// Returns a profile that contains only the quality of the data and the modules. Valid after
    /// [`Analysis::assess`].
    pub fn quality(&self) -> Profile {
        Profile { modules: self.modules.clone(), trust: self.trust.clone(), ..Profile::default() }
    }

    /// Returns the sum of a function's periods in each time slice, counting only samples that match the
    /// query.
    pub fn history(&self, query: &Query, (dso, symbol): (&str, &str), times: &TimeSums) -> Vec<u64> {
        let rows = self.samples.rows(query);
        query::history(&self.input(&rows, &self.words()), query, (dso, symbol), times, &self.texts)
    }

    fn answer_with(&self, words: &RecordingNames<'_>, query: &Query, texts: StringTable) -> QueryAnswer {
        let rows = self.samples.rows(query);
        query::answer(&self.input(&rows, words), &self.samples.events_totals(query), query, texts)
    }

    fn input<'a>(
        &'a self,
        rows: &'a [(RowKey, SampleValue)],
        words: &'a RecordingNames<'_>,
    ) -> TableInput<'a> {
        let of = &*self.samples;
        TableInput {
            rows,
            resolved: &of.resolved,
            attributes: &of.samples.attributes,
            attribute_kinds: &of.attributes,
            code: &self.code,
            words,
        }
    }
}
