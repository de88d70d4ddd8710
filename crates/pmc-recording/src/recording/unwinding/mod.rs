//! Unwinds stack copies while recording: a thread between the rings and the file replaces the copies with
//! call chains.
//!
//! Receives the contents of the rings, round by round, and synthesized records for existing processes.
//! Returns records for the file, sorted by time. [`UnwindWorker`] decides what happens when unwinding cannot
//! keep up.
//!
//! ```text
//! rings ──copy──► round ──(bounded)──► worker: sort by time, follow mappings, unwind ──► records ──► file
//!                                         ▲                                  │
//!                                 table cache: reads them           eventfd wakes the loop
//! ```

mod memory;
mod stream;
mod table_cache;
mod worker;

pub(crate) use self::stream::StreamUnwinder;

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};

use super::misattributed_samples;
use super::off_cpu::events::OffCpuSource;
use super::off_cpu::wait::StackSampling;
use super::sources::RecordSources;
use pmc_perfdata::record::unwound::{StrippedFields, write_without_padding};
use pmc_perfdata::record::{Layouts, RawRecord, walk};
use pmc_sys::error::{Error, Result};
use pmc_sys::sys::{clock, credentials};
use worker::RoundUnwinder;

/// Number of waiting bytes beyond which samples are written without unwinding.
const HURRY: usize = 64 << 20;
/// Maximum age of a waiting round before samples are written without unwinding.
const OLD: Duration = Duration::from_millis(300);
/// Number of waiting bytes beyond which the rings are not read.
const MAX_WAITING_BYTES: usize = 256 << 20;

/// Maximum number of used buffers to keep, and their maximum size in bytes.
const MOST_SPARE: usize = 2;
const LARGEST_SPARE: usize = 8 << 20;

/// How far the worker is behind.
#[derive(Default)]
struct Backlog {
    /// Whether a round has waited for [`OLD`], and a reader can unwind its samples.
    is_old: AtomicBool,
    /// Whether [`HURRY`] bytes wait.
    is_large: AtomicBool,
}

impl Backlog {
    fn is_old_or_large(&self) -> bool {
        self.is_old.load(Ordering::Relaxed) || self.is_large()
    }

    fn is_large(&self) -> bool {
        self.is_large.load(Ordering::Relaxed)
    }
}

enum WorkerMessage {
    /// Synthesized records, which are already in the file.
    Known(Vec<u8>),
    /// The events have been switched on. Answers with the time at which the measurement begins.
    Begin(Sender<u64>),
    /// From this time on, stacks of switches are sampled in this way.
    StackSampling(u64, StackSampling),
    /// The contents of the rings.
    Round(UnwindRound),
    /// The last round, with the time at which it ended. No record has to wait for another round.
    End(UnwindRound, u64),
}

/// Records of one round. The records of the second pass begin at `second`.
#[derive(Default)]
struct UnwindRound {
    bytes: Vec<u8>,
    second: Option<usize>,
    /// For a live view: the time before which the round contains all records.
    settled: Option<u64>,
}

/// Number of call chains, by how they end.
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

/// Number of samples that keep their stack copy, because they were not unwound while recording.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeptCopies {
    /// Number of all such samples.
    pub samples: u64,
    /// Number of those from 32-bit Arm processes, which pmc does not unwind.
    pub compat: u64,
}

impl std::ops::AddAssign for KeptCopies {
    fn add_assign(&mut self, other: Self) {
        self.samples += other.samples;
        self.compat += other.compat;
    }
}

/// The result of a round.
#[derive(Default)]
pub(crate) struct UnwoundRound {
    /// Whole records, sorted by time.
    pub(crate) records: Vec<u8>,
    /// The samples that belong to a fallback event.
    pub(crate) kept: KeptCopies,
    /// Number of call chains in the round, by how they end.
    pub(crate) ends: ChainEndCounts,
    /// CPU time for reading unwind tables since the start, in nanoseconds.
    pub(crate) tables_cpu_ns: u64,
    /// For a live view: the time up to which `records` is complete, with the parts of waits in progress.
    pub(crate) settled: Option<u64>,
    /// Number of bytes that were read from the rings.
    taken: usize,
    /// The buffer that contained these bytes, for reuse.
    bytes: Vec<u8>,
}

/// The main thread's handle to the worker.
///
/// A sample can be unwound only when all earlier mappings are known, and those may be in another CPU's ring.
/// Every round therefore drains the rings twice. Everything that the first pass finds in a ring was written
/// before the second pass began. After the second pass, all mappings that are older than the newest sample of
/// the first pass are therefore known. Samples of the second pass wait for the next round. There are only a
/// few of them, because the second pass follows immediately.
///
/// # Slow unwinding loses nothing
///
/// There are three possible bottlenecks, and pmc handles each one differently:
///
/// * *The tables of a huge program are being read* (`table_cache`, a separate thread). The worker waits once
///   for [`worker::PATIENCE`]. After that, it writes samples that need these tables unchanged, with registers
///   and stack, as perf does. They belong to a separate event (a *fallback event*, see
///   [`record::unwound`](pmc_perfdata::record::unwound)). A reader unwinds these samples later. Because they
///   are written without further delay, a killed recorder loses no more than usual.
///   The stacks of switches are not written, so for these the worker waits until the tables have been read,
///   at most [`worker::PATIENCE_FOR_SWITCHES`], and until [`HURRY`] bytes wait.
/// * *There are more samples than the worker can unwind.* Samples are then written to the file unchanged,
///   which costs only a copy. This happens when [`HURRY`] bytes wait, when the oldest round has waited for
///   [`OLD`], or when a round takes too long.
/// * *The disk is too slow even for these copies.* When [`MAX_WAITING_BYTES`] bytes wait, the rings are not
///   read until some are written. The kernel counts the records that do not fit into the rings. No recorder
///   can avoid this limit.
///
/// The alternatives would be worse. If pmc stopped reading the rings while it reads tables, samples would be
/// lost after about 60 ms. A 2 MiB ring holds only 250 copies. An unbounded queue would exhaust the memory of
/// the recorded machine. An unused fallback event costs nothing. Its attr is in the header from the start,
/// but readers see it only after its first sample has been written. Samples of 32-bit Arm processes also go
/// to fallback events, because perf can unwind them and pmc cannot.
pub(crate) struct UnwindWorker {
    orders: Option<Sender<WorkerMessage>>,
    done: Receiver<UnwoundRound>,
    thread: Option<JoinHandle<()>>,
    round: UnwindRound,
    /// Layouts of the records in the rings.
    layouts: Layouts,
    joint: Vec<u8>,
    /// Buffers for reuse, because allocating new memory takes as long as a copy.
    spare: Vec<Vec<u8>>,
    waiting: usize,
    /// The times at which the waiting rounds were sent.
    since: VecDeque<Instant>,
    /// See [`UnwindWorker::start`].
    defers: bool,
    backlog: Arc<Backlog>,
    wake: Arc<OwnedFd>,
}

impl UnwindWorker {
    /// Starts the worker. `layouts` describes the records in the rings, `most` is the maximum chain length,
    /// and `joins` enables completing truncated stacks from earlier samples. `defers`: whether a reader can
    /// unwind samples that keep their copies; otherwise slow unwinding only delays the records. With
    /// `off_cpu`, the worker also turns context switches into samples of off-CPU time.
    pub(crate) fn start(
        layouts: Layouts,
        lost: StrippedFields,
        most: usize,
        joins: bool,
        defers: bool,
        off_cpu: Option<OffCpuSource>,
    ) -> Result<Self> {
        let starting = |error| Error::io("starting a thread to unwind stacks", error);
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| starting(error.into()))?;
        let wake = Arc::new(wake);
        let backlog = Arc::new(Backlog::default());
        let (orders, taken) = channel();
        let (told, done) = channel();
        let (of_unwinder, waker) = (Arc::clone(&backlog), Arc::clone(&wake));
        let of_worker = layouts.clone();
        let work = move || {
            credentials::keep_for_reading();
            let mut unwinder = RoundUnwinder::new(of_worker, lost, most, joins, of_unwinder, off_cpu);
            unwinder.defers = defers;
            while let Ok(order) = taken.recv() {
                if let Some(done) = unwinder.handle(order)
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
            layouts,
            joint: Vec::new(),
            spare: Vec::new(),
            waiting: 0,
            since: VecDeque::new(),
            defers,
            backlog,
            wake,
        })
    }

    /// Returns the descriptor that becomes readable when a round is done.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Passes synthesized records to the worker.
    pub(crate) fn send_synthesized(&mut self, records: &[u8]) {
        self.order(WorkerMessage::Known(records.to_vec()));
    }

    /// Begins the measurement, after the events have been switched on. Measures waits, and writes samples,
    /// from the time that the worker sends when it knows the state of all threads.
    pub(crate) fn begin_window(&mut self) -> Receiver<u64> {
        let (answer, begun) = channel();
        self.order(WorkerMessage::Begin(answer));
        begun
    }

    /// Adds the contents of a ring to the round. `owner` is the id of the event to which misattributed
    /// samples belong. Calls `other` for records that are not samples, with the round. Returns the number of
    /// samples that belong to no event.
    pub(crate) fn take_ring(
        &mut self,
        slices: &[&[u8]],
        owner: Option<u64>,
        mut other: impl FnMut(&RawRecord<'_>, &mut Vec<u8>),
    ) -> u64 {
        let Self { round: UnwindRound { bytes: out, .. }, layouts, joint, .. } = self;
        let mut left_out = 0;
        out.reserve(slices.iter().map(|slice| slice.len()).sum());
        walk(slices, joint, |record| match layouts.sample(record) {
            Some((_, sample)) => write_without_padding(record, &sample, out),
            None if misattributed_samples::is_misattributed(record, layouts) => {
                left_out += u64::from(!misattributed_samples::write_with_own_id(record, owner, out));
            }
            None => {
                out.extend_from_slice(record.bytes);
                other(record, out);
            }
        });
        left_out
    }

    /// Adds the contents of all rings to the round. For each ring, `owners` has the id of the event to which
    /// misattributed samples belong. Returns whether there were records.
    ///
    /// # Errors
    /// Fails if a ring cannot be read.
    pub(crate) fn take_rings(&mut self, sources: &mut RecordSources, owners: &[Option<u64>]) -> Result<bool> {
        let bytes = sources.drain(|ring, slices| {
            self.take_ring(slices, owners.get(ring).copied().flatten(), |_, _| {});
            Ok::<(), Error>(())
        })?;
        Ok(bytes > 0)
    }

    /// Tells the worker that the sampling of switch stacks changes at this time.
    pub(in crate::recording) fn samples_stacks(&mut self, time: u64, sampling: StackSampling) {
        self.order(WorkerMessage::StackSampling(time, sampling));
    }

    /// Returns the size of the current round.
    pub(crate) fn round_bytes(&self) -> usize {
        self.round.bytes.len()
    }

    /// Begins the second pass.
    pub(crate) fn second_pass(&mut self) {
        self.round.second = Some(self.round.bytes.len());
    }

    /// Sends the round to the worker, after both passes. Returns whether there were records.
    pub(crate) fn end_round(&mut self) -> bool {
        let has_records = !self.round.bytes.is_empty();
        if has_records {
            self.send_round();
        }
        self.note_backlog();
        has_records
    }

    /// Like [`end_round`](Self::end_round), for a live view. The round contains all records up to the time
    /// `settled`, and its result contains the parts of waits in progress.
    pub(crate) fn end_live_round(&mut self, settled: u64) {
        self.round.settled = Some(settled);
        self.send_round();
        self.note_backlog();
    }

    fn send_round(&mut self) {
        let next = UnwindRound { bytes: self.spare.pop().unwrap_or_default(), ..UnwindRound::default() };
        let round = std::mem::replace(&mut self.round, next);
        self.waiting += round.bytes.len();
        self.since.push_back(Instant::now());
        self.order(WorkerMessage::Round(round));
    }

    /// Number of rounds that the worker has not finished.
    pub(crate) fn rounds_in_flight(&self) -> usize {
        self.since.len()
    }

    fn note_backlog(&self) {
        let is_old = self.defers && self.since.front().is_some_and(|since| since.elapsed() > OLD);
        self.backlog.is_old.store(is_old, Ordering::Relaxed);
        self.backlog.is_large.store(self.waiting > HURRY, Ordering::Relaxed);
    }

    fn order(&mut self, order: WorkerMessage) {
        if let Some(orders) = &self.orders {
            // If the worker has ended, the next attempt to receive results reports the error.
            let _ = orders.send(order);
        }
    }

    /// Returns the next finished round, if any. Waits for it if the waiting stacks exceed the limit, so that
    /// the rings are not read meanwhile.
    ///
    /// # Errors
    /// Fails if the worker has ended.
    pub(crate) fn next(&mut self) -> Result<Option<UnwoundRound>> {
        if self.waiting > MAX_WAITING_BYTES {
            return self.wait();
        }
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
    /// Fails if the worker has ended.
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
        self.note_backlog();
        done
    }

    /// Sends the last round, and returns all remaining results, including the records that were held back.
    ///
    /// # Errors
    /// Fails if the worker has ended.
    pub(crate) fn last(&mut self) -> Result<Vec<UnwoundRound>> {
        let mut all = Vec::new();
        let round = std::mem::take(&mut self.round);
        self.waiting += round.bytes.len();
        self.order(WorkerMessage::End(round, clock::monotonic_ns()));
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

pub(crate) fn gone() -> Error {
    Error::new("the stack-unwinding thread has exited").try_options("--unwind deferred")
}
