//! Widths of the sort key columns when the line width is limited, on the screen and in text.

use pmc_analysis::profile::sampled::SortKey;

/// Minimum width to which a column shrinks to make room for the last column.
const NARROWEST: usize = 6;

/// Fits the columns for `keys` into `room`, with `gap` blanks after each column. `widths` holds the preferred
/// widths and receives the result.
///
/// The last column gets the remaining width. The other columns shrink, widest first, until the last column is
/// wide enough. Function names need `half`. Any other key needs its preferred width or an equal share of
/// `room`, whichever is smaller. If function names need more room, columns whose cells are all equal
/// (`is_mute`) are removed first: their width becomes 0.
pub(crate) fn fit_keys(
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
