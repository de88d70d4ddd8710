//! Modifies stacks by function name: `--ignore-callees` truncates them, `--parent` marks them.
//!
//! Receives resolved stacks and the calls at their locations. Modifies the stacks before pmc builds tables
//! and trees from them.
//!
//! ```text
//!   main  f  g  h      --ignore-callees f:   main f          (f's callees count as f's own)
//!                      --parent '^(f|g)$':   parent g        (the innermost matching function)
//! ```

use rustc_hash::FxHashMap;

use super::code::LocationCalls;
use super::strings::{StringId, StringTable};
use crate::session::intern::{Interner, bytes, words};
use crate::session::samples::{RowKey, SampleAttribute};
use crate::session::{ResolvedStacks, SampleValue, StackStore};

/// Parent name for stacks without a matching function.
pub(crate) const OTHER: &str = "[other]";

/// Returns whether a name matches the pattern.
pub(crate) type NameMatcher<'a> = dyn Fn(&str) -> bool + 'a;

/// Returns, for each call, whether its name matches. Checks each name only once.
fn matching(code: &LocationCalls, texts: &StringTable, matches: &NameMatcher<'_>) -> Vec<bool> {
    let mut known: FxHashMap<StringId, bool> = FxHashMap::default();
    let mut ask = |id: StringId| *known.entry(id).or_insert_with(|| matches(texts.get(id)));
    code.calls().iter().map(|call| ask(call.symbol) || ask(call.short)).collect()
}

/// Removes the callees of matching functions. The outermost matching function becomes the innermost frame of
/// its stack. `idle` are rows that were removed before, and use the same numbers.
pub(crate) fn ignore_callees(
    resolved: &mut ResolvedStacks,
    idle: &mut [(RowKey, SampleValue)],
    code: &LocationCalls,
    texts: &StringTable,
    matches: &NameMatcher<'_>,
) {
    let StackStore::Interned(lists) = &resolved.stacks else { return };
    let is_meant = matching(code, texts, matches);
    let mut stacks = Interner::default();
    let mut number_of = Vec::with_capacity(lists.len());
    let mut scratch = Vec::new();
    for number in 0..lists.len() as u32 {
        let stack: Vec<u32> = resolved.stack(number).collect();
        let found = |location: &u32| code.range(*location).any(|call| is_meant[call]);
        let first = stack.iter().rposition(found).unwrap_or(0);
        scratch.clear();
        scratch.extend(stack[first..].iter().flat_map(|location| location.to_ne_bytes()));
        number_of.push(stacks.add(lists.get(number).0, &scratch));
    }
    resolved.stacks = stacks.into();
    for (key, _) in resolved.rows.iter_mut().chain(idle) {
        key.stack = number_of[key.stack as usize];
    }
    resolved.merge_equal_rows();
}

/// Stores the name of each row's parent in the row's attributes. `idle` are rows that were removed before,
/// and use the same numbers.
pub(crate) fn mark_parents(
    resolved: &mut ResolvedStacks,
    idle: &mut [(RowKey, SampleValue)],
    attributes: &mut Interner,
    kinds: &[SampleAttribute],
    code: &LocationCalls,
    texts: &StringTable,
    matches: &NameMatcher<'_>,
) {
    let Some(at) = kinds.iter().position(|attribute| *attribute == SampleAttribute::Parent) else { return };
    let is_meant = matching(code, texts, matches);
    let mut parents: FxHashMap<u32, u64> = FxHashMap::default();
    let mut marked = Interner::default();
    let mut scratch = Vec::new();
    let mut rows = std::mem::take(&mut resolved.rows);
    for (key, _) in rows.iter_mut().chain(idle) {
        let parent = *parents.entry(key.stack).or_insert_with(|| {
            let mut calls = resolved.stack(key.stack).flat_map(|location| code.range(location));
            let found = calls.find(|call| is_meant[*call]);
            found.map_or(u64::MAX, |call| code.calls()[call].symbol.0.into())
        });
        let mut list: Vec<u64> = words(attributes.get(key.attributes).1).iter().collect();
        if let Some(word) = list.get_mut(at) {
            *word = parent;
        }
        bytes(&list, &mut scratch);
        key.attributes = marked.add(0, &scratch);
    }
    *attributes = marked;
    resolved.rows = rows;
    resolved.merge_equal_rows();
}

/// Removes the rows without a parent, and returns their sums per event.
pub(crate) fn without_others(
    rows: &mut Vec<(RowKey, SampleValue)>,
    attributes: &Interner,
    kinds: &[SampleAttribute],
) -> Vec<(usize, SampleValue)> {
    let Some(at) = kinds.iter().position(|attribute| *attribute == SampleAttribute::Parent) else {
        return Vec::new();
    };
    let mut gone = Vec::new();
    rows.retain(|(key, value)| {
        let is_found = words(attributes.get(key.attributes).1).get(at).is_some_and(|word| word != u64::MAX);
        if !is_found {
            gone.push((key.event as usize, value.clone()));
        }
        is_found
    });
    gone
}
