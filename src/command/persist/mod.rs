//! `pmc persist`: manages events that a holder keeps open.
//!
//! Connects the run directories ([`persistent`](pmc_recording::persistent)), the holder, the code that
//! evaluates snapshots, and the view. New entries are added to the user's own holder. Existing entries are
//! looked up first in the user's run directory, then in root's.

mod adopt;
mod detached;
mod plan;

use std::io::{self, Write};

use serde_json::{Value, json};

pub(super) use plan::PersistPlan;

use pmc_command::pager::PagedOutput;
use pmc_events::counter::rings::RingLimit;
use pmc_events::event::EventParser;
use pmc_recording::holder;
use pmc_recording::persistent::client::{ask, ask_or_start, directories, find, find_lost, misunderstood};
use pmc_recording::persistent::directory::RunDirectory;
use pmc_recording::persistent::message::{EntryCounts, HolderAnswer, HolderRequest};
use pmc_recording::persistent::{EntryDefinition, PersistentEntry};
use pmc_recording::recording::file::snapshot;
use pmc_recording::recording::warning::RecordingWarning;
use pmc_sys::error::{Error, Exit, Result, say};
use pmc_sys::host::Host;
use pmc_sys::host::persistent::RUN_DIRECTORY;
use pmc_sys::sys::page_size;
use pmc_text::units;

/// Runs the command.
///
/// # Errors
/// Fails if there is no holder, no entry has this name, the holder refuses, or a write fails.
pub(super) fn run(plan: PersistPlan) -> Result<Exit> {
    let host = Host::live();
    match plan {
        PersistPlan::Add { definition, json } => add(definition, json, &host)?,
        PersistPlan::Start { events, profile } => detached::start(&events, profile.as_deref(), &host)?,
        PersistPlan::Stop { output, json } => detached::stop(&output, json, &host)?,
        PersistPlan::List { json } => list(&host, json)?,
        PersistPlan::Show { entry, json } => {
            let (_, entry) = find(&entry, &host)?;
            print(json.then(|| json!(entry)), |out| pmc_view::persist::entry(out, &entry))?;
        }
        PersistPlan::Read { entry, json } => {
            let (directory, entry) = find(&entry, &host)?;
            let counts = read(&directory, &entry)?;
            let document = || json!({ "entry": entry, "counts": counts });
            print(json.then(document), |out| pmc_view::persist::counts(out, &entry, &counts))?;
        }
        PersistPlan::Snapshot { entry, output } => {
            let (directory, entry) = find(&entry, &host)?;
            let taken = snapshot::write(&directory, &entry, &output, &host)?;
            say::note(taken);
        }
        PersistPlan::Adopt { name, pid } => adopt::adopt(&name, pid, &host)?,
        PersistPlan::Rename { entry, name } => {
            let (directory, entry) = find(&entry, &host)?;
            ask(&directory, &HolderRequest::Rename { entry: entry.id.to_string(), name })?;
        }
        PersistPlan::Remove(names) => {
            for word in names {
                // The holder does not know about lost entries, so read them from the run directory.
                let directory = find(&word, &host).map(|(directory, _)| directory);
                let directory = directory
                    .or_else(|error| find_lost(&word, &host)?.map(|(directory, _)| directory).ok_or(error))?;
                ask_or_start(&directory, &HolderRequest::Remove { entry: word })?;
            }
        }
        PersistPlan::Hold { until_empty } => holder::hold(own(&host)?, until_empty)?,
    }
    Ok(Exit::Done)
}

/// Returns the user's run directory.
fn own(host: &Host) -> Result<RunDirectory> {
    host.own_run_directory().map(RunDirectory::at).ok_or_else(|| {
        Error::new("this user has no runtime directory")
            .why("XDG_RUNTIME_DIR is not set (a login session sets it)")
            .try_this(format!("{RUN_DIRECTORY}=DIR, a directory that only this user can write to"))
    })
}

fn add(definition: EntryDefinition, as_json: bool, host: &Host) -> Result<()> {
    // Parse the event here, so that errors show a caret under the invalid word.
    EventParser::new(host).parse(&definition.event)?;
    let asked = definition.pages;
    let (answer, _) = ask_or_start(&own(host)?, &HolderRequest::Add(definition))?;
    let HolderAnswer::Held(entry) = answer else { return Err(misunderstood()) };
    let asked = asked.map(|pages| pages.next_power_of_two() as u64 * page_size() as u64);
    if let Some(asked) = asked.filter(|&asked| asked > entry.ring_bytes) {
        say::warn(RecordingWarning::RingsSmaller {
            bytes: units::bytes(entry.ring_bytes),
            asked: units::bytes(asked),
            limit: RingLimit::LockedMemory,
        });
    }
    if entry.user_only {
        say::warn(RecordingWarning::UserModeOnly { doing: "counting" });
    }
    if as_json {
        return print(Some(json!(entry)), |_| Ok(()));
    }
    let EntryDefinition { name, counts_only, .. } = &entry.definition;
    let event = entry.event();
    if *counts_only {
        say::note(format!(
            "the event {name} is held ({event}, id {}): it can be counted but not sampled",
            entry.id
        ));
        return Ok(());
    }
    let rings = if entry.rings == 1 { "1 ring".to_owned() } else { format!("{} rings", entry.rings) };
    let bytes = units::bytes(entry.ring_bytes);
    say::note(format!("{name} is held: {event}, id {}, {rings} of {bytes}", entry.id));
    Ok(())
}

fn read(directory: &RunDirectory, entry: &PersistentEntry) -> Result<EntryCounts> {
    match ask(directory, &HolderRequest::Read { entry: entry.id.to_string() })? {
        (HolderAnswer::Counts(counts), _) => Ok(counts),
        _ => Err(misunderstood()),
    }
}

fn list(host: &Host, as_json: bool) -> Result<()> {
    let all = directories(host);
    let (mut held, mut lost) = (Vec::new(), Vec::new());
    for at in &all {
        held.extend(at.entries()?.into_iter().map(|entry| (at, entry)));
        lost.extend(at.lost()?);
    }
    let owner =
        |at: &RunDirectory| at.owner().map(|uid| host.user_name(uid).unwrap_or_else(|| uid.to_string()));
    let document = || {
        let with_path = |(at, entry): &(&RunDirectory, PersistentEntry)| {
            let mut value = json!(entry);
            value["run_directory"] = json!(at.path());
            value["owner"] = json!(owner(at));
            value
        };
        json!({ "held": held.iter().map(with_path).collect::<Vec<Value>>(), "lost": lost })
    };
    let entries: Vec<(String, &PersistentEntry)> =
        held.iter().map(|(at, entry)| (owner(at).unwrap_or_default(), entry)).collect();
    print(as_json.then(document), |out| pmc_view::persist::list(out, &entries, &lost))
}

/// Prints the JSON document if there is one, otherwise the output of `text`.
fn print(document: Option<Value>, text: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let mut out = PagedOutput::open();
    let written = match document {
        Some(document) => writeln!(out, "{}", pmc_text::text::as_json(&document)),
        None => text(&mut out),
    };
    written.and_then(|()| out.finish()).map_err(|error| Error::output("the persistent events", error))
}
