//! The top-down analysis as a tree: where the pipeline's slots went, and where to look next.
//!
//! ```text
//!  Where the pipeline's slots went (levels 1 to 2 of 6):
//!
//!    52.1%  █████░░░░░  tma_backend_bound      ◀
//!    40.0%  ████░░░░░░  ├ tma_memory_bound     ◀ bottleneck
//!    12.1%  █░░░░░░░░░  └ tma_core_bound
//! ```
//! Receives one row of counts, whose metrics name their parents; `profile` decides which metric is the
//! bottleneck. Output for programs has no bars.

use std::io::{self, Write};

use super::{StatStyle, StatSubject, safe};
use pmc_analysis::profile::counts::DerivedResult;
use pmc_analysis::profile::metrics::topdown::bottleneck;
use pmc_text::table::{self, left};
use pmc_text::terminal::theme::TextRole;
use pmc_text::text::{cut, width};

/// Information about the top-down tree, in addition to its values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TopdownTree {
    /// Number of measured levels.
    pub level: u8,
    /// Number of levels available on this CPU.
    pub deepest: u8,
    /// Names of the metrics that have children, including metrics that were not measured.
    pub parents: Vec<String>,
    /// Whether only the tree was requested. If so, no table follows it.
    pub is_all: bool,
}

/// Width of a full bar in columns.
const BAR: usize = 10;

/// Writes the tree of a row, with suggestions for the next step. Each kind of core gets a separate tree.
/// Metrics without a value are listed with the reason.
pub(super) fn write(
    out: &mut dyn Write,
    row: &[DerivedResult],
    tree: &TopdownTree,
    subject: &StatSubject,
    style: &StatStyle,
) -> io::Result<()> {
    let mut pmus: Vec<&str> = Vec::new();
    let branches = row.iter().filter_map(|derived| derived.branch.as_ref());
    branches.for_each(|branch| pmus.extend(Some(branch.pmu.as_str()).filter(|pmu| !pmus.contains(pmu))));
    for pmu in &pmus {
        let is_own =
            |derived: &&DerivedResult| derived.branch.as_ref().is_some_and(|branch| branch.pmu == *pmu);
        let own: Vec<&DerivedResult> = row.iter().filter(is_own).collect();
        let levels = match (tree.level, tree.deepest) {
            (1, 1) => "level 1".to_owned(),
            (1, deepest) => format!("level 1 of {deepest}"),
            (level, deepest) => format!("levels 1 to {level} of {deepest}"),
        };
        let cores = if pmus.len() > 1 { format!(" of {}", safe(pmu)) } else { String::new() };
        let title = format!("Where the pipeline slots{cores} went, {levels}:");
        writeln!(out, " {}\n", style.paint.words(TextRole::Strong, &title))?;
        let path = bottleneck(&own);
        lines(out, &own, &path, style)?;
        writeln!(out)?;
        next(out, &own, &path, tree, subject)?;
    }
    Ok(())
}

/// Writes the branches. Siblings are sorted by value, largest first.
fn lines(out: &mut dyn Write, own: &[&DerivedResult], path: &[usize], style: &StatStyle) -> io::Result<()> {
    let is_below =
        |at: usize, parent: &str| own[at].branch.as_ref().is_some_and(|branch| branch.parent == parent);
    let below = |parent: &str| {
        let mut all: Vec<usize> = (0..own.len()).filter(|&at| is_below(at, parent)).collect();
        all.sort_by(|a, b| share_of(own[*b]).total_cmp(&share_of(own[*a])));
        all
    };
    // If a parent was not requested, its children become roots.
    let is_root = |at: &usize| {
        let parent = own[*at].branch.as_ref().map_or("", |branch| branch.parent.as_str());
        !own.iter().any(|other| other.name == parent)
    };
    let mut open: Vec<(usize, String, &str, &str)> = Vec::new();
    let push = |open: &mut Vec<_>, all: Vec<usize>, rails: &str, is_top: bool| {
        let last = all.last().copied();
        open.extend(all.into_iter().rev().map(|at| {
            let (branch, more) = match (is_top, Some(at) == last) {
                (true, _) => ("", ""),
                (_, true) => ("└ ", "  "),
                _ => ("├ ", "│ "),
            };
            (at, rails.to_owned(), branch, more)
        }));
    };
    let mut roots: Vec<usize> = (0..own.len()).filter(is_root).collect();
    roots.sort_by(|a, b| share_of(own[*b]).total_cmp(&share_of(own[*a])));
    push(&mut open, roots, "", true);
    let names = own.iter().map(|derived| width(&safe(&derived.name)));
    let column = names.zip(own).map(|(name, derived)| name + 2 * depth(derived)).max().unwrap_or(0);
    let has_bars = style.width.is_some();
    let error = |derived: &DerivedResult| {
        derived.error.filter(|error| *error >= 0.05).map(|error| format!(" ±{error:.1}"))
    };
    let errors =
        own.iter().filter_map(|derived| error(derived)).map(|error| width(&error)).max().unwrap_or(0);
    let (gap, bar) = if has_bars { (2, BAR) } else { (0, 0) };
    let shapes = [left(1, 8 + errors), left(gap, bar), left(2, column)];
    let room = style.width.map_or(usize::MAX, |most| most.saturating_sub(table::width(&shapes)));
    while let Some((at, rails, branch, more)) = open.pop() {
        let derived = own[at];
        let share = derived.value.as_ref().ok();
        let number = share.map_or_else(|| format!("{:>7}", "-"), |share| format!("{share:6.1}%"));
        let error = error(derived).unwrap_or_default();
        let mark = if derived.inexact { "~" } else { " " };
        let bar = share.filter(|_| has_bars).map(|share| {
            let filled = ((share / 100.0 * BAR as f64).round().max(0.0) as usize).min(BAR);
            style.paint.words(TextRole::Bar, &("█".repeat(filled) + &"░".repeat(BAR - filled)))
        });
        let role = if derived.crossed == Some(true) { TextRole::Costly } else { TextRole::Plain };
        let number = style.paint.words(role, &format!("{mark}{number}{error}"));
        let drawn = format!("{rails}{branch}{}", style.paint.words(role, &safe(&derived.name)));
        let pointer = match path.last() {
            Some(last) if *last == at => "  ◀ the bottleneck",
            _ if path.contains(&at) => "  ◀",
            _ => "",
        };
        let pointer = if has_bars { pointer.to_owned() } else { pointer.replace('◀', "<-") };
        let rest = match &derived.value {
            Ok(_) => style.paint.words(TextRole::Strong, &pointer),
            Err(reason) => cut(&format!("  no value: {}", safe(&reason.cause)), room),
        };
        let line = table::line(&shapes, [number, bar.unwrap_or_default(), drawn]) + &rest;
        writeln!(out, "{}", line.trim_end())?;
        push(&mut open, below(&derived.name), &format!("{rails}{more}"), false);
    }
    Ok(())
}

fn share_of(derived: &DerivedResult) -> f64 {
    derived.value.as_ref().copied().unwrap_or(-1.0)
}

fn depth(derived: &DerivedResult) -> usize {
    derived.branch.as_ref().map_or(0, |branch| usize::from(branch.level.saturating_sub(1)))
}

/// Suggests the command to run next.
fn next(
    out: &mut dyn Write,
    own: &[&DerivedResult],
    path: &[usize],
    tree: &TopdownTree,
    subject: &StatSubject,
) -> io::Result<()> {
    let Some(&last) = path.last() else { return Ok(()) };
    let names: Vec<_> = path.iter().map(|&at| safe(&own[at].name)).collect();
    writeln!(out, " bottleneck:   {}", names.join(" > "))?;
    let (bottleneck, target) = (own[last], subject.as_typed());
    let is_measured =
        own.iter().any(|other| other.branch.as_ref().is_some_and(|b| b.parent == bottleneck.name));
    if !is_measured && tree.parents.contains(&bottleneck.name) {
        let what = match depth(bottleneck) {
            0 => "--topdown --td-level 2".to_owned(),
            _ => format!("-M {}_group", safe(&bottleneck.name)),
        };
        writeln!(out, " measure next: pmc stat {what} {target}")?;
    }
    let located = path.iter().rev().filter_map(|&at| own[at].branch.as_ref()).find(|b| !b.locate.is_empty());
    if let Some(branch) = located {
        let events: Vec<_> =
            branch.locate.split(';').map(str::trim).filter(|event| !event.is_empty()).collect();
        writeln!(out, " sample:       pmc record -e {} {target}", safe(&events.join(",")))?;
    }
    writeln!(out)
}
