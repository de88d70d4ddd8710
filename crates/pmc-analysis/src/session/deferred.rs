//! Deferred user parts of call chains (`CALLCHAIN_DEFERRED`, Linux 6.19).
//!
//! The kernel unwinds the user stack only when the process returns to user mode, so that it can access memory
//! that is not resident yet. The sample's chain ends with a marker and a number (the cookie). A later record
//! with the same cookie contains the user part for all such samples of the thread:
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
pub struct Deferred {
    chains: Interner,
    /// The chain's number in `chains`, by thread and cookie.
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

    /// Returns the cookie of a chain's deferred part, if the chain has one.
    #[inline]
    pub(crate) fn awaited(chain: RecordWords<'_>) -> Option<u64> {
        let marker = chain.get(chain.len().checked_sub(2)?)?;
        match ChainEntry::from(marker) {
            ChainEntry::Context(Context::UserDeferred) => chain.get(chain.len() - 1),
            _ => None,
        }
    }

    /// Returns the deferred part with this cookie, including its context marker.
    pub(crate) fn part(&self, tid: i32, cookie: u64) -> Option<RecordWords<'_>> {
        let number = self.of.get(&(tid, cookie))?;
        Some(RecordWords::new(self.chains.get(*number).1))
    }
}
