//! Completes a sample's call chain: adds missing context markers, joins deferred parts, and inserts parts
//! that were unwound from a stack copy or recorded by the CPU.
//!
//! Takes samples and returns their chains as words; equal chains give equal words. The caller supplies the
//! [`Unwind`] that unwinds stack copies.
//!
//! ```text
//!   kernel's words | user marker | sampled address, callers                       as recorded
//!                                | frames unwound from the stack copy             with a stack copy
//!                                | sampled address, call origins, outer callers   with recorded calls
//!                                | sampled address, branch origins, outer callers with branch history
//! ```

use super::Session;
use super::deferred::Deferred;
use super::history::Epoch;
use super::intern::bytes;
use super::location::level;
use pmc_perfdata::record::sample::Branches;
use pmc_perfdata::record::{RecordWords, Sample, SampleLayout, SampleParts, Thread};
use pmc_sys::abi::{CpuMode, branch_sample_type, context};

/// A sample with a stack copy, or with calls recorded by the CPU.
#[derive(Debug)]
pub struct UnwindSample<'a> {
    /// The thread of the sample.
    pub(crate) thread: Thread,
    /// The epoch of the sample's process, which determines the mappings.
    pub(crate) epoch: Epoch,
    /// Registers, stack copy, and the kernel's call chain.
    pub(crate) parts: SampleParts<'a>,
    /// The calls that the CPU recorded. If there are any, the stack copy is ignored.
    pub(crate) kept_calls: Option<Branches<'a>>,
}

/// Unwinds registers and stack copies to call chains, and completes hardware-recorded calls.
pub trait Unwind {
    /// Stores one chain per sample in `chains`. The chain is empty for `None`. The samples must be later than
    /// all samples of previous calls. Chains are innermost first and contain unmodified return addresses.
    /// Callers after a second marker (`PERF_CONTEXT_USER`) come from an earlier stack. With hardware-recorded
    /// calls, the chain also contains outer calls from earlier samples of the thread, if enabled. These are
    /// given as the addresses of their call instructions.
    fn unwind(&mut self, samples: &[Option<UnwindSample<'_>>], chains: &mut CallChains);
}

/// Call chains, indexed by number.
#[derive(Debug, Default)]
pub struct CallChains {
    words: Vec<u64>,
    ends: Vec<usize>,
}

impl CallChains {
    /// Removes all chains.
    pub(crate) fn clear(&mut self) {
        self.words.clear();
        self.ends.clear();
    }

    /// Appends a chain.
    pub(crate) fn push(&mut self, chain: &[u64]) {
        self.words.extend_from_slice(chain);
        self.ends.push(self.words.len());
    }

    /// Returns the chain with this number. An unknown number has an empty chain.
    pub(crate) fn get(&self, number: usize) -> &[u64] {
        let Some(&end) = self.ends.get(number) else { return &[] };
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.words[start..end]
    }
}

/// A sample's chain.
#[derive(Debug, Clone, Copy)]
pub struct CallChain<'a> {
    /// Context markers and addresses, innermost first.
    pub words: RecordWords<'a>,
    /// Whether callers are given as addresses of their call instructions instead of return addresses.
    pub(crate) in_calls: bool,
}

/// Completes the chains of samples.
pub struct ChainCompleter<'a> {
    deferred: Option<&'a Deferred>,
    ignore_callers: bool,
    like_perf: bool,
    /// The layouts of samples whose user callers come from stack copies that were converted to chains.
    converted: Vec<&'a SampleLayout>,
    branch_history: bool,
    chain: Vec<u64>,
    /// Origins of the sample's recorded calls or branches.
    calls: Vec<u64>,
    scratch: Vec<u8>,
}

impl<'a> ChainCompleter<'a> {
    /// Creates a completer for one thread. With `ignore_callers`, each chain contains only the sampled
    /// address.
    pub fn new(ignore_callers: bool) -> Self {
        Self {
            deferred: None,
            ignore_callers,
            like_perf: false,
            converted: Vec::new(),
            branch_history: false,
            chain: Vec::new(),
            calls: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Enables joining chains with their deferred parts.
    pub fn joining(self, deferred: &'a Deferred) -> Self {
        Self { deferred: (!deferred.is_empty()).then_some(deferred), ..self }
    }

    /// Represents each added caller as perf does, by an address inside its call: the return address minus 1
    /// for unwound callers, or the branch address for recorded calls. Otherwise, all callers are return
    /// addresses.
    ///
    /// The callers in an archive were unwound before it was written, so they count as added too.
    pub(crate) fn like_perf(self, session: &'a Session) -> Self {
        let is_converted = |index: usize| {
            let stacks = session.converted.as_ref();
            stacks.is_some_and(|stacks| stacks.all_events || stacks.layouts.get(index) == Some(&true))
        };
        let layouts = session.reader.layouts().iter().enumerate();
        let converted = layouts.filter(|(index, _)| is_converted(*index)).map(|(_, layout)| layout).collect();
        Self { like_perf: true, converted, ..self }
    }

    fn is_converted(&self, sample: &Sample<'_>) -> bool {
        self.converted.iter().any(|layout| std::ptr::eq(*layout, sample.layout()))
    }

    /// With `branch_history`, adds the origins of a sample's branches (other than calls) to its chain, before
    /// the callers.
    pub(crate) fn with_history(self, branch_history: bool) -> Self {
        Self { branch_history, ..self }
    }

    /// Returns the complete chain, borrowed from the record if possible. `unwound` is the output of
    /// [`Unwind`] for the sample; it is empty if the sample was not unwound.
    pub fn chain<'s>(&'s mut self, sample: &Sample<'s>, unwound: &[u64]) -> CallChain<'s> {
        let mode = sample.cpu_mode();
        let ip = sample.ip();
        let chain = if self.ignore_callers { None } else { sample.callchain() };
        let keeps_calls = sample.layout().branch_sample_type() & branch_sample_type::CALL_STACK != 0;
        let has_branches = match keeps_calls {
            true => chain.is_some_and(has_user_part),
            false => self.branch_history && !self.ignore_callers,
        };
        let parts = if has_branches { sample.parts() } else { None };
        let branches = parts.and_then(|parts| parts.branches);
        let awaited = chain.and_then(Deferred::awaited);
        if unwound.is_empty()
            && branches.is_none()
            && awaited.is_none()
            && !self.is_converted(sample)
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
            // If a deferred part is missing, the last two words are not addresses.
            let own = if awaited.is_some() { chain.first(chain.len() - 2) } else { chain };
            self.append(own, ip);
        }
        if let (Some(cookie), Some(deferred)) = (awaited, self.deferred) {
            let tid = sample.thread().map_or(0, |thread| thread.tid);
            if let Some(part) = deferred.part(tid, cookie) {
                let first = part.iter().position(|word| word < context::MAX).unwrap_or(part.len());
                if mode == CpuMode::User {
                    // The sample was taken in user mode, so the user part begins with the sampled address.
                    self.chain.extend(part.iter().skip(first + 1));
                } else {
                    self.chain.push(context::marker(CpuMode::User));
                    self.chain.extend(part.iter().skip(first));
                }
            }
        }
        let is_replaced = match branches {
            Some(branches) if keeps_calls => self.calls(branches, unwound),
            Some(branches) => {
                let is_unwound = self.unwound(unwound);
                self.history(branches) || is_unwound
            }
            None if self.is_converted(sample) => self.step_into_calls(),
            None => self.unwound(unwound),
        };
        bytes(&self.chain, &mut self.scratch);
        CallChain { words: RecordWords::new(&self.scratch), in_calls: is_replaced && self.like_perf }
    }

    /// Appends a chain to the sampled address. The chain starts with the same address or, for precise events,
    /// with a nearby one.
    fn append(&mut self, chain: RecordWords<'_>, ip: Option<u64>) {
        let first = chain.iter().position(|word| word < context::MAX);
        let Some(first) = first else { return };
        let same_context = first == 0 || chain.get(first - 1) == self.chain.first().copied();
        let mut rest = chain.iter().skip(first);
        if same_context || ip.is_none() {
            if ip.is_none() {
                let own = first.checked_sub(1).and_then(|at| chain.get(at));
                self.chain[0] = own.unwrap_or(self.chain[0]);
                self.chain[1] = chain.get(first).unwrap_or(0);
            }
            rest.next();
        } else {
            // The sample and the start of its chain have different contexts.
            self.chain.extend(first.checked_sub(1).and_then(|at| chain.get(at)));
        }
        self.chain.extend(rest);
    }

    /// Returns the index of the user part's marker, or the chain's length if there is no user part.
    fn user_part(&self) -> usize {
        self.chain.iter().position(|word| *word == context::USER).unwrap_or(self.chain.len())
    }

    /// Replaces the recorded user part with the unwound chain, if there is one. The recorded part may be
    /// longer, but [`Unwind`] has already reused its reliable callers. Returns whether the chain changed.
    fn unwound(&mut self, unwound: &[u64]) -> bool {
        let at = self.user_part();
        if unwound.is_empty() || self.chain.get(at + 1..) == Some(unwound) {
            return false;
        }
        self.chain.truncate(at);
        self.chain.push(context::USER);
        self.chain.extend(unwound.first());
        let less = |word: &u64| u64::from(self.like_perf && *word < context::MAX);
        self.chain.extend(unwound.iter().skip(1).map(|word| word.saturating_sub(less(word))));
        true
    }

    /// Converts the user callers from return addresses to addresses inside calls. Returns whether there are
    /// any user addresses.
    fn step_into_calls(&mut self) -> bool {
        let at = self.user_part() + 1;
        for word in self.chain.iter_mut().skip(at + 1).filter(|word| **word < context::MAX) {
            *word = word.saturating_sub(1);
        }
        at < self.chain.len()
    }

    /// Replaces the user callers found by the kernel with the calls that the CPU recorded. Returns whether
    /// the CPU recorded any. The CPU keeps only a few of the innermost calls, so the outer callers come from
    /// the kernel's chain or, failing that, from earlier samples.
    fn calls(&mut self, branches: Branches<'_>, stitched: &[u64]) -> bool {
        let at = self.user_part() + 1;
        self.calls.clear();
        self.calls.extend(branches.iter().map(|branch| branch.from).filter(|from| *from != 0));
        if self.calls.is_empty() {
            return false;
        }
        let recorded = self.chain.get(at..).unwrap_or_default();
        let behind = behind(&self.calls, recorded).and_then(|at| recorded.get(at..)).unwrap_or_default();
        let behind = behind.to_vec();
        // The sampled address is in the most recently called function.
        let left = recorded.first().copied().or_else(|| branches.iter().next().map(|branch| branch.to));
        let step = u64::from(!self.like_perf);
        self.chain.truncate(at);
        self.chain.extend(left);
        self.chain.extend(self.calls.iter().map(|call| call.saturating_add(step)));
        self.chain.extend(behind.iter().map(|caller| caller.saturating_sub(1 - step)));
        if behind.is_empty() && !stitched.is_empty() {
            self.chain.push(context::USER);
            self.chain.extend(stitched.iter().map(|call| call.saturating_add(step)));
        }
        true
    }

    /// Inserts the branches that the CPU recorded after the sampled address, in place of the callers that
    /// they cover. Returns whether there are any such branches.
    fn history(&mut self, branches: Branches<'_>) -> bool {
        self.calls.clear();
        self.calls.extend(branches.iter().map(|branch| branch.from).filter(|from| *from != 0));
        let recorded = &self.chain[1..];
        let at = behind(&self.calls, recorded).unwrap_or(1);
        let callers = recorded[at..].to_vec();
        let is_marker = |word: &&u64| **word >= context::MAX;
        let of_callers = self.chain[..=at].iter().rfind(is_marker).copied().into_iter();
        let mut now = self.chain[0];
        self.chain.truncate(2);
        for from in &self.calls {
            let own = context::marker(level(*from));
            self.chain.extend(Some(own).filter(|own| *own != now));
            now = own;
            self.chain.push(from.saturating_add(1));
        }
        let begins_bare = callers.first().is_some_and(|word| *word < context::MAX);
        self.chain.extend(of_callers.filter(|own| begins_bare && *own != now));
        self.chain.extend(callers);
        !self.calls.is_empty()
    }
}

/// Returns the calls that the CPU recorded for a sample.
pub(super) fn kept_calls<'a>(sample: &Sample<'_>, parts: &SampleParts<'a>) -> Option<Branches<'a>> {
    let keeps_calls = sample.layout().branch_sample_type() & branch_sample_type::CALL_STACK != 0;
    parts.branches.filter(|_| keeps_calls && parts.callchain.is_some_and(has_user_part))
}

/// Whether the kernel recorded the user part of the chain.
fn has_user_part(chain: RecordWords<'_>) -> bool {
    chain.iter().any(|word| word == context::USER)
}

/// Maximum length of an instruction on CPUs that record calls (x86-64).
const LONGEST_CALL: u64 = 15;

/// Returns the index in `recorded` after the caller that matches the outermost call; `None` if no caller
/// matches. Both lists are innermost first. With recursion, several callers may match; the one preceded by
/// the most matching calls wins.
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

    #[test]
    fn unwound_chain_replaces_the_recorded_user_part_of_any_length() {
        let recorded = [context::marker(CpuMode::Kernel), 0x99, context::USER, 0x1111, 0x2005, 0x3002];
        let chain = |walk: &[u64]| {
            let mut completer = ChainCompleter::new(false);
            completer.chain.extend(recorded);
            let is_replaced = completer.unwound(walk);
            (is_replaced, completer.chain)
        };
        assert_eq!(chain(&[]), (false, recorded.to_vec()));
        for walk in [&[0x1111][..], &[0x1111, 0x2005, context::USER, 0x3002, 0x4007]] {
            assert_eq!(chain(walk), (true, [&recorded[..3], walk].concat()));
        }
    }

    #[test]
    fn chains_are_found_by_id_and_may_be_empty() {
        let mut chains = CallChains::default();
        assert_eq!((chains.get(0), chains.get(1)), (&[][..], &[][..]));
        [&[1, 2][..], &[], &[3]].into_iter().for_each(|chain| chains.push(chain));
        assert_eq!([0, 1, 2, 3].map(|number| chains.get(number)), [&[1, 2][..], &[], &[3], &[]]);
        chains.clear();
        assert_eq!(chains.get(0), [0; 0]);
    }

    #[test]
    fn recorded_callers_follow_the_outermost_call() {
        // Innermost first: the sampled address, then the return addresses.
        let recorded = [0x1111, 0x2005, 0x3002, 0x4007, 0x5005];
        assert_eq!(behind(&[0x2000, 0x3000], &recorded), Some(3));
        // The kernel has misread a frame, so only the outermost call counts.
        assert_eq!(behind(&[0x9000, 0x3000, 0x4000], &recorded), Some(4));
        assert_eq!(behind(&[0x2000, 0x9000], &recorded), None);
        assert_eq!(behind(&[0x2000], &[]), None);
        assert_eq!(behind(&[], &recorded), None);
        // Recursion: the matching cycles are not part of the remaining callers.
        let recursion = [0x1111, 0x2005, 0x2005, 0x2005, 0x2005, 0x3005];
        assert_eq!(behind(&[0x2000, 0x2000], &recursion), Some(3));
        assert_eq!(behind(&[0x2000, 0x2000, 0x2000, 0x2000, 0x3000], &recursion), Some(6));
    }
}
