//! From the rings that a holder keeps to a recording: a copy of what they hold now, as a file that everything
//! reads which reads recordings.
//!
//! Receives an entry and a path; asks the holder for a copy of its rings, tells what runs now in front of it,
//! and writes both. The records are the holder's and untouched; what was torn at a ring's end is left out.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::features;
use super::output::{Events, Output};
use crate::abi::Attr;
use crate::counter::request::sampling::SampleOptions;
use crate::error::{Error, Result};
use crate::host::Host;
use crate::perfdata::RecordedEvent;
use crate::persistent::Entry;
use crate::persistent::client::ask;
use crate::persistent::directory::RunDirectory;
use crate::persistent::message::{Answer, Request, Snapshot, SnapshotEvent};
use crate::record::encode::Encoder;
use crate::recording::plan::{BuildIdChoice, FilePlan, SamplePlan, Scope, Synthesis};
use crate::recording::synthesize::{self, Extent};
use crate::units::thousands;

/// Bytes of the largest copy of one ring.
const LARGEST: u64 = 1 << 31;

/// Writes a snapshot of an entry; a line that says what is in it.
///
/// # Errors
/// What the holder refuses; what the kernel says of the file.
pub(crate) fn write(directory: &RunDirectory, entry: &Entry, path: &Path, host: &Host) -> Result<String> {
    let request = Request::Snapshot { entry: entry.id.to_string() };
    let (Answer::Copied, descriptors) = ask(directory, &request)? else { return Err(torn()) };
    let Ok([description, bytes]) = <[_; 2]>::try_from(descriptors) else { return Err(torn()) };
    let text = piece(&File::from(description), 0, None)?;
    let snapshot: Snapshot = serde_json::from_slice(&text).map_err(|_| torn())?;
    let bytes = File::from(bytes);

    let events: Vec<RecordedEvent> = snapshot.events.iter().map(recorded).collect();
    let scope = match (&snapshot.cpus, snapshot.pids.as_slice()) {
        (Some(cpus), _) => Scope::Cpus(cpus.parse().map_err(|_| torn())?),
        (None, pids) => Scope::Processes(pids.to_vec()),
    };
    let plan = SamplePlan::on(scope, SampleOptions::default());
    let events = Events::new(&plan, events);
    let groups: Vec<Vec<usize>> = (0..events.written.len()).map(|index| vec![index]).collect();
    let features = features::at_the_start(host, None, &groups, &events.written);
    let file = FilePlan { build_ids: BuildIdChoice::Hit, ..FilePlan::of(path.to_owned()) };
    let mut output = Output::create(&file, None, events, features, snapshot.owners.clone())?;
    tell(&mut output, &snapshot, &plan, host)?;
    let mut at = 0;
    for &(ring, len, is_backward) in &snapshot.rings {
        let records = piece(&bytes, at, Some(len))?;
        at += len;
        match is_backward {
            true => output.take_snapshot(ring, &[&records])?,
            false => output.take_ring(ring, &[&records])?,
        }
    }
    output.end_round()?;
    output.take_place()?;
    output.finish()?;
    let totals = output.totals();
    let lost = match snapshot.lost {
        0 => String::new(),
        lost => format!("; {} lost since it was added", thousands(lost)),
    };
    let to = if file.is_stream() { "standard output".to_owned() } else { path.display().to_string() };
    Ok(format!("{to}: {} samples of {}{lost}", thousands(totals.samples), entry.definition.name))
}

/// So many bytes from there on, or all that are left. The offset of the descriptor stays: others may read the
/// same copy.
fn piece(file: &File, at: u64, len: Option<u64>) -> Result<Vec<u8>> {
    let there = file.metadata().map_err(failed)?.len().saturating_sub(at);
    let len = len.unwrap_or(there);
    if len > there.min(LARGEST) {
        return Err(torn());
    }
    let mut bytes = vec![0; len as usize];
    file.read_exact_at(&mut bytes, at).map_err(failed)?;
    Ok(bytes)
}

fn failed(error: io::Error) -> Error {
    Error::io("reading a holder's copy of its rings", error)
}

fn recorded(event: &SnapshotEvent) -> RecordedEvent {
    let mut attr = Attr::default();
    for (index, word) in event.attr.iter().enumerate() {
        attr.set_word(index, *word);
    }
    RecordedEvent { attr, ids: event.ids.clone(), name: Some(event.name.clone()) }
}

/// What was there before the first record that the rings still hold is not known; what is there now is next
/// to it.
fn tell(output: &mut Output<'_>, snapshot: &Snapshot, plan: &SamplePlan, host: &Host) -> Result<()> {
    let mut out = Encoder::new(output.trailer());
    out.id_index(&snapshot.instances);
    synthesize::machine(host, false, &mut out);
    let pids = match &plan.scope {
        Scope::Cpus(cpus) => {
            synthesize::idle(cpus, &mut out);
            host.processes()
        }
        _ => snapshot.pids.clone(),
    };
    let extent = Extent { what: Synthesis::ALL, data_mappings: false, namespaces: false };
    synthesize::processes(host, pids, extent, &mut out, |out| output.tell(out.bytes()))?;
    out.finished_init();
    output.tell(out.bytes())?;
    Ok(())
}

fn torn() -> Error {
    Error::new("the holder gave no whole copy of its rings").why("it is another version of pmc's")
}
