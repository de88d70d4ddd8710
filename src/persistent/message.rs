//! What is said over a holder's socket (`SOCK_SEQPACKET`): one request and its answer, a JSON message each,
//! then the connection ends.
//!
//! Receives and hands on values; bounds what it reads. Descriptors travel beside a message
//! (`SCM_RIGHTS`): sealed copies of what was recorded, or, from owner to owner, the events' own.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Definition, Entry};
use crate::error::{Error, Exit};

/// Bytes of the longest request.
pub const LONGEST_REQUEST: usize = 1 << 16;
/// Bytes of the longest answer: what the kernel's usual send buffer takes at once.
pub const LONGEST_ANSWER: usize = 160 << 10;
/// Descriptors beside a message: what the kernel lets pass (`SCM_MAX_FD`).
pub const MOST_DESCRIPTORS: usize = 253;

/// What is asked. Entries go by name or id.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
#[allow(missing_docs, reason = "the fields are what they are called")]
pub enum Request {
    /// Open it and keep it.
    Add(Definition),
    /// Open them all, then start them all, so that they begin together; keep all of them or none.
    AddTogether(Vec<Definition>),
    /// What has it counted?
    Read { entry: String },
    /// A copy of its records: two descriptors come with the answer, a [`Snapshot`] as JSON, and the bytes
    /// of the rings, one after another.
    Snapshot {
        entry: String,
        /// How far each ring had been copied before ([`RingCopy::end`]): only what is newer is asked for. Of
        /// a ring that is not named, all; `None`: no records, just how far the rings are.
        #[serde(default)]
        after: Option<Vec<u64>>,
    },
    /// Keep events that are open already; their descriptors come with it.
    Adopt { name: String, events: Handover },
    /// Hand the events over: their descriptors come with the answer. Whoever has mapped their rings has them
    /// removed here, which nobody else reads by then.
    Attach { entry: String },
    /// Another name for it.
    Rename { entry: String, name: String },
    /// Close it; forget it if it was lost.
    Remove { entry: String },
}

/// What is answered.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// It is held.
    Held(Box<Entry>),
    /// They are all held, and have begun together.
    Started {
        /// One of them at least counts user mode only: this user may not look into the kernel.
        user_only: bool,
    },
    /// What it has counted.
    Counts(Counts),
    /// They are the asker's.
    Given(Box<Handover>),
    /// The copy lies in the descriptors.
    Copied,
    /// It is done.
    Done,
    /// It cannot be, and why: an [`Error`] for the user.
    Refused(Refused),
}

/// What an entry has counted since it was added.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// The names of the events: one, or as many as an adopted recording had.
    pub events: Vec<String>,
    /// By event and CPU; of processes one row an event, wherever they ran.
    pub rows: Vec<CpuCounts>,
    /// Threads that were opened and have not ended; `None` where whole CPUs are counted.
    pub living: Option<usize>,
}

/// What an event has counted on a CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuCounts {
    /// Index of the event.
    pub event: usize,
    /// Which.
    pub cpu: Option<u32>,
    /// Occurrences (nanoseconds for clocks).
    pub value: u64,
    /// Nanoseconds enabled.
    pub enabled: u64,
    /// Nanoseconds on a counter.
    pub running: u64,
    /// Records for which a ring had no room.
    pub lost: u64,
}

/// An [`Error`] on its way.
#[derive(Debug, Serialize, Deserialize)]
pub struct Refused {
    lines: Vec<String>,
    is_usage: bool,
}

impl From<&Error> for Refused {
    fn from(error: &Error) -> Self {
        let lines = error.to_string().lines().map(str::to_owned).collect();
        Self { lines, is_usage: error.exit_status() == Exit::Usage }
    }
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        let (headline, rest) =
            refused.lines.split_first().map_or(("refused", &[][..]), |(h, rest)| (h, rest));
        let error = if refused.is_usage { Self::usage(headline) } else { Self::new(headline) };
        let rest: Vec<&str> = rest.iter().map(|line| line.trim_start()).collect();
        if rest.is_empty() { error } else { error.detail(rest.join("\n")) }
    }
}

/// Open events on their way to another owner. Their descriptors lie beside it, one an instance, in its order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Handover {
    /// Those that sample, then the one that only tells of mappings, if there is one.
    pub events: Vec<SnapshotEvent>,
    /// How many sample.
    pub sampled: usize,
    /// Each instance: its id, the index of its ring, CPU, thread (`u64::MAX`: any).
    pub instances: Vec<[u64; 4]>,
    /// How many descriptors more lie behind those: they keep the events with their threads.
    #[serde(default)]
    pub guards: usize,
    /// For each ring the index of the instance that it is mapped on.
    pub rings: Vec<usize>,
    /// Bytes of each ring.
    pub ring_bytes: u64,
    /// Whole CPUs are sampled.
    pub cpus: Option<String>,
    /// Threads are sampled.
    pub pids: Vec<u32>,
}

/// What lies in the copy of an entry's rings.
#[derive(Debug, Serialize, Deserialize)]
pub struct Snapshot {
    /// The events whose records they are, and where they are open.
    #[serde(flatten)]
    pub open: Handover,
    /// For each ring the id that misattributed samples in it belong to.
    pub owners: Vec<Option<u64>>,
    /// The copies in the order in which they lie.
    pub copies: Vec<RingCopy>,
    /// Records for which a ring had no room.
    pub lost: u64,
}

/// The copy of a ring.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct RingCopy {
    /// Its index.
    pub ring: usize,
    /// Bytes: perhaps more than were asked for, perhaps fewer, where they were written over.
    pub len: u64,
    /// The newest record comes first.
    pub is_backward: bool,
    /// Bytes ever written into the ring, up to what was copied.
    pub end: u64,
}

/// An event that is open.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SnapshotEvent {
    /// Its name for users.
    pub name: String,
    /// The words of its `perf_event_attr`.
    pub attr: Vec<u64>,
    /// The ids of its instances.
    pub ids: Vec<u64>,
}

/// Sends a message whole, without waiting for room where the socket does not block.
///
/// # Errors
/// The kernel's; a message that is longer than any may be.
pub fn send(
    socket: impl AsFd,
    message: &impl Serialize,
    longest: usize,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    if bytes.len() > longest {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the message is too long"));
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        beside.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    sendmsg(socket, &[IoSlice::new(&bytes)], &mut beside, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives a message; `None` when the other side has gone. What is no such message is an error.
///
/// # Errors
/// The kernel's; `InvalidData` for bytes that mean nothing or are too many.
pub fn receive<T: DeserializeOwned>(
    socket: impl AsFd,
    longest: usize,
) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut bytes = vec![0; longest];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let got = recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut beside, RecvFlags::CMSG_CLOEXEC)?;
    let descriptors = beside
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        })
        .flatten()
        .collect();
    if got.bytes == 0 {
        return Ok(None);
    }
    if got.flags.contains(ReturnFlags::TRUNC) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the message is too long"));
    }
    Ok(Some((serde_json::from_slice(&bytes[..got.bytes])?, descriptors)))
}
