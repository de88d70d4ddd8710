//! Individual call chains, most expensive first: `-g flat` (one function per line) and `-g folded` (one chain
//! per line, for tools).

use std::io::{self, Write};

use super::{ChainShape, ReportLayout, tree};
use pmc_analysis::profile::sampled::{CallTree, Profile, ProfileEvent, SampleValue};
use pmc_text::terminal::Paint;

/// Maximum number of functions in a chain; longer chains are truncated.
const LONGEST: usize = 1024;
/// Number of blanks before a function.
const INDENT: usize = 6;

pub(super) fn write(
    out: &mut dyn Write,
    profile: &Profile,
    event: &ProfileEvent,
    tree: &CallTree,
    layout: &ReportLayout,
) -> io::Result<()> {
    let order = if layout.callee { "called function first" } else { "caller first" };
    writeln!(out, "Call chains, {order}, at least {}%", layout.branch_limit)?;
    let mut ends: Vec<(u32, SampleValue)> = Vec::new();
    let mut above: Vec<Option<u32>> = vec![None; tree.nodes.len()];
    for (number, node) in tree.nodes.iter().enumerate() {
        node.children.iter().for_each(|child| above[*child as usize] = Some(number as u32));
        // The remaining samples end here: either in this function itself, or in callees that are too small to
        // show.
        if node.own.samples > 0 && event.share(event.cost(&node.own)) * 100.0 >= layout.branch_limit {
            ends.push((number as u32, node.own.clone()));
        }
    }
    ends.sort_by_key(|(number, value)| (std::cmp::Reverse(event.cost(value)), *number));
    ends.truncate(layout.branches.unwrap_or(usize::MAX));
    let most = match (layout.shape, layout.width()) {
        (ChainShape::Flat, Some(width)) => width.saturating_sub(INDENT),
        _ => usize::MAX,
    };
    let paint = if layout.shape == ChainShape::Folded { Paint::default() } else { layout.paint };
    for (end, value) in ends {
        let mut names = Vec::new();
        let mut at = Some(end);
        while let Some(number) = at.filter(|_| names.len() < LONGEST) {
            names.push(tree::name(profile, &tree.nodes[number as usize], layout, most).painted(paint));
            at = above[number as usize];
        }
        names.reverse();
        let amount = tree::amount(event, layout, &value, &event.total);
        if layout.shape == ChainShape::Folded {
            let names: Vec<String> = names.iter().map(|name| name.replace(';', ":")).collect();
            writeln!(out, "{} {}", amount.trim(), names.join(";"))?;
        } else {
            writeln!(out, "  {amount}")?;
            for name in names {
                writeln!(out, "{:INDENT$}{name}", "")?;
            }
        }
    }
    Ok(())
}
