//! Unwinds stacks for pass 2. Prepares the tables of each module and the address space of each epoch once,
//! when a sample first needs them.
//!
//! Uses the session's epochs and the symbolizer's files. Returns call chains, and counts how they end.

use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;

use super::symbols::RecordingSymbols;
use crate::profile::sampled::profile_quality::UnwindEnds;
use crate::session::{CallChains, Epoch, History, Session, Unwind, UnwindSample};
use pmc_perfdata::perfdata::Reader;
use pmc_perfdata::record::SampleParts;
use pmc_perfdata::record::unwound::has_copy;
use pmc_symbols::address::Avma;
use pmc_symbols::unwind::{Arch, ChainEnd, Space, StackUnwinder, Stitcher, UnwindTables, UnwoundStack};
use pmc_sys::abi::branch_sample_type;
use pmc_sys::error::{Error, Result};

/// Minimum number of samples to unwind on several threads. For fewer samples, a single thread is faster.
const WORTHWHILE: usize = 32;
/// Maximum number of address spaces to keep. A recording may contain thousands of short-lived processes.
const MOST_SPACES: usize = 256;

/// Unwinds the stack copies of a recording.
pub struct RecordingUnwinder<'a> {
    spaces: ProcessSpaces<'a>,
    unwinder: StackUnwinder,
    /// Completes hardware-recorded call stacks, if requested.
    stitcher: Option<Stitcher>,
    most: usize,
    has_copies: bool,
    ends: EndCounts,
}

/// Address spaces of the recorded processes.
struct ProcessSpaces<'a> {
    history: &'a History,
    symbols: &'a RecordingSymbols,
    /// Architecture of the recorded machine.
    arch: Arch,
    /// Unwind tables by module. Boxed, because a recording may have a million modules and need the tables of
    /// only a few.
    tables: Vec<OnceLock<Option<Box<UnwindTables>>>>,
    /// Address spaces by `History::version` and architecture.
    spaces: FxHashMap<(u32, Arch), Arc<Space>>,
}

/// Number of stacks, by how unwinding ended.
#[derive(Default)]
struct EndCounts {
    copied: u64,
    cut: u64,
    long: u64,
    compat: u64,
    /// For each module in which unwinding failed, the number of stacks that ended in it.
    lost: FxHashMap<Option<u32>, u64>,
    /// For each module without tables, the number of stacks that ended in it.
    no_tables: FxHashMap<Option<u32>, u64>,
}

impl<'a> RecordingUnwinder<'a> {
    /// Creates an unwinder for a recording. `most` is the maximum length of a chain, in frames. If `joins` is
    /// set, completes truncated stacks from earlier samples of the same thread.
    pub fn new(session: &'a Session, symbols: &'a RecordingSymbols, most: usize, joins: bool) -> Self {
        let machine = session.reader.features().arch.as_deref().unwrap_or(std::env::consts::ARCH);
        let history = &session.history;
        let spaces = ProcessSpaces {
            history,
            symbols,
            arch: if machine == "aarch64" { Arch::Aarch64 } else { Arch::X86_64 },
            tables: history.modules().iter().map(|_| OnceLock::new()).collect(),
            spaces: FxHashMap::default(),
        };
        Self {
            spaces,
            unwinder: StackUnwinder::new(most, joins),
            stitcher: None,
            most,
            has_copies: session.reader.layouts().iter().any(|l| has_copy(l.sample_type())),
            ends: EndCounts::default(),
        }
    }

    /// Also completes hardware-recorded call stacks (LBR) from earlier samples of the same thread.
    ///
    /// # Errors
    /// Fails if the recording has no LBR call stacks, or lacks data that stitching needs.
    pub(crate) fn stitching(self, session: &Session) -> Result<Self> {
        Ok(Self { stitcher: Some(Stitcher::new(kept_calls(&session.reader)?)), ..self })
    }

    /// Returns the unwinder, or `None` if there is nothing to unwind.
    pub fn if_needed(&mut self) -> Option<&mut dyn Unwind> {
        let is_needed = self.has_copies || self.stitcher.is_some();
        is_needed.then_some(self as &mut dyn Unwind)
    }

    /// Returns how unwinding ended for the stacks so far.
    pub(crate) fn ends(&self) -> UnwindEnds {
        let counts = &self.ends;
        let name = |module: u32| self.spaces.history.modules()[module as usize].short_name();
        let named = |modules: &FxHashMap<Option<u32>, u64>| {
            let mut named: Vec<(Option<String>, u64)> =
                modules.iter().map(|(module, samples)| (module.map(name), *samples)).collect();
            named.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
            named
        };
        let EndCounts { copied, cut, long, compat, .. } = *counts;
        let (lost, lost_in) = (counts.lost.values().sum(), named(&counts.lost));
        UnwindEnds { copied, cut, lost, lost_in, long, compat, no_tables: named(&counts.no_tables) }
    }
}

impl EndCounts {
    /// Counts how a stack ended.
    fn add(
        &mut self,
        stack: &UnwindSample<'_>,
        unwound: Option<UnwoundStack<'_>>,
        spaces: &ProcessSpaces<'_>,
    ) {
        self.copied += 1;
        let Some(unwound) = unwound else {
            self.compat += u64::from(spaces.arch_of(&stack.parts).is_none());
            return;
        };
        let module = |address| spaces.history.find(stack.epoch, address).map(|mapped| mapped.module);
        match unwound.end {
            None | Some(ChainEnd::Root) => {}
            _ if unwound.is_joined || unwound.is_completed => {}
            Some(ChainEnd::Cut) => self.cut += 1,
            Some(ChainEnd::Lost | ChainEnd::Unread) => {
                let outermost = unwound.chain.last().map(|address| Avma(address.wrapping_sub(1)));
                *self.lost.entry(outermost.and_then(module)).or_default() += 1;
            }
            Some(ChainEnd::Long) => self.long += 1,
            Some(ChainEnd::NoTables(address)) => {
                *self.no_tables.entry(module(address)).or_default() += 1;
            }
        }
    }
}

impl ProcessSpaces<'_> {
    /// Returns the architecture of a sample's process; `None` for 32-bit Arm.
    fn arch_of(&self, parts: &SampleParts<'_>) -> Option<Arch> {
        parts.user_regs.and_then(|registers| self.arch.of_process(registers.abi))
    }

    fn tables(&self, module: u32) -> Option<&UnwindTables> {
        let read = || {
            let id = self.symbols.id(module)?;
            let debug = self.symbols.symbolizer.debug(id).map(|image| &**image);
            let binary = self.symbols.symbolizer.binary(id)?;
            Some(Box::new(UnwindTables::read(binary, debug)?.with_program(Arc::new(binary.clone()))))
        };
        self.tables.get(module as usize)?.get_or_init(read).as_deref()
    }

    /// Returns the address space of an epoch and its `History::version`.
    fn at(&mut self, epoch: Epoch, arch: Arch) -> (Arc<Space>, u32) {
        let key = (self.history.version(epoch), arch);
        if let Some(space) = self.spaces.get(&key) {
            return (space.clone(), key.0);
        }
        let mut space = Space::new(arch);
        for mapped in self.history.code(epoch) {
            space.add(&mapped.mapping, self.tables(mapped.module));
        }
        if self.spaces.len() >= MOST_SPACES {
            self.spaces.clear();
        }
        let space = Arc::new(space);
        self.spaces.insert(key, space.clone());
        (space, key.0)
    }
}

impl Unwind for RecordingUnwinder<'_> {
    fn unwind(&mut self, samples: &[Option<UnwindSample<'_>>], chains: &mut CallChains) {
        let Self { spaces, unwinder, .. } = self;
        let copied = samples.iter().map(|sample| {
            let UnwindSample { thread, epoch, parts, kept_calls: None } = sample.as_ref()? else {
                return None;
            };
            let arch = spaces.arch_of(parts)?;
            Some((*thread, arch, parts, spaces.at(*epoch, arch)))
        });
        let copied: Vec<_> = copied.collect();
        let is_worth_threads = copied.iter().flatten().nth(WORTHWHILE - 1).is_some();
        unwinder.walk(&copied, is_worth_threads, |walker, sample| {
            if let Some((thread, arch, parts, (space, version))) = sample {
                walker.walk(*thread, Some((space, *version)), *arch, parts, |_| true);
            }
        });
        let mut calls = Vec::new();
        for (index, sample) in samples.iter().enumerate() {
            let unwound = self.unwinder.stack(index);
            match sample {
                Some(UnwindSample { thread, epoch, kept_calls: Some(kept), .. }) => {
                    calls.clear();
                    calls.extend(kept.iter().map(|branch| branch.from));
                    let has_calls = calls.iter().any(|from| *from != 0);
                    let stitched = self.stitcher.as_mut().filter(|_| has_calls).zip(kept.hw_index).map(
                        |(stitcher, newest)| {
                            let version = self.spaces.history.version(*epoch);
                            stitcher.stitch(thread.tid, version, newest, &calls, self.most)
                        },
                    );
                    let stitched: Vec<u64> =
                        stitched.into_iter().flatten().map(|call| call.address.0).collect();
                    chains.push(&stitched);
                }
                Some(sample) => {
                    chains.push(unwound.map_or(&[], |stack| stack.chain));
                    self.ends.add(sample, unwound, &self.spaces);
                }
                None => chains.push(&[]),
            }
        }
    }
}

/// Returns the maximum number of calls that the CPU records per sample.
fn kept_calls(reader: &Reader) -> Result<u64> {
    let refused = |why: &str, instead: &str| {
        Error::new(format!("--stitch-lbr: calls in {} cannot be stitched", reader.path().display()))
            .why(why)
            .try_options(instead)
    };
    let of_events = reader.events().iter().map(|event| event.attr.branch_sample_type());
    let mut of_calls = of_events.filter(|kinds| kinds & branch_sample_type::CALL_STACK != 0).peekable();
    if of_calls.peek().is_none() {
        return Err(refused("no event was recorded with LBR call chains", "record --call-graph lbr"));
    }
    if of_calls.all(|kinds| kinds & branch_sample_type::HW_INDEX == 0) {
        return Err(refused(
            "the recording does not contain LBR indexes (Linux 5.7 or newer records them)",
            "omit --stitch-lbr: each sample then has its own LBR call chain",
        ));
    }
    let features = reader.features();
    let of_others = features.pmu_caps.iter().flatten().flat_map(|pmu| &pmu.caps);
    let all = features.cpu_pmu_caps.iter().flatten().chain(of_others);
    let kept = all.filter(|(name, _)| name == "branches").filter_map(|(_, value)| value.trim().parse().ok());
    kept.max().filter(|kept| *kept > 0).ok_or_else(|| {
        refused(
            "the recording does not contain the number of LBR entries (the PMU's caps/branches)",
            "record with a version of perf or pmc that writes it, or omit --stitch-lbr",
        )
    })
}
