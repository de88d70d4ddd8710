//! `pmc start` and `pmc stop`: counters that run unattended on all CPUs, as entries of the holder.
//!
//! `pmc stop` prints a table with one row per counter and one column per CPU, and with `--profile` also
//! writes a recording. The entries have fixed names, so `pmc stop` does not need arguments.

use std::path::Path;

use serde_json::json;

use crate::answers::{own, print, read};
use crate::text;
use pmc_events::counter::Mode;
use pmc_events::counter::open::cycles;
use pmc_events::event::EventParser;
use pmc_recording::persistent::client::{ask, ask_or_start};
use pmc_recording::persistent::directory::RunDirectory;
use pmc_recording::persistent::message::{EntryCounts, HolderAnswer, HolderRequest};
use pmc_recording::persistent::{EntryDefinition, PersistentEntry, RingMode, SharingLevel};
use pmc_recording::recording::file::snapshot;
use pmc_recording::recording::warning::user_mode_only;
use pmc_sys::error::{Error, Result, say};
use pmc_sys::host::Host;

/// Name of the sampling entry.
const PROFILE: &str = "profile";
/// Name prefix of the counting entries; a number follows.
const COUNTER: &str = "counter";

/// Starts all counters, or none if one of them fails.
///
/// # Errors
/// Fails if counters are already running, an event is invalid, or the holder refuses.
pub(super) fn start(typed: &[String], profile: Option<&str>, host: &Host) -> Result<()> {
    let directory = own(host)?;
    if let Some(entry) = started(&directory)?.first() {
        return Err(Error::new("counters are already running")
            .why(format!("{} was started {}", entry.definition.event, entry.opened()))
            .try_this("pmc stop, which shows what they counted"));
    }
    let mut events: Vec<(String, String)> = Vec::new();
    for (number, event) in typed.iter().enumerate() {
        EventParser::new(host).parse(event)?;
        events.push((format!("{COUNTER}{number}"), event.clone()));
    }
    if let Some(event) = profile {
        let usual = if cycles(Mode::SystemSampling).is_ok() { "cycles" } else { "cpu-clock" };
        let event = if event.is_empty() { usual } else { event };
        EventParser::new(host).parse(event)?;
        events.push((PROFILE.to_owned(), event.to_owned()));
    }
    let definition = |(name, event): (String, String)| EntryDefinition {
        pages: (name != PROFILE).then_some(1),
        counts_only: name != PROFILE,
        filter: None,
        name,
        event,
        mode: RingMode::Overwrite,
        cpus: None,
        pids: Vec::new(),
        call_graph: false,
        share: SharingLevel::Nothing,
    };
    let together = HolderRequest::AddTogether(events.into_iter().map(definition).collect());
    if let (HolderAnswer::Started { user_only: true }, _) = ask_or_start(&directory, &together)? {
        say::warn(user_mode_only("counting"));
    }
    Ok(())
}

/// Prints the counts and stops the counters.
///
/// # Errors
/// Fails if no counters are running, the holder refuses, or the recording cannot be written.
pub(super) fn stop(output: &Path, as_json: bool, host: &Host) -> Result<()> {
    let directory = own(host)?;
    let entries = started(&directory)?;
    if entries.is_empty() {
        return Err(Error::new("no counters are running").try_this("pmc start NAME:uk"));
    }
    let counters = entries.iter().filter(|entry| entry.definition.name != PROFILE);
    let counted: Vec<(&PersistentEntry, EntryCounts)> =
        counters.map(|entry| Ok((entry, read(&directory, entry)?))).collect::<Result<_>>()?;
    let row = |(entry, counts): &(&PersistentEntry, EntryCounts)| json!({ "event": entry.definition.event, "cpus": counts.rows });
    let document = || json!({ "counters": counted.iter().map(row).collect::<Vec<_>>() });
    if as_json || !counted.is_empty() {
        print(as_json.then(document), |out| text::by_cpu(out, &counted))?;
    }
    if let Some(entry) = entries.iter().find(|entry| entry.definition.name == PROFILE) {
        say::note(snapshot::write(&directory, entry, output, host)?);
    }
    end(&directory, &entries)
}

/// Returns the running entries in the order in which they were started.
fn started(directory: &RunDirectory) -> Result<Vec<PersistentEntry>> {
    let number = |entry: &PersistentEntry| {
        let name = &entry.definition.name;
        let number = name.strip_prefix(COUNTER).and_then(|number| number.parse().ok());
        number.or((name == PROFILE).then_some(u32::MAX))
    };
    let mut entries: Vec<PersistentEntry> =
        directory.entries()?.into_iter().filter(|entry| number(entry).is_some()).collect();
    entries.sort_by_key(number);
    Ok(entries)
}

fn end(directory: &RunDirectory, entries: &[PersistentEntry]) -> Result<()> {
    entries.iter().try_for_each(|entry| {
        ask(directory, &HolderRequest::Remove { entry: entry.id.to_string() }).map(drop)
    })
}
