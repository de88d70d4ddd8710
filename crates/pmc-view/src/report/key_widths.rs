//! Fits the sort key columns into a limited line width, on the screen and in text.

use pmc_analysis::profile::sampled::SortKey;

/// Minimum width to which a column shrinks to make room for the last column.
const NARROWEST: usize = 6;

/// Minimum width of the last column in text, even if the numbers already fill the line.
pub(crate) const NARROWEST_LAST: usize = 16;

/// Widths of the sort key columns of a text table, without the two blanks before each. A width of 0 omits a
/// column whose cells are all equal.
pub(crate) struct FittedWidths {
    pub widths: Vec<usize>,
    /// Whether any column is narrower than its contents, or the last column is narrower than half of the
    /// line.
    pub is_tight: bool,
}

impl FittedWidths {
    /// Fits the columns for `keys` into a line of `most` columns, of which `used` are taken by other columns.
    pub(crate) fn new(
        wished: &[usize],
        keys: &[SortKey],
        (most, used): (usize, usize),
        is_mute: impl Fn(usize) -> bool,
    ) -> Self {
        let half = wished.last().map_or(0, |last| (most / 2).min(*last));
        let mut widths = wished.to_vec();
        fit_keys(&mut widths, keys, (most.saturating_sub(used), half, 2), is_mute);
        let Some((last, others)) = widths.split_last_mut() else { return Self { widths, is_tight: false } };
        let has_shrunk = |(has, wish): (&usize, &usize)| (1..*wish).contains(has);
        let is_tight = *last < half || others.iter().zip(wished).any(has_shrunk);
        *last = (*last).max(NARROWEST_LAST).min(wished[others.len()]);
        Self { widths, is_tight }
    }
}

/// Returns the line above a table with its omitted columns, which are pairs of heading and value. Returns
/// `None` without such columns.
pub(crate) fn omitted_columns<'a>(columns: impl Iterator<Item = (&'a str, &'a str)>) -> Option<String> {
    let words: Vec<String> = columns.map(|(heading, value)| format!("{heading} = {value}")).collect();
    (!words.is_empty()).then(|| format!("  Same in all rows: {}", words.join(", ")))
}

/// Fits the columns for `keys` into `room`, with `gap` blanks after each column. `widths` holds the preferred
/// widths and receives the result.
///
/// The last column gets the remaining width. The other columns shrink, widest first, until the last column is
/// wide enough. Function names need `half`. Any other key needs its preferred width or an equal share of
/// `room`, whichever is smaller. If function names need more room, columns whose cells are all equal
/// (`is_mute`) are removed first: their width becomes 0.
pub fn fit_keys(
    widths: &mut [usize],
    keys: &[SortKey],
    (room, half, gap): (usize, usize, usize),
    is_mute: impl Fn(usize) -> bool,
) {
    let Some(last) = widths.len().checked_sub(1) else { return };
    let left = |widths: &[usize]| {
        let used = widths[..last].iter().filter(|width| **width > 0).map(|width| width + gap);
        room.saturating_sub(used.sum::<usize>() + gap)
    };
    let has_names = keys.last() == Some(&SortKey::Symbol);
    let wanted = if has_names { half } else { widths[last].min(room / widths.len()) };
    for at in 0..last {
        if has_names && left(widths) < wanted && is_mute(at) {
            widths[at] = 0;
        }
    }
    while left(widths) < wanted
        && let Some(widest) = widths[..last].iter_mut().max().filter(|widest| **widest > NARROWEST)
    {
        *widest -= 1;
    }
    widths[last] = left(widths);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_get_half_of_the_line() {
        let keys = [SortKey::Comm, SortKey::Dso, SortKey::Symbol];
        let fit = |wide: [usize; 3], mute: &[usize]| {
            let mut widths = wide;
            fit_keys(&mut widths, &keys, (60, 40, 2), |at| mute.contains(&at));
            widths
        };
        assert_eq!(fit([4, 8, 90], &[0]), [4, 8, 42], "there is room for all");
        assert_eq!(fit([6, 13, 90], &[0]), [0, 13, 43], "what says nothing goes");
        assert_eq!(fit([6, 13, 90], &[]), [6, 8, 40], "what says something shrinks");
        assert_eq!(fit([40, 16, 90], &[0, 1]), [0, 16, 40], "no more goes than has to");
    }

    #[test]
    fn last_key_keeps_its_width() {
        let mut widths = [90, 90, 90];
        fit_keys(&mut widths, &[SortKey::Symbol, SortKey::Comm, SortKey::Dso], (60, 40, 1), |_| true);
        assert_eq!(widths, [19, 18, 20]);
        let mut widths = [70, 12];
        fit_keys(&mut widths, &[SortKey::Symbol, SortKey::SrcLine], (60, 40, 2), |_| false);
        assert_eq!(widths, [44, 12], "and no more than it needs");
        fit_keys(&mut [], &[], (60, 40, 1), |_| true);
    }
}
