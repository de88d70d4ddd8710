//! The stacks of many samples: each is walked by itself, on as many threads as are worth it; what cut ones
//! are joined with rests on the walks before, and so goes one after the other.
//!
//! ```text
//!   samples, by time --+--> walker: a walk each --+
//!                      +--> walker: a walk each --+--> joiner, in order --> chains
//! ```
//!
//! Receives samples with copies, and of which space each is; hands on chains, with how each ends.

use std::ops::Range;

use rayon::prelude::*;

use super::{Arch, End, Frame, Joiner, Registers, Space, Walker};
use crate::abi::context;
use crate::address::Avma;
use crate::record::sample::user_part;
use crate::record::{Parts, Thread};

/// Unwinds the stacks of a recording.
#[derive(Debug)]
pub struct StackUnwinder {
    /// The longest chain, in frames.
    most: usize,
    /// One for each thread that walks at a time.
    walkers: Vec<StackWalker>,
    /// Samples that each of them was given.
    each: usize,
    /// What was last seen of threads; `None` if cut stacks stay so.
    joiner: Option<Joiner>,
    frames: Vec<Frame>,
    chain: Vec<u64>,
}

/// Walks of one thread's share of the samples.
#[derive(Debug, Default)]
pub struct StackWalker {
    most: usize,
    walker: Walker,
    values: Vec<u64>,
    chain: Vec<Frame>,
    /// Of all walks.
    frames: Vec<Frame>,
    /// One for each sample; `None` for what was not walked.
    walks: Vec<Option<Walk>>,
}

/// A way through a copy.
#[derive(Debug)]
struct Walk {
    /// Where its frames lie among the walker's.
    frames: Range<usize>,
    /// How many of them come from the copy; the others the kernel found.
    own: usize,
    /// Whose it is, in which state of its space, and where it ended; `None` where nothing could be walked.
    end: Option<(Thread, u32, End)>,
}

/// A stack as far as it is known.
#[derive(Debug, Clone, Copy)]
pub struct UnwoundStack<'a> {
    /// Innermost first, return addresses as they are. Behind a marker (`PERF_CONTEXT_USER`) stand callers
    /// that were taken over from an earlier walk.
    pub chain: &'a [u64],
    /// Why the copy leads no further; `None` where there was none to walk.
    pub end: Option<End>,
    /// Callers were taken over from an earlier walk.
    pub is_joined: bool,
    /// What the kernel found by frame pointers leads further than the copy.
    pub is_completed: bool,
}

impl StackUnwinder {
    /// For chains of so many frames at most. `joins`: cut stacks are joined with what was seen of their
    /// threads before.
    pub fn new(most: usize, joins: bool) -> Self {
        let joiner = joins.then(Joiner::default);
        Self { most, walkers: Vec::new(), each: 1, joiner, frames: Vec::new(), chain: Vec::new() }
    }

    /// Walks samples that come behind all before in time, `in_parallel` where that is worth it: `walk` calls
    /// [`StackWalker::walk`] or [`StackWalker::take_empty`] once for each, or neither where its stack stays
    /// as it is. What becomes of them says [`stack`](Self::stack).
    pub fn walk<T: Sync>(
        &mut self,
        samples: &[T],
        in_parallel: bool,
        walk: impl Fn(&mut StackWalker, &T) + Sync,
    ) {
        let threads = if in_parallel { rayon::current_num_threads() } else { 1 };
        self.walkers.resize_with(self.walkers.len().max(threads), StackWalker::default);
        self.each = samples.len().div_ceil(threads).max(1);
        let most = self.most;
        let work = |(walker, samples): (&mut StackWalker, &[T])| {
            walker.most = most;
            walker.frames.clear();
            walker.walks.clear();
            for (index, sample) in samples.iter().enumerate() {
                walk(walker, sample);
                walker.walks.resize_with(index + 1, || None);
            }
        };
        if threads == 1 {
            self.walkers.iter_mut().zip(samples.chunks(self.each)).for_each(work);
        } else {
            self.walkers.par_iter_mut().zip(samples.par_chunks(self.each)).for_each(work);
        }
    }

    /// The stack of a sample that was walked last; to be asked once for each, in their order. `None` for
    /// what was not walked.
    pub fn stack(&mut self, index: usize) -> Option<UnwoundStack<'_>> {
        let Self { walkers, frames, chain, joiner, .. } = self;
        let walker = walkers.get(index / self.each)?;
        let Walk { frames: range, own, end } = walker.walks.get(index % self.each)?.as_ref()?;
        let (walked, followed) = walker.frames[range.clone()].split_at(*own);
        frames.clear();
        frames.extend_from_slice(walked);
        let joined = joiner.as_mut().zip(*end).and_then(|(joiner, (thread, space, end))| {
            joiner.join(thread.tid, space, end, self.most, frames)
        });
        chain.clear();
        chain.extend(frames[..joined.unwrap_or(*own)].iter().map(|frame| frame.address.0));
        match joined {
            Some(own) => {
                chain.push(context::USER);
                chain.extend(frames[own..].iter().map(|frame| frame.address.0));
            }
            None => chain.extend(followed.iter().map(|frame| frame.address.0)),
        }
        Some(UnwoundStack {
            chain,
            end: end.map(|(.., end)| end),
            is_joined: joined.is_some(),
            is_completed: joined.is_none() && !followed.is_empty(),
        })
    }

    /// A thread has ended: its number may be another's next.
    pub fn forget(&mut self, tid: i32) {
        self.joiner.as_mut().into_iter().for_each(|joiner| joiner.forget(tid));
    }
}

impl StackWalker {
    /// Walks a sample of this thread through its copy, and on with what the kernel found by frame pointers.
    /// `space` comes with a number that changes when addresses in it may mean something else; without one
    /// there is only what the kernel found. Nothing where registers are missing, or the way leads through a
    /// frame that is not believed.
    pub fn walk(
        &mut self,
        thread: Thread,
        space: Option<(&Space, u32)>,
        arch: Arch,
        parts: &Parts<'_>,
        is_believed: impl Fn(&Frame) -> bool,
    ) {
        let Some(recorded) = parts.user_regs else { return };
        self.values.clear();
        self.values.extend(recorded.values.iter());
        let Some(registers) = Registers::from_sample(arch, recorded.mask, &self.values) else { return };
        let start = self.frames.len();
        let callers = user_part(parts.callchain.unwrap_or_default());
        let Some((space, version)) = space else {
            self.frames.push(Frame { address: Avma(registers.ip), sp: registers.sp });
            let frame = |caller| Frame { address: Avma(caller), sp: 0 };
            self.frames.extend(callers.skip(1).take(self.most.saturating_sub(1)).map(frame));
            self.walks.push(Some(Walk { frames: start..self.frames.len(), own: 1, end: None }));
            return;
        };
        let stack = parts.user_stack.map_or(&[][..], |stack| stack.bytes);
        let end = match self.walker.walk(space, &registers, stack, self.most, &mut self.chain) {
            // More was asked for than there was: what lies beyond is not the stack's.
            End::Cut if parts.user_stack.is_some_and(|stack| stack.bytes.len() < stack.asked) => End::Lost,
            end => end,
        };
        let own = self.chain.len();
        self.walker.complete(space, callers, self.most, &mut self.chain);
        if self.chain.iter().all(is_believed) {
            self.frames.append(&mut self.chain);
            let end = Some((thread, version, end));
            self.walks.push(Some(Walk { frames: start..self.frames.len(), own, end }));
        }
    }

    /// Takes a sample without registers: there is no chain to be had.
    pub fn take_empty(&mut self) {
        let end = self.frames.len();
        self.walks.push(Some(Walk { frames: end..end, own: 0, end: None }));
    }
}
