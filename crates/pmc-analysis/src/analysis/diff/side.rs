//! One recording of a comparison: its events with their rows, and its quality.
//!
//! Reads a recording with a shared string table, and returns a [`DiffSide`]. Time in which threads ran and
//! time in which they waited are different events, because the former is sampled and the latter is measured.
//!
//! ```text
//!   wall-clock ─┬─ running   an event with the name of the clock, such as cpu-clock
//!               ├─ blocked   `waiting`
//!               └─ runnable  a single number, or an event on request (--state)
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::DiffRequest;
use super::measure::RunningMeasure;
use crate::analysis::request::AnalysisRequest;
use crate::analysis::{Analysis, ProgressSink, has_chains, header, recording_quality};
use crate::profile::diff::{self, CostSource, ThreadTimes, streams};
use crate::profile::sampled::trust::{self, TrustDetail};
use crate::profile::sampled::{
    self, Filter, NameStyle, Query, QueryAnswer, SampleValue, SortKey, StackDirection, StringTable,
};
use crate::session::Session;
use crate::session::thread_time::{ThreadState, ThreadTime};
use pmc_perfdata::perfdata::{Features, Reader, RecordedEvent, RecordingNote};
use pmc_symbols::symbol::{Depth, MissingDataReason};
use pmc_sys::abi::sample_type;
use pmc_sys::error::{Error, Result};

/// The recording options that measure waits.
pub(super) const WAITS: &str = "pmc profile, or pmc record --wall";

/// The aggregated events of one recording.
#[derive(Debug)]
pub(super) struct DiffSide {
    pub(super) file: diff::DiffFile,
    /// Notes on the file.
    pub(super) notes: Vec<String>,
    /// Errors from reading files that provide symbol names.
    pub(super) name_failures: Vec<MissingDataReason>,
    /// The notes that report damage.
    pub(super) damage: Vec<String>,
    pub(super) events: Vec<SideEvent>,
    /// The names of all functions, without parameters.
    pub(super) names: FxHashSet<Arc<str>>,
    /// The names of which there are several functions.
    pub(super) overloaded: BTreeSet<Arc<str>>,
    /// Whether another program wrote the profile, in its own format.
    pub(super) is_imported: bool,
}

/// An event of one recording.
#[derive(Debug, Default)]
pub(super) struct SideEvent {
    pub(super) profile: sampled::ProfileEvent,
    /// How the event measures running time; `None` if it does not.
    pub(super) measure: Option<RunningMeasure>,
    /// The states of threads whose time the event covers, for recordings with waits; otherwise empty.
    pub(super) states: &'static [ThreadState],
    /// The threads' time, for recordings with waits.
    pub(super) times: Option<ThreadTimes>,
    /// The sort keys of the rows.
    pub(super) keys: Vec<SortKey>,
}

impl SideEvent {
    pub(super) fn is_census(&self) -> bool {
        diff::source(self.states) == CostSource::Census
    }
}

pub(super) fn read(
    reader: Reader,
    label: String,
    request: &DiffRequest,
    spelled_out: &Arc<BTreeSet<Arc<str>>>,
    texts: &mut StringTable,
    progress: &dyn ProgressSink,
) -> Result<DiffSide> {
    let session = Arc::new(Session::open(reader)?);
    let has_tree = request.tree && has_chains(&session.reader);
    let by_stream = request.streams.is_some();
    if by_stream && !session.reader.layouts().have(sample_type::CALLCHAIN | sample_type::BRANCH_STACK) {
        return Err(Error::new(format!("{label} has no call chains"))
            .why("--stream compares call chains")
            .try_options("record both with -g"));
    }
    let has_waits = ThreadTime::from_events(session.reader.events()).is_some();
    let mut asked = AnalysisRequest {
        waiting_keys: request.wait_keys.clone().filter(|_| has_waits),
        callers: has_tree || by_stream,
        branch_history: by_stream,
        name_style: NameStyle { spelled_out: spelled_out.clone(), ..request.analysis.name_style.clone() },
        ..request.analysis.clone()
    };
    let parts = parts(&session.reader, &label, asked.selection.states.take().as_deref())?;
    let mut analysis = Analysis::load(session.clone(), &asked, progress)?;
    // The function that waits may be inlined.
    let is_deep = has_tree || by_stream || has_waits || asked.needs_deep_names();
    let depth = if is_deep { Depth::Inlines } else { Depth::Names };
    let mut named = analysis.name(depth, std::mem::take(texts), progress);
    analysis.assess(&mut named, false);
    let quality = named.quality();
    let query = |states: &&'static [ThreadState]| Query {
        keys: request.keys_of(states).to_vec(),
        // A branch that is too small to show in one recording may be large in another, so no branch is
        // omitted here.
        tree: has_tree.then_some(StackDirection::Caller),
        idle: asked.idle,
        filter: Filter {
            states: Some(*states).filter(|states| !states.is_empty()),
            ..request.query.filter.clone()
        },
        ..request.query.clone()
    };
    let queries: Vec<Query> = parts.iter().map(query).collect();
    let answers: Vec<Vec<sampled::ProfileEvent>> = if by_stream {
        let of = |query: &Query| {
            let rows = named.with_stacks(query, |stacks| streams::rows(stacks, &query.keys));
            let events = named.answer(query).profile.events.into_iter().zip(rows);
            events.map(|(event, rows)| sampled::ProfileEvent { rows, ..event }).collect()
        };
        let answers = queries.iter().map(of).collect();
        *texts = std::mem::take(&mut named.texts);
        answers
    } else {
        let mut answers = analysis.answer_all(named, &queries);
        *texts = answers.last_mut().map(|last| std::mem::take(&mut last.profile.texts)).unwrap_or_default();
        answers.into_iter().map(|QueryAnswer { profile, .. }| profile.events).collect()
    };
    let recorded = session.reader.events();
    let answered = parts.into_iter().zip(queries).zip(answers);
    let events = answered.flat_map(|((states, query), events)| match states {
        [] => whole(recorded, events, &query),
        states => in_states(recorded, events, states, &query),
    });
    let events = events.collect();
    let named = |note: &RecordingNote| format!("{label}: {note}");
    let notes = session.notes();
    Ok(DiffSide {
        name_failures: analysis.name_failures(),
        notes: recording_quality::notes(&session).iter().map(|note| format!("{label}: {note}")).collect(),
        damage: notes.iter().filter(|note| note.is_damage()).map(named).collect(),
        file: diff::DiffFile {
            path: label,
            samples: analysis.sample_count(),
            lost: recording_quality::lost(&session),
            trust: trust::statement(&quality.trust, &quality.modules, TrustDetail::Brief).summary,
            machine: machine(session.reader.features()),
            loses_samples: notes.iter().any(RecordingNote::loses_samples),
            sampled_ns: sampled_ns(&session.reader),
        },
        events,
        names: analysis.symbol_names().short_names().cloned().collect(),
        overloaded: analysis.symbol_names().overloaded().cloned().collect(),
        is_imported: session.reader.is_converted(),
    })
}

/// Returns the states whose time each event covers. `[&[]]` for a recording without waits: its events are not
/// split. `states` are the states to compare: by default, running and blocked.
fn parts(
    reader: &Reader,
    label: &str,
    states: Option<&[ThreadState]>,
) -> Result<Vec<&'static [ThreadState]>> {
    use ThreadState::{Blocked, Runnable, Running};
    let has = |state| states.is_none_or(|states| states.contains(&state));
    if ThreadTime::from_events(reader.events()).is_none() {
        if has(Running) {
            return Ok(vec![&[]]);
        }
        let error = Error::new(format!("cannot compare waits: {label} has no waits"))
            .why("its samples show only running threads");
        return Err(header::advise(error, reader, format!("record both with {WAITS}"), ""));
    }
    let off_cpu: &[ThreadState] = match (states.is_some() && has(Runnable), has(Blocked)) {
        (true, true) => &[Runnable, Blocked],
        (true, false) => &[Runnable],
        (false, true) => &[Blocked],
        (false, false) => &[],
    };
    let running: &[ThreadState] = if has(Running) { &[Running] } else { &[] };
    Ok([running, off_cpu].into_iter().filter(|states| !states.is_empty()).collect())
}

/// Returns the events of a recording without waits.
fn whole(recorded: &[RecordedEvent], events: Vec<sampled::ProfileEvent>, query: &Query) -> Vec<SideEvent> {
    let event = |(profile, recorded): (sampled::ProfileEvent, &RecordedEvent)| SideEvent {
        profile,
        measure: RunningMeasure::from_attr(&recorded.attr),
        keys: query.keys.clone(),
        ..SideEvent::default()
    };
    events.into_iter().zip(recorded).map(event).collect()
}

/// Returns the time that threads spent in these states, as one event, and with the running time also the
/// events that do not measure the threads' time.
fn in_states(
    recorded: &[RecordedEvent],
    events: Vec<sampled::ProfileEvent>,
    states: &'static [ThreadState],
    query: &Query,
) -> Vec<SideEvent> {
    let kept = |event: &sampled::ProfileEvent| event.total.period.saturating_sub(event.filtered.period);
    let times = events.iter().enumerate().filter(|(_, event)| event.thread_time.is_some());
    let time = times.rev().max_by_key(|(_, event)| kept(event)).map(|(index, _)| index);
    let is_running = states.contains(&ThreadState::Running);
    let clock = recorded.iter().find(|event| ThreadState::from_event(event) == Some(ThreadState::Running));
    let mut found = Vec::new();
    for (index, (profile, recorded)) in events.into_iter().zip(recorded).enumerate() {
        if Some(index) == time {
            let clock = clock.filter(|_| is_running);
            let name = match (clock, is_running) {
                (Some(clock), _) => clock.name(),
                // Without a clock event, nothing measured how long threads ran.
                (None, true) => continue,
                (None, false) => name(states).to_owned(),
            };
            found.push(SideEvent {
                measure: clock.and_then(|clock| RunningMeasure::from_attr(&clock.attr)),
                times: Some(thread_times(&profile)),
                profile: sampled::ProfileEvent { name, ..of_states(profile, states, query.relative) },
                states,
                keys: query.keys.clone(),
            });
        } else if is_running && profile.thread_time.is_none() && ThreadState::from_event(recorded).is_none() {
            found.extend(whole(std::slice::from_ref(recorded), vec![profile], query));
        }
    }
    found
}

/// Returns the name of an event that measures how long threads were in these states.
fn name(states: &[ThreadState]) -> &'static str {
    match states {
        [ThreadState::Runnable] => "waiting for a CPU",
        [ThreadState::Runnable, ..] => "waiting, also for a CPU",
        _ => "waiting",
    }
}

fn thread_times(event: &sampled::ProfileEvent) -> ThreadTimes {
    let sums = event.thread_time.as_ref();
    ThreadTimes {
        running: sums.and_then(|sums| sums.running_ns),
        runnable: event.total.off_cpu()[0],
        idle: sums.map_or(0, |sums| sums.idle.0),
    }
}

/// Reduces an event of the threads' whole time to some states. The rows already are.
fn of_states(event: sampled::ProfileEvent, states: &[ThreadState], relative: bool) -> sampled::ProfileEvent {
    let (all, kept) = (&event.total, event.total.without(&event.filtered));
    let [runnable, blocked] = all.off_cpu();
    let period = states.iter().map(|state| match state {
        ThreadState::Running => all.ran(),
        ThreadState::Runnable => runnable,
        ThreadState::Blocked => blocked,
    });
    let period: u64 = period.sum();
    let total = match relative || period == kept.period {
        true => kept,
        // Other filters excluded some threads or functions. Waits have no squared periods.
        false if states.contains(&ThreadState::Running) => {
            SampleValue { period, squares: all.squares, ..kept }
        }
        false => SampleValue { period, ..kept },
    };
    sampled::ProfileEvent { total, ..event }
}

/// Returns the times of the first and last sample. `None` for an imported profile, whose clock may have
/// started with the program.
fn sampled_ns(reader: &Reader) -> Option<(u64, u64)> {
    let time = reader.features().sample_time.as_ref().filter(|_| !header::is_imported(reader))?;
    Some((time.first, time.last))
}

/// Returns the properties of the recorded machine on which its speed depends.
fn machine(features: &Features) -> Vec<(&'static str, String)> {
    let properties = [
        ("CPU", features.cpu_desc.clone()),
        ("number of CPUs", features.nr_cpus.as_ref().map(|cpus| cpus.online.to_string())),
        ("host name", features.hostname.clone()),
        ("kernel", features.os_release.clone()),
    ];
    properties.into_iter().filter_map(|(property, value)| Some((property, value?))).collect()
}
