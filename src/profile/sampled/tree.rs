//! The call tree: all stacks of an event laid over one another, from the root or from the leaf.
//!
//! ```text
//!   stacks                 caller order              callee order
//!   main f g   3           main 5                    g 3 ── f 3 ── main 3
//!   main f     2             f 5                     f 2 ── main 2
//!                              g 3
//! ```

use rustc_hash::FxHashMap;

use super::table::Input;
use super::{TextId, Value};
use crate::session::Level;

/// Which end of the stacks is the top.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// The outermost caller.
    #[default]
    Caller,
    /// The sampled function.
    Callee,
}

/// A function in its context.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The function.
    pub symbol: TextId,
    /// Its module's short name.
    pub dso: TextId,
    /// Where it ran.
    pub level: Level,
    /// Inlined into the next outer function.
    pub inlined: bool,
    /// Samples whose stack ends here (in caller order: the function's own cost in this context).
    pub own: Value,
    /// Samples below.
    pub total: Value,
    /// Numbers of the nodes below, largest first.
    pub children: Vec<u32>,
}

/// All nodes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tree {
    /// By number.
    pub nodes: Vec<Node>,
    /// Numbers of the top ones, largest first.
    pub roots: Vec<u32>,
}

const TOP: u32 = u32::MAX;

/// Lays the stacks of all events over one another. `collapse` joins direct recursion into one node.
pub fn trees(input: &Input<'_>, order: Order, collapse: bool, events: usize) -> Vec<Tree> {
    let mut names: FxHashMap<(TextId, TextId, Level), u32> = FxHashMap::default();
    let calls = input.code.calls();
    let function_of: Vec<u32> = calls
        .iter()
        .map(|call| {
            let next = names.len() as u32;
            *names.entry((call.dso, call.symbol, call.level)).or_insert(next)
        })
        .collect();
    drop(names);
    // Rows of one stack that differ in something else share their path.
    let mut by_stack: Vec<(u32, u32, Value)> = Vec::with_capacity(input.rows.len());
    for (key, value) in input.rows {
        match by_stack.last_mut() {
            Some((event, stack, sum)) if (*event, *stack) == (key.event, key.stack) => *sum += *value,
            _ => by_stack.push((key.event, key.stack, *value)),
        }
    }
    let mut trees = vec![Tree::default(); events];
    let mut edges: Vec<FxHashMap<(u32, u32), u32>> = vec![FxHashMap::default(); events];
    let mut path: Vec<usize> = Vec::new();
    for (event, stack, value) in by_stack {
        let (tree, edges) = (&mut trees[event as usize], &mut edges[event as usize]);
        path.clear();
        for location in input.stacks.get(stack).1.iter() {
            path.extend(input.code.range(location as u32));
        }
        if order == Order::Caller {
            path.reverse();
        }
        let mut parent = TOP;
        let mut before = None;
        for &call in &path {
            let function = function_of[call];
            if collapse && before == Some(function) {
                continue;
            }
            before = Some(function);
            let next = tree.nodes.len() as u32;
            let number = *edges.entry((parent, function)).or_insert(next);
            if number == next {
                let call = &calls[call];
                tree.nodes.push(Node {
                    symbol: call.symbol,
                    dso: call.dso,
                    level: call.level,
                    inlined: call.inlined,
                    own: Value::default(),
                    total: Value::default(),
                    children: Vec::new(),
                });
                match parent {
                    TOP => tree.roots.push(number),
                    _ => tree.nodes[parent as usize].children.push(number),
                }
            }
            tree.nodes[number as usize].total += value;
            parent = number;
        }
        if parent != TOP {
            tree.nodes[parent as usize].own += value;
        }
    }
    for tree in &mut trees {
        let weights: Vec<(u64, u64)> =
            tree.nodes.iter().map(|node| (node.total.period, node.total.samples)).collect();
        let heaviest = |list: &mut Vec<u32>| {
            list.sort_by_key(|number| (std::cmp::Reverse(weights[*number as usize]), *number));
        };
        heaviest(&mut tree.roots);
        tree.nodes.iter_mut().for_each(|node| heaviest(&mut node.children));
    }
    trees
}
