//! Nested rows (`--hierarchy`): the first level sums up rows that agree in the first sort key, the next level
//! those that also agree in the second, and so on. Costs are own costs; the tree has the costs of callees.
//!
//! ```text
//!    Self  Command / Shared Object / Symbol
//!  100.0%  deep
//!   97.6%    deep
//!   71.4%      [.] leaf
//! ```

use std::io::{self, Write};

use rustc_hash::FxHashMap;

use super::{ReportLayout, cell, percent};
use crate::profile::sampled::{Profile, ProfileEvent, RowCell, SampleValue, ShareOf, TableRow};
use crate::sort;
use crate::text::{cut, width};
use crate::units::thousands;

/// Minimum width of the text of deep rows.
const NARROWEST: usize = 16;

/// Rows that agree in their first cells.
#[derive(Default)]
struct HierarchyBranch {
    cell: Option<RowCell>,
    own: SampleValue,
    below: Vec<usize>,
}

fn branches(rows: &[TableRow], depth: usize, of: ShareOf) -> Vec<HierarchyBranch> {
    let mut all = vec![HierarchyBranch::default()];
    let mut known: FxHashMap<(usize, RowCell), usize> = FxHashMap::default();
    for row in rows.iter().filter(|row| row.own.samples > 0) {
        let mut at = 0;
        all[0].own += &row.own;
        for cell in row.cells.iter().take(depth) {
            let next = all.len();
            let number = *known.entry((at, *cell)).or_insert(next);
            if number == next {
                all.push(HierarchyBranch { cell: Some(*cell), ..HierarchyBranch::default() });
                all[at].below.push(number);
            }
            all[number].own += &row.own;
            at = number;
        }
    }
    for at in 0..all.len() {
        let mut below = std::mem::take(&mut all[at].below);
        sort::by_key(&mut below, |number| (std::cmp::Reverse(of.cost(&all[*number].own)), *number));
        all[at].below = below;
    }
    all
}

pub(super) fn write(
    out: &mut dyn Write,
    profile: &Profile,
    events: &[&ProfileEvent],
    layout: &ReportLayout,
) -> io::Result<()> {
    let headings: Vec<&str> = profile.keys.iter().map(|key| profile.heading(*key)).collect();
    for event in events {
        let more = if layout.show_samples { "     Samples" } else { "" };
        let start = if layout.is_piped { '#' } else { ' ' };
        if !layout.is_quiet {
            writeln!(out, "{start}        Self {more} {}", headings.join(" / "))?;
        }
        let all = branches(&event.rows, profile.keys.len(), event.share_of);
        let mut open: Vec<(usize, usize)> = all[0].below.iter().rev().map(|number| (*number, 0)).collect();
        let mut shown = 0;
        while let Some((number, depth)) = open.pop() {
            let branch = &all[number];
            if event.share(event.cost(&branch.own)) * 100.0 < layout.row_limit {
                continue;
            }
            if shown == layout.rows {
                if !layout.is_quiet {
                    writeln!(out, "{start} … and more rows (--max-rows 0 shows all)")?;
                }
                break;
            }
            shown += 1;
            let words = branch.cell.as_ref().map(|value| cell(profile, layout, value)).unwrap_or_default();
            let samples = match layout.show_samples {
                true => format!("{:>12}", thousands(branch.own.samples)),
                false => String::new(),
            };
            let share = percent(event, (event.share_of, event.cost(&branch.own)), layout);
            let before = format!(" {share:>12} {samples} {:depth$}", "", depth = depth * 2);
            let words = match layout.width() {
                Some(columns) => cut(&words, columns.saturating_sub(width(&before)).max(NARROWEST)),
                None => words,
            };
            writeln!(out, "{before}{words}")?;
            open.extend(branch.below.iter().rev().map(|below| (*below, depth + 1)));
        }
    }
    Ok(())
}
