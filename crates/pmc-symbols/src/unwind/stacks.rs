//! Unwinds the stacks of many samples. Walks are independent of each other, and run in parallel if there are
//! enough samples. Joining truncated stacks depends on earlier walks, so it runs sequentially.
//!
//! ```text
//!   samples, by time --+--> walker: a walk each --+
//!                      +--> walker: a walk each --+--> joiner, in order --> chains
//! ```
//!
//! Takes samples with stack copies, and the space of each sample. Returns chains, each with the reason why
//! it ends.

use std::ops::Range;

use rayon::prelude::*;

use super::arch::Arch;
use super::frame::{ChainEnd, StackFrame};
use super::joiner::Joiner;
use super::registers::UnwindRegisters;
use super::space::Space;
use super::walker::Walker;
use crate::address::Avma;
use pmc_perfdata::record::sample::user_part;
use pmc_perfdata::record::{SampleParts, Thread};
use pmc_sys::abi::context;

/// Unwinds the stacks of a recording.
#[derive(Debug)]
pub struct StackUnwinder {
    /// Maximum number of frames in a chain.
    most: usize,
    /// One walker per thread.
    walkers: Vec<StackWalker>,
    /// Number of samples per walker.
    each: usize,
    /// The last known stacks of threads; `None` if truncated stacks are not joined.
    joiner: Option<Joiner>,
    frames: Vec<StackFrame>,
    chain: Vec<u64>,
}

/// Walks one thread's share of the samples.
#[derive(Debug, Default)]
pub struct StackWalker {
    most: usize,
    walker: Walker,
    values: Vec<u64>,
    chain: Vec<StackFrame>,
    /// The frames of all walks.
    frames: Vec<StackFrame>,
    /// The result of each sample's walk; `None` for samples without a walk.
    walks: Vec<Option<WalkResult>>,
}

/// The result of walking a stack copy.
#[derive(Debug)]
struct WalkResult {
    /// Range of this walk's frames in the walker's frames.
    frames: Range<usize>,
    /// Number of frames found in the copy. The other frames come from the kernel's chain.
    own: usize,
    /// The thread, the version of its space, and why the walk ended; `None` if the sample was not walked.
    end: Option<(Thread, u32, ChainEnd)>,
}

/// A stack, which may be incomplete.
#[derive(Debug, Clone, Copy)]
pub struct UnwoundStack<'a> {
    /// The addresses, innermost first, with unmodified return addresses. Callers after a marker
    /// (`PERF_CONTEXT_USER`) come from an earlier walk.
    pub chain: &'a [u64],
    /// Why the walk of the copy ended; `None` if the sample was not walked.
    pub end: Option<ChainEnd>,
    /// Whether some callers come from an earlier walk.
    pub is_joined: bool,
    /// Whether the kernel's frame-pointer chain extends the stack beyond the copy.
    pub is_completed: bool,
}

impl StackUnwinder {
    /// Creates an unwinder for chains of at most `most` frames. If `joins` is set, truncated stacks are
    /// joined with earlier stacks of their threads.
    pub fn new(most: usize, joins: bool) -> Self {
        let joiner = joins.then(Joiner::default);
        Self { most, walkers: Vec::new(), each: 1, joiner, frames: Vec::new(), chain: Vec::new() }
    }

    /// Walks samples, all of which must be later than those in previous calls. Uses several threads if
    /// `in_parallel` is set and there are enough samples. For each sample, `walk` must call
    /// [`StackWalker::walk`] or [`StackWalker::take_empty`] at most once; if it calls neither, the sample's
    /// stack stays unchanged. [`stack`](Self::stack) returns the results.
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

    /// Returns the stack of a sample from the last call to [`walk`](Self::walk), or `None` if the sample was
    /// not walked. Must be called once per sample, in order.
    pub fn stack(&mut self, index: usize) -> Option<UnwoundStack<'_>> {
        let Self { walkers, frames, chain, joiner, .. } = self;
        let walker = walkers.get(index / self.each)?;
        let WalkResult { frames: range, own, end } = walker.walks.get(index % self.each)?.as_ref()?;
        let (walked, followed) = walker.frames[range.clone()].split_at(*own);
        frames.clear();
        frames.extend_from_slice(walked);
        let joined = joiner.as_mut().zip(*end).and_then(|(joiner, (thread, space, end))| {
            joiner.join(thread.tid, space, end, self.most, frames)
        });
        chain.clear();
        chain.extend(frames[..joined.unwrap_or(*own)].iter().map(StackFrame::word));
        match joined {
            Some(own) => {
                chain.push(context::USER);
                chain.extend(frames[own..].iter().map(StackFrame::word));
            }
            None => chain.extend(followed.iter().map(StackFrame::word)),
        }
        Some(UnwoundStack {
            chain,
            end: end.map(|(.., end)| end),
            is_joined: joined.is_some(),
            is_completed: joined.is_none() && !followed.is_empty(),
        })
    }

    /// Remembers the stack of a sample from the last call to [`walk`](Self::walk), if it reaches the root, so
    /// that truncated stacks of its thread can be joined with it.
    pub fn remember_stack(&mut self, index: usize) {
        let walks = self.walkers.get(index / self.each).map(|walker| &walker.walks);
        let walk = walks.and_then(|walks| walks.get(index % self.each)?.as_ref());
        if matches!(walk, Some(WalkResult { end: Some((.., ChainEnd::Root)), .. })) {
            self.stack(index);
        }
    }

    /// Whether truncated stacks are joined with earlier ones.
    pub fn joins(&self) -> bool {
        self.joiner.is_some()
    }

    /// Removes a thread that has ended, since its number may be reused.
    pub fn forget(&mut self, tid: i32) {
        self.joiner.as_mut().into_iter().for_each(|joiner| joiner.forget(tid));
    }
}

impl StackWalker {
    /// Walks the stack copy of a thread's sample, and continues with the kernel's frame-pointer chain. The
    /// number in `space` changes whenever an address may have come to refer to different code. Without a
    /// space, only the kernel's chain is used. Adds nothing if registers are missing, or if `is_believed`
    /// rejects a frame.
    pub fn walk(
        &mut self,
        thread: Thread,
        space: Option<(&Space, u32)>,
        arch: Arch,
        parts: &SampleParts<'_>,
        is_believed: impl Fn(&StackFrame) -> bool,
    ) {
        let Some(recorded) = parts.user_regs else { return };
        self.values.clear();
        self.values.extend(recorded.values.iter());
        let Some(registers) = UnwindRegisters::from_sample(arch, recorded.mask, &self.values) else { return };
        let start = self.frames.len();
        let callers = user_part(parts.callchain.unwrap_or_default());
        let Some((space, version)) = space else {
            self.frames.push(StackFrame::sampled(Avma(registers.ip), registers.sp));
            let frame = |caller| StackFrame::returned_to(Avma(caller), 0);
            self.frames.extend(callers.skip(1).take(self.most.saturating_sub(1)).map(frame));
            self.walks.push(Some(WalkResult { frames: start..self.frames.len(), own: 1, end: None }));
            return;
        };
        let stack = parts.user_stack.map_or(&[][..], |stack| stack.bytes);
        let end = match self.walker.walk(space, &registers, stack, self.most, &mut self.chain) {
            // The copy is shorter than requested, so it contains all that the kernel could read.
            ChainEnd::Cut if parts.user_stack.is_some_and(|stack| stack.bytes.len() < stack.asked) => {
                ChainEnd::Unread
            }
            end => end,
        };
        let own = self.chain.len();
        self.walker.complete(space, callers, self.most, &mut self.chain);
        if self.chain.iter().all(is_believed) {
            self.frames.append(&mut self.chain);
            let end = Some((thread, version, end));
            self.walks.push(Some(WalkResult { frames: start..self.frames.len(), own, end }));
        }
    }

    /// Adds an empty chain for a sample without registers.
    pub fn take_empty(&mut self) {
        let end = self.frames.len();
        self.walks.push(Some(WalkResult { frames: end..end, own: 0, end: None }));
    }
}
