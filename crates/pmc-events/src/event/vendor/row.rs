//! Splits a table into lines and columns, without interpreting them.

/// The rows of a TSV table, without the heading.
pub(super) fn rows(text: &str) -> impl Iterator<Item = VendorRow<'_>> {
    rows_at(text).map(|(_, row)| row)
}

/// The rows with their byte offsets in the text.
pub(super) fn rows_at(text: &str) -> impl Iterator<Item = (usize, VendorRow<'_>)> {
    let mut end = 0;
    let lines = text.split_inclusive('\n').map(move |line| {
        end += line.len();
        (end - line.len(), VendorRow(line.trim_end_matches('\n')))
    });
    lines.skip(1)
}

/// The first line of the text.
pub(super) fn row(text: &str) -> Option<VendorRow<'_>> {
    text.lines().next().map(VendorRow)
}

/// A line of a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct VendorRow<'a>(&'a str);

impl<'a> VendorRow<'a> {
    /// The columns. Missing trailing columns are empty.
    pub(super) fn columns<const N: usize>(self) -> [&'a str; N] {
        let mut columns = self.0.split('\t');
        std::array::from_fn(|_| columns.next().unwrap_or_default())
    }

    /// Whether the PMU column of an event's row is empty, which means the core PMU.
    pub(super) fn is_of_cores(self) -> bool {
        self.0.split('\t').nth(1).unwrap_or_default().is_empty()
    }

    /// The first column.
    pub(super) fn name(self) -> &'a str {
        self.0.split('\t').next().unwrap_or_default()
    }
}
