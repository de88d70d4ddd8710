//! The values of an option: events and metrics of this machine, processes, and the words that the parser
//! knows.
//!
//! An item of a list is offered with the items in front of it.

use std::path::Path;

use clap::Arg;

use super::{Candidate, Completion};
use crate::command::list;
use pmc_sys::host::Host;

/// The directory of PMUs, each with a directory of its events and one of its terms.
const PMUS: &str = "/sys/bus/event_source/devices";

/// Returns the values of an option or a positional argument, of which `typed` is typed.
pub(super) fn of_option(option: &Arg, typed: &str) -> Completion {
    match option.get_long() {
        Some("event") => return Completion::Items(events(typed)),
        Some("metrics") => return Completion::Items(items(typed, list::all_names(&["metric"]))),
        Some("pid") => return Completion::Items(processes(typed, false)),
        Some("tid") => return Completion::Items(processes(typed, true)),
        _ => {}
    }
    let values = option.get_possible_values();
    if values.is_empty() {
        return Completion::Files;
    }
    let shown = values.iter().filter(|value| !value.is_hide_set());
    let about = |value: &clap::builder::PossibleValue| value.get_help().map(ToString::to_string);
    Completion::Words(
        shown.map(|value| Candidate::new(value.get_name(), about(value).unwrap_or_default())).collect(),
    )
}

/// Returns the list `typed` with each of the names in place of its last item.
fn items(typed: &str, names: Vec<String>) -> Vec<Candidate> {
    let head = &typed[..typed.rfind(',').map_or(0, |comma| comma + 1)];
    names.into_iter().map(|name| Candidate::new(format!("{head}{name}"), "")).collect()
}

/// Returns the list of events `typed` with each event, PMU or term in place of what is typed last.
fn events(typed: &str) -> Vec<Candidate> {
    // The terms of a PMU may contain commas: `uprobe/retprobe=1,ref_ctr_offset=2/`.
    let mut slashes = typed.match_indices('/').map(|(at, _)| at + 1);
    let mut closed = 0;
    let mut open = None;
    while let Some(begin) = slashes.next() {
        match slashes.next() {
            Some(end) => closed = end,
            None => open = Some(begin),
        }
    }
    let mut candidates = Vec::new();
    if let Some(begin) = open {
        let pmu = typed[closed..begin - 1].rsplit([',', '{']).next().unwrap_or_default();
        let head = &typed[..typed.rfind(['/', ',']).map_or(0, |at| at + 1)];
        let folder = Path::new(PMUS).join(pmu);
        // The other files are properties of events.
        let is_event = |name: &&String| {
            ![".unit", ".scale", ".snapshot", ".per-pkg"].iter().any(|end| name.ends_with(end))
        };
        candidates.extend(
            names_in(&folder.join("events")).iter().filter(is_event).map(|name| format!("{head}{name}")),
        );
        candidates.extend(names_in(&folder.join("format")).iter().map(|name| format!("{head}{name}=")));
    } else {
        let head = &typed[..closed + typed[closed..].rfind([',', '{']).map_or(0, |at| at + 1)];
        candidates.extend(Host::live().pmu_names().iter().map(|name| format!("{head}{name}/")));
        candidates.extend(list::all_names(&[]).iter().map(|name| format!("{head}{name}")));
    }
    candidates.into_iter().map(|word| Candidate::new(word, "")).collect()
}

/// Returns the names in a directory, sorted; none if there is no such directory.
fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}

/// Returns the list `typed` with each process or thread in place of its last item, described by its name.
fn processes(typed: &str, has_threads: bool) -> Vec<Candidate> {
    let host = Host::live();
    let head = &typed[..typed.rfind(',').map_or(0, |comma| comma + 1)];
    let processes = host.processes().into_iter();
    let ids: Vec<u32> = match has_threads {
        true => {
            processes.flat_map(|pid| host.threads(pid).unwrap_or_default()).map(|thread| thread.tid).collect()
        }
        false => processes.collect(),
    };
    ids.into_iter().map(|id| Candidate::new(format!("{head}{id}"), host.comm(id))).collect()
}
