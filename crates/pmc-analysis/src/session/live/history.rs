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
    /// [`History::burden`] after the last cleanup.
    burden: usize,
}

impl Default for LiveHistory {
    fn default() -> Self {
        Self { history: History::new(Modules::default()), burden: 0 }
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
        self.burden = self.history.burden();
    }

    /// Applies a side-band record. Records must arrive in time order.
    pub fn take(&mut self, timestamp: Timestamp, raw: &RawRecord<'_>, record: &Record<'_>) {
        self.history.take(timestamp, raw, record);
    }

    /// Whether the state has grown enough to make a cleanup worthwhile.
    pub fn is_burdened(&self) -> bool {
        self.history.burden() > 2 * self.burden + CLEANUP_GROWTH
    }

    /// Removes unneeded state; see [`History::forget`].
    pub fn forget(&mut self, before: Timestamp, lives: impl Fn(i32) -> bool) -> FxHashMap<Epoch, Epoch> {
        let moved = self.history.forget(before, lives);
        self.burden = self.history.burden();
        moved
    }

    /// Returns the symbols and jitdump files that records have added since the last call; see
    /// [`History::ksymbols`] and [`History::jitdumps`].
    pub(super) fn announced(&mut self) -> (Vec<AddedSymbol>, Vec<(u32, PathBuf)>) {
        (std::mem::take(&mut self.history.ksymbols), std::mem::take(&mut self.history.jitdumps))
    }
}
