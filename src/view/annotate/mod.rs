//! `pmc annotate` as text and JSON.
//!
//! Receives [`Listing`]s and a [`Layout`]; decides words, widths and colours. What a terminal's screen needs of it too
//! ([`operands`], [`arrows`], [`source_line`]) is public.

mod json;
mod text;

use std::io::{self, Write};

use crate::profile::annotate::{Basis, Flow, Instruction, Listing};
use crate::text::clean;

/// How listings are shown.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    /// One document.
    pub json: bool,
    /// What percentages are parts of.
    pub basis: Basis,
    /// Source lines are shown.
    pub source: bool,
    /// Instructions are shown.
    pub instructions: bool,
    /// Numbers of samples as columns.
    pub show_samples: bool,
    /// Each source line has its file's name.
    pub file_names: bool,
    /// Paths are not shortened.
    pub full_paths: bool,
    /// The bytes of instructions.
    pub raw_bytes: bool,
    /// At most so many rows of a function.
    pub rows: usize,
    /// With colours.
    pub colour: bool,
}

/// What is known of the recording as a whole.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Samples of all events.
    pub samples: u64,
    /// What was lost.
    pub lost: u64,
    /// Functions with samples.
    pub functions: usize,
    /// Functions that were asked for but are not shown.
    pub left_out: usize,
    /// What is worth knowing about the file.
    pub notes: Vec<String>,
}

/// Writes all of it.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, listings: &[Listing], facts: &Facts, layout: &Layout) -> io::Result<()> {
    if layout.json {
        json::write(out, listings, facts, layout)
    } else {
        text::write(out, listings, facts, layout)
    }
}

/// An instruction's operands with the names of what it leads to, harmless for a terminal.
pub fn operands(listing: &Listing, instruction: &Instruction) -> String {
    let mut text = instruction.operands.to_string();
    if let Some(target) = &instruction.target {
        let inside = target.address.wrapping_sub(listing.start) < listing.size.max(1);
        let words = match &target.name {
            // A jump to the function's own beginning from inside is a loop, not a call.
            Some((name, 0)) if !inside || instruction.flow == Flow::Call => clean(name).into_owned(),
            Some((name, into)) if !inside => format!("{}+{into:#x}", clean(name)),
            _ => format!("{:x}", target.address),
        };
        let start = text.rfind(", ").map_or(0, |at| at + 2);
        text.replace_range(start.., &words);
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

/// The arrows beside a row: one column a lane and one for the head, the outermost lane first.
pub fn arrows(listing: &Listing, row: usize) -> String {
    let mut out = String::new();
    if listing.lanes == 0 {
        return out;
    }
    let mut head = None;
    // Whether a line runs from an arrow's end to the code.
    let mut runs = false;
    for lane in (0..listing.lanes).rev() {
        let (mut up, mut down, mut ends) = (false, false, false);
        for jump in listing.jumps.iter().filter(|jump| jump.lane == lane) {
            let (top, bottom) = jump.span();
            if row < top || row > bottom {
                continue;
            }
            up |= row > top;
            down |= row < bottom;
            if row == jump.to {
                head = Some('▸');
            }
            if row == jump.from || row == jump.to {
                ends = true;
                head = head.or(Some('─'));
            }
        }
        out.push(match (up, down, ends, runs) {
            (true, true, false, true) | (true, true, true, true) => '┼',
            (true, true, true, false) => '├',
            (true, true, false, false) => '│',
            (false, true, true, true) => '┬',
            (false, true, true, false) => '╭',
            (true, false, true, true) => '┴',
            (true, false, true, false) => '╰',
            (_, _, true, _) | (_, _, _, true) => '─',
            _ => ' ',
        });
        runs |= ends;
    }
    out.push(head.unwrap_or(' '));
    out
}

/// A source line, harmless for a terminal, with tabs as spaces.
pub fn source_line(text: &str) -> String {
    const TAB: usize = 8;
    if !text.contains('\t') {
        return clean(text).into_owned();
    }
    let mut out = String::new();
    for part in text.split_inclusive('\t') {
        out.push_str(&clean(part.trim_end_matches('\t')));
        if part.ends_with('\t') {
            let column = crate::text::width(&out);
            out.extend(std::iter::repeat_n(' ', TAB - column % TAB));
        }
    }
    out
}

/// A file's path, or its last part.
fn file_name(path: &str, full: bool) -> String {
    let shown = if full { path } else { path.rsplit('/').next().unwrap_or(path) };
    clean(shown).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::annotate::Target;
    use crate::profile::annotate::arrows::lanes;

    #[test]
    fn targets_have_their_names() {
        let listing = Listing { start: 0x1000, size: 0x100, ..Listing::default() };
        let make = |operands: &str, flow, address, name: Option<(&str, u64)>| Instruction {
            operands: operands.into(),
            flow,
            target: Some(Target { address, name: name.map(|(n, o)| (n.to_owned(), o)) }),
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
            refers: Some(Target { address: 0x4000, name: None }),
            ..Instruction::default()
        };
        assert_eq!(operands(&listing, &data), "0x10(%rip), %rax  # 4000");
    }

    #[test]
    fn arrows_are_drawn() {
        let (jumps, lanes) = lanes(vec![(0, 4), (2, 3), (5, 5)]);
        let listing = Listing { jumps, lanes, ..Listing::default() };
        let drawn: Vec<String> = (0..6).map(|row| arrows(&listing, row)).collect();
        assert_eq!(drawn, ["╭──", "│  ", "│╭─", "│╰▸", "╰─▸", " ─▸"]);
        assert_eq!(arrows(&Listing::default(), 0), "");
    }

    #[test]
    fn tabs_keep_columns() {
        assert_eq!(source_line("\tx\ty\u{1b}"), "        x       y?");
        assert_eq!(source_line("plain"), "plain");
    }
}
