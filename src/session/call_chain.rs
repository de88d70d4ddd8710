//! A sample's call chain as a whole: markers where they are missing, the part that came later, the part that
//! is unwound from a copy of the stack or that the processor kept.
//!
//! Receives samples; hands on words that are equal for equal chains. Unwinding itself is the caller's,
//! through [`Unwind`].
//!
//! ```text
//!   kernel's words | user marker | sampled address, callers          as recorded
//!                                | the walk through the stack's copy  if it is longer
//!                                | sampled address, branches' origins, callers behind the last of them
//!                                | the same of any branches           if their history is asked for
//! ```

use super::Epoch;
use super::deferred::Deferred;
use super::intern::bytes;
use crate::abi::{CpuMode, branch_sample_type, context, sample_type};
use crate::record::sample::Branches;
use crate::record::{Parts, Sample, SampleLayout, Thread, Words};

/// Makes [`Walk`]s.
pub trait Unwind: Sync {
    /// Whether walks rest on those before them: samples must then come to one walker, in the order of time.
    fn needs_order(&self) -> bool;

    /// One for a thread.
    fn walker(&self) -> Box<dyn Walk + '_>;
}

/// Turns registers and a copy of the stack into a call chain.
pub trait Walk: Send {
    /// Appends the chain, innermost first, return addresses as they are. Behind a marker
    /// (`PERF_CONTEXT_USER`) stand callers that were taken over from an earlier walk.
    fn walk(&mut self, thread: Thread, epoch: Epoch, parts: &Parts<'_>, chain: &mut Vec<u64>);

    /// Appends, where that is asked for, what calls of earlier samples of the thread lie behind those that
    /// the processor kept of this one: where each was made from.
    fn stitch(&mut self, _: Thread, _: Epoch, _: Branches<'_>, _callers: &mut Vec<u64>) {}
}

/// A sample's chain.
#[derive(Debug, Clone, Copy)]
pub struct CallChain<'a> {
    /// Context markers and addresses, innermost first.
    pub words: Words<'a>,
    /// Callers are addresses in their calls, not where these return to.
    pub in_calls: bool,
}

/// Makes a sample's chain whole.
pub struct Stacker<'a> {
    walker: Option<Box<dyn Walk + 'a>>,
    deferred: Option<&'a Deferred>,
    ignore_callers: bool,
    like_perf: bool,
    branch_history: bool,
    chain: Vec<u64>,
    /// The user part that is compared with the recorded one.
    user: Vec<u64>,
    scratch: Vec<u8>,
}

impl<'a> Stacker<'a> {
    /// One for a thread. `ignore_callers`: chains are the sampled address alone.
    pub fn new(ignore_callers: bool, unwind: Option<&'a dyn Unwind>) -> Self {
        Self {
            walker: unwind.map(Unwind::walker),
            deferred: None,
            ignore_callers,
            like_perf: false,
            branch_history: false,
            chain: Vec::new(),
            user: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Joins chains with their parts that came later.
    pub fn joining(self, deferred: &'a Deferred) -> Self {
        Self { deferred: (!deferred.is_empty()).then_some(deferred), ..self }
    }

    /// Callers that are not as recorded are given as perf has them, in their calls: unwound ones one less
    /// than where they return to, those of branches where the branch stands. Otherwise all are return
    /// addresses.
    pub fn like_perf(self) -> Self {
        Self { like_perf: true, ..self }
    }

    /// Branches that are no calls stand in chains too: where each came from, before the callers.
    pub fn with_history(self, branch_history: bool) -> Self {
        Self { branch_history, ..self }
    }

    /// The whole chain; without a copy where the record has it so.
    pub fn chain<'s>(&'s mut self, sample: &Sample<'s>, epoch: Epoch) -> CallChain<'s> {
        let mode = sample.cpu_mode();
        let ip = sample.ip();
        let chain = if self.ignore_callers { None } else { sample.callchain() };
        let has_more = self.branch_history || has_more(sample.layout());
        let parts = if self.ignore_callers || !has_more { None } else { sample.parts() };
        let copied = parts.filter(|parts| {
            self.walker.is_some()
                && parts.user_regs.is_some()
                && parts.user_stack.is_some_and(|stack| !stack.bytes.is_empty())
        });
        let keeps_calls = sample.layout().branch_sample_type() & branch_sample_type::CALL_STACK != 0;
        let branches = parts.and_then(|parts| parts.branches).filter(|_| match keeps_calls {
            true => chain.is_some_and(has_user_part),
            false => self.branch_history,
        });
        let awaited = chain.and_then(Deferred::awaited);
        if copied.is_none()
            && branches.is_none()
            && awaited.is_none()
            && let Some(chain) = chain
        {
            let starts_well = chain.get(0).is_some_and(|word| word >= context::MAX)
                && chain.get(1).is_some_and(|word| word < context::MAX && ip.is_none_or(|ip| ip == word));
            if starts_well {
                return CallChain { words: chain, in_calls: false };
            }
        }
        self.chain.clear();
        self.chain.extend([context::marker(mode), ip.unwrap_or(0)]);
        if let Some(chain) = chain {
            // The last two words are then no addresses.
            let own = if awaited.is_some() { chain.first(chain.len() - 2) } else { chain };
            self.append(own, ip);
        }
        if let (Some(cookie), Some(deferred)) = (awaited, self.deferred) {
            let tid = sample.thread().map_or(0, |thread| thread.tid);
            if let Some(part) = deferred.part(tid, cookie) {
                let first = part.iter().position(|word| word < context::MAX).unwrap_or(part.len());
                if mode == CpuMode::User {
                    // The sample was taken in the process: its part begins with the sampled address.
                    self.chain.extend(part.iter().skip(first + 1));
                } else {
                    self.chain.push(context::marker(CpuMode::User));
                    self.chain.extend(part.iter().skip(first));
                }
            }
        }
        let is_replaced = match (branches, copied) {
            (Some(branches), _) if keeps_calls => {
                self.calls(sample.thread().unwrap_or_default(), epoch, branches)
            }
            (Some(branches), _) => self.history(branches),
            (None, Some(parts)) => self.unwound(sample.thread().unwrap_or_default(), epoch, &parts),
            (None, None) => false,
        };
        bytes(&self.chain, &mut self.scratch);
        CallChain { words: Words::new(&self.scratch), in_calls: is_replaced && self.like_perf }
    }

    /// Puts a chain behind the sampled address, which stands in it again (or, with precise events, nearly
    /// so).
    fn append(&mut self, chain: Words<'_>, ip: Option<u64>) {
        let first = chain.iter().position(|word| word < context::MAX);
        let Some(first) = first else { return };
        let same_context = first == 0 || chain.get(first - 1) == self.chain.first().copied();
        let mut rest = chain.iter().skip(first);
        if same_context || ip.is_none() {
            if ip.is_none() {
                self.chain.clear();
                self.chain.extend(first.checked_sub(1).and_then(|at| chain.get(at)));
                self.chain.push(chain.get(first).unwrap_or(0));
            }
            rest.next();
        } else {
            // The sample is in another context than its chain begins with.
            self.chain.extend(first.checked_sub(1).and_then(|at| chain.get(at)));
        }
        self.chain.extend(rest);
    }

    /// Where the process's part begins: its marker, or the end.
    fn user_part(&self) -> usize {
        self.chain.iter().position(|word| *word == context::USER).unwrap_or(self.chain.len())
    }

    /// Puts the walk through the copied stack in the place of the recorded user part, if it is longer.
    /// Whether it is.
    fn unwound(&mut self, thread: Thread, epoch: Epoch, parts: &Parts<'_>) -> bool {
        let Some(walker) = &mut self.walker else { return false };
        self.user.clear();
        walker.walk(thread, epoch, parts, &mut self.user);
        let at = self.user_part();
        let recorded = self.chain.len().saturating_sub(at + 1);
        // The marker in a joined chain is no frame.
        let walked = self.user.iter().filter(|word| **word < context::MAX).count();
        if walked <= recorded {
            return false;
        }
        self.chain.truncate(at);
        self.chain.push(context::USER);
        self.chain.extend(self.user.first());
        let less = |word: &u64| u64::from(self.like_perf && *word < context::MAX);
        self.chain.extend(self.user.iter().skip(1).map(|word| word.saturating_sub(less(word))));
        true
    }

    /// Puts the calls that the processor remembers in the place of the recorded callers; whether there are
    /// any. It remembers a few of the innermost: what was recorded behind the outermost of them stays, or
    /// else what earlier samples had there is taken over.
    fn calls(&mut self, thread: Thread, epoch: Epoch, branches: Branches<'_>) -> bool {
        let at = self.user_part() + 1;
        self.user.clear();
        self.user.extend(branches.iter().map(|branch| branch.from).filter(|from| *from != 0));
        if self.user.is_empty() {
            return false;
        }
        let recorded = self.chain.get(at..).unwrap_or_default();
        let behind = behind(&self.user, recorded).and_then(|at| recorded.get(at..)).unwrap_or_default();
        let behind = behind.to_vec();
        // The process was left in the function that was called last.
        let left = recorded.first().copied().or_else(|| branches.iter().next().map(|branch| branch.to));
        let step = u64::from(!self.like_perf);
        self.chain.truncate(at);
        self.chain.extend(left);
        self.chain.extend(self.user.iter().map(|call| call.saturating_add(step)));
        self.chain.extend(behind.iter().map(|caller| caller.saturating_sub(1 - step)));
        if let Some(walker) = &mut self.walker {
            self.user.clear();
            walker.stitch(thread, epoch, branches, &mut self.user);
            if behind.is_empty() && !self.user.is_empty() {
                self.chain.push(context::USER);
                self.chain.extend(self.user.iter().map(|call| call.saturating_add(step)));
            }
        }
        true
    }

    /// Puts the branches that the processor remembers behind the sampled address, in the place of recorded
    /// callers that they lead to; whether there are any.
    fn history(&mut self, branches: Branches<'_>) -> bool {
        self.user.clear();
        self.user.extend(branches.iter().map(|branch| branch.from).filter(|from| *from != 0));
        let recorded = &self.chain[1..];
        let at = behind(&self.user, recorded).unwrap_or(1);
        let callers = recorded[at..].to_vec();
        let is_marker = |word: &&u64| **word >= context::MAX;
        let of_callers = self.chain[..=at].iter().rfind(is_marker).copied().into_iter();
        let mut now = self.chain[0];
        self.chain.truncate(2);
        for from in &self.user {
            let own = context::marker(level(*from));
            self.chain.extend(Some(own).filter(|own| *own != now));
            now = own;
            self.chain.push(from.saturating_add(1));
        }
        let begins_bare = callers.first().is_some_and(|word| *word < context::MAX);
        self.chain.extend(of_callers.filter(|own| begins_bare && *own != now));
        self.chain.extend(callers);
        !self.user.is_empty()
    }
}

/// Where the CPU was at an end of a branch.
pub(super) fn level(address: u64) -> CpuMode {
    if address >> 63 == 1 { CpuMode::Kernel } else { CpuMode::User }
}

/// Whether samples may hold more of their chains than the chain.
fn has_more(layout: &SampleLayout) -> bool {
    layout.sample_type() & sample_type::STACK_USER != 0
        || layout.branch_sample_type() & branch_sample_type::CALL_STACK != 0
}

/// Whether the kernel looked at the process's stack.
fn has_user_part(chain: Words<'_>) -> bool {
    chain.iter().any(|word| word == context::USER)
}

/// The longest instruction of a processor that keeps calls (x86-64).
const LONGEST_CALL: u64 = 15;

/// The index in a recorded chain behind the caller that the outermost call belongs to, if there is one. Both
/// are innermost first. In a recursion many callers may be it: the one that most calls before it agree with
/// is.
///
/// ```text
///   calls               c1 c2 c3
///   recorded       ip r1    r2 r3 r4 r5       (c: its call; r1: a frame that the kernel misread)
///                                 '----' behind
/// ```
fn behind(calls: &[u64], recorded: &[u64]) -> Option<usize> {
    let returns_to =
        |(call, caller): &(&u64, &u64)| (1..=LONGEST_CALL).contains(&caller.wrapping_sub(**call));
    let agreeing = |index: &usize| {
        let pairs = calls.iter().rev().zip(recorded[..=*index].iter().rev());
        pairs.take_while(returns_to).count()
    };
    let candidates = (1..recorded.len()).filter(|index| agreeing(index) > 0);
    let best = candidates.max_by_key(|index| (agreeing(index), std::cmp::Reverse(*index)))?;
    Some(best + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every walk has this answer.
    struct Always(&'static [u64]);

    impl Unwind for Always {
        fn needs_order(&self) -> bool {
            false
        }

        fn walker(&self) -> Box<dyn Walk + '_> {
            Box::new(Always(self.0))
        }
    }

    impl Walk for Always {
        fn walk(&mut self, _: Thread, _: Epoch, _: &Parts<'_>, chain: &mut Vec<u64>) {
            chain.extend(self.0);
        }
    }

    #[test]
    fn the_marker_of_a_joined_chain_is_no_frame() {
        let recorded = [context::USER, 0x1111, 0x2005, 0x3002];
        let longer = |walk: &'static [u64]| {
            let always = Always(walk);
            let mut stacker = Stacker::new(false, Some(&always));
            stacker.chain.extend(recorded);
            stacker.unwound(Thread::default(), Epoch::KERNEL, &Parts::default())
        };
        assert!(!longer(&[0x1111, 0x2005, context::USER, 0x3002]));
        assert!(longer(&[0x1111, 0x2005, context::USER, 0x3002, 0x4007]));
    }

    #[test]
    fn recorded_callers_are_found_behind_the_outermost_call() {
        // Innermost first: the sampled address, then where calls return to.
        let recorded = [0x1111, 0x2005, 0x3002, 0x4007, 0x5005];
        assert_eq!(behind(&[0x2000, 0x3000], &recorded), Some(3));
        // The kernel misread a frame; the outermost call counts.
        assert_eq!(behind(&[0x9000, 0x3000, 0x4000], &recorded), Some(4));
        assert_eq!(behind(&[0x2000, 0x9000], &recorded), None);
        assert_eq!(behind(&[0x2000], &[]), None);
        assert_eq!(behind(&[], &recorded), None);
        // A recursion: as many turns as the processor remembers are behind nothing.
        let recursion = [0x1111, 0x2005, 0x2005, 0x2005, 0x2005, 0x3005];
        assert_eq!(behind(&[0x2000, 0x2000], &recursion), Some(3));
        assert_eq!(behind(&[0x2000, 0x2000, 0x2000, 0x2000, 0x3000], &recursion), Some(6));
    }
}
