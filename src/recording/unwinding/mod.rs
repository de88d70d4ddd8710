//! Copies of stacks are unwound while recording: between the rings and the file stands a thread that makes
//! call chains of them.
//!
//! Receives what the rings hold, round by round, and what was told of processes that were there before; hands
//! on records for the file, in the order of time. Decides what happens when unwinding cannot keep up. The two
//! wings meet here: rings are measuring, address spaces and unwind tables are reading.
//!
//! ```text
//!  rings ──copy──► round ──(bounded)──► worker: sort by time, follow mappings, unwind ──► records ──► file
//!                                          ▲                                  │
//!                                  table cache: reads them           eventfd wakes the loop
//! ```
//!
//! A sample can be unwound only when everything that was mapped before it is known, and that may lie in
//! another CPU's ring. So every round empties the rings twice: whatever a ring held at the first pass was
//! written before the second pass began, so the second brings all mappings that are older than the newest
//! sample of the first. Samples of the second pass (few: it follows at once) wait for the next round.
//!
//! **Nothing is lost when unwinding is slow.** Three things can hold it up, and each has its answer:
//!
//! * *Tables of a huge program are being read* (`table_cache`, a thread of its own). The worker waits
//!   [`worker::PATIENCE`] once, then writes samples that need them as they are: with registers and stack, as
//!   perf would, for an event of their own (a *twin*, see [`record::unwound`](crate::record::unwound)). A
//!   reader unwinds them later. A killed recorder thus misses no more than otherwise.
//! * *More samples than the worker can unwind*: when [`HURRY`] bytes wait, or the oldest for [`OLD`], or a
//!   round takes too long, samples go to the file as they are, which costs a copy.
//! * *The disk is slower than that*: when [`MOST`] bytes wait, rings are left alone until some are written,
//!   and the kernel counts what finds no room; that is where any recorder ends.
//!
//! The alternatives were weaker: to stop emptying rings at once loses samples after some 60 ms of reading
//! tables (a ring of 2 MiB holds 250 copies), and a queue without bounds is memory that the recorded machine
//! lacks. The twin costs nothing while it is not needed: its request lies in the header from the start, but
//! is only made visible with its first sample. Samples of 32-bit Arm processes, which pmc cannot unwind and
//! perf can, take the same way.

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

use crate::error::{Error, Result};
use crate::record::Layouts;
use crate::record::unwound::Lost;
use worker::RoundUnwinder;

/// Bytes that wait beyond which samples are written as they are.
const HURRY: usize = 64 << 20;
/// How long a round may wait before samples are written as they are.
const OLD: Duration = Duration::from_millis(300);
/// Bytes that wait beyond which nothing is taken out of rings.
const MOST: usize = 256 << 20;

/// How much used room is kept, and how large it may be, in bytes.
const MOST_SPARE: usize = 2;
const LARGEST_SPARE: usize = 8 << 20;

/// What the worker is told.
enum Order {
    /// Records of what was there before, which are in the file already.
    Known(Vec<u8>),
    /// What the rings held.
    Round(Round),
    /// No more will come: nothing needs to wait.
    End(Round),
}

/// Records of one round: those of the first pass, then, from `second` on, those of the second.
#[derive(Default)]
struct Round {
    bytes: Vec<u8>,
    second: Option<usize>,
}

/// How chains end.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ends {
    /// All.
    pub(crate) walked: u64,
    /// Where the copy of the stack ends, and the stack does not.
    pub(crate) cut: u64,
    /// Where they were joined with what was seen before.
    pub(crate) joined: u64,
}

impl std::ops::AddAssign for Ends {
    fn add_assign(&mut self, other: Self) {
        self.walked += other.walked;
        self.cut += other.cut;
        self.joined += other.joined;
    }
}

/// What became of a round.
#[derive(Default)]
pub(crate) struct Done {
    /// Whole records, by time.
    pub(crate) records: Vec<u8>,
    /// Samples among them that are a twin's.
    pub(crate) kept: u64,
    /// How its chains end.
    pub(crate) ends: Ends,
    /// CPU time that reading unwind tables has taken since the start, in nanoseconds.
    pub(crate) tables_cpu_ns: u64,
    /// Bytes that the rings held.
    taken: usize,
    /// Where they lay: room for another round.
    bytes: Vec<u8>,
}

/// The main thread's end of it.
pub(crate) struct Unwinding {
    orders: Option<Sender<Order>>,
    done: Receiver<Done>,
    thread: Option<JoinHandle<()>>,
    round: Round,
    /// Room that was used before: fresh memory costs as much as a copy.
    spare: Vec<Vec<u8>>,
    waiting: usize,
    /// When the rounds that wait were handed over.
    since: VecDeque<Instant>,
    hurry: Arc<AtomicBool>,
    wake: Arc<OwnedFd>,
}

impl Unwinding {
    /// Starts the worker. `layouts`: of what the rings hold; `most`: the longest chain; `joins`: cut
    /// stacks are joined with what was seen before.
    pub(crate) fn start(layouts: Layouts, lost: Lost, most: usize, joins: bool) -> Result<Self> {
        let starting = |error| Error::io("starting a thread that unwinds stacks", error);
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
            round: Round::default(),
            spare: Vec::new(),
            waiting: 0,
            since: VecDeque::new(),
            hurry,
            wake,
        })
    }

    /// Becomes readable when a round is done.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Tells what was there before.
    pub(crate) fn tell(&mut self, records: &[u8]) {
        self.order(Order::Known(records.to_vec()));
    }

    /// Where whole records of this pass are put.
    pub(crate) fn round(&mut self) -> &mut Vec<u8> {
        &mut self.round.bytes
    }

    /// What comes now is the second pass.
    pub(crate) fn second_pass(&mut self) {
        self.round.second = Some(self.round.bytes.len());
    }

    /// Whether so much waits that rings must be left alone.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting > MOST
    }

    /// Both passes are done.
    pub(crate) fn end_round(&mut self) {
        if !self.round.bytes.is_empty() {
            let next = Round { bytes: self.spare.pop().unwrap_or_default(), second: None };
            let round = std::mem::replace(&mut self.round, next);
            self.waiting += round.bytes.len();
            self.since.push_back(Instant::now());
            self.order(Order::Round(round));
        }
        self.set_hurry();
    }

    fn set_hurry(&self) {
        let is_old = self.since.front().is_some_and(|since| since.elapsed() > OLD);
        self.hurry.store(is_old || self.waiting > HURRY, Ordering::Relaxed);
    }

    fn order(&mut self, order: Order) {
        if let Some(orders) = &self.orders {
            // If nobody listens any more, the answers say so.
            let _ = orders.send(order);
        }
    }

    /// The next round that is done, if any is.
    ///
    /// # Errors
    /// When the worker is gone.
    pub(crate) fn next(&mut self) -> Result<Option<Done>> {
        match self.done.try_recv() {
            Ok(done) => Ok(Some(self.took(done))),
            Err(TryRecvError::Empty) => {
                let mut count = [0; 8];
                let _ = rustix::io::read(&*self.wake, &mut count);
                // One may have come between the look and the reading.
                Ok(self.done.try_recv().ok().map(|done| self.took(done)))
            }
            Err(TryRecvError::Disconnected) => Err(gone()),
        }
    }

    /// The next round, waited for; `None` when none is under way.
    ///
    /// # Errors
    /// When the worker is gone.
    pub(crate) fn wait(&mut self) -> Result<Option<Done>> {
        if self.waiting == 0 {
            return Ok(None);
        }
        let done = self.done.recv().map_err(|_| gone())?;
        Ok(Some(self.took(done)))
    }

    fn took(&mut self, mut done: Done) -> Done {
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

    /// The last round: what was held back comes, too.
    ///
    /// # Errors
    /// When the worker is gone.
    pub(crate) fn last(&mut self) -> Result<Vec<Done>> {
        let mut all = Vec::new();
        let round = std::mem::take(&mut self.round);
        self.waiting += round.bytes.len();
        self.order(Order::End(round));
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
