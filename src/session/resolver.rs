//! From addresses to numbers of locations, and from chains of addresses to numbers of stacks of locations.
//!
//! Receives what [`super::samples`] interned, or chains one by one as they come ([`super::live`]), each with
//! the epoch it was seen in; looks up each address once; hands on distinct [`Location`]s and distinct stacks
//! of their numbers. Here the same code in many processes, wherever each had it mapped, becomes one.

use std::sync::Arc;

use rayon::iter::Either;
use rustc_hash::FxHashMap;

use super::intern::{Distinct, Interner, KeyedMap, bytes, numbers};
use super::location::{Location, SampledAddress, is_joined, locate, walk};
use super::samples::{Key, SampleAttribute, Samples, Value, join};
use super::{Epoch, History};
use crate::abi::CpuMode;
use crate::record::Words;

/// Stacks by their number.
#[derive(Debug, Clone)]
pub enum Stacks {
    /// Interner of numbers of locations, innermost first, four bytes each.
    Interned(Arc<Interner>),
    /// Nobody asked for callers: the number of a location is that of the stack which is it alone.
    Leaves,
}

impl Default for Stacks {
    fn default() -> Self {
        Self::Interned(Arc::default())
    }
}

impl From<Interner> for Stacks {
    fn from(lists: Interner) -> Self {
        Self::Interned(lists.into())
    }
}

/// Stacks whose addresses were looked up.
#[derive(Debug, Default)]
pub struct Resolved {
    /// Each place once.
    pub locations: Arc<Vec<Location>>,
    /// The stacks: see [`Resolved::stack`].
    pub stacks: Stacks,
    /// The rows of pass 2, their stacks being numbers in `stacks`.
    pub rows: Vec<(Key, Value)>,
}

impl Resolved {
    /// Whether a stack's outermost callers were cut off: see [`Resolver::stack`].
    pub fn is_cut(&self, number: u32) -> bool {
        self.tag(number) & CUT != 0
    }

    /// Whether callers of a stack were taken over from another of its thread: see [`is_joined`].
    pub fn is_joined(&self, number: u32) -> bool {
        self.tag(number) & JOINED != 0
    }

    fn tag(&self, number: u32) -> u32 {
        match &self.stacks {
            Stacks::Interned(lists) => lists.get(number).0,
            Stacks::Leaves => 0,
        }
    }

    /// The locations of a stack, innermost first.
    pub fn stack(&self, number: u32) -> impl DoubleEndedIterator<Item = u32> + ExactSizeIterator + '_ {
        match &self.stacks {
            Stacks::Interned(lists) => Either::Left(numbers(lists.get(number).1)),
            Stacks::Leaves => Either::Right(std::iter::once(number)),
        }
    }

    /// Sorts the rows again, and adds up those that have become the same.
    pub fn rejoin(&mut self) {
        join(&mut self.rows);
    }
}

/// The bit in the tag of stacks whose outermost callers were cut off.
const CUT: u32 = 1;
/// The bit in that of joined ones.
const JOINED: u32 = 2;

/// Stands for the number of what has none.
const NONE: u32 = u32::MAX;

/// Looks addresses up, and gives numbers to the locations and to the stacks of these: one for a recording as
/// a whole, or for all that comes while somebody watches.
#[derive(Debug)]
pub struct Resolver {
    /// Addresses of a stack that count, as in [`walk`].
    most: usize,
    /// Addresses that were looked up.
    known: KeyedMap<SampledAddress, u32>,
    /// Raw chains whose stacks are remembered (tag: epoch), and the number of each one's stack.
    chains: Interner,
    stack_of: Vec<u32>,
    locations: Distinct<Location>,
    stacks: Arc<Interner>,
    /// Memory that is used again: the addresses of a stack, and the numbers of their locations.
    scratch: (Vec<SampledAddress>, Vec<u8>),
}

impl Resolver {
    /// Knows nothing yet. `most`: as in [`walk`].
    pub fn new(most: usize) -> Self {
        Self {
            most,
            known: KeyedMap::default(),
            chains: Interner::default(),
            stack_of: Vec::new(),
            locations: Distinct::default(),
            stacks: Arc::default(),
            scratch: Default::default(),
        }
    }

    /// All locations, by number.
    pub fn locations(&self) -> &Arc<Vec<Location>> {
        self.locations.all()
    }

    /// All stacks: lists of numbers of locations, innermost first, four bytes each.
    pub fn stacks(&self) -> &Arc<Interner> {
        &self.stacks
    }

    /// The number of the location of an address, which is remembered.
    #[inline]
    pub fn location(&mut self, history: &History, address: SampledAddress) -> u32 {
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

    /// The number of the location of an address that the caller remembers himself.
    pub fn location_once(&mut self, history: &History, address: SampledAddress) -> u32 {
        self.locations.add(locate(history, address))
    }

    /// The number of the stack that a chain of raw addresses is. Outermost callers of a process where nothing
    /// was mapped are false ones, to which something led that is no frame pointer: they are cut off, and have
    /// no location, since each is another one.
    pub fn stack(&mut self, history: &History, epoch: Epoch, chain: Words<'_>) -> u32 {
        let (mut addresses, mut list) = std::mem::take(&mut self.scratch);
        addresses.clear();
        list.clear();
        // Behind it are callers of a process only.
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

    /// The number of the location of a chain that is the sampled address alone, which comes once.
    fn leaf(&mut self, history: &History, epoch: Epoch, chain: Words<'_>) -> u32 {
        let mut sampled = SampledAddress::code(epoch, CpuMode::Unknown, 0);
        walk(chain, 1, |level, address, _| sampled = SampledAddress::code(epoch, level, address));
        self.location_once(history, sampled)
    }

    /// As [`Resolver::stack`]; the chain is remembered, and recognised when it comes again.
    pub fn stack_again(&mut self, history: &History, epoch: Epoch, chain: Words<'_>) -> u32 {
        let raw = self.chains.add(epoch.0, chain.as_bytes()) as usize;
        if let Some(stack) = self.stack_of.get(raw).filter(|stack| **stack != NONE) {
            return *stack;
        }
        let stack = self.stack(history, epoch, chain);
        self.stack_of.resize(self.chains.len(), NONE);
        self.stack_of[raw] = stack;
        stack
    }

    /// Forgets what was remembered, where that takes more than so many bytes. Numbers stay.
    pub(super) fn forget_addresses(&mut self, most: usize) {
        if self.chains.size() > most || self.known.len() > most / 32 {
            (self.chains, self.stack_of, self.known) = Default::default();
        }
    }

    /// Epochs have got new numbers; what was remembered in those that are gone cannot be met again.
    pub(super) fn follow(&mut self, moved: &FxHashMap<Epoch, Epoch>) {
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

    /// Gives new numbers to what is still used, and forgets the rest: see [`Renumbering`].
    pub(super) fn renumber(&mut self) -> Renumbering<'_> {
        let locations = std::mem::take(&mut self.locations).all().clone();
        let stacks = std::mem::take(&mut self.stacks);
        let (new_location, new_stack) = (vec![NONE; locations.len()], vec![NONE; stacks.len()]);
        Renumbering { resolver: self, locations, stacks, new_location, new_stack }
    }
}

/// Says for each old number that is still used what it is now. [`Renumbering::finish`] must follow.
pub(super) struct Renumbering<'a> {
    resolver: &'a mut Resolver,
    locations: Arc<Vec<Location>>,
    stacks: Arc<Interner>,
    /// By old numbers; [`NONE`] where nobody has asked.
    new_location: Vec<u32>,
    new_stack: Vec<u32>,
}

impl Renumbering<'_> {
    /// The new number of a location.
    pub(super) fn location(&mut self, number: u32) -> u32 {
        let new = &mut self.new_location[number as usize];
        if *new == NONE {
            *new = self.resolver.locations.add(self.locations[number as usize]);
        }
        *new
    }

    /// The new number of a stack.
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

    /// Forgets the rest; what was remembered of what is kept stays so, under the new numbers.
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

/// Looks up all stacks, and joins rows whose stacks turned out to be the same. `most`: as in [`walk`].
pub fn resolve(history: &History, samples: &mut Samples, most: usize) -> Resolved {
    let mut resolver = Resolver::new(most);
    let mut stack_of: Vec<u32> = Vec::new();
    let look_up = if samples.are_leaves { Resolver::leaf } else { Resolver::stack };
    for part in std::mem::take(&mut samples.stacks) {
        let numbers =
            part.iter().map(|(epoch, list)| look_up(&mut resolver, history, Epoch(epoch), Words::new(list)));
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
    let stacks = if samples.are_leaves { Stacks::Leaves } else { Stacks::Interned(resolver.stacks) };
    Resolved { locations, stacks, rows }
}

/// Puts numbers of locations where the attributes have addresses.
fn resolve_attributes(
    history: &History,
    samples: &mut Samples,
    resolver: &mut Resolver,
    rows: &mut [(Key, Value)],
) {
    let mut resolved = Interner::default();
    let mut number_of: Vec<u32> = Vec::new();
    let mut scratch = Vec::new();
    for (epoch, list) in samples.attributes.iter() {
        let mut words: Vec<u64> = Words::new(list).iter().collect();
        for (at, attribute) in &samples.places {
            let Some(word) = words.get_mut(*at).filter(|word| **word != u64::MAX) else { continue };
            let is_data = *attribute != SampleAttribute::From;
            let address = SampledAddress::by_half(Epoch(epoch), *word, is_data);
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
    use crate::abi::context;
    use crate::session::intern::{SharedInterner, bytes};
    use crate::session::module::Modules;

    #[test]
    fn callers_where_nothing_is_mapped_leave_no_location() {
        const KERNEL: u64 = -128i64 as u64;
        let (history, mut resolver, mut raw) =
            (History::new(Modules::default()), Resolver::new(100), Vec::new());
        let mut stack = |words: &[u64]| {
            bytes(words, &mut raw);
            resolver.stack(&history, Epoch(0), Words::new(&raw))
        };
        let first = stack(&[KERNEL, 0xffff_ffff_8000_0000, 0xffff_ffff_8000_0010, context::USER, 0x10]);
        assert_eq!(stack(&[context::USER, 0x10, 0x20, 0x30]), stack(&[context::USER, 0x10, 0x40]));
        let stacks = resolver.stacks().clone();
        assert_eq!(numbers(stacks.get(first).1).len(), 3);
        assert_eq!((resolver.locations().len(), stacks.len()), (3, 2));
    }

    #[test]
    fn addresses_without_callers_are_their_stacks() {
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
            let value = |samples| Value { samples, ..Value::default() };
            let row = |stack, samples| (Key { event: 0, stack, comm: 0, attributes: 0 }, value(samples));
            let rows = vec![row(0, 3), row(1, 4)];
            let mut samples = Samples { rows, stacks: shared(words), are_leaves, ..Samples::default() };
            resolve(&history, &mut samples, 100)
        };
        let (leaves, lists) = (resolved(true), resolved(false));
        assert_eq!((&leaves.rows, &leaves.locations), (&lists.rows, &lists.locations));
        assert!((0..2).all(|stack| leaves.stack(stack).eq(lists.stack(stack))));
    }
}
