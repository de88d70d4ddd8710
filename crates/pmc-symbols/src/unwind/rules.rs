//! Decides for each address whether framehop or pmc applies the rules.
//!
//! framehop is faster, because it caches the rule of each address. But it knows only three registers, reads
//! no memory in expressions, and if it fails, it follows the frame pointer, and caches this rule for the
//! address. So it applies only rows that always succeed ([`Row::is_simple`](super::row::Row::is_simple)), and
//! decides what to do where no table has a row.

use gimli::UnwindContext;
use rustc_hash::FxHashMap;

use super::space::Space;

/// Maximum number of addresses about which a walker remembers one kind of fact.
pub(super) const MOST_REMEMBERED: usize = 1 << 16;

/// One worker's cache of rules for the addresses of an architecture.
#[derive(Default)]
pub(super) struct Rules<C> {
    /// framehop's cache.
    pub(super) cache: C,
    /// Whether framehop applies the rule, by space and address.
    is_simple: FxHashMap<(u64, u64), bool>,
}

impl<C> Rules<C> {
    /// Whether framehop applies the rule at an address.
    pub(super) fn is_simple(
        &mut self,
        space: &Space,
        address: u64,
        context: &mut UnwindContext<usize>,
    ) -> bool {
        let key = (space.generation, address);
        if let Some(known) = self.is_simple.get(&key) {
            return *known;
        }
        let is_simple = match space.entries(address) {
            Some((entries, slide)) => {
                entries.row(address.wrapping_sub(slide), context).is_none_or(|row| row.is_simple())
            }
            None => true,
        };
        if self.is_simple.len() > MOST_REMEMBERED {
            self.is_simple.clear();
        }
        self.is_simple.insert(key, is_simple);
        is_simple
    }
}
