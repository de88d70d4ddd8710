//! Start-up frames: the functions that start a program, its threads and their workers. Every stack begins
//! with them, so their total cost is always 100 %, which is not useful.
//!
//! ```text
//!   _start ─ __libc_start_main ─ __libc_start_call_main ─ main ─ …      becomes  3 callers ─ main ─ …
//! ```
//! This module recognizes start-up frames by their names and the shape of the tree. It does not decide how
//! views show them.

use super::Profile;
use super::cell::RowCell;
use super::code_owner::is_start_up;
use super::strings::StringTable;
use super::tree::CallTree;

/// A chain of at least two start-up functions at the top of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartupCallers {
    /// The outermost function.
    pub first: u32,
    /// The innermost function; its callees are functions of the program itself.
    pub last: u32,
    /// Number of functions.
    pub count: usize,
}

/// Returns the start-up chains at the top of a tree in caller order. No information is lost by hiding them:
/// their functions have no own samples, and each except the last calls only one function.
pub fn callers(tree: &CallTree, texts: &StringTable) -> Vec<StartupCallers> {
    let symbol = |number: u32| texts.get(tree.nodes[number as usize].symbol);
    let only_child = |number: u32| match tree.nodes[number as usize].children[..] {
        [only] => Some(only),
        _ => None,
    };
    // Rust programs have a C `main` that calls the runtime.
    let is_one = |number: u32| {
        let is_named_so = is_start_up(symbol(number))
            || symbol(number) == "main"
                && only_child(number).is_some_and(|below| symbol(below).starts_with("std::rt::"));
        is_named_so && tree.nodes[number as usize].own.samples == 0
    };
    let chain = |first: &u32| {
        let mut callers = StartupCallers { first: *first, last: *first, count: 1 };
        if !is_one(*first) {
            return None;
        }
        while let Some(below) = only_child(callers.last).filter(|below| is_one(*below)) {
            callers.last = below;
            callers.count += 1;
        }
        (callers.count > 1).then_some(callers)
    };
    tree.roots.iter().filter_map(chain).collect()
}

/// Returns the indices of the rows with start-up functions. `rows` yields the cells and the own cost of each
/// row. Rows with an own cost are not start-up rows. Returns no indices if there is only one matching row, or
/// if rows have no totals.
pub fn caller_rows<'a>(profile: &Profile, rows: impl Iterator<Item = (&'a [RowCell], u64)>) -> Vec<usize> {
    let is_caller = |(cells, own): (&[RowCell], u64)| {
        let symbol = match cells.last() {
            Some(RowCell::Symbol(_, id)) => profile.texts.get(*id),
            _ => return false,
        };
        own == 0 && is_start_up(symbol)
    };
    let found = rows.enumerate().filter(|(_, row)| profile.has_totals && is_caller(*row)).map(|(at, _)| at);
    Some(found.collect()).filter(|found: &Vec<usize>| found.len() > 1).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::sampled::SampleValue;
    use crate::profile::sampled::tree::CallNode;
    use pmc_sys::abi::CpuMode;

    /// Builds a call chain. `own` contains each function's own samples.
    fn chain(names: &[&str], own: &[u64]) -> (CallTree, StringTable) {
        let mut texts = StringTable::default();
        let mut tree = CallTree { roots: vec![0], ..CallTree::default() };
        for (number, name) in names.iter().enumerate() {
            let value = |samples| SampleValue { samples, ..SampleValue::default() };
            tree.nodes.push(CallNode {
                symbol: texts.add(name),
                dso: texts.add("a.out"),
                level: CpuMode::User,
                inlined: false,
                own: value(own.get(number).copied().unwrap_or(0)),
                total: value(10),
                children: if number + 1 < names.len() { vec![number as u32 + 1] } else { Vec::new() },
            });
        }
        (tree, texts)
    }

    #[test]
    fn chains_end_at_the_program_entry() {
        let rust = ["_start", "__libc_start_main@@GLIBC_2.34", "main", "std::rt::lang_start", "app::main"];
        for (names, own, count) in [
            (&["_start", "__libc_start_main", "__libc_start_call_main", "main"][..], &[][..], 3),
            (&rust, &[], 4),
            (&["clone3", "start_thread", "std::thread::local", "rayon_core::join", "app::work"], &[], 4),
            // A function with own samples stays visible.
            (&["_start", "__libc_start_main", "main"], &[1], 0),
            (&["clone3", "start_thread"], &[0, 1], 0),
            (&["_start", "main", "work"], &[], 0),
            (&["main", "_start"], &[], 0),
        ] {
            let (tree, texts) = chain(names, own);
            let found = callers(&tree, &texts).first().map_or(0, |callers| callers.count);
            assert_eq!(found, count, "{names:?}");
        }
    }

    #[test]
    fn startup_frames_end_at_a_branch() {
        let (mut tree, texts) = chain(&["_start", "clone3", "start_thread", "main"], &[]);
        tree.nodes[1].children.push(3);
        assert_eq!(callers(&tree, &texts), [StartupCallers { first: 0, last: 1, count: 2 }]);
    }
}
