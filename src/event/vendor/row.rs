//! The lines of a table and their columns. Knows nothing of what stands in them.

/// The rows of a TSV text.
pub(super) fn rows(text: &str) -> impl Iterator<Item = Row<'_>> {
    text.lines().skip(1).map(Row)
}

/// A line of a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'a>(&'a str);

impl<'a> Row<'a> {
    /// Its columns; those that the line leaves out at its end are empty.
    pub(super) fn columns<const N: usize>(self) -> [&'a str; N] {
        let mut columns = self.0.split('\t');
        std::array::from_fn(|_| columns.next().unwrap_or_default())
    }

    /// Its first column.
    pub(super) fn name(self) -> &'a str {
        self.0.split('\t').next().unwrap_or_default()
    }
}
