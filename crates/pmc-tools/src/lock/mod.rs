//! Waits for locks: pairs the events of a recording, and determines which threads wait, where they wait, and
//! which thread holds the lock.
//!
//! Computes the tables of [`pmc_analysis::profile::lock`] from the symbolized samples of a recording, in time order
//! ([`NamedRecording`]).

pub mod contention;
mod tracepoints;
pub mod user;

use std::io::{self, Write};

use pmc_analysis::analysis::request::SampleSelection;
use pmc_analysis::analysis::script::ScriptRequest;
use pmc_analysis::interval::PairingCounts;
use pmc_analysis::session::Session;
use pmc_perfdata::record::kind;
use pmc_symbols::symbol::SymbolOptions;
use pmc_sys::error::{Error, Result};
use serde_json::{Value as Json, json};

/// Returns the request for the records that the engines need. `fields` has the syntax of perf's `-F`.
fn records(
    selection: &SampleSelection,
    symbols: &SymbolOptions,
    fields: &str,
    max_stack: usize,
) -> ScriptRequest {
    ScriptRequest {
        selection: selection.clone(),
        fields: vec![fields.to_owned()],
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
