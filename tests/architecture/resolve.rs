//! Resolves paths in the code through imports, renames, re-exports, globs, `super`, `self` and `crate`.
//!
//! Receives a [`Tree`] and a path as written in a module. Returns the modules on the way (those that name,
//! re-export or define the target), or the path in the external crate where it ends.

use std::collections::BTreeSet;

use crate::sources::{BINARY, Tree};

/// Target of a path.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// Modules that define or re-export the target, in the order visited.
    pub(crate) through: Vec<usize>,
    /// Those of them that only import the target, or re-export it.
    pub(crate) importers: Vec<usize>,
    /// Full path, starting with the crate's name, for a target outside this package.
    pub(crate) outside: Option<Vec<String>>,
}

/// Paths being looked up, so that names that refer to each other do not recurse forever.
type Seen = BTreeSet<(usize, Vec<String>)>;

impl Tree {
    /// Returns the target of a path in this module, or `None` for locals, generics and prelude names.
    pub(crate) fn resolve(&self, module: usize, path: &[String]) -> Option<Found> {
        let found = self.from(module, path, &mut Seen::new())?;
        // A single word is a crate only if it was imported. Otherwise it is a variable of that name.
        let is_word_alone = path.len() == 1 && found.through.is_empty();
        (!is_word_alone).then_some(found)
    }

    fn root(&self, module: usize) -> Option<usize> {
        let is_binary = self.modules[module].path.first().is_some_and(|first| first == BINARY);
        let root: Vec<String> = if is_binary { vec![BINARY.to_owned()] } else { Vec::new() };
        self.by_path.get(&root).copied()
    }

    fn child(&self, module: usize, name: &str) -> Option<usize> {
        let mut path = self.modules[module].path.clone();
        path.push(name.to_owned());
        self.by_path.get(&path).copied()
    }

    fn parent(&self, module: usize) -> Option<usize> {
        let path = &self.modules[module].path;
        self.by_path.get(path.get(..path.len().checked_sub(1)?)?).copied()
    }

    fn from(&self, module: usize, path: &[String], seen: &mut Seen) -> Option<Found> {
        if !seen.insert((module, path.to_vec())) {
            return None;
        }
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "" => self.outside(rest),
            "crate" => self.walk(self.root(module)?, rest, seen),
            "self" => self.walk(module, rest, seen),
            "super" => {
                let mut at = self.parent(module)?;
                let mut rest = rest;
                while let Some(("super", more)) = rest.split_first().map(|(word, more)| (word.as_str(), more))
                {
                    (at, rest) = (self.parent(at)?, more);
                }
                self.walk(at, rest, seen)
            }
            name => match self.named(module, name, rest, seen) {
                Some(found) => Some(found),
                None => self.outside(path),
            },
        }
    }

    fn outside(&self, path: &[String]) -> Option<Found> {
        let name = path.first()?;
        // The workspace's own crates form one tree.
        if name == "pmc" || name.starts_with("pmc_") {
            return self.walk(*self.by_path.get(&Vec::new())?, &path[1..], &mut Seen::new());
        }
        let is_linked = self.crates.contains(name);
        let mut path = path.to_vec();
        if matches!(name.as_str(), "core" | "alloc") {
            "std".clone_into(&mut path[0]);
        }
        is_linked.then_some(Found { outside: Some(path), ..Found::default() })
    }

    fn walk(&self, module: usize, path: &[String], seen: &mut Seen) -> Option<Found> {
        let Some((name, rest)) = path.split_first() else {
            return Some(Found { through: vec![module], ..Found::default() });
        };
        // Macro-generated names are not visible here, so assume that they exist.
        let made = Found { through: vec![module], ..Found::default() };
        Some(self.named(module, name, rest, seen).unwrap_or(made))
    }

    /// Resolves a name in a module, and the rest of the path.
    fn named(&self, module: usize, name: &str, rest: &[String], seen: &mut Seen) -> Option<Found> {
        if let Some(child) = self.child(module, name) {
            return self.walk(child, rest, seen);
        }
        let own = &self.modules[module];
        if own.items.contains(name) {
            return Some(Found { through: vec![module], ..Found::default() });
        }
        let through_here = |mut found: Found| {
            found.through.insert(0, module);
            if !own.type_aliases.contains(name) {
                found.importers.push(module);
            }
            found
        };
        if let Some(alias) = own.aliases.get(name) {
            let path: Vec<String> = alias.iter().chain(rest).cloned().collect();
            // In `use libc;` and `use super::x as x` the alias must not resolve to itself.
            let found = if alias.as_slice() == [name.to_owned()] {
                self.outside(&path)
            } else {
                self.from(module, &path, seen)
            };
            return found.map(through_here);
        }
        for glob in &own.globs {
            let target = self.from(module, glob, &mut seen.clone());
            let Some(target) =
                target.filter(|found| found.outside.is_none()).and_then(|f| f.through.last().copied())
            else {
                continue;
            };
            if target != module
                && seen.insert((target, vec!["*".to_owned(), name.to_owned()]))
                && let Some(found) = self.named(target, name, rest, seen)
            {
                return Some(through_here(found));
            }
        }
        None
    }
}
