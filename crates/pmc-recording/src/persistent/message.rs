//! Messages on a holder's socket (`SOCK_SEQPACKET`). Each connection carries one request and its answer, both
//! in JSON, and is then closed.
//!
//! Sends and receives values, and limits the size of received messages. Descriptors are sent along with a
//! message (`SCM_RIGHTS`): sealed copies of records, or the events themselves if another process takes them
//! over.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::retry_on_intr;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{EntryDefinition, PersistentEntry};
use pmc_sys::error::{Error, Exit};

/// Maximum size of a request in bytes.
pub const LONGEST_REQUEST: usize = 1 << 16;
/// Maximum size of an answer in bytes, which fits into the kernel's default send buffer.
pub const LONGEST_ANSWER: usize = 160 << 10;
/// Maximum number of descriptors per message (the kernel's `SCM_MAX_FD`).
pub const MOST_DESCRIPTORS: usize = 253;

/// A request to a holder. Entries are identified by name or id.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
#[allow(missing_docs, reason = "the field names are self-explanatory")]
pub enum HolderRequest {
    /// Open an event and keep it.
    Add(EntryDefinition),
    /// Open all events, then start them together. Keep either all of them or none.
    AddTogether(Vec<EntryDefinition>),
    /// Read an entry's counts.
    Read { entry: String },
    /// Copy an entry's records. The answer has two descriptors: a [`RingSnapshot`] as JSON, and the bytes of
    /// the rings, one ring after the other.
    Snapshot {
        entry: String,
        /// For each ring, the position up to which it has already been copied ([`RingCopy::end`]), so that
        /// only newer records are requested. Rings without a position are copied completely. `None` requests
        /// only the current positions, without records.
        #[serde(default)]
        after: Option<Vec<u64>>,
    },
    /// Keep events that are already open; the request contains their descriptors.
    Adopt { name: String, events: Handover },
    /// Hand the events over; the answer contains their descriptors. After the new owner has mapped the rings,
    /// it asks the holder to remove the entry. Until then, no other process reads the rings.
    Attach { entry: String },
    /// Rename an entry.
    Rename { entry: String, name: String },
    /// Close an entry, or forget a lost entry.
    Remove { entry: String },
}

/// A holder's answer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HolderAnswer {
    /// The entry is now held.
    Held(Box<PersistentEntry>),
    /// All entries are now held, and have been started together.
    Started {
        /// Whether at least one entry counts only user mode, because the user may not measure the kernel.
        user_only: bool,
    },
    /// The entry's counts.
    Counts(EntryCounts),
    /// The events now belong to the requester.
    Given(Box<Handover>),
    /// The copy is returned in the descriptors.
    Copied,
    /// Done.
    Done,
    /// The request was refused, with an [`Error`] for the user.
    Refused(RefusalMessage),
}

/// Counts of an entry since it was added.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryCounts {
    /// Names of the events. There are several if the entry is an adopted recording.
    pub events: Vec<String>,
    /// Counts by event and CPU. Events on processes have one row each.
    pub rows: Vec<CpuCounts>,
    /// Number of threads with this event that have not ended; `None` if whole CPUs are counted.
    pub living: Option<usize>,
}

/// The count of an event on a CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuCounts {
    /// Index of the event.
    pub event: usize,
    /// The CPU; `None` for events on processes.
    pub cpu: Option<u32>,
    /// Occurrences (nanoseconds for clocks).
    pub value: u64,
    /// Nanoseconds enabled.
    pub enabled: u64,
    /// Nanoseconds on a counter.
    pub running: u64,
    /// Number of records for which a ring had no room.
    pub lost: u64,
}

/// An [`Error`] in a message.
#[derive(Debug, Serialize, Deserialize)]
pub struct RefusalMessage {
    lines: Vec<String>,
    is_usage: bool,
}

impl From<&Error> for RefusalMessage {
    fn from(error: &Error) -> Self {
        let lines = error.to_string().lines().map(str::to_owned).collect();
        Self { lines, is_usage: error.exit_status() == Exit::Usage }
    }
}

impl From<RefusalMessage> for Error {
    fn from(refused: RefusalMessage) -> Self {
        let (headline, rest) =
            refused.lines.split_first().map_or(("refused", &[][..]), |(h, rest)| (h, rest));
        let error = if refused.is_usage { Self::usage(headline) } else { Self::new(headline) };
        let rest: Vec<&str> = rest.iter().map(|line| line.trim_start()).collect();
        if rest.is_empty() { error } else { error.detail(rest.join("\n")) }
    }
}

/// Description of open events for their new owner. Their descriptors are sent with it, one per instance, in
/// the same order.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Handover {
    /// The sampled events, followed by the event that tracks mappings, if any.
    pub events: Vec<SnapshotEvent>,
    /// Number of sampled events.
    pub sampled: usize,
    /// Each instance: its id, the index of its ring, its CPU and its thread (`u64::MAX`: any).
    pub instances: Vec<[u64; 4]>,
    /// Number of additional descriptors after those of the instances. They keep the events attached to their
    /// threads.
    #[serde(default)]
    pub guards: usize,
    /// For each ring, the index of the instance on which it is mapped.
    pub rings: Vec<usize>,
    /// Size of each ring in bytes.
    pub ring_bytes: u64,
    /// List of CPUs, if whole CPUs are sampled.
    pub cpus: Option<String>,
    /// Threads, if threads are sampled.
    pub pids: Vec<u32>,
}

/// Description of a copy of an entry's rings.
#[derive(Debug, Serialize, Deserialize)]
pub struct RingSnapshot {
    /// The events to which the records belong, and the targets of these events.
    #[serde(flatten)]
    pub open: Handover,
    /// For each ring, the id of the event to which misattributed samples belong.
    pub owners: Vec<Option<u64>>,
    /// The copies, in the order of their bytes.
    pub copies: Vec<RingCopy>,
    /// Number of records for which a ring had no room.
    pub lost: u64,
}

/// A part of a copy: the bytes of one ring.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct RingCopy {
    /// Index of the ring.
    pub ring: usize,
    /// Size in bytes. The copy may contain more than was requested, or less if records were overwritten.
    pub len: u64,
    /// Whether the newest record comes first.
    pub is_backward: bool,
    /// Total number of bytes that have been written to the ring, up to the end of the copy.
    pub end: u64,
}

/// An open event.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SnapshotEvent {
    /// The event's name for users.
    pub name: String,
    /// The words of its `perf_event_attr`.
    pub attr: Vec<u64>,
    /// The ids of its instances.
    pub ids: Vec<u64>,
}

/// Sends a whole message. Does not wait for room if the socket is non-blocking.
///
/// # Errors
/// Returns the kernel's error, or an error if the message exceeds the maximum size.
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
    retry_on_intr(|| sendmsg(&socket, &[IoSlice::new(&bytes)], &mut beside, SendFlags::NOSIGNAL))?;
    Ok(())
}

/// Receives a message; `None` if the peer has closed the connection. Without `takes_descriptors`, the kernel
/// discards the descriptors of the message. Descriptors of other users must not be received at all, because
/// even closing one can block (a file on the user's own FUSE file system).
///
/// # Errors
/// Returns the kernel's error, or `InvalidData` for a message that is invalid or too long.
pub fn receive<T: DeserializeOwned>(
    socket: impl AsFd,
    longest: usize,
    takes_descriptors: bool,
) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut bytes = vec![0; longest];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let space = if takes_descriptors { &mut space[..] } else { &mut [] };
    let mut beside = RecvAncillaryBuffer::new(space);
    let got = retry_on_intr(|| {
        recvmsg(&socket, &mut [IoSliceMut::new(&mut bytes)], &mut beside, RecvFlags::CMSG_CLOEXEC)
    })?;
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

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    #[test]
    fn descriptors_are_received_only_if_wanted() {
        let (one, other) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        let request = HolderRequest::Read { entry: "faults".to_owned() };
        let (end, written) = rustix::pipe::pipe().unwrap();
        for takes_descriptors in [true, false] {
            send(&one, &request, LONGEST_REQUEST, &[written.as_fd()]).unwrap();
            let received = receive::<HolderRequest>(&other, LONGEST_REQUEST, takes_descriptors).unwrap();
            let (_, descriptors) = received.unwrap();
            assert_eq!(descriptors.len(), usize::from(takes_descriptors));
        }
        // The pipe has no other writers: the descriptors that were not received were closed.
        drop(written);
        assert_eq!(rustix::io::read(&end, &mut [0; 1]), Ok(0));
    }
}
