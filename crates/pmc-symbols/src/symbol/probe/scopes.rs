//! The functions, inlined functions, blocks and variables of a unit, as a tree.
//!
//! Takes a unit; returns its scopes in file order, each with the index of its parent. Reads the unit in one
//! pass without recursion.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::iter::{once, successors};
use std::rc::Rc;

use gimli::{AttributeValue, Range, UnitOffset, constants as dw};

use super::dies::{Die, DieUnit, Dies};
use super::rows::UnitRows;
use crate::symbol::demangle::demangle;
use pmc_text::text::glob;

/// Maximum depth of nested scopes. Deeper scopes become children of the scope at this depth.
const MOST_DEPTH: usize = 256;

/// The kinds of scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScopeKind {
    /// A function, either with code or as the abstract origin of inlined copies.
    Function,
    /// The code of a function inlined into its parent.
    Inlined,
    Block,
    Variable,
    Parameter,
}

impl ScopeKind {
    fn is_variable(self) -> bool {
        matches!(self, Self::Variable | Self::Parameter)
    }
}

/// A scope or a variable.
pub(super) struct ScopeNode {
    pub(super) kind: ScopeKind,
    pub(super) offset: UnitOffset,
    /// Index of the enclosing scope; `None` at the top level of the unit.
    pub(super) parent: Option<usize>,
}

/// The innermost scope of a function's code, by the first address at which it is the innermost:
///
/// ```text
///   function  [0 ──────────────────── 90)
///   block         [20 ───────── 70)             0: function, 20: block, 30: inlined,
///   inlined           [30 ── 50)               50: block,    70: function
/// ```
type InnermostScopes = BTreeMap<u64, usize>;

/// The scopes of a unit.
pub(super) struct UnitScopes<'a> {
    pub(super) home: Rc<DieUnit<'a>>,
    pub(super) nodes: Vec<ScopeNode>,
    rows: OnceCell<UnitRows>,
    functions: OnceCell<Vec<(Range, usize)>>,
    /// The innermost scopes of the function that was asked for last.
    innermost: RefCell<Option<(usize, InnermostScopes)>>,
    /// Whether any variable has different locations at different addresses, as in optimized code.
    pub(super) is_optimized: bool,
}

impl<'a> UnitScopes<'a> {
    pub(super) fn read(home: Rc<DieUnit<'a>>) -> Self {
        let (nodes, is_optimized) = read_nodes(&home).unwrap_or_default();
        let (rows, functions, innermost) = (OnceCell::new(), OnceCell::new(), RefCell::default());
        Self { home, nodes, rows, functions, innermost, is_optimized }
    }

    pub(super) fn rows(&self) -> &UnitRows {
        self.rows.get_or_init(|| UnitRows::read(&self.home))
    }

    pub(super) fn die(&self, node: usize) -> Die<'a> {
        Die { home: self.home.clone(), offset: self.nodes[node].offset }
    }

    pub(super) fn of_kind(&self, kind: ScopeKind) -> impl Iterator<Item = usize> + '_ {
        self.nodes.iter().enumerate().filter(move |(_, node)| node.kind == kind).map(|(number, _)| number)
    }

    pub(super) fn holds(&self, node: usize, address: u64) -> bool {
        self.die(node).ranges().any(|range| range.begin <= address && address < range.end)
    }

    /// The functions with code, sorted by their address ranges.
    fn functions(&self) -> &[(Range, usize)] {
        self.functions.get_or_init(|| {
            let of = |node| self.die(node).ranges().map(move |range| (range, node));
            let functions = self.of_kind(ScopeKind::Function).flat_map(of);
            let mut functions: Vec<_> = functions.take_while(|_| self.home.work.ranges.take(1)).collect();
            functions.sort_by_key(|(range, _)| range.begin);
            functions
        })
    }

    /// Returns the function whose code contains an address.
    pub(super) fn function_at(&self, address: u64) -> Option<usize> {
        let functions = self.functions();
        let end = functions.partition_point(|(range, _)| range.begin <= address);
        functions[..end].last().filter(|(range, _)| address < range.end).map(|(_, function)| *function)
    }

    /// Returns the scopes that contain an address: a function, then the blocks and inlined functions in it.
    pub(super) fn scopes_at(&self, address: u64) -> Vec<usize> {
        let Some(function) = self.function_at(address) else { return Vec::new() };
        let mut known = self.innermost.borrow_mut();
        if known.as_ref().is_none_or(|(of, _)| *of != function) {
            known.take().into_iter().for_each(|(_, old)| self.home.work.ranges.give_back(old.len()));
            *known = Some((function, self.innermost_scopes(function)));
        }
        let Some((_, innermost)) = &*known else { return Vec::new() };
        let innermost = innermost.range(..=address).next_back().map_or(function, |(_, &node)| node);
        let outer = |&node: &usize| self.nodes[node].parent.filter(|_| node != function);
        let mut scopes: Vec<usize> = successors(Some(innermost), outer).collect();
        scopes.reverse();
        scopes
    }

    /// Each scope comes after the scope that contains it, so it replaces that scope at its own addresses.
    fn innermost_scopes(&self, function: usize) -> InnermostScopes {
        let mut innermost = InnermostScopes::new();
        for number in once(function).chain(self.inside(function)) {
            if self.nodes[number].kind.is_variable() {
                continue;
            }
            for Range { begin, end } in self.die(number).ranges() {
                let before = innermost.len();
                let after = innermost.range(..=end).next_back().map_or(function, |(_, &node)| node);
                let replaced: Vec<u64> = innermost.range(begin..end).map(|(&start, _)| start).collect();
                for start in replaced {
                    innermost.remove(&start);
                }
                innermost.insert(begin, number);
                innermost.insert(end, after);
                self.home.work.ranges.give_back(before.saturating_sub(innermost.len()));
                if !self.home.work.ranges.take(innermost.len().saturating_sub(before)) {
                    self.home.work.ranges.give_back(before);
                    return InnermostScopes::new();
                }
            }
        }
        innermost
    }

    /// The scopes and variables in a scope, which come directly after it.
    pub(super) fn inside(&self, scope: usize) -> impl Iterator<Item = usize> + '_ {
        let nodes = self.nodes.iter().enumerate().skip(scope + 1);
        nodes
            .take_while(move |(_, node)| node.parent.is_some_and(|parent| parent >= scope))
            .map(|(number, _)| number)
    }

    /// Returns the innermost function at an address, which may be inlined.
    pub(super) fn innermost_function_at(&self, address: u64) -> Option<usize> {
        let scopes = self.scopes_at(address);
        scopes.into_iter().rev().find(|&scope| self.nodes[scope].kind != ScopeKind::Block)
    }

    /// Returns the file and line of a function's declaration.
    pub(super) fn declared(&self, dies: &Dies<'a>, node: usize) -> Option<(String, u32)> {
        let (holder, file, line) = dies.declared(&self.die(node))?;
        Some((holder.home.path(file)?, line))
    }
}

impl Drop for UnitScopes<'_> {
    fn drop(&mut self) {
        let functions = self.functions.get().map_or(0, Vec::len);
        let innermost = self.innermost.get_mut().as_ref().map_or(0, |(_, scopes)| scopes.len());
        self.home.work.ranges.give_back(functions + innermost);
    }
}

type ReadNodes = (Vec<ScopeNode>, bool);

fn read_nodes(home: &DieUnit<'_>) -> Result<ReadNodes, gimli::Error> {
    let (mut nodes, mut is_optimized) = (Vec::new(), false);
    // Depth and index of each enclosing scope.
    let mut open: Vec<(isize, usize)> = Vec::new();
    let mut entries = home.unit.entries_raw(None)?;
    while !entries.is_empty() {
        let (depth, offset) = (entries.next_depth(), entries.next_offset());
        let Some(abbreviation) = entries.read_abbreviation()? else { continue };
        let kind = match abbreviation.tag() {
            dw::DW_TAG_subprogram => ScopeKind::Function,
            dw::DW_TAG_inlined_subroutine => ScopeKind::Inlined,
            dw::DW_TAG_lexical_block => ScopeKind::Block,
            dw::DW_TAG_variable => ScopeKind::Variable,
            dw::DW_TAG_formal_parameter => ScopeKind::Parameter,
            _ => {
                entries.skip_attributes(abbreviation.attributes())?;
                continue;
            }
        };
        for &attribute in abbreviation.attributes() {
            let read = entries.read_attribute(attribute)?;
            is_optimized |= read.name() == dw::DW_AT_location
                && matches!(
                    read.value(),
                    AttributeValue::LocationListsRef(_) | AttributeValue::DebugLocListsIndex(_)
                );
        }
        while open.last().is_some_and(|(outer, _)| *outer >= depth) {
            open.pop();
        }
        let parent = open.last().map(|(_, node)| *node);
        if !kind.is_variable() && open.len() < MOST_DEPTH {
            open.push((depth, nodes.len()));
        }
        nodes.push(ScopeNode { kind, offset, parent });
    }
    Ok((nodes, is_optimized))
}

/// Whether a function's source name, linker name or demangled name equals or matches `wanted`.
pub(super) fn has_name<'a>(dies: &Dies<'a>, die: &Die<'a>, wanted: &str) -> bool {
    let fits = |name: &str| glob::matches(wanted, name);
    dies.name(die).is_some_and(|name| fits(&name))
        || dies
            .linkage_name(die)
            .is_some_and(|name| fits(&name) || demangle(&name).is_some_and(|name| fits(&name)))
}
