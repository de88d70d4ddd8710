//! The call tree for a person: percent, own percent, bar, and chains of single calls folded into one line each way down.
//!
//! ```text
//!   Total    Self
//!   99.1%    0.3%  ██████████  __libc_start_call_main › main
//!   70.9%   20.6%  ███████░░░    ├ mid
//!   42.3%    1.2%  ████░░░░░░    │  └ rec › rec › rec › leaf
//! ```

use std::io::{self, Write};

use super::Layout;
use crate::profile::sampled::tree::Node;
use crate::profile::sampled::{Event, Profile, Tree};
use crate::text::clean;

/// Cells of a full bar.
const BAR: usize = 10;
/// Deeper branches are cut: they would stand outside of every screen.
const DEEPEST: usize = 60;
/// Functions in one line before it is broken.
const CHAIN: usize = 8;

pub(super) fn write(
    out: &mut dyn Write,
    profile: &Profile,
    event: &Event,
    tree: &Tree,
    layout: &Layout,
) -> io::Result<()> {
    let order = if layout.callee { "called function first" } else { "caller first" };
    writeln!(out, "Call tree, {order}, branches from {}%", layout.branch_limit)?;
    writeln!(out, "   Total    Self")?;
    let percent = |period: u64| event.share(period) * 100.0;
    // Each entry: a node, the lines to its left, and whether it is the last of its siblings.
    let mut open: Vec<(u32, String, bool, usize)> = Vec::new();
    let push = |open: &mut Vec<(u32, String, bool, usize)>, list: Vec<u32>, rails: &str, depth: usize| {
        let count = list.len();
        let items = list.into_iter().enumerate();
        let entries: Vec<_> =
            items.map(|(at, number)| (number, rails.to_owned(), at + 1 == count, depth)).collect();
        open.extend(entries.into_iter().rev());
    };
    push(&mut open, tree.roots.clone(), "", 0);
    while let Some((number, rails, is_last, depth)) = open.pop() {
        let mut node = &tree.nodes[number as usize];
        let total = node.total.period;
        let mut names = vec![name(profile, node)];
        // A function that calls one other with all it cost is no branch.
        let mut below = node.children.clone();
        while let [only] = below[..] {
            let next = &tree.nodes[only as usize];
            let passes_on = event.share(next.total.period) >= 0.998 * event.share(total);
            let keeps = event.share(node.own.period) > 0.001 * event.share(total);
            if keeps || !passes_on || names.len() >= CHAIN {
                break;
            }
            names.push(name(profile, next));
            node = next;
            below = node.children.clone();
        }
        let filled = ((percent(total) / 100.0 * BAR as f64).round() as usize).min(BAR);
        let branch = match (depth, is_last) {
            (0, _) => "",
            (_, true) => "└ ",
            (_, false) => "├ ",
        };
        writeln!(
            out,
            "  {:5.1}%  {:5.1}%  {}{}  {rails}{branch}{}",
            percent(total),
            percent(node.own.period),
            "█".repeat(filled),
            "░".repeat(BAR - filled),
            names.join(" › ")
        )?;
        let more = match (depth, is_last) {
            (0, _) => "",
            (_, true) => "  ",
            (_, false) => "│ ",
        };
        if depth < DEEPEST {
            push(&mut open, below, &format!("{rails}{more}"), depth + 1);
        } else if !below.is_empty() {
            writeln!(out, "{:28}{rails}{more}…", "")?;
        }
    }
    Ok(())
}

fn name(profile: &Profile, node: &Node) -> String {
    let symbol = profile.texts.get(node.symbol);
    let mut name = clean(symbol).into_owned();
    if symbol == crate::profile::sampled::code::UNKNOWN {
        name = format!("{name} in {}", clean(profile.texts.get(node.dso)));
    }
    if node.inlined {
        name.push_str(" (inlined)");
    }
    name
}
