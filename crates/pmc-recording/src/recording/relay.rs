//! Repeatedly fetches the records of a holder's event from the event's rings.
//!
//! Receives the event's run directory and id; requests records from the holder. Returns records as our own
//! rings do: whole and oldest first. Several readers can read the same rings, because each reader keeps its
//! own position. If records have been overwritten before they could be fetched, the relay reports them in a
//! `LOST` record, as the kernel does.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use super::handover::{self, recorded};
use super::plan::MeasurementScope;
use crate::persistent::client::{PendingRequest, ask};
use crate::persistent::directory::RunDirectory;
use crate::persistent::message::{HolderAnswer, HolderRequest, RingCopy, RingSnapshot};
use pmc_perfdata::perfdata::RecordedEvent;
use pmc_perfdata::record::encode::Encoder;
use pmc_perfdata::record::{HEADER, Layouts, Records, kind};
use pmc_sys::error::{Error, Result};

/// Maximum size of a copy of one ring, in bytes.
const LARGEST: u64 = 1 << 31;
/// Maximum size of the description of a copy, in bytes. One with 4,096 rings and as many events takes 2 MB.
const LARGEST_DESCRIPTION: u64 = 64 << 20;
/// Minimum interval between requests in nanoseconds, for rings that fill quickly.
const SHORTEST: u64 = 5_000_000;
/// Maximum interval between requests in nanoseconds.
const LONGEST: u64 = 400_000_000;

/// Maximum time to wait for a copy while the recording runs. pmc repeats the request later if the holder is
/// stopped or busy, and records the other events meanwhile.
const BRIEF: Duration = Duration::from_millis(20);
/// Maximum time to wait for the last copy.
const LAST: Duration = Duration::from_secs(5);
/// Maximum time to wait for a single copy outside a recording.
const WHOLE: Duration = Duration::from_secs(60);

/// A connection to a held event that delivers its records.
pub(crate) struct Relay {
    directory: RunDirectory,
    id: String,
    /// The holder's description of the event at the start.
    pub(super) snapshot: RingSnapshot,
    /// The events of the records: first the sampled events, then the tracker.
    pub(super) events: Vec<RecordedEvent>,
    trailer: usize,
    /// For each ring, the id of one of its instances.
    ids: Vec<u64>,
    /// For each ring, the position up to which it has been fetched.
    after: Vec<u64>,
    /// The request that the holder has not answered yet.
    asked: Option<PendingRequest>,
    /// The reason why no more records will arrive: the holder has ended, has dropped the event, or does not
    /// answer.
    gone: Option<Error>,
    /// Whether no more records will arrive.
    is_gone: bool,
    /// The number of records lost since the event was added: at the start of the delivery, and at the last
    /// fetch.
    lost: Range<u64>,
    was_ever_on: bool,
    is_on: bool,
    /// Records fetched when delivery was switched off, each with its ring's index.
    waiting: Vec<(usize, Vec<u8>)>,
    /// Nanoseconds until the next fetch.
    pub(super) pace: u64,
    ring_bytes: u64,
}

impl Relay {
    /// Connects to the holder. The records begin at the first [`switch`](Self::switch), or with the current
    /// contents of the rings if `from_start`. The contents of `--normal` rings are always included, because
    /// no reader has fetched them yet.
    ///
    /// # Errors
    /// Returns the holder's refusal.
    pub(crate) fn open(directory: RunDirectory, number: u64, from_start: bool) -> Result<Self> {
        let id = number.to_string();
        let ring_bytes = directory.entry(&id)?.map_or(0, |entry| entry.ring_bytes);
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

    /// Returns the scope of the event.
    ///
    /// # Errors
    /// Fails if the holder sends an invalid list of CPUs.
    pub(crate) fn scope(&self) -> Result<MeasurementScope> {
        handover::scope(&self.snapshot.open)
    }

    /// Returns the number of sampled events, which come first.
    pub(super) fn sampled_events(&self) -> usize {
        self.snapshot.open.sampled.min(self.events.len())
    }

    /// Returns the number of rings at the start.
    pub(super) fn rings(&self) -> usize {
        self.ids.len()
    }

    /// Returns the id of an event instance and the number of records lost since the start. The kernel reports
    /// losses only with the next record that fits, which may never come.
    pub(super) fn lost(&self) -> (u64, u64) {
        (self.ids.first().copied().unwrap_or(0), self.lost.end - self.lost.start)
    }

    /// Starts or stops the delivery of records. If the holder does not answer a later request, the event is
    /// [gone](Self::newly_gone).
    ///
    /// # Errors
    /// Returns the holder's error at the first request.
    pub(crate) fn switch(&mut self, on: bool) -> Result<()> {
        if std::mem::replace(&mut self.is_on, on) == on || self.is_gone {
            return Ok(());
        }
        match (on, std::mem::replace(&mut self.was_ever_on, true)) {
            (false, _) => {
                let rest = self.fetch_rest();
                self.waiting.extend(rest);
            }
            // Discard the records that were written while delivery was off.
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

    /// Passes new records to `take`, with the ring's index. Returns the number of bytes.
    ///
    /// # Errors
    /// Fails if `take` fails.
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

    /// Returns the reason why there will be no more records. Later calls return `None`.
    pub(crate) fn newly_gone(&mut self) -> Option<Error> {
        self.gone.take()
    }

    /// Whether there will be no more records.
    pub(super) fn is_gone(&self) -> bool {
        self.is_gone
    }

    fn end(&mut self, why: Error) {
        self.gone = Some(why);
        self.is_gone = true;
        self.pace = LONGEST;
    }

    /// Fetches the new records if the holder answers within `patience`. Otherwise repeats the request later.
    fn try_fetch(&mut self, patience: Duration) -> Vec<(usize, Vec<u8>)> {
        if self.is_gone {
            return Vec::new();
        }
        self.fetch(patience).unwrap_or_else(|error| {
            self.end(error);
            Vec::new()
        })
    }

    /// Fetches everything written up to now.
    fn fetch_rest(&mut self) -> Vec<(usize, Vec<u8>)> {
        // The answer to a pending request may contain only older records, so send another request after it.
        let times = 1 + usize::from(self.asked.is_some());
        let rest = (0..times).flat_map(|_| self.try_fetch(LAST)).collect();
        if self.asked.take().is_some() {
            self.end(unanswered());
        }
        rest
    }

    /// Passes the complete contents of the rings to `take`.
    ///
    /// # Errors
    /// Fails if `take` fails, or with an error from the holder.
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
        let request = || HolderRequest::Snapshot { entry: self.id.clone(), after: Some(self.after.clone()) };
        let asked = match self.asked.take() {
            Some(asked) => asked,
            None => PendingRequest::send(&self.directory, &request())?,
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
            // A copy shared by several readers may begin before the new records.
            let len = ring.len.min(new);
            let end = u64::checked_add(at, ring.len).ok_or_else(torn)?;
            let copy = piece(&bytes, if ring.is_backward { at } else { end - len }, Some(len))?;
            at = end;
            let mut records = if ring.is_backward { reverse_order(&copy) } else { copy };
            let first = elsewhere.get(&ring.ring).copied();
            if let Some(id) = first {
                give_to(id, &mut records);
            }
            let known = first.map_or(ring.ring, |id| self.ids.iter().position(|&one| one == id).unwrap_or(0));
            if known >= self.ids.len() {
                return Err(torn());
            }
            let missing = new - records.len() as u64;
            // Report only records that were lost since this reader started. If records are missing from a
            // ring that keeps the oldest records, another reader has taken them. The kernel itself counts the
            // records that did not fit.
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
        // A copy shared with other readers may be older than our positions.
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

    /// Returns, for each ring of a CPU that came online later, the id to give to its records. Readers of the
    /// recording know neither that ring nor its ids, so its records get the id of the same event on another
    /// CPU.
    fn later_instances(&self, now: &RingSnapshot) -> HashMap<usize, u64> {
        let later = now.open.instances.iter().filter(|one| one[1] >= self.ids.len() as u64);
        let given = |one: &[u64; 4]| {
            let event = now.open.events.iter().find(|event| event.ids.contains(&one[0]))?;
            Some((one[1] as usize, *event.ids.iter().find(|id| self.ids.contains(id))?))
        };
        later.filter_map(given).collect()
    }
}

fn unanswered() -> Error {
    Error::new("its holder is not responding").why("the holder process is stopped or busy")
}

fn ends(rings: &[RingCopy]) -> Vec<u64> {
    rings.iter().map(|ring| ring.end).collect()
}

/// Reverses the order of a backward ring's records: the oldest record comes first. Drops the partly
/// overwritten bytes at the end.
fn reverse_order(records: &[u8]) -> Vec<u8> {
    let all: Vec<&[u8]> = Records::new(records).map(|record| record.bytes).collect();
    all.into_iter().rev().flatten().copied().collect()
}

/// Assigns records to another instance of their event. Samples begin with the id, other records end with it.
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

/// Requests the positions of the rings from the holder.
fn positions(directory: &RunDirectory, id: &str) -> Result<RingSnapshot> {
    let request = HolderRequest::Snapshot { entry: id.to_owned(), after: None };
    copied(ask(directory, &request)?).map(|(snapshot, _)| snapshot)
}

fn copied(answer: (HolderAnswer, Vec<OwnedFd>)) -> Result<(RingSnapshot, File)> {
    let (HolderAnswer::Copied, descriptors) = answer else { return Err(torn()) };
    let Ok([description, bytes]) = <[_; 2]>::try_from(descriptors) else { return Err(torn()) };
    let description = File::from(description);
    if description.metadata().map_err(failed)?.len() > LARGEST_DESCRIPTION {
        return Err(torn());
    }
    let text = piece(&description, 0, None)?;
    Ok((serde_json::from_slice(&text).map_err(|_| torn())?, File::from(bytes)))
}

/// Reads `len` bytes at `at`, or all bytes from `at` on. Does not move the descriptor's offset, because other
/// readers may share the copy.
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
    Error::io("reading a holder's copy of its ring buffers", error)
}

fn torn() -> Error {
    Error::new("the holder sent an incomplete copy of its ring buffers")
        .why("the holder may be running a different version of pmc")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, memfd_create};
    use rustix::net::{
        AddressFamily, RecvFlags, SocketAddrUnix, SocketType, accept, bind, listen, recv, socket,
    };
    use std::os::fd::AsFd;

    use crate::persistent::message::{LONGEST_ANSWER, send};

    /// What a relay fetches from a holder that answers every request with this description and these records.
    fn fetched(copies: &str, records: &[u8]) -> Result<Vec<(usize, Vec<u8>)>> {
        let description = format!(
            r#"{{"events":[{{"name":"e","attr":[1,0,1000],"ids":[77]}}],"sampled":1,
                "instances":[[77,0,0,18446744073709551615]],"guards":18446744073709551615,"rings":[0],
                "ring_bytes":4096,"cpus":"0","pids":[],"owners":[77],"copies":{copies},"lost":0}}"#
        );
        let folder = tempfile::tempdir().expect("a temporary folder");
        let directory = RunDirectory::at(folder.path());
        let listener = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).expect("a socket");
        bind(&listener, &SocketAddrUnix::new(directory.socket()).expect("an address")).expect("it is free");
        listen(&listener, 2).expect("a listener");
        let answer = || {
            let client = accept(&listener).expect("a client");
            recv(&client, &mut [0; 1024][..], RecvFlags::empty()).expect("a request");
            let parts = [description.as_bytes(), records].map(|bytes| {
                let part = memfd_create("part", MemfdFlags::CLOEXEC).expect("a memfd");
                rustix::io::write(&part, bytes).expect("it has room");
                part
            });
            send(&client, &HolderAnswer::Copied, LONGEST_ANSWER, &[parts[0].as_fd(), parts[1].as_fd()])
                .expect("it is sent");
        };
        std::thread::scope(|scope| {
            scope.spawn(|| (0..2).for_each(|_| answer()));
            let mut all = Vec::new();
            Relay::open(directory.clone(), 1, true)?.take_all(|ring, records| {
                all.push((ring, records.to_vec()));
                Ok::<_, Error>(())
            })?;
            Ok(all)
        })
    }

    /// These sizes once overflowed, and the number of the ring was used unchecked.
    #[test]
    fn impossible_copies_are_refused() {
        let record = [9, 0, 0, 0, 0, 0, 16, 0, 77, 0, 0, 0, 0, 0, 0, 0];
        let copy = |ring, len: u64, end: u64| {
            format!(r#"{{"ring":{ring},"len":{len},"is_backward":false,"end":{end}}}"#)
        };
        let sound = fetched(&format!("[{}]", copy(0, 16, 16)), &record);
        assert_eq!(sound.expect("a copy"), [(0, record.to_vec())]);
        for copies in [
            format!("[{},{}]", copy(0, 16, 16), copy(0, u64::MAX, 16)),
            format!("[{}]", copy(0, u64::MAX, u64::MAX)),
            format!("[{}]", copy(7, 16, 16)),
        ] {
            let error = fetched(&copies, &record).expect_err(&copies).to_string();
            assert!(error.contains("incomplete copy"), "{copies}: {error}");
        }
    }
}
