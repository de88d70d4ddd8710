//! Merges instructions, their functions and source lines, and samples into one listing.
//!
//! Receives instructions, functions and samples by address, and the lines of source files. Places function
//! headings and source lines between the instructions. Also selects which source lines without code to show
//! before the next line with code.
//!
//! ```text
//!   source 12   for (…)                  the line of the instructions below
//!       1139   mov
//!   weigh (inlined)                      start of another function
//!   source  3     // how heavy it is     a line without code before the next one with code
//!   source  4     return x * 31;
//!       113c   imul
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Listing, ListingRow, RowContent, SourceFile, SourceLine, arrows};
use crate::session::SampleValue;
use pmc_symbols::symbol::disassemble::{Flow, Instruction};
use pmc_symbols::symbol::source_text::SourceLines;

/// Maximum number of lines without code shown before a line with code.
const ON_THE_WAY: u32 = 6;

/// One of the functions at an address, and the source line in that function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InlineFrame {
    /// The function's demangled name.
    pub(crate) function: Arc<str>,
    pub(crate) file: Option<Arc<str>>,
    /// The line number; 0 if unknown.
    pub(crate) line: u32,
}

/// The functions at an address, innermost first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct InlineStack {
    pub(crate) address: u64,
    /// The functions; empty if they are unknown. The last function contains the code, and all others are
    /// inlined into it.
    pub(crate) steps: Vec<InlineFrame>,
}

/// The input of [`merge`].
#[derive(Debug, Clone, Default)]
pub(crate) struct MergeInput {
    /// Instructions by address; empty if the bytes are not available.
    pub(crate) instructions: Vec<Instruction>,
    /// The functions at each instruction, by address. If there are no instructions, the functions at each
    /// sampled address.
    pub(crate) places: Vec<InlineStack>,
    /// The address, event index and cost of samples, in any order.
    pub(crate) samples: Vec<(u64, usize, SampleValue)>,
    /// Lines of source files, by path.
    pub(crate) sources: FxHashMap<Arc<str>, SourceLines>,
}

/// Builds the listing. `head` contains everything except the code. This function fills in the rows, lines,
/// files and jumps, and each event's `own` value.
pub(crate) fn merge(head: Listing, input: MergeInput) -> Listing {
    let events = head.events.len();
    let costs = costs(&input, events);
    let mut writer = ListingWriter {
        listing: head,
        places: input.places,
        sources: input.sources,
        file_numbers: FxHashMap::default(),
        coded: FxHashSet::default(),
        lines: BTreeMap::new(),
        shown: FxHashMap::default(),
        last: None,
        open: None,
        events,
    };
    for values in costs.values() {
        for (event, value) in writer.listing.events.iter_mut().zip(values) {
            event.own += value;
        }
    }
    writer.find_coded(&input.instructions);
    let behind = input.instructions.last().map_or(0, Instruction::end);
    for instruction in input.instructions {
        let values = costs.get(&instruction.address).cloned().unwrap_or_default();
        writer.place(instruction.address, &values);
        writer.push(RowContent::Instruction(Box::new(instruction)), values);
    }
    // Samples after the last instruction, where the instruction bytes are missing or incomplete.
    for (address, values) in costs.into_iter().filter(|(address, _)| *address >= behind) {
        writer.place(address, &values);
        writer.push(RowContent::Address(address), values);
    }
    writer.finish()
}

/// Sums up the cost of each instruction. A sample whose address is inside an instruction counts for that
/// instruction.
fn costs(input: &MergeInput, events: usize) -> BTreeMap<u64, Vec<SampleValue>> {
    let mut costs: BTreeMap<u64, Vec<SampleValue>> = BTreeMap::new();
    for (address, event, value) in &input.samples {
        let before = input.instructions.partition_point(|i| i.address <= *address).checked_sub(1);
        let holder = before.map(|at| &input.instructions[at]).filter(|i| *address < i.end());
        let at = holder.map_or(*address, |i| i.address);
        if let Some(sum) =
            costs.entry(at).or_insert_with(|| vec![SampleValue::default(); events]).get_mut(*event)
        {
            *sum += value;
        }
    }
    costs
}

fn add(sums: &mut Vec<SampleValue>, values: &[SampleValue], events: usize) {
    if values.is_empty() {
        return;
    }
    sums.resize(events, SampleValue::default());
    for (sum, value) in sums.iter_mut().zip(values) {
        *sum += value;
    }
}

/// Functions, innermost first, and the source line as file number and line number.
type FrameContext = (Vec<Arc<str>>, Option<(usize, u32)>);

struct ListingWriter {
    listing: Listing,
    places: Vec<InlineStack>,
    sources: FxHashMap<Arc<str>, SourceLines>,
    file_numbers: FxHashMap<Arc<str>, usize>,
    /// Source lines that have code, as file number and line number.
    coded: FxHashSet<(usize, u32)>,
    lines: BTreeMap<(usize, u32), (usize, Vec<SampleValue>)>,
    /// For each file, the last line shown so far.
    shown: FxHashMap<usize, u32>,
    /// Functions and source line of the previous row.
    last: Option<FrameContext>,
    /// Row of the source line to which the next instructions belong.
    open: Option<usize>,
    events: usize,
}

impl ListingWriter {
    fn steps(&self, address: u64) -> &[InlineFrame] {
        match self.places.binary_search_by_key(&address, |place| place.address) {
            Ok(at) => &self.places[at].steps,
            Err(_) => &[],
        }
    }

    fn file(&mut self, path: &Arc<str>) -> usize {
        if let Some(number) = self.file_numbers.get(path) {
            return *number;
        }
        let number = self.listing.files.len();
        self.listing.files.push(SourceFile { path: path.clone(), text: self.sources.get(path).cloned() });
        self.file_numbers.insert(path.clone(), number);
        number
    }

    fn line_of(&mut self, address: u64) -> Option<(usize, u32)> {
        let step = self.steps(address).first()?;
        let (path, line) = (step.file.clone()?, step.line);
        (line > 0).then(|| (self.file(&path), line))
    }

    fn find_coded(&mut self, instructions: &[Instruction]) {
        for instruction in instructions {
            if let Some(line) = self.line_of(instruction.address) {
                self.coded.insert(line);
            }
        }
    }

    /// Adds the rows that precede an address, and adds the cost at the address to its source line.
    fn place(&mut self, address: u64, values: &[SampleValue]) {
        let functions: Vec<Arc<str>> = self.steps(address).iter().map(|step| step.function.clone()).collect();
        let line = self.line_of(address);
        if let Some(line) = line {
            let sums = self.lines.entry(line).or_default();
            sums.0 += 1;
            add(&mut sums.1, values, self.events);
        }
        let depth = functions.len().saturating_sub(1);
        let same_functions = self.last.as_ref().is_some_and(|(last, _)| *last == functions);
        let same_line = same_functions && self.last.as_ref().is_some_and(|(_, last)| *last == line);
        if !same_functions && let Some(name) = functions.first() {
            let begins = self.last.is_none() && depth == 0;
            // The start of the annotated function needs no heading, because the listing already has a title.
            if !begins {
                self.push(RowContent::Function { name: name.clone(), depth }, Vec::new());
            }
            self.open = None;
        }
        if !same_line {
            self.open = None;
            if let Some((file, line)) = line {
                self.on_the_way(file, line, depth);
                self.push(RowContent::Source { file, line, depth, has_code: true }, Vec::new());
                self.open = Some(self.listing.rows.len() - 1);
                let shown = self.shown.entry(file).or_default();
                *shown = line.max(*shown);
            }
        }
        if let Some(open) = self.open {
            add(&mut self.listing.rows[open].values, values, self.events);
        }
        self.last = Some((functions, line));
    }

    /// Adds the lines without code (comments, braces, declarations) between the last shown line and this
    /// line.
    fn on_the_way(&mut self, file: usize, line: u32, depth: usize) {
        let Some(text) = self.listing.files[file].text.clone() else { return };
        let Some(shown) = self.shown.get(&file).copied().filter(|shown| *shown < line) else { return };
        let first = shown.saturating_add(1).max(line.saturating_sub(ON_THE_WAY));
        for between in first..line {
            let is_there = text.get(between).is_some();
            if is_there && !self.coded.contains(&(file, between)) {
                self.push(RowContent::Source { file, line: between, depth, has_code: false }, Vec::new());
            }
        }
    }

    fn push(&mut self, kind: RowContent, values: Vec<SampleValue>) {
        self.listing.rows.push(ListingRow { kind, values });
    }

    fn finish(mut self) -> Listing {
        let mut rows: FxHashMap<u64, usize> = FxHashMap::default();
        for (row, of) in self.listing.rows.iter().enumerate() {
            if let RowContent::Instruction(instruction) = &of.kind {
                rows.insert(instruction.address, row);
            }
        }
        let jumps = self.listing.rows.iter().enumerate().filter_map(|(row, of)| match &of.kind {
            RowContent::Instruction(instruction) if instruction.flow == Flow::Jump => {
                Some((row, *rows.get(&instruction.target.as_ref()?.address)?))
            }
            _ => None,
        });
        (self.listing.jumps, self.listing.lanes) = arrows::lanes(jumps.collect());
        self.listing.lines = self.all_lines();
        self.listing
    }

    /// Returns the lines with code. If the text is available, also returns the lines in small gaps between
    /// them.
    fn all_lines(&mut self) -> Vec<SourceLine> {
        let mut all: Vec<SourceLine> = Vec::new();
        for ((file, line), (instructions, values)) in std::mem::take(&mut self.lines) {
            let before = all.last().filter(|before| before.file == file).map(|before| before.line);
            if let Some(before) = before.filter(|before| line - before <= 2 * ON_THE_WAY) {
                let gap = (before + 1..line).filter(|line| self.listing.text(file, *line).is_some());
                all.extend(gap.map(|line| SourceLine { file, line, instructions: 0, values: Vec::new() }));
            }
            all.push(SourceLine { file, line, instructions, values });
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::super::{InstructionTarget, ListingEvent, PercentBasis};
    use super::*;

    fn instruction(address: u64, bytes: usize, target: Option<u64>) -> Instruction {
        Instruction {
            address,
            bytes: vec![0x90; bytes].into(),
            mnemonic: if target.is_some() { "jmp" } else { "nop" }.into(),
            flow: if target.is_some() { Flow::Jump } else { Flow::Next },
            target: target.map(|address| InstructionTarget { address, name: None }),
            ..Instruction::default()
        }
    }

    fn place(address: u64, steps: &[(&str, u32)]) -> InlineStack {
        let step = |(function, line): &(&str, u32)| InlineFrame {
            function: (*function).into(),
            file: Some("a.c".into()),
            line: *line,
        };
        InlineStack { address, steps: steps.iter().map(step).collect() }
    }

    fn value(samples: u64) -> SampleValue {
        SampleValue {
            samples,
            period: samples * 10,
            squares: samples as f64 * 100.0,
            ..SampleValue::default()
        }
    }

    fn input() -> MergeInput {
        let text = SourceLines::whole((1..=20).map(|n| format!("line {n}")).collect());
        MergeInput {
            instructions: vec![
                instruction(100, 4, None),
                instruction(104, 2, None),
                instruction(106, 2, Some(100)),
                instruction(108, 1, None),
            ],
            places: vec![
                place(100, &[("f", 5)]),
                place(104, &[("inl", 2), ("f", 8)]),
                place(106, &[("f", 8)]),
                place(108, &[("f", 5)]),
            ],
            // 102 is inside the first instruction, 300 is after the last.
            samples: vec![
                (100, 0, value(3)),
                (102, 0, value(1)),
                (104, 0, value(4)),
                (104, 1, value(2)),
                (300, 0, value(2)),
            ],
            sources: [("a.c".into(), text)].into_iter().collect(),
        }
    }

    fn head() -> Listing {
        Listing {
            events: vec![
                ListingEvent { total: value(20), ..ListingEvent::default() },
                ListingEvent::default(),
            ],
            ..Listing::default()
        }
    }

    #[test]
    fn rows_start_where_line_or_function_changes() {
        let listing = merge(head(), input());
        let seen: Vec<String> = listing
            .rows
            .iter()
            .map(|row| match &row.kind {
                RowContent::Function { name, depth } => format!("{name}/{depth}"),
                RowContent::Source { line, has_code, .. } => {
                    format!("{line}{}", if *has_code { "" } else { "-" })
                }
                RowContent::Instruction(i) => format!("@{}={}", i.address, row.value(0).samples),
                RowContent::Address(address) => format!("?{address}"),
            })
            .collect();
        assert_eq!(
            seen,
            ["5", "@100=4", "inl/1", "2", "@104=4", "f/0", "6-", "7-", "8", "@106=0", "5", "@108=0", "?300"]
        );
        assert_eq!(listing.rows[0].value(0).samples, 4, "a source row has what is below it");
        assert_eq!(listing.events[0].own.samples, 10);
        assert_eq!(listing.rows[4].value(1).samples, 2, "each event has its own");
        assert_eq!(listing.jumps.iter().map(|j| (j.from, j.to)).collect::<Vec<_>>(), [(9, 1)]);
    }

    #[test]
    fn every_sample_is_in_one_row_and_line_totals_add_up() {
        let listing = merge(head(), input());
        let code = listing
            .rows
            .iter()
            .filter(|r| matches!(r.kind, RowContent::Instruction(_) | RowContent::Address(_)));
        assert_eq!(code.map(|row| row.value(0).samples).sum::<u64>(), 10);
        let lines: Vec<_> =
            listing.lines.iter().map(|l| (l.line, l.instructions, l.value(0).samples)).collect();
        assert_eq!(lines, [(2, 1, 4), (3, 0, 0), (4, 0, 0), (5, 2, 4), (6, 0, 0), (7, 0, 0), (8, 1, 0)]);
        let (share, error) = listing.share(0, &value(4), PercentBasis::LocalPeriod);
        assert!((share - 0.4).abs() < 1e-9 && (0.2..0.35).contains(&error), "{share} {error}");
        assert!((listing.share(0, &value(4), PercentBasis::GlobalHits).0 - 0.2).abs() < 1e-9);
        assert!((listing.events[0].of_all().0 - 0.5).abs() < 1e-9);
    }

    #[test]
    fn without_code_bytes_only_sampled_addresses_are_listed() {
        let listing = merge(head(), MergeInput { instructions: Vec::new(), ..input() });
        let addresses: Vec<u64> = listing
            .rows
            .iter()
            .filter_map(|row| match row.kind {
                RowContent::Address(address) => Some(address),
                _ => None,
            })
            .collect();
        assert_eq!(addresses, [100, 102, 104, 300]);
        assert_eq!(listing.lines.iter().filter(|l| l.instructions > 0).count(), 2);
    }
}
