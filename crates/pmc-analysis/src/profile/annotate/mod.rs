//! A function's code annotated with costs: instructions, source lines, inlined functions, jumps.
//!
//! Receives instructions with the frames at each of them (from `symbol`), the text of source files, and
//! samples by address. Returns a read-only [`Listing`] with values for every event. Pure. Decides the order
//! of rows; `view` decides wording and widths.
//!
//! ```text
//!   instructions --+                        +--> rows:  function, source line, instruction, …
//!   frames --------+--> merge --> Listing --+--> lines: each source line with its cost
//!   samples -------+                        '--> jumps: arrows between instructions, by lane
//! ```

pub mod arrows;
pub(crate) mod merge;

use std::ops::Range;
use std::sync::Arc;

use super::sampled::{ShareOf, half_width};
pub use crate::session::SampleValue;
pub use arrows::Arrow;
pub(crate) use merge::{InlineStack, MergeInput, merge};
pub use pmc_symbols::symbol::disassemble::{Flow, Instruction, InstructionTarget};
use pmc_symbols::symbol::source_text::SourceLines;

/// Version of the JSON document; incremented when a field changes its meaning.
pub const VERSION: u32 = 1;

/// An annotated function.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// The function's demangled name. Untrusted, like all text here.
    pub symbol: String,
    /// The function's name in the symbol table.
    pub raw: String,
    /// Short name of the function's module.
    pub dso: String,
    /// The module's path.
    pub path: String,
    /// Start address of the code, in the module's own address space.
    pub start: u64,
    /// Size of the code in bytes; 0 if unknown.
    pub size: u64,
    /// The recording's events, in order.
    pub events: Vec<ListingEvent>,
    /// Source files, indexed by the file numbers in rows and lines.
    pub files: Vec<SourceFile>,
    /// The code from top to bottom.
    pub rows: Vec<ListingRow>,
    /// Source lines with code and the lines between them, by file and line number.
    pub lines: Vec<SourceLine>,
    /// Jumps inside the function, if both ends are shown.
    pub jumps: Vec<Arrow>,
    /// Number of lanes that the arrows use.
    pub lanes: usize,
    /// Where the instruction bytes come from; `None` if there are no bytes.
    pub bytes_from: Option<String>,
    /// Notes about missing or doubtful data, each with the reason and a remedy.
    pub notes: Vec<ListingNote>,
}

/// An event, with its cost.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ListingEvent {
    /// The event's name.
    pub name: String,
    /// Index of the group's leader; the event's own index if it does not belong to a group.
    pub leader: usize,
    /// Cost of all samples of the event.
    pub total: SampleValue,
    /// Cost of the samples in this function.
    pub own: SampleValue,
    /// Distance from the instruction that caused a sample to the sampled instruction.
    pub skid: Skid,
}

/// Distance from the instruction that caused a sample to the sampled address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Skid {
    /// A few instructions: a hardware event with precise level 0.
    #[default]
    Any,
    /// A clock or another software event. The sample contains the instruction that would have run next when
    /// the interrupt occurred. The cause is the instruction before it, which is often slow. In kernel code
    /// with interrupts disabled, the cause is the instruction that enabled them.
    Interrupt,
    /// A constant distance: precise level 1.
    Constant,
    /// No distance: precise level 2 or 3, at which the recorder requests zero skid.
    None,
}

/// A source file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceFile {
    /// The file's path, as given to the compiler.
    pub path: Arc<str>,
    /// The file's lines, starting with line 1; `None` if the file is missing.
    pub text: Option<SourceLines>,
}

/// A row of the listing.
#[derive(Debug, Clone, PartialEq)]
pub struct ListingRow {
    /// Content of the row.
    pub kind: RowContent,
    /// Cost per event. An instruction's value is its own cost. A source line's value is the cost of the
    /// instructions directly below it.
    pub values: Vec<SampleValue>,
}

/// Content of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum RowContent {
    /// Heading above the code of a function: the annotated function, an inlined function, or an outer
    /// function that continues here.
    Function {
        /// The function's name.
        name: Arc<str>,
        /// Number of functions that this function is inlined into.
        depth: usize,
    },
    /// The source line of the code below it.
    Source {
        /// Index in [`Listing::files`].
        file: usize,
        /// Line number, counted from 1.
        line: u32,
        /// Number of functions that the line's function is inlined into.
        depth: usize,
        /// Whether instructions of this line follow. Otherwise the line is only shown before a line with
        /// code.
        has_code: bool,
    },
    /// An instruction.
    Instruction(Box<Instruction>),
    /// A sampled address whose instruction bytes are not available.
    Address(u64),
}

/// A source line with its cost.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceLine {
    /// Index in [`Listing::files`].
    pub file: usize,
    /// Line number, counted from 1.
    pub line: u32,
    /// Number of instructions compiled from the line.
    pub instructions: usize,
    /// Cost per event; empty without samples.
    pub values: Vec<SampleValue>,
}

/// A note to the reader.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListingNote {
    /// The problem and its cause.
    pub text: String,
    /// Suggested remedy.
    pub remedy: Option<String>,
}

/// The total that a percentage refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PercentBasis {
    /// The sum of the periods in the function.
    #[default]
    LocalPeriod,
    /// The number of samples in the function.
    LocalHits,
    /// The sum of all periods of the event.
    GlobalPeriod,
    /// The number of all samples of the event.
    GlobalHits,
}

impl Listing {
    /// Returns a value's share (0 to 1), and half the width of its 95 % confidence interval.
    pub fn share(&self, event: usize, value: &SampleValue, basis: PercentBasis) -> (f64, f64) {
        self.events.get(event).map_or((0.0, 1.0), |event| event.share(value, basis))
    }

    /// Returns the number of instructions in a range of rows, and the cost of an event in these rows.
    pub fn sum(&self, rows: Range<usize>, event: usize) -> (usize, SampleValue) {
        let rows = self.rows.get(rows).unwrap_or_default().iter().filter(|row| row.is_code());
        rows.fold((0, SampleValue::default()), |(count, mut sum), row| {
            sum += row.value(event);
            (count + 1, sum)
        })
    }

    /// Returns the text of a source line, if its file is available.
    pub fn text(&self, file: usize, line: u32) -> Option<&str> {
        self.files.get(file)?.text.as_ref()?.get(line)
    }
}

impl ListingEvent {
    /// Returns a value's share and its error, like [`Listing::share`].
    pub(crate) fn share(&self, value: &SampleValue, basis: PercentBasis) -> (f64, f64) {
        let (part, whole, of) = match basis {
            PercentBasis::LocalPeriod => (value.period, self.own.period, &self.own),
            PercentBasis::GlobalPeriod => (value.period, self.total.period, &self.total),
            PercentBasis::LocalHits => (value.samples, self.own.samples, &self.own),
            PercentBasis::GlobalHits => (value.samples, self.total.samples, &self.total),
        };
        let by_hits = matches!(basis, PercentBasis::LocalHits | PercentBasis::GlobalHits);
        let draws = if by_hits { of.samples as f64 } else { ShareOf::Period.draws(of) };
        let share = if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        (share, half_width(share, draws))
    }

    /// Returns the function's share of all periods of the event, with its error.
    pub fn of_all(&self) -> (f64, f64) {
        self.share(&self.own, PercentBasis::GlobalPeriod)
    }
}

impl ListingRow {
    /// Whether the row is an instruction or an address.
    pub fn is_code(&self) -> bool {
        matches!(self.kind, RowContent::Instruction(_) | RowContent::Address(_))
    }

    /// Returns an event's cost in this row.
    pub fn value(&self, event: usize) -> SampleValue {
        self.values.get(event).cloned().unwrap_or_default()
    }
}

impl SourceLine {
    /// Returns an event's cost in this line.
    pub fn value(&self, event: usize) -> SampleValue {
        self.values.get(event).cloned().unwrap_or_default()
    }
}
