//! Tracks processes, threads and mappings while records arrive, in bounded memory.

use std::path::PathBuf;

use rustc_hash::FxHashMap;

use super::CLEANUP_GROWTH;
use crate::session::history::{AddedSymbol, Epoch, History, Timestamp};
use crate::session::module::Modules;
use pmc_perfdata::record::{RawRecord, Record};

/// A history that forgets ended processes.
pub struct LiveHistory {
    history: History,
    /// [`History::removable_len`] after the last cleanup.
    removable_len: usize,
}

impl Default for LiveHistory {
    fn default() -> Self {
        Self { history: History::new(Modules::default()), removable_len: 0 }
    }
}

impl LiveHistory {
    /// Returns the history so far.
    pub fn get(&self) -> &History {
        &self.history
    }

    /// Completes the initial state after the last synthesized record.
    pub fn complete(&mut self) {
        self.history.complete();
        self.removable_len = self.history.removable_len();
    }

    /// Applies a side-band record. Records must arrive in time order.
    pub fn take(&mut self, timestamp: Timestamp, raw: &RawRecord<'_>, record: &Record<'_>) {
        self.history.take(timestamp, raw, record);
    }

    /// Whether the state has grown enough to make a cleanup worthwhile.
    pub fn needs_cleanup(&self) -> bool {
        self.history.removable_len() > 2 * self.removable_len + CLEANUP_GROWTH
    }

    /// Removes unneeded state; see [`History::forget`].
    pub fn forget(&mut self, before: Timestamp, lives: impl Fn(i32) -> bool) -> FxHashMap<Epoch, Epoch> {
        let moved = self.history.forget(before, lives);
        self.removable_len = self.history.removable_len();
        moved
    }

    /// Returns the symbols and jitdump files that records have added since the last call; see
    /// [`History::ksymbols`] and [`History::jitdumps`].
    pub(super) fn announced(&mut self) -> (Vec<AddedSymbol>, Vec<(u32, PathBuf)>) {
        (std::mem::take(&mut self.history.ksymbols), std::mem::take(&mut self.history.jitdumps))
    }
}
