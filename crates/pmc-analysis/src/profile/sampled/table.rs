//! The table: one row per distinct value of the sort keys, with its own cost and the total cost including
//! callees.
//!
//! ```text
//!   stack  leaf <- f <- f <- main      period 7
//!     own:    leaf 7
//!     total:  leaf 7, f 7 (once, regardless of the recursion depth), main 7
//! ```

use std::cmp::Ordering;

use rustc_hash::FxHashMap;

use super::chain_tree::ChainTree;
use super::{
    LocationCall, LocationCalls, RowCell, SampleValue, ShareOf, SortKey, StringId, StringTable, place,
};
use crate::session::ResolvedStacks;
use crate::session::intern::{Interner, words};
use crate::session::live::ENDED;
use crate::session::samples::{RowKey, SampleAttribute};
use pmc_perfdata::record::decode::{page_size, transaction};
use pmc_sys::abi::CpuMode;

/// A row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TableRow {
    /// The values of the sort keys.
    pub cells: Vec<RowCell>,
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
}

/// The CPU modes that rows distinguish.
pub const MODES: [CpuMode; 4] = [CpuMode::Kernel, CpuMode::User, CpuMode::GuestKernel, CpuMode::GuestUser];

/// Shown instead of the name and number of ended processes and threads: see [`ENDED`].
pub const ENDED_NAME: &str = "(ended)";

/// Provides the strings for the numbers in rows.
pub trait RowStrings {
    /// Returns the name of a thread, given the number in a row's key.
    fn comm(&self, comm: u32) -> String;
    /// Returns the last name of a thread, even if the thread has no samples. For a process, this is the name
    /// of its first thread.
    fn task_name(&self, tid: i32) -> Option<String>;
    /// Returns the path of a cgroup.
    fn cgroup(&self, id: u64) -> String;
    /// Returns the socket of a CPU.
    fn socket(&self, cpu: u64) -> Option<i64>;
    /// Returns the number of bytes of a module that were mapped by the first process with this module.
    fn mapped(&self, module: u32) -> Option<u64>;
    /// Returns a payload as text.
    fn payload(&self, number: u64) -> String;
    /// Returns a field of a payload, given its index in
    /// [`Profile::trace_fields`](super::Profile::trace_fields).
    fn payload_field(&self, _number: u64, _field: usize) -> Option<String> {
        None
    }
}

/// The input of tables and trees.
#[derive(Clone, Copy)]
pub struct TableInput<'a> {
    /// The sums by stack, sorted by event and stack: all rows of `resolved`, or the rows that passed a
    /// filter.
    pub rows: &'a [(RowKey, SampleValue)],
    /// The stacks.
    pub resolved: &'a ResolvedStacks,
    /// The attributes.
    pub attributes: &'a Interner,
    /// The kinds of the attributes.
    pub attribute_kinds: &'a [SampleAttribute],
    /// The calls at each location.
    pub code: &'a LocationCalls,
    /// Strings for numbers.
    pub words: &'a dyn RowStrings,
}

impl TableInput<'_> {
    /// Returns the address of a location in its module's own address space, or `None` if it is unmapped.
    pub(super) fn offset(&self, location: u32) -> Option<u64> {
        self.code.module(location)?;
        self.resolved.locations.get(location as usize).map(|location| location.offset)
    }
}

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
    /// Keep functions whose name contains this text. The placeholders for unknown names do not count.
    pub part: Option<String>,
    /// Keep only functions with a known name.
    pub named: bool,
    /// Keep rows with more samples than this.
    pub more_than: Option<u64>,
}

impl RowSelection {
    /// Whether the selection excludes nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the call's module is selected, which means that samples in the module's code may count.
    pub(super) fn has_module(&self, call: &LocationCall, texts: &StringTable) -> bool {
        is_listed(&self.dsos, texts.get(call.dso)) && (call.named || !self.named)
    }

    /// Whether the function is selected.
    pub(super) fn has_function(&self, call: &LocationCall, texts: &StringTable) -> bool {
        let name = texts.get(call.symbol);
        let has_part = |part: &String| call.named && name.contains(part.as_str());
        is_listed(&self.symbols, name) && self.part.as_ref().is_none_or(has_part)
    }
}

fn is_listed(list: &Option<Vec<String>>, name: &str) -> bool {
    list.as_ref().is_none_or(|list| list.iter().any(|wanted| wanted == name))
}

/// Part number of calls whose rows are excluded.
pub(super) const NOT_WANTED: u32 = u32::MAX;
/// Part number of calls that have not occurred in a row yet.
const NOT_ASKED: u32 = u32::MAX - 1;
/// Marks an offset into a function with an unknown start.
const UNKNOWN_OFFSET: u64 = u64::MAX;

/// Assigns numbers to lists of cells. A numbered list is called a part.
#[derive(Default)]
pub(super) struct CellInterner {
    all: Vec<Box<[RowCell]>>,
    known: FxHashMap<Box<[RowCell]>, u32>,
}

impl CellInterner {
    fn add(&mut self, cells: &[RowCell]) -> u32 {
        if let Some(number) = self.known.get(cells) {
            return *number;
        }
        self.all.push(cells.into());
        let number = self.all.len() as u32 - 1;
        self.known.insert(cells.into(), number);
        number
    }
}

/// The properties of a call that keys depend on: function, line, offset in the function, module, address.
type CallProperties = (LocationCall, (Option<StringId>, u32), u64, Option<u32>, Option<u64>);

/// Maximum number of cached parts. A hostile recording may have a different one for each sample.
const MOST_KNOWN: usize = 1 << 14;

/// The part number of each call and each leaf, computed when a row first needs it.
pub(super) struct CodeCells<'a> {
    input: &'a TableInput<'a>,
    keys: Vec<SortKey>,
    only: &'a RowSelection,
    parts: CellInterner,
    of_call: Vec<u32>,
    of_leaf: Vec<u32>,
    cells: Vec<RowCell>,
    /// Part numbers by the properties that keys depend on. Most calls are found in this map, without making
    /// cells. It is a cache, which is cleared when it reaches [`MOST_KNOWN`] entries.
    known: FxHashMap<CallProperties, u32>,
    innermost: bool,
    has_files: bool,
    has_lines: bool,
    has_offsets: bool,
    has_modules: bool,
}

impl<'a> CodeCells<'a> {
    pub(super) fn new(input: &'a TableInput<'a>, request: TableRequest<'a>) -> Self {
        let keys = request.keys;
        let has_lines = keys.iter().any(|key| matches!(key, SortKey::SrcLine | SortKey::SrcLineTo));
        Self {
            input,
            keys: keys.iter().copied().filter(|key| key.is_of_code()).collect(),
            only: request.only,
            parts: CellInterner::default(),
            of_call: vec![NOT_ASKED; input.code.calls().len()],
            of_leaf: vec![NOT_ASKED; input.code.len()],
            cells: Vec::new(),
            known: FxHashMap::default(),
            innermost: request.innermost,
            has_files: has_lines || keys.contains(&SortKey::SrcFile),
            has_lines,
            has_offsets: keys.contains(&SortKey::SymbolOffset),
            has_modules: keys.contains(&SortKey::DsoSize),
        }
    }

    /// Returns the call at a location to whose row a sample at this location belongs.
    pub(super) fn own_call(&self, location: u32) -> usize {
        let range = self.input.code.range(location);
        if self.innermost { range.start } else { range.end - 1 }
    }

    pub(super) fn call(&mut self, call: usize, location: u32, texts: &StringTable) -> u32 {
        if self.of_call[call] == NOT_ASKED {
            self.of_call[call] = self.part(call, call, location, texts);
        }
        self.of_call[call]
    }

    /// Returns the part of a sample at a location. Its function is the function that contains the code, or
    /// the innermost function. Its line is always the line in the innermost function, inlined or not.
    pub(super) fn leaf(&mut self, location: u32, texts: &StringTable) -> u32 {
        if self.of_leaf[location as usize] == NOT_ASKED {
            let range = self.input.code.range(location);
            self.of_leaf[location as usize] = match range.len() {
                1 => self.call(range.start, location, texts),
                _ if self.innermost => self.call(range.start, location, texts),
                _ => self.part(range.end - 1, range.start, location, texts),
            };
        }
        self.of_leaf[location as usize]
    }

    /// Returns the part for the function of the call `call` and the line of the call `at`, both at the
    /// location.
    fn part(&mut self, call: usize, at: usize, location: u32, texts: &StringTable) -> u32 {
        let (call, at) = (&self.input.code.calls()[call], &self.input.code.calls()[at]);
        // Clear the fields that do not affect the part.
        let plain = LocationCall { file: None, line: 0, start: None, inlined: false, ..*call };
        let place = if self.has_files { (at.file, at.line) } else { (None, 0) };
        let into = call.start.filter(|_| self.has_offsets).map_or(UNKNOWN_OFFSET, |start| {
            self.input.resolved.locations[location as usize].offset.wrapping_sub(start.get())
        });
        let module = self.input.code.module(location).filter(|_| self.has_modules);
        let address = self.input.offset(location).filter(|_| self.has_lines && at.file.is_none());
        let asked = (plain, place, into, module, address);
        if let Some(part) = self.known.get(&asked) {
            return *part;
        }
        if self.known.len() >= MOST_KNOWN {
            self.known.clear();
        }
        if !(self.only.has_module(call, texts) && self.only.has_function(call, texts)) {
            self.known.insert(asked, NOT_WANTED);
            return NOT_WANTED;
        }
        self.cells.clear();
        self.cells.extend(self.keys.iter().map(|key| match key {
            SortKey::Dso | SortKey::DsoTo => RowCell::Text(call.dso),
            SortKey::Symbol | SortKey::SymbolTo | SortKey::SymbolIaddr => {
                RowCell::Symbol(call.level.letter(), call.symbol)
            }
            SortKey::SrcLine | SortKey::SrcLineTo => place::line(call, at, address),
            SortKey::SymbolSize if call.size == 0 => RowCell::Unknown,
            SortKey::SymbolSize => RowCell::Number(i64::from(call.size)),
            SortKey::SymbolOffset => match u32::try_from(into) {
                Ok(into) => RowCell::Offset(call.level.letter(), call.symbol, into),
                Err(_) => RowCell::Symbol(call.level.letter(), call.symbol),
            },
            SortKey::DsoSize => {
                let size = module.and_then(|module| self.input.words.mapped(module));
                size.map_or(RowCell::Unknown, |size| RowCell::Number(size as i64))
            }
            SortKey::SrcFile => at.file.map_or(RowCell::Unknown, RowCell::Text),
            _ => RowCell::Unknown,
        }));
        let part = self.parts.add(&self.cells);
        self.known.insert(asked, part);
        part
    }
}

/// The cost of a row.
#[derive(Default)]
struct RowSum {
    own: SampleValue,
    total: SampleValue,
    by_mode: Option<Box<[u64; 4]>>,
}

/// The sums of samples that agree in all cells except those of the code, by part. Cleared and reused, because
/// most of these groups have few parts.
#[derive(Default)]
struct PartSums {
    of: Vec<RowSum>,
    /// The numbers of the parts that have sums.
    touched: Vec<u32>,
    is_touched: Vec<bool>,
    /// The last row that was added to each part's total.
    counted: Vec<u32>,
}

impl PartSums {
    fn at(&mut self, part: u32) -> &mut RowSum {
        let at = part as usize;
        if at >= self.of.len() {
            self.of.resize_with(at + 1, RowSum::default);
            self.is_touched.resize(at + 1, false);
            self.counted.resize(at + 1, u32::MAX);
        }
        if !self.is_touched[at] {
            self.is_touched[at] = true;
            self.touched.push(part);
        }
        &mut self.of[at]
    }

    /// Adds a row to a part's total. A row counts once, even if its stack contains the part several times.
    fn total(&mut self, part: u32, row: u32, value: &SampleValue) {
        if part == NOT_WANTED || self.counted.get(part as usize) == Some(&row) {
            return;
        }
        self.at(part).total += value;
        self.counted[part as usize] = row;
    }

    fn take(&mut self, mut take: impl FnMut(u32, RowSum)) {
        for part in self.touched.drain(..) {
            let sum = std::mem::take(&mut self.of[part as usize]);
            self.is_touched[part as usize] = false;
            take(part, sum);
        }
    }
}

/// Options for tables.
#[derive(Debug, Clone, Copy)]
pub struct TableRequest<'a> {
    /// The sort keys that distinguish rows.
    pub keys: &'a [SortKey],
    /// Whether rows have totals in addition to their own costs.
    pub with_totals: bool,
    /// Whether rows split their own costs by CPU mode.
    pub by_mode: bool,
    /// Whether a sample counts for its innermost function, inlined or not, or for the function that contains
    /// the code.
    pub innermost: bool,
    /// Selects the rows to keep.
    pub only: &'a RowSelection,
    /// Criteria for the order of rows, most important first. Ties are ordered by total.
    pub ranks: &'a [RowRank],
    /// The cost by which these ties are ordered.
    pub share_of: ShareOf,
}

/// Makes the tables of all events. Sorts rows by the request's ranks, and ties by descending total.
pub fn tables(
    input: &TableInput<'_>,
    request: TableRequest<'_>,
    events: usize,
    texts: &mut StringTable,
) -> Vec<Vec<TableRow>> {
    let TableRequest { keys, with_totals, by_mode, innermost, only, ranks, share_of } = request;
    let mut code_cells = CodeCells::new(input, request);
    let mut tables: Vec<Vec<TableRow>> = vec![Vec::new(); events];
    let (of_sample, order) = by_sample(input, keys, texts);
    let mut sums = PartSums::default();
    for group in order.chunk_by(|a, b| (a.event, a.part) == (b.event, b.part)) {
        let rows = &mut tables[group[0].event as usize];
        for grouped in group {
            let (key, value) = &input.rows[grouped.row as usize];
            let mut stack = input.resolved.stack(key.stack);
            let Some(leaf) = stack.next() else { continue };
            let own = code_cells.leaf(leaf, texts);
            if own != NOT_WANTED {
                let mode = input.code.calls()[input.code.own(leaf)].level;
                let sum = sums.at(own);
                sum.own += value;
                if by_mode && let Some(mode) = MODES.iter().position(|other| *other == mode) {
                    let periods = &mut sum.by_mode.get_or_insert_default()[mode];
                    *periods = periods.saturating_add(value.period);
                }
            }
            if with_totals {
                // The function of the leaf counts only once, at the line that was sampled.
                sums.total(own, grouped.row, value);
                let mut others = input.code.range(leaf);
                match innermost {
                    true => others.start += 1,
                    false => others.end -= 1,
                }
                for call in others {
                    sums.total(code_cells.call(call, leaf, texts), grouped.row, value);
                }
                for location in stack {
                    for call in input.code.range(location) {
                        sums.total(code_cells.call(call, location, texts), grouped.row, value);
                    }
                }
            }
        }
        sums.take(|part, RowSum { own, total, by_mode }| {
            let cells = cells(keys, &of_sample, group[0].part, &code_cells, part);
            let total = if with_totals { total } else { own.clone() };
            rows.push(TableRow { cells, own, total, by_mode, chains: None });
        });
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
) -> Vec<RowCell> {
    let mut from_sample = of_sample.all[sample_part as usize].iter();
    let mut from_code = code_cells.parts.all[code_part as usize].iter();
    let next = |key: &SortKey| if key.is_of_code() { from_code.next() } else { from_sample.next() };
    keys.iter().filter_map(next).copied().collect()
}

/// A row of the input. `part` is the number of its list of cells that do not depend on code.
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
    if parts.all.len() > 1 {
        order.sort_unstable_by_key(|grouped| (grouped.event, grouped.part, grouped.row));
    }
    (parts, order)
}

/// Orders rows with equal costs by their text. Equal inputs therefore always produce equal tables.
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

fn sample_cells(
    input: &TableInput<'_>,
    keys: &[SortKey],
    key: &RowKey,
    texts: &mut StringTable,
) -> Vec<RowCell> {
    let attributes = if input.attribute_kinds.is_empty() {
        None
    } else {
        Some(words(input.attributes.get(key.attributes).1))
    };
    let word = |wanted: fn(&SampleAttribute) -> bool| {
        let at = input.attribute_kinds.iter().position(wanted)?;
        attributes?.get(at)
    };
    let number = |word: Option<u64>| match word {
        Some(word) if word != u64::MAX => RowCell::Number(word as i64),
        _ => RowCell::Unknown,
    };
    let task = |word: Option<u64>, is_named: bool, texts: &mut StringTable| match word {
        Some(ENDED) => RowCell::Text(texts.add(ENDED_NAME)),
        None => RowCell::Unknown,
        Some(id) => match is_named.then(|| input.words.task_name(id as i32)).flatten() {
            Some(name) => RowCell::Task(id as i64, texts.add(&name)),
            None => RowCell::Number(id as i64),
        },
    };
    let mut cells = Vec::new();
    for sort_key in keys {
        cells.push(match sort_key {
            SortKey::Comm => RowCell::Text(texts.add(&input.words.comm(key.comm))),
            SortKey::CommNoDigit => RowCell::Text(texts.add(&without_digits(&input.words.comm(key.comm)))),
            SortKey::Process => task(word(|e| *e == SampleAttribute::Pid), true, texts),
            SortKey::Thread => task(word(|e| *e == SampleAttribute::Tid), true, texts),
            SortKey::Tid => task(word(|e| *e == SampleAttribute::Tid), false, texts),
            SortKey::Cpu => number(word(|e| *e == SampleAttribute::Cpu)),
            SortKey::Socket => {
                let socket = word(|e| *e == SampleAttribute::Cpu).and_then(|cpu| input.words.socket(cpu));
                socket.map_or(RowCell::Unknown, RowCell::Number)
            }
            SortKey::Time => {
                let slice = input.attribute_kinds.iter().find_map(|attribute| match attribute {
                    SampleAttribute::Time(slice) => Some(*slice),
                    _ => None,
                });
                let at = word(|e| matches!(e, SampleAttribute::Time(_))).unwrap_or(0);
                RowCell::Time(at.saturating_mul(slice.unwrap_or(1)))
            }
            SortKey::Cgroup => {
                let id = word(|e| *e == SampleAttribute::Cgroup).unwrap_or(0);
                RowCell::Text(texts.add(&input.words.cgroup(id)))
            }
            SortKey::Trace => {
                let payload = word(|e| *e == SampleAttribute::Payload).unwrap_or(u64::MAX);
                RowCell::Text(texts.add(&input.words.payload(payload)))
            }
            SortKey::TraceField(field) => {
                let payload = word(|e| *e == SampleAttribute::Payload).unwrap_or(u64::MAX);
                match input.words.payload_field(payload, usize::from(*field)) {
                    // Sort numbers numerically.
                    Some(text) => {
                        text.parse().map_or_else(|_| RowCell::Text(texts.add(&text)), RowCell::Number)
                    }
                    None => RowCell::Unknown,
                }
            }
            SortKey::Weight | SortKey::LocalWeight => number(word(|e| *e == SampleAttribute::Weight)),
            SortKey::Addr => word(|e| *e == SampleAttribute::Addr).map_or(RowCell::Unknown, RowCell::Address),
            SortKey::SymbolFrom
            | SortKey::DsoFrom
            | SortKey::SrcLineFrom
            | SortKey::AddrFrom
            | SortKey::AddrTo
            | SortKey::Mispredict
            | SortKey::InTx
            | SortKey::Abort
            | SortKey::Cycles => {
                place::of_branch(*sort_key, input.code, &word, &|location| input.offset(location), texts)
            }
            SortKey::SymbolDaddr | SortKey::DsoDaddr | SortKey::DCacheLine => {
                place::of_data(*sort_key, input.code, &word)
            }
            SortKey::Mem
            | SortKey::Snoop
            | SortKey::Tlb
            | SortKey::Locked
            | SortKey::Blocked
            | SortKey::MemOp
            | SortKey::Cache
            | SortKey::Memory
            | SortKey::DTlb => {
                let source = word(|e| *e == SampleAttribute::DataSrc).filter(|word| *word != u64::MAX);
                source.map_or(RowCell::Unknown, |word| place::of_source(*sort_key, word, texts))
            }
            SortKey::PhysDaddr => match word(|e| *e == SampleAttribute::PhysAddr) {
                Some(word) if word != u64::MAX => RowCell::Address(word),
                _ => RowCell::Unknown,
            },
            SortKey::DataPageSize | SortKey::CodePageSize => {
                let size = match sort_key {
                    SortKey::DataPageSize => word(|e| *e == SampleAttribute::DataPage),
                    _ => word(|e| *e == SampleAttribute::CodePage),
                };
                RowCell::Text(texts.add(&page_size(size.filter(|size| *size != u64::MAX).unwrap_or(0))))
            }
            SortKey::InsLatency | SortKey::LocalInsLatency => {
                number(word(|e| *e == SampleAttribute::InsLatency))
            }
            SortKey::StageCycles | SortKey::LocalStageCycles => {
                number(word(|e| *e == SampleAttribute::StageCycles))
            }
            SortKey::Transaction => {
                let (names, code) = transaction(word(|e| *e == SampleAttribute::Transaction).unwrap_or(0));
                let code = if code == 0 { String::new() } else { format!(":{code:x}") };
                RowCell::Text(texts.add(&format!("{}{code}", names.join(" "))))
            }
            SortKey::Parallelism => number(word(|e| *e == SampleAttribute::Parallelism)),
            SortKey::CgroupId => number(word(|e| *e == SampleAttribute::Cgroup)),
            SortKey::Parent => match word(|e| *e == SampleAttribute::Parent) {
                Some(word) if word != u64::MAX => RowCell::Text(StringId(word as u32)),
                _ => RowCell::Text(texts.add(super::callers::OTHER)),
            },
            SortKey::Period => number(word(|e| *e == SampleAttribute::Period)),
            // Properties of the code: see [`CodeCells`].
            SortKey::Dso
            | SortKey::Symbol
            | SortKey::SymbolSize
            | SortKey::SymbolOffset
            | SortKey::DsoSize
            | SortKey::SrcLine
            | SortKey::SrcFile
            | SortKey::SymbolIaddr
            | SortKey::SymbolTo
            | SortKey::DsoTo
            | SortKey::SrcLineTo => continue,
        });
    }
    cells
}

/// Replaces each number in a name as perf does: `kworker/<N>:<N>`.
fn without_digits(name: &str) -> String {
    let mut out = String::new();
    for part in name.split_inclusive(|c: char| !c.is_ascii_digit()) {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        out.push_str(if rest.len() < part.len() { "<N>" } else { "" });
        out.push_str(rest);
    }
    out
}

/// Returns the function of a row, if functions are a sort key.
pub fn symbol_of(row: &TableRow) -> Option<StringId> {
    row.cells.iter().find_map(|cell| match cell {
        RowCell::Symbol(_, id) => Some(*id),
        _ => None,
    })
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

    #[test]
    fn numbers_in_names_are_stripped() {
        let names = ["kworker/0:12", "opt cgu.07", "3", "plain", ""];
        let without = names.map(super::without_digits);
        assert_eq!(without, ["kworker/<N>:<N>", "opt cgu.<N>", "<N>", "plain", ""]);
    }
}
