//! The lines of a function or file at which probes can be placed.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::ProbedProgram;
use super::error::ProbeError;
use super::places::{file_name, is_file};
use super::scopes::{ScopeKind, UnitScopes};

/// The lines that can be probed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeableLines {
    /// The source file.
    pub file: String,
    /// The line of the function's declaration; `None` for a whole file.
    pub first: Option<u32>,
    /// The line numbers in the file, starting at 1.
    pub lines: BTreeSet<u32>,
    /// Number of other functions with this name.
    pub others: usize,
}

impl<'a> ProbedProgram<'a> {
    /// Returns the lines of a function that can be probed.
    ///
    /// # Errors
    /// Fails if the function or the debug information does not exist.
    pub fn function_lines(&self, name: &str, file: Option<&str>) -> Result<ProbeableLines, ProbeError> {
        self.within_limit(|| self.lines_of_function(name, file))
    }

    fn lines_of_function(&self, name: &str, file: Option<&str>) -> Result<ProbeableLines, ProbeError> {
        let functions = self.described_functions(name, file)?;
        let declared = functions.first().and_then(|(unit, node)| unit.declared(&self.dies, *node));
        let Some((path, first)) = declared else {
            return Err(self.no_debug_information(&format!("finding the lines of {name}")));
        };
        let mut lines = BTreeSet::new();
        let mut others = BTreeSet::new();
        let mut copies = self.inlined_copies(&functions);
        copies.extend(functions.iter().filter(|(unit, node)| unit.die(*node).has_code()).cloned());
        for (unit, node) in &copies {
            match unit.declared(&self.dies, *node) {
                Some(declared) if declared == (path.clone(), first) => {
                    self.lines_of_code(unit, *node, &path, &mut lines);
                }
                Some(declared) => _ = others.insert(declared),
                None => {}
            }
        }
        Ok(ProbeableLines { file: path, first: Some(first), lines, others: others.len() })
    }

    /// Adds the lines of a function's code, except for code of other functions that were inlined into it.
    fn lines_of_code(&self, unit: &Rc<UnitScopes<'a>>, root: usize, path: &str, lines: &mut BTreeSet<u32>) {
        let rows = unit.rows();
        let mut add = |address: u64, line: u32| {
            if self.other_line(unit, address, path, line).is_none() {
                lines.insert(line);
            }
        };
        for row in unit.die(root).ranges().flat_map(|range| rows.between(range.begin, range.end)) {
            let is_of_file = row.is_statement && rows.path_of(row) == path;
            if is_of_file && self.is_own_row(unit, root, row.address, row.line) {
                add(row.address, row.line);
            }
        }
        let declared = unit.declared(&self.dies, root);
        if unit.nodes[root].kind == ScopeKind::Function
            && let (Some((_, line)), Some(entry)) = (declared, unit.die(root).entry_address())
        {
            add(entry, line);
        }
        for number in unit.inside(root) {
            if unit.nodes[number].kind == ScopeKind::Inlined
                && let Some((file, line)) = self.call_line(unit, number)
                && file == path
                && self.enclosing_function(unit, number) == root
                && let Some(entry) = unit.die(number).entry_address()
            {
                add(entry, line);
            }
        }
    }

    /// Returns the function, which may be inlined, that directly encloses a scope.
    fn enclosing_function(&self, unit: &UnitScopes<'a>, mut node: usize) -> usize {
        while let Some(parent) = unit.nodes[node].parent {
            node = parent;
            if unit.nodes[node].kind != ScopeKind::Block {
                break;
            }
        }
        node
    }

    /// Whether an instruction belongs to the function itself, rather than to a function inlined into it. The
    /// line of the inlined call belongs to the function itself.
    fn is_own_row(&self, unit: &UnitScopes<'a>, root: usize, address: u64, line: u32) -> bool {
        let inner = unit.scopes_at(address).into_iter().rev();
        let inner =
            inner.take_while(|&scope| scope != root).filter(|&s| unit.nodes[s].kind == ScopeKind::Inlined);
        let mut inner = inner.peekable();
        let Some(&innermost) = inner.peek() else { return true };
        let is_call = self.call_line(unit, innermost).is_some_and(|(_, at)| at == line);
        let declared = unit.declared(&self.dies, innermost);
        is_call || declared.is_some() && declared == unit.declared(&self.dies, root)
    }

    /// Returns the lines of a source file that can be probed.
    ///
    /// # Errors
    /// Fails if the source file or the debug information does not exist.
    pub fn file_lines(&self, file: &str) -> Result<ProbeableLines, ProbeError> {
        self.within_limit(|| self.lines_of_file(file))
    }

    fn lines_of_file(&self, file: &str) -> Result<ProbeableLines, ProbeError> {
        if !self.has_debug_information() {
            return Err(self.no_debug_information("showing lines"));
        }
        let (mut lines, mut known, mut chosen) = (BTreeSet::new(), BTreeSet::new(), None);
        for unit in self.scopes() {
            let rows = unit.rows();
            known.extend(rows.paths().filter_map(file_name));
            let Some(path) = rows.paths().find(|path| is_file(path, file)) else { continue };
            let path = chosen.get_or_insert_with(|| path.to_owned());
            let of_rows = rows.rows().filter(|row| row.is_statement && rows.path_of(row) == *path);
            let mut all: BTreeSet<(u64, u32)> = of_rows.map(|row| (row.address, row.line)).collect();
            for node in unit.of_kind(ScopeKind::Function) {
                let declared = unit.declared(&self.dies, node).filter(|(file, _)| file == path);
                let die = unit.die(node);
                if let (Some((_, line)), true) = (declared, die.has_code()) {
                    all.extend(die.entry_address().map(|entry| (entry, line)));
                }
            }
            for node in unit.of_kind(ScopeKind::Inlined) {
                let call = self.call_line(&unit, node).filter(|(file, _)| file == path);
                all.extend(call.and_then(|(_, line)| Some((unit.die(node).entry_address()?, line))));
            }
            all.retain(|(address, line)| self.other_line(&unit, *address, path, *line).is_none());
            lines.extend(all.into_iter().map(|(_, line)| line));
        }
        match chosen {
            Some(file) => Ok(ProbeableLines { file, first: None, lines, others: 0 }),
            None => {
                let near = known.into_iter().collect();
                Err(ProbeError::NoSourceFile { path: self.path.clone(), file: file.to_owned(), near })
            }
        }
    }
}
