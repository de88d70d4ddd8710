//! The table: one row for each distinct value of the sort keys, with what it cost itself and with all it
//! called.
//!
//! ```text
//!   stack  leaf <- f <- f <- main      period 7
//!     own:    leaf 7
//!     total:  leaf 7, f 7 (once, however deep the recursion), main 7
//! ```

use std::cmp::Ordering;

use rustc_hash::FxHashMap;

use super::chain_tree::ChainTree;
use super::{Call, Cell, Code, ShareOf, SortKey, StringId, StringTable, Value, place};
use crate::abi::CpuMode;
use crate::record::decode::{page_size, transaction};
use crate::session::Resolved;
use crate::session::intern::{Interner, words};
use crate::session::live::ENDED;
use crate::session::samples::{Key, SampleAttribute};

/// A row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Row {
    /// The values of the sort keys.
    pub cells: Vec<Cell>,
    /// Samples that hit it.
    pub own: Value,
    /// Samples that hit it or what it called; the same as `own` without call chains.
    pub total: Value,
    /// Its own periods by where the CPU was, in [`MODES`]' order, where that was asked for.
    pub by_mode: Option<Box<[u64; 4]>>,
    /// Its call chains, where they were asked for and it costs enough.
    pub chains: Option<Box<ChainTree>>,
}

impl Row {
    /// Its own periods in a mode of the CPU, by its index in [`MODES`].
    pub fn in_mode(&self, mode: usize) -> u64 {
        self.by_mode.as_ref().map_or(0, |by_mode| by_mode[mode])
    }
}

/// Where a CPU can be, as far as rows tell it apart.
pub const MODES: [CpuMode; 4] = [CpuMode::Kernel, CpuMode::User, CpuMode::GuestKernel, CpuMode::GuestUser];

/// Stands for the number, and for the name, of processes and threads that have ended: see [`ENDED`].
pub const ENDED_NAME: &str = "(ended)";

/// Where the words for numbers come from.
pub trait Words {
    /// The name of a thread; the number is that of a row's key.
    fn comm(&self, comm: u32) -> String;
    /// The last name of a thread, with or without samples. A process has that of its first thread.
    fn task_name(&self, tid: i32) -> Option<String>;
    /// The path of a cgroup.
    fn cgroup(&self, id: u64) -> String;
    /// The socket of a CPU.
    fn socket(&self, cpu: u64) -> Option<i64>;
    /// Bytes of a module that were mapped, as the first process had it.
    fn mapped(&self, module: u32) -> Option<u64>;
    /// The text of a payload.
    fn payload(&self, number: u64) -> String;
    /// A field of a payload, by its number in [`Profile::trace_fields`](super::Profile::trace_fields).
    fn payload_field(&self, _number: u64, _field: usize) -> Option<String> {
        None
    }
}

/// Everything that rows are made of.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// The sums by stack: the rows of `resolved`, or those of them that a filter left. By event and stack.
    pub rows: &'a [(Key, Value)],
    /// The stacks.
    pub resolved: &'a Resolved,
    /// The attributes.
    pub attributes: &'a Interner,
    /// Which they are.
    pub attribute_kinds: &'a [SampleAttribute],
    /// What stands at the locations.
    pub code: &'a Code,
    /// Words for numbers.
    pub words: &'a dyn Words,
}

impl Input<'_> {
    /// The address of a location in its module's own numbering; `None` where nothing is mapped.
    pub(super) fn offset(&self, location: u32) -> Option<u64> {
        self.code.module(location)?;
        self.resolved.locations.get(location as usize).map(|location| location.offset)
    }
}

/// What rows are ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rank {
    /// Their own periods, most first.
    Own,
    /// Their periods with all that was called, most first.
    Total,
    /// Their own share of time by the clock on the wall, most first.
    OwnLatency,
    /// That share with all that was called, most first.
    TotalLatency,
    /// Their own samples, most first.
    Samples,
    /// Their own periods in a mode of the CPU, most first: its index in [`MODES`].
    InMode(usize),
    /// A sort key, rising.
    Key(SortKey),
}

/// Which rows are kept: modules and functions by name; `None` keeps all.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Only {
    /// Names of modules.
    pub dsos: Option<Vec<String>>,
    /// Names of functions.
    pub symbols: Option<Vec<String>>,
    /// A part of the function's name.
    pub part: Option<String>,
    /// Functions whose name was found.
    pub named: bool,
    /// Rows with more samples than this.
    pub more_than: Option<u64>,
}

impl Only {
    /// Whether it takes out nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether samples taken in this call's code may count, as far as modules go.
    pub(super) fn has_module(&self, call: &Call, texts: &StringTable) -> bool {
        is_listed(&self.dsos, texts.get(call.dso)) && (call.named || !self.named)
    }

    /// Whether the function is one of those that are asked for.
    pub(super) fn has_function(&self, call: &Call, texts: &StringTable) -> bool {
        let name = texts.get(call.symbol);
        is_listed(&self.symbols, name) && self.part.as_ref().is_none_or(|part| name.contains(part.as_str()))
    }
}

fn is_listed(list: &Option<Vec<String>>, name: &str) -> bool {
    list.as_ref().is_none_or(|list| list.iter().any(|wanted| wanted == name))
}

/// Stands for calls whose rows are not wanted.
pub(super) const NOT_WANTED: u32 = u32::MAX;
/// Stands for calls that no row has had yet.
const NOT_ASKED: u32 = u32::MAX - 1;
/// Stands for an offset into a function whose start is not known.
const UNKNOWN_OFFSET: u64 = u64::MAX;

/// Numbers for lists of cells.
#[derive(Default)]
pub(super) struct Parts {
    all: Vec<Box<[Cell]>>,
    known: FxHashMap<Box<[Cell]>, u32>,
}

impl Parts {
    fn add(&mut self, cells: &[Cell]) -> u32 {
        if let Some(number) = self.known.get(cells) {
            return *number;
        }
        self.all.push(cells.into());
        let number = self.all.len() as u32 - 1;
        self.known.insert(cells.into(), number);
        number
    }
}

/// What keys may ask of a call: the function, the line, the place in the function, the module.
type Asked = (Call, (Option<StringId>, u32), u64, Option<u32>, Option<u64>);

/// Which part each call and each leaf is, found out when a row first has it.
pub(super) struct OfCode<'a> {
    input: &'a Input<'a>,
    keys: Vec<SortKey>,
    only: &'a Only,
    parts: Parts,
    of_call: Vec<u32>,
    of_leaf: Vec<u32>,
    cells: Vec<Cell>,
    /// Parts by what the keys may ask of a call: what most calls have been asked before, without making
    /// cells.
    known: FxHashMap<Asked, u32>,
    innermost: bool,
    has_files: bool,
    has_lines: bool,
    has_offsets: bool,
    has_modules: bool,
}

impl<'a> OfCode<'a> {
    pub(super) fn new(input: &'a Input<'a>, request: TableRequest<'a>) -> Self {
        let keys = request.keys;
        let has_lines = keys.iter().any(|key| matches!(key, SortKey::SrcLine | SortKey::SrcLineTo));
        Self {
            input,
            keys: keys.iter().copied().filter(|key| key.is_of_code()).collect(),
            only: request.only,
            parts: Parts::default(),
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

    /// The call at a location whose row a sample there belongs to.
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

    /// A sample counts for the function that has the code, or for the innermost, at the line that was
    /// executed: the innermost, inlined or not.
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

    /// The function of one call at the line of another; both stand at the location.
    fn part(&mut self, call: usize, at: usize, location: u32, texts: &StringTable) -> u32 {
        let (call, at) = (&self.input.code.calls()[call], &self.input.code.calls()[at]);
        // What is left out of this makes no difference to the part.
        let plain = Call { file: None, line: 0, start: None, inlined: false, ..*call };
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
        if !(self.only.has_module(call, texts) && self.only.has_function(call, texts)) {
            self.known.insert(asked, NOT_WANTED);
            return NOT_WANTED;
        }
        self.cells.clear();
        self.cells.extend(self.keys.iter().map(|key| match key {
            SortKey::Dso | SortKey::DsoTo => Cell::Text(call.dso),
            SortKey::Symbol | SortKey::SymbolTo | SortKey::SymbolIaddr => {
                Cell::Symbol(call.level.letter(), call.symbol)
            }
            SortKey::SrcLine | SortKey::SrcLineTo => place::line(call, at, address),
            SortKey::SymbolSize if call.size == 0 => Cell::Unknown,
            SortKey::SymbolSize => Cell::Number(i64::from(call.size)),
            SortKey::SymbolOffset => match u32::try_from(into) {
                Ok(into) => Cell::Offset(call.level.letter(), call.symbol, into),
                Err(_) => Cell::Symbol(call.level.letter(), call.symbol),
            },
            SortKey::DsoSize => {
                let size = module.and_then(|module| self.input.words.mapped(module));
                size.map_or(Cell::Unknown, |size| Cell::Number(size as i64))
            }
            _ => at.file.map_or(Cell::Unknown, Cell::Text),
        }));
        let part = self.parts.add(&self.cells);
        self.known.insert(asked, part);
        part
    }
}

/// What a row costs.
#[derive(Default)]
struct Sum {
    own: Value,
    total: Value,
    by_mode: Option<Box<[u64; 4]>>,
}

/// The sums of one kind of sample, by part. Emptied and used again: most kinds have few parts.
#[derive(Default)]
struct Sums {
    of: Vec<Sum>,
    /// Parts that have any.
    touched: Vec<u32>,
    is_touched: Vec<bool>,
    /// The last row that counted for a part's total.
    counted: Vec<u32>,
}

impl Sums {
    fn at(&mut self, part: u32) -> &mut Sum {
        let at = part as usize;
        if at >= self.of.len() {
            self.of.resize_with(at + 1, Sum::default);
            self.is_touched.resize(at + 1, false);
            self.counted.resize(at + 1, u32::MAX);
        }
        if !self.is_touched[at] {
            self.is_touched[at] = true;
            self.touched.push(part);
        }
        &mut self.of[at]
    }

    /// A row counts once for a part, however often its stack has it.
    fn total(&mut self, part: u32, row: u32, value: &Value) {
        if part == NOT_WANTED || self.counted.get(part as usize) == Some(&row) {
            return;
        }
        self.at(part).total += value;
        self.counted[part as usize] = row;
    }

    fn take(&mut self, mut take: impl FnMut(u32, Sum)) {
        for part in self.touched.drain(..) {
            let sum = std::mem::take(&mut self.of[part as usize]);
            self.is_touched[part as usize] = false;
            take(part, sum);
        }
    }
}

/// What is wanted of tables.
#[derive(Debug, Clone, Copy)]
pub struct TableRequest<'a> {
    /// What rows are told apart by.
    pub keys: &'a [SortKey],
    /// Rows have totals besides their own.
    pub with_totals: bool,
    /// They have their own by the CPU's mode.
    pub by_mode: bool,
    /// A sample is its innermost function's own, inlined or not; else that of the function that has the code.
    pub innermost: bool,
    /// Which rows are kept.
    pub only: &'a Only,
    /// What rows are ordered by, the first first; where that says nothing, by their totals.
    pub ranks: &'a [Rank],
    /// What those are totals of.
    pub share_of: ShareOf,
}

/// Makes the tables of all events: rows by the request's ranks, and where those say nothing by falling total.
pub fn tables(
    input: &Input<'_>,
    request: TableRequest<'_>,
    events: usize,
    texts: &mut StringTable,
) -> Vec<Vec<Row>> {
    let TableRequest { keys, with_totals, by_mode, innermost, only, ranks, share_of } = request;
    let mut of_code = OfCode::new(input, request);
    let mut tables: Vec<Vec<Row>> = vec![Vec::new(); events];
    let (of_sample, order) = by_sample(input, keys, texts);
    let mut sums = Sums::default();
    for group in order.chunk_by(|a, b| (a.event, a.part) == (b.event, b.part)) {
        let rows = &mut tables[group[0].event as usize];
        for placed in group {
            let (key, value) = &input.rows[placed.row as usize];
            let mut stack = input.resolved.stack(key.stack);
            let Some(leaf) = stack.next() else { continue };
            let own = of_code.leaf(leaf, texts);
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
                // The leaf's own function is counted once, at its own line.
                sums.total(own, placed.row, value);
                let mut others = input.code.range(leaf);
                match innermost {
                    true => others.start += 1,
                    false => others.end -= 1,
                }
                for call in others {
                    sums.total(of_code.call(call, leaf, texts), placed.row, value);
                }
                for location in stack {
                    for call in input.code.range(location) {
                        sums.total(of_code.call(call, location, texts), placed.row, value);
                    }
                }
            }
        }
        sums.take(|part, Sum { own, total, by_mode }| {
            let cells = cells(keys, &of_sample, group[0].part, &of_code, part);
            let total = if with_totals { total } else { own.clone() };
            rows.push(Row { cells, own, total, by_mode, chains: None });
        });
    }
    let by_rank = |rank: &Rank, a: &Row, b: &Row| match rank {
        Rank::Own => b.own.period.cmp(&a.own.period),
        Rank::Total => b.total.period.cmp(&a.total.period),
        Rank::OwnLatency => b.own.latency().cmp(&a.own.latency()),
        Rank::TotalLatency => b.total.latency().cmp(&a.total.latency()),
        Rank::Samples => b.own.samples.cmp(&a.own.samples),
        Rank::InMode(mode) => b.in_mode(*mode).cmp(&a.in_mode(*mode)),
        Rank::Key(key) => {
            let at = keys.iter().position(|other| other == key);
            at.map_or(Ordering::Equal, |at| compare(&a.cells[at..=at], &b.cells[at..=at], texts))
        }
    };
    for rows in &mut tables {
        rows.retain(|row| only.more_than.is_none_or(|least| row.total.samples > least));
        rows.sort_unstable_by(|a, b| {
            let cost = |value: &Value| share_of.cost(value);
            let weight = |row: &Row| (cost(&row.total), cost(&row.own), row.own.samples);
            let ranked = ranks.iter().map(|rank| by_rank(rank, a, b)).find(|order| order.is_ne());
            ranked
                .unwrap_or_else(|| weight(b).cmp(&weight(a)))
                .then_with(|| compare(&a.cells, &b.cells, texts))
        });
    }
    tables
}

/// The cells of a row: those of a sample and those of code, in the keys' order.
pub(super) fn cells(
    keys: &[SortKey],
    of_sample: &Parts,
    sample_part: u32,
    of_code: &OfCode<'_>,
    code_part: u32,
) -> Vec<Cell> {
    let mut from_sample = of_sample.all[sample_part as usize].iter();
    let mut from_code = of_code.parts.all[code_part as usize].iter();
    let next = |key: &SortKey| if key.is_of_code() { from_code.next() } else { from_sample.next() };
    keys.iter().filter_map(next).copied().collect()
}

/// A row of the input, with the number of its cells that are not of code.
pub(super) struct Placed {
    pub(super) event: u32,
    pub(super) part: u32,
    pub(super) row: u32,
}

/// The input's rows by event and by what of their cells is not of code, else as they came.
pub(super) fn by_sample(
    input: &Input<'_>,
    keys: &[SortKey],
    texts: &mut StringTable,
) -> (Parts, Vec<Placed>) {
    let mut parts = Parts::default();
    // What no key tells apart need not be looked at.
    let comms = keys.iter().any(|key| key.is_of_name());
    let attributes = keys.iter().any(|key| !key.is_of_name() && !key.is_of_code());
    let mut known: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    let mut last = None;
    let mut order: Vec<Placed> = Vec::with_capacity(input.rows.len());
    for (row, (key, _)) in (0..).zip(input.rows) {
        let told = (if comms { key.comm } else { 0 }, if attributes { key.attributes } else { 0 });
        let part = match last {
            Some((last, part)) if last == told => part,
            _ => *known.entry(told).or_insert_with(|| parts.add(&sample_cells(input, keys, key, texts))),
        };
        last = Some((told, part));
        order.push(Placed { event: key.event, part, row });
    }
    if parts.all.len() > 1 {
        order.sort_unstable_by_key(|placed| (placed.event, placed.part, placed.row));
    }
    (parts, order)
}

/// Equal costs are ordered by their words, so that equal runs print equal tables.
pub(in crate::profile) fn compare(a: &[Cell], b: &[Cell], texts: &StringTable) -> Ordering {
    let word = |cell: &Cell| match cell {
        Cell::Text(id) | Cell::Symbol(_, id) | Cell::Line(id, _) | Cell::Offset(_, id, _) => Some(*id),
        Cell::InFunction(id, _) | Cell::InModule(id, _) => Some(*id),
        _ => None,
    };
    let one = |(a, b): (&Cell, &Cell)| match (word(a), word(b)) {
        (Some(left), Some(right)) if left != right => texts.get(left).cmp(texts.get(right)),
        _ => a.cmp(b),
    };
    a.iter().zip(b).map(one).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

fn sample_cells(input: &Input<'_>, keys: &[SortKey], key: &Key, texts: &mut StringTable) -> Vec<Cell> {
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
        Some(word) if word != u64::MAX => Cell::Number(word as i64),
        _ => Cell::Unknown,
    };
    let task = |word: Option<u64>, texts: &mut StringTable| match word {
        Some(ENDED) => Cell::Text(texts.add(ENDED_NAME)),
        None => Cell::Unknown,
        Some(id) => match input.words.task_name(id as i32) {
            Some(name) => Cell::Task(id as i64, texts.add(&name)),
            None => Cell::Number(id as i64),
        },
    };
    let mut cells = Vec::new();
    for sort_key in keys.iter().filter(|key| !key.is_of_code()) {
        cells.push(match sort_key {
            SortKey::Comm => Cell::Text(texts.add(&input.words.comm(key.comm))),
            SortKey::CommNoDigit => Cell::Text(texts.add(&without_digits(&input.words.comm(key.comm)))),
            SortKey::Process => task(word(|e| *e == SampleAttribute::Pid), texts),
            SortKey::Thread => task(word(|e| *e == SampleAttribute::Tid), texts),
            SortKey::Tid => match word(|e| *e == SampleAttribute::Tid) {
                Some(ENDED) => Cell::Text(texts.add(ENDED_NAME)),
                tid => tid.map_or(Cell::Unknown, |tid| Cell::Number(tid as i64)),
            },
            SortKey::Cpu => number(word(|e| *e == SampleAttribute::Cpu)),
            SortKey::Socket => {
                let socket = word(|e| *e == SampleAttribute::Cpu).and_then(|cpu| input.words.socket(cpu));
                socket.map_or(Cell::Unknown, Cell::Number)
            }
            SortKey::Time => {
                let slice = input.attribute_kinds.iter().find_map(|attribute| match attribute {
                    SampleAttribute::Time(slice) => Some(*slice),
                    _ => None,
                });
                let at = word(|e| matches!(e, SampleAttribute::Time(_))).unwrap_or(0);
                Cell::Time(at.saturating_mul(slice.unwrap_or(1)))
            }
            SortKey::Cgroup => {
                let id = word(|e| *e == SampleAttribute::Cgroup).unwrap_or(0);
                Cell::Text(texts.add(&input.words.cgroup(id)))
            }
            SortKey::Trace => {
                let payload = word(|e| *e == SampleAttribute::Payload).unwrap_or(u64::MAX);
                Cell::Text(texts.add(&input.words.payload(payload)))
            }
            SortKey::TraceField(field) => {
                let payload = word(|e| *e == SampleAttribute::Payload).unwrap_or(u64::MAX);
                match input.words.payload_field(payload, usize::from(*field)) {
                    // A number sorts as one.
                    Some(text) => text.parse().map_or_else(|_| Cell::Text(texts.add(&text)), Cell::Number),
                    None => Cell::Unknown,
                }
            }
            SortKey::Weight | SortKey::LocalWeight => number(word(|e| *e == SampleAttribute::Weight)),
            SortKey::Addr => word(|e| *e == SampleAttribute::Addr).map_or(Cell::Unknown, Cell::Address),
            key if key.is_of_branch() => {
                place::of_branch(*key, input.code, &word, &|location| input.offset(location), texts)
            }
            SortKey::SymbolDaddr | SortKey::DsoDaddr | SortKey::DCacheLine => {
                place::of_data(*sort_key, input.code, &word)
            }
            SortKey::Mem | SortKey::Snoop | SortKey::Tlb | SortKey::Locked | SortKey::Blocked => {
                let source = word(|e| *e == SampleAttribute::DataSrc).filter(|word| *word != u64::MAX);
                source.map_or(Cell::Unknown, |word| place::of_source(*sort_key, word, texts))
            }
            SortKey::PhysDaddr => match word(|e| *e == SampleAttribute::PhysAddr) {
                Some(word) if word != u64::MAX => Cell::Address(word),
                _ => Cell::Unknown,
            },
            SortKey::DataPageSize | SortKey::CodePageSize => {
                let size = match sort_key {
                    SortKey::DataPageSize => word(|e| *e == SampleAttribute::DataPage),
                    _ => word(|e| *e == SampleAttribute::CodePage),
                };
                Cell::Text(texts.add(&page_size(size.filter(|size| *size != u64::MAX).unwrap_or(0))))
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
                Cell::Text(texts.add(&format!("{}{code}", names.join(" "))))
            }
            SortKey::Parallelism => number(word(|e| *e == SampleAttribute::Parallelism)),
            SortKey::CgroupId => number(word(|e| *e == SampleAttribute::Cgroup)),
            SortKey::Parent => match word(|e| *e == SampleAttribute::Parent) {
                Some(word) if word != u64::MAX => Cell::Text(StringId(word as u32)),
                _ => Cell::Text(texts.add(super::callers::OTHER)),
            },
            _ => number(word(|e| *e == SampleAttribute::Period)),
        });
    }
    cells
}

/// A name with each number in it as perf has it: `kworker/<N>:<N>`.
fn without_digits(name: &str) -> String {
    let mut out = String::new();
    for part in name.split_inclusive(|c: char| !c.is_ascii_digit()) {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        out.push_str(if rest.len() < part.len() { "<N>" } else { "" });
        out.push_str(rest);
    }
    out
}

/// The function of a row, where functions are a sort key.
pub fn symbol_of(row: &Row) -> Option<StringId> {
    row.cells.iter().find_map(|cell| match cell {
        Cell::Symbol(_, id) => Some(*id),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_in_names_are_left_out() {
        let names = ["kworker/0:12", "opt cgu.07", "3", "plain", ""];
        let without = names.map(super::without_digits);
        assert_eq!(without, ["kworker/<N>:<N>", "opt cgu.<N>", "<N>", "plain", ""]);
    }
}
