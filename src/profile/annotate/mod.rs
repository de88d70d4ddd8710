//! A function's code with what each part of it cost: instructions, source lines, inlined functions, jumps.
//!
//! Receives instructions and the frames at each (`symbol`), the text of source files, and samples by address;
//! hands on a read-only [`Listing`] with values for every event. Pure. Decides the order of rows; wording and
//! widths are `view`'s.
//!
//! ```text
//!   instructions --+                        +--> rows:  function, source line, instruction, …
//!   frames --------+--> merge --> Listing --+--> lines: each source line with its cost
//!   samples -------+                        '--> jumps: arrows between instructions, by lane
//! ```

pub mod arrows;
pub mod merge;

use std::ops::Range;
use std::sync::Arc;

use super::sampled::{ShareOf, half_width};
pub use crate::session::Value;
pub use crate::symbol::disassemble::{Flow, Instruction, Target};
pub use arrows::Jump;
pub use merge::{Input, Place, merge};

/// Version of the JSON document; it grows when a field changes its meaning.
pub const VERSION: u32 = 1;

/// One function, annotated.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// Its demangled name; foreign, as all text here.
    pub symbol: String,
    /// Its name as the symbol table has it.
    pub raw: String,
    /// Short name of its module.
    pub dso: String,
    /// The module's path.
    pub path: String,
    /// Where its code starts, in the module's own numbering.
    pub start: u64,
    /// Bytes of code; 0 when not known.
    pub size: u64,
    /// One an event of the recording, in its order.
    pub events: Vec<Event>,
    /// Source files, by the number that rows and lines name.
    pub files: Vec<File>,
    /// The code from top to bottom.
    pub rows: Vec<Row>,
    /// Each source line that has code or lies between such lines, by file and number.
    pub lines: Vec<Line>,
    /// Jumps inside of the function, whose ends are shown.
    pub jumps: Vec<Jump>,
    /// Lanes that the arrows take.
    pub lanes: usize,
    /// Where the bytes came from; `None` when there are none.
    pub bytes_from: Option<String>,
    /// What is missing or doubtful, why, and what to try.
    pub notes: Vec<Note>,
}

/// One event's part.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Event {
    /// Its name.
    pub name: String,
    /// Index of the leader of its group; its own where it is in none.
    pub leader: usize,
    /// All its samples.
    pub total: Value,
    /// Those in this function.
    pub own: Value,
    /// What is known of the distance between the sampled instruction and the one that is to blame.
    pub skid: Skid,
}

/// How far a sample's address may lie behind its cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Skid {
    /// A hardware event, precise level 0: some instructions.
    #[default]
    Any,
    /// A clock or other software event: the instruction that was about to run when the interrupt came, so the
    /// one before (often the slow one) is to blame; in kernel code with interrupts off, the one that switched
    /// them on.
    Interrupt,
    /// Precise level 1: always the same distance.
    Constant,
    /// Precise level 2 or 3: none was asked for.
    None,
}

/// A source file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct File {
    /// Its path, as the compiler was given it.
    pub path: Arc<str>,
    /// Its lines, the first being number 1; `None` when the file is not there.
    pub text: Option<Arc<[String]>>,
}

/// A row of the listing.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// What stands in it.
    pub kind: Kind,
    /// Cost by event. Of an instruction its own; of a source line that of the instructions below it up to the
    /// next row that is none; empty where nothing was sampled.
    pub values: Vec<Value>,
}

/// What stands in a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// From here on the code is this function's: it begins, an inlined one begins, or the outer one goes on.
    Function {
        /// Its name.
        name: Arc<str>,
        /// How many functions it is inlined into.
        depth: usize,
    },
    /// The code below was made of this line.
    Source {
        /// Number in [`Listing::files`].
        file: usize,
        /// Counted from 1.
        line: u32,
        /// How many functions the line's function is inlined into.
        depth: usize,
        /// Whether instructions follow; else it is a line on the way to one.
        has_code: bool,
    },
    /// An instruction.
    Instruction(Box<Instruction>),
    /// A sampled address whose bytes are not to be had.
    Address(u64),
}

/// A source line with its cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Number in [`Listing::files`].
    pub file: usize,
    /// Counted from 1.
    pub line: u32,
    /// Instructions that were made of it.
    pub instructions: usize,
    /// Cost by event; empty where nothing was sampled.
    pub values: Vec<Value>,
}

/// Something the reader should know.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Note {
    /// What is so, and why.
    pub text: String,
    /// What to try.
    pub remedy: Option<String>,
}

/// What a percentage is a part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Basis {
    /// The function's periods.
    #[default]
    LocalPeriod,
    /// The function's samples.
    LocalHits,
    /// All periods of the event.
    GlobalPeriod,
    /// All samples of the event.
    GlobalHits,
}

impl Listing {
    /// The part (0 to 1) that a value is, and half the width of its 95 % confidence interval.
    pub fn share(&self, event: usize, value: &Value, basis: Basis) -> (f64, f64) {
        self.events.get(event).map_or((0.0, 1.0), |event| event.share(value, basis))
    }

    /// The instructions in these rows (indices), and what an event cost there.
    pub fn sum(&self, rows: Range<usize>, event: usize) -> (usize, Value) {
        let rows = self.rows.get(rows).unwrap_or_default().iter().filter(|row| row.is_code());
        rows.fold((0, Value::default()), |(count, mut sum), row| {
            sum += row.value(event);
            (count + 1, sum)
        })
    }

    /// The text of a source line, if its file is there.
    pub fn text(&self, file: usize, line: u32) -> Option<&str> {
        let text = self.files.get(file)?.text.as_ref()?;
        text.get((line as usize).checked_sub(1)?).map(String::as_str)
    }
}

impl Event {
    /// As [`Listing::share`].
    pub fn share(&self, value: &Value, basis: Basis) -> (f64, f64) {
        let (part, whole, of) = match basis {
            Basis::LocalPeriod => (value.period, self.own.period, &self.own),
            Basis::GlobalPeriod => (value.period, self.total.period, &self.total),
            Basis::LocalHits => (value.samples, self.own.samples, &self.own),
            Basis::GlobalHits => (value.samples, self.total.samples, &self.total),
        };
        let by_hits = matches!(basis, Basis::LocalHits | Basis::GlobalHits);
        let draws = if by_hits { of.samples as f64 } else { ShareOf::Period.draws(of) };
        let share = if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        (share, half_width(share, draws))
    }

    /// The function's part of all of the event, with its error.
    pub fn of_all(&self) -> (f64, f64) {
        self.share(&self.own, Basis::GlobalPeriod)
    }
}

impl Row {
    /// Whether an instruction stands in it, or an address in its place.
    pub fn is_code(&self) -> bool {
        matches!(self.kind, Kind::Instruction(_) | Kind::Address(_))
    }

    /// What an event cost here.
    pub fn value(&self, event: usize) -> Value {
        self.values.get(event).cloned().unwrap_or_default()
    }
}

impl Line {
    /// What an event cost here.
    pub fn value(&self, event: usize) -> Value {
        self.values.get(event).cloned().unwrap_or_default()
    }
}
