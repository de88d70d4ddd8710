//! Selection of a time span on the time strip.

/// The current selection. Both ends are columns of the strip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TimeStrip {
    /// The column of the cursor.
    pub at: u16,
    /// The column of the other end, if the user has set it.
    pub anchor: Option<u16>,
}

impl TimeStrip {
    /// Returns the first and last column.
    pub fn span(&self) -> (u16, u16) {
        let other = self.anchor.unwrap_or(self.at);
        (self.at.min(other), self.at.max(other))
    }
}

/// Converts time slices to `width` columns, and returns the sum of periods in each column. A slice that spans
/// two columns is divided between them.
pub fn columns(sums: &[u64], width: u16) -> Vec<u64> {
    let (len, width) = (sums.len(), usize::from(width));
    if len == 0 || width == 0 {
        return Vec::new();
    }
    if len <= width {
        // If there are fewer slices than columns, a slice is several columns wide.
        return (0..width).map(|column| sums[column * len / width]).collect();
    }
    // Use 1 / (`len` * `width`) as the unit of position, so that columns and slices have integer bounds.
    let part = |column: usize, slice: usize| {
        let (from, to) = ((column * len).max(slice * width), ((column + 1) * len).min((slice + 1) * width));
        u128::from(sums[slice]) * to.saturating_sub(from) as u128
    };
    let all = |column: usize| (column * len / width)..((column + 1) * len).div_ceil(width);
    let sum = |column: usize| all(column).map(|slice| part(column, slice)).sum::<u128>() / width as u128;
    (0..width).map(|column| u64::try_from(sum(column)).unwrap_or(u64::MAX)).collect()
}

/// Returns the indexes of the first and last slice in the columns `from` to `to`.
pub fn slices(len: usize, width: u16, (from, to): (u16, u16)) -> (usize, usize) {
    let (width, len) = (usize::from(width.max(1)), len.max(1));
    let (from, to) = (usize::from(from), usize::from(to));
    let first = from * len / width;
    let last = if len <= width { to * len / width } else { ((to + 1) * len / width).saturating_sub(1) };
    (first.min(len - 1), last.max(first).min(len - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_slice_has_a_column() {
        assert_eq!(columns(&[1, 2, 3, 4, 5, 6], 3), [3, 7, 11]);
        assert_eq!(columns(&[5, 9], 4), [5, 5, 9, 9]);
        assert_eq!(columns(&[], 9), [0u64; 0]);
        // Slices with equal sums result in columns with equal sums.
        assert_eq!(columns(&[100; 240], 200), [120; 200]);
        assert_eq!(columns(&[u64::MAX; 3], 2), [u64::MAX; 2]);
        for (len, width) in [(240usize, 60u16), (7, 60), (60, 60), (1, 1), (100, 33)] {
            let mut seen = Vec::new();
            for column in 0..width {
                let (from, to) = slices(len, width, (column, column));
                seen.extend(from..=to);
            }
            seen.dedup();
            assert_eq!(seen, (0..len).collect::<Vec<_>>(), "{len} {width}");
        }
    }
}
