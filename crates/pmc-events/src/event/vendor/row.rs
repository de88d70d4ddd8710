//! Lines and columns of a table. Does not interpret them.

/// The rows of a TSV text, without the heading.
pub(super) fn rows(text: &str) -> impl Iterator<Item = VendorRow<'_>> {
    rows_at(text).map(|(_, row)| row)
}

/// The rows with the offsets of their first bytes.
pub(super) fn rows_at(text: &str) -> impl Iterator<Item = (usize, VendorRow<'_>)> {
    let mut end = 0;
    let lines = text.split_inclusive('\n').map(move |line| {
        end += line.len();
        (end - line.len(), VendorRow(line.trim_end_matches('\n')))
    });
    lines.skip(1)
}

/// The first line of a text.
pub(super) fn row(text: &str) -> Option<VendorRow<'_>> {
    text.lines().next().map(VendorRow)
}

/// A line of a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct VendorRow<'a>(&'a str);

impl<'a> VendorRow<'a> {
    /// The columns; missing trailing columns are empty.
    pub(super) fn columns<const N: usize>(self) -> [&'a str; N] {
        let mut columns = self.0.split('\t');
        std::array::from_fn(|_| columns.next().unwrap_or_default())
    }

    /// Whether an event's row has an empty PMU column, which means the cores.
    pub(super) fn is_of_cores(self) -> bool {
        self.0.split('\t').nth(1).unwrap_or_default().is_empty()
    }

    /// The first column.
    pub(super) fn name(self) -> &'a str {
        self.0.split('\t').next().unwrap_or_default()
    }
}
