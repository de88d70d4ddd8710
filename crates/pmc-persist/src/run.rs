//! Carries out a [`PersistRequest`]: asks a holder, or becomes one, and prints the answer.
//!
//! New entries are added to the user's own holder. Existing entries are
//! looked up first in the user's run directory, then in root's.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::answers::{own, print, read};
use crate::{adopt, background_counters, holder, text};
use pmc_events::counter::rings::RingLimit;
use pmc_events::event::EventParser;
use pmc_recording::persistent::client::{ask, ask_or_start, directories, find, find_lost, misunderstood};
use pmc_recording::persistent::directory::RunDirectory;
use pmc_recording::persistent::message::{HolderAnswer, HolderRequest};
use pmc_recording::persistent::{EntryDefinition, PersistentEntry};
use pmc_recording::recording::file::snapshot;
use pmc_recording::recording::warning::{smaller_rings, user_mode_only};
use pmc_sys::error::{Exit, Result, say};
use pmc_sys::host::Host;
use pmc_sys::sys::page_size;
use pmc_text::units;

/// What to do with held events.
#[derive(Debug)]
pub enum PersistRequest {
    /// Hold an event. `json` prints the new entry.
    Add { definition: EntryDefinition, json: bool },
    /// List the held and the lost entries.
    List { json: bool },
    /// Show an entry's details.
    Show { entry: String, json: bool },
    /// Show an entry's counts.
    Read { entry: String, json: bool },
    /// Write an entry's records to a file.
    Snapshot { entry: String, output: PathBuf },
    /// Rename an entry.
    Rename { entry: String, name: String },
    /// Take over the events of a running recorder.
    Adopt { name: String, pid: u32 },
    /// Close entries, or forget lost ones.
    Remove(Vec<String>),
    /// Become the holder.
    Hold { until_empty: bool },
    /// Count these events on all CPUs, and sample `profile`; an empty text samples the usual event.
    Start { events: Vec<String>, profile: Option<String> },
    /// Show the counts of the started events, write their samples, and stop them.
    Stop { output: PathBuf, json: bool },
}

/// Carries out the request.
///
/// # Errors
/// Fails if there is no holder, no entry has this name, the holder refuses, or a write fails.
pub fn run(request: PersistRequest) -> Result<Exit> {
    let host = Host::live();
    match request {
        PersistRequest::Add { definition, json } => add(definition, json, &host)?,
        PersistRequest::Start { events, profile } => {
            background_counters::start(&events, profile.as_deref(), &host)?
        }
        PersistRequest::Stop { output, json } => background_counters::stop(&output, json, &host)?,
        PersistRequest::List { json } => list(&host, json)?,
        PersistRequest::Show { entry, json } => {
            let (_, entry) = find(&entry, &host)?;
            print(json.then(|| json!(entry)), |out| text::entry(out, &entry))?;
        }
        PersistRequest::Read { entry, json } => {
            let (directory, entry) = find(&entry, &host)?;
            let counts = read(&directory, &entry)?;
            let document = || json!({ "entry": entry, "counts": counts });
            print(json.then(document), |out| text::counts(out, &entry, &counts))?;
        }
        PersistRequest::Snapshot { entry, output } => {
            let (directory, entry) = find(&entry, &host)?;
            let taken = snapshot::write(&directory, &entry, &output, &host)?;
            say::note(taken);
        }
        PersistRequest::Adopt { name, pid } => adopt::adopt(&name, pid, &host)?,
        PersistRequest::Rename { entry, name } => {
            let (directory, entry) = find(&entry, &host)?;
            ask(&directory, &HolderRequest::Rename { entry: entry.id.to_string(), name })?;
        }
        PersistRequest::Remove(names) => {
            for word in names {
                // The holder does not know about lost entries, so read them from the run directory.
                let directory = find(&word, &host).map(|(directory, _)| directory);
                let directory = directory
                    .or_else(|error| find_lost(&word, &host)?.map(|(directory, _)| directory).ok_or(error))?;
                ask_or_start(&directory, &HolderRequest::Remove { entry: word })?;
            }
        }
        PersistRequest::Hold { until_empty } => holder::hold(own(&host)?, until_empty)?,
    }
    Ok(Exit::Done)
}

fn add(definition: EntryDefinition, as_json: bool, host: &Host) -> Result<()> {
    // Parse the event here, so that errors show a caret under the invalid word.
    EventParser::new(host).parse(&definition.event)?;
    let asked = definition.pages;
    let (answer, _) = ask_or_start(&own(host)?, &HolderRequest::Add(definition))?;
    let HolderAnswer::Held(entry) = answer else { return Err(misunderstood()) };
    let asked = asked.map(|pages| pages.next_power_of_two() as u64 * page_size() as u64);
    if let Some(asked) = asked.filter(|&asked| asked > entry.ring_bytes) {
        let (bytes, asked) = (units::bytes(entry.ring_bytes), units::bytes(asked));
        say::warn(smaller_rings(&bytes, &asked, RingLimit::LockedMemory));
    }
    if entry.user_only {
        say::warn(user_mode_only("counting"));
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
    print(as_json.then(document), |out| text::list(out, &entries, &lost))
}
