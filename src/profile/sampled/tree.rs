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
use super::{ShareOf, StringId, StringTable, Value};
use crate::abi::CpuMode;
use crate::sort;

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
    pub symbol: StringId,
    /// Its module's short name.
    pub dso: StringId,
    /// Where it ran.
    pub level: CpuMode,
    /// Inlined into the next outer function.
    pub inlined: bool,
    /// Samples whose stack ends here (in caller order: the function's own cost in this context).
    pub own: Value,
    /// Samples below.
    pub total: Value,
    /// Numbers of the nodes below, largest first.
    pub children: Vec<u32>,
}

impl Node {
    /// Whether it ran in a kernel or a hypervisor.
    pub fn is_kernel(&self) -> bool {
        matches!(self.level, CpuMode::Kernel | CpuMode::GuestKernel | CpuMode::Hypervisor)
    }
}

/// All nodes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tree {
    /// By number.
    pub nodes: Vec<Node>,
    /// Numbers of the top ones, largest first.
    pub roots: Vec<u32>,
    /// What they are ordered by.
    pub share_of: ShareOf,
}

impl Tree {
    /// What a node adds to a share, with what lies below it.
    pub fn cost(&self, node: u32) -> u64 {
        self.share_of.cost(&self.nodes[node as usize].total)
    }
}

/// What is wanted of a tree.
#[derive(Debug, Clone, Copy, Default)]
pub struct Growth {
    /// Which end is the top.
    pub order: Order,
    /// What nodes are ordered by, and the limit is a part of.
    pub share_of: ShareOf,
    /// Direct recursion is one node.
    pub collapse: bool,
    /// Branches with a smaller part of the event's periods (0 to 1) are left out.
    pub limit: f64,
    /// Only stacks that pass this function, and of them what lies on the far side of it: callees in caller
    /// order, callers in callee order. Of a function that calls itself the outermost call counts.
    pub root: Option<StringId>,
}

/// A stack's way through the tree, and its weight.
struct Way {
    /// Where its functions lie in the list of all.
    start: usize,
    end: usize,
    value: Value,
}

/// Functions of all calls, each once: number by call, and a call by number.
struct Functions {
    of_call: Vec<u32>,
    example: Vec<usize>,
}

impl Functions {
    fn new(input: &Input<'_>) -> Self {
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

    fn symbol(&self, input: &Input<'_>, function: u32) -> StringId {
        input.code.calls()[self.example[function as usize]].symbol
    }
}

/// Lays the stacks of each event over one another. `totals` are the events' sums.
///
/// Grown from the top: the ways that pass a node are told apart by their next function, and only what is
/// above the limit is looked into, so that the many small branches cost nothing but being counted.
pub fn trees(input: &Input<'_>, growth: Growth, totals: &[Value], texts: &StringTable) -> Vec<Tree> {
    let functions = Functions::new(input);
    let mut path: Vec<u32> = Vec::new();
    let mut ways: Vec<Vec<Way>> = totals.iter().map(|_| Vec::new()).collect();
    let mut last = None;
    for (key, value) in input.rows {
        // Rows of one stack that differ in something else share their way.
        if last == Some((key.event, key.stack)) {
            if let Some(way) = ways[key.event as usize].last_mut() {
                way.value += value;
            }
            continue;
        }
        last = Some((key.event, key.stack));
        let start = path.len();
        for location in input.resolved.stack(key.stack) {
            for call in input.code.range(location) {
                let function = functions.of_call[call];
                if !(growth.collapse && path.len() > start && path.last() == Some(&function)) {
                    path.push(function);
                }
            }
        }
        if let Some(root) = growth.root {
            // The path is still innermost first.
            let outermost =
                path[start..].iter().rposition(|function| functions.symbol(input, *function) == root);
            match (outermost, growth.order) {
                (None, _) => path.truncate(start),
                (Some(at), Order::Caller) => path.truncate(start + at + 1),
                (Some(at), Order::Callee) => drop(path.drain(start..start + at)),
            }
        }
        if growth.order == Order::Caller {
            path[start..].reverse();
        }
        ways[key.event as usize].push(Way { start, end: path.len(), value: value.clone() });
    }
    let grow = |(ways, total): (&Vec<Way>, &Value)| {
        let of = growth.share_of;
        let least = (growth.limit * of.cost(total) as f64).ceil() as u64;
        self::grow(input, texts, &functions, &path, ways, (of, least))
    };
    ways.iter().zip(totals).map(grow).collect()
}

fn grow(
    input: &Input<'_>,
    texts: &StringTable,
    functions: &Functions,
    path: &[u32],
    ways: &[Way],
    (of, least): (ShareOf, u64),
) -> Tree {
    let mut tree = Tree { share_of: of, ..Tree::default() };
    let call = |function: u32| &input.code.calls()[functions.example[function as usize]];
    // Of equal cost: by their words, so that equal runs print equal trees.
    let words = |function: u32| {
        let call = call(function);
        (texts.get(call.symbol), texts.get(call.dso), call.level)
    };
    let all: Vec<u32> = (0..ways.len() as u32).collect();
    // Each entry: the node above, how deep it is, the ways through it.
    let mut open: Vec<(Option<u32>, usize, Vec<u32>)> = vec![(None, 0, all)];
    while let Some((parent, depth, through)) = open.pop() {
        let mut sums: FxHashMap<u32, Value> = FxHashMap::default();
        let mut own = Value::default();
        let next = |way: &Way| (way.start + depth < way.end).then(|| path[way.start + depth]);
        for way in through.iter().map(|way| &ways[*way as usize]) {
            match next(way) {
                Some(function) => *sums.entry(function).or_default() += &way.value,
                None => own += &way.value,
            }
        }
        if let Some(parent) = parent {
            tree.nodes[parent as usize].own = own;
        }
        let mut above: Vec<(u32, Value)> =
            sums.into_iter().filter(|(_, sum)| of.cost(sum) >= least).collect();
        sort::by(&mut above, |(a, of_a), (b, of_b)| {
            let costs = (of.cost(of_b), of_b.samples).cmp(&(of.cost(of_a), of_a.samples));
            costs.then_with(|| words(*a).cmp(&words(*b)))
        });
        let mut below: FxHashMap<u32, Vec<u32>> =
            above.iter().map(|(function, _)| (*function, Vec::new())).collect();
        for way in through {
            let list = next(&ways[way as usize]).and_then(|function| below.get_mut(&function));
            if let Some(list) = list {
                list.push(way);
            }
        }
        for (function, total) in above {
            let number = tree.nodes.len() as u32;
            let call = call(function);
            tree.nodes.push(Node {
                symbol: call.symbol,
                dso: call.dso,
                level: call.level,
                inlined: call.inlined,
                own: Value::default(),
                total,
                children: Vec::new(),
            });
            match parent {
                Some(parent) => tree.nodes[parent as usize].children.push(number),
                None => tree.roots.push(number),
            }
            open.push((Some(number), depth + 1, below.remove(&function).unwrap_or_default()));
        }
    }
    tree
}
