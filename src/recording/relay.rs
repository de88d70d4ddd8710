//! Records of an event that a holder keeps open, fetched from its rings again and again.
//!
//! Receives the event's run directory and id; asks its holder, and hands on records as our own rings would:
//! whole, oldest first. Several may read the same rings at once, each of which says how far it has come. What
//! was written over before it was fetched is told as lost, in a record as the kernel's.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use super::handover::{self, recorded};
use super::plan::Scope;
use crate::error::{Error, Result};
use crate::perfdata::RecordedEvent;
use crate::persistent::client::{Asked, ask};
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

/// Maximum time to wait for a copy while the recording runs: a holder that is stopped or busy is asked again
/// later, and stops nothing that is recorded beside it.
const BRIEF: Duration = Duration::from_millis(20);
/// The same for the last copy.
const LAST: Duration = Duration::from_secs(5);
/// The same for a copy that is all that is wanted.
const WHOLE: Duration = Duration::from_secs(60);

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
    /// Asked for, and not there yet.
    asked: Option<Asked>,
    /// Why nothing more comes: its holder has ended, has let it go, or does not answer.
    gone: Option<Error>,
    /// Whether that has been reported.
    is_gone: bool,
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
    pub(crate) fn open(directory: RunDirectory, number: u64, from_start: bool) -> Result<Self> {
        let id = number.to_string();
        let ring_bytes = directory.entry(&id).map_or(0, |entry| entry.ring_bytes);
        let snapshot = positions(&directory, &id)?;
        handover::refuse_counted(&snapshot.open, number)?;
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
            asked: None,
            gone: None,
            is_gone: false,
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

    /// Records are handed on from now, or up to now. A holder that does not answer when it is not asked for
    /// the first time is [gone](Self::newly_gone).
    ///
    /// # Errors
    /// What the holder says at the beginning.
    pub(crate) fn switch(&mut self, on: bool) -> Result<()> {
        if std::mem::replace(&mut self.is_on, on) == on || self.is_gone {
            return Ok(());
        }
        match (on, std::mem::replace(&mut self.was_ever_on, true)) {
            (false, _) => {
                let rest = self.fetch_rest();
                self.waiting.extend(rest);
            }
            // What came while it was off is not wanted.
            (true, true) => drop(self.fetch_rest()),
            (true, false) if self.after.is_empty() => {}
            (true, false) => {
                let now = positions(&self.directory, &self.id)?;
                self.after = ends(&now.copies);
                self.lost = now.lost..now.lost;
            }
        }
        Ok(())
    }

    /// Hands on what is new: the ring's index, and whole records. Bytes in all.
    ///
    /// # Errors
    /// What `take` says.
    pub(crate) fn drain<E>(
        &mut self,
        mut take: impl FnMut(usize, &[u8]) -> std::result::Result<(), E>,
    ) -> std::result::Result<u64, E> {
        let mut all = std::mem::take(&mut self.waiting);
        if self.is_on {
            all.extend(self.try_fetch(BRIEF));
        }
        all.iter().try_for_each(|(ring, records)| take(*ring, records))?;
        Ok(all.iter().map(|(_, records)| records.len() as u64).sum())
    }

    /// Why nothing more comes, once.
    pub(crate) fn newly_gone(&mut self) -> Option<Error> {
        self.gone.take()
    }

    /// Whether nothing more comes.
    pub(super) fn is_gone(&self) -> bool {
        self.is_gone
    }

    fn end(&mut self, why: Error) {
        self.gone = Some(why);
        self.is_gone = true;
        self.pace = LONGEST;
    }

    /// What was written since the last time, as far as the holder answers within this time. One that does not
    /// is asked for the same again later.
    fn try_fetch(&mut self, patience: Duration) -> Vec<(usize, Vec<u8>)> {
        if self.is_gone {
            return Vec::new();
        }
        self.fetch(patience).unwrap_or_else(|error| {
            self.end(error);
            Vec::new()
        })
    }

    /// What was written up to now.
    fn fetch_rest(&mut self) -> Vec<(usize, Vec<u8>)> {
        // What is on its way may be older than now.
        let times = 1 + usize::from(self.asked.is_some());
        let rest = (0..times).flat_map(|_| self.try_fetch(LAST)).collect();
        if self.asked.take().is_some() {
            self.end(unanswered());
        }
        rest
    }

    /// Hands on all that its rings hold, once it is there.
    ///
    /// # Errors
    /// What the holder says, and `take`.
    pub(crate) fn take_all<E>(
        &mut self,
        mut take: impl FnMut(usize, &[u8]) -> std::result::Result<(), E>,
    ) -> Result<()>
    where
        Error: From<E>,
    {
        let all = self.fetch(WHOLE)?;
        if self.asked.is_some() {
            return Err(unanswered());
        }
        Ok(all.iter().try_for_each(|(ring, records)| take(*ring, records))?)
    }

    fn fetch(&mut self, patience: Duration) -> Result<Vec<(usize, Vec<u8>)>> {
        let request = || Request::Snapshot { entry: self.id.clone(), after: Some(self.after.clone()) };
        let asked = match self.asked.take() {
            Some(asked) => asked,
            None => Asked::send(&self.directory, &request())?,
        };
        let Some(answer) = asked.answer(patience)? else {
            self.asked = Some(asked);
            self.pace = LONGEST;
            return Ok(Vec::new());
        };
        let (now, bytes) = copied(answer)?;
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
            // Of what was there before we came nothing was promised; and what is missing of a ring that keeps
            // the oldest, another reader has taken: what it had no room for, the kernel counts.
            if missing > 0 && ring.is_backward && self.after.get(ring.ring).is_some() {
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

fn unanswered() -> Error {
    Error::new("its holder does not answer").why("the holder process is stopped or busy")
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

/// Asks how far the rings are.
fn positions(directory: &RunDirectory, id: &str) -> Result<Snapshot> {
    let request = Request::Snapshot { entry: id.to_owned(), after: None };
    copied(ask(directory, &request)?).map(|(snapshot, _)| snapshot)
}

fn copied(answer: (Answer, Vec<OwnedFd>)) -> Result<(Snapshot, File)> {
    let (Answer::Copied, descriptors) = answer else { return Err(torn()) };
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
    Error::new("the holder sent an incomplete copy of its ring buffers")
        .why("the holder may run another version of pmc")
}
