//! Non-overlapping intervals, each with a value: maps addresses to values.
//!
//! Takes intervals in any order; finds the interval that contains an address. The caller decides whether
//! older intervals that overlap a new one are replaced, cut or kept. (`rangemap` always cuts them, and joins
//! neighbours with equal values, which would merge two functions with the same name.)

use std::collections::BTreeMap;
use std::ops::Range;

/// Non-overlapping intervals, ordered by start; ends are exclusive.
#[derive(Debug, Clone)]
pub struct IntervalMap<T>(BTreeMap<u64, (u64, T)>);

impl<T> Default for IntervalMap<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> IntervalMap<T> {
    /// Inserts an interval. Removes all older intervals that overlap it, even partially. An empty interval
    /// changes nothing.
    pub fn replace(&mut self, range: Range<u64>, value: T) {
        if !range.is_empty() {
            self.remove(&range);
            self.0.insert(range.start, (range.end, value));
        }
    }

    /// Removes every interval that overlaps this range. Returns them, highest first.
    pub(crate) fn remove(&mut self, range: &Range<u64>) -> Vec<(Range<u64>, T)> {
        let mut removed = Vec::new();
        // Search backwards from the end of the range. Intervals do not overlap, so the search can stop at the
        // first one that ends before the range starts.
        while let Some((&start, (end, _))) = self.0.range(..range.end).next_back()
            && *end > range.start
            && let Some((end, value)) = self.0.remove(&start)
        {
            removed.push((start..end, value));
        }
        removed
    }

    /// Returns the interval that contains an address.
    pub fn find(&self, address: u64) -> Option<(Range<u64>, &T)> {
        let (start, (end, value)) = self.0.range(..=address).next_back()?;
        (address < *end).then_some((*start..*end, value))
    }

    /// Whether any interval overlaps this range.
    pub(crate) fn overlaps(&self, range: &Range<u64>) -> bool {
        self.0.range(..range.end).next_back().is_some_and(|(_, (end, _))| *end > range.start)
    }

    /// Returns the intervals, ordered by start.
    pub fn iter(&self) -> impl Iterator<Item = (Range<u64>, &T)> {
        self.0.iter().map(|(start, (end, value))| (*start..*end, value))
    }

    /// Whether there are no intervals.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_interval_replaces_overlapped_ones() {
        let mut map = IntervalMap::default();
        map.replace(10..20, "a");
        map.replace(20..30, "b");
        map.replace(40..50, "c");
        assert!(map.overlaps(&(19..20)) && map.overlaps(&(45..46)) && !map.overlaps(&(30..40)));
        map.replace(15..25, "new");
        map.replace(7..7, "empty");
        assert_eq!(map.iter().collect::<Vec<_>>(), [(15..25, &"new"), (40..50, &"c")]);
        assert_eq!(map.find(24), Some((15..25, &"new")));
        assert!(map.find(25).is_none() && map.find(12).is_none());
        assert_eq!(map.remove(&(0..41)), [(40..50, "c"), (15..25, "new")]);
        assert!(map.is_empty());
    }
}
