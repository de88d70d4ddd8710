//! Stacks of Xdebug's callgrind files. Xdebug writes a block for each single call of a function, when the
//! call ends. So a block follows those of the calls from it, and the file holds the whole tree of calls:
//!
//! ```text
//!   fn=leaf  2 10
//!   fn=work  5 30  cfn=leaf  6 10            main -- work -- leaf
//!   fn=leaf  2 12                                 '- leaf
//!   fn=main  1 50  cfn=work  8 40  cfn=leaf  9 12
//! ```
//!
//! The callgrind reader fills a [`CallList`]. Read from its end, callers come before the functions that they
//! call, the last call first.

use indexmap::{IndexMap, IndexSet};

use super::error::ImportError;
use super::profile::{ImportId, ImportedProfile, ImportedSample, MOST_FRAMES};

/// All calls of a program, in the order in which they ended.
#[derive(Default)]
pub(super) struct CallList {
    blocks: Vec<CallBlock>,
    /// Costs of all blocks, `events` for each.
    costs: Vec<u64>,
    /// Calls from all blocks: the called function, and the location of the call.
    calls: Vec<(usize, ImportId)>,
    /// Whether a block has no own cost, or several.
    is_invalid: bool,
    events: usize,
}

/// A call of a function.
struct CallBlock {
    function: usize,
    /// Location of its own cost.
    location: Option<ImportId>,
    /// Index of its first call in [`CallList::calls`].
    first_call: usize,
}

/// A block whose calls have not all been visited.
struct OpenBlock {
    /// Index of its context.
    context: usize,
    first_call: usize,
    /// Number of calls that were not visited.
    left: usize,
}

impl CallList {
    /// Begins the block of a call of a function.
    pub(super) fn begin(&mut self, function: usize, events: usize) {
        self.is_invalid |= self.blocks.last().is_some_and(|block| block.location.is_none());
        self.events = events;
        self.costs.resize((self.blocks.len() + 1) * events, 0);
        self.blocks.push(CallBlock { function, location: None, first_call: self.calls.len() });
    }

    /// Adds the own cost of the last block.
    pub(super) fn own(&mut self, location: ImportId, costs: &[u64]) {
        let Some(block) = self.blocks.last_mut() else { return };
        self.is_invalid |= block.location.replace(location).is_some();
        let first = self.costs.len() - self.events;
        self.costs[first..].iter_mut().zip(costs).for_each(|(own, cost)| *own = *cost);
    }

    /// Adds a call from the last block.
    pub(super) fn call(&mut self, function: usize, location: ImportId) {
        self.calls.push((function, location));
    }

    /// Returns the number of calls from a block.
    fn len(&self, block: usize) -> usize {
        let end = self.blocks.get(block + 1).map_or(self.calls.len(), |next| next.first_call);
        end - self.blocks[block].first_call
    }

    /// Whether each block follows those of the calls from it. Files whose writers merge calls are different.
    pub(super) fn is_tree(&self) -> bool {
        let mut ended: Vec<usize> = Vec::new();
        for (number, block) in self.blocks.iter().enumerate() {
            let called = self.calls[block.first_call..].iter().take(self.len(number));
            let Some(first) = ended.len().checked_sub(self.len(number)) else { return false };
            if !ended[first..].iter().eq(called.map(|(function, _)| function)) {
                return false;
            }
            ended.truncate(first);
            ended.push(block.function);
        }
        let is_whole = self.blocks.last().is_some_and(|block| block.location.is_some());
        is_whole && !self.is_invalid && self.costs.len() == self.blocks.len() * self.events
    }

    /// Adds the samples of a list that is a tree. `sample` has their thread, and `events` are their events.
    ///
    /// # Errors
    /// Fails if the profile exceeds a limit.
    pub(super) fn add_samples(
        &self,
        events: &[ImportId],
        sample: ImportedSample,
        profile: &mut ImportedProfile,
    ) -> Result<(), ImportError> {
        // The caller's context, the location of the call, and the function.
        let mut contexts: IndexSet<(Option<usize>, ImportId, usize)> = IndexSet::new();
        let mut sums: IndexMap<(usize, ImportId), Vec<u64>> = IndexMap::new();
        let mut open: Vec<OpenBlock> = Vec::new();
        for (number, block) in self.blocks.iter().enumerate().rev() {
            while open.pop_if(|last| last.left == 0).is_some() {}
            let (caller, location) = match open.last_mut() {
                Some(last) => {
                    last.left -= 1;
                    (Some(last.context), self.calls[last.first_call + last.left].1)
                }
                None => (None, 0),
            };
            let context = contexts.insert_full((caller, location, block.function)).0;
            let own = block.location.unwrap_or_default();
            let sum = sums.entry((context, own)).or_insert_with(|| vec![0; self.events]);
            let costs = &self.costs[number * self.events..][..self.events];
            sum.iter_mut().zip(costs).for_each(|(sum, cost)| *sum = sum.saturating_add(*cost));
            open.push(OpenBlock { context, first_call: block.first_call, left: self.len(number) });
        }
        for ((context, own), sum) in sums {
            let mut locations = vec![own];
            let mut at = &contexts[context];
            // One frame more, so that the stack counts as cut.
            while let (Some(caller), location, _) = at
                && locations.len() <= MOST_FRAMES
            {
                locations.push(*location);
                at = &contexts[*caller];
            }
            let stack = profile.stack(&locations)?;
            for (event, value) in events.iter().zip(sum).filter(|(_, value)| *value > 0) {
                profile.add(ImportedSample { event: *event, stack, value, ..sample })?;
            }
        }
        Ok(())
    }
}
