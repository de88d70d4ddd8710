//! The text output of `pmc latency`.
//!
//! ```text
//!   sums by range with bars ── quantiles ── slowest, with stacks ── heat map ── counts of events
//! ```

use std::io::{self, Write};

use super::heat::HeatMap;
use super::ranges::range_bounds;
use super::result::{DurationSums, LatencyCounts, LatencyReport, LatencySlice, QUANTILES, SlowInterval};
use pmc_text::table::{self, left, right};
use pmc_text::text::clean;
use pmc_text::units::{PerfTime, duration, seconds, thousands};

/// Length of the longest bar.
const BAR: usize = 40;

/// Shades, from low to high counts.
const SHADES: [char; 5] = ['·', '░', '▒', '▓', '█'];

/// Width of the labels on the left of the heat map, including a space.
const LABELS: usize = 10;

/// Writes the whole report, in lines of at most `width` columns where it can be wider.
pub(super) fn write(out: &mut dyn Write, report: &LatencyReport, width: usize) -> io::Result<()> {
    let [begin, end] = &report.events;
    writeln!(out, "Time from {} to {}, by {}", names(begin), names(end), names(&report.key))?;
    let count = report.durations.histogram.count();
    let rate = count as f64 / seconds(report.elapsed.max(1));
    let elapsed = duration(report.elapsed as f64);
    writeln!(out, "{} intervals in {elapsed} ({rate:.1} per second)", thousands(count))?;
    if count > 0 {
        ranges(out, &report.durations)?;
        quantiles(out, &report.durations)?;
    }
    slowest(out, report)?;
    if let Some(map) = &report.heat {
        heat_map(out, map, width)?;
    }
    writeln!(out, "\nEvents: {}", counts(&report.counts))?;
    if let Some(oldest) = report.oldest {
        writeln!(out, "The oldest unfinished interval started {} ago", duration(oldest as f64))?;
    }
    if report.counts.lost > 0 {
        writeln!(out, "Larger ring buffers (-m 64M) or a filter (--filter) avoid losses")?;
    }
    if report.counts.pairing.with_loss > 0 {
        writeln!(
            out,
            "Intervals that contain lost records may appear too long: events in between are missing"
        )?;
    }
    Ok(())
}

/// Writes one row with a bar for each range.
fn ranges(out: &mut dyn Write, durations: &DurationSums) -> io::Result<()> {
    let Some((first, last)) = durations.ranges.used() else { return Ok(()) };
    let most = (first..=last).map(|range| durations.ranges.count(range)).max().unwrap_or(1).max(1);
    let count = durations.histogram.count();
    writeln!(out)?;
    let head = ["duration", "", "", "intervals", "", ""].map(str::to_owned).to_vec();
    let rows = (first..=last).map(|range| {
        let (start, end) = range_bounds(range);
        let here = durations.ranges.count(range);
        let bar = "█".repeat((here as f64 / most as f64 * BAR as f64).round() as usize);
        let bar = if bar.is_empty() && here > 0 { "▏".to_owned() } else { bar };
        let percent = format!("{:.1}%", here as f64 / count as f64 * 100.0);
        vec![bound(start), "–".to_owned(), bound(end), thousands(here), percent, bar]
    });
    let shapes = [right(2, 0), left(1, 0), right(1, 0), right(3, 0), right(2, 0), left(2, 0)];
    table::write(out, &shapes, None, std::iter::once(head).chain(rows))
}

/// Writes the quantiles in one row.
fn quantiles(out: &mut dyn Write, durations: &DurationSums) -> io::Result<()> {
    let histogram = &durations.histogram;
    let mut heads: Vec<String> = QUANTILES.iter().map(|(name, _)| (*name).to_owned()).collect();
    let mut values: Vec<String> = quantile_cells(durations);
    heads.extend(["max", "mean", "total"].map(str::to_owned));
    values.extend([histogram.max(), histogram.mean(), histogram.sum()].map(|ns| duration(ns as f64)));
    writeln!(out)?;
    table::write(out, &[right(2, 9); 7], None, [heads, values])?;
    writeln!(out, "  (p50 to p99.9: within 1.6%; max, mean and total: exact)")
}

fn quantile_cells(durations: &DurationSums) -> Vec<String> {
    let value = |(_, quantile): &(&str, f64)| duration(durations.histogram.quantile(*quantile) as f64);
    QUANTILES.iter().map(value).collect()
}

fn slowest(out: &mut dyn Write, report: &LatencyReport) -> io::Result<()> {
    if report.slowest.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nSlowest")?;
    // Do not show the thread as the key, because each row shows it anyway.
    let has_key = report.key.iter().any(|key| key != "thread");
    let mut heads = vec!["duration", "begin (s)", "CPU", "thread"];
    heads.extend(has_key.then_some("key"));
    let row = |slow: &SlowInterval| {
        let mark = if slow.has_loss { " (loss)" } else { "" };
        let cpu = |cpu: Option<u32>| cpu.map_or_else(|| "?".to_owned(), |cpu| cpu.to_string());
        let cpus = match slow.cpus {
            [begin, end] if begin == end => cpu(begin),
            [begin, end] => format!("{}→{}", cpu(begin), cpu(end)),
        };
        let mut cells = vec![
            duration(slow.duration as f64) + mark,
            PerfTime(slow.begin).to_string(),
            cpus,
            format!("{}/{}", clean(&slow.comm), slow.thread.1),
        ];
        if has_key {
            let parts = report.key.iter().zip(&slow.key);
            let part = |(key, value): (&String, &String)| {
                let name = key.split_once(" = ").map_or(&**key, |(begin, _)| begin);
                format!("{}={}", clean(name), clean(value))
            };
            cells.push(parts.map(part).collect::<Vec<_>>().join(" "));
        }
        cells
    };
    let heads: Vec<String> = heads.into_iter().map(str::to_owned).collect();
    let shapes = [right(2, 9), right(2, 0), right(2, 0), left(2, 0), left(2, 0)];
    let rows = std::iter::once(heads).chain(report.slowest.iter().map(row));
    let lines = table::lines(&shapes[..4 + usize::from(has_key)], rows);
    let mut lines = lines.iter();
    lines.next().map_or(Ok(()), |head| writeln!(out, "{head}"))?;
    for (line, slow) in lines.zip(&report.slowest) {
        writeln!(out, "{line}")?;
        slow.stack.iter().try_for_each(|function| writeln!(out, "               {}", clean(function)))?;
    }
    Ok(())
}

/// Writes the heat map in lines of at most `width` columns, longest durations first.
fn heat_map(out: &mut dyn Write, map: &HeatMap, width: usize) -> io::Result<()> {
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

/// Writes the durations of one `-I` interval as one line. If `is_first` is set, also writes the heading.
pub(super) fn write_slice(out: &mut dyn Write, slice: &LatencySlice, is_first: bool) -> io::Result<()> {
    if is_first {
        write!(out, "#{:>11} {:>11}", "time (s)", "intervals")?;
        QUANTILES.iter().try_for_each(|(name, _)| write!(out, " {name:>9}"))?;
        writeln!(out, " {:>9} {:>9} {:>9}", "max", "unpaired", "lost")?;
    }
    let histogram = &slice.durations.histogram;
    write!(out, "{:>12.3} {:>11}", seconds(slice.until), thousands(histogram.count()))?;
    quantile_cells(&slice.durations).iter().try_for_each(|cell| write!(out, " {cell:>9}"))?;
    let counts = &slice.counts;
    let unpaired = counts.pairing.ends_only + counts.pairing.replaced;
    let max = duration(histogram.max() as f64);
    writeln!(out, " {max:>9} {:>9} {:>9}", thousands(unpaired), thousands(counts.lost))
}

/// Formats the start or end of a range, which is 1, 2 or 5 times a power of ten.
fn bound(ns: u64) -> String {
    match ns {
        u64::MAX => "∞".to_owned(),
        ns if ns >= 1_000_000_000 => format!("{} s", thousands(ns / 1_000_000_000)),
        ns if ns >= 1_000_000 => format!("{} ms", ns / 1_000_000),
        ns if ns >= 1000 => format!("{} µs", ns / 1000),
        ns => format!("{ns} ns"),
    }
}

/// Joins names for a sentence.
fn names(all: &[String]) -> String {
    all.iter().map(|name| clean(name)).collect::<Vec<_>>().join(", ")
}

/// Describes the events that do not belong to any interval, and other losses.
fn counts(counts: &LatencyCounts) -> String {
    let pairing = &counts.pairing;
    let mut words = vec![
        format!("{} begin", thousands(counts.begins)),
        format!("{} end", thousands(counts.ends)),
        format!("{} paired", thousands(pairing.paired)),
        format!("{} ends without a begin", thousands(pairing.ends_only)),
        format!("{} begins replaced", thousands(pairing.replaced)),
        format!("{} nested", thousands(counts.nested)),
        format!("{} unfinished", thousands(counts.in_progress)),
        format!("{} lost", thousands(counts.lost)),
    ];
    let rare = [
        (pairing.with_loss, "intervals with a loss"),
        (pairing.backwards, "ends before their begins"),
        (pairing.expired, "begin events dropped"),
        (counts.keyless, "without a key"),
        (counts.stackless, "without a stack"),
    ];
    let rare = rare.iter().filter(|(count, _)| *count > 0);
    words.extend(rare.map(|(count, what)| format!("{} {what}", thousands(*count))));
    words.join(", ")
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
