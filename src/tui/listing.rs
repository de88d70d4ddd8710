//! Code with weights, as the pane of source and assembly shows it: lines of either, already in their order.

/// One line of source or one instruction.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Line {
    /// Line in the source file, or the instruction's address.
    pub number: u64,
    /// It is an instruction.
    pub is_code: bool,
    /// The line of source, or the instruction. Foreign text.
    pub text: String,
    /// Periods by event; empty where nothing was sampled.
    pub weights: Vec<u64>,
    /// Index of the line that it jumps to.
    pub jump: Option<usize>,
}

/// A function's code.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Listing {
    /// Which function, where from. Foreign text.
    pub title: String,
    /// The lines.
    pub lines: Vec<Line>,
    /// Sums of the weights by event.
    pub totals: Vec<u64>,
    /// What is missing and what to do about it. Foreign text.
    pub notes: Vec<String>,
}
