//! The call tree for human readers, with total percentages, own percentages and bars. If each function in a
//! chain passes nearly all of its cost to one callee, the chain is folded into one line. This applies to
//! trees in caller order and in callee order.
//!
//! ```text
//!   Total    Self
//!   99.1%    0.3%  ██████████  __libc_start_call_main › main
//!   70.9%   20.6%  ███████░░░    ├ mid
//!   42.3%    1.2%  ████░░░░░░    │  └ rec › rec › rec › leaf
//! ```

use std::io::{self, Write};

use super::name::StyledWords;
use super::{ChainShape, ChainUnit, ReportLayout};
use pmc_analysis::profile::sampled::boilerplate;
use pmc_analysis::profile::sampled::chain_tree::ChainLink;
use pmc_analysis::profile::sampled::tree::CallNode;
use pmc_analysis::profile::sampled::{CallTree, CodeKind, Profile, ProfileEvent, SampleValue};
use pmc_text::terminal::theme::TextRole;
use pmc_text::text::{clean, width};

/// Width of a full bar in columns.
const BAR: usize = 10;
/// Maximum depth. Deeper branches are cut because they would not fit on any screen.
const DEEPEST: usize = 60;
/// Maximum number of functions in a chain.
const CHAIN: usize = 8;
/// Maximum number of lines for a chain if the line width is limited.
const LINES: usize = 3;

pub(super) fn write(
    out: &mut dyn Write,
    profile: &Profile,
    event: &ProfileEvent,
    tree: &CallTree,
    layout: &ReportLayout,
) -> io::Result<()> {
    let order = if layout.callee { "called function first" } else { "caller first" };
    let of = if layout.shape == ChainShape::Fractal { " of the parent branch" } else { "" };
    let whose = event.state.map_or_else(String::new, |state| format!(" of {} time", state.event_name()));
    let least = least(event, tree, layout);
    let shown = |list: &[u32]| -> Vec<u32> {
        let is_shown = |number: &&u32| event.cost(&tree.nodes[**number as usize].total) >= least;
        list.iter().filter(is_shown).take(layout.branches.unwrap_or(usize::MAX)).copied().collect()
    };
    match least {
        0 => writeln!(out, "Call tree{whose}, {order}, branches from {}%{of}", layout.branch_limit)?,
        _ => {
            let limit = event.share(least) * 100.0;
            let all = layout.branch_limit;
            writeln!(
                out,
                "Call tree{whose}, {order}, branches from {limit:.1}% (--percent-limit {all} shows more)"
            )?;
        }
    }
    writeln!(out, "{}", layout.paint.words(TextRole::Heading, "   Total    Self"))?;
    let folds = layout.reads_names() && !layout.callee;
    let folded = if folds { boilerplate::callers(tree, &profile.texts) } else { Vec::new() };
    let mut open: Vec<PendingBranch<'_>> = Vec::new();
    push(&mut open, &shown(&tree.roots), "", 0, &event.total);
    while let Some(PendingBranch { number, rails, is_last, depth, above }) = open.pop() {
        // Combine start-up functions such as `_start`, which cost as much as their callees.
        let callers = folded.iter().find(|callers| callers.first == number);
        let mut node = &tree.nodes[callers.map_or(number, |callers| callers.last) as usize];
        let whole = &node.total;
        let share = |value: &SampleValue| event.share(event.cost(value));
        let total = share(whole);
        let numbers = format!(
            "  {}  {}  ",
            amount(event, layout, whole, above),
            amount(event, layout, &node.own, above)
        );
        let filled = ((total * BAR as f64).round() as usize).min(BAR);
        let (branch, more) = match (depth, is_last) {
            (0, _) => ("", ""),
            (_, true) => ("└ ", "  "),
            (_, false) => ("├ ", "│ "),
        };
        let before = width(&numbers) + BAR + 2;
        // Limit the vertical lines of deep branches, so that half of the line is left for names.
        let most = layout.width().map_or(usize::MAX, |columns| columns.saturating_sub(before) / 2);
        let drawn = match width(&rails) + 2 > most {
            true => format!("{depth:>2}… "),
            false => rails.clone(),
        };
        let room =
            layout.width().map_or(usize::MAX, |columns| columns.saturating_sub(before + width(&drawn) + 2));
        let mut names = vec![match callers {
            Some(callers) => StyledWords::new(TextRole::Quiet, format!("{} callers", callers.count)),
            None => name(profile, node, layout, room),
        }];
        // A function that passes nearly all of its cost to one callee is not a separate branch.
        let mut below = shown(&node.children);
        while let [only] = below[..] {
            let next = &tree.nodes[only as usize];
            if !passes_on(event, node, next) || names.len() >= CHAIN {
                break;
            }
            names.push(name(profile, next, layout, room.saturating_sub(4)));
            node = next;
            below = shown(&node.children);
        }
        let mut lines = chained(&names, room).into_iter();
        let first = lines.next().unwrap_or_default().painted(layout.paint);
        let bar = "█".repeat(filled) + &"░".repeat(BAR - filled);
        let bar = layout.paint.words(TextRole::Bar, &bar);
        writeln!(out, "{numbers}{bar}  {drawn}{branch}{first}")?;
        for line in lines {
            let rail = if below.is_empty() { "  " } else { "│ " };
            let rails = if drawn == rails { rails.clone() } else { " ".repeat(width(&drawn)) };
            writeln!(out, "{:before$}{rails}{more}{rail}{}", "", line.painted(layout.paint))?;
        }
        if depth < DEEPEST {
            push(&mut open, &below, &format!("{rails}{more}"), depth + 1, whole);
        } else if !below.is_empty() {
            writeln!(out, "{:before$}{drawn}{more}…", "")?;
        }
    }
    Ok(())
}

/// Whether a function passes nearly all of its cost to one callee. If so, both are printed on one line.
fn passes_on(event: &ProfileEvent, node: &CallNode, next: &CallNode) -> bool {
    let share = |value: &SampleValue| event.share(event.cost(value));
    share(&next.total) >= 0.998 * share(&node.total) && share(&node.own) <= 0.001 * share(&node.total)
}

/// Returns the minimum cost of the branches to show, so that the tree fits into the available lines; 0 for no
/// limit.
fn least(event: &ProfileEvent, tree: &CallTree, layout: &ReportLayout) -> u64 {
    let Some(lines) = layout.tree_lines else { return 0 };
    let cost = |number: &u32| event.cost(&tree.nodes[*number as usize].total);
    let mut branches: Vec<u64> = tree.roots.iter().map(cost).collect();
    for node in &tree.nodes {
        let is_branch = |child: &&u32| !passes_on(event, node, &tree.nodes[**child as usize]);
        branches.extend(node.children.iter().filter(is_branch).map(cost));
    }
    branches.sort_by_key(|cost| std::cmp::Reverse(*cost));
    branches.get(lines).map_or(0, |first_left| (first_left + 1).min(branches[0]))
}

/// Returns the names of a chain in at most [`LINES`] lines of `room` columns, omitting functions in the
/// middle.
pub(crate) fn chained(names: &[StyledWords], room: usize) -> Vec<StyledWords> {
    let whole = broken(names, room);
    let (Some(last), true) = (names.last(), whole.len() > LINES) else { return whole };
    let shortened = |kept: usize| {
        let more = StyledWords::new(TextRole::Quiet, format!("… {} more", names.len() - 1 - kept));
        let names: Vec<StyledWords> = [&names[..kept], &[more, last.clone()]].concat();
        broken(&names, room)
    };
    (1..names.len() - 1).rev().map(shortened).find(|lines| lines.len() <= LINES).unwrap_or(whole)
}

/// Breaks names into lines of `room` columns. All lines except the first start with `› `.
fn broken(names: &[StyledWords], room: usize) -> Vec<StyledWords> {
    let mut lines: Vec<StyledWords> = Vec::new();
    for name in names {
        let most = if lines.len() > 1 { room.saturating_sub(2) } else { room };
        match lines.last_mut() {
            Some(line) if line.width() + 3 + name.width() <= most => {
                line.push(&StyledWords::new(TextRole::Quiet, " › "));
                line.push(name);
            }
            Some(_) => {
                let mut line = StyledWords::new(TextRole::Quiet, "› ");
                line.push(name);
                lines.push(line);
            }
            None => lines.push(name.clone()),
        }
    }
    lines
}

/// A branch that is not drawn yet.
struct PendingBranch<'a> {
    number: u32,
    /// The vertical lines to the left of the branch.
    rails: String,
    /// Whether the branch is the last of its siblings.
    is_last: bool,
    depth: usize,
    /// Cost of the parent branch.
    above: &'a SampleValue,
}

/// Pushes branches in reverse order, because the last one pushed is drawn first.
fn push<'a>(
    open: &mut Vec<PendingBranch<'a>>,
    list: &[u32],
    rails: &str,
    depth: usize,
    above: &'a SampleValue,
) {
    open.extend(list.iter().enumerate().rev().map(|(at, number)| PendingBranch {
        number: *number,
        rails: rails.to_owned(),
        is_last: at + 1 == list.len(),
        depth,
        above,
    }));
}

/// Formats the number in front of a branch.
pub(super) fn amount(
    event: &ProfileEvent,
    layout: &ReportLayout,
    value: &SampleValue,
    above: &SampleValue,
) -> String {
    match layout.unit {
        ChainUnit::Period => format!("{:>14}", value.period),
        ChainUnit::Count => format!("{:>9}", value.samples),
        ChainUnit::Percent => {
            let share = match layout.shape {
                ChainShape::Fractal => event.cost(value) as f64 / event.cost(above).max(1) as f64,
                _ => event.share(event.cost(value)),
            };
            format!("{:5.1}%", share * 100.0)
        }
    }
}

/// Returns a function's name. For a human reader, the name is shortened to `columns`.
pub(super) fn name(
    profile: &Profile,
    link: impl Into<ChainLink>,
    layout: &ReportLayout,
    columns: usize,
) -> StyledWords {
    let link = link.into();
    let symbol = profile.texts.get(link.symbol);
    if layout.reads_names() {
        let kind = CodeKind::from_mode(link.level, profile.texts.get(link.dso));
        return StyledWords::of_function(symbol, (kind, link.inlined), "", columns);
    }
    let inlined = if link.inlined { " (inlined)" } else { "" };
    StyledWords::new(TextRole::Plain, format!("{}{inlined}", clean(symbol)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmc_text::terminal::Paint;

    #[test]
    fn startup_frames_are_collapsed_in_the_tree() {
        let written = |names: &[&str], own: u64, layout: &ReportLayout| {
            let mut profile = Profile::default();
            let value = |samples: u64| SampleValue { samples, period: samples, ..SampleValue::default() };
            let mut tree = CallTree { roots: vec![0], ..CallTree::default() };
            for (at, name) in names.iter().enumerate() {
                tree.nodes.push(CallNode {
                    symbol: profile.texts.add(name),
                    dso: profile.texts.add("a.out"),
                    level: pmc_sys::abi::CpuMode::User,
                    inlined: false,
                    own: value(if at + 1 == names.len() { own } else { 0 }),
                    total: value(9),
                    children: if at + 1 < names.len() { vec![at as u32 + 1] } else { Vec::new() },
                });
            }
            let event = ProfileEvent { total: value(9), ..ProfileEvent::default() };
            let mut out = Vec::new();
            write(&mut out, &profile, &event, &tree, layout).unwrap();
            String::from_utf8(out).unwrap()
        };
        let names = ["_start", "__libc_start_main", "main"];
        let caller = ReportLayout { callee: false, width: Some(80), ..ReportLayout::default() };
        let text = written(&names, 9, &caller);
        assert!(text.contains("2 callers › main") && !text.contains("_start"), "{text}");
        // A function with self cost must be shown, and so must its caller.
        let text = written(&names[..2], 9, &caller);
        assert!(text.contains("_start › __libc_start_main") && !text.contains("callers"), "{text}");
        let callee = ReportLayout { callee: true, width: Some(80), ..ReportLayout::default() };
        let text = written(&["start_thread", "clone3"], 0, &callee);
        assert!(text.contains("start_thread › clone3") && !text.contains("callers"), "{text}");
    }

    #[test]
    fn long_chains_wrap_and_omit_their_middle() {
        let chained = |count: usize, room| -> Vec<String> {
            let name = |at| StyledWords::new(TextRole::Plain, format!("function_{at}"));
            let names: Vec<StyledWords> = (0..count).map(name).collect();
            chained(&names, room).iter().map(|line| line.painted(Paint::default())).collect()
        };
        assert_eq!(chained(3, usize::MAX), ["function_0 › function_1 › function_2"]);
        assert_eq!(chained(3, 25), ["function_0 › function_1", "› function_2"]);
        let all = ["function_0", "› function_1", "› function_2"];
        assert_eq!(chained(3, 14), all);
        assert_eq!(chained(8, 14), ["function_0", "› … 6 more", "› function_7"]);
        let lines = chained(8, 30);
        assert_eq!(
            lines,
            ["function_0 › function_1", "› function_2 › function_3", "› … 3 more › function_7"]
        );
    }
}
