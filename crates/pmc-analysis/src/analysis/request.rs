//! Requests for the analysis of a recording, made before its samples are read.
//!
//! Converts plain values from a command line, the full-screen view or an export to a query for pass 2 of the
//! session. Looks up time spans, sockets and thread names in the recording. A [`Query`] then selects from the
//! aggregated and symbolized samples.

use std::str::FromStr;

use rustc_hash::FxHashSet;

use super::header::{FORMATS_WITH_TIMES, advise};
use crate::profile::sampled::{NameStyle, Query, SortKey, sort, waits};
use crate::session::parallelism::Parallelism;
use crate::session::samples::SampleAttribute;
use crate::session::thread_time::{ThreadState, ThreadTime};
use crate::session::{CommId, SampleQuery, Session};
use pmc_perfdata::perfdata::{Reader, RecordedEvent};
use pmc_perfdata::record::kind;
use pmc_perfdata::record::tracepoint::{TracepointFormat, TracingData};
use pmc_symbols::symbol::{Depth, SymbolOptions};
use pmc_sys::abi::attr::{Flag, kind as attr_kind};
use pmc_sys::abi::{branch_sample_type, sample_type};
use pmc_sys::error::{Advice, Error, Result};
use pmc_text::text;
use pmc_text::units::parse_duration;

/// Default length of a time slice for the sort key `time`, in nanoseconds.
pub(crate) const SLICE: u64 = 100_000_000;
/// Default maximum length of a call chain, in frames.
pub const MAX_STACK: usize = 127;
/// Maximum number of time slices into which [`AnalysisRequest::facets`] divides a recording.
const SLICES: u64 = 240;
/// Minimum number of samples per slice, on average.
const IN_SLICE: u64 = 5;

/// How to analyse a recording's samples.
#[derive(Debug, Clone)]
pub struct AnalysisRequest {
    /// Which samples to include.
    pub selection: SampleSelection,
    /// The sort keys, which distinguish rows.
    pub keys: Vec<SortKey>,
    /// The tracepoint fields among the keys, indexed by [`SortKey::TraceField`].
    pub trace_fields: Vec<TraceField>,
    /// Whether [`AnalysisRequest::resolve`] inserts the measure's default sort keys before `keys`.
    pub usual_keys: bool,
    /// The sort keys for waits, if they differ from `keys`; set by [`AnalysisRequest::resolve`].
    pub waiting_keys: Option<Vec<SortKey>>,
    /// Length of a time slice for the sort key `time`, in nanoseconds.
    pub slice: u64,
    /// The quantity to sum up.
    pub measure: CostMeasure,
    /// Whether to compute each sample's share of wall-clock time.
    pub latency: LatencyMode,
    /// Whether to add branches other than calls to the stacks, weighted by their cycles.
    pub branch_history: bool,
    /// Whether to keep callers. Without them, rows contain only the sampled function.
    pub callers: bool,
    /// Maximum length of a call chain, in frames.
    pub max_stack: usize,
    /// Whether to complete truncated stack copies from earlier samples of the same thread.
    pub joins: bool,
    /// Whether to complete hardware-recorded call stacks (LBR) from earlier samples of the same thread.
    pub stitches: bool,
    /// Whether rows are also distinguished by thread name, process, thread, CPU and time slice, so that the
    /// full-screen view can filter by them.
    pub facets: bool,
    /// Attributes that distinguish rows in addition to `keys`, such as thread and time; used for exports.
    pub apart: Vec<SampleAttribute>,
    /// Whether to include the waits of idle threads.
    pub idle: bool,
    /// Whether the default sort keys have the name of the process instead of the name of the thread, so that
    /// the threads of a program share a row for each function.
    pub by_process: bool,
    /// The rows of a table of waits, if no sort keys were requested.
    pub wait_rows: WaitRows,
    /// Changes to stacks that depend on names.
    pub stack_changes: StackChanges,
    /// How functions and modules are named.
    pub name_style: NameStyle,
    /// Whether to print tracepoint payloads field by field instead of with their format string.
    pub raw_traces: bool,
    /// Where to look for symbols. [`SymbolOptions::live`] is set if the recording is from this machine.
    pub symbols: SymbolOptions,
}

/// All samples, with the symbols that the environment provides.
impl Default for AnalysisRequest {
    fn default() -> Self {
        Self::new(SymbolOptions::from_environment())
    }
}

impl AnalysisRequest {
    /// Creates a request for all samples, measured by period, with callers and without sort keys.
    pub fn new(symbols: SymbolOptions) -> Self {
        Self {
            selection: SampleSelection::default(),
            keys: Vec::new(),
            trace_fields: Vec::new(),
            usual_keys: false,
            waiting_keys: None,
            slice: SLICE,
            measure: CostMeasure::Period,
            latency: LatencyMode::No,
            branch_history: false,
            callers: true,
            max_stack: MAX_STACK,
            joins: true,
            stitches: false,
            facets: false,
            apart: Vec::new(),
            idle: false,
            by_process: false,
            wait_rows: WaitRows::Functions,
            stack_changes: StackChanges::default(),
            name_style: NameStyle::default(),
            raw_traces: false,
            symbols,
        }
    }

    /// Resolves the options that depend on the recording: whether to count branches, and the default sort
    /// keys.
    ///
    /// # Errors
    /// Fails if branches or latencies were requested but not recorded.
    pub fn resolve(&mut self, reader: &Reader) -> Result<()> {
        let events = reader.events();
        let has_branches = reader.layouts().have(sample_type::BRANCH_STACK);
        // Whether the recorded branches are call chains.
        let are_chains =
            |event: &RecordedEvent| event.attr.branch_sample_type() & branch_sample_type::CALL_STACK != 0;
        match self.measure {
            CostMeasure::Branches if !has_branches => {
                let error = Error::new("the recording has no branches");
                let record = "pmc record -b, which requires a CPU with branch records";
                return Err(advise(error, reader, record, ""));
            }
            CostMeasure::BranchesIfRecorded if has_branches && !events.iter().any(are_chains) => {
                self.measure = CostMeasure::Branches;
            }
            CostMeasure::BranchesIfRecorded => self.measure = CostMeasure::Period,
            _ => {}
        }
        self.find_trace_fields(reader)?;
        let events = reader.events();
        let has_switches = events.iter().any(|event| {
            event.attr.get(Flag::ContextSwitch) && event.attr.sample_type() & sample_type::TIME != 0
        });
        self.latency = match self.latency {
            LatencyMode::Wanted if !has_switches => {
                let error = Error::new("the recording has no context switches")
                    .why("latency and parallelism are computed from context switches");
                return Err(advise(error, reader, "pmc record --latency", ""));
            }
            // With off-CPU time, the profile already shows all elapsed time.
            LatencyMode::IfRecorded
                if has_switches
                    && self.measure == CostMeasure::Period
                    && ThreadTime::from_events(events).is_none() =>
            {
                LatencyMode::Wanted
            }
            LatencyMode::IfRecorded => LatencyMode::No,
            resolved => resolved,
        };
        if std::mem::take(&mut self.usual_keys) {
            if self.measure == CostMeasure::Period && ThreadTime::from_events(reader.events()).is_some() {
                let mut waiting = self.keys.clone();
                insert_keys(&mut waiting, self.wait_rows.keys(ThreadTime::has_partners(reader.events())));
                self.waiting_keys = Some(waiting);
            }
            let usual = self.measure.usual_keys().iter().map(|key| match key {
                SortKey::Comm if self.by_process => SortKey::ProcessName,
                key => *key,
            });
            insert_keys(&mut self.keys, &usual.collect::<Vec<_>>());
        }
        Ok(())
    }

    /// Returns all sort keys.
    fn all_keys(&self) -> impl Iterator<Item = &SortKey> {
        self.keys.iter().chain(self.waiting_keys.iter().flatten())
    }

    /// Looks up the tracepoint fields used as sort keys.
    fn find_trace_fields(&mut self, reader: &Reader) -> Result<()> {
        if self.trace_fields.is_empty() {
            return Ok(());
        }
        let tracing = reader.features().tracing_data.as_ref().and_then(|raw| TracingData::parse(&raw.0));
        let tracing = tracing.as_ref();
        let traced = reader.events().iter().filter(|event| event.attr.kind() == attr_kind::TRACEPOINT);
        let formats: Vec<&TracepointFormat> =
            traced.filter_map(|event| tracing?.format(event.attr.config())).collect();
        let (mut keys, mut fields) = (Vec::new(), Vec::new());
        for key in std::mem::take(&mut self.keys) {
            let SortKey::TraceField(number) = key else {
                keys.push(key);
                continue;
            };
            let typed = &self.trace_fields[usize::from(number)];
            let found = typed.found(&formats);
            if found.is_empty() {
                let mut names: Vec<&str> = SortKey::names().collect();
                let of_formats = formats.iter().flat_map(|format| &format.fields);
                names.extend(of_formats.map(|field| field.name.as_str()));
                let near = text::nearest(&typed.field, names.iter().copied(), 3).join(" or ");
                let error = Error::usage(format!(
                    "{:?} is neither a sort key nor a tracepoint field in the recording",
                    typed.field
                ));
                if !near.is_empty() {
                    return Err(error.try_this(format!("did you mean {near}?")));
                }
                let keys: Vec<&str> = SortKey::names().collect();
                let error = error.try_this(format!("a sort key: {}", keys.join(", ")));
                let mut fields: Vec<&str> = names.split_off(keys.len());
                fields.sort_unstable();
                fields.dedup();
                return Err(match fields.is_empty() {
                    true => error,
                    false => error.try_this(format!("a field: {}", fields.join(", "))),
                });
            }
            for field in found {
                keys.extend(u8::try_from(fields.len()).map(SortKey::TraceField));
                fields.push(field);
            }
        }
        (self.keys, self.trace_fields) = (keys, fields);
        Ok(())
    }

    /// Whether the first symbolization pass must already include inlined functions, because rows show lines
    /// or stacks are changed.
    pub fn needs_deep_names(&self) -> bool {
        self.stack_changes.changes_any() || self.all_keys().any(|key| key.needs_lines())
    }

    /// Whether rows count branches instead of samples. Valid after [`Self::resolve`].
    pub fn counts_branches(&self) -> bool {
        self.measure == CostMeasure::Branches
    }

    /// Whether call chains are used. They are not used if branches are counted.
    pub(crate) fn has_chains(&self, reader: &Reader) -> bool {
        !self.counts_branches() && super::has_chains(reader)
    }

    /// Returns the default level of detail for names, which includes inlined functions if callers or lines
    /// are shown.
    pub fn depth(&self, reader: &Reader) -> Depth {
        let lines = self.all_keys().any(|key| key.needs_lines());
        if lines || self.has_chains(reader) { Depth::Inlines } else { Depth::Names }
    }

    /// Returns the query with this request's sort keys. Without call chains, the query has no inclusive
    /// costs, tree or call chains under rows.
    pub fn full_query(&self, query: &Query, reader: &Reader) -> Query {
        let has_chains = self.has_chains(reader);
        let mut keys = self.keys.clone();
        if self.waiting_keys.is_some() && !query.states_apart {
            insert_keys(&mut keys, &[SortKey::WaitSite]);
        }
        Query {
            keys,
            waiting_keys: self.waiting_keys.clone().filter(|_| query.states_apart),
            totals: query.totals && has_chains,
            tree: query.tree.filter(|_| has_chains),
            chains: query.chains.filter(|_| has_chains),
            ..query.clone()
        }
    }

    /// Returns the query for pass 2.
    ///
    /// # Errors
    /// Fails if the recording lacks data that the selection needs.
    pub(super) fn sample_query(&self, session: &Session) -> Result<SampleQuery> {
        let mut attributes = sort::attributes(self.all_keys(), self.slice);
        let parent = self.stack_changes.parent.as_ref().map(|_| SampleAttribute::Parent);
        sort::add_attributes(&mut attributes, parent.into_iter().chain(self.apart.iter().copied()));
        if let Some(key) = self.keys.iter().find(|key| matches!(key, SortKey::Waker | SortKey::RanInstead))
            && !ThreadTime::has_partners(session.reader.events())
        {
            let error = Error::new(format!("-s {}: the recording has no wakers", key.name()));
            return Err(advise(error, &session.reader, "pmc record --wall --wakers", ""));
        }
        let thread_time = ThreadTime::from_events(session.reader.events());
        if self.facets {
            let has_latency = self.latency == LatencyMode::Wanted;
            add_facets(&mut attributes, session, has_latency, thread_time.is_some());
        }
        if thread_time.is_some() {
            sort::add_attributes(&mut attributes, waits::ATTRIBUTES);
            // Wakers show whether a wait is for a lock or for work.
            let partner = ThreadTime::has_partners(session.reader.events());
            sort::add_attributes(&mut attributes, partner.then_some(SampleAttribute::WaitPartner));
        }
        let parallelism = (self.latency == LatencyMode::Wanted).then(|| {
            let cpus = session.reader.features().nr_cpus.as_ref().map(|cpus| cpus.available);
            Parallelism::new(&session.switches, cpus).into()
        });
        Ok(SampleQuery {
            attributes,
            branches: self.counts_branches(),
            branch_history: self.branch_history,
            by_weight: self.measure == CostMeasure::Weight,
            ignore_comms: !self.facets && !self.all_keys().any(|key| key.is_of_name()),
            // The stack shows what a thread waits for.
            ignore_stacks: !self.callers && thread_time.is_none(),
            thread_time,
            parallelism,
            ..self.selection.sample_query(session)?
        })
    }
}

/// Inserts keys at the front, and removes them elsewhere.
fn insert_keys(keys: &mut Vec<SortKey>, first: &[SortKey]) {
    keys.retain(|key| !first.contains(key));
    keys.splice(0..0, first.iter().copied());
}

/// The rows of a table of waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitRows {
    /// A row for each wait site and function of the program that waits there, with the wakers if they were
    /// recorded.
    Functions,
    /// perf's rows: thread name, module, and the kernel function that waits; also the wait site.
    KernelFunctions,
}

impl WaitRows {
    fn keys(self, has_wakers: bool) -> &'static [SortKey] {
        match self {
            Self::Functions if has_wakers => {
                &[SortKey::WaitSite, SortKey::WaitFunction, SortKey::WaitLine, SortKey::Waker]
            }
            Self::Functions => &[SortKey::WaitSite, SortKey::WaitFunction, SortKey::WaitLine],
            Self::KernelFunctions => &[SortKey::WaitSite, SortKey::Comm, SortKey::Dso, SortKey::Symbol],
        }
    }
}

/// A tracepoint field used as a sort key: `next_pid`, `sched:sched_switch.next_pid`,
/// `sched_switch.prev_state/raw`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceField {
    /// The tracepoint to which the key is restricted, with or without its subsystem.
    event: Option<String>,
    /// Name of the field; `*` for all fields.
    pub field: String,
    /// Whether to use the raw value instead of the formatted value.
    pub(crate) is_raw: bool,
}

impl TraceField {
    /// Returns the field with this name; `None` if the name is more likely a misspelt sort key.
    pub fn named(name: &str) -> Option<Self> {
        SortKey::may_be_trace_field(name).then(|| Self::new(name))
    }

    fn new(typed: &str) -> Self {
        let (text, is_raw) = typed.strip_suffix("/raw").map_or((typed, false), |text| (text, true));
        let (event, field) = match text.rsplit_once('.') {
            Some((event, field)) => (Some(event.to_owned()), field),
            None if text == "trace_fields" => (None, "*"),
            None => (None, text),
        };
        Self { event, field: field.to_owned(), is_raw }
    }

    /// Whether the key applies to the tracepoint with this format.
    pub(crate) fn is_of(&self, format: &TracepointFormat) -> bool {
        let full = || format!("{}:{}", format.system, format.name);
        self.event.as_ref().is_none_or(|event| *event == format.name || *event == full())
    }

    /// Returns the matching fields in the given formats; for `*`, all fields.
    fn found(&self, formats: &[&TracepointFormat]) -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        let fields = formats.iter().filter(|format| self.is_of(format)).flat_map(|format| &format.fields);
        for field in fields.filter(|field| !field.is_common()) {
            let known = found.iter().any(|other| other.field == field.name);
            if (self.field == "*" || self.field == field.name) && !known {
                found.push(Self { field: field.name.clone(), ..self.clone() });
            }
        }
        found
    }
}

/// The quantity to sum up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CostMeasure {
    /// The sample's period: the number of events that it represents.
    Period,
    /// The sample's weight, at least 1.
    Weight,
    /// The number of branches. Each branch in a sample counts once, at its target.
    Branches,
    /// `Branches` if the recording has branches that are not call chains; otherwise `Period`.
    BranchesIfRecorded,
}

/// Whether to compute latencies. A sample's latency is the wall-clock time that it represents: its period
/// divided by the number of running threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LatencyMode {
    /// Does not compute latencies.
    No,
    /// Computes latencies if the measure is the period and context switches were recorded.
    IfRecorded,
    /// Requires latencies.
    Wanted,
}

/// Default sort keys.
pub const USUAL_KEYS: [SortKey; 3] = [SortKey::Comm, SortKey::Dso, SortKey::Symbol];

impl CostMeasure {
    /// Returns the default sort keys for the measure.
    fn usual_keys(self) -> &'static [SortKey] {
        match self {
            Self::Period | Self::BranchesIfRecorded => &USUAL_KEYS,
            Self::Branches => {
                &[SortKey::Comm, SortKey::DsoFrom, SortKey::SymbolFrom, SortKey::SymbolTo, SortKey::Cycles]
            }
            Self::Weight => &[
                SortKey::LocalWeight,
                SortKey::Mem,
                SortKey::Symbol,
                SortKey::Dso,
                SortKey::SymbolDaddr,
                SortKey::DsoDaddr,
                SortKey::Snoop,
                SortKey::Tlb,
                SortKey::Locked,
                SortKey::Blocked,
            ],
        }
    }
}

/// Changes to stacks that depend on names. With these, names are required before rows are built.
#[derive(Debug, Clone, Default)]
pub struct StackChanges {
    /// Functions whose callees count as part of the function itself.
    pub ignore_callees: Option<NamePattern>,
    /// Pattern for the sort key `parent`, which is the innermost matching function.
    pub parent: Option<NamePattern>,
    /// Whether to exclude samples without a parent.
    pub parents_only: bool,
}

impl StackChanges {
    /// Whether any option changes stacks.
    pub fn changes_any(&self) -> bool {
        self.ignore_callees.is_some() || self.parent.is_some()
    }
}

/// A regular expression that matches names.
#[derive(Debug, Clone)]
pub struct NamePattern(regex_lite::Regex);

impl FromStr for NamePattern {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let bad = |error: regex_lite::Error| {
            Error::usage(format!("invalid regular expression {text:?}")).why(error.to_string())
        };
        regex_lite::Regex::new(text).map(Self).map_err(bad)
    }
}

impl NamePattern {
    /// Returns perf's default pattern for parent functions, which matches kernel entry points.
    pub fn kernel_entries() -> Self {
        Self(regex_lite::Regex::new("^sys_|^do_page_fault").expect("a valid expression"))
    }

    /// Whether the expression matches a part of the name.
    pub fn finds(&self, name: &str) -> bool {
        self.0.is_match(name)
    }
}

/// Which samples to include. The default includes all.
#[derive(Debug, Clone, Default)]
pub struct SampleSelection {
    /// Thread names to include; empty for all.
    pub comms: Vec<String>,
    /// Process ids to include; empty for all.
    pub pids: Vec<i32>,
    /// Thread ids to include; empty for all.
    pub tids: Vec<i32>,
    /// CPUs to include; `None` for all.
    pub cpus: Option<FxHashSet<u32>>,
    /// Socket to include; `None` for all.
    pub socket: Option<u32>,
    /// Time span to include; `None` for the whole recording.
    pub time: Option<TimeSpan>,
    /// Degrees of parallelism (numbers of running threads) to include; `None` for all.
    pub parallelism: Option<FxHashSet<u32>>,
    /// States of threads to include; `None` for all.
    pub states: Option<Vec<ThreadState>>,
}

impl SampleSelection {
    /// Returns the selection as a query for pass 2, with defaults for everything else. The states are
    /// selected after pass 2, because which threads are idle depends on all of their time.
    ///
    /// # Errors
    /// Fails if the recording lacks data that a filter needs: a field, the sockets, or the first and last
    /// times.
    pub fn sample_query(&self, session: &Session) -> Result<SampleQuery> {
        self.check(&session.reader)?;
        let set = |list: &[i32]| (!list.is_empty()).then(|| list.iter().copied().collect());
        let times = self.time.map(|span| span.in_recording(&session.reader)).transpose()?;
        let cpus = match self.socket {
            Some(socket) => Some(of_socket(socket, self.cpus.as_ref(), &session.reader)?),
            None => self.cpus.clone(),
        };
        Ok(SampleQuery {
            times: times.into_iter().collect(),
            cpus,
            pids: set(&self.pids),
            tids: set(&self.tids),
            comms: comms(&self.comms, session),
            levels: self.parallelism.clone(),
            ..SampleQuery::default()
        })
    }
}

/// A filter: its option, whether it is set, and the sample field that it needs (`PERF_SAMPLE_*`).
type FilterNeed = (&'static str, bool, u64);

impl SampleSelection {
    /// Rejects filters on fields that were not recorded, because no sample would match.
    fn check(&self, reader: &Reader) -> Result<()> {
        if self.states.is_some() && ThreadTime::from_events(reader.events()).is_none() {
            let error = Error::new("--state selects nothing: the recording has no waiting time")
                .try_options("omit --state");
            return Err(advise(error, reader, "pmc record --wall, or pmc profile", ""));
        }
        let needs: [FilterNeed; 6] = [
            ("-C", self.cpus.is_some(), sample_type::CPU),
            ("--socket-filter", self.socket.is_some(), sample_type::CPU),
            ("--time", self.time.is_some(), sample_type::TIME),
            ("--pid", !self.pids.is_empty(), sample_type::TID),
            ("--tid", !self.tids.is_empty(), sample_type::TID),
            ("--comms", !self.comms.is_empty(), sample_type::TID),
        ];
        let missing = |need: &&FilterNeed| need.1 && !reader.layouts().have(need.2);
        let Some((option, _, field)) = needs.iter().find(missing) else { return Ok(()) };
        let (what, remedy, formats) = match *field {
            sample_type::TIME => ("timestamps", "pmc record --timestamp".into(), FORMATS_WITH_TIMES),
            sample_type::CPU => {
                let remedy = Advice::options("pmc record --sample-cpu, or record whole CPUs (-a, -C)");
                ("CPU numbers", remedy, "perf script text")
            }
            _ => ("process and thread ids", "record again: pmc record always includes them".into(), ""),
        };
        let error = Error::new(format!("{option} matches no sample: the recording has no {what}"))
            .try_options(format!("omit {option}"));
        Err(advise(error, reader, remedy, formats))
    }
}

/// Returns the ids of thread names.
fn comms(names: &[String], session: &Session) -> Option<FxHashSet<CommId>> {
    if names.is_empty() {
        return None;
    }
    let all = session.history.comms().enumerate();
    let named = all.filter(|(_, comm)| names.iter().any(|name| name.as_bytes() == *comm));
    Some(named.map(|(number, _)| CommId(number as u32)).collect())
}

/// Returns the CPUs of a socket, restricted to `cpus`.
fn of_socket(socket: u32, cpus: Option<&FxHashSet<u32>>, reader: &Reader) -> Result<FxHashSet<u32>> {
    let Some(topology) = &reader.features().cpu_topology else {
        return Err(Error::new("the recording has no CPU topology").try_options("use -C with a list of CPUs"));
    };
    let all = topology.cpus.iter().enumerate().filter(|(_, (_, of))| *of == socket);
    let numbers = all.map(|(cpu, _)| cpu as u32);
    Ok(numbers.filter(|cpu| cpus.is_none_or(|list| list.contains(cpu))).collect())
}

/// A time span in a recording.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TimeSpan {
    /// Start and end, both inclusive, in nanoseconds of the recording's clock.
    Clock(u64, u64),
    /// Start and end, in percent of the time between the first and the last sample.
    Percent(f64, f64),
}

impl FromStr for TimeSpan {
    type Err = Error;

    /// Parses two times in seconds or with a unit, either of which may be omitted (`1.5,`, `5s,`), or two
    /// percentages (`10%-20%`).
    fn from_str(text: &str) -> Result<Self> {
        let bad = || {
            Error::usage(format!("invalid time range {text:?}"))
                .try_this("use FROM,TO in seconds (either may be omitted), or 10%-20%")
        };
        if let Some((from, to)) = text.split_once('-').filter(|_| text.contains('%')) {
            let part = |word: &str| word.trim().trim_end_matches('%').parse::<f64>().map_err(|_| bad());
            return Ok(Self::Percent(part(from)?, part(to)?));
        }
        let (from, to) = text.split_once(',').ok_or_else(bad)?;
        let time = |word: &str, missing: u64| match word.trim() {
            "" => Ok(missing),
            word => exact_seconds(word).or_else(|| parse_duration(word, None)).ok_or_else(bad),
        };
        Ok(Self::Clock(time(from, 0)?, time(to, u64::MAX)?))
    }
}

/// Parses seconds with a fraction, and returns nanoseconds. Unlike a float, the result is exact.
fn exact_seconds(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    if part.len() > 9 || !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let part: u64 = format!("{part:0<9}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(part)
}

impl TimeSpan {
    /// Returns the first and last time of the span in a recording, in nanoseconds.
    ///
    /// # Errors
    /// Fails if the span is in percent, and the recording lacks the times of its first and last sample.
    pub fn in_recording(self, reader: &Reader) -> Result<(u64, u64)> {
        let (from, to) = match self {
            Self::Clock(from, to) => return Ok((from, to)),
            Self::Percent(from, to) => (from, to),
        };
        let Some(span) = &reader.features().sample_time else {
            return Err(Error::new("the times of the first and last sample were not recorded")
                .try_this("use times in seconds"));
        };
        let length = span.last.saturating_sub(span.first) as f64;
        let at = |percent: f64| span.first.saturating_add((length * percent / 100.0) as u64);
        Ok((at(from), at(to)))
    }
}

/// Adds the attributes by which the full-screen view filters, unless they are already present.
fn add_facets(attributes: &mut Vec<SampleAttribute>, session: &Session, has_latency: bool, has_waits: bool) {
    let level = has_latency.then_some(SampleAttribute::Parallelism);
    sort::add_attributes(attributes, [SampleAttribute::Pid, SampleAttribute::Tid, SampleAttribute::Cpu]);
    sort::add_attributes(attributes, level);
    if !attributes.iter().any(|extra| matches!(extra, SampleAttribute::Time(_)))
        && let Some((first, last)) = session.sample_span()
    {
        // Even a few samples fill all slices if they represent long waits.
        let samples = if has_waits { u64::MAX } else { session.index.count(kind::SAMPLE) };
        let slices = (samples / IN_SLICE).clamp(1, SLICES);
        attributes.push(SampleAttribute::Time((last.saturating_sub(first) / slices).max(1)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_parse_exactly() {
        assert_eq!(exact_seconds("4547.409503001"), Some(4_547_409_503_001));
        assert_eq!(exact_seconds("7"), Some(7_000_000_000));
        assert_eq!(exact_seconds("7.x"), None);
    }

    #[test]
    fn time_spans_parse() {
        let parsed = |text: &str| text.parse::<TimeSpan>();
        assert_eq!(parsed("1.5,").unwrap(), TimeSpan::Clock(1_500_000_000, u64::MAX));
        assert_eq!(parsed("10%-20%").unwrap(), TimeSpan::Percent(10.0, 20.0));
        for bad in ["", "1", "1-2", "a,b", "x%-y%"] {
            assert!(parsed(bad).is_err(), "{bad}");
        }
    }
}
