//! Short tables: columns side by side without lines between them, as wide as their contents.
//!
//! Receives cells that are safe to print. `comfy-table` decides widths and wraps the last column if it is too
//! wide for the terminal. Tables with thousands of rows use a separate writer, which is twenty times faster.

use std::io::{self, Write};

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, Width, presets::NOTHING};

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ColumnShape {
    /// Number of blanks before the column.
    pub(super) gap: u16,
    /// Minimum width in terminal columns.
    pub(super) least: u16,
    /// Whether cells are right-aligned.
    pub(super) to_right: bool,
}

/// Returns a left-aligned column, `gap` blanks after the previous column.
pub(super) const fn left(gap: u16, least: u16) -> ColumnShape {
    ColumnShape { gap, least, to_right: false }
}

/// Returns a right-aligned column.
pub(super) const fn right(gap: u16, least: u16) -> ColumnShape {
    ColumnShape { gap, least, to_right: true }
}

/// Writes rows with one cell per shape. If `width` is set, the last column wraps to keep lines within that
/// width.
///
/// # Errors
/// Fails if writing to `out` fails.
pub(super) fn write(
    out: &mut dyn Write,
    shapes: &[ColumnShape],
    width: Option<u16>,
    rows: impl IntoIterator<Item = Vec<String>>,
) -> io::Result<()> {
    drawn(shapes, width, rows).lines().try_for_each(|line| writeln!(out, "{}", line.trim_end()))
}

/// Returns the lines of rows with one cell per shape, without a width limit.
pub(super) fn lines(shapes: &[ColumnShape], rows: impl IntoIterator<Item = Vec<String>>) -> Vec<String> {
    drawn(shapes, None, rows).lines().map(|line| line.trim_end().to_owned()).collect()
}

fn drawn(shapes: &[ColumnShape], width: Option<u16>, rows: impl IntoIterator<Item = Vec<String>>) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING);
    if let Some(width) = width {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    table.add_rows(rows);
    for (at, (column, shape)) in table.column_iter_mut().zip(shapes).enumerate() {
        column.set_padding((shape.gap, 0));
        if shape.to_right {
            column.set_cell_alignment(CellAlignment::Right);
        }
        if shape.least > 0 {
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(shape.gap + shape.least)));
        } else if at + 1 < shapes.len() {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    table
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
    fn last_column_wraps_below_itself() {
        let text = written(&[left(2, 0), left(2, 0)], Some(16), &[&["label", "one two three"]]);
        assert_eq!(text, "  label  one two\n         three\n");
    }

    #[test]
    fn empty_table_prints_nothing() {
        assert_eq!(written(&[left(0, 0)], Some(80), &[]), "");
    }
}
