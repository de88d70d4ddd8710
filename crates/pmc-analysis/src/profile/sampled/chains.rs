//! The call chains of each row of a table, as perf prints them below the rows.
//!
//! In caller order, a row's chains start at the row's function and lead to the sampled function. In callee
//! order, they start at the row's function and lead outward to the root. In both orders, samples in the row's
//! own function contribute their whole stack. Chains with a common prefix share a node. A node contains all
//! functions that its chains have in common:
//!
//! ```text
//!   main f g   3           row main, caller order        row g, callee order
//!   main f h   2             main f    5                   g f main   3
//!                              g  3
//!                              h  2
//! ```

use rustc_hash::FxHashMap;

use super::cell::RowCell;
use super::chain_tree::{ChainLink, ChainNode, ChainTree};
use super::strings::StringTable;
use super::table::cells::{CodeCells, NOT_WANTED};
use super::table::{self, TableRequest, TableRow, by_sample};
use super::table_input::TableInput;
use super::tree::{CallNode, CallTree, MinimumCost, PathRest, StackDirection, StackPaths};
use crate::session::SampleValue;

/// Options for the chains of rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChainRequest {
    /// Which end of the stacks comes first.
    pub order: StackDirection,
    /// Whether direct recursion is collapsed to one function.
    pub collapse: bool,
    /// Minimum share (0 to 1) for a branch to be shown.
    pub limit: f64,
    /// Whether the limit is relative to the parent node instead of the total.
    pub relative: bool,
    /// Minimum share (0 to 1) of the total for a row to have its chains shown.
    pub row_limit: f64,
}

impl From<&CallNode> for ChainLink {
    fn from(node: &CallNode) -> Self {
        let CallNode { symbol, dso, level, inlined, .. } = *node;
        Self { symbol, dso, level, inlined }
    }
}

/// Joins a node with its only child if all chains through the node continue to that child.
fn joined(mut tree: CallTree) -> ChainTree {
    let mut chains = ChainTree::default();
    let mut open: Vec<(Option<u32>, u32)> = tree.roots.iter().rev().map(|root| (None, *root)).collect();
    while let Some((parent, first)) = open.pop() {
        let mut last = first as usize;
        let mut links = vec![ChainLink::from(&tree.nodes[last])];
        while let [only] = tree.nodes[last].children[..] {
            let (node, next) = (&tree.nodes[last], &tree.nodes[only as usize]);
            if node.own.samples > 0 || node.total.samples != next.total.samples {
                break;
            }
            last = only as usize;
            links.push(next.into());
        }
        let number = chains.nodes.len() as u32;
        let node = &mut tree.nodes[last];
        open.extend(node.children.iter().rev().map(|child| (Some(number), *child)));
        let (own, total) = (std::mem::take(&mut node.own), std::mem::take(&mut node.total));
        chains.nodes.push(ChainNode { links, own, total, children: Vec::new() });
        match parent {
            Some(parent) => chains.nodes[parent as usize].children.push(number),
            None => chains.roots.push(number),
        }
    }
    chains
}

/// Adds call chains to the rows of each event. Rows whose cost is below the row limit get no chains.
pub(super) fn add_chains(
    input: &TableInput<'_>,
    table: TableRequest<'_>,
    request: ChainRequest,
    totals: &[SampleValue],
    tables: &mut [Vec<TableRow>],
    texts: &mut StringTable,
) {
    let of = table.share_of;
    // Round down, as perf does.
    let least = |event: usize, part: f64| (part * of.cost(&totals[event]) as f64) as u64;
    let row_limit = match request.relative {
        true => request.row_limit,
        false => request.row_limit.max(request.limit),
    };
    let mut paths = StackPaths::new(input, tables.len(), request.order, request.collapse);
    let rests = rests(input, table, &mut paths, tables, texts, |event, row| {
        of.cost(&row.total) >= least(event, row_limit)
    });
    for (event, rests) in rests.into_iter().enumerate() {
        let least = match request.relative {
            true => MinimumCost::Part(request.limit),
            false => MinimumCost::Cost(least(event, request.limit)),
        };
        for (row, rests) in tables[event].iter_mut().zip(rests).filter(|(_, rests)| !rests.is_empty()) {
            row.chains = Some(Box::new(joined(paths.grow(event, rests, (of, least), texts))));
        }
    }
}

/// Returns the parts of stack paths that form each row's chains, by event and row.
fn rests<'a>(
    input: &'a TableInput<'a>,
    table: TableRequest<'a>,
    paths: &mut StackPaths<'a>,
    tables: &[Vec<TableRow>],
    texts: &mut StringTable,
    is_wanted: impl Fn(usize, &TableRow) -> bool,
) -> Vec<Vec<Vec<PathRest>>> {
    let mut rests: Vec<Vec<Vec<PathRest>>> = tables.iter().map(|rows| vec![Vec::new(); rows.len()]).collect();
    let rows_of = |event: usize| -> FxHashMap<&[RowCell], u32> {
        let rows = tables[event].iter().zip(0..).filter(|(row, _)| is_wanted(event, row));
        rows.map(|(row, at)| (&row.cells[..], at)).collect()
    };
    let rows: Vec<_> = (0..tables.len()).map(rows_of).collect();
    let mut code_cells = CodeCells::new(input, table);
    let (of_sample, order) = by_sample(input, table.keys, texts);
    let mut row_of_part: FxHashMap<u32, Option<u32>> = FxHashMap::default();
    // The last path in which each row was found.
    let mut found_in: Vec<u32> = Vec::new();
    for group in order.chunk_by(|a, b| (a.event, a.part) == (b.event, b.part)) {
        let (event, sample_part) = (group[0].event as usize, group[0].part);
        row_of_part.clear();
        row_of_part.insert(NOT_WANTED, None);
        found_in.clear();
        found_in.resize(tables[event].len(), u32::MAX);
        paths.part();
        let mut last = None;
        for grouped in group {
            let (key, value) = &input.rows[grouped.row as usize];
            let path = paths.add(key, value, None);
            let Some(&(_, leaf)) = paths.calls().first() else { continue };
            if last.replace(path) == Some(path) {
                continue;
            }
            let mut add = |part: u32, skipped: usize, code_cells: &CodeCells<'_>| {
                let row = *row_of_part.entry(part).or_insert_with(|| {
                    let cells = table::cells(table.keys, &of_sample, sample_part, code_cells, part);
                    rows[event].get(&cells[..]).copied()
                });
                if let Some(row) = row
                    && std::mem::replace(&mut found_in[row as usize], path) != path
                {
                    rests[event][row as usize].push(PathRest { path, skipped: skipped as u32 });
                }
            };
            let own = code_cells.leaf(leaf, texts);
            add(own, 0, &code_cells);
            if table.with_totals {
                let own_call = code_cells.own_call(leaf);
                let count = paths.calls().len();
                for skipped in 0..count {
                    let at =
                        if paths.order() == StackDirection::Caller { count - 1 - skipped } else { skipped };
                    let (call, location) = paths.calls()[at];
                    if (call, location) != (own_call, leaf) {
                        let part = code_cells.call(call, location, texts);
                        add(part, skipped, &code_cells);
                    }
                }
            }
        }
    }
    rests
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::sampled::StringId;
    use pmc_sys::abi::CpuMode;

    #[test]
    fn functions_common_to_all_chains_are_one_node() {
        let value = |samples: u64| SampleValue { samples, period: samples * 7, ..SampleValue::default() };
        // 0 calls 1, which calls 2 and 3. 4 is called by 3 and has as many samples as 3, but 3 also has own
        // samples.
        let node = |symbol: u32, own: u64, total: u64, children: &[u32]| CallNode {
            symbol: StringId(symbol),
            dso: StringId(9),
            level: CpuMode::User,
            inlined: false,
            own: value(own),
            total: value(total),
            children: children.to_vec(),
        };
        let nodes = vec![
            node(0, 0, 9, &[1]),
            node(1, 0, 9, &[2, 3]),
            node(2, 5, 5, &[]),
            node(3, 1, 4, &[4]),
            node(4, 3, 3, &[]),
        ];
        let chains = joined(CallTree { nodes, roots: vec![0], ..CallTree::default() });
        let shape: Vec<(Vec<u32>, u64, u64, &[u32])> = chains
            .nodes
            .iter()
            .map(|node| {
                let links = node.links.iter().map(|link| link.symbol.0).collect();
                (links, node.own.samples, node.total.samples, &node.children[..])
            })
            .collect();
        let expected: [(Vec<u32>, u64, u64, &[u32]); 4] =
            [(vec![0, 1], 0, 9, &[1, 2]), (vec![2], 5, 5, &[]), (vec![3], 1, 4, &[3]), (vec![4], 3, 3, &[])];
        assert_eq!((shape, &chains.roots[..]), (expected.to_vec(), &[0][..]));
    }
}
