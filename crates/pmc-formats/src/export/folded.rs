//! Folded stacks: one line per stack, the input format of flame graph tools.
//!
//! ```text
//!   grep;main;parse;read_line 1700000      the thread's name, the outermost caller, …, the sum of periods
//! ```
//!
//! The output is the same as that of `perf script | inferno-collapse-perf`, sorted by line.

use std::collections::BTreeMap;
use std::io::{self, Write};

use rustc_hash::FxHashMap;

use super::function_name;
use pmc_analysis::profile::sampled::CodeKind;
use pmc_analysis::profile::sampled::StackProfile;
use pmc_analysis::profile::sampled::stacks::Paths;
use pmc_analysis::session::SampleValue;
use pmc_analysis::session::thread_time::ThreadState;
use pmc_text::text::{DisplayName, clean, without_version};

/// Writes an event's stacks with their periods.
pub fn write(out: &mut dyn Write, stacks: &StackProfile<'_>, event: usize) -> io::Result<()> {
    each(stacks, event, FoldedMarks::None, &mut |path, period| writeln!(out, "{path} {period}"))
}

/// Marks appended to names, which tell the flame graph how to colour the boxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoldedMarks {
    /// No marks, and complete names.
    None,
    /// The kind of code. Names have no symbol version, and long ones no template arguments.
    Code,
    /// The state of threads for boxes in which they mostly waited, else as [`Self::Code`].
    States,
}

/// The marks of boxes: an index of [`CodeKind`], or one of the last two for threads that waited for a CPU or
/// were blocked. inferno does not show the ending `_[w]`. The sign before it, which cleaned names never
/// contain, distinguishes the marks.
pub(super) const MARKS: [&str; 7] =
    ["\u{1}_[w]", "\u{2}_[w]", "\u{3}_[w]", "\u{4}_[w]", "\u{5}_[w]", "\u{6}_[w]", "\u{7}_[w]"];
const RUNNABLE: &str = MARKS[5];
const BLOCKED: &str = MARKS[6];

/// Whether a character is the part of a mark that inferno shows.
pub(super) fn is_sign(c: char) -> bool {
    ('\u{1}'..='\u{7}').contains(&c)
}

/// Maximum length of names that the flame graph shows with their template arguments and parameters.
const LONGEST: usize = 60;

/// Returns a name for the flame graph.
fn box_name(name: &str) -> String {
    let name = without_version(name);
    if name.len() <= LONGEST { name.to_owned() } else { DisplayName::new(name).text() }
}

/// Returns an event's stacks with their periods, and with marks on the function names.
pub fn with_marks(stacks: &StackProfile<'_>, event: usize, marks: FoldedMarks) -> Vec<(String, u64)> {
    let mut lines = Vec::new();
    let _ = each(stacks, event, marks, &mut |path, period| {
        lines.push((path.to_owned(), period));
        Ok(())
    });
    lines
}

/// Visits an event's distinct stacks, sorted by their text.
fn each(
    stacks: &StackProfile<'_>,
    event: usize,
    marks: FoldedMarks,
    visit: &mut dyn FnMut(&str, u64) -> io::Result<()>,
) -> io::Result<()> {
    let paths = stacks.paths();
    let by_state = marks == FoldedMarks::States;
    // The name of each function without marks, and its mark.
    let (names, of_code): (Vec<String>, Vec<&str>) = (0..paths.functions.len() as u32)
        .map(|function| {
            let call = paths.call(function, stacks.code());
            let name = function_name(call, stacks.texts);
            let (name, mark) = match marks {
                FoldedMarks::None => (name, ""),
                FoldedMarks::Code | FoldedMarks::States => {
                    let kind = CodeKind::from_mode(call.level, stacks.texts.get(call.dso));
                    (box_name(&name), MARKS[kind as usize])
                }
            };
            // Replace semicolons, because they separate functions.
            (name.replace(';', ":"), mark)
        })
        .unzip();
    // Sums of values, by thread name and by the node at which the stack ends.
    let mut sums: BTreeMap<String, FxHashMap<Option<u32>, SampleValue>> = BTreeMap::new();
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
        *sum += &row.value;
    }
    let marked: Vec<String> =
        names.iter().zip(&of_code).map(|(name, mark)| format!("{name}{mark}")).collect();
    let ranks = ranks(&paths, &marked);
    let (mut path, mut nodes) = (String::new(), Vec::new());
    for (comm, of_comm) in sums {
        let states = if by_state { BoxStates::new(&paths, &ranks, &of_comm) } else { BoxStates::default() };
        let mut ends: Vec<(Option<u32>, u64)> =
            of_comm.into_iter().map(|(node, sum)| (node, sum.period)).filter(|(_, sum)| *sum > 0).collect();
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
            // Profiles of other programs may not name their threads.
            path.push_str(states.mark(None).filter(|_| !comm.is_empty()).unwrap_or_default());
            nodes.clear();
            nodes.extend(node.into_iter().flat_map(|node| paths.outward_nodes(node)));
            for node in nodes.iter().rev() {
                let function = paths.nodes[*node as usize].function as usize;
                if !path.is_empty() {
                    path.push(';');
                }
                path.push_str(&names[function]);
                path.push_str(states.mark(rank(Some(*node))).unwrap_or(of_code[function]));
            }
            visit(&path, sum)?;
        }
    }
    Ok(())
}

/// The value of each box in one thread's flame graph, by the rank of its nodes. `None` is the thread's own
/// box.
#[derive(Default)]
struct BoxStates(FxHashMap<Option<u32>, SampleValue>);

impl BoxStates {
    fn new(paths: &Paths, ranks: &[u32], ends: &FxHashMap<Option<u32>, SampleValue>) -> Self {
        let mut sums: FxHashMap<Option<u32>, SampleValue> = FxHashMap::default();
        for (end, value) in ends {
            let nodes = end.iter().flat_map(|node| paths.outward_nodes(*node));
            let boxes = nodes.map(|node| Some(ranks[node as usize])).chain([None]);
            boxes.for_each(|rank| *sums.entry(rank).or_default() += value);
        }
        Self(sums)
    }

    /// Returns the mark for a box in which threads mostly waited.
    fn mark(&self, rank: Option<u32>) -> Option<&'static str> {
        match self.0.get(&rank)?.main_state() {
            ThreadState::Running => None,
            ThreadState::Runnable => Some(RUNNABLE),
            ThreadState::Blocked => Some(BLOCKED),
        }
    }
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
    // The callees of each node, by name. Callers get their ranks first, so nodes with equal paths are already
    // in the same group.
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
