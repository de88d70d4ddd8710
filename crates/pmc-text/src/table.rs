//! Text tables, without lines between columns.
//!
//! Cells must be safe to print. Colour codes in a cell do not count towards its width.
//!
//! ```text
//! lines   columns as wide as their contents       line    one line, for columns with known widths
//! write   the same, and may wrap the last column  fitted  widths from contents
//! ```
//! Callers truncate cells themselves, because they know which part of a name matters (`fit_keys`). Some
//! output does not use this module: trees, the listings of `annotate`, perf's headers and record dumps, and
//! the lines of `script` and `sched`, of which there may be millions.

use std::fmt::Write as _;
use std::io::{self, Write};

use crate::text;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, Width, presets::NOTHING};

/// How the cells of a column are aligned.
#[derive(Debug, Clone, Copy, Default)]
pub struct ColumnShape {
    /// Number of blanks before the column.
    pub gap: usize,
    /// Minimum width in terminal columns.
    pub least: usize,
    /// Whether cells are right-aligned.
    pub to_right: bool,
}

/// Returns a left-aligned column that begins `gap` blanks after the previous column.
pub const fn left(gap: usize, least: usize) -> ColumnShape {
    ColumnShape { gap, least, to_right: false }
}

/// Returns a right-aligned column.
pub const fn right(gap: usize, least: usize) -> ColumnShape {
    ColumnShape { gap, least, to_right: true }
}

/// Returns one line with a cell per shape, including trailing blanks. Cells that are too wide are not
/// truncated.
pub fn line(shapes: &[ColumnShape], cells: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let mut line = String::new();
    for (shape, cell) in shapes.iter().zip(cells) {
        let (gap, blanks) = (shape.gap, shape.least.saturating_sub(shown_width(cell.as_ref())));
        let (before, after) = if shape.to_right { (gap + blanks, 0) } else { (gap, blanks) };
        let _ = write!(line, "{:before$}{}{:after$}", "", cell.as_ref(), "");
    }
    line
}

/// Returns the width of a line with these columns.
pub fn width(shapes: &[ColumnShape]) -> usize {
    shapes.iter().map(|shape| shape.gap + shape.least).sum()
}

/// Returns the shapes, widened to fit the rows.
pub fn fitted<'r>(shapes: &[ColumnShape], rows: impl IntoIterator<Item = &'r [String]>) -> Vec<ColumnShape> {
    let mut shapes = shapes.to_vec();
    for row in rows {
        for (shape, cell) in shapes.iter_mut().zip(row) {
            shape.least = shape.least.max(shown_width(cell));
        }
    }
    shapes
}

/// Formats rows with one cell per shape, and returns the lines.
pub fn lines(shapes: &[ColumnShape], rows: impl IntoIterator<Item = Vec<String>>) -> Vec<String> {
    let rows: Vec<Vec<String>> = rows.into_iter().collect();
    let shapes = fitted(shapes, rows.iter().map(Vec::as_slice));
    rows.iter().map(|row| line(&shapes, row).trim_end().to_owned()).collect()
}

/// Writes rows with one cell per shape. If `width` is set, the last column wraps to keep lines within that
/// width.
///
/// # Errors
/// Fails if writing to `out` fails.
pub fn write(
    out: &mut dyn Write,
    shapes: &[ColumnShape],
    width: Option<u16>,
    rows: impl IntoIterator<Item = Vec<String>>,
) -> io::Result<()> {
    let Some(width) = width else {
        return lines(shapes, rows).iter().try_for_each(|line| writeln!(out, "{line}"));
    };
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    table.add_rows(rows);
    for (at, (column, shape)) in table.column_iter_mut().zip(shapes).enumerate() {
        let [gap, least] = [shape.gap, shape.gap + shape.least].map(|width| width as u16);
        column.set_padding((gap, 0));
        if shape.to_right {
            column.set_cell_alignment(CellAlignment::Right);
        }
        if shape.least > 0 {
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(least)));
        } else if at + 1 < shapes.len() {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    table.lines().try_for_each(|line| writeln!(out, "{}", line.trim_end()))
}

/// Returns the width of a line in columns, ignoring colour codes.
pub fn shown_width(line: &str) -> usize {
    let after_colour = |part: &str| text::width(part.split_once('m').map_or("", |(_, text)| text));
    let mut parts = line.split('\x1b');
    parts.next().map_or(0, text::width) + parts.map(after_colour).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(shapes: &[ColumnShape], width: Option<u16>, rows: &[&[&str]]) -> String {
        let mut out = Vec::new();
        let rows = rows.iter().map(|row| row.iter().map(|&cell| cell.to_owned()).collect());
        write(&mut out, shapes, width, rows).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_fit_their_content() {
        let shapes = [left(1, 4), right(2, 0), left(2, 0)];
        let text = written(&shapes, None, &[&["a", "1,000", "数 x"], &["name", "7", ""]]);
        assert_eq!(text, " a     1,000  数 x\n name      7\n");
    }

    #[test]
    fn colours_take_no_room() {
        let shapes = fitted(&[right(0, 0), left(1, 3)], [&["\x1b[31m12\x1b[0m".to_owned()][..]]);
        assert_eq!(line(&shapes, ["7", "数"]), " 7 数 ");
        assert_eq!(line(&shapes, ["\x1b[31m7\x1b[0m", "long"]), " \x1b[31m7\x1b[0m long");
    }

    #[test]
    fn last_column_wraps_below_itself() {
        let text = written(&[left(2, 0), left(2, 0)], Some(16), &[&["label", "one two three"]]);
        assert_eq!(text, "  label  one two\n         three\n");
    }

    #[test]
    fn empty_table_prints_nothing() {
        assert_eq!(written(&[left(0, 0)], Some(80), &[]), "");
    }
}
