//! The table: one row for each distinct value of the sort keys, with what it cost itself and with all it called.
//!
//! ```text
//!   stack  leaf <- f <- f <- main      period 7
//!     own:    leaf 7
//!     total:  leaf 7, f 7 (once, however deep the recursion), main 7
//! ```

use rustc_hash::FxHashMap;

use super::{Call, Cell, Code, SortKey, TextId, Texts, Value, place};
use crate::record::decode::{page_size, transaction};
use crate::session::Resolved;
use crate::session::intern::{Lists, words};
use crate::session::samples::{Extra, Key};

/// A row.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The values of the sort keys.
    pub cells: Vec<Cell>,
    /// Samples that hit it.
    pub own: Value,
    /// Samples that hit it or what it called; the same as `own` without call chains.
    pub total: Value,
}

/// Where the words for numbers come from.
pub trait Words {
    /// The name of a thread; the number is that of a row's key.
    fn comm(&self, comm: u32) -> String;
    /// The path of a cgroup.
    fn cgroup(&self, id: u64) -> String;
    /// The socket of a CPU.
    fn socket(&self, cpu: u64) -> Option<i64>;
    /// The text of a payload.
    fn payload(&self, number: u64) -> String;
}

/// Everything that rows are made of.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// The sums by stack: the rows of `resolved`, or those of them that a filter left. Sorted by key.
    pub rows: &'a [(Key, Value)],
    /// The stacks.
    pub resolved: &'a Resolved,
    /// The extras.
    pub extras: &'a Lists,
    /// Which they are.
    pub extra_kinds: &'a [Extra],
    /// What stands at the locations.
    pub code: &'a Code,
    /// Words for numbers.
    pub words: &'a dyn Words,
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
}

impl Only {
    fn keeps(&self, call: &Call, texts: &Texts) -> bool {
        let has = |list: &Option<Vec<String>>, name: &str| {
            list.as_ref().is_none_or(|list| list.iter().any(|wanted| wanted == name))
        };
        let (dso, symbol) = (texts.get(call.dso), texts.get(call.symbol));
        has(&self.dsos, dso)
            && has(&self.symbols, symbol)
            && self.part.as_ref().is_none_or(|part| symbol.contains(part.as_str()))
            && (call.named || !self.named)
    }
}

/// Stands for calls whose rows are not wanted.
const NOT_WANTED: u32 = u32::MAX;

/// Numbers for lists of cells.
#[derive(Default)]
struct Parts {
    all: Vec<Vec<Cell>>,
    known: FxHashMap<Vec<Cell>, u32>,
}

impl Parts {
    fn add(&mut self, cells: Vec<Cell>) -> u32 {
        if let Some(number) = self.known.get(&cells) {
            return *number;
        }
        self.all.push(cells.clone());
        let number = self.all.len() as u32 - 1;
        self.known.insert(cells, number);
        number
    }
}

/// Makes the tables of all events: rows by falling total, and what [`Only`] left out of each event.
pub fn tables(
    input: &Input<'_>,
    keys: &[SortKey],
    with_totals: bool,
    only: &Only,
    events: usize,
    texts: &mut Texts,
) -> Vec<(Vec<Row>, Value)> {
    let mut of_code = Parts::default();
    let calls = input.code.calls();
    // The function of one call at the line of another.
    let mut part = |call: &Call, at: &Call, texts: &Texts| {
        if !only.keeps(call, texts) {
            return NOT_WANTED;
        }
        let cells = keys.iter().filter(|key| key.is_of_code()).map(|key| match key {
            SortKey::Dso | SortKey::DsoTo => Cell::Text(call.dso),
            SortKey::Symbol | SortKey::SymbolTo | SortKey::SymbolIaddr => {
                Cell::Symbol(call.level.letter(), call.symbol)
            }
            SortKey::SrcLine | SortKey::SrcLineTo => {
                at.file.map_or(Cell::Unknown, |file| Cell::Line(file, at.line))
            }
            _ => at.file.map_or(Cell::Unknown, Cell::Text),
        });
        of_code.add(cells.collect())
    };
    let part_of_call: Vec<u32> = calls.iter().map(|call| part(call, call, texts)).collect();
    // A sample counts for the function that has the code, at the line that was executed: the innermost, inlined or not.
    let part_of_leaf: Vec<u32> = (0..input.code.len() as u32)
        .map(|location| {
            part(&calls[input.code.own(location)], &calls[input.code.range(location).start], texts)
        })
        .collect();
    let mut of_sample = Parts::default();
    let mut known: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    let mut sums: Vec<FxHashMap<(u32, u32), (Value, Value)>> = vec![FxHashMap::default(); events];
    let mut left_out = vec![Value::default(); events];
    let mut seen: Vec<u32> = Vec::new();
    for (key, value) in input.rows {
        let sample_part = *known
            .entry((key.comm, key.extra))
            .or_insert_with(|| of_sample.add(sample_cells(input, keys, key, texts)));
        let sums = &mut sums[key.event as usize];
        let Some(leaf) = input.resolved.stack(key.stack).next() else { continue };
        let own = part_of_leaf[leaf as usize];
        if own == NOT_WANTED {
            left_out[key.event as usize] += *value;
        } else {
            sums.entry((sample_part, own)).or_default().0 += *value;
        }
        if with_totals {
            seen.clear();
            for location in input.resolved.stack(key.stack) {
                seen.extend(input.code.range(location).map(|call| part_of_call[call]));
            }
            // The leaf's own function is counted once, at its own line.
            let innermost = input.code.range(leaf);
            seen[innermost.len() - 1] = own;
            seen.sort_unstable();
            seen.dedup();
            for part in seen.iter().filter(|part| **part != NOT_WANTED) {
                sums.entry((sample_part, *part)).or_default().1 += *value;
            }
        }
    }
    let row = |((sample_part, code_part), (own, total)): ((u32, u32), (Value, Value))| {
        let mut from_sample = of_sample.all[sample_part as usize].iter();
        let mut from_code = of_code.all[code_part as usize].iter();
        let cells = keys
            .iter()
            .filter_map(|key| if key.is_of_code() { from_code.next() } else { from_sample.next() }.copied());
        Row { cells: cells.collect(), own, total: if with_totals { total } else { own } }
    };
    sums.into_iter()
        .zip(left_out)
        .map(|(sums, left_out)| {
            let mut rows: Vec<Row> = sums.into_iter().map(row).collect();
            rows.sort_by(|a, b| {
                let weight = |row: &Row| (row.total.period, row.own.period, row.own.samples);
                weight(b).cmp(&weight(a)).then_with(|| compare(&a.cells, &b.cells, texts))
            });
            (rows, left_out)
        })
        .collect()
}

/// Equal costs are ordered by their words, so that equal runs print equal tables.
fn compare(a: &[Cell], b: &[Cell], texts: &Texts) -> std::cmp::Ordering {
    let word = |cell: &Cell| match cell {
        Cell::Text(id) | Cell::Symbol(_, id) | Cell::Line(id, _) => Some(*id),
        _ => None,
    };
    let one = |(a, b): (&Cell, &Cell)| match (word(a), word(b)) {
        (Some(left), Some(right)) if left != right => texts.get(left).cmp(texts.get(right)),
        _ => a.cmp(b),
    };
    a.iter().zip(b).map(one).find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
}

fn sample_cells(input: &Input<'_>, keys: &[SortKey], key: &Key, texts: &mut Texts) -> Vec<Cell> {
    let extras = if input.extra_kinds.is_empty() { None } else { Some(words(input.extras.get(key.extra).1)) };
    let word = |wanted: fn(&Extra) -> bool| {
        let at = input.extra_kinds.iter().position(wanted)?;
        extras?.get(at)
    };
    let number = |word: Option<u64>| match word {
        Some(word) if word != u64::MAX => Cell::Number(word as i64),
        _ => Cell::Unknown,
    };
    let mut cells = Vec::new();
    for sort_key in keys.iter().filter(|key| !key.is_of_code()) {
        cells.push(match sort_key {
            SortKey::Comm => Cell::Text(texts.add(&input.words.comm(key.comm))),
            SortKey::Pid => word(|e| *e == Extra::Pid).map_or(Cell::Unknown, |w| Cell::Number(w as i64)),
            SortKey::Tid => word(|e| *e == Extra::Tid).map_or(Cell::Unknown, |w| Cell::Number(w as i64)),
            SortKey::Cpu => number(word(|e| *e == Extra::Cpu)),
            SortKey::Socket => {
                let socket = word(|e| *e == Extra::Cpu).and_then(|cpu| input.words.socket(cpu));
                socket.map_or(Cell::Unknown, Cell::Number)
            }
            SortKey::Time => {
                let slice = input.extra_kinds.iter().find_map(|extra| match extra {
                    Extra::Time(slice) => Some(*slice),
                    _ => None,
                });
                let at = word(|e| matches!(e, Extra::Time(_))).unwrap_or(0);
                Cell::Time(at.saturating_mul(slice.unwrap_or(1)))
            }
            SortKey::Cgroup => {
                let id = word(|e| *e == Extra::Cgroup).unwrap_or(0);
                Cell::Text(texts.add(&input.words.cgroup(id)))
            }
            SortKey::Trace => {
                let payload = word(|e| *e == Extra::Payload).unwrap_or(u64::MAX);
                Cell::Text(texts.add(&input.words.payload(payload)))
            }
            SortKey::Weight | SortKey::LocalWeight => number(word(|e| *e == Extra::Weight)),
            SortKey::Addr => word(|e| *e == Extra::Addr).map_or(Cell::Unknown, Cell::Address),
            key if key.is_of_branch() => place::of_branch(*key, input, &word, texts),
            SortKey::SymbolDaddr | SortKey::DsoDaddr | SortKey::DCacheLine => {
                place::of_data(*sort_key, input, &word)
            }
            SortKey::Mem | SortKey::Snoop | SortKey::Tlb | SortKey::Locked | SortKey::Blocked => {
                let source = word(|e| *e == Extra::DataSrc).filter(|word| *word != u64::MAX);
                source.map_or(Cell::Unknown, |word| place::of_source(*sort_key, word, texts))
            }
            SortKey::PhysDaddr => match word(|e| *e == Extra::PhysAddr) {
                Some(word) if word != u64::MAX => Cell::Address(word),
                _ => Cell::Unknown,
            },
            SortKey::DataPageSize | SortKey::CodePageSize => {
                let size = match sort_key {
                    SortKey::DataPageSize => word(|e| *e == Extra::DataPage),
                    _ => word(|e| *e == Extra::CodePage),
                };
                Cell::Text(texts.add(&page_size(size.filter(|size| *size != u64::MAX).unwrap_or(0))))
            }
            SortKey::InsLatency | SortKey::LocalInsLatency => number(word(|e| *e == Extra::InsLatency)),
            SortKey::StageCycles | SortKey::LocalStageCycles => number(word(|e| *e == Extra::StageCycles)),
            SortKey::Transaction => {
                let (names, code) = transaction(word(|e| *e == Extra::Transaction).unwrap_or(0));
                let code = if code == 0 { String::new() } else { format!(":{code:x}") };
                Cell::Text(texts.add(&format!("{}{code}", names.join(" "))))
            }
            SortKey::CgroupId => number(word(|e| *e == Extra::Cgroup)),
            SortKey::Parent => match word(|e| *e == Extra::Parent) {
                Some(word) if word != u64::MAX => Cell::Text(TextId(word as u32)),
                _ => Cell::Text(texts.add(super::callers::OTHER)),
            },
            _ => number(word(|e| *e == Extra::Period)),
        });
    }
    cells
}

/// The function of a row, where functions are a sort key.
pub fn symbol_of(row: &Row) -> Option<TextId> {
    row.cells.iter().find_map(|cell| match cell {
        Cell::Symbol(_, id) => Some(*id),
        _ => None,
    })
}
