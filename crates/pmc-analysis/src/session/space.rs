//! Persistent address spaces, which keep all versions and share their common parts.
//!
//! Adding a mapping returns a new [`SpaceVersion`], the root of a tree. Lookups in all versions remain
//! possible. A fork copies the root. This module does not deal with processes, files or time.
//!
//! ```text
//!   root 1        root 2 = root 1 + [40,60)     a search tree by start address; a change copies the
//!     30            30'                         path from the root, about log2(n) nodes, and shares the rest
//!    /  \          /  \
//!  10    50      10    40   <- 50 was covered
//! ```

use std::hash::{BuildHasher, RandomState};

use rustc_hash::FxHashMap;

use pmc_symbols::address::{Avma, FileOffset, Mapping};

/// A version of an address space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct SpaceVersion(u32);

impl SpaceVersion {
    /// The space without mappings.
    pub(crate) const EMPTY: Self = Self(0);
}

/// The nodes that only one version uses and may therefore change in place: all nodes from this number on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OwnedNodes(u32);

impl OwnedNodes {
    /// No nodes.
    pub(crate) const NONE: Self = Self(u32::MAX);
    /// All nodes, because no version of the space is ever shared.
    pub(crate) const ALL: Self = Self(1);
}

/// A mapping with its module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MappedModule {
    /// The mapped range.
    pub mapping: Mapping,
    /// The module's number, chosen by the caller.
    pub module: u32,
}

impl MappedModule {
    pub(super) fn start(&self) -> u64 {
        self.mapping.start.0
    }

    pub(super) fn end(&self) -> u64 {
        self.start().saturating_add(self.mapping.len)
    }

    /// Whether every address refers to the same position in the same module in both mappings.
    pub(super) fn agrees(&self, other: &Self) -> bool {
        let base = |m: &Mapping| m.start.0.wrapping_sub(m.offset.0);
        self.module == other.module && base(&self.mapping) == base(&other.mapping)
    }

    /// Returns the part from `from` to `to`, if it is not empty.
    pub(super) fn cut(&self, from: u64, to: u64) -> Option<Self> {
        let (start, end) = (self.start().max(from), self.end().min(to));
        let offset = FileOffset(self.mapping.offset.0.wrapping_add(start.wrapping_sub(self.start())));
        (start < end)
            .then(|| Self { mapping: Mapping { start: Avma(start), len: end - start, offset }, ..*self })
    }
}

#[derive(Debug, Clone, Copy)]
struct SpaceNode {
    here: MappedModule,
    priority: u64,
    left: u32,
    right: u32,
}

/// All versions of all spaces.
///
/// Versions between two forks are not needed, so nodes are changed in place between forks ([`OwnedNodes`]).
/// The tree is a treap: each node has a random priority and is above the nodes with lower priorities. The
/// random priorities keep the tree shallow even if addresses are chosen maliciously.
#[derive(Debug)]
pub(crate) struct AddressSpaces {
    /// Index 0 means "no node".
    nodes: Vec<SpaceNode>,
    random: RandomState,
}

impl Default for AddressSpaces {
    fn default() -> Self {
        let nothing = MappedModule {
            mapping: Mapping { start: Avma(0), len: 0, offset: FileOffset(0) },
            module: u32::MAX,
        };
        let nobody = SpaceNode { here: nothing, priority: 0, left: 0, right: 0 };
        Self { nodes: vec![nobody], random: RandomState::new() }
    }
}

impl AddressSpaces {
    pub(crate) fn find(&self, root: SpaceVersion, address: Avma) -> Option<&MappedModule> {
        let (mut at, mut found) = (root.0, None);
        while at != 0 {
            let node = &self.nodes[at as usize];
            if address.0 < node.here.start() {
                at = node.left;
            } else {
                found = Some(&node.here);
                at = node.right;
            }
        }
        found.filter(|mapped| mapped.mapping.contains(address))
    }

    /// Iterates over all mappings, by start address.
    pub(crate) fn iter(&self, root: SpaceVersion) -> impl Iterator<Item = &MappedModule> {
        let mut above = Vec::new();
        let mut at = root.0;
        std::iter::from_fn(move || {
            while at != 0 {
                above.push(at);
                at = self.nodes[at as usize].left;
            }
            let node = &self.nodes[above.pop()? as usize];
            at = node.right;
            Some(&node.here)
        })
    }

    /// Whether a new mapping changes the meaning of a mapped address.
    fn conflicts(&self, root: SpaceVersion, new: &MappedModule) -> bool {
        let mut open = vec![root.0];
        while let Some(at) = open.pop() {
            if at == 0 {
                continue;
            }
            let node = &self.nodes[at as usize];
            if node.here.start() < new.end() {
                if node.here.end() > new.start() && !node.here.agrees(new) {
                    return true;
                }
                open.push(node.right);
            }
            // All mappings further left end before this mapping starts.
            if node.here.start() > new.start() {
                open.push(node.left);
            }
        }
        false
    }

    /// Returns the space with one more mapping, which replaces the mappings that it overlaps.
    pub(crate) fn map(&mut self, root: SpaceVersion, new: MappedModule) -> SpaceVersion {
        self.replace(root, OwnedNodes::NONE, new)
    }

    /// Like [`AddressSpaces::map`], but changes the nodes in `own` in place, which invalidates the old root.
    pub(crate) fn replace(&mut self, root: SpaceVersion, own: OwnedNodes, new: MappedModule) -> SpaceVersion {
        match self.is_free(root, &new) {
            true => self.put(root, own, new),
            false => self.lay(root, own, new),
        }
    }

    /// Like [`AddressSpaces::replace`], but returns `None` without a change if the new mapping changes the
    /// meaning of a mapped address.
    pub(crate) fn add(
        &mut self,
        root: SpaceVersion,
        own: OwnedNodes,
        new: MappedModule,
    ) -> Option<SpaceVersion> {
        if self.is_free(root, &new) {
            return Some(self.put(root, own, new));
        }
        (!self.conflicts(root, &new)).then(|| self.lay(root, own, new))
    }

    /// Returns the set of all nodes created from now on, which belong to the version that continues from this
    /// point. Other versions may share the existing nodes.
    pub(crate) fn own(&self) -> OwnedNodes {
        OwnedNodes(self.nodes.len() as u32)
    }

    /// Adds a mapping that does not overlap any other.
    fn put(&mut self, root: SpaceVersion, own: OwnedNodes, new: MappedModule) -> SpaceVersion {
        if new.end() == new.start() {
            return root;
        }
        let leaf = self.leaf(new);
        SpaceVersion(self.insert(root.0, leaf, own))
    }

    /// Adds a mapping that replaces the overlapped parts of others.
    fn lay(&mut self, root: SpaceVersion, own: OwnedNodes, new: MappedModule) -> SpaceVersion {
        if new.end() == new.start() {
            return root;
        }
        let (before, rest) = self.split(root.0, new.start(), own);
        let (covered, after) = self.split(rest, new.end(), own);
        // Two old mappings may cross a boundary of the new mapping: the last one that starts before it, and
        // the last one that starts inside it.
        let (before, reaching) = self.without_last(before, own);
        let last = self.last(covered);
        let left = reaching.and_then(|old| old.cut(0, new.start()));
        let right = last.or(reaching).and_then(|old| old.cut(new.end(), u64::MAX));
        let mut all = before;
        for piece in [left, Some(new), right].into_iter().flatten() {
            let node = self.leaf(piece);
            all = self.join(all, node, own);
        }
        SpaceVersion(self.join(all, after, own))
    }

    /// Removes all versions except these, and updates the roots of the remaining versions. Common parts stay
    /// shared.
    pub(crate) fn keep<'a>(&mut self, roots: impl Iterator<Item = &'a mut SpaceVersion>) {
        let mut kept = vec![self.nodes[0]];
        let mut moved = FxHashMap::default();
        for root in roots {
            root.0 = self.move_to(root.0, &mut kept, &mut moved);
        }
        self.nodes = kept;
    }

    fn move_to(&self, at: u32, kept: &mut Vec<SpaceNode>, moved: &mut FxHashMap<u32, u32>) -> u32 {
        if at == 0 {
            return 0;
        }
        if let Some(place) = moved.get(&at) {
            return *place;
        }
        let node = self.nodes[at as usize];
        let left = self.move_to(node.left, kept, moved);
        let right = self.move_to(node.right, kept, moved);
        kept.push(SpaceNode { left, right, ..node });
        let place = kept.len() as u32 - 1;
        moved.insert(at, place);
        place
    }

    /// Number of nodes in all versions.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether a mapping does not overlap any other, which is the usual case.
    fn is_free(&self, root: SpaceVersion, new: &MappedModule) -> bool {
        let mut at = root.0;
        while at != 0 {
            let node = &self.nodes[at as usize];
            if node.here.end() <= new.start() {
                at = node.right;
            } else if node.here.start() >= new.end() {
                at = node.left;
            } else {
                return false;
            }
        }
        true
    }

    /// Inserts a new leaf below `at`. Copies the nodes above it and splits the nodes below it.
    fn insert(&mut self, at: u32, leaf: u32, own: OwnedNodes) -> u32 {
        let new = self.nodes[leaf as usize];
        let node = self.nodes[at as usize];
        if at == 0 || new.priority > node.priority {
            let (left, right) = self.split(at, new.here.start(), own);
            self.nodes[leaf as usize] = SpaceNode { left, right, ..new };
            leaf
        } else if new.here.start() < node.here.start() {
            let left = self.insert(node.left, leaf, own);
            self.change(at, left, node.right, own)
        } else {
            let right = self.insert(node.right, leaf, own);
            self.change(at, node.left, right, own)
        }
    }

    fn leaf(&mut self, here: MappedModule) -> u32 {
        let number = self.nodes.len() as u32;
        let priority = self.random.hash_one(number);
        self.nodes.push(SpaceNode { here, priority, left: 0, right: 0 });
        number
    }

    /// Replaces the subtrees of a node. Copies the node if other versions may use it.
    fn change(&mut self, at: u32, left: u32, right: u32, own: OwnedNodes) -> u32 {
        let node = SpaceNode { left, right, ..self.nodes[at as usize] };
        if at >= own.0 {
            self.nodes[at as usize] = node;
            return at;
        }
        self.nodes.push(node);
        self.nodes.len() as u32 - 1
    }

    /// Splits a tree into the mappings that start before `key` and those that start at or after `key`.
    fn split(&mut self, at: u32, key: u64, own: OwnedNodes) -> (u32, u32) {
        if at == 0 {
            return (0, 0);
        }
        let node = self.nodes[at as usize];
        if node.here.start() < key {
            let (less, more) = self.split(node.right, key, own);
            (self.change(at, node.left, less, own), more)
        } else {
            let (less, more) = self.split(node.left, key, own);
            (less, self.change(at, more, node.right, own))
        }
    }

    /// Joins two trees. All mappings in `left` must be before all mappings in `right`.
    fn join(&mut self, left: u32, right: u32, own: OwnedNodes) -> u32 {
        if left == 0 || right == 0 {
            return left + right;
        }
        let (l, r) = (self.nodes[left as usize], self.nodes[right as usize]);
        if l.priority > r.priority {
            let below = self.join(l.right, right, own);
            self.change(left, l.left, below, own)
        } else {
            let below = self.join(left, r.left, own);
            self.change(right, below, r.right, own)
        }
    }

    fn last(&self, mut at: u32) -> Option<MappedModule> {
        if at == 0 {
            return None;
        }
        while self.nodes[at as usize].right != 0 {
            at = self.nodes[at as usize].right;
        }
        Some(self.nodes[at as usize].here)
    }

    fn without_last(&mut self, at: u32, own: OwnedNodes) -> (u32, Option<MappedModule>) {
        let Some(last) = self.last(at) else { return (0, None) };
        (self.split(at, last.start(), own).0, Some(last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped(start: u64, end: u64, module: u32) -> MappedModule {
        MappedModule {
            mapping: Mapping { start: Avma(start), len: end - start, offset: FileOffset(0) },
            module,
        }
    }

    fn shown(spaces: &AddressSpaces, root: SpaceVersion) -> Vec<(u64, u64, u32)> {
        spaces.iter(root).map(|m| (m.start(), m.end(), m.module)).collect()
    }

    #[test]
    fn every_version_is_retained() {
        let mut spaces = AddressSpaces::default();
        let one = spaces.map(SpaceVersion::EMPTY, mapped(10, 20, 1));
        let two = spaces.map(one, mapped(30, 60, 2));
        let hole = spaces.map(two, mapped(40, 50, 3));
        assert_eq!(shown(&spaces, one), [(10, 20, 1)]);
        assert_eq!(shown(&spaces, two), [(10, 20, 1), (30, 60, 2)]);
        assert_eq!(shown(&spaces, hole), [(10, 20, 1), (30, 40, 2), (40, 50, 3), (50, 60, 2)]);
        // The right piece has a higher file offset.
        assert_eq!(spaces.find(hole, Avma(55)).unwrap().mapping.file_offset(Avma(55)), Some(FileOffset(25)));
        assert!(spaces.find(hole, Avma(20)).is_none() && spaces.find(hole, Avma(9)).is_none());
        assert!(!spaces.conflicts(hole, &mapped(20, 30, 9)));
        assert!(spaces.conflicts(hole, &mapped(19, 30, 9)));
        assert!(spaces.conflicts(hole, &mapped(45, 46, 2)));
        assert!(!spaces.conflicts(two, &mapped(30, 35, 2)));
    }

    #[test]
    fn retained_versions_stay_shared() {
        let mut spaces = AddressSpaces::default();
        let mut one = SpaceVersion::EMPTY;
        for n in 0..1000 {
            one = spaces.map(one, mapped(n * 10, n * 10 + 5, n as u32));
        }
        let mut two = spaces.map(one, mapped(12, 14, 7777));
        let (before, first, second) = (spaces.len(), shown(&spaces, one), shown(&spaces, two));
        spaces.keep([&mut one, &mut two].into_iter());
        assert!(spaces.len() < 1100 && before > 5000, "{before} nodes became {}", spaces.len());
        assert_eq!((shown(&spaces, one), shown(&spaces, two)), (first, second));
    }

    #[test]
    fn any_operation_sequence_matches_a_plain_array() {
        let mut spaces = AddressSpaces::default();
        let (mut root, mut plain) = (SpaceVersion::EMPTY, [None::<(u32, u64)>; 200]);
        let (mut own, mut forks) = (spaces.own(), Vec::new());
        let mut seed = 12345u64;
        let mut next = |below: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % below
        };
        for module in 0..2000 {
            let start = next(199);
            let new = mapped(start, start + 1 + next(200 - start - 1).min(next(30)), module % 7);
            let conflict = (new.start()..new.end())
                .any(|a| plain[a as usize].is_some_and(|(m, base)| (m, base) != (new.module, new.start())));
            assert_eq!(spaces.conflicts(root, &new), conflict);
            // As in a history, change nodes in place if no address changes its meaning and there was no fork.
            match spaces.add(root, own, new) {
                Some(grown) => root = grown,
                None => {
                    root = spaces.map(root, new);
                    own = spaces.own();
                }
            }
            if module % 10 == 0 {
                forks.push((root, shown(&spaces, root)));
                own = spaces.own();
            }
            for a in new.start()..new.end() {
                plain[a as usize] = Some((new.module, new.start()));
            }
            for (a, want) in plain.iter().enumerate() {
                let found = spaces.find(root, Avma(a as u64));
                let got = found.map(|m| (m.module, m.start() - m.mapping.offset.0));
                assert_eq!(got, *want, "at {a}");
            }
        }
        for (root, before) in forks {
            assert_eq!(shown(&spaces, root), before);
        }
    }

    #[test]
    fn unshared_nodes_are_modified_in_place() {
        let mut spaces = AddressSpaces::default();
        let (mut root, own) = (SpaceVersion::EMPTY, spaces.own());
        for n in 0..1000 {
            root = spaces.add(root, own, mapped(n * 10, n * 10 + 5, n as u32)).unwrap();
        }
        assert_eq!((spaces.len(), shown(&spaces, root).len()), (1001, 1000));
        // Another version also continues from this point.
        let (before, own) = (shown(&spaces, root), spaces.own());
        let grown = spaces.add(root, own, mapped(7, 8, 7777)).unwrap();
        assert_eq!((shown(&spaces, root), shown(&spaces, grown).len()), (before, 1001));
        assert!(spaces.add(grown, own, mapped(0, 8, 1)).is_none());
    }
}
