//! `pmc lock`: records waits for locks, and shows which threads wait, where, and which threads hold the lock.
//!
//! ```text
//!   options ─► LockRequest ─┬─ recording: made first, while owner_reader reads the lock words
//!                           └─ view ─┬─ contention: kernel locks, as in perf lock contention
//!                                    └─ user:       user-space locks, with their holders
//! ```
//! Both views pair the events of a recording in time order: an engine, its result, and its text and JSON.

mod contention;
mod options;
mod recording;
mod target_options;
mod tracepoints;
mod user;

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use pmc_analysis::analysis::script::ScriptRequest;
use pmc_analysis::interval::PairingCounts;
use pmc_analysis::session::Session;
use pmc_command::record::{self, RecordDisplay};
use pmc_formats::import;
use pmc_perfdata::record::kind;
use pmc_recording::recording::plan::RecordRequest;
use pmc_symbols::symbol::SymbolOptions;
use pmc_sys::error::{Error, Exit, Result};
use pmc_sys::sys::signal;
use serde_json::{Value as Json, json};

pub use options::LockOptions;
pub use recording::futex_events;
use user::owner_reader::{LockOwnerReader, WatchedProcesses};
pub use user::{AgentLocks, agent_locks};

/// What to record, and what to show then.
#[derive(Debug)]
pub struct LockRequest {
    /// The recording to make first; `None` to show an existing one.
    recording: Option<RecordRequest>,
    /// The processes whose lock words to read while recording.
    watched: Option<WatchedProcesses>,
    /// Whether to print only errors and losses while recording.
    quiet: bool,
    /// What to show; `None` to only record.
    view: Option<LockView>,
}

/// Runs the command. Returns the recorded command's exit status if it failed, otherwise the view's.
///
/// # Errors
/// Fails if recording fails, if the recording cannot be read or has no lock events, or if the output cannot
/// be written.
pub fn run(LockRequest { recording, watched, quiet, view }: LockRequest) -> Result<Exit> {
    let (mut recorded, mut readings) = (Exit::Done, Vec::new());
    if let Some(recording) = recording {
        let reader = watched.and_then(LockOwnerReader::start);
        let display = RecordDisplay { quiet, perf_summary: view.is_none() && !quiet, json: false };
        let ran = record::run(recording, display, None);
        readings = reader.map(LockOwnerReader::finish).unwrap_or_default();
        recorded = ran?;
    }
    let Some(view) = view else { return Ok(recorded) };
    signal::release();
    let shown = match view {
        LockView::Contention(request) => contention::show(&request)?,
        LockView::User(request) => user::show(&request, &readings)?,
    };
    Ok(if recorded == Exit::Done { shown } else { recorded })
}

/// The waits to show.
#[derive(Debug)]
enum LockView {
    /// Waits for kernel locks.
    Contention(Box<contention::ContentionRequest>),
    /// Waits for user-space locks.
    User(Box<user::UserLockRequest>),
}

fn open(path: &Path) -> Result<Arc<Session>> {
    Ok(Arc::new(Session::open(import::open_recording(path, "waits for locks")?)?))
}

/// Returns the request for the records that the engines need. `fields` has the syntax of perf's `-F`.
fn records(symbols: &SymbolOptions, fields: &str, max_stack: usize) -> ScriptRequest {
    ScriptRequest {
        fields: vec![fields.parse().expect("these fields exist")],
        records: vec![kind::LOST, kind::LOST_SAMPLES],
        ..ScriptRequest::with_callers(max_stack, symbols.clone())
    }
}

/// Returns the error for a recording that lacks the events a command needs.
fn lacks(session: &Session, what: &str, remedy: &str) -> Error {
    let path = session.reader.path().display();
    let events = session.reader.events();
    let names: Vec<String> = events.iter().take(4).map(|event| event.name()).collect();
    Error::new(format!("{path} has no {what}"))
        .why(format!("it contains {}{}", names.join(", "), if events.len() > 4 { ", …" } else { "" }))
        .try_this(remedy.to_owned())
}

/// Rejects a recording without times, because its events cannot be paired.
fn check_times(session: &Session, remedy: &str) -> Result<()> {
    if session.has_time {
        return Ok(());
    }
    let path = session.reader.path().display();
    Err(Error::new(format!("the samples in {path} have no timestamps"))
        .why("the duration of a wait is the difference between two timestamps")
        .try_this(remedy.to_owned()))
}

/// Returns the counts of matched and unmatched events, for JSON.
fn event_counts(counts: &PairingCounts) -> Json {
    json!({
        "paired": counts.paired, "without_end": counts.replaced + counts.expired,
        "without_begin": counts.ends_only, "backwards": counts.backwards, "with_loss": counts.with_loss,
    })
}

/// Writes which events are not included in the results.
fn losses(out: &mut dyn Write, counts: &PairingCounts, what: &str) -> io::Result<()> {
    let PairingCounts { paired: _, replaced, ends_only, backwards, expired, with_loss } = *counts;
    let all = [
        (with_loss, "overlap lost records, so their times may be too long"),
        (replaced, "have no end"),
        (ends_only, "have no begin"),
        (backwards, "end before they begin"),
        (expired, "were dropped, because too many never ended"),
    ];
    for (count, words) in all.into_iter().filter(|(count, _)| *count > 0) {
        writeln!(out, "# {count} {what} {words}")?;
    }
    Ok(())
}
