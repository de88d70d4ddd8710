//! Writes lists in JSON documents incrementally, up to the length that `--limit` allows.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::io::{self, Write};

use serde::{Serialize, Serializer};

use pmc_sys::text::write_json;

/// Converts a share to a percentage with four decimals.
pub(super) fn percent(share: f64) -> f64 {
    (share * 1e6).round() / 1e4
}

/// Writes a list, one item per line.
///
/// # Errors
/// Fails if writing to `out` fails.
pub(super) fn list(out: &mut dyn Write, items: impl IntoIterator<Item = impl Serialize>) -> io::Result<()> {
    list_with(out, items, |out, item| write_json(out, &item))
}

/// Writes a list, one item per line. `write` is called to write each item.
///
/// # Errors
/// Fails if writing to `out` fails.
pub(super) fn list_with<T>(
    out: &mut dyn Write,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut dyn Write, T) -> io::Result<()>,
) -> io::Result<()> {
    write!(out, "[")?;
    for (number, item) in items.into_iter().enumerate() {
        writeln!(out, "{}", if number == 0 { "" } else { "," })?;
        write(out, item)?;
    }
    write!(out, "]")
}

/// Writes at most `limit` items as a list, one per line. Returns the number of omitted items.
///
/// # Errors
/// Fails if writing to `out` fails.
pub(super) fn list_up_to<T, J: Serialize>(
    out: &mut dyn Write,
    items: impl IntoIterator<Item = T>,
    limit: usize,
    object: impl Fn(T) -> J,
) -> io::Result<usize> {
    let mut items = items.into_iter();
    list(out, items.by_ref().take(limit).map(object))?;
    Ok(items.count())
}

/// The nodes of a call tree that a document with a limit contains.
pub(super) struct LargestNodes(Option<HashSet<u32>>);

impl LargestNodes {
    /// Selects at most `limit` nodes: always the largest one whose caller is already selected.
    pub(super) fn of<'t>(
        roots: &'t [u32],
        limit: usize,
        size: impl Fn(u32) -> u64,
        children: impl Fn(u32) -> &'t [u32],
    ) -> Self {
        if limit == usize::MAX {
            return Self(None);
        }
        // Of nodes of the same size, the one with the lower index.
        let ranked = |node: &u32| (size(*node), Reverse(*node));
        let mut open: BinaryHeap<(u64, Reverse<u32>)> = roots.iter().map(ranked).collect();
        let mut selected = HashSet::new();
        while selected.len() < limit
            && let Some((_, Reverse(node))) = open.pop()
        {
            selected.insert(node);
            open.extend(children(node).iter().map(ranked));
        }
        Self(Some(selected))
    }

    /// Whether the document contains this node.
    pub(super) fn contains(&self, node: u32) -> bool {
        self.0.as_ref().is_none_or(|selected| selected.contains(&node))
    }
}

/// A list whose items are computed as they are written.
pub(super) struct Streamed<I>(pub(super) I);

impl<I: Iterator<Item: Serialize> + Clone> Serialize for Streamed<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limited_trees_keep_the_largest_nodes_with_their_callers() {
        // 0 (10) calls 1 (6) and 2 (4); 1 calls 3 (5); 4 (7) calls 5 (1).
        let children: [&[u32]; 6] = [&[1, 2], &[3], &[], &[], &[5], &[]];
        let sizes = [10, 6, 4, 5, 7, 1];
        let of = |limit| {
            let nodes =
                LargestNodes::of(&[0, 4], limit, |node| sizes[node as usize], |node| children[node as usize]);
            (0..6).filter(|node| nodes.contains(*node)).collect::<Vec<u32>>()
        };
        assert_eq!(of(1), [0]);
        assert_eq!(of(3), [0, 1, 4]);
        assert_eq!(of(4), [0, 1, 3, 4]);
        assert_eq!(of(usize::MAX), [0, 1, 2, 3, 4, 5]);
        assert_eq!(of(100), [0, 1, 2, 3, 4, 5]);
    }
}
