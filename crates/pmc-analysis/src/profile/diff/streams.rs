//! Streams: whole call chains as the rows of a comparison.
//!
//! ```text
//!   stack   leaf a.c:3 <- work a.c:9 <- main a.c:20      one row: the keys of all its frames
//! ```
//!
//! Two chains are the same if all their frames have the same keys. A frame without a known source line uses
//! its program or library instead.

use rustc_hash::FxHashMap;

use super::{DiffEvent, DiffRow};
use crate::profile::sampled::{LocationCall, RowCell, SampleValue, SortKey, StackProfile, TableRow};

/// Sort keys that can distinguish frames.
pub const KEYS: [SortKey; 4] = [SortKey::Symbol, SortKey::Dso, SortKey::SrcLine, SortKey::SrcFile];

/// Returns the chains of each event, by event index.
pub fn rows(stacks: &StackProfile<'_>, keys: &[SortKey]) -> Vec<Vec<TableRow>> {
    let mut sums: Vec<FxHashMap<Box<[RowCell]>, SampleValue>> =
        vec![FxHashMap::default(); stacks.events.len()];
    for row in &stacks.rows {
        let calls = stacks.stack(row.stack).flat_map(|location| stacks.code().range(location));
        let calls = calls.map(|call| &stacks.code().calls()[call]);
        let cells: Box<[RowCell]> = calls.flat_map(|call| keys.iter().map(|key| cell(*key, call))).collect();
        if let Some(sums) = sums.get_mut(row.event as usize).filter(|_| !cells.is_empty()) {
            *sums.entry(cells).or_default() += &row.value;
        }
    }
    let row = |(cells, own): (Box<[RowCell]>, SampleValue)| TableRow {
        cells,
        total: own.clone(),
        own,
        ..TableRow::default()
    };
    sums.into_iter().map(|sums| sums.into_iter().map(row).collect()).collect()
}

fn cell(key: SortKey, call: &LocationCall) -> RowCell {
    match key {
        SortKey::Symbol => RowCell::Symbol(call.level.letter(), call.symbol),
        SortKey::SrcLine => call.file.map_or(RowCell::Text(call.dso), |file| RowCell::Line(file, call.line)),
        SortKey::SrcFile => RowCell::Text(call.file.unwrap_or(call.dso)),
        _ => RowCell::Text(call.dso),
    }
}

/// Keeps the lines that are among the `most` hottest lines in any recording. Sorts them by descending cost.
pub(crate) fn keep_hottest(event: &mut DiffEvent, most: usize) {
    let sides = event.totals.len();
    let shares = |line: &DiffRow| -> Vec<f64> {
        line.values.iter().enumerate().map(|(side, value)| event.part(side, value).share).collect()
    };
    let shares: Vec<Vec<f64>> = event.lines.iter().map(shares).collect();
    // Lines with equal shares are already sorted by their text.
    let by_share = |side: usize| {
        let mut order: Vec<usize> = (0..shares.len()).filter(|line| shares[*line][side] > 0.0).collect();
        order.sort_by(|a, b| shares[*b][side].total_cmp(&shares[*a][side]));
        order.truncate(most);
        order
    };
    let mut kept: Vec<usize> = (0..sides).flat_map(by_share).collect();
    let hottest = |line: &usize| shares[*line].iter().copied().fold(0.0, f64::max);
    kept.sort_by(|a, b| hottest(b).total_cmp(&hottest(a)).then(a.cmp(b)));
    // `kept` contains a line several times if it is among the hottest in several recordings.
    let mut lines: Vec<Option<DiffRow>> = std::mem::take(&mut event.lines).into_iter().map(Some).collect();
    event.lines = kept.into_iter().filter_map(|line| lines[line].take()).collect();
}
