//! The rows, and a short memory of where those of the last samples lie.
//!
//! Receives what a sample is told apart by; hands on the sums that it belongs to. Most samples are of code that was
//! sampled a moment ago: for these one comparison says which row is theirs, and nothing is looked up.

use std::hash::Hasher;

use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHasher};

use super::heat::Heat;
use crate::session::samples::Key;
use crate::session::{Layer, Level};

/// Where a sample without callers was taken, and what else tells its row apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) address: u64,
    pub(super) layer: Layer,
    pub(super) level: Level,
    pub(super) event: u32,
    pub(super) comm: u32,
    pub(super) extra: u32,
}

/// Origins that are remembered: few enough to stay in a processor's cache.
const RECENT: usize = 1 << 12;

/// Sums by key.
#[derive(Debug, Default)]
pub(super) struct Rows {
    rows: IndexMap<Key, Heat, FxBuildHasher>,
    /// Each origin at the place that its hash says, with the place of its row; the later one wins.
    recent: Vec<Option<(Origin, u32)>>,
}

fn slot(origin: &Origin) -> usize {
    let mut hasher = FxHasher::default();
    hasher.write_u64(origin.address);
    hasher.write_u64(u64::from(origin.layer.0) << 32 | u64::from(origin.extra));
    hasher.finish() as usize % RECENT
}

impl Rows {
    /// Where the row of an origin lies, if that was remembered.
    pub(super) fn place(&self, origin: &Origin) -> Option<usize> {
        let (known, row) = self.recent.get(slot(origin))?.as_ref()?;
        (known == origin).then_some(*row as usize)
    }

    /// The row at a place.
    pub(super) fn at(&mut self, place: usize) -> &mut Heat {
        &mut self.rows[place]
    }

    /// The row of a key.
    pub(super) fn of(&mut self, key: Key) -> &mut Heat {
        self.rows.entry(key).or_default()
    }

    /// The row of a key, which is remembered as this origin's.
    pub(super) fn remember(&mut self, origin: Origin, key: Key) -> &mut Heat {
        let entry = self.rows.entry(key);
        self.recent.resize(RECENT, None);
        self.recent[slot(&origin)] = Some((origin, entry.index() as u32));
        entry.or_default()
    }

    /// Nothing is remembered any more: places or numbers are others now.
    pub(super) fn forget_origins(&mut self) {
        self.recent.fill(None);
    }

    /// Changes rows, and keeps those that `keep` says.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&mut Heat) -> bool) {
        self.rows.retain(|_, heat| keep(heat));
        self.forget_origins();
    }

    /// Puts the rows in order: who copies them in this order has little left to sort.
    pub(super) fn sort(&mut self) {
        self.rows.sort_keys();
        self.forget_origins();
    }

    /// Gives each row the key that `change` says, and joins those that have become the same.
    pub(super) fn rename(&mut self, mut change: impl FnMut(Key) -> Key) {
        let rows = std::mem::take(&mut self.rows);
        self.rows.reserve(rows.len());
        for (key, heat) in rows {
            self.rows.entry(change(key)).or_default().join(heat);
        }
        self.forget_origins();
    }

    pub(super) fn clear(&mut self) {
        self.rows.clear();
        self.forget_origins();
    }

    pub(super) fn shrink(&mut self) {
        self.rows.shrink_to_fit();
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (&Key, &Heat)> {
        self.rows.iter()
    }
}
