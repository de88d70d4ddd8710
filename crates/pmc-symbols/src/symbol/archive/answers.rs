//! Tables of an archived module: answers by address, symbols and frames, for writing and for reading.
//!
//! ```text
//!   address  1000  1004  1008  1010           2000
//!   answer   f     f     f     g              -
//!   stored   1000 f            1010 g  1021 - 2000 -     an answer applies up to the next stored address
//! ```
//! The end of a run of close addresses is stored too. Otherwise, the last answer would apply to code that was
//! never looked up.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::format::{AnswerColumns, FrameColumns, SymbolColumns};
use crate::symbol::dwarf::lines::LineFrame;
use crate::symbol::tables::table::Symbol;

/// Maximum distance of two addresses of a run, in bytes. No instruction is larger.
const GAP: u64 = 16;

/// Maximum number of frames at an address.
const MOST_FRAMES: usize = 1000;

/// Answers by address, for lookups.
#[derive(Debug, Default)]
pub(super) struct AnswerTable {
    addresses: Vec<u64>,
    answers: Vec<u32>,
}

impl AnswerTable {
    pub(super) fn read(columns: Option<AnswerColumns>) -> Self {
        let AnswerColumns { mut steps, answers } = columns.unwrap_or_default();
        let mut address = 0u64;
        for step in &mut steps {
            address = address.wrapping_add(*step);
            *step = address;
        }
        // A hostile table may not be sorted. Lookups in it may then give wrong answers, but do no harm.
        Self { addresses: steps, answers }
    }

    /// Iterates over the answers, each of which applies up to the next address.
    pub(super) fn areas(&self) -> impl Iterator<Item = (u64, Option<usize>)> {
        let numbers = self.answers.iter().map(|answer| (*answer as usize).checked_sub(1));
        self.addresses.iter().copied().zip(numbers)
    }

    /// Returns the number of the answer at an address.
    pub(super) fn get(&self, address: u64) -> Option<usize> {
        let at = self.addresses.partition_point(|start| *start <= address).checked_sub(1)?;
        (*self.answers.get(at)? as usize).checked_sub(1)
    }
}

/// Addresses that were looked up and have the same answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::symbol) struct AnswerRun {
    pub(in crate::symbol) first: u64,
    pub(in crate::symbol) last: u64,
    /// The number of the answer. `None` means that a lookup gives no answer.
    pub(in crate::symbol) answer: Option<u32>,
}

impl AnswerRun {
    /// The answer at a single address.
    pub(in crate::symbol) fn at(address: u64, answer: Option<u32>) -> Self {
        Self { first: address, last: address, answer }
    }
}

/// Encodes answers, which may be in any order. Where runs overlap, their answers must be the same.
pub(in crate::symbol) fn answers_of(mut found: Vec<AnswerRun>) -> AnswerColumns {
    found.sort_unstable();
    found.dedup_by(|next, kept| {
        let is_same = next.first == kept.first;
        if is_same {
            kept.last = kept.last.max(next.last);
        }
        is_same
    });
    let mut areas = Vec::with_capacity(found.len());
    let mut last = 0;
    for (at, run) in found.iter().enumerate() {
        areas.push((run.first, run.answer));
        last = run.last.max(last);
        let next = found.get(at + 1).map(|next| next.first);
        if next.is_none_or(|next| next.saturating_sub(last) > GAP)
            && let Some(end) = last.checked_add(GAP)
        {
            areas.push((end, None));
        }
    }
    answers_in(areas)
}

/// Encodes answers, each of which applies up to the next address. The addresses must be in ascending order.
pub(in crate::symbol) fn answers_in(areas: Vec<(u64, Option<u32>)>) -> AnswerColumns {
    let mut columns = AnswerColumns::default();
    let (mut last, mut stored) = (0, 0u64);
    for (address, answer) in areas {
        let answer = answer.map_or(0, |answer| answer + 1);
        if answer != last || columns.steps.is_empty() {
            columns.steps.push(address - stored);
            columns.answers.push(answer);
            (stored, last) = (address, answer);
        }
    }
    columns
}

/// The texts of a module, without duplicates.
#[derive(Debug, Default)]
pub(in crate::symbol) struct TextColumnWriter {
    pub(in crate::symbol) texts: String,
    pub(in crate::symbol) lengths: Vec<u32>,
    numbers: FxHashMap<Arc<str>, u32>,
}

impl TextColumnWriter {
    /// Returns the number of a text.
    pub(in crate::symbol) fn add(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.push(text);
        self.numbers.insert(text.into(), number);
        number
    }

    /// Adds a text even if it is there already, so that texts that are added in sequence have consecutive
    /// numbers.
    pub(in crate::symbol) fn push(&mut self, text: &str) -> u32 {
        self.texts.push_str(text);
        self.lengths.push(text.len() as u32);
        self.lengths.len() as u32 - 1
    }
}

/// The texts of a module, for lookups.
#[derive(Debug, Default)]
pub(super) struct TextTable {
    texts: String,
    ends: Vec<u64>,
}

impl TextTable {
    pub(super) fn read(texts: String, lengths: &[u32]) -> Self {
        let mut end = 0u64;
        let ends = lengths.iter().map(|length| {
            end += u64::from(*length);
            end
        });
        Self { ends: ends.collect(), texts }
    }

    /// Returns a text; an empty one if the number is invalid.
    pub(super) fn get(&self, number: usize) -> &str {
        let Some(end) = self.ends.get(number) else { return "" };
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.texts.get(start as usize..*end as usize).unwrap_or_default()
    }
}

/// Numbers symbols.
#[derive(Debug, Default)]
pub(in crate::symbol) struct SymbolWriter {
    pub(in crate::symbol) columns: SymbolColumns,
    numbers: FxHashMap<(u64, u64, u32), u32>,
}

impl SymbolWriter {
    /// Returns the number of a symbol.
    pub(in crate::symbol) fn add(&mut self, start: u64, size: u64, name: u32) -> u32 {
        *self.numbers.entry((start, size, name)).or_insert_with(|| {
            self.columns.starts.push(start);
            self.columns.sizes.push(size);
            self.columns.names.push(name);
            self.columns.names.len() as u32 - 1
        })
    }
}

impl SymbolColumns {
    /// Returns a symbol. Its name is the number of a text.
    pub(super) fn get<'a>(&self, number: usize, texts: &'a TextTable) -> Option<Symbol<'a>> {
        let (start, size) = (*self.starts.get(number)?, *self.sizes.get(number)?);
        let name = texts.get(*self.names.get(number)? as usize);
        Some(Symbol { start, end: start.wrapping_add(size), name })
    }
}

/// Numbers frames. Frames at different addresses share their outer frames.
#[derive(Debug, Default)]
pub(in crate::symbol) struct FrameWriter {
    pub(in crate::symbol) columns: FrameColumns,
    numbers: FxHashMap<[u32; 4], u32>,
}

impl FrameWriter {
    /// Returns the number of the innermost of these frames; `None` if the list is empty.
    pub(in crate::symbol) fn add(
        &mut self,
        frames: &[LineFrame],
        texts: &mut TextColumnWriter,
    ) -> Option<u32> {
        let mut outer = None;
        for frame in frames.iter().rev() {
            let mut text = |text: &Option<Arc<str>>| text.as_ref().map_or(0, |text| texts.add(text) + 1);
            let key =
                [text(&frame.name), text(&frame.file), frame.line, outer.map_or(0, |outer: u32| outer + 1)];
            let columns = &mut self.columns;
            outer = Some(*self.numbers.entry(key).or_insert_with(|| {
                let [name, file, line, outer] = key;
                columns.names.push(name);
                columns.files.push(file);
                columns.lines.push(line);
                columns.outers.push(outer);
                columns.names.len() as u32 - 1
            }));
        }
        outer
    }
}

/// Shares the texts of the frames in one lookup.
pub(super) type SharedTexts = FxHashMap<usize, Arc<str>>;

impl FrameColumns {
    /// Returns a frame and its outer frames, innermost first.
    pub(super) fn get(&self, number: usize, texts: &TextTable, shared: &mut SharedTexts) -> Vec<LineFrame> {
        let mut frames = Vec::new();
        let mut next = Some(number);
        while let Some(at) = next.filter(|_| frames.len() < MOST_FRAMES) {
            let cell = |column: &[u32]| column.get(at).copied().unwrap_or(0);
            let mut text = |column: &[u32]| {
                let number = (cell(column) as usize).checked_sub(1)?;
                Some(shared.entry(number).or_insert_with(|| texts.get(number).into()).clone())
            };
            frames.push(LineFrame {
                name: text(&self.names),
                file: text(&self.files),
                line: cell(&self.lines),
                column: 0,
            });
            // An outer frame has a lower number, so a hostile table cannot contain a loop.
            next = (cell(&self.outers) as usize).checked_sub(1).filter(|outer| *outer < at);
        }
        frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_apply_to_looked_up_addresses_only() {
        let found = vec![(0x1008, Some(3)), (0x1000, Some(3)), (0x1004, Some(3)), (0x1010, Some(7))];
        let with_hole = [found, vec![(0x2000, None), (0x2008, Some(3)), (u64::MAX, Some(1))]].concat();
        let with_hole: Vec<AnswerRun> =
            with_hole.into_iter().map(|(address, answer)| AnswerRun::at(address, answer)).collect();
        let columns = answers_of(with_hole.clone());
        let table = AnswerTable::read(Some(columns.clone()));
        let expected = [
            (0xfff, None),
            (0x1000, Some(3)),
            (0x1006, Some(3)),
            (0x100f, Some(3)),
            (0x1010, Some(7)),
            (0x101f, Some(7)),
            (0x1020, None),
            (0x2000, None),
            (0x2008, Some(3)),
            (u64::MAX, Some(1)),
        ];
        for (address, answer) in expected {
            assert_eq!(table.get(address), answer, "{address:#x}");
        }
        assert_eq!(columns.answers, [4, 8, 0, 4, 0, 2], "equal neighbours are one entry");
        // A run is like all of its addresses, and may contain others.
        let run = |first, last| AnswerRun { first, last, answer: Some(3) };
        let runs = [&with_hole[3..], &[run(0x1000, 0x1008), run(0x1004, 0x1006)]].concat();
        assert_eq!(answers_of(runs), columns);
        assert_eq!(AnswerTable::read(None).get(5), None);
    }

    #[test]
    fn frames_share_outer_frames_and_loops_end() {
        let frame = |name: &str, line| LineFrame {
            name: Some(name.into()),
            file: Some("a.c".into()),
            line,
            column: 0,
        };
        let (mut frames, mut texts) = (FrameWriter::default(), TextColumnWriter::default());
        let first = [frame("inner", 3), frame("main", 9)];
        let second = [frame("other", 4), frame("main", 9)];
        let numbers = [frames.add(&first, &mut texts), frames.add(&second, &mut texts)];
        assert_eq!(numbers, [Some(1), Some(2)]);
        assert_eq!(frames.add(&first, &mut texts), Some(1));
        assert_eq!(frames.add(&[], &mut texts), None);
        let table = TextTable::read(texts.texts, &texts.lengths);
        let shared = &mut SharedTexts::default();
        assert_eq!(frames.columns.get(1, &table, shared), first);
        assert_eq!(frames.columns.get(2, &table, shared), second);
        let mut hostile = frames.columns;
        hostile.outers = vec![1, 2, 3];
        assert_eq!(hostile.get(2, &table, shared).len(), 1);
        assert_eq!(hostile.get(9, &table, shared).len(), 1);
    }
}
