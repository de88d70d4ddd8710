//! Folded stacks: one line per stack, the input format of flame graph tools.
//!
//! ```text
//!   grep;main;parse;read_line 1700000      the thread's name, the outermost caller, …, the sum of periods
//! ```
//!
//! The lines are the same as in the output of `perf script | inferno-collapse-perf`, sorted by their text.

use std::collections::BTreeMap;
use std::io::{self, Write};

use rustc_hash::FxHashMap;

use super::function_name;
use pmc_analysis::profile::sampled::CodeKind;
use pmc_analysis::profile::sampled::StackProfile;
use pmc_analysis::profile::sampled::stacks::Paths;
use pmc_sys::text::clean;

/// Writes an event's stacks with their periods.
///
/// # Errors
/// Fails if writing to `out` fails.
pub(crate) fn write(out: &mut dyn Write, stacks: &StackProfile<'_>, event: usize) -> io::Result<()> {
    each(stacks, event, false, &mut |path, period| writeln!(out, "{path} {period}"))
}

/// Returns an event's stacks with their periods. Function names end in marks that tell flame graph tools
/// which code is kernel, inlined or generated.
pub(crate) fn with_marks(stacks: &StackProfile<'_>, event: usize) -> Vec<(String, u64)> {
    let mut lines = Vec::new();
    let _ = each(stacks, event, true, &mut |path, period| {
        lines.push((path.to_owned(), period));
        Ok(())
    });
    lines
}

/// Visits an event's distinct stacks, sorted by their text.
fn each(
    stacks: &StackProfile<'_>,
    event: usize,
    marks: bool,
    visit: &mut dyn FnMut(&str, u64) -> io::Result<()>,
) -> io::Result<()> {
    let paths = stacks.paths();
    let names: Vec<String> = (0..paths.functions.len() as u32)
        .map(|function| {
            let call = paths.call(function, stacks.code());
            let mark = match CodeKind::of(call.level, stacks.texts.get(call.dso)) {
                _ if !marks => "",
                _ if call.inlined => "_[i]",
                CodeKind::Kernel => "_[k]",
                CodeKind::Generated => "_[j]",
                _ => "",
            };
            // Replace semicolons, which separate functions.
            format!("{}{mark}", function_name(call, stacks.texts).replace(';', ":"))
        })
        .collect();
    // Sums of periods by thread name, then by the node where the stack ends.
    let mut sums: BTreeMap<String, FxHashMap<Option<u32>, u64>> = BTreeMap::new();
    let mut of_thread: FxHashMap<u32, String> = FxHashMap::default();
    for row in stacks.rows.iter().filter(|row| row.event as usize == event) {
        let comm = of_thread.entry(row.thread).or_insert_with(|| {
            let comm = &stacks.threads[row.thread as usize].comm;
            clean(comm).replace(';', ":").replace(char::is_whitespace, "_")
        });
        let sum = match sums.get_mut(comm) {
            Some(of_comm) => of_comm.entry(paths.end(row.stack)).or_default(),
            None => sums.entry(comm.clone()).or_default().entry(paths.end(row.stack)).or_default(),
        };
        *sum += row.value.period;
    }
    let ranks = ranks(&paths, &names);
    let (mut path, mut functions) = (String::new(), Vec::new());
    for (comm, of_comm) in sums {
        let mut ends: Vec<(Option<u32>, u64)> = of_comm.into_iter().filter(|(_, sum)| *sum > 0).collect();
        ends.sort_unstable_by_key(|(node, _)| node.map(|node| ranks[node as usize]));
        let mut next = ends.into_iter().peekable();
        while let Some((node, mut sum)) = next.next() {
            // Functions in different modules may have the same name.
            let rank = |node: Option<u32>| node.map(|node| ranks[node as usize]);
            while let Some((_, more)) = next.next_if(|(other, _)| rank(*other) == rank(node)) {
                sum += more;
            }
            path.clear();
            path.push_str(&comm);
            functions.clear();
            functions.extend(node.into_iter().flat_map(|node| paths.outward(node)));
            for function in functions.iter().rev() {
                path.push(';');
                path.push_str(&names[*function as usize]);
            }
            visit(&path, sum)?;
        }
    }
    Ok(())
}

/// Returns the rank of each node in text order; nodes with the same text share a rank.
fn ranks(paths: &Paths, names: &[String]) -> Vec<u32> {
    // Number the functions by name; equal names get equal numbers.
    let mut sorted: Vec<u32> = (0..names.len() as u32).collect();
    sorted.sort_unstable_by_key(|function| &names[*function as usize]);
    let (mut of_name, mut number) = (vec![0; names.len()], 0);
    for (at, function) in sorted.iter().enumerate() {
        number += u32::from(at > 0 && names[*function as usize] != names[sorted[at - 1] as usize]);
        of_name[*function as usize] = number;
    }
    // Callees of each node, by name. Ranks are assigned to callers first, so nodes with equal paths are
    // already in one group.
    let mut below: Vec<Vec<(u32, u32)>> = vec![Vec::new(); paths.nodes.len()];
    let mut top: Vec<(u32, u32)> = Vec::new();
    for (node, about) in paths.nodes.iter().enumerate() {
        let name = of_name[about.function as usize];
        match about.caller {
            Some(caller) => below[caller as usize].push((name, node as u32)),
            None => top.push((name, node as u32)),
        }
    }
    let mut ranks = vec![0; paths.nodes.len()];
    let mut rank = 0;
    // Each entry is a group of nodes with the same text.
    let mut open: Vec<Vec<u32>> = Vec::new();
    let push = |mut list: Vec<(u32, u32)>, open: &mut Vec<Vec<u32>>| {
        list.sort_unstable();
        let groups = list.chunk_by(|a, b| a.0 == b.0).rev();
        open.extend(groups.map(|group| group.iter().map(|(_, node)| *node).collect()));
    };
    push(top, &mut open);
    while let Some(group) = open.pop() {
        let mut list = Vec::new();
        for node in group {
            ranks[node as usize] = rank;
            list.append(&mut below[node as usize]);
        }
        rank += 1;
        push(list, &mut open);
    }
    ranks
}
