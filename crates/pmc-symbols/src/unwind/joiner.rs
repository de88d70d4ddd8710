//! Completes stacks that are truncated at the end of their copy, using an earlier stack of the same thread.
//!
//! ```text
//!          seen last               now, cut                joined
//!          read     7f00           hash     7e80           hash
//!          parse    7f40           next     7ec0           next
//!          item     7f90   same:   item     7f90           item
//!          main     7fe0           - - end of the copy     main    ) reused
//!          _start   7ff8                                   _start  )
//! ```
//!
//! Takes the walks of each thread in time order, and keeps the last known stack of each thread up to its
//! root. Two frames are considered the same if their return addresses and stack pointers are equal. If the
//! outermost frame of a truncated walk is in the kept stack, the callers of that frame are appended to the
//! walk.
//!
//! Every walk replaces the kept frames from the innermost up to the walk's own outermost frame. If this frame
//! is not in the kept stack, the walk stays truncated, and the kept outer frames remain until a later walk
//! reaches them. A new address space (after an exec, or when other files are mapped) starts with no frames.
//!
//! The joiner never adds a frame that did not appear in an earlier walk. A stack stays truncated if a frame
//! is larger than the copies, or if callers have changed between two samples.

use rustc_hash::FxHashMap;

use super::frame::{ChainEnd, StackFrame};

/// Maximum number of threads whose stack is kept.
pub(super) const MOST_THREADS: usize = 1 << 12;
/// Maximum number of frames to keep per thread, starting from the outermost.
const MOST_FRAMES: usize = 1 << 12;

/// The last known stack of each thread.
#[derive(Debug, Default)]
pub(super) struct Joiner {
    threads: FxHashMap<i32, LastStack>,
}

/// The last known stack of a thread.
#[derive(Debug, Default)]
struct LastStack {
    /// See [`Joiner::join`].
    space: u32,
    /// All frames except the innermost one, outermost first, so that calls and returns change only the end of
    /// the list.
    frames: Vec<StackFrame>,
}

impl Joiner {
    /// Stores a walk. If it is truncated and can be joined, appends the callers from the earlier stack, and
    /// returns the number of frames before them. `space` is a number that changes whenever an address may
    /// have come to refer to different code. `most` is the maximum length of a chain.
    pub(super) fn join(
        &mut self,
        thread: i32,
        space: u32,
        end: ChainEnd,
        most: usize,
        chain: &mut Vec<StackFrame>,
    ) -> Option<usize> {
        let (innermost, outermost) = (*chain.first()?, *chain.last()?);
        if self.threads.len() >= MOST_THREADS && !self.threads.contains_key(&thread) {
            self.threads.clear();
        }
        let known = self.threads.entry(thread).or_default();
        if known.space != space {
            *known = LastStack { space, frames: Vec::new() };
        }
        // A sampled address does not identify a caller. If unwinding failed, the last frame may be wrong.
        let can_go_on = matches!(end, ChainEnd::Cut | ChainEnd::Unread | ChainEnd::Long) && chain.len() > 1;
        let from = if can_go_on { outermost.sp } else { innermost.sp };
        let outer = known.frames.partition_point(|frame| frame.sp > from);
        let goes_on = can_go_on && known.frames.get(outer) == Some(&outermost);
        known.frames.truncate(if end == ChainEnd::Root { 0 } else { outer });
        let walked = chain.len();
        if goes_on {
            chain.extend(known.frames.iter().rev().take(most.saturating_sub(walked)));
        }
        if goes_on || end == ChainEnd::Root {
            let room = MOST_FRAMES.saturating_sub(known.frames.len());
            known.frames.extend(chain[1..walked].iter().rev().take(room));
        }
        (chain.len() > walked).then_some(walked)
    }

    /// Removes a thread that has ended, since its number may be reused.
    pub(super) fn forget(&mut self, thread: i32) {
        self.threads.remove(&thread);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Avma;

    /// Frames by name and distance from the stack's base, innermost first.
    fn chain(frames: &[(u8, u64)]) -> Vec<StackFrame> {
        let frame = |(name, below): &(u8, u64)| StackFrame::returned_to(Avma((*name).into()), 0x8000 - below);
        frames.iter().map(frame).collect()
    }

    fn shown(chain: &[StackFrame]) -> String {
        chain.iter().map(|frame| char::from(frame.address.0 as u8)).collect()
    }

    const WHOLE: [(u8, u64); 4] = [(b'r', 90), (b'p', 60), (b'i', 40), (b'm', 10)];

    /// Joins a walk of thread 1 after these walks; the joined frames are after the `+`.
    fn after(walks: &[(&[(u8, u64)], ChainEnd)], cut: &[(u8, u64)]) -> String {
        let mut joiner = Joiner::default();
        for (walk, end) in walks {
            joiner.join(1, 7, *end, 100, &mut chain(walk));
        }
        let mut cut = chain(cut);
        let walked = joiner.join(1, 7, ChainEnd::Cut, 100, &mut cut).unwrap_or(cut.len());
        [shown(&cut[..walked]), shown(&cut[walked..])].join("+")
    }

    #[test]
    fn truncated_stack_is_joined_with_an_earlier_one() {
        let whole: (&[_], ChainEnd) = (&WHOLE, ChainEnd::Root);
        assert_eq!(after(&[whole], &[(b'h', 150), (b'n', 80), (b'i', 40)]), "hni+m");
        // A later stack can be joined with a joined stack just as with a complete one.
        let deeper: (&[_], ChainEnd) = (&[(b'h', 150), (b'n', 80), (b'i', 40)], ChainEnd::Cut);
        assert_eq!(after(&[whole, deeper], &[(b'x', 300), (b'n', 80)]), "xn+im");
        // It can also be joined with a stack that exceeds the maximum length, by way of that stack's inner
        // frames.
        assert_eq!(after(&[whole, (deeper.0, ChainEnd::Long)], &[(b'x', 300), (b'n', 80)]), "xn+im");
        // A walk that ends in an unknown frame invalidates the inner frames of the kept stack, but not the
        // outer ones.
        let lost: (&[_], ChainEnd) = (&[(b'q', 50), (b'?', 3)], ChainEnd::Lost);
        assert_eq!(after(&[whole, lost], &[(b'h', 99), (b'i', 40)]), "hi+m");
        assert_eq!(after(&[whole, lost], &[(b'h', 99), (b'p', 60)]), "hp+");
    }

    #[test]
    fn different_frames_are_not_joined() {
        let whole: (&[_], ChainEnd) = (&WHOLE, ChainEnd::Root);
        // These are not joined: no earlier stack; a different address at the same stack pointer; the same
        // address at a different stack pointer; no caller; no frame.
        assert_eq!(after(&[], &[(b'h', 150), (b'i', 40)]), "hi+");
        assert_eq!(after(&[whole], &[(b'h', 150), (b'j', 40)]), "hj+");
        assert_eq!(after(&[whole], &[(b'h', 150), (b'i', 41)]), "hi+");
        assert_eq!(after(&[whole], &[(b'i', 40)]), "i+");
        assert_eq!(after(&[], &[]), "+");
        // The sampled function is not a caller.
        assert_eq!(after(&[whole], &[(b'h', 150), (b'r', 90)]), "hr+");
    }

    #[test]
    fn replaced_frames_are_forgotten() {
        let whole: (&[_], ChainEnd) = (&WHOLE, ChainEnd::Root);
        // `p` has returned. After that, either `s` was called in its place, or no function was.
        let other: (&[_], ChainEnd) = (&[(b'r', 90), (b's', 60), (b'i', 40), (b'm', 10)], ChainEnd::Root);
        let cut: (&[_], ChainEnd) = (&[(b'r', 90), (b's', 60)], ChainEnd::Cut);
        let shallow: (&[_], ChainEnd) = (&[(b'i', 40), (b'm', 10)], ChainEnd::Root);
        for between in [other, cut, shallow] {
            assert_eq!(after(&[whole, between], &[(b'h', 150), (b'p', 60)]), "hp+", "{between:?}");
        }
        // The kept frames outside an unknown frame stay valid.
        assert_eq!(after(&[whole, cut], &[(b'h', 150), (b'i', 40)]), "hi+m");
    }

    #[test]
    fn threads_and_address_spaces_are_separate_and_chains_bounded() {
        let (mut joiner, cut) = (Joiner::default(), chain(&[(b'h', 150), (b'i', 40)]));
        let tell = |joiner: &mut Joiner| joiner.join(1, 7, ChainEnd::Root, 9, &mut chain(&WHOLE));
        for (thread, space, most, want) in
            [(1, 7, 9, "him"), (2, 7, 9, "hi"), (1, 8, 9, "hi"), (1, 7, 2, "hi")]
        {
            tell(&mut joiner);
            let mut chain = cut.clone();
            joiner.join(thread, space, ChainEnd::Cut, most, &mut chain);
            assert_eq!(shown(&chain), want, "{thread} {space} {most}");
        }
        tell(&mut joiner);
        joiner.forget(1);
        assert_eq!(joiner.join(1, 7, ChainEnd::Cut, 9, &mut cut.clone()), None);
    }

    #[test]
    fn joiner_memory_is_bounded() {
        let mut joiner = Joiner::default();
        let deep: Vec<(u8, u64)> = (0..MOST_FRAMES as u64 + 10).rev().map(|at| (b'f', at)).collect();
        (0..2 * MOST_THREADS as i32).for_each(|thread| {
            joiner.join(thread, 7, ChainEnd::Root, 9, &mut chain(&WHOLE));
        });
        joiner.join(-1, 7, ChainEnd::Root, 9, &mut chain(&deep));
        assert!(joiner.threads.len() <= MOST_THREADS && joiner.threads[&-1].frames.len() == MOST_FRAMES);
    }
}
