//! The flame graph as boxes on a character grid: positions of the nodes, and movement of the cursor.
//!
//! ```text
//!   depth 0   all ────────────────────────────────────   100 %
//!   depth 1   main ─────────────────────────  thread ──   callers above their callees
//!   depth 2   parse ──────  eval ───────      work ────   siblings sorted by name, for stable positions
//! ```

use pmc_analysis::profile::sampled::boilerplate::StartupCallers;
use pmc_analysis::profile::sampled::{CallTree, Profile};

/// The node that represents the whole event.
pub const ALL: u32 = u32::MAX;

/// A node on the grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlameBox {
    /// The node that the box shows; [`ALL`] for the top box.
    pub node: u32,
    /// The line, counted from the top of the graph.
    pub depth: usize,
    /// The first column.
    pub x: usize,
    /// Width in columns, at least 1.
    pub width: usize,
}

/// The flame graph's state.
#[derive(Debug, Default)]
pub struct FlamePane {
    /// Identity of the node that fills the width; `None` for the whole event.
    pub zoom: Option<u64>,
    /// Identity of the cursor's node; `None` for the whole event.
    pub cursor: Option<u64>,
    /// The top line of the screen.
    pub top: usize,
}

/// Returns the children of a node, or the roots, sorted by name.
fn below<'a>(profile: &Profile, tree: &'a CallTree, node: u32) -> Vec<u32> {
    let list: &'a [u32] = if node == ALL { &tree.roots } else { &tree.nodes[node as usize].children };
    let mut list = list.to_vec();
    list.sort_by_key(|child| {
        let node = &tree.nodes[*child as usize];
        (profile.texts.get(node.symbol), profile.texts.get(node.dso), *child)
    });
    list
}

fn cost(tree: &CallTree, node: u32, all: u64) -> u64 {
    if node == ALL { all } else { tree.cost(node) }
}

/// Lays out the tree. The zoomed node and its callers fill the width. Nodes narrower than a column are
/// omitted.
///
/// Of each chain of `folded` callers, only the last has a box, and `parents` skips the others.
pub fn boxes(
    (profile, tree): (&Profile, &CallTree),
    (parents, folded): (&[u32], &[StartupCallers]),
    all: u64,
    zoom: u32,
    width: usize,
) -> Vec<FlameBox> {
    let mut above = Vec::new();
    let mut node = zoom;
    while node != ALL {
        node = parents[node as usize];
        above.push(node);
    }
    let mut boxes: Vec<FlameBox> = Vec::new();
    for (depth, node) in above.iter().rev().enumerate() {
        boxes.push(FlameBox { node: *node, depth, x: 0, width });
    }
    // Each entry has a node, its depth, and the exact start and end of its part of the width.
    let mut open: Vec<(u32, usize, f64, f64)> = vec![(zoom, above.len(), 0.0, width as f64)];
    let whole = cost(tree, zoom, all).max(1) as f64;
    let scale = width as f64 / whole;
    while let Some((node, depth, from, to)) = open.pop() {
        let (x, end) = (from.round() as usize, to.round() as usize);
        if end <= x {
            continue;
        }
        boxes.push(FlameBox { node, depth, x, width: end - x });
        let mut at = from;
        for child in below(profile, tree, node) {
            let callers = folded.iter().find(|callers| callers.first == child);
            let child = callers.map_or(child, |callers| callers.last);
            let next = at + cost(tree, child, all) as f64 * scale;
            open.push((child, depth + 1, at, next.min(to)));
            at = next;
        }
    }
    boxes.sort_by_key(|b| (b.depth, b.x));
    boxes
}

/// Returns the nearest box to the right or left on the same line.
pub fn neighbour(boxes: &[FlameBox], from: &FlameBox, right: bool) -> Option<u32> {
    let line = boxes.iter().filter(|b| b.depth == from.depth);
    let found = if right {
        line.filter(|b| b.x > from.x).min_by_key(|b| b.x)
    } else {
        line.filter(|b| b.x < from.x).max_by_key(|b| b.x)
    };
    found.map(|b| b.node)
}

/// Returns the widest box directly below this box.
pub fn under(boxes: &[FlameBox], parents: &[u32], from: &FlameBox) -> Option<u32> {
    let children = boxes
        .iter()
        .filter(|b| b.node != ALL && parents[b.node as usize] == from.node && b.depth == from.depth + 1);
    children.max_by_key(|b| (b.width, std::cmp::Reverse(b.x))).map(|b| b.node)
}

/// Returns the total cost of matching nodes. For nested matches, only the outermost one counts.
pub fn matched(tree: &CallTree, matches: impl Fn(u32) -> bool) -> u64 {
    let mut open: Vec<u32> = tree.roots.clone();
    let mut sum = 0u64;
    while let Some(node) = open.pop() {
        if matches(node) {
            sum = sum.saturating_add(tree.cost(node));
        } else {
            open.extend(&tree.nodes[node as usize].children);
        }
    }
    sum
}
