//! Nested rows (`--hierarchy`). The first level combines rows with the same first sort key. The second level
//! combines rows that also have the same second key, and so on. Rows show own costs; the call tree includes
//! callees. Column titles are the same as in perf.
//!
//! ```text
//!  Overhead  Command / Shared Object / Symbol
//!    100.0%  deep
//!     97.6%    deep
//!     71.4%      [.] leaf
//! ```

use std::io::{self, Write};

use rustc_hash::FxHashMap;

use super::key_widths::NARROWEST_LAST;
use super::{ReportColumn, ReportLayout, cell, heading, keys_of, number, share_of};
use pmc_analysis::profile::sampled::{Profile, ProfileEvent, RowCell, ShareOf, TableRow};
use pmc_text::table::{self, right};
use pmc_text::text::{cut, width};

/// Minimum width of a numeric column.
const NUMBER: usize = 12;

/// One level of nesting: the sum of all rows that have the same sort keys up to this level.
#[derive(Default)]
struct HierarchyBranch {
    cell: Option<RowCell>,
    /// The sum of the rows. Its cells and totals are not set.
    sum: TableRow,
    below: Vec<usize>,
}

impl HierarchyBranch {
    fn add(&mut self, row: &TableRow) {
        self.sum.own += &row.own;
        if let Some(by_mode) = &row.by_mode {
            let sums = self.sum.by_mode.get_or_insert_default().iter_mut();
            sums.zip(by_mode.iter()).for_each(|(sum, period)| *sum = sum.saturating_add(*period));
        }
    }

    /// Returns the number by which branches are sorted, which is the value of the first column.
    fn rank(&self, column: ReportColumn) -> u64 {
        match (share_of(column, &self.sum), column) {
            (Some((of, value)), _) => of.cost(&value),
            (None, ReportColumn::Samples) => self.sum.own.samples,
            (None, _) => self.sum.own.period,
        }
    }
}

/// Returns the numeric columns of the flat table, except columns that include callees.
fn columns(profile: &Profile, layout: &ReportLayout) -> Vec<ReportColumn> {
    let mut columns = layout.columns(profile, &[]);
    columns.retain(|column| {
        !matches!(column, ReportColumn::Key(_) | ReportColumn::Total | ReportColumn::TotalLatency)
    });
    if columns.is_empty() {
        columns.push(match profile.share_of {
            ShareOf::Latency => ReportColumn::OwnLatency,
            ShareOf::Period => ReportColumn::Own,
        });
    }
    columns
}

fn branches(rows: &[TableRow], depth: usize, first: ReportColumn) -> Vec<HierarchyBranch> {
    let mut all = vec![HierarchyBranch::default()];
    let mut known: FxHashMap<(usize, RowCell), usize> = FxHashMap::default();
    for row in rows.iter().filter(|row| row.own.samples > 0) {
        let mut at = 0;
        all[0].add(row);
        for cell in row.cells.iter().take(depth) {
            let next = all.len();
            let number = *known.entry((at, *cell)).or_insert(next);
            if number == next {
                all.push(HierarchyBranch { cell: Some(*cell), ..HierarchyBranch::default() });
                all[at].below.push(number);
            }
            all[number].add(row);
            at = number;
        }
    }
    for at in 0..all.len() {
        let mut below = std::mem::take(&mut all[at].below);
        below.sort_by_key(|number| (std::cmp::Reverse(all[*number].rank(first)), *number));
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
    let keys = keys_of(profile, events);
    let headings: Vec<&str> = keys.iter().map(|key| profile.heading(*key)).collect();
    let columns = columns(profile, layout);
    let title = |column: &ReportColumn| match column {
        // In a hierarchy, perf uses this title with and without call chains.
        ReportColumn::Own => "Overhead",
        column => heading(*column, profile),
    };
    // As in perf, the first column leaves room to indent the levels.
    let first = NUMBER.max(9 + 3 * headings.len());
    let mut shapes = vec![right(1, NUMBER); columns.len()];
    shapes[0] = right(0, first);
    for event in events {
        let start = if layout.is_piped { '#' } else { ' ' };
        if !layout.is_quiet {
            let titles = table::line(&shapes, columns.iter().map(title));
            writeln!(out, "{start}{titles}  {}", headings.join(" / "))?;
        }
        let all = branches(&event.rows, keys.len(), columns[0]);
        let mut open: Vec<(usize, usize)> = all[0].below.iter().rev().map(|number| (*number, 0)).collect();
        let mut shown = 0;
        while let Some((at, depth)) = open.pop() {
            let branch = &all[at];
            if event.share(event.cost(&branch.sum.own)) * 100.0 < layout.row_limit {
                continue;
            }
            if shown == layout.rows {
                if !layout.is_quiet {
                    writeln!(out, "{start} … and more rows (--limit 0 shows all)")?;
                }
                break;
            }
            shown += 1;
            let words = branch.cell.as_ref().map(|value| cell(profile, layout, value)).unwrap_or_default();
            let numbers = columns.iter().map(|column| number(event, &branch.sum, *column, layout));
            let before = format!(" {}  {:depth$}", table::line(&shapes, numbers), "", depth = depth * 2);
            let words = match layout.width() {
                Some(columns) => cut(&words, columns.saturating_sub(width(&before)).max(NARROWEST_LAST)),
                None => words,
            };
            writeln!(out, "{before}{words}")?;
            open.extend(branch.below.iter().rev().map(|below| (*below, depth + 1)));
        }
    }
    Ok(())
}
