//! The branches of the call tree that differ between recordings (`--tree`), and their callers.

use std::io::{self, Write};

use crate::diff::{DiffLayout, delta, is_noise, part};
use crate::remarks::Remarks;
use crate::report::{NARROWEST_LAST, StyledWords, chained};
use pmc_analysis::profile::diff::{Compute, CostSource, Diff, DiffChange, DiffEvent, tree::DiffNode};
use pmc_analysis::profile::sampled::CodeKind;
use pmc_text::table::{self, ColumnShape, right};
use pmc_text::terminal::theme::TextRole;
use pmc_text::text::{clean, width};
use pmc_text::units::thousands;

/// Maximum indentation depth of the tree. Deeper indentation would not fit on any screen.
const DEEPEST: u32 = 60;
/// Maximum number of functions in one line of the tree.
const CHAIN: usize = 8;
/// Minimum change of a branch of waits, as a fraction of the largest total.
const LEAST_CHANGE: f64 = 0.01;

/// Writes the branches that differ by more than noise, and their callers. Waits have no sampling noise, so
/// their branches differ if they changed by a notable part of the total.
pub(super) fn write(
    out: &mut Remarks<'_>,
    diff: &Diff,
    event: &DiffEvent,
    layout: &DiffLayout,
) -> io::Result<()> {
    let Some(tree) = &event.tree else { return Ok(()) };
    let is_census = event.source() == CostSource::Census;
    let largest = match diff.compute {
        Compute::Time => event.totals.iter().flatten().map(|total| total.period).max().unwrap_or(0) as f64,
        _ => 1.0,
    };
    let differs = |node: &DiffNode| match is_census {
        true => node.size(diff.compute) >= LEAST_CHANGE * largest && node.size(diff.compute) > 0.0,
        false => node.changes.iter().any(|change| !is_noise(change)),
    };
    let mut differing: Vec<u32> = (0..tree.nodes.len() as u32)
        .filter(|at| differs(&tree.nodes[*at as usize]) && is_large(event, &tree.nodes[*at as usize], layout))
        .collect();
    differing.sort_by(|one, other| {
        let size = |at: &u32| tree.nodes[*at as usize].size(diff.compute);
        size(other).total_cmp(&size(one)).then_with(|| one.cmp(other))
    });
    // A node with the same numbers as its caller is printed on the caller's line.
    let passes_on = |at: u32| {
        let node = &tree.nodes[at as usize];
        let above = node.parent.map(|parent| &tree.nodes[parent as usize]);
        let is_same = |above: &DiffNode| {
            differs(above) == differs(node) && amounts(diff, event, above) == amounts(diff, event, node)
        };
        layout.width.is_some() && above.is_some_and(is_same)
    };
    let mut leads = vec![false; tree.nodes.len()];
    let (mut lines, mut smaller) = (0, 0usize);
    for at in differing {
        let way = std::iter::successors(Some(at), |at| tree.nodes[*at as usize].parent);
        let new: Vec<u32> = way.take_while(|at| !leads[*at as usize]).collect();
        let more = new.iter().filter(|at| !passes_on(**at)).count();
        if layout.tree_lines.is_some_and(|most| lines > 0 && lines + more > most) {
            smaller += 1;
            continue;
        }
        lines += more;
        new.iter().for_each(|at| leads[*at as usize] = true);
    }
    match is_census {
        true => writeln!(out, "\nCall tree, branches that changed by 1% of the total or more")?,
        false => writeln!(out, "\nCall tree, branches that differ by more than noise")?,
    }
    if lines == 0 {
        return writeln!(out, "  none");
    }
    let shown = |all: &[u32]| -> Vec<u32> { all.iter().copied().filter(|at| leads[*at as usize]).collect() };
    let mut open = shown(&tree.roots);
    open.reverse();
    let others = diff.files.len() - 1;
    let delta = if diff.compute == Compute::Time { "Time" } else { "Delta" };
    let titles = (1..=others).flat_map(|number| [format!("[{number}]"), delta.to_owned()]);
    let title = table::line(&tree_columns(diff), ["Base".to_owned()].into_iter().chain(titles));
    match layout.width {
        None => writeln!(out, "{}", &title[2..])?,
        Some(_) => writeln!(out.out, "{}", layout.paint.words(TextRole::Heading, &title))?,
    }
    let mut hidden = 0usize;
    while let Some(number) = open.pop() {
        let mut node = &tree.nodes[number as usize];
        if node.depth > DEEPEST {
            hidden += 1;
            continue;
        }
        let noise = !differs(node);
        let numbers = amounts(diff, event, node);
        let before = width(&numbers) + 2;
        // Limit the indentation of deep branches, so that half of the line is left for names.
        let room = layout.width.map_or(usize::MAX, |columns| columns.saturating_sub(before));
        let inset = match 2 * node.depth as usize {
            deep if deep > (room / 2).min(room.saturating_sub(NARROWEST_LAST)) => {
                format!("{:>2}… ", node.depth)
            }
            deep => " ".repeat(deep),
        };
        let word = if noise && !is_census { "  (within noise)" } else { "" };
        let room = room.saturating_sub(width(&inset) + word.len()).max(NARROWEST_LAST);
        let name = |node: &DiffNode, columns| name(diff, node, layout, columns);
        let mut names = vec![name(node, room)];
        let mut below = shown(&node.children);
        while let [only] = below[..]
            && passes_on(only)
            && names.len() < CHAIN
        {
            node = &tree.nodes[only as usize];
            names.push(name(node, room.saturating_sub(4)));
            below = shown(&node.children);
        }
        let role = if noise { TextRole::Quiet } else { TextRole::Plain };
        let numbers = layout.paint.words(role, &numbers);
        for (at, line) in chained(&names, room).into_iter().enumerate() {
            let line = if noise { line.quiet() } else { line };
            match at {
                0 => write!(out.out, "{numbers}  {inset}{}", line.painted(layout.paint))?,
                _ => write!(out.out, "\n{:1$}{2}", "", before + width(&inset), line.painted(layout.paint))?,
            }
        }
        writeln!(out.out, "{}", layout.paint.words(role, word))?;
        open.extend(below.iter().rev());
    }
    if hidden > 0 {
        writeln!(out, "  … and {} deeper branches (--json has them)", thousands(hidden as u64))?;
    }
    if smaller > 0 {
        let smaller = thousands(smaller as u64);
        writeln!(out, "  … and {smaller} branches that differ less (--percent-limit 0 shows all)")?;
    }
    Ok(())
}

/// Returns the columns in front of a branch: the base's value, then the value and the change for each other
/// recording.
fn tree_columns(diff: &Diff) -> Vec<ColumnShape> {
    let (own, apart) = if diff.compute == Compute::Time { (7, 17) } else { (6, 12) };
    [vec![right(2, own)], [right(2, own), right(2, apart)].repeat(diff.files.len() - 1)].concat()
}

/// Returns the numbers in front of a branch.
fn amounts(diff: &Diff, event: &DiffEvent, node: &DiffNode) -> String {
    let share = |file| part(diff, event, &node.values, file);
    let change = |(number, change): (usize, &Option<DiffChange>)| {
        [share(number + 1), delta(diff.compute, change.as_ref())]
    };
    let changes = node.changes.iter().enumerate().flat_map(change);
    table::line(&tree_columns(diff), [share(0)].into_iter().chain(changes))
}

/// Returns a function's name. For a human reader, the name is shortened to `columns`.
fn name(diff: &Diff, node: &DiffNode, layout: &DiffLayout, columns: usize) -> StyledWords {
    let symbol = diff.texts.get(node.symbol);
    match layout.width {
        Some(_) => {
            let kind = CodeKind::from_mode(node.level, diff.texts.get(node.dso));
            StyledWords::of_function(symbol, (kind, node.inlined), "", columns)
        }
        None => StyledWords::new(TextRole::Plain, clean(symbol)),
    }
}

fn is_large(event: &DiffEvent, node: &DiffNode, layout: &DiffLayout) -> bool {
    let shares = node.values.iter().enumerate().map(|(file, value)| event.part(file, value).share);
    shares.fold(0.0, f64::max) >= layout.limit
}
