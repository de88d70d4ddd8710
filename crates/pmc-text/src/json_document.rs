//! Writes lists in JSON documents incrementally, up to the length that `--limit` allows.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::io::{self, Write};

use serde::{Serialize, Serializer};

use crate::text::write_json;

/// Converts a share to a percentage with four decimals.
pub fn percent(share: f64) -> f64 {
    (share * 1e6).round() / 1e4
}

/// Writes a list, one item per line.
///
/// # Errors
/// Fails if writing to `out` fails.
pub fn list(out: &mut dyn Write, items: impl IntoIterator<Item = impl Serialize>) -> io::Result<()> {
    list_with(out, items, |out, item| write_json(out, &item))
}

/// Writes a list, one item per line. `write` is called to write each item.
///
/// # Errors
/// Fails if writing to `out` fails.
pub fn list_with<T>(
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
pub fn list_up_to<T, J: Serialize>(
    out: &mut dyn Write,
    items: impl IntoIterator<Item = T>,
    limit: usize,
    object: impl Fn(T) -> J,
) -> io::Result<usize> {
    let mut items = items.into_iter();
    list(out, items.by_ref().take(limit).map(object))?;
    Ok(items.count())
}

/// A node in a list of the nodes of a call tree.
pub struct ListedNode {
    /// Number of the node, as in the profile.
    pub number: u32,
    /// Index of the caller in the list.
    pub parent: Option<usize>,
    /// Number of callers up to the root.
    pub depth: usize,
}

/// Writes the nodes of a call tree as a list, each after its caller: at most `limit` nodes, always the
/// largest one whose caller is in the list. Skips nodes without a size, with their subtrees. Returns the
/// number of omitted nodes.
///
/// # Errors
/// Fails if writing to `out` fails.
pub fn tree_up_to<'t, J: Serialize>(
    out: &mut dyn Write,
    roots: &'t [u32],
    children: impl Fn(u32) -> &'t [u32],
    size: impl Fn(u32) -> Option<u64>,
    limit: usize,
    object: impl Fn(ListedNode) -> J,
) -> io::Result<usize> {
    let kept = (limit < usize::MAX).then(|| largest_nodes(roots, &children, &size, limit));
    let mut open: Vec<ListedNode> =
        roots.iter().rev().map(|root| ListedNode { number: *root, parent: None, depth: 0 }).collect();
    let (mut index, mut omitted) = (0, 0);
    let nodes = std::iter::from_fn(|| {
        loop {
            let node = open.pop()?;
            if size(node.number).is_none() {
                continue;
            }
            // The index matters only if this node is written.
            let (parent, depth) = (Some(index), node.depth + 1);
            let of_node = children(node.number).iter().rev();
            open.extend(of_node.map(|child| ListedNode { number: *child, parent, depth }));
            if kept.as_ref().is_none_or(|kept| kept.contains(&node.number)) {
                index += 1;
                return Some(object(node));
            }
            omitted += 1;
        }
    });
    list(out, nodes)?;
    Ok(omitted)
}

fn largest_nodes<'t>(
    roots: &'t [u32],
    children: impl Fn(u32) -> &'t [u32],
    size: impl Fn(u32) -> Option<u64>,
    limit: usize,
) -> HashSet<u32> {
    // Of nodes of the same size, the one with the lower index.
    let ranked = |node: &u32| size(*node).map(|size| (size, Reverse(*node)));
    let mut open: BinaryHeap<(u64, Reverse<u32>)> = roots.iter().filter_map(ranked).collect();
    let mut largest = HashSet::new();
    while largest.len() < limit
        && let Some((_, Reverse(node))) = open.pop()
    {
        largest.insert(node);
        open.extend(children(node).iter().filter_map(ranked));
    }
    largest
}

/// A list whose items are computed as they are written.
pub struct Streamed<I>(pub I);

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
            let mut out = Vec::new();
            let (children, size) = (|node| children[node as usize], |node| Some(sizes[node as usize]));
            let omitted =
                tree_up_to(&mut out, &[0, 4], children, size, limit, |node: ListedNode| node.number).unwrap();
            let mut nodes: Vec<u32> = serde_json::from_slice(&out).unwrap();
            assert_eq!(nodes.len() + omitted, 6);
            nodes.sort_unstable();
            nodes
        };
        assert_eq!(of(1), [0]);
        assert_eq!(of(3), [0, 1, 4]);
        assert_eq!(of(4), [0, 1, 3, 4]);
        assert_eq!(of(usize::MAX), [0, 1, 2, 3, 4, 5]);
        assert_eq!(of(100), [0, 1, 2, 3, 4, 5]);
    }
}
