//! Unwinding for pass 2: each module's tables and each epoch's space are prepared once, when a sample
//! first needs them.
//!
//! Receives the session's epochs and the symbolizer's files; hands on walkers, one a thread.

use std::sync::{Mutex, OnceLock, PoisonError};

use rustc_hash::FxHashMap;

use super::symbols::Symbols;
use crate::abi::context;
use crate::profile::sampled::quality::Ends;
use crate::record::sample::user_part;
use crate::record::unwound::has_copy;
use crate::record::{Parts, Thread};
use crate::session::{Epoch, History, Session, Unwind, Walk};
use crate::unwind::{Arch, End, Frame, Joiner, Registers, Space, Tables, Walker};

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
            tables: history.modules().iter().map(|_| OnceLock::new()).collect(),
            spaces: Mutex::default(),
            ends: Mutex::default(),
        }
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
        self.joins
    }

    fn walker(&self) -> Box<dyn Walk + '_> {
        Box::new(OneThread {
            shared: self,
            walker: Walker::default(),
            joiner: self.joins.then(Joiner::default),
            last: None,
            values: Vec::new(),
            chain: Vec::new(),
            ends: EndCounts::default(),
        })
    }
}

struct OneThread<'a> {
    shared: &'a RecordingUnwinder<'a>,
    walker: Walker,
    joiner: Option<Joiner>,
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
}
