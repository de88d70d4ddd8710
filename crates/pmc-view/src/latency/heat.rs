//! The heat map. Each row is a range of durations, each column is a time slice, and the shade shows the
//! number of intervals.

use std::io::{self, Write};

use super::bound;
use pmc_analysis::profile::latency::{HeatMap, range_bounds};
use pmc_text::units::{duration, thousands};

/// Shades, from low to high counts.
const SHADES: [char; 5] = ['·', '░', '▒', '▓', '█'];

/// Width of the labels on the left, including a space.
const LABELS: usize = 10;

/// Writes the map in lines of at most `width` columns, longest durations first.
///
/// # Errors
/// Fails if writing to `out` fails.
pub(super) fn write(out: &mut dyn Write, map: &HeatMap, width: usize) -> io::Result<()> {
    let map = map.clone().within(width.saturating_sub(LABELS));
    let used = map.slices.iter().filter_map(|slice| slice.used());
    let Some((first, last)) = used.reduce(|(first, last), (from, to)| (first.min(from), last.max(to))) else {
        return Ok(());
    };
    let ranges = first..=last;
    let most = map.slices.iter().flat_map(|slice| ranges.clone().map(|range| slice.count(range))).max();
    let most = most.unwrap_or(0);
    writeln!(out, "\nOver time, in columns of {}", duration(map.slice as f64))?;
    for range in ranges.rev() {
        let cells: String = map.slices.iter().map(|slice| shade(slice.count(range), most)).collect();
        let (start, _) = range_bounds(range);
        writeln!(out, "{:>9} {}", bound(start), cells.trim_end())?;
    }
    let [few, .., many] = SHADES;
    writeln!(out, "{:>9} {few} 1 interval to {many} {}", "", thousands(most))
}

/// Returns the shade for a count. The scale is logarithmic, so that rare long intervals are visible.
fn shade(count: u64, most: u64) -> char {
    if count == 0 {
        return ' ';
    }
    let share = (count as f64).ln_1p() / (most.max(1) as f64).ln_1p();
    let steps = SHADES.len();
    let step = if most <= 1 { steps } else { (share * steps as f64).ceil() as usize };
    if count == 1 && most > 1 { SHADES[0] } else { SHADES[step.clamp(1, steps) - 1] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_rise_with_counts() {
        assert_eq!([0, 1, 10, 100, 1000].map(|count| shade(count, 1000)), [' ', '·', '░', '▓', '█']);
        assert_eq!(shade(1, 1), '█');
    }
}
