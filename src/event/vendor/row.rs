//! The lines of a table and their columns. Knows nothing of what stands in them.

/// The rows of a TSV text.
pub(super) fn rows(text: &str) -> impl Iterator<Item = Row<'_>> {
    rows_at(text).map(|(_, row)| row)
}

/// The same with each one's first byte.
pub(super) fn rows_at(text: &str) -> impl Iterator<Item = (usize, Row<'_>)> {
    let mut end = 0;
    let lines = text.split_inclusive('\n').map(move |line| {
        end += line.len();
        (end - line.len(), Row(line.trim_end_matches('\n')))
    });
    lines.skip(1)
}

/// The first line of a text.
pub(super) fn row(text: &str) -> Option<Row<'_>> {
    text.lines().next().map(Row)
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

    /// Of an event: no PMU stands in its second column.
    pub(super) fn is_of_cores(self) -> bool {
        self.0.split('\t').nth(1).unwrap_or_default().is_empty()
    }

    /// Its first column.
    pub(super) fn name(self) -> &'a str {
        self.0.split('\t').next().unwrap_or_default()
    }
}
