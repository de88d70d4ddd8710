//! `pmc annotate` as text and JSON.
//!
//! Receives [`Listing`]s and an [`AnnotateLayout`], and chooses wording, column widths and colours. The
//! full-screen view also uses [`operands`] and [`source_line`].

mod json;
mod rows;
mod text;

use std::io::{self, Write};
use std::ops::Range;
use std::path::PathBuf;

use pmc_analysis::analysis::AnalysisRequest;
use pmc_analysis::analysis::annotate::AnnotationRequest;
use pmc_analysis::profile::annotate::{Arrow, Flow, Instruction, Listing, PercentBasis};
use pmc_text::terminal::theme::Background;
use pmc_text::text::clean;

/// Output format of listings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ListingFormat {
    /// Text for a human reader, with arrows and the error of each percentage.
    #[default]
    Text,
    /// One instruction per row in perf's format, for `grep` and `awk`.
    Rows,
    /// A single JSON document for other programs.
    Json,
}

/// Which code to show, and how. A command line makes it.
#[derive(Debug, Clone, Default)]
pub struct AnnotateRequest {
    /// The recording; `None` for standard input if it has data, else `perf.data`.
    pub input: Option<PathBuf>,
    /// Whether to open the full-screen interface if the output is a terminal.
    pub browses: bool,
    /// The terminal's background, if specified.
    pub background: Option<Background>,
    /// Which samples to load.
    pub samples: AnalysisRequest,
    /// The functions.
    pub code: AnnotationRequest,
    pub layout: AnnotateLayout,
}

/// Options for displaying listings.
#[derive(Debug, Clone, Default)]
pub struct AnnotateLayout {
    /// The output format.
    pub form: ListingFormat,
    /// The total that percentages refer to.
    pub basis: PercentBasis,
    /// Whether to show source lines.
    pub source: bool,
    /// Whether to show instructions.
    pub instructions: bool,
    /// Whether to show a column with the number of samples.
    pub show_samples: bool,
    /// Whether to show a column with the sum of periods.
    pub show_period: bool,
    /// Whether to show all events side by side, even if they were not recorded as a group.
    pub group: bool,
    /// Whether to prefix each source line with its file name.
    pub file_names: bool,
    /// Whether to show full paths.
    pub full_paths: bool,
    /// Whether to show the bytes of instructions.
    pub raw_bytes: bool,
    /// Maximum number of rows per function.
    pub rows: usize,
    /// Whether to use colours.
    pub colour: bool,
}

/// Facts about the whole recording.
#[derive(Debug, Clone, Default)]
pub struct AnnotateFacts {
    /// Number of samples of all events.
    pub samples: u64,
    /// Number of lost samples.
    pub lost: u64,
    /// Whether the file is damaged. If so, the number of missing samples is unknown.
    pub is_damaged: bool,
    /// Number of functions with samples.
    pub functions: usize,
    /// Number of requested functions that are not shown.
    pub left_out: usize,
    /// Notes about the file.
    pub notes: Vec<String>,
}

/// Writes all listings in the format of `layout`.
pub fn write(
    out: &mut dyn Write,
    listings: &[Listing],
    facts: &AnnotateFacts,
    layout: &AnnotateLayout,
) -> io::Result<()> {
    match layout.form {
        ListingFormat::Text => text::write(out, listings, facts, layout),
        ListingFormat::Rows => rows::write(out, listings, facts, layout),
        ListingFormat::Json => json::write(out, listings, facts, layout),
    }
}

/// Returns an instruction's operands with the name of its target, safe to print on a terminal.
pub fn operands(listing: &Listing, instruction: &Instruction) -> String {
    let mut text = instruction.operands.to_string();
    if let Some(target) = &instruction.target {
        let inside = target.address.wrapping_sub(listing.start) < listing.size.max(1);
        let words = match &target.name {
            // A jump from inside the function to its own start is a loop, not a call.
            Some((name, 0)) if !inside || instruction.flow == Flow::Call => clean(name).into_owned(),
            Some((name, into)) if !inside => format!("{}+{into:#x}", clean(name)),
            _ => format!("{:x}", target.address),
        };
        text = instruction.operands_with_target(&words);
    }
    if let Some(refers) = &instruction.refers {
        text.push_str(&match &refers.name {
            Some((name, 0)) => format!("  # {:x} {}", refers.address, clean(name)),
            Some((name, into)) => format!("  # {:x} {}+{into:#x}", refers.address, clean(name)),
            None => format!("  # {:x}", refers.address),
        });
    }
    text
}

/// Returns the `size` consecutive rows of `count` whose total cost is highest.
fn window(size: usize, count: usize, period: impl Fn(usize) -> u64) -> Range<usize> {
    if size >= count {
        return 0..count;
    }
    let period = |at: usize| u128::from(period(at));
    let mut sum: u128 = (0..size).map(period).sum();
    let (mut best, mut start) = (sum, 0);
    // If consecutive windows have the same cost, choose the middle one, so that the hot rows are centred.
    let mut last = 0;
    for at in 1..=count - size {
        sum = sum + period(at + size - 1) - period(at - 1);
        if sum > best {
            (best, start, last) = (sum, at, at);
        } else if sum == best && last + 1 == at {
            last = at;
        }
    }
    let start = start + (last - start) / 2;
    start..start + size
}

/// Returns the arrows of all rows. Each jump is recorded only at its two ends, and running sums fill in the
/// rows in between.
fn all_arrows(listing: &Listing) -> Vec<String> {
    if listing.lanes == 0 {
        return Vec::new();
    }
    let count = listing.rows.len();
    let mut cells = vec![ArrowCells::default(); count];
    // For each row and lane, the change in the number of arrows that come from above, and in the number that
    // continue below.
    let mut steps = vec![vec![(0i32, 0i32); count + 1]; listing.lanes];
    for jump in listing.jumps.iter().filter(|jump| jump.span().1 < count) {
        let (top, bottom) = jump.span();
        let lane = &mut steps[jump.lane];
        lane[top + 1].0 += 1;
        lane[bottom + 1].0 -= 1;
        lane[top].1 += 1;
        lane[bottom].1 -= 1;
        cells[jump.from].add(jump, jump.from);
        cells[jump.to].add(jump, jump.to);
    }
    for (lane, steps) in steps.iter().enumerate() {
        let (mut up, mut down) = (0, 0);
        for (cells, (up_step, down_step)) in cells.iter_mut().zip(steps) {
            (up, down) = (up + up_step, down + down_step);
            cells.up |= u32::from(up > 0) << lane;
            cells.down |= u32::from(down > 0) << lane;
        }
    }
    cells.iter().map(|cells| cells.draw(listing.lanes)).collect()
}

/// The parts of arrows in one row, with one bit per lane.
#[derive(Debug, Clone, Copy, Default)]
struct ArrowCells {
    /// Lanes with an arrow that comes from above.
    up: u32,
    /// Lanes with an arrow that continues below.
    down: u32,
    /// Lanes with an arrow that starts or ends in this row.
    ends: u32,
    /// Whether a jump leads to this row.
    is_target: bool,
}

impl ArrowCells {
    fn add(&mut self, jump: &Arrow, row: usize) {
        let (top, bottom) = jump.span();
        if row < top || row > bottom {
            return;
        }
        let bit = 1 << jump.lane;
        self.up |= if row > top { bit } else { 0 };
        self.down |= if row < bottom { bit } else { 0 };
        self.ends |= if row == jump.from || row == jump.to { bit } else { 0 };
        self.is_target |= row == jump.to;
    }

    fn draw(&self, lanes: usize) -> String {
        let mut out = String::new();
        if lanes == 0 {
            return out;
        }
        // Whether a horizontal line from the end of an outer arrow crosses this lane.
        let mut runs = false;
        for lane in (0..lanes).rev() {
            let has = |bits: u32| bits >> lane & 1 == 1;
            out.push(match (has(self.up), has(self.down), has(self.ends), runs) {
                (true, true, _, true) => '┼',
                (true, true, true, false) => '├',
                (true, true, false, false) => '│',
                (false, true, true, true) => '┬',
                (false, true, true, false) => '╭',
                (true, false, true, true) => '┴',
                (true, false, true, false) => '╰',
                (_, _, true, _) | (_, _, _, true) => '─',
                _ => ' ',
            });
            runs |= has(self.ends);
        }
        out.push(if self.is_target {
            '▸'
        } else if runs {
            '─'
        } else {
            ' '
        });
        out
    }
}

/// Returns a source line that is safe to print on a terminal, with tabs expanded to spaces.
pub fn source_line(text: &str) -> String {
    const TAB: usize = 8;
    if !text.contains('\t') {
        return clean(text).into_owned();
    }
    let mut out = String::new();
    for part in text.split_inclusive('\t') {
        out.push_str(&clean(part.trim_end_matches('\t')));
        if part.ends_with('\t') {
            let column = pmc_text::text::width(&out);
            out.extend(std::iter::repeat_n(' ', TAB - column % TAB));
        }
    }
    out
}

/// Returns a file's full path, or only the last component if `full` is false.
fn file_name(path: &str, full: bool) -> String {
    let shown = if full { path } else { path.rsplit('/').next().unwrap_or(path) };
    clean(shown).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmc_analysis::profile::annotate::arrows::lanes;
    use pmc_analysis::profile::annotate::{InstructionTarget, ListingRow, RowContent};

    #[test]
    fn branch_targets_are_named() {
        let listing = Listing { start: 0x1000, size: 0x100, ..Listing::default() };
        let make = |operands: &str, flow, address, name: Option<(&str, u64)>| Instruction {
            operands: operands.into(),
            flow,
            target: Some(InstructionTarget { address, name: name.map(|(n, o)| (n.to_owned(), o)) }),
            ..Instruction::default()
        };
        let call = make("0x2000", Flow::Call, 0x2000, Some(("puts@plt", 0)));
        assert_eq!(operands(&listing, &call), "puts@plt");
        let jump = make("w0, #3, #0x1010", Flow::Jump, 0x1010, Some(("self", 0x10)));
        assert_eq!(operands(&listing, &jump), "w0, #3, 1010");
        let tail = make("0x3010", Flow::Jump, 0x3010, Some(("evil\u{1b}[2J", 0x10)));
        assert_eq!(operands(&listing, &tail), "evil?[2J+0x10");
        let data = Instruction {
            operands: "0x10(%rip), %rax".into(),
            refers: Some(InstructionTarget { address: 0x4000, name: None }),
            ..Instruction::default()
        };
        assert_eq!(operands(&listing, &data), "0x10(%rip), %rax  # 4000");
    }

    #[test]
    fn jump_arrows_are_drawn() {
        let (jumps, lanes) = lanes(vec![(0, 4), (2, 3), (5, 5)]);
        let row = ListingRow { kind: RowContent::Address(0), values: Vec::new() };
        let listing = Listing { jumps, lanes, rows: vec![row; 6], ..Listing::default() };
        assert_eq!(all_arrows(&listing), ["╭──", "│  ", "│╭─", "│╰▸", "╰─▸", " ─▸"]);
        assert!(all_arrows(&Listing::default()).is_empty());
    }

    #[test]
    fn tabs_are_expanded() {
        assert_eq!(source_line("\tx\ty\u{1b}"), "        x       y?");
        assert_eq!(source_line("plain"), "plain");
    }
}
