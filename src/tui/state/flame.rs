//! The flame graph as boxes on a grid of characters: which node lies where, how the cursor walks.
//!
//! ```text
//!   depth 0   all ────────────────────────────────────   100 %
//!   depth 1   main ─────────────────────────  thread ──   callers above, what they called below them
//!   depth 2   parse ──────  eval ───────      work ────   siblings by name, so that they stay where they are
//! ```

use crate::profile::sampled::boilerplate::Callers;
use crate::profile::sampled::{Profile, Tree};
use crate::sort;

/// Stands for all of the event.
pub const ALL: u32 = u32::MAX;

/// A node on the grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Box {
    /// The node; [`ALL`] for the uppermost.
    pub node: u32,
    /// Its line.
    pub depth: usize,
    /// Its first column.
    pub x: usize,
    /// Its columns; at least one.
    pub width: usize,
}

/// The flame graph's state.
#[derive(Debug, Default)]
pub struct Flame {
    /// The node that fills the width; `None`: all.
    pub zoom: Option<u64>,
    /// The node of the cursor; `None`: all.
    pub cursor: Option<u64>,
    /// The uppermost line shown.
    pub top: usize,
}

/// The children of a node (or the top nodes) by name.
fn below<'a>(profile: &Profile, tree: &'a Tree, node: u32) -> Vec<u32> {
    let list: &'a [u32] = if node == ALL { &tree.roots } else { &tree.nodes[node as usize].children };
    let mut list = list.to_vec();
    sort::by_key(&mut list, |child| {
        let node = &tree.nodes[*child as usize];
        (profile.texts.get(node.symbol), profile.texts.get(node.dso), *child)
    });
    list
}

fn cost(tree: &Tree, node: u32, all: u64) -> u64 {
    if node == ALL { all } else { tree.cost(node) }
}

/// Lays the tree out: what is above the zoomed node fills the width; what would be narrower than a column is
/// left out.
///
/// Of `folded` callers only the last has a box; `parents` leads past the others.
pub fn boxes(
    (profile, tree): (&Profile, &Tree),
    (parents, folded): (&[u32], &[Callers]),
    all: u64,
    zoom: u32,
    width: usize,
) -> Vec<Box> {
    let mut above = Vec::new();
    let mut node = zoom;
    while node != ALL {
        node = parents[node as usize];
        above.push(node);
    }
    let mut boxes: Vec<Box> = Vec::new();
    for (depth, node) in above.iter().rev().enumerate() {
        boxes.push(Box { node: *node, depth, x: 0, width });
    }
    // Each entry: node, depth, its part of the width as exact numbers.
    let mut open: Vec<(u32, usize, f64, f64)> = vec![(zoom, above.len(), 0.0, width as f64)];
    let whole = cost(tree, zoom, all).max(1) as f64;
    let scale = width as f64 / whole;
    while let Some((node, depth, from, to)) = open.pop() {
        let (x, end) = (from.round() as usize, to.round() as usize);
        if end <= x {
            continue;
        }
        boxes.push(Box { node, depth, x, width: end - x });
        let mut at = from;
        for child in below(profile, tree, node) {
            let callers = folded.iter().find(|callers| callers.first == child);
            let child = callers.map_or(child, |callers| callers.last);
            let next = at + cost(tree, child, all) as f64 * scale;
            open.push((child, depth + 1, at, next.min(to)));
            at = next;
        }
    }
    sort::by_key(&mut boxes, |b| (b.depth, b.x));
    boxes
}

/// The box beside (`right` or not) another on its line; or the nearest below or above.
pub fn beside(boxes: &[Box], from: &Box, right: bool) -> Option<u32> {
    let line = boxes.iter().filter(|b| b.depth == from.depth);
    let found = if right {
        line.filter(|b| b.x > from.x).min_by_key(|b| b.x)
    } else {
        line.filter(|b| b.x < from.x).max_by_key(|b| b.x)
    };
    found.map(|b| b.node)
}

/// The widest box right below another.
pub fn under(boxes: &[Box], parents: &[u32], from: &Box) -> Option<u32> {
    let children = boxes
        .iter()
        .filter(|b| b.node != ALL && parents[b.node as usize] == from.node && b.depth == from.depth + 1);
    children.max_by_key(|b| (b.width, std::cmp::Reverse(b.x))).map(|b| b.node)
}

/// The cost of what matches: of nodes inside of others that match only the outer ones count.
pub fn matched(tree: &Tree, matches: impl Fn(u32) -> bool) -> u64 {
    let mut open: Vec<u32> = tree.roots.clone();
    let mut sum = 0;
    while let Some(node) = open.pop() {
        if matches(node) {
            sum += tree.cost(node);
        } else {
            open.extend(&tree.nodes[node as usize].children);
        }
    }
    sum
}
