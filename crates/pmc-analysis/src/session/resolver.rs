//! Maps addresses to numbered locations, and chains of addresses to numbered stacks of locations.
//!
//! Resolves the interned chains of [`super::samples`], or single chains as they arrive ([`super::live`]),
//! each with its epoch. Looks up each address once. Returns the distinct [`CodeLocation`]s, and distinct
//! stacks of location numbers. Stacks with the same code in several processes become one stack, even if the
//! addresses differ.

use std::sync::Arc;

use rayon::iter::Either;
use rustc_hash::FxHashMap;

use super::history::{Epoch, History};
use super::intern::{DistinctValues, Interner, KeyedMap, bytes, numbers};
use super::location::{CodeLocation, SampledAddress, is_joined, locate, walk};
use super::samples::{RowKey, SampleAttribute, SampleValue, Samples, join};
use pmc_perfdata::record::RecordWords;
use pmc_sys::abi::CpuMode;

/// Stacks, indexed by number.
#[derive(Debug, Clone)]
pub enum StackStore {
    /// Lists of location numbers, innermost first, four bytes each.
    Interned(Arc<Interner>),
    /// Stacks without callers, where the number of a location is also the number of the stack that contains
    /// only this location.
    Leaves,
}

impl Default for StackStore {
    fn default() -> Self {
        Self::Interned(Arc::default())
    }
}

impl From<Interner> for StackStore {
    fn from(lists: Interner) -> Self {
        Self::Interned(lists.into())
    }
}

/// Stacks with resolved addresses.
#[derive(Debug, Default)]
pub struct ResolvedStacks {
    /// The distinct locations.
    pub locations: Arc<Vec<CodeLocation>>,
    /// The stacks; see [`ResolvedStacks::stack`].
    pub stacks: StackStore,
    /// The rows of pass 2. Their stack numbers refer to `stacks`.
    pub rows: Vec<(RowKey, SampleValue)>,
}

impl ResolvedStacks {
    /// Whether a stack's outermost callers were removed; see [`Resolver::stack`].
    pub(crate) fn is_cut(&self, number: u32) -> bool {
        self.tag(number) & CUT != 0
    }

    /// Whether some callers in a stack come from another stack of the thread; see [`is_joined`].
    pub(crate) fn is_joined(&self, number: u32) -> bool {
        self.tag(number) & JOINED != 0
    }

    fn tag(&self, number: u32) -> u32 {
        match &self.stacks {
            StackStore::Interned(lists) => lists.get(number).0,
            StackStore::Leaves => 0,
        }
    }

    /// Returns the locations of a stack, innermost first.
    pub fn stack(&self, number: u32) -> impl DoubleEndedIterator<Item = u32> + ExactSizeIterator + '_ {
        match &self.stacks {
            StackStore::Interned(lists) => Either::Left(numbers(lists.get(number).1)),
            StackStore::Leaves => Either::Right(std::iter::once(number)),
        }
    }

    /// Sorts the rows, and merges rows whose keys have become equal.
    pub fn merge_equal_rows(&mut self) {
        join(&mut self.rows);
    }
}

/// Tag bit of stacks whose outermost callers were removed.
const CUT: u32 = 1;
/// Tag bit of joined stacks.
const JOINED: u32 = 2;

/// Marks a missing number.
const NONE: u32 = u32::MAX;

/// Resolves addresses, and numbers locations and stacks of locations. Each recording or live session has its
/// own resolver.
#[derive(Debug)]
pub struct Resolver {
    /// Maximum number of addresses in a stack, as in [`walk`].
    most: usize,
    /// Cached location numbers of resolved addresses.
    known: KeyedMap<SampledAddress, u32>,
    /// Cached raw chains (the tag is the epoch), and the stack number of each.
    chains: Interner,
    stack_of: Vec<u32>,
    locations: DistinctValues<CodeLocation>,
    stacks: Arc<Interner>,
    /// Reusable buffers: the addresses of a stack, and the numbers of their locations.
    scratch: (Vec<SampledAddress>, Vec<u8>),
}

impl Resolver {
    /// Creates an empty resolver. `most` is as in [`walk`].
    pub fn new(most: usize) -> Self {
        Self {
            most,
            known: KeyedMap::default(),
            chains: Interner::default(),
            stack_of: Vec::new(),
            locations: DistinctValues::default(),
            stacks: Arc::default(),
            scratch: Default::default(),
        }
    }

    /// Returns all locations, indexed by number.
    pub fn locations(&self) -> &Arc<Vec<CodeLocation>> {
        self.locations.all()
    }

    /// All stacks: lists of location numbers, innermost first, four bytes each.
    pub fn stacks(&self) -> &Arc<Interner> {
        &self.stacks
    }

    /// Returns the location number of an address, and caches it.
    #[inline]
    pub(crate) fn location(&mut self, history: &History, address: SampledAddress) -> u32 {
        match self.known.get(&address) {
            Some(number) => *number,
            None => self.look_up(history, address),
        }
    }

    #[cold]
    fn look_up(&mut self, history: &History, address: SampledAddress) -> u32 {
        let number = self.locations.add(locate(history, address));
        self.known.insert(address, number);
        number
    }

    /// Returns the location number of an address without caching it; for callers with their own cache.
    pub(crate) fn location_once(&mut self, history: &History, address: SampledAddress) -> u32 {
        self.locations.add(locate(history, address))
    }

    /// Returns the stack number for a chain of raw addresses. Removes the outermost user callers if they are
    /// in unmapped memory: they come from a register that is not a frame pointer, and each of them would
    /// become a new location.
    pub(crate) fn stack(&mut self, history: &History, epoch: Epoch, chain: RecordWords<'_>) -> u32 {
        let (mut addresses, mut list) = std::mem::take(&mut self.scratch);
        addresses.clear();
        list.clear();
        // All entries from this index on are user callers.
        let mut certain = 0;
        walk(chain, self.most, |level, address, is_caller| {
            addresses.push(SampledAddress::code(epoch, level, address).returned_to(is_caller));
            if !is_caller || level != CpuMode::User {
                certain = addresses.len();
            }
        });
        let is_false = |address: &&SampledAddress| locate(history, **address).module().is_none();
        let false_ones = addresses[certain..].iter().rev().take_while(is_false).count();
        addresses.truncate(addresses.len() - false_ones);
        list.extend(addresses.iter().flat_map(|address| self.location(history, *address).to_ne_bytes()));
        let cut = if false_ones > 0 { CUT } else { 0 };
        let tag = cut | if is_joined(chain) { JOINED } else { 0 };
        let number = Arc::make_mut(&mut self.stacks).add(tag, &list);
        self.scratch = (addresses, list);
        number
    }

    /// Returns the location number of a chain that consists only of the sampled address and occurs once.
    fn leaf(&mut self, history: &History, epoch: Epoch, chain: RecordWords<'_>) -> u32 {
        let mut sampled = SampledAddress::code(epoch, CpuMode::Unknown, 0);
        walk(chain, 1, |level, address, _| sampled = SampledAddress::code(epoch, level, address));
        self.location_once(history, sampled)
    }

    /// Like [`Resolver::stack`], but caches the chain.
    pub fn stack_cached(&mut self, history: &History, epoch: Epoch, chain: RecordWords<'_>) -> u32 {
        let raw = self.chains.add(epoch.0, chain.as_bytes()) as usize;
        if let Some(stack) = self.stack_of.get(raw).filter(|stack| **stack != NONE) {
            return *stack;
        }
        let stack = self.stack(history, epoch, chain);
        self.stack_of.resize(self.chains.len(), NONE);
        self.stack_of[raw] = stack;
        stack
    }

    /// Clears the caches if they exceed this many bytes. Numbers stay valid.
    pub fn forget_addresses(&mut self, most: usize) {
        if self.chains.size() > most || self.known.len() > most / 32 {
            (self.chains, self.stack_of, self.known) = Default::default();
        }
    }

    /// Applies new epoch numbers to the caches. Removes entries of epochs that no longer exist.
    pub fn follow(&mut self, moved: &FxHashMap<Epoch, Epoch>) {
        let known = std::mem::take(&mut self.known).into_iter();
        let known = known.filter_map(|(address, number)| {
            Some((SampledAddress { epoch: *moved.get(&address.epoch)?, ..address }, number))
        });
        self.known = known.collect();
        let (chains, stack_of) = (std::mem::take(&mut self.chains), std::mem::take(&mut self.stack_of));
        for ((epoch, chain), stack) in chains.iter().zip(stack_of) {
            if let Some(epoch) = moved.get(&Epoch(epoch)) {
                self.chains.add(epoch.0, chain);
                self.stack_of.push(stack);
            }
        }
    }

    /// Starts a renumbering that keeps only the numbers that are still in use; see [`Renumbering`].
    pub(super) fn renumber(&mut self) -> Renumbering<'_> {
        let locations = std::mem::take(&mut self.locations).all().clone();
        let stacks = std::mem::take(&mut self.stacks);
        let (new_location, new_stack) = (vec![NONE; locations.len()], vec![NONE; stacks.len()]);
        Renumbering { resolver: self, locations, stacks, new_location, new_stack }
    }
}

/// Maps old numbers that are still in use to new numbers. Callers must end with [`Renumbering::finish`].
pub(super) struct Renumbering<'a> {
    resolver: &'a mut Resolver,
    locations: Arc<Vec<CodeLocation>>,
    stacks: Arc<Interner>,
    /// New location numbers by old number; [`NONE`] if not requested yet.
    new_location: Vec<u32>,
    new_stack: Vec<u32>,
}

impl Renumbering<'_> {
    /// Returns the new number of a location.
    pub(super) fn location(&mut self, number: u32) -> u32 {
        let new = &mut self.new_location[number as usize];
        if *new == NONE {
            *new = self.resolver.locations.add(self.locations[number as usize]);
        }
        *new
    }

    /// Returns the new number of a stack.
    pub(super) fn stack(&mut self, number: u32) -> u32 {
        if self.new_stack[number as usize] == NONE {
            let stacks = self.stacks.clone();
            let (tag, list) = stacks.get(number);
            let new = numbers(list).map(|number| self.location(number));
            let list: Vec<u8> = new.flat_map(u32::to_ne_bytes).collect();
            self.new_stack[number as usize] = Arc::make_mut(&mut self.resolver.stacks).add(tag, &list);
        }
        self.new_stack[number as usize]
    }

    /// Drops all numbers that were not requested. Cache entries for requested numbers remain, under the new
    /// numbers.
    pub(super) fn finish(self) {
        self.resolver.known.retain(|_, number| {
            *number = self.new_location[*number as usize];
            *number != NONE
        });
        for stack in self.resolver.stack_of.iter_mut().filter(|stack| **stack != NONE) {
            *stack = self.new_stack[*stack as usize];
        }
    }
}

/// Resolves all stacks, and merges rows whose stacks have become equal. `most` is as in [`walk`].
pub(crate) fn resolve(history: &History, samples: &mut Samples, most: usize) -> ResolvedStacks {
    let mut resolver = Resolver::new(most);
    let mut stack_of: Vec<u32> = Vec::new();
    let look_up = if samples.are_leaves { Resolver::leaf } else { Resolver::stack };
    for part in std::mem::take(&mut samples.stacks) {
        let numbers = part
            .iter()
            .map(|(epoch, list)| look_up(&mut resolver, history, Epoch(epoch), RecordWords::new(list)));
        stack_of.extend(numbers);
    }
    let mut rows = std::mem::take(&mut samples.rows);
    for (key, _) in &mut rows {
        key.stack = stack_of[key.stack as usize];
    }
    if !samples.places.is_empty() {
        resolve_attributes(history, samples, &mut resolver, &mut rows);
    }
    join(&mut rows);
    let locations = resolver.locations().clone();
    let stacks = if samples.are_leaves { StackStore::Leaves } else { StackStore::Interned(resolver.stacks) };
    ResolvedStacks { locations, stacks, rows }
}

/// Replaces addresses in the attributes with location numbers.
fn resolve_attributes(
    history: &History,
    samples: &mut Samples,
    resolver: &mut Resolver,
    rows: &mut [(RowKey, SampleValue)],
) {
    let mut resolved = Interner::default();
    let mut number_of: Vec<u32> = Vec::new();
    let mut scratch = Vec::new();
    for (epoch, list) in samples.attributes.iter() {
        let mut words: Vec<u64> = RecordWords::new(list).iter().collect();
        for (at, attribute) in &samples.places {
            let Some(word) = words.get_mut(*at).filter(|word| **word != u64::MAX) else { continue };
            let is_data = *attribute != SampleAttribute::From;
            let address = SampledAddress::in_user_or_kernel(Epoch(epoch), *word, is_data);
            *word = resolver.location(history, address).into();
        }
        bytes(&words, &mut scratch);
        number_of.push(resolved.add(0, &scratch));
    }
    samples.attributes = resolved;
    for (key, _) in rows {
        key.attributes = number_of.get(key.attributes as usize).copied().unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::intern::{SharedInterner, bytes};
    use crate::session::module::Modules;
    use pmc_sys::abi::context;

    #[test]
    fn unmapped_callers_have_no_location() {
        const KERNEL: u64 = -128i64 as u64;
        let (history, mut resolver, mut raw) =
            (History::new(Modules::default()), Resolver::new(100), Vec::new());
        let mut stack = |words: &[u64]| {
            bytes(words, &mut raw);
            resolver.stack(&history, Epoch(0), RecordWords::new(&raw))
        };
        let first = stack(&[KERNEL, 0xffff_ffff_8000_0000, 0xffff_ffff_8000_0010, context::USER, 0x10]);
        assert_eq!(stack(&[context::USER, 0x10, 0x20, 0x30]), stack(&[context::USER, 0x10, 0x40]));
        let stacks = resolver.stacks().clone();
        assert_eq!(numbers(stacks.get(first).1).len(), 3);
        assert_eq!((resolver.locations().len(), stacks.len()), (3, 2));
    }

    #[test]
    fn addresses_without_callers_are_one_frame_stacks() {
        let history = History::new(Modules::default());
        let shared = |words: [[u64; 2]; 3]| {
            let interner = SharedInterner::default();
            let mut raw = Vec::new();
            for (position, words) in (0..).zip(words) {
                bytes(&words, &mut raw);
                interner.add(position, 1, &raw);
            }
            interner.finish().0
        };
        let words = [[context::USER, 0x10], [context::USER, 0x20], [context::USER, 0x10]];
        let resolved = |are_leaves| {
            let value = |samples| SampleValue { samples, ..SampleValue::default() };
            let row = |stack, samples| (RowKey { event: 0, stack, comm: 0, attributes: 0 }, value(samples));
            let rows = vec![row(0, 3), row(1, 4)];
            let mut samples = Samples { rows, stacks: shared(words), are_leaves, ..Samples::default() };
            resolve(&history, &mut samples, 100)
        };
        let (leaves, lists) = (resolved(true), resolved(false));
        assert_eq!((&leaves.rows, &leaves.locations), (&lists.rows, &lists.locations));
        assert!((0..2).all(|stack| leaves.stack(stack).eq(lists.stack(stack))));
    }
}
