//! Merges the call trees of all recordings. Nodes with the same path from the root become one node.

use rustc_hash::FxHashMap;

use super::rows::changes;
use super::{Compute, CostSource, DiffChange};
use crate::profile::sampled::{self, SampleValue, StringId};
use pmc_sys::abi::CpuMode;

/// A function in its context, in all recordings.
#[derive(Debug, Clone, PartialEq)]
pub struct DiffNode {
    /// The function.
    pub symbol: StringId,
    /// Its module's short name.
    pub dso: StringId,
    /// CPU mode of the function.
    pub level: CpuMode,
    /// Whether the function is inlined into the next outer function.
    pub inlined: bool,
    /// The parent node.
    pub parent: Option<u32>,
    /// Depth in the tree; roots have depth 0.
    pub depth: u32,
    /// Cost of the node and its descendants in each recording.
    pub values: Vec<SampleValue>,
    /// Change relative to the base in each other recording.
    pub changes: Vec<Option<DiffChange>>,
    /// Indices of the child nodes, largest change first.
    pub children: Vec<u32>,
}

/// All nodes; parents come before their children.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DiffTree {
    /// The nodes, by index.
    pub nodes: Vec<DiffNode>,
    /// Indices of the root nodes, largest change first.
    pub roots: Vec<u32>,
}

/// Parent, function, module if it distinguishes nodes, CPU mode, and whether the function is inlined.
type NodeKey = (Option<u32>, StringId, Option<StringId>, CpuMode, bool);

/// Merges the trees of all recordings, the base first. A recording without the event has no tree. Functions
/// with the same name in different modules are the same node unless `by_dso` is set.
pub(crate) fn overlay(
    trees: &[Option<sampled::CallTree>],
    totals: &[Option<SampleValue>],
    how: (Compute, CostSource),
    by_dso: bool,
) -> DiffTree {
    let mut out = DiffTree::default();
    let mut known: FxHashMap<NodeKey, u32> = FxHashMap::default();
    for (side, tree) in trees.iter().enumerate() {
        let Some(tree) = tree else { continue };
        // Each entry is a node of this tree and the parent node in the merged tree.
        let mut open: Vec<(u32, Option<u32>)> = tree.roots.iter().rev().map(|root| (*root, None)).collect();
        while let Some((number, parent)) = open.pop() {
            let node = &tree.nodes[number as usize];
            let key = (parent, node.symbol, by_dso.then_some(node.dso), node.level, node.inlined);
            let ours = *known.entry(key).or_insert_with(|| {
                let ours = out.nodes.len() as u32;
                out.nodes.push(DiffNode {
                    symbol: node.symbol,
                    dso: node.dso,
                    level: node.level,
                    inlined: node.inlined,
                    parent,
                    depth: parent.map_or(0, |parent| out.nodes[parent as usize].depth + 1),
                    values: vec![SampleValue::default(); trees.len()],
                    changes: Vec::new(),
                    children: Vec::new(),
                });
                match parent {
                    Some(parent) => out.nodes[parent as usize].children.push(ours),
                    None => out.roots.push(ours),
                }
                ours
            });
            out.nodes[ours as usize].values[side] += &node.total;
            open.extend(node.children.iter().rev().map(|child| (*child, Some(ours))));
        }
    }
    changes(how, totals, out.nodes.iter_mut().map(|node| (&node.values[..], &mut node.changes)));
    sort(&mut out, how.0);
    out
}

impl DiffNode {
    /// Returns the magnitude of the node's largest change (see [`DiffChange::size`]).
    pub fn size(&self, compute: Compute) -> f64 {
        self.changes.iter().flatten().map(|change| change.size(compute)).fold(0.0, f64::max)
    }
}

fn sort(tree: &mut DiffTree, compute: Compute) {
    let weights: Vec<f64> = tree.nodes.iter().map(|node| node.size(compute)).collect();
    let sort = |list: &mut Vec<u32>| {
        list.sort_by(|a, b| weights[*b as usize].total_cmp(&weights[*a as usize]).then_with(|| a.cmp(b)));
    };
    sort(&mut tree.roots);
    for node in &mut tree.nodes {
        sort(&mut node.children);
    }
}

#[cfg(test)]
mod tests {
    use super::super::ChangeVerdict;
    use super::*;
    use crate::profile::sampled::tree::CallNode;

    fn value(samples: u64) -> SampleValue {
        SampleValue { samples, period: samples, squares: samples as f64, ..SampleValue::default() }
    }

    fn node(symbol: u32, samples: u64, children: &[u32]) -> CallNode {
        CallNode {
            symbol: StringId(symbol),
            dso: StringId(0),
            level: CpuMode::User,
            inlined: false,
            own: SampleValue::default(),
            total: value(samples),
            children: children.to_vec(),
        }
    }

    #[test]
    fn nodes_with_equal_paths_are_merged() {
        // base: main -> a -> c, main -> b; new: main -> b -> c, main -> a -> c
        let base = sampled::CallTree {
            nodes: vec![node(1, 1000, &[1, 2]), node(2, 700, &[3]), node(3, 300, &[]), node(4, 700, &[])],
            roots: vec![0],
            ..sampled::CallTree::default()
        };
        let new = sampled::CallTree {
            nodes: vec![
                node(1, 1000, &[1, 2]),
                node(3, 600, &[3]),
                node(2, 400, &[4]),
                node(4, 600, &[]),
                node(4, 400, &[]),
            ],
            roots: vec![0],
            ..sampled::CallTree::default()
        };
        let totals = [Some(value(1000)), Some(value(1000))];
        let how = (Compute::DeltaAbs, CostSource::Sampled);
        let tree = overlay(&[Some(base), Some(new)], &totals, how, true);
        assert_eq!(tree.nodes.len(), 5);
        let seen: Vec<_> = tree
            .nodes
            .iter()
            .map(|n| {
                (n.symbol.0, n.depth, n.values[0].samples, n.values[1].samples, n.changes[0].unwrap().verdict)
            })
            .collect();
        assert!(seen.contains(&(1, 0, 1000, 1000, ChangeVerdict::Noise)), "{seen:?}");
        assert!(seen.contains(&(2, 1, 700, 400, ChangeVerdict::Less)), "{seen:?}");
        assert!(seen.contains(&(4, 2, 700, 400, ChangeVerdict::Less)), "{seen:?}");
        assert!(seen.contains(&(4, 2, 0, 600, ChangeVerdict::New)), "{seen:?}");
        assert!(tree.nodes.iter().enumerate().all(|(at, n)| n.parent.is_none_or(|p| (p as usize) < at)));
    }

    #[test]
    fn modules_distinguish_nodes_on_request() {
        let tree = |dso| sampled::CallTree {
            nodes: vec![CallNode { dso: StringId(dso), ..node(1, 1000, &[]) }],
            roots: vec![0],
            ..sampled::CallTree::default()
        };
        let nodes = |by_dso| {
            let totals = [Some(value(1000)), Some(value(1000))];
            let trees = [Some(tree(7)), Some(tree(8))];
            overlay(&trees, &totals, (Compute::Time, CostSource::Sampled), by_dso).nodes.len()
        };
        assert_eq!((nodes(true), nodes(false)), (2, 1));
    }

    #[test]
    fn branches_are_sorted_by_the_compared_quantity() {
        // The second branch tripled; the share of the third changed more, but its time changed less.
        let tree = |times: [u64; 3]| sampled::CallTree {
            nodes: vec![node(1, times[0], &[]), node(2, times[1], &[]), node(3, times[2], &[])],
            roots: vec![0, 1, 2],
            ..sampled::CallTree::default()
        };
        let trees = [Some(tree([900, 50, 50])), Some(tree([3800, 160, 40]))];
        let totals = [Some(value(1000)), Some(value(4000))];
        let roots = |compute| {
            let tree = overlay(&trees, &totals, (compute, CostSource::Census), true);
            tree.roots.iter().map(|root| tree.nodes[*root as usize].symbol.0).collect::<Vec<_>>()
        };
        assert_eq!(roots(Compute::Time), [1, 2, 3]);
        assert_eq!(roots(Compute::DeltaAbs), [1, 3, 2]);
    }
}
