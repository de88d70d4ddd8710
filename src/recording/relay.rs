//! Records of an event that a holder keeps open, fetched from its rings again and again.
//!
//! Receives the event's run directory and id; asks its holder, and hands on records as our own rings would:
//! whole, oldest first. Several may read the same rings at once, each of which says how far it has come. What
//! was written over before it was fetched is told as lost, in a record as the kernel's.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use super::handover::{self, recorded};
use super::plan::Scope;
use crate::error::{Error, Result};
use crate::perfdata::RecordedEvent;
use crate::persistent::client::ask;
use crate::persistent::directory::RunDirectory;
use crate::persistent::message::{Answer, Request, RingCopy, Snapshot};
use crate::record::encode::Encoder;
use crate::record::{HEADER, Layouts, Records, kind};

/// Bytes of the largest copy of one ring.
const LARGEST: u64 = 1 << 31;
/// Rings that fill fast are asked for so often: nanoseconds from one time to the next.
const SHORTEST: u64 = 5_000_000;
/// And others so seldom.
const LONGEST: u64 = 400_000_000;

/// An event's records on their way.
pub(crate) struct Relay {
    directory: RunDirectory,
    id: String,
    /// What it is, as its holder said when we began.
    pub(super) snapshot: Snapshot,
    /// Whose records they are: the events that sample, then the one that tells of mappings.
    pub(super) events: Vec<RecordedEvent>,
    trailer: usize,
    /// Of each ring one instance's id.
    ids: Vec<u64>,
    /// How far each ring was fetched.
    after: Vec<u64>,
    /// Records that its rings had no room for since it was added: when we began, and at the last fetch.
    lost: Range<u64>,
    was_ever_on: bool,
    is_on: bool,
    /// What was fetched when it was switched off, by ring.
    waiting: Vec<(usize, Vec<u8>)>,
    /// Nanoseconds until it is to be fetched again.
    pub(super) pace: u64,
    ring_bytes: u64,
}

impl Relay {
    /// Begins with what is written from the first [`switch`](Self::switch) on, or, `from_start`, with what
    /// the rings hold by then. What `--normal` rings hold comes in any case: it is nobody's yet.
    ///
    /// # Errors
    /// What the holder refuses.
    pub(crate) fn open(directory: RunDirectory, id: u64, from_start: bool) -> Result<Self> {
        let ring_bytes = directory.entry(&id.to_string()).map_or(0, |entry| entry.ring_bytes);
        let id = id.to_string();
        let (snapshot, _) = fetch(&directory, &id, None)?;
        let events: Vec<RecordedEvent> = snapshot.open.events.iter().map(recorded).collect();
        let layouts = Layouts::new(events.iter().map(|event| (&event.attr, event.ids.as_slice())));
        let trailer = layouts.iter().next().map_or(0, |layout| layout.trailer_size());
        let rings = snapshot.owners.len();
        let of_ring = |ring: usize| snapshot.open.instances.iter().find(|one| one[1] == ring as u64);
        Ok(Self {
            directory,
            id,
            ids: (0..rings).map(|ring| of_ring(ring).map_or(0, |one| one[0])).collect(),
            after: if from_start { Vec::new() } else { vec![u64::MAX; rings] },
            lost: snapshot.lost..snapshot.lost,
            snapshot,
            events,
            trailer,
            was_ever_on: false,
            is_on: false,
            waiting: Vec::new(),
            pace: LONGEST,
            ring_bytes,
        })
    }

    /// On whom the event is open.
    ///
    /// # Errors
    /// A holder that says something else than CPUs.
    pub(crate) fn scope(&self) -> Result<Scope> {
        handover::scope(&self.snapshot.open)
    }

    /// How many of its events sample: the first ones.
    pub(super) fn sampled_events(&self) -> usize {
        self.snapshot.open.sampled.min(self.events.len())
    }

    /// How many of its rings there were when we began.
    pub(super) fn rings(&self) -> usize {
        self.ids.len()
    }

    /// Records for which its rings had no room meanwhile, and the instance of one: the kernel writes of them
    /// with the next record that fits, which may never come.
    pub(super) fn lost(&self) -> (u64, u64) {
        (self.ids.first().copied().unwrap_or(0), self.lost.end - self.lost.start)
    }

    /// Records are handed on from now, or up to now.
    ///
    /// # Errors
    /// What the holder says.
    pub(crate) fn switch(&mut self, on: bool) -> Result<()> {
        if std::mem::replace(&mut self.is_on, on) == on {
            return Ok(());
        }
        match (on, std::mem::replace(&mut self.was_ever_on, true)) {
            (false, _) => {
                let rest = self.fetch()?;
                self.waiting.extend(rest);
            }
            // What came while it was off is nobody's business.
            (true, true) => drop(self.fetch()?),
            (true, false) if self.after.is_empty() => {}
            (true, false) => {
                let (now, _) = fetch(&self.directory, &self.id, None)?;
                self.after = ends(&now.copies);
                self.lost = now.lost..now.lost;
            }
        }
        Ok(())
    }

    /// Hands on what is new: the ring's index, and whole records. Bytes in all.
    ///
    /// # Errors
    /// What the holder says, and `take`.
    pub(crate) fn drain<E>(&mut self, mut take: impl FnMut(usize, &[u8]) -> Result<(), E>) -> Result<u64>
    where
        Error: From<E>,
    {
        let mut all = std::mem::take(&mut self.waiting);
        if self.is_on {
            all.extend(self.fetch()?);
        }
        all.iter().try_for_each(|(ring, records)| take(*ring, records))?;
        Ok(all.iter().map(|(_, records)| records.len() as u64).sum())
    }

    /// What was written since the last time.
    fn fetch(&mut self) -> Result<Vec<(usize, Vec<u8>)>> {
        let (now, bytes) = fetch(&self.directory, &self.id, Some(&self.after))?;
        let elsewhere = self.later_instances(&now);
        let (mut all, mut at, mut most) = (Vec::new(), 0, 0);
        for ring in &now.copies {
            let new = ring.end.saturating_sub(self.after.get(ring.ring).copied().unwrap_or(0));
            // A copy that is shared by several may begin before what is new.
            let len = ring.len.min(new);
            let from = if ring.is_backward { at } else { at + ring.len - len };
            let copy = piece(&bytes, from, Some(len))?;
            at += ring.len;
            let mut records = if ring.is_backward { turn(&copy) } else { copy };
            let first = elsewhere.get(&ring.ring).copied();
            if let Some(id) = first {
                give_to(id, &mut records);
            }
            let known = first.map_or(ring.ring, |id| self.ids.iter().position(|&one| one == id).unwrap_or(0));
            let missing = new - records.len() as u64;
            // Of what was there before we came nothing was promised.
            if missing > 0 && self.after.get(ring.ring).is_some() {
                let mut lost = Encoder::new(self.trailer);
                let size = records.len() / Records::new(&records).count().max(1);
                let id = self.ids.get(known).copied().unwrap_or(0);
                lost.lost(id, missing.div_ceil(size.max(HEADER) as u64));
                records.splice(..0, lost.bytes().iter().copied());
            }
            most = most.max(new);
            all.push((known, records));
        }
        // The copy that others share may be older than the positions that we were told.
        self.after.resize(self.after.len().max(now.copies.len()), 0);
        self.after.iter_mut().zip(ends(&now.copies)).for_each(|(own, end)| *own = end.max(*own));
        self.lost.end = self.lost.end.max(now.lost);
        self.pace = match most {
            half if half > self.ring_bytes / 2 => (self.pace / 2).max(SHORTEST),
            little if little < self.ring_bytes / 8 => (self.pace * 2).min(LONGEST),
            _ => self.pace,
        };
        Ok(all)
    }

    /// CPUs that came on line later have rings and ids that our readers have not heard of: of each such ring
    /// the id that its records are given to, one of the same event's on another CPU.
    fn later_instances(&self, now: &Snapshot) -> HashMap<usize, u64> {
        let later = now.open.instances.iter().filter(|one| one[1] >= self.ids.len() as u64);
        let given = |one: &[u64; 4]| {
            let event = now.open.events.iter().find(|event| event.ids.contains(&one[0]))?;
            Some((one[1] as usize, *event.ids.iter().find(|id| self.ids.contains(id))?))
        };
        later.filter_map(given).collect()
    }
}

fn ends(rings: &[RingCopy]) -> Vec<u64> {
    rings.iter().map(|ring| ring.end).collect()
}

/// Records of a backward ring, the oldest first. What is behind the last whole one was written over.
fn turn(records: &[u8]) -> Vec<u8> {
    let all: Vec<&[u8]> = Records::new(records).map(|record| record.bytes).collect();
    all.into_iter().rev().flatten().copied().collect()
}

/// Gives records to another instance of their event: samples begin with its id, all else ends with it.
fn give_to(id: u64, records: &mut [u8]) {
    let mut at = 0;
    while let Some((kind, len)) =
        Records::new(&records[at..]).next().map(|record| (record.kind, record.bytes.len()))
    {
        let place = if kind == kind::SAMPLE { at + HEADER } else { at + len - size_of::<u64>() };
        if let Some(own) = records.get_mut(place..place + size_of::<u64>()) {
            own.copy_from_slice(&id.to_ne_bytes());
        }
        at += len;
    }
}

/// Asks for a copy of what is newer: what it is, and the bytes.
fn fetch(directory: &RunDirectory, id: &str, after: Option<&[u64]>) -> Result<(Snapshot, File)> {
    let request = Request::Snapshot { entry: id.to_owned(), after: after.map(<[u64]>::to_vec) };
    let (Answer::Copied, descriptors) = ask(directory, &request)? else { return Err(torn()) };
    let Ok([description, bytes]) = <[_; 2]>::try_from(descriptors) else { return Err(torn()) };
    let text = piece(&File::from(description), 0, None)?;
    Ok((serde_json::from_slice(&text).map_err(|_| torn())?, File::from(bytes)))
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

fn torn() -> Error {
    Error::new("the holder gave no whole copy of its rings").why("it is another version of pmc's")
}
