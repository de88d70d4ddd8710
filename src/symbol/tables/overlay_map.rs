//! Ranges that were laid over one another in time: the newest shows where several lie.
//!
//! JIT compilers throw code away and put other code in its place without saying so; what was said last about an address holds.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Bound;

use super::table::{Builder, Rank, Table};

/// Ranges with a value each, without overlaps.
#[derive(Debug)]
pub struct OverlayMap<T>(BTreeMap<u64, (u64, T)>);

impl<T> Default for OverlayMap<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Clone> OverlayMap<T> {
    /// Lays a range over what is there; whole functions are replaced, also where only a part of them is covered.
    pub fn lay(&mut self, start: u64, end: u64, value: T) {
        if end <= start {
            return;
        }
        // Without overlaps only the last range before `end` can reach over `start`, then the one before it, and so on.
        while let Some((&at, &(stop, _))) = self.0.range((Bound::Unbounded, Bound::Excluded(end))).next_back()
        {
            if stop <= start {
                break;
            }
            self.0.remove(&at);
        }
        self.0.insert(start, (end, value));
    }

    /// The ranges by start.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64, &T)> {
        self.0.iter().map(|(start, (end, value))| (*start, *end, value))
    }

    /// The range that holds an address.
    pub fn find(&self, address: u64) -> Option<(u64, u64, &T)> {
        let (start, (end, value)) = self.0.range(..=address).next_back()?;
        (address < *end).then_some((*start, *end, value))
    }

    /// The ranges as a table of functions.
    pub fn table<'a>(&'a self, name: impl Fn(&'a T) -> Cow<'a, str>) -> Table {
        let mut builder = Builder::default();
        let rank = Rank { function: true, strong: true, global: true };
        for (start, end, value) in self.iter() {
            builder.add(start, end - start, end, rank, &name(value));
        }
        builder.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_replaces_what_it_touches() {
        let mut painted = OverlayMap::default();
        painted.lay(10, 20, "a");
        painted.lay(20, 30, "b");
        painted.lay(40, 50, "c");
        painted.lay(15, 25, "new");
        painted.lay(7, 7, "empty");
        let left: Vec<_> = painted.iter().collect();
        assert_eq!(left, [(15, 25, &"new"), (40, 50, &"c")]);
        assert_eq!(painted.find(24).unwrap().2, &"new");
        assert!(painted.find(25).is_none() && painted.find(12).is_none());
    }
}
