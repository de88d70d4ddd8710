//! The table: one row per distinct value of the sort keys, with its own cost and the total cost including
//! callees.
//!
//! ```text
//!   stack  leaf <- f <- f <- main      period 7
//!     own:    leaf 7
//!     total:  leaf 7, f 7 (once, regardless of the recursion depth), main 7
//! ```

pub(super) mod cells;

use std::cmp::Ordering;
use std::hash::BuildHasher;

use hashbrown::HashTable;
use rustc_hash::FxHashMap;

use super::cell::RowCell;
use super::chain_tree::ChainTree;
use super::code::LocationCall;
use super::share::ShareOf;
use super::sort::SortKey;
use super::strings::StringTable;
use super::table_input::TableInput;
use crate::session::SampleValue;
use crate::session::intern::HashKeys;
use cells::{CodeCells, NOT_WANTED, sample_cells};
use pmc_sys::abi::CpuMode;

/// A row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TableRow {
    /// The values of the sort keys.
    pub cells: Box<[RowCell]>,
    /// Samples in the row itself.
    pub own: SampleValue,
    /// Samples in the row or its callees; equal to `own` without call chains.
    pub total: SampleValue,
    /// The row's own periods by CPU mode, in the order of [`MODES`], if requested.
    pub by_mode: Option<Box<[u64; 4]>>,
    /// The row's call chains, if they were requested and the row costs enough.
    pub chains: Option<Box<ChainTree>>,
}

impl TableRow {
    /// Returns the row's own periods in a CPU mode, given its index in [`MODES`].
    pub fn in_mode(&self, mode: usize) -> u64 {
        self.by_mode.as_ref().map_or(0, |by_mode| by_mode[mode])
    }

    /// Returns the sum of the rows' own values.
    pub fn own_sum<'a>(rows: impl Iterator<Item = &'a Self>) -> SampleValue {
        rows.fold(SampleValue::default(), |mut sum, row| {
            sum += &row.own;
            sum
        })
    }
}

/// The CPU modes that rows distinguish.
pub const MODES: [CpuMode; 4] = [CpuMode::Kernel, CpuMode::User, CpuMode::GuestKernel, CpuMode::GuestUser];

/// A criterion for the order of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowRank {
    /// Own periods, descending.
    Own,
    /// Total periods, descending.
    Total,
    /// Own share of wall-clock time, descending.
    OwnLatency,
    /// Total share of wall-clock time, descending.
    TotalLatency,
    /// Own samples, descending.
    Samples,
    /// Own periods in a CPU mode (an index into [`MODES`]), descending.
    InMode(usize),
    /// A sort key, ascending.
    Key(SortKey),
}

/// Selects rows by the names of modules and functions; `None` keeps all rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RowSelection {
    /// Keep these modules.
    pub dsos: Option<Vec<String>>,
    /// Keep these functions.
    pub symbols: Option<Vec<String>>,
    /// Keep functions whose name contains this text. Placeholders for unknown names never match.
    pub part: Option<String>,
    /// Keep only functions with a known name.
    pub named: bool,
    /// Keep rows with more samples than this.
    pub more_than: Option<u64>,
}

impl RowSelection {
    /// Whether the selection excludes nothing.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the call's module is selected, and the call has a name if the selection requires names.
    pub(super) fn has_module(&self, call: &LocationCall, texts: &StringTable) -> bool {
        is_listed(&self.dsos, texts.get(call.dso)) && (call.named || !self.named)
    }

    pub(super) fn has_function(&self, call: &LocationCall, texts: &StringTable) -> bool {
        let (name, short) = (texts.get(call.symbol), texts.get(call.short));
        let has_part = |part: &String| call.named && name.contains(part.as_str());
        (is_listed(&self.symbols, name) || is_listed(&self.symbols, short))
            && self.part.as_ref().is_none_or(has_part)
    }
}

fn is_listed(list: &Option<Vec<String>>, name: &str) -> bool {
    list.as_ref().is_none_or(|list| list.iter().any(|wanted| wanted == name))
}

/// Assigns numbers to lists of cells of the same length. A numbered list is called a part.
#[derive(Default)]
pub(super) struct CellInterner {
    keys: HashKeys,
    table: HashTable<u32>,
    /// The cells of all lists.
    all: Vec<RowCell>,
}

impl CellInterner {
    pub(super) fn add(&mut self, cells: &[RowCell]) -> u32 {
        let Self { keys, table, all } = self;
        let hash = keys.hash_one(cells);
        if let Some(number) = table.find(hash, |number| Self::list(all, *number, cells.len()) == cells) {
            return *number;
        }
        all.extend_from_slice(cells);
        let number = table.len() as u32;
        table.insert_unique(hash, number, |number| keys.hash_one(Self::list(all, *number, cells.len())));
        number
    }

    pub(super) fn get(&self, part: u32) -> &[RowCell] {
        Self::list(&self.all, part, self.all.len() / self.table.len().max(1))
    }

    fn list(all: &[RowCell], number: u32, len: usize) -> &[RowCell] {
        &all[number as usize * len..][..len]
    }
}

/// The rows of one group of samples, by part. All samples in a group have the same cells, except for the
/// cells that describe code. The lists are cleared and reused, because most groups have few parts.
#[derive(Default)]
struct PartRows {
    /// The index of each part's row, or [`NO_ROW`].
    row_of: Vec<u32>,
    /// The parts that have rows, in the order of the rows.
    touched: Vec<u32>,
    /// The last input row that was added to each part's total.
    counted: Vec<u32>,
}

/// Marks a part that has no row.
const NO_ROW: u32 = u32::MAX;

impl PartRows {
    /// Returns a part's row. Adds the row, without cells, if it is missing.
    fn row<'a>(&mut self, part: u32, rows: &'a mut Vec<TableRow>) -> &'a mut TableRow {
        let at = part as usize;
        if at >= self.row_of.len() {
            self.row_of.resize(at + 1, NO_ROW);
            self.counted.resize(at + 1, u32::MAX);
        }
        if self.row_of[at] == NO_ROW {
            self.row_of[at] = rows.len() as u32;
            self.touched.push(part);
            rows.push(TableRow::default());
        }
        &mut rows[self.row_of[at] as usize]
    }

    /// Adds an input row to a part's total. The row counts only once, even if its stack contains the part
    /// several times.
    fn total(&mut self, part: u32, (row, value): (u32, &SampleValue), rows: &mut Vec<TableRow>) {
        if part == NOT_WANTED || self.counted.get(part as usize) == Some(&row) {
            return;
        }
        self.row(part, rows).total += value;
        self.counted[part as usize] = row;
    }

    /// Returns the parts that have rows, and forgets them.
    fn take(&mut self) -> impl Iterator<Item = u32> {
        let Self { row_of, touched, .. } = self;
        touched.drain(..).inspect(|part| row_of[*part as usize] = NO_ROW)
    }
}

/// Options for tables.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableRequest<'a> {
    /// The sort keys that distinguish rows.
    pub(crate) keys: &'a [SortKey],
    /// Whether rows have totals in addition to their own costs.
    pub(crate) with_totals: bool,
    /// Whether rows split their own costs by CPU mode.
    pub(crate) by_mode: bool,
    /// Whether a sample counts for its innermost function, inlined or not. Otherwise it counts for the
    /// function that contains the code.
    pub(crate) innermost: bool,
    /// Selects the rows to keep.
    pub(crate) only: &'a RowSelection,
    /// Criteria for the order of rows, most important first. Ties are ordered by total.
    pub(crate) ranks: &'a [RowRank],
    /// The cost by which ties are ordered.
    pub(crate) share_of: ShareOf,
}

/// Builds the tables of all events. Sorts rows by the requested criteria, and ties by descending total.
pub(crate) fn tables(
    input: &TableInput<'_>,
    request: TableRequest<'_>,
    events: usize,
    texts: &mut StringTable,
) -> Vec<Vec<TableRow>> {
    let TableRequest { keys, with_totals, by_mode, innermost, only, ranks, share_of } = request;
    let mut code_cells = CodeCells::new(input, request);
    let mut tables: Vec<Vec<TableRow>> = vec![Vec::new(); events];
    let (of_sample, order) = by_sample(input, keys, texts);
    let mut part_rows = PartRows::default();
    for group in order.chunk_by(|a, b| (a.event, a.part) == (b.event, b.part)) {
        let rows = &mut tables[group[0].event as usize];
        let first = rows.len();
        for grouped in group {
            let (key, value) = &input.rows[grouped.row as usize];
            let mut stack = input.resolved.stack(key.stack);
            let Some(leaf) = stack.next() else { continue };
            let own = code_cells.leaf(leaf, texts);
            if own != NOT_WANTED {
                let mode = input.code.calls()[input.code.own(leaf)].level;
                let row = part_rows.row(own, rows);
                row.own += value;
                if by_mode && let Some(mode) = MODES.iter().position(|other| *other == mode) {
                    let periods = &mut row.by_mode.get_or_insert_default()[mode];
                    *periods = periods.saturating_add(value.period);
                }
            }
            if with_totals {
                // The leaf's function counts only once, at the sampled line.
                let counted = (grouped.row, value);
                part_rows.total(own, counted, rows);
                let mut others = input.code.range(leaf);
                match innermost {
                    true => others.start += 1,
                    false => others.end -= 1,
                }
                for call in others {
                    part_rows.total(code_cells.call(call, leaf, texts), counted, rows);
                }
                for location in stack {
                    for call in input.code.range(location) {
                        part_rows.total(code_cells.call(call, location, texts), counted, rows);
                    }
                }
            }
        }
        for (row, part) in rows[first..].iter_mut().zip(part_rows.take()) {
            row.cells = cells(keys, &of_sample, group[0].part, &code_cells, part);
            if !with_totals {
                row.total = row.own.clone();
            }
        }
    }
    let by_rank = |rank: &RowRank, a: &TableRow, b: &TableRow| match rank {
        RowRank::Own => b.own.period.cmp(&a.own.period),
        RowRank::Total => b.total.period.cmp(&a.total.period),
        RowRank::OwnLatency => b.own.latency().cmp(&a.own.latency()),
        RowRank::TotalLatency => b.total.latency().cmp(&a.total.latency()),
        RowRank::Samples => b.own.samples.cmp(&a.own.samples),
        RowRank::InMode(mode) => b.in_mode(*mode).cmp(&a.in_mode(*mode)),
        RowRank::Key(key) => {
            let at = keys.iter().position(|other| other == key);
            at.map_or(Ordering::Equal, |at| compare(&a.cells[at..=at], &b.cells[at..=at], texts))
        }
    };
    for rows in &mut tables {
        rows.retain(|row| only.more_than.is_none_or(|least| row.total.samples > least));
        rows.sort_unstable_by(|a, b| {
            let cost = |value: &SampleValue| share_of.cost(value);
            let weight = |row: &TableRow| (cost(&row.total), cost(&row.own), row.own.samples);
            let ranked = ranks.iter().map(|rank| by_rank(rank, a, b)).find(|order| order.is_ne());
            ranked
                .unwrap_or_else(|| weight(b).cmp(&weight(a)))
                .then_with(|| compare(&a.cells, &b.cells, texts))
        });
    }
    tables
}

/// Returns the cells of a row, from a sample's part and a call's part, in the order of the keys.
pub(super) fn cells(
    keys: &[SortKey],
    of_sample: &CellInterner,
    sample_part: u32,
    code_cells: &CodeCells<'_>,
    code_part: u32,
) -> Box<[RowCell]> {
    let mut from_sample = of_sample.get(sample_part).iter();
    let mut from_code = code_cells.get(code_part).iter();
    let mut next = |key: &SortKey| if key.is_of_code() { from_code.next() } else { from_sample.next() };
    // The iterator's length is known, so the list allocates no spare capacity.
    keys.iter().map(|key| next(key).copied().unwrap_or(RowCell::Unknown)).collect()
}

/// An input row. `part` is the index of the list of its cells that do not depend on code.
pub(super) struct GroupedRow {
    pub(super) event: u32,
    pub(super) part: u32,
    pub(super) row: u32,
}

/// Sorts the input's rows by event and by the cells that do not depend on code. Keeps the order of equal
/// rows.
pub(super) fn by_sample(
    input: &TableInput<'_>,
    keys: &[SortKey],
    texts: &mut StringTable,
) -> (CellInterner, Vec<GroupedRow>) {
    let mut parts = CellInterner::default();
    // Ignore attributes that no key distinguishes.
    let comms = keys.iter().any(|key| key.is_of_name());
    let attributes = keys.iter().any(|key| !key.is_of_name() && !key.is_of_code());
    let mut known: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    let mut last = None;
    let mut order: Vec<GroupedRow> = Vec::with_capacity(input.rows.len());
    for (row, (key, _)) in (0..).zip(input.rows) {
        let told = (if comms { key.comm } else { 0 }, if attributes { key.attributes } else { 0 });
        let part = match last {
            Some((last, part)) if last == told => part,
            _ => *known.entry(told).or_insert_with(|| parts.add(&sample_cells(input, keys, key, texts))),
        };
        last = Some((told, part));
        order.push(GroupedRow { event: key.event, part, row });
    }
    if parts.table.len() > 1 {
        order.sort_unstable_by_key(|grouped| (grouped.event, grouped.part, grouped.row));
    }
    (parts, order)
}

/// Orders rows with equal costs by their text, so equal inputs always produce equal tables.
pub(in crate::profile) fn compare(a: &[RowCell], b: &[RowCell], texts: &StringTable) -> Ordering {
    let word = |cell: &RowCell| match cell {
        RowCell::Text(id) | RowCell::Symbol(_, id) | RowCell::Line(id, _) | RowCell::Offset(_, id, _) => {
            Some(*id)
        }
        RowCell::InFunction(id, _) | RowCell::InModule(id, _) => Some(*id),
        RowCell::Task(..) | RowCell::Number(_) | RowCell::Address(_) | RowCell::Time(_) => None,
        RowCell::Unknown => None,
    };
    let one = |(a, b): (&RowCell, &RowCell)| match (word(a), word(b)) {
        (Some(left), Some(right)) if left != right => texts.get(left).cmp(texts.get(right)),
        _ => a.cmp(b),
    };
    a.iter().zip(b).map(one).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

#[cfg(test)]
mod tests {
    use super::{LocationCall, RowSelection, StringTable};
    use pmc_sys::abi::CpuMode;

    #[test]
    fn name_filters_ignore_placeholders() {
        let mut texts = StringTable::default();
        let only = RowSelection { part: Some("map".to_owned()), ..RowSelection::default() };
        for (name, named, is_kept) in
            [("do_mmap", true, true), ("[not mapped]", false, false), ("main", true, false)]
        {
            let call = LocationCall::new(texts.add("dso"), texts.add(name), CpuMode::User, named);
            assert_eq!(only.has_function(&call, &texts), is_kept, "{name}");
        }
    }
}
