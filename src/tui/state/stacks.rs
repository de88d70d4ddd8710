//! The call tree as lines: which branches are open, which line the cursor is on.
//!
//! Receives a [`Tree`]; hands on visible lines. Nodes are known again in the next answer by the names on
//! their path.

use std::hash::Hasher;

use rustc_hash::{FxHashSet, FxHasher};

use super::scroll::Scroll;
use super::search::Search;
use crate::profile::sampled::boilerplate::{self, Callers};
use crate::profile::sampled::tree::Node;
use crate::profile::sampled::{Profile, Tree};

/// What nodes are known by in other answers, by number: a hash of all names from the top to them.
pub fn identities(profile: &Profile, tree: &Tree) -> Vec<u64> {
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

/// Numbers of the nodes above each; `u32::MAX` for the top ones.
pub fn parents(tree: &Tree) -> Vec<u32> {
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
    /// Its node.
    pub node: u32,
    /// It stands for the callers that every program has, down to this node.
    pub callers: Option<Callers>,
    /// Columns to the right: two below a fork, one below an only call, so that long chains stay narrow.
    pub indent: u16,
}

/// The tree's state.
#[derive(Debug, Default)]
pub struct Stacks {
    /// Cursor and uppermost line.
    pub scroll: Scroll,
    /// What is visible.
    pub lines: Vec<StackLine>,
    /// By number of the node.
    pub identities: Vec<u64>,
    /// The chains of callers that are one line each, if they are.
    pub folded: Vec<Callers>,
    parents: Vec<u32>,
    open: FxHashSet<u64>,
    held: Option<u64>,
    /// Nobody has opened or closed anything yet.
    fresh: bool,
}

impl Stacks {
    /// A new tree: what was open stays open; a tree that nobody has touched opens where most of its cost is.
    ///
    /// `folds`: the callers that every program has are one line.
    pub fn set(&mut self, profile: &Profile, tree: &Tree, folds: bool, height: usize) {
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

    /// Forgets what is open: another tree comes.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    fn open_while(
        &mut self,
        tree: &Tree,
        from: Option<u32>,
        worth: impl Fn(&Node, &Node) -> bool,
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

    fn rebuild(&mut self, tree: &Tree, height: usize) {
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

    /// The callers that a node stands for.
    pub fn callers_at(&self, node: u32) -> Option<Callers> {
        self.folded.iter().find(|callers| callers.last == node).copied()
    }

    /// Whether a node is one of those callers, and not the last.
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

    /// The node of the cursor.
    pub fn node(&self) -> Option<u32> {
        self.lines.get(self.scroll.cursor).map(|line| line.node)
    }

    /// Whether a node's branch is open.
    pub fn is_open(&self, node: u32) -> bool {
        self.open.contains(&self.identities[node as usize])
    }

    /// Puts the cursor on a line.
    pub fn put(&mut self, line: usize, height: usize) {
        self.scroll.put(line, self.lines.len(), height);
        self.held = self.node().map(|node| self.identities[node as usize]);
    }

    /// Moves the cursor.
    pub fn by(&mut self, lines: isize, height: usize) {
        self.put(self.scroll.cursor.saturating_add_signed(lines), height);
    }

    /// Opens the branch of the cursor, or closes it; says whether anything changed.
    pub fn open(&mut self, tree: &Tree, wanted: bool, height: usize) -> bool {
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

    /// To the caller's line (in caller order).
    pub fn to_parent(&mut self, height: usize) {
        let Some(parent) = self.node().map(|node| self.parents[node as usize]) else { return };
        if let Some(line) = self.lines.iter().position(|line| line.node == parent) {
            self.put(line, height);
        }
    }

    /// Opens all branches, or none.
    pub fn open_all(&mut self, tree: &Tree, wanted: bool, height: usize) {
        self.fresh = false;
        self.held = self.node().map(|node| self.identities[node as usize]);
        self.open.clear();
        if wanted {
            self.open.extend(&self.identities);
        } else {
            // Nothing open means nobody touched it; a number that no node has says otherwise.
            self.open.insert(0);
            self.held = None;
        }
        self.rebuild(tree, height);
    }

    /// Opens the costliest path from the cursor down, and goes to its end.
    pub fn hot_path(&mut self, tree: &Tree, height: usize) {
        let Some(last) = self.open_while(tree, self.node(), |_, _| true) else { return };
        self.fresh = false;
        self.held = Some(self.identities[last as usize]);
        self.rebuild(tree, height);
    }

    /// Opens everything above a node and goes there.
    pub fn reveal(&mut self, tree: &Tree, node: u32, height: usize) {
        let mut above = self.parents[node as usize];
        while above != u32::MAX {
            self.open.insert(self.identities[above as usize]);
            above = self.parents[above as usize];
        }
        self.fresh = false;
        self.held = Some(self.identities[node as usize]);
        self.rebuild(tree, height);
    }

    /// The next node that matches, opened or not, in the order of the whole tree, behind the cursor (or
    /// before it).
    pub fn find(
        &self,
        profile: &Profile,
        tree: &Tree,
        search: &Search,
        from: Option<u32>,
        step: Step,
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
            Step::Largest => {
                (0..len).filter(matches).max_by_key(|at| (tree.cost(order[*at]), std::cmp::Reverse(*at)))
            }
            Step::Next => (1..=len).map(|on| (start + on) % len).find(matches),
            Step::Back => (1..=len).map(|back| (start + len - back) % len).find(matches),
        };
        found.map(|at| order[at])
    }
}

/// Where a search goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// To what costs most of all that matches.
    Largest,
    /// On.
    Next,
    /// Back.
    Back,
}
