//! The call tree: all stacks of an event, merged from the root or from the leaf.
//!
//! ```text
//!   stacks                 caller order              callee order
//!   main f g   3           main 5                    g 3 ── f 3 ── main 3
//!   main f     2             f 5                     f 2 ── main 2
//!                              g 3
//! ```

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::share::ShareOf;
use super::strings::{StringId, StringTable};
use super::table_input::TableInput;
use crate::session::SampleValue;
use crate::session::samples::RowKey;
use pmc_sys::abi::CpuMode;

/// Which end of the stacks is the top.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StackDirection {
    /// The outermost caller.
    #[default]
    Caller,
    /// The sampled function.
    Callee,
}

/// A function in its context.
#[derive(Debug, Clone, PartialEq)]
pub struct CallNode {
    /// The function.
    pub symbol: StringId,
    /// Its module's short name.
    pub dso: StringId,
    /// CPU mode of the function.
    pub level: CpuMode,
    /// Whether the function is inlined into the next outer function.
    pub inlined: bool,
    /// Samples whose stack ends here. In caller order, this is the function's own cost in this context.
    pub own: SampleValue,
    /// Samples whose stack passes through or ends here.
    pub total: SampleValue,
    /// Indices of the child nodes, largest first.
    pub children: Vec<u32>,
}

/// A call tree.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallTree {
    /// The nodes, by index.
    pub nodes: Vec<CallNode>,
    /// Indices of the root nodes, largest first.
    pub roots: Vec<u32>,
    /// The cost that orders the nodes.
    pub share_of: ShareOf,
}

impl CallTree {
    /// Returns a node's cost, including its children.
    pub fn cost(&self, node: u32) -> u64 {
        self.share_of.cost(&self.nodes[node as usize].total)
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TreeOptions {
    /// Which end of the stacks is the top.
    pub(crate) order: StackDirection,
    /// The cost by which nodes are sorted and to which the limit applies.
    pub(crate) share_of: ShareOf,
    /// Whether direct recursion is collapsed to one node.
    pub(crate) collapse: bool,
    /// Minimum share (0 to 1) of the event's cost for a branch to be kept.
    pub(crate) limit: f64,
    /// The root function. The tree contains only stacks with this function. In caller order it shows the
    /// function's callees, in callee order its callers. If the function is recursive, its outermost call is
    /// the root.
    pub(crate) root: Option<StringId>,
}

/// A stack's path through the tree, and its weight.
struct StackPath {
    /// Range of the path's functions in the list of all paths.
    start: usize,
    end: usize,
    value: SampleValue,
}

/// The remaining part of a path after skipping its first functions.
#[derive(Clone, Copy)]
pub(super) struct PathRest {
    pub(super) path: u32,
    pub(super) skipped: u32,
}

/// Minimum cost for a branch to be kept.
#[derive(Clone, Copy)]
pub(super) enum MinimumCost {
    Cost(u64),
    /// A share (0 to 1) of the combined cost of all branches with the same parent.
    Part(f64),
}

/// The distinct functions of all calls. Maps each call to a function number, and each number to one of its
/// calls.
struct CallFunctions {
    of_call: Vec<u32>,
    example: Vec<usize>,
}

impl CallFunctions {
    fn new(input: &TableInput<'_>) -> Self {
        let mut names: FxHashMap<(StringId, StringId, CpuMode), u32> = FxHashMap::default();
        let mut example = Vec::new();
        let of_call = input.code.calls().iter().enumerate().map(|(number, call)| {
            *names.entry((call.dso, call.symbol, call.level)).or_insert_with(|| {
                example.push(number);
                example.len() as u32 - 1
            })
        });
        Self { of_call: of_call.collect(), example }
    }

    fn symbol(&self, input: &TableInput<'_>, function: u32) -> StringId {
        input.code.calls()[self.example[function as usize]].symbol
    }
}

/// The stacks' paths through functions, by event. Trees are built from them.
pub(super) struct StackPaths<'a> {
    input: &'a TableInput<'a>,
    functions: CallFunctions,
    order: StackDirection,
    collapse: bool,
    path: Vec<u32>,
    of_event: Vec<Vec<StackPath>>,
    last: Option<(u32, u32)>,
    calls: Vec<(usize, u32)>,
}

impl<'a> StackPaths<'a> {
    pub(super) fn new(
        input: &'a TableInput<'a>,
        events: usize,
        order: StackDirection,
        collapse: bool,
    ) -> Self {
        let of_event = (0..events).map(|_| Vec::new()).collect();
        Self {
            input,
            functions: CallFunctions::new(input),
            order,
            collapse,
            path: Vec::new(),
            of_event,
            last: None,
            calls: Vec::new(),
        }
    }

    /// Adds a row's stack and returns the number of its path. If there is a root function, adds only its
    /// callees (caller order) or callers (callee order).
    pub(super) fn add(&mut self, key: &RowKey, value: &SampleValue, root: Option<StringId>) -> u32 {
        let of_event = &mut self.of_event[key.event as usize];
        // Rows with the same stack share their path, even if they differ in other attributes.
        if self.last == Some((key.event, key.stack))
            && let Some(path) = of_event.last_mut()
        {
            path.value += value;
            return of_event.len() as u32 - 1;
        }
        self.last = Some((key.event, key.stack));
        self.calls.clear();
        let start = self.path.len();
        for location in self.input.resolved.stack(key.stack) {
            for call in self.input.code.range(location) {
                let function = self.functions.of_call[call];
                if !(self.collapse && self.path.len() > start && self.path.last() == Some(&function)) {
                    self.path.push(function);
                    self.calls.push((call, location));
                }
            }
        }
        if let Some(root) = root {
            // At this point, the path is still ordered innermost first.
            let is_root = |function: &u32| self.functions.symbol(self.input, *function) == root;
            match (self.path[start..].iter().rposition(is_root), self.order) {
                (None, _) => self.path.truncate(start),
                (Some(at), StackDirection::Caller) => self.path.truncate(start + at + 1),
                (Some(at), StackDirection::Callee) => drop(self.path.drain(start..start + at)),
            }
        }
        if self.order == StackDirection::Caller {
            self.path[start..].reverse();
        }
        of_event.push(StackPath { start, end: self.path.len(), value: value.clone() });
        of_event.len() as u32 - 1
    }

    /// Starts a new path for the next row, even if the row has the same stack.
    pub(super) fn part(&mut self) {
        self.last = None;
    }

    /// Returns which end of the stacks comes first.
    pub(super) fn order(&self) -> StackDirection {
        self.order
    }

    /// Returns the calls of the path added last, with their locations, innermost first.
    pub(super) fn calls(&self) -> &[(usize, u32)] {
        &self.calls
    }

    /// Merges an event's call chains, or parts of them, into a tree.
    ///
    /// Starts at the root: chains that share a node are split by their next function. Expands only branches
    /// above the limit, so no nodes are created for the many small branches.
    pub(super) fn grow(
        &self,
        event: usize,
        rests: Vec<PathRest>,
        (of, least): (ShareOf, MinimumCost),
        texts: &StringTable,
    ) -> CallTree {
        let paths = &self.of_event[event];
        let mut tree = CallTree { share_of: of, ..CallTree::default() };
        let call = |function: u32| &self.input.code.calls()[self.functions.example[function as usize]];
        // Break ties as perf does: the last function in a file comes first. Equal inputs therefore always
        // produce equal trees.
        let place = |function: u32| {
            let call = call(function);
            (texts.get(call.dso), Reverse(call.start), texts.get(call.symbol), call.level)
        };
        // Each entry is the parent node, its depth, and the paths through it.
        let mut open: Vec<(Option<u32>, usize, Vec<PathRest>)> = vec![(None, 0, rests)];
        let mut of_rest: Vec<usize> = Vec::new();
        while let Some((parent, depth, through)) = open.pop() {
            // The distinct next functions with their sums, and for each path the index of its next function.
            let mut sums: Vec<(u32, SampleValue)> = Vec::new();
            let mut known: FxHashMap<u32, usize> = FxHashMap::default();
            let mut own = SampleValue::default();
            let mut last = 0;
            let next = |rest: &PathRest| {
                let path = &paths[rest.path as usize];
                let at = path.start + rest.skipped as usize + depth;
                (at < path.end).then(|| self.path[at])
            };
            of_rest.clear();
            for rest in &through {
                let value = &paths[rest.path as usize].value;
                let Some(function) = next(rest) else {
                    own += value;
                    of_rest.push(usize::MAX);
                    continue;
                };
                // Neighbouring paths usually continue with the same function.
                if sums.get(last).is_none_or(|(other, _)| *other != function) {
                    last = *known.entry(function).or_insert(sums.len());
                    if last == sums.len() {
                        sums.push((function, SampleValue::default()));
                    }
                }
                sums[last].1 += value;
                of_rest.push(last);
            }
            if let Some(parent) = parent {
                tree.nodes[parent as usize].own = own;
            }
            let least = match least {
                MinimumCost::Cost(cost) => cost,
                MinimumCost::Part(part) => {
                    (part * sums.iter().map(|(_, sum)| of.cost(sum) as f64).sum::<f64>()).ceil() as u64
                }
            };
            let mut above: Vec<usize> = (0..sums.len()).filter(|at| of.cost(&sums[*at].1) >= least).collect();
            above.sort_by(|a, b| {
                let ((a, of_a), (b, of_b)) = (&sums[*a], &sums[*b]);
                let costs = (of.cost(of_b), of_b.samples).cmp(&(of.cost(of_a), of_a.samples));
                costs.then_with(|| place(*a).cmp(&place(*b)))
            });
            let mut below: Vec<Option<Vec<PathRest>>> = vec![None; sums.len()];
            above.iter().for_each(|at| below[*at] = Some(Vec::new()));
            for (rest, at) in through.into_iter().zip(&of_rest) {
                if let Some(Some(list)) = below.get_mut(*at) {
                    list.push(rest);
                }
            }
            for at in above {
                let (function, ref mut total) = sums[at];
                let total = std::mem::take(total);
                let number = tree.nodes.len() as u32;
                let call = call(function);
                tree.nodes.push(CallNode {
                    symbol: call.symbol,
                    dso: call.dso,
                    level: call.level,
                    inlined: call.inlined,
                    own: SampleValue::default(),
                    total,
                    children: Vec::new(),
                });
                match parent {
                    Some(parent) => tree.nodes[parent as usize].children.push(number),
                    None => tree.roots.push(number),
                }
                open.push((Some(number), depth + 1, below[at].take().unwrap_or_default()));
            }
        }
        tree
    }
}

/// Merges the stacks of each event into a tree. `totals` are the events' sums.
pub(crate) fn trees(
    input: &TableInput<'_>,
    options: TreeOptions,
    totals: &[SampleValue],
    texts: &StringTable,
) -> Vec<CallTree> {
    let mut paths = StackPaths::new(input, totals.len(), options.order, options.collapse);
    for (key, value) in input.rows {
        paths.add(key, value, options.root);
    }
    let grow = |(event, total): (usize, &SampleValue)| {
        let of = options.share_of;
        let least = (options.limit * of.cost(total) as f64).ceil() as u64;
        let rests = (0..paths.of_event[event].len() as u32).map(|path| PathRest { path, skipped: 0 });
        paths.grow(event, rests.collect(), (of, MinimumCost::Cost(least)), texts)
    };
    totals.iter().enumerate().map(grow).collect()
}
