//! Unwinding for pass 2: each module's tables and each epoch's space are prepared once, when a sample
//! first needs them.
//!
//! Receives the session's epochs and the symbolizer's files; hands on walkers, one a thread.

use std::sync::{Mutex, OnceLock, PoisonError};

use rustc_hash::FxHashMap;

use super::symbols::Symbols;
use crate::abi::{branch_sample_type, context};
use crate::error::{Error, Result};
use crate::perfdata::Reader;
use crate::profile::sampled::quality::Ends;
use crate::record::sample::{Branches, user_part};
use crate::record::unwound::has_copy;
use crate::record::{Parts, Thread};
use crate::session::{Epoch, History, Session, Unwind, Walk};
use crate::unwind::{Arch, End, Frame, Joiner, Registers, Space, Stitcher, Tables, Walker};

/// Spaces kept at a time: recordings of thousands of short processes must not keep all of theirs.
const MOST_SPACES: usize = 256;

/// The unwinder of a recording.
pub struct RecordingUnwinder<'a> {
    history: &'a History,
    symbols: &'a Symbols,
    /// The machine's.
    arch: Arch,
    most: usize,
    joins: bool,
    /// How many calls the processor keeps, where kept calls are stitched together.
    kept_calls: Option<u64>,
    tables: Vec<OnceLock<Option<Tables>>>,
    spaces: Mutex<FxHashMap<(Epoch, Arch), std::sync::Arc<Space>>>,
    ends: Mutex<EndCounts>,
}

/// How chains ended.
#[derive(Default)]
struct EndCounts {
    copied: u64,
    cut: u64,
    lost: u64,
    long: u64,
    compat: u64,
    /// By the module without tables.
    no_tables: FxHashMap<Option<u32>, u64>,
}

impl<'a> RecordingUnwinder<'a> {
    /// The unwinder of a recording; `most` is the longest chain, in frames. `joins`: cut
    /// stacks are joined with what was seen of their threads before.
    pub fn new(session: &'a Session, symbols: &'a Symbols, most: usize, joins: bool) -> Self {
        let machine = session.reader.features().arch.as_deref().unwrap_or(std::env::consts::ARCH);
        let history = &session.history;
        Self {
            history,
            symbols,
            arch: if machine == "aarch64" { Arch::Aarch64 } else { Arch::X86_64 },
            most,
            joins: joins && session.reader.layouts().iter().any(|l| has_copy(l.sample_type())),
            kept_calls: None,
            tables: history.modules().iter().map(|_| OnceLock::new()).collect(),
            spaces: Mutex::default(),
            ends: Mutex::default(),
        }
    }

    /// Kept calls (LBR call stacks) are completed with those of earlier samples of their threads.
    ///
    /// # Errors
    /// When the recording has none, or does not say what that needs.
    pub fn stitching(self, session: &Session) -> Result<Self> {
        Ok(Self { kept_calls: Some(kept_calls(&session.reader)?), ..self })
    }

    /// Why the stacks that were walked so far end; complete when the walkers are gone.
    pub fn ends(&self) -> Ends {
        let counts = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        let name = |module: u32| self.history.modules()[module as usize].short_name();
        let mut no_tables: Vec<(Option<String>, u64)> =
            counts.no_tables.iter().map(|(module, samples)| (module.map(name), *samples)).collect();
        no_tables.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let EndCounts { copied, cut, lost, long, compat, .. } = *counts;
        Ends { copied, cut, lost, long, compat, no_tables }
    }

    fn tables(&self, module: u32) -> Option<&Tables> {
        let read = || {
            let id = self.symbols.id(module)?;
            let debug = self.symbols.symbolizer.debug(id).map(|image| &**image);
            Tables::read(self.symbols.symbolizer.binary(id)?, debug)
        };
        self.tables.get(module as usize)?.get_or_init(read).as_ref()
    }

    fn space(&self, epoch: Epoch, arch: Arch) -> std::sync::Arc<Space> {
        let mut spaces = self.spaces.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(space) = spaces.get(&(epoch, arch)) {
            return space.clone();
        }
        let mut space = Space::new(arch);
        for mapped in self.history.code(epoch) {
            space.add(&mapped.mapping, self.tables(mapped.module));
        }
        if spaces.len() >= MOST_SPACES {
            spaces.clear();
        }
        let space = std::sync::Arc::new(space);
        spaces.insert((epoch, arch), space.clone());
        space
    }
}

impl Unwind for RecordingUnwinder<'_> {
    fn needs_order(&self) -> bool {
        self.joins || self.kept_calls.is_some()
    }

    fn walker(&self) -> Box<dyn Walk + '_> {
        Box::new(OneThread {
            shared: self,
            walker: Walker::default(),
            joiner: self.joins.then(Joiner::default),
            stitcher: self.kept_calls.map(Stitcher::new),
            last: None,
            values: Vec::new(),
            chain: Vec::new(),
            ends: EndCounts::default(),
        })
    }
}

/// How many calls the processor kept at most.
fn kept_calls(reader: &Reader) -> Result<u64> {
    let refused = |why: &str, instead: &str| {
        Error::new(format!("--stitch-lbr: calls in {} cannot be stitched", reader.path().display()))
            .why(why)
            .try_this(instead)
    };
    let of_events = reader.events().iter().map(|event| event.attr.branch_sample_type());
    let mut of_calls = of_events.filter(|kinds| kinds & branch_sample_type::CALL_STACK != 0).peekable();
    if of_calls.peek().is_none() {
        return Err(refused(
            "no event was recorded with the calls that the processor keeps",
            "record --call-graph lbr",
        ));
    }
    if of_calls.all(|kinds| kinds & branch_sample_type::HW_INDEX == 0) {
        return Err(refused(
            "it does not say which of the processor's records they were in (Linux has told it since 5.7)",
            "the same without --stitch-lbr: each sample has the calls that were kept with it",
        ));
    }
    let features = reader.features();
    let of_others = features.pmu_caps.iter().flatten().flat_map(|pmu| &pmu.caps);
    let all = features.cpu_pmu_caps.iter().flatten().chain(of_others);
    let kept = all.filter(|(name, _)| name == "branches").filter_map(|(_, value)| value.trim().parse().ok());
    kept.max().filter(|kept| *kept > 0).ok_or_else(|| {
        refused(
            "it does not say how many calls the processor keeps (caps/branches of its PMU)",
            "record with a perf or pmc that writes them, or read it without --stitch-lbr",
        )
    })
}

struct OneThread<'a> {
    shared: &'a RecordingUnwinder<'a>,
    walker: Walker,
    joiner: Option<Joiner>,
    stitcher: Option<Stitcher>,
    last: Option<(Epoch, Arch, std::sync::Arc<Space>)>,
    values: Vec<u64>,
    chain: Vec<Frame>,
    ends: EndCounts,
}

impl Drop for OneThread<'_> {
    fn drop(&mut self) {
        let mut all = self.shared.ends.lock().unwrap_or_else(PoisonError::into_inner);
        all.copied += self.ends.copied;
        all.cut += self.ends.cut;
        all.lost += self.ends.lost;
        all.long += self.ends.long;
        all.compat += self.ends.compat;
        for (module, samples) in self.ends.no_tables.drain() {
            *all.no_tables.entry(module).or_default() += samples;
        }
    }
}

impl Walk for OneThread<'_> {
    fn walk(&mut self, thread: Thread, epoch: Epoch, parts: &Parts<'_>, chain: &mut Vec<u64>) {
        let (Some(recorded), Some(stack)) = (&parts.user_regs, &parts.user_stack) else { return };
        self.ends.copied += 1;
        let Some(arch) = self.shared.arch.of_process(recorded.abi) else {
            self.ends.compat += 1;
            return;
        };
        self.values.clear();
        self.values.extend(recorded.values.iter());
        let Some(registers) = Registers::from_sample(arch, recorded.mask, &self.values) else {
            return;
        };
        let space = match &self.last {
            Some((of, word, space)) if (*of, *word) == (epoch, arch) => space.clone(),
            _ => {
                let space = self.shared.space(epoch, arch);
                self.last = Some((epoch, arch, space.clone()));
                space
            }
        };
        let most = self.shared.most;
        let end = self.walker.walk(&space, &registers, stack.bytes, most, &mut self.chain);
        let known = self.joiner.as_mut();
        let joined = known.and_then(|known| known.join(thread.tid, epoch.0, end, most, &mut self.chain));
        // What the kernel found by frame pointers may lead further.
        let callers = user_part(parts.callchain.unwrap_or_default());
        let goes_on = joined.is_some() || self.walker.complete(&space, callers, most, &mut self.chain);
        match end {
            End::Root => {}
            _ if goes_on => {}
            End::Cut => self.ends.cut += 1,
            End::Lost => self.ends.lost += 1,
            End::Long => self.ends.long += 1,
            End::NoTables(address) => {
                let module = self.shared.history.find(epoch, address).map(|mapped| mapped.module);
                *self.ends.no_tables.entry(module).or_default() += 1;
            }
        }
        let (own, others) = self.chain.split_at(joined.unwrap_or(self.chain.len()));
        chain.extend(own.iter().map(|frame| frame.address.0));
        if joined.is_some() {
            chain.push(context::USER);
        }
        chain.extend(others.iter().map(|frame| frame.address.0));
    }

    fn stitch(&mut self, thread: Thread, epoch: Epoch, branches: Branches<'_>, callers: &mut Vec<u64>) {
        let (Some(stitcher), Some(newest)) = (&mut self.stitcher, branches.hw_index) else { return };
        self.values.clear();
        self.values.extend(branches.iter().map(|branch| branch.from));
        callers.extend(stitcher.stitch(thread.tid, epoch.0, newest, &self.values, self.shared.most));
    }
}
