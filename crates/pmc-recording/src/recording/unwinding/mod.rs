//! Unwinds stack copies while recording: a thread between the rings and the file replaces the copies with
//! call chains.
//!
//! Receives the contents of the rings, round by round, and synthesized records for existing processes.
//! Returns records for the file, sorted by time. Decides what to do when unwinding cannot keep up. The module
//! connects measuring (the rings) and reading (address spaces and unwind tables).
//!
//! ```text
//!  rings ──copy──► round ──(bounded)──► worker: sort by time, follow mappings, unwind ──► records ──► file
//!                                          ▲                                  │
//!                                  table cache: reads them           eventfd wakes the loop
//! ```
//!
//! A sample can be unwound only when all earlier mappings are known, and those may be in another CPU's ring.
//! Every round therefore drains the rings twice. Everything that the first pass finds in a ring was written
//! before the second pass began. The second pass therefore delivers all mappings that are older than the
//! first pass's newest sample. Samples of the second pass wait for the next round. There are only a few of
//! them, because the second pass follows immediately.
//!
//! **Slow unwinding loses nothing.** There are three possible bottlenecks, and pmc handles each one
//! differently:
//!
//! * *The tables of a huge program are being read* (`table_cache`, a separate thread). The worker waits once
//!   for [`worker::PATIENCE`]. After that, it writes samples that need these tables unchanged, with registers
//!   and stack, as perf does. They belong to a separate event (a *fallback event*, see
//!   [`record::unwound`](pmc_perfdata::record::unwound)). A reader unwinds these samples later. Because they
//!   are written without further delay, a killed recorder loses no more than usual.
//! * *There are more samples than the worker can unwind.* Samples are then written to the file unchanged,
//!   which costs only a copy. This happens when [`HURRY`] bytes wait, when the oldest round has waited for
//!   [`OLD`], or when a round takes too long.
//! * *The disk is too slow even for these copies.* When [`MOST`] bytes wait, the rings are not read until
//!   some are written. The kernel counts the records that do not fit into the rings. No recorder can avoid
//!   this limit.
//!
//! The alternatives are worse. If pmc stopped reading the rings while it reads tables, samples would be lost
//! after about 60 ms. A 2 MiB ring holds only 250 copies. An unbounded queue would exhaust the memory of the
//! recorded machine. An unused fallback event costs nothing. Its attr is in the header from the start, but
//! readers see it only after its first sample has been written. Samples of 32-bit Arm processes also go to
//! fallback events, because perf can unwind them and pmc cannot.

mod table_cache;
mod worker;

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};

use pmc_perfdata::record::Layouts;
use pmc_perfdata::record::unwound::StrippedFields;
use pmc_sys::error::{Error, Result};
use worker::RoundUnwinder;

/// Number of waiting bytes beyond which samples are written without unwinding.
const HURRY: usize = 64 << 20;
/// Maximum age of a waiting round before samples are written without unwinding.
const OLD: Duration = Duration::from_millis(300);
/// Number of waiting bytes beyond which the rings are not read.
const MOST: usize = 256 << 20;

/// Maximum number of used buffers to keep, and their maximum size in bytes.
const MOST_SPARE: usize = 2;
const LARGEST_SPARE: usize = 8 << 20;

enum WorkerMessage {
    /// Synthesized records, which are already in the file.
    Known(Vec<u8>),
    /// The contents of the rings.
    Round(UnwindRound),
    /// The last round: no record needs to wait for another round.
    End(UnwindRound),
}

/// Records of one round. The records of the second pass begin at `second`.
#[derive(Default)]
struct UnwindRound {
    bytes: Vec<u8>,
    second: Option<usize>,
}

/// Counts of how call chains end.
#[derive(Debug, Clone, Copy, Default)]
pub struct ChainEndCounts {
    /// Total number of chains.
    pub walked: u64,
    /// Number of chains that end because the stack copy does not contain the whole stack.
    pub cut: u64,
    /// Number of chains that were completed from earlier samples.
    pub joined: u64,
}

impl std::ops::AddAssign for ChainEndCounts {
    fn add_assign(&mut self, other: Self) {
        self.walked += other.walked;
        self.cut += other.cut;
        self.joined += other.joined;
    }
}

/// The result of a round.
#[derive(Default)]
pub(crate) struct UnwoundRound {
    /// Whole records, sorted by time.
    pub(crate) records: Vec<u8>,
    /// Number of samples that belong to a fallback event.
    pub(crate) kept: u64,
    /// Counts of how the round's chains end.
    pub(crate) ends: ChainEndCounts,
    /// CPU time for reading unwind tables since the start, in nanoseconds.
    pub(crate) tables_cpu_ns: u64,
    /// Number of bytes that were read from the rings.
    taken: usize,
    /// The buffer that contained these bytes, for reuse.
    bytes: Vec<u8>,
}

/// The main thread's handle to the worker.
pub(crate) struct UnwindWorker {
    orders: Option<Sender<WorkerMessage>>,
    done: Receiver<UnwoundRound>,
    thread: Option<JoinHandle<()>>,
    round: UnwindRound,
    /// Buffers for reuse, because allocating new memory takes as long as a copy.
    spare: Vec<Vec<u8>>,
    waiting: usize,
    /// The times at which the waiting rounds were sent.
    since: VecDeque<Instant>,
    hurry: Arc<AtomicBool>,
    wake: Arc<OwnedFd>,
}

impl UnwindWorker {
    /// Starts the worker. `layouts` describes the records in the rings, `most` is the maximum chain length,
    /// and `joins` enables completing truncated stacks from earlier samples.
    pub(crate) fn start(layouts: Layouts, lost: StrippedFields, most: usize, joins: bool) -> Result<Self> {
        let starting = |error| Error::io("starting a thread to unwind stacks", error);
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| starting(error.into()))?;
        let wake = Arc::new(wake);
        let hurry = Arc::new(AtomicBool::new(false));
        let (orders, taken) = channel();
        let (told, done) = channel();
        let (is_hurried, waker) = (Arc::clone(&hurry), Arc::clone(&wake));
        let work = move || {
            let mut unwinder = RoundUnwinder::new(layouts, lost, most, joins, is_hurried);
            while let Ok(order) = taken.recv() {
                if let Some(done) = unwinder.obey(order)
                    && told.send(done).is_err()
                {
                    return;
                }
                let _ = rustix::io::write(&waker, &1u64.to_ne_bytes());
            }
        };
        let thread = std::thread::Builder::new().name("unwind".to_owned()).spawn(work).map_err(starting)?;
        Ok(Self {
            orders: Some(orders),
            done,
            thread: Some(thread),
            round: UnwindRound::default(),
            spare: Vec::new(),
            waiting: 0,
            since: VecDeque::new(),
            hurry,
            wake,
        })
    }

    /// Returns the descriptor that becomes readable when a round is done.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Passes synthesized records to the worker.
    pub(crate) fn tell(&mut self, records: &[u8]) {
        self.order(WorkerMessage::Known(records.to_vec()));
    }

    /// Returns the buffer to which this pass appends whole records.
    pub(crate) fn round(&mut self) -> &mut Vec<u8> {
        &mut self.round.bytes
    }

    /// Begins the second pass.
    pub(crate) fn second_pass(&mut self) {
        self.round.second = Some(self.round.bytes.len());
    }

    /// Whether the waiting stacks exceed the limit, so the rings should not be read for now.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting > MOST
    }

    /// Sends the round to the worker, after both passes.
    pub(crate) fn end_round(&mut self) {
        if !self.round.bytes.is_empty() {
            let next = UnwindRound { bytes: self.spare.pop().unwrap_or_default(), second: None };
            let round = std::mem::replace(&mut self.round, next);
            self.waiting += round.bytes.len();
            self.since.push_back(Instant::now());
            self.order(WorkerMessage::Round(round));
        }
        self.set_hurry();
    }

    fn set_hurry(&self) {
        let is_old = self.since.front().is_some_and(|since| since.elapsed() > OLD);
        self.hurry.store(is_old || self.waiting > HURRY, Ordering::Relaxed);
    }

    fn order(&mut self, order: WorkerMessage) {
        if let Some(orders) = &self.orders {
            // If the worker has ended, the next attempt to receive results reports the error.
            let _ = orders.send(order);
        }
    }

    /// Returns the next finished round, if any.
    ///
    /// # Errors
    /// If the worker has ended.
    pub(crate) fn next(&mut self) -> Result<Option<UnwoundRound>> {
        match self.done.try_recv() {
            Ok(done) => Ok(Some(self.took(done))),
            Err(TryRecvError::Empty) => {
                let mut count = [0; 8];
                let _ = rustix::io::read(&*self.wake, &mut count);
                // A result may have arrived between the check and the read.
                Ok(self.done.try_recv().ok().map(|done| self.took(done)))
            }
            Err(TryRecvError::Disconnected) => Err(gone()),
        }
    }

    /// Waits for the next finished round; `None` if no round is in flight.
    ///
    /// # Errors
    /// If the worker has ended.
    pub(crate) fn wait(&mut self) -> Result<Option<UnwoundRound>> {
        if self.waiting == 0 {
            return Ok(None);
        }
        let done = self.done.recv().map_err(|_| gone())?;
        Ok(Some(self.took(done)))
    }

    fn took(&mut self, mut done: UnwoundRound) -> UnwoundRound {
        let mut room = std::mem::take(&mut done.bytes);
        if self.spare.len() < MOST_SPARE && room.capacity() <= LARGEST_SPARE {
            room.clear();
            self.spare.push(room);
        }
        self.waiting -= done.taken.min(self.waiting);
        self.since.pop_front();
        self.set_hurry();
        done
    }

    /// Sends the last round, and returns all remaining results, including the records that were held back.
    ///
    /// # Errors
    /// If the worker has ended.
    pub(crate) fn last(&mut self) -> Result<Vec<UnwoundRound>> {
        let mut all = Vec::new();
        let round = std::mem::take(&mut self.round);
        self.waiting += round.bytes.len();
        self.order(WorkerMessage::End(round));
        self.orders = None;
        while let Ok(done) = self.done.recv() {
            all.push(self.took(done));
        }
        match self.thread.take().map(JoinHandle::join) {
            Some(Err(_)) => Err(gone()),
            _ => Ok(all),
        }
    }
}

fn gone() -> Error {
    Error::new("the thread that unwinds stacks has ended").try_this("--unwind deferred")
}
