//! The call tree as a list of lines, with its open branches and the cursor's line.
//!
//! Converts a [`CallTree`] to the visible lines. A node is identified across answers by the names on its
//! path.

use std::hash::Hasher;

use rustc_hash::{FxHashSet, FxHasher};

use super::scroll::Scroll;
use super::search::Search;
use pmc_analysis::profile::sampled::boilerplate::{self, StartupCallers};
use pmc_analysis::profile::sampled::tree::CallNode;
use pmc_analysis::profile::sampled::{CallTree, Profile};

/// Returns node identities that are stable across answers, indexed by node number. Each is a hash of all
/// names from the root to the node.
pub fn identities(profile: &Profile, tree: &CallTree) -> Vec<u64> {
    let mut all = vec![0; tree.nodes.len()];
    let mut open: Vec<(u32, u64)> = tree.roots.iter().map(|root| (*root, 0)).collect();
    while let Some((number, above)) = open.pop() {
        let node = &tree.nodes[number as usize];
        let mut hasher = FxHasher::default();
        hasher.write_u64(above);
        hasher.write(profile.texts.get(node.symbol).as_bytes());
        hasher.write(profile.texts.get(node.dso).as_bytes());
        let identity = hasher.finish();
        all[number as usize] = identity;
        open.extend(node.children.iter().map(|child| (*child, identity)));
    }
    all
}

/// Returns the parent of each node; `u32::MAX` for roots.
pub fn parents(tree: &CallTree) -> Vec<u32> {
    let mut all = vec![u32::MAX; tree.nodes.len()];
    for (number, node) in tree.nodes.iter().enumerate() {
        for child in &node.children {
            all[*child as usize] = number as u32;
        }
    }
    all
}

/// A visible line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackLine {
    pub node: u32,
    /// The start-up functions that this line combines, the last of which is this node.
    pub callers: Option<StartupCallers>,
    /// Indentation in columns. It increases by two for each of several children, but by only one for an only
    /// child, so that long chains stay narrow.
    pub indent: u16,
}

/// The tree's state.
#[derive(Debug, Default)]
pub struct StacksPane {
    /// Cursor and top line.
    pub scroll: Scroll,
    /// The visible lines.
    pub lines: Vec<StackLine>,
    /// Identities, indexed by node number.
    pub identities: Vec<u64>,
    /// Chains of start-up functions that are combined into one line each.
    pub folded: Vec<StartupCallers>,
    parents: Vec<u32>,
    open: FxHashSet<u64>,
    held: Option<u64>,
    /// Whether the user has not opened or closed any branch yet.
    fresh: bool,
}

impl StacksPane {
    /// Sets a new tree. Open branches stay open. If the user has not opened or closed any branch, opens the
    /// most expensive path.
    ///
    /// `folds` combines start-up functions that all programs have into one line.
    pub fn set(&mut self, profile: &Profile, tree: &CallTree, folds: bool, height: usize) {
        self.folded = if folds { boilerplate::callers(tree, &profile.texts) } else { Vec::new() };
        self.identities = identities(profile, tree);
        self.parents = parents(tree);
        if self.open.is_empty() && !tree.roots.is_empty() {
            self.fresh = true;
        }
        if self.fresh {
            self.open.clear();
            self.open_while(tree, tree.roots.first().copied(), |node, child| {
                tree.share_of.cost(&child.total) * 2 >= tree.share_of.cost(&node.total)
            });
        }
        self.rebuild(tree, height);
    }

    /// Forgets which branches are open. Call this before setting a different tree.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    fn open_while(
        &mut self,
        tree: &CallTree,
        from: Option<u32>,
        worth: impl Fn(&CallNode, &CallNode) -> bool,
    ) -> Option<u32> {
        let mut last = from;
        while let Some(number) = last {
            let node = &tree.nodes[number as usize];
            let Some(child) = node.children.first() else { break };
            self.open.insert(self.identities[number as usize]);
            if !worth(node, &tree.nodes[*child as usize]) {
                break;
            }
            last = Some(*child);
        }
        last
    }

    fn rebuild(&mut self, tree: &CallTree, height: usize) {
        self.lines.clear();
        let mut open: Vec<StackLine> = tree.roots.iter().rev().map(|root| self.top_line(*root)).collect();
        while let Some(line) = open.pop() {
            self.lines.push(line);
            let node = &tree.nodes[line.node as usize];
            if self.open.contains(&self.identities[line.node as usize]) {
                let indent = line.indent.saturating_add(if node.children.len() > 1 { 2 } else { 1 });
                open.extend(node.children.iter().rev().map(|child| StackLine {
                    node: *child,
                    callers: None,
                    indent,
                }));
            }
        }
        let held = self.held;
        let at = held
            .and_then(|held| self.lines.iter().position(|line| self.identities[line.node as usize] == held));
        self.scroll.put(at.unwrap_or(self.scroll.cursor), self.lines.len(), height);
    }

    fn top_line(&self, root: u32) -> StackLine {
        let callers = self.folded.iter().find(|callers| callers.first == root).copied();
        StackLine { node: callers.map_or(root, |callers| callers.last), callers, indent: 0 }
    }

    /// Returns the start-up functions that a node's line combines.
    pub fn callers_at(&self, node: u32) -> Option<StartupCallers> {
        self.folded.iter().find(|callers| callers.last == node).copied()
    }

    /// Whether a node is a combined start-up function other than the last one of its chain.
    pub fn is_folded(&self, node: u32) -> bool {
        self.folded.iter().any(|callers| {
            let mut at = callers.last;
            while at != callers.first {
                at = self.parents[at as usize];
                if at == node {
                    return true;
                }
            }
            false
        })
    }

    /// Returns the node of the cursor.
    pub fn node(&self) -> Option<u32> {
        self.lines.get(self.scroll.cursor).map(|line| line.node)
    }

    /// Whether a node's branch is open.
    pub fn is_open(&self, node: u32) -> bool {
        self.open.contains(&self.identities[node as usize])
    }

    /// Moves the cursor to a line.
    pub fn put(&mut self, line: usize, height: usize) {
        self.scroll.put(line, self.lines.len(), height);
        self.held = self.node().map(|node| self.identities[node as usize]);
    }

    /// Moves the cursor by this number of lines.
    pub fn by(&mut self, lines: isize, height: usize) {
        self.put(self.scroll.cursor.saturating_add_signed(lines), height);
    }

    /// Opens or closes the cursor's branch. Returns whether anything changed.
    pub fn open(&mut self, tree: &CallTree, wanted: bool, height: usize) -> bool {
        let Some(node) = self.node() else { return false };
        let identity = self.identities[node as usize];
        let changed = if wanted {
            !tree.nodes[node as usize].children.is_empty() && self.open.insert(identity)
        } else {
            self.open.remove(&identity)
        };
        if changed {
            self.fresh = false;
            self.held = Some(identity);
            self.rebuild(tree, height);
        }
        changed
    }

    /// Moves the cursor to the parent's line. In caller order, the parent is the caller.
    pub fn go_to_parent(&mut self, height: usize) {
        let Some(parent) = self.node().map(|node| self.parents[node as usize]) else { return };
        if let Some(line) = self.lines.iter().position(|line| line.node == parent) {
            self.put(line, height);
        }
    }

    /// Opens or closes all branches.
    pub fn open_all(&mut self, tree: &CallTree, wanted: bool, height: usize) {
        self.fresh = false;
        self.held = self.node().map(|node| self.identities[node as usize]);
        self.open.clear();
        if wanted {
            self.open.extend(&self.identities);
        } else {
            // An empty set means that the user has not touched the tree, so insert a value that is not the
            // identity of any node.
            self.open.insert(0);
            self.held = None;
        }
        self.rebuild(tree, height);
    }

    /// Opens the most expensive path below the cursor, and moves the cursor to its end.
    pub fn hot_path(&mut self, tree: &CallTree, height: usize) {
        let Some(last) = self.open_while(tree, self.node(), |_, _| true) else { return };
        self.fresh = false;
        self.held = Some(self.identities[last as usize]);
        self.rebuild(tree, height);
    }

    /// Opens all branches above a node, and moves the cursor to the node.
    pub fn reveal(&mut self, tree: &CallTree, node: u32, height: usize) {
        let mut above = self.parents[node as usize];
        while above != u32::MAX {
            self.open.insert(self.identities[above as usize]);
            above = self.parents[above as usize];
        }
        self.fresh = false;
        self.held = Some(self.identities[node as usize]);
        self.rebuild(tree, height);
    }

    /// Returns the next or previous matching node, in the order of the whole tree, including closed branches.
    pub fn find(
        &self,
        profile: &Profile,
        tree: &CallTree,
        search: &Search,
        from: Option<u32>,
        step: SearchDirection,
    ) -> Option<u32> {
        let mut order = Vec::with_capacity(tree.nodes.len());
        let mut open: Vec<u32> = tree.roots.iter().rev().copied().collect();
        while let Some(number) = open.pop() {
            order.push(number);
            open.extend(tree.nodes[number as usize].children.iter().rev());
        }
        let len = order.len();
        let start = from.and_then(|from| order.iter().position(|number| *number == from)).unwrap_or(0);
        let name = |at: usize| profile.texts.get(tree.nodes[order[at] as usize].symbol);
        let matches = |at: &usize| search.finds(name(*at)) && !self.is_folded(order[*at]);
        let found = match step {
            SearchDirection::Largest => {
                (0..len).filter(matches).max_by_key(|at| (tree.cost(order[*at]), std::cmp::Reverse(*at)))
            }
            SearchDirection::Next => (1..=len).map(|on| (start + on) % len).find(matches),
            SearchDirection::Back => (1..=len).map(|back| (start + len - back) % len).find(matches),
        };
        found.map(|at| order[at])
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchDirection {
    /// Go to the match with the largest cost.
    Largest,
    /// Go to the next match.
    Next,
    /// Go to the previous match.
    Back,
}
