//! The cells of rows.

use super::strings::StringId;

/// One cell of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RowCell {
    /// Text.
    Text(StringId),
    /// A function, with the letter of its CPU mode.
    Symbol(char, StringId),
    /// A line in a source file.
    Line(StringId, u32),
    /// An offset in bytes from the start of a function, with the letter of its CPU mode.
    Offset(char, StringId, u32),
    /// Code without source lines: offset in bytes from the start of a function, as perf shows it for
    /// `srcline`.
    InFunction(StringId, u32),
    /// Code without source lines or symbols: an address in the module's own address space.
    InModule(StringId, u64),
    /// A thread or process: its ID and last name.
    Task(i64, StringId),
    /// A number.
    Number(i64),
    /// An address.
    Address(u64),
    /// Time in nanoseconds.
    Time(u64),
    /// An unknown value.
    Unknown,
}
