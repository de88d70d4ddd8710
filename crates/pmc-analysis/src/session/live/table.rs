//! The rows: decaying sums, and a small cache for the rows of recent samples.
//!
//! Finds a sample's row from the properties that identify it. Most samples repeat a recently sampled address,
//! so a single comparison usually finds the row without a lookup. If rows are close to zero or too numerous,
//! some are dropped at random, and others are kept to represent them.

use std::hash::{BuildHasher, Hasher, RandomState};

use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHasher};

use crate::session::history::Epoch;
use crate::session::samples::{RowKey, SampleValue};
use pmc_sys::abi::CpuMode;

/// The address of a sample without callers, and the other properties that identify its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) address: u64,
    pub(super) epoch: Epoch,
    pub(super) comm: u32,
    pub(super) attributes: u32,
    pub(super) event: u16,
    pub(super) level: CpuMode,
}

/// A [`SampleValue`] that decays.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DecayingValue {
    samples: f64,
    period: f64,
    squares: f64,
    costs: [f64; 3],
}

impl DecayingValue {
    /// Adds a sample. `costs` are the costs measured by the hardware.
    pub(super) fn add(&mut self, period: u64, costs: [u64; 3]) {
        let period = period as f64;
        self.join(Self {
            samples: 1.0,
            period,
            squares: period * period,
            costs: costs.map(|cost| cost as f64),
        });
    }

    fn join(&mut self, other: Self) {
        self.samples += other.samples;
        self.period += other.period;
        self.squares += other.squares;
        self.costs.iter_mut().zip(other.costs).for_each(|(own, other)| *own += other);
    }

    /// Multiplies the weight of each sample.
    fn scale(&mut self, factor: f64) {
        self.samples *= factor;
        self.period *= factor;
        // The factor applies to each sample's period, so the squares change by the squared factor.
        self.squares *= factor * factor;
        self.costs = self.costs.map(|cost| cost * factor);
    }

    fn value(self) -> SampleValue {
        SampleValue {
            samples: (self.samples.round() as u64).max(1),
            period: self.period.round() as u64,
            squares: self.squares,
            ..SampleValue::default()
        }
        .weighing(self.costs.map(|cost| cost.round() as u64))
    }
}

/// Number of sets of cached origins; small enough to fit in a CPU's cache.
const SETS: usize = 1 << 12;

/// Sums by key.
#[derive(Debug, Default)]
pub(super) struct DecayingTable {
    /// Rows without samples are empty slots, which are removed when there are many.
    rows: IndexMap<RowKey, DecayingValue, FxBuildHasher>,
    /// Number of empty slots at the last count.
    empty: usize,
    /// Cached origins; the address determines the set.
    recent: Vec<RowCacheSet>,
    /// Source of randomness: the SipHash values of 1, 2, 3, …. A faster hash would give correlated values.
    dice: RandomState,
    rolls: u64,
}

/// Two origins, the newer one first. Together, they fill one cache line.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
struct RowCacheSet([Option<CachedRow>; 2]);

const _: () = assert!(size_of::<RowCacheSet>() == 64);

#[derive(Debug, Clone, Copy)]
struct CachedRow {
    origin: Origin,
    stack: u32,
    row: u32,
}

impl CachedRow {
    fn key(&self) -> RowKey {
        let Origin { event, comm, attributes, .. } = self.origin;
        RowKey { event: event.into(), stack: self.stack, comm, attributes }
    }
}

fn set_of(address: u64) -> usize {
    let mut hasher = FxHasher::default();
    hasher.write_u64(address);
    hasher.finish() as usize % SETS
}

impl DecayingTable {
    /// Returns the slot of an origin's row, if cached.
    pub(super) fn slot(&self, origin: &Origin) -> Option<usize> {
        let set = self.recent.get(set_of(origin.address))?;
        let recent = set.0.iter().flatten().find(|recent| recent.origin == *origin)?;
        Some(recent.row as usize)
    }

    /// The row in a slot.
    pub(super) fn at(&mut self, slot: usize) -> &mut DecayingValue {
        &mut self.rows[slot]
    }

    /// Returns the row with this key. Creates the row if it is new.
    pub(super) fn row(&mut self, key: RowKey) -> &mut DecayingValue {
        self.rows.entry(key).or_default()
    }

    /// Returns the row of an origin with this stack, and caches the origin.
    pub(super) fn remember(&mut self, origin: Origin, stack: u32) -> &mut DecayingValue {
        let mut recent = CachedRow { origin, stack, row: 0 };
        let entry = self.rows.entry(recent.key());
        recent.row = entry.index() as u32;
        self.recent.resize(SETS, RowCacheSet::default());
        let set = &mut self.recent[set_of(origin.address)].0;
        *set = [Some(recent), set[0]];
        entry.or_default()
    }

    /// Applies new epoch numbers to the cache. Removes entries of epochs that no longer exist.
    pub(super) fn follow(&mut self, moved: &FxHashMap<Epoch, Epoch>) {
        self.remembered(|recent, _| {
            let epoch = *moved.get(&recent.origin.epoch)?;
            Some(CachedRow { origin: Origin { epoch, ..recent.origin }, ..recent })
        });
    }

    /// Replaces or removes each cache entry.
    fn remembered(
        &mut self,
        mut change: impl FnMut(CachedRow, &IndexMap<RowKey, DecayingValue, FxBuildHasher>) -> Option<CachedRow>,
    ) {
        for recent in self.recent.iter_mut().flat_map(|set| &mut set.0) {
            *recent = recent.and_then(|recent| change(recent, &self.rows));
        }
    }

    /// Multiplies all sums by `keep` (0 to 1).
    ///
    /// A row that would fall below one sample is either raised to one sample or dropped, with a probability
    /// that keeps its expected weight correct. Rare rows are therefore not biased, but do not remain forever
    /// either.
    pub(super) fn decay(&mut self, keep: f64) {
        self.change(|weight, chance| {
            weight.scale(keep);
            if weight.samples < 1.0 {
                let samples = weight.samples;
                weight.scale(if chance() < samples { 1.0 / samples } else { 0.0 });
            }
        });
    }

    /// Drops each row in the lighter half with a probability of 1/2, and doubles the remaining rows of that
    /// half. The expected sums stay the same, but their error grows, which the squares of the periods
    /// reflect. Returns the number of affected rows.
    pub(super) fn downsample(&mut self) -> u64 {
        let mut periods: Vec<f64> = self.iter().map(|(_, weight)| weight.period).collect();
        let middle = periods.len() / 2;
        if periods.is_empty() {
            return 0;
        }
        let middle = *periods.select_nth_unstable_by(middle, f64::total_cmp).1;
        let mut count = 0;
        self.change(|weight, chance| {
            if weight.period <= middle {
                count += 1;
                weight.scale(if chance() < 0.5 { 2.0 } else { 0.0 });
            }
        });
        self.close();
        self.rows.shrink_to_fit();
        count
    }

    /// Changes all weights, and drops rows without samples. The second argument of `change` returns a random
    /// number in [0, 1).
    fn change(&mut self, mut change: impl FnMut(&mut DecayingValue, &mut dyn FnMut() -> f64)) {
        let Self { rows, dice, rolls, empty, .. } = self;
        let mut chance = || {
            *rolls += 1;
            (dice.hash_one(*rolls) >> 11) as f64 / (1u64 << 53) as f64
        };
        *empty = 0;
        for weight in rows.values_mut() {
            if weight.samples > 0.0 {
                change(weight, &mut chance);
            }
            *empty += usize::from(weight.samples == 0.0);
        }
        if self.empty > self.rows.len() / 4 {
            self.close();
        }
    }

    /// Removes the empty slots.
    fn close(&mut self) {
        self.rows.retain(|_, weight| weight.samples != 0.0);
        self.empty = 0;
        self.remembered(|recent, rows| {
            let row = rows.get_index_of(&recent.key())? as u32;
            Some(CachedRow { row, ..recent })
        });
    }

    /// Changes the keys of all rows, and merges rows whose keys become equal. `change` may be called several
    /// times with the same key, and must return the same result each time.
    pub(super) fn rename(&mut self, mut change: impl FnMut(RowKey) -> RowKey) {
        // The stack and attribute numbers in an empty slot may no longer be valid.
        self.remembered(|recent, rows| {
            let (_, weight) = rows.get_index(recent.row as usize)?;
            (weight.samples != 0.0).then_some(recent)
        });
        let rows = std::mem::take(&mut self.rows);
        self.rows.reserve(rows.len());
        self.empty = 0;
        for (key, weight) in rows.into_iter().filter(|(_, weight)| weight.samples != 0.0) {
            self.rows.entry(change(key)).or_default().join(weight);
        }
        self.remembered(|recent, rows| {
            let key = change(recent.key());
            let row = rows.get_index_of(&key)? as u32;
            let origin = Origin { attributes: key.attributes, ..recent.origin };
            Some(CachedRow { origin, stack: key.stack, row })
        });
    }

    pub(super) fn clear(&mut self) {
        self.rows.clear();
        self.empty = 0;
        self.recent.fill(RowCacheSet::default());
    }

    /// Approximate number of rows; recently refilled slots may not be counted.
    pub(super) fn len(&self) -> usize {
        self.rows.len() - self.empty
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&RowKey, &DecayingValue)> {
        self.rows.iter().filter(|(_, weight)| weight.samples != 0.0)
    }

    /// Returns the rows, sorted by event and stack. Rows that share both are in no particular order.
    pub(super) fn by_stack(&self) -> Vec<(RowKey, SampleValue)> {
        // Sort small elements instead of whole rows.
        let mut order: Vec<(u64, u32)> = Vec::with_capacity(self.rows.len());
        let filled = (0..).zip(&self.rows).filter(|(_, (_, weight))| weight.samples != 0.0);
        order.extend(filled.map(|(at, (key, _))| (u64::from(key.event) << 32 | u64::from(key.stack), at)));
        order.sort_unstable();
        let mut rows = Vec::with_capacity(order.len());
        let filled = order.iter().filter_map(|(_, at)| self.rows.get_index(*at as usize));
        rows.extend(filled.map(|(key, weight)| (*key, weight.value())));
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of dropped rows per table follows a binomial distribution.
    #[test]
    fn random_numbers_are_unbiased_and_uncorrelated() {
        const TABLES: u32 = 400;
        const ROWS: u32 = 1000;
        let left = |_| {
            let mut table = DecayingTable::default();
            for stack in 0..ROWS {
                table.row(RowKey { event: 0, stack, comm: 0, attributes: 0 }).add(1, [0; 3]);
            }
            (0..5).for_each(|_| table.decay(0.875));
            assert!(table.by_stack().iter().all(|(_, value)| value.period == 1));
            table.len() as f64
        };
        let chance = 0.875f64.powi(5);
        let (expected, variance) = (f64::from(ROWS) * chance, f64::from(ROWS) * chance * (1.0 - chance));
        let squares: f64 = (0..TABLES).map(left).map(|left| (left - expected).powi(2)).sum();
        // The mean of 400 such squares has a standard deviation of 7%.
        let ratio = squares / f64::from(TABLES) / variance;
        assert!((0.6..1.5).contains(&ratio), "{ratio} of the variance");
    }
}
