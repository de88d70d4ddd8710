//! User parts of call chains that came later (`CALLCHAIN_DEFERRED`, Linux 6.19).
//!
//! The kernel unwinds a process's stack when the process goes on running, so that it may touch memory that is
//! not there yet. A sample then ends in a marker and a number, and a record with that number brings the rest,
//! once for all samples of the thread that wait for it:
//!
//! ```text
//!   SAMPLE             kernel: f g | deferred, 7        SAMPLE  kernel: h | deferred, 7
//!   CALLCHAIN_DEFERRED 7: user: a b main                -> f g a b main, and h a b main
//! ```

use rustc_hash::FxHashMap;

use super::intern::Interner;
use crate::abi::Context;
use crate::record::{ChainEntry, Words};

/// The parts that came later.
#[derive(Debug, Default)]
pub struct Deferred {
    chains: Interner,
    /// By thread and number.
    of: FxHashMap<(i32, u64), u32>,
}

impl Deferred {
    pub(super) fn add(&mut self, tid: i32, cookie: u64, chain: Words<'_>) {
        let number = self.chains.add(0, chain.as_bytes());
        self.of.insert((tid, cookie), number);
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// The number that a chain's end waits for, if it waits for one.
    #[inline]
    pub fn awaited(chain: Words<'_>) -> Option<u64> {
        let marker = chain.get(chain.len().checked_sub(2)?)?;
        match ChainEntry::from(marker) {
            ChainEntry::Context(Context::UserDeferred) => chain.get(chain.len() - 1),
            _ => None,
        }
    }

    /// The part with this number, with its context marker.
    pub fn part(&self, tid: i32, cookie: u64) -> Option<Words<'_>> {
        let number = self.of.get(&(tid, cookie))?;
        Some(Words::new(self.chains.get(*number).1))
    }
}
