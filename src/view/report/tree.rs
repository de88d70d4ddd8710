//! The call tree for a person: percent, own percent, bar, and chains of single calls folded into one line
//! each way down.
//!
//! ```text
//!   Total    Self
//!   99.1%    0.3%  ██████████  __libc_start_call_main › main
//!   70.9%   20.6%  ███████░░░    ├ mid
//!   42.3%    1.2%  ████░░░░░░    │  └ rec › rec › rec › leaf
//! ```

use std::io::{self, Write};

use super::{INLINED, KERNEL, Layout, Shape, Unit};
use crate::profile::sampled::boilerplate::is_boilerplate;
use crate::profile::sampled::tree::Node;
use crate::profile::sampled::{Event, Profile, Tree, Value};
use crate::text::{DisplayName, clean};

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
    let of = if layout.shape == Shape::Fractal { " of the branch above" } else { "" };
    writeln!(out, "Call tree, {order}, branches from {}%{of}", layout.branch_limit)?;
    writeln!(out, "   Total    Self")?;
    let mut open: Vec<Open> = Vec::new();
    let push = |open: &mut Vec<Open>, list: &[u32], rails: &str, depth: usize, above: Value| {
        let count = list.len().min(layout.branches.unwrap_or(usize::MAX));
        let entries = list[..count].iter().enumerate().rev().map(|(at, number)| Open {
            number: *number,
            rails: rails.to_owned(),
            is_last: at + 1 == count,
            depth,
            above,
        });
        open.extend(entries);
    };
    push(&mut open, &tree.roots, "", 0, event.total);
    while let Some(Open { number, rails, is_last, depth, above }) = open.pop() {
        let mut node = &tree.nodes[number as usize];
        let whole = node.total;
        let share = |value: &Value| event.share(event.cost(value));
        let total = share(&whole);
        let mut names = vec![name(profile, node, layout)];
        let is_caller = |node: &Node| {
            depth == 0 && layout.reads_names() && is_boilerplate(profile.texts.get(node.symbol))
        };
        // The callers that every program has, as long as only they came.
        let mut callers = usize::from(is_caller(node));
        // A function that calls one other with all it cost is no branch.
        let mut below = &node.children;
        while let [only] = below[..] {
            let next = &tree.nodes[only as usize];
            let passes_on = share(&next.total) >= 0.998 * total;
            let keeps = share(&node.own) > 0.001 * total;
            if keeps || !passes_on || names.len() >= CHAIN {
                break;
            }
            if callers > 0 && names.len() == 1 && is_caller(next) {
                callers += 1;
                names[0] = format!("{callers} callers");
            } else {
                names.push(name(profile, next, layout));
            }
            node = next;
            below = &node.children;
        }
        let filled = ((total * BAR as f64).round() as usize).min(BAR);
        let branch = match (depth, is_last) {
            (0, _) => "",
            (_, true) => "└ ",
            (_, false) => "├ ",
        };
        writeln!(
            out,
            "  {}  {}  {}{}  {rails}{branch}{}",
            amount(event, layout, whole, above),
            amount(event, layout, node.own, above),
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
            push(&mut open, below, &format!("{rails}{more}"), depth + 1, whole);
        } else if !below.is_empty() {
            writeln!(out, "{:28}{rails}{more}…", "")?;
        }
    }
    Ok(())
}

/// A branch that is still to be drawn.
struct Open {
    number: u32,
    /// The lines to its left.
    rails: String,
    /// It is the last of its siblings.
    is_last: bool,
    depth: usize,
    /// What the branch above cost.
    above: Value,
}

/// What stands before a branch.
pub(super) fn amount(event: &Event, layout: &Layout, value: Value, above: Value) -> String {
    match layout.unit {
        Unit::Period => format!("{:>14}", value.period),
        Unit::Count => format!("{:>9}", value.samples),
        Unit::Percent => {
            let share = match layout.shape {
                Shape::Fractal => event.cost(&value) as f64 / event.cost(&above).max(1) as f64,
                _ => event.share(event.cost(&value)),
            };
            format!("{:5.1}%", share * 100.0)
        }
    }
}

pub(super) fn name(profile: &Profile, node: &Node, layout: &Layout) -> String {
    let symbol = profile.texts.get(node.symbol);
    if layout.reads_names() {
        let mark = match (node.inlined, node.is_kernel()) {
            (true, _) => INLINED,
            (_, true) => KERNEL,
            _ => "",
        };
        return format!("{mark}{}", DisplayName::new(symbol).text());
    }
    let mut name = clean(symbol).into_owned();
    if node.inlined {
        name.push_str(" (inlined)");
    }
    name
}
