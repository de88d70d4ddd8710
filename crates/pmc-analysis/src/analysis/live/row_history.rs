//! Costs of functions over the most recent intervals, for the history of a row.
//!
//! Takes the last snapshot of each interval, and subtracts the part of the previous one that is left after
//! decay.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::snapshot::LiveSnapshot;
use crate::profile::sampled::FunctionRef;

/// Maximum number of intervals to keep.
const MAX_INTERVALS: usize = 120;
/// Maximum number of functions to keep per interval; only the costliest are kept.
const FUNCTIONS: usize = 2000;

/// Costs of functions in recent intervals, by module and name.
#[derive(Debug, Default)]
pub struct RowHistory {
    of: FxHashMap<(String, String), IntervalCosts>,
    intervals: usize,
}

#[derive(Debug, Default)]
struct IntervalCosts {
    /// The function's cost in the last snapshot, reduced by the decay since then.
    before: f64,
    sums: VecDeque<u64>,
}

impl RowHistory {
    /// Adds an interval. `keep` is the fraction of all costs that remains after it.
    pub fn note(&mut self, snapshot: &LiveSnapshot, event: usize, keep: f64) {
        self.intervals += 1;
        let mut now: Vec<_> = snapshot.own(event).into_iter().collect();
        now.sort_by_key(|(_, period)| std::cmp::Reverse(*period));
        now.truncate(FUNCTIONS);
        for one in self.of.values_mut() {
            one.sums.push_back(0);
            if one.sums.len() > MAX_INTERVALS {
                one.sums.pop_front();
            }
        }
        for ((dso, symbol), period) in now {
            // The numbers of strings can change from one snapshot to the next.
            let function = [dso, symbol].map(|id| snapshot.text(id).to_owned()).into();
            let one = self.of.entry(function).or_insert_with(|| {
                let sums = std::iter::repeat_n(0, self.intervals.min(MAX_INTERVALS)).collect();
                IntervalCosts { before: 0.0, sums }
            });
            if let Some(last) = one.sums.back_mut() {
                *last = (period as f64 - one.before).max(0.0) as u64;
            }
            one.before = period as f64 * keep;
        }
        self.of.retain(|_, one| one.sums.iter().any(|sum| *sum > 0));
    }

    /// Returns a function's cost in each interval, oldest first.
    pub fn costs(&self, function: &FunctionRef) -> Vec<u64> {
        let one = self.of.get(&(function.dso.clone(), function.symbol.clone()));
        one.map(|one| one.sums.iter().copied().collect()).unwrap_or_default()
    }
}
