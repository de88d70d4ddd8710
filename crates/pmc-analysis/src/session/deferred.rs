//! Deferred user parts of call chains (`CALLCHAIN_DEFERRED`, Linux 6.19).
//!
//! The kernel unwinds a process's stack when the process returns to user mode, so that it can access memory
//! that is not resident yet. Until then, the sample's chain ends in a marker and a number. A later record
//! with that number contains the user part for all waiting samples of the thread:
//!
//! ```text
//!   SAMPLE             kernel: f g | deferred, 7        SAMPLE  kernel: h | deferred, 7
//!   CALLCHAIN_DEFERRED 7: user: a b main                -> f g a b main, and h a b main
//! ```

use rustc_hash::FxHashMap;

use super::intern::Interner;
use pmc_perfdata::record::{ChainEntry, RecordWords};
use pmc_sys::abi::Context;

/// The deferred parts of call chains.
#[derive(Debug, Default)]
pub(crate) struct Deferred {
    chains: Interner,
    /// Chain number by thread and cookie.
    of: FxHashMap<(i32, u64), u32>,
}

impl Deferred {
    pub(super) fn add(&mut self, tid: i32, cookie: u64, chain: RecordWords<'_>) {
        let number = self.chains.add(0, chain.as_bytes());
        self.of.insert((tid, cookie), number);
    }

    /// Whether there are no deferred parts.
    pub(crate) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// Returns the number of the deferred part that a chain waits for, if any.
    #[inline]
    pub(crate) fn awaited(chain: RecordWords<'_>) -> Option<u64> {
        let marker = chain.get(chain.len().checked_sub(2)?)?;
        match ChainEntry::from(marker) {
            ChainEntry::Context(Context::UserDeferred) => chain.get(chain.len() - 1),
            _ => None,
        }
    }

    /// Returns the part with this number, including its context marker.
    pub(crate) fn part(&self, tid: i32, cookie: u64) -> Option<RecordWords<'_>> {
        let number = self.of.get(&(tid, cookie))?;
        Some(RecordWords::new(self.chains.get(*number).1))
    }
}
