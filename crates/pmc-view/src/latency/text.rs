//! The text output of `pmc latency`.

use std::io::{self, Write};

use super::{LatencyLayout, QUANTILES, bound, counts, heat, names};
use pmc_analysis::profile::latency::{DurationSums, LatencyReport, LatencySlice, SlowInterval, range_bounds};
use pmc_text::table::{self, left, right};
use pmc_text::text::clean;
use pmc_text::units::{PerfTime, duration, seconds, thousands};

/// Length of the longest bar.
const BAR: usize = 40;

/// Writes the whole report.
///
/// # Errors
/// Fails if writing to `out` fails.
pub fn write(out: &mut dyn Write, report: &LatencyReport, layout: LatencyLayout) -> io::Result<()> {
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
        heat::write(out, map, layout.width)?;
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

/// Writes the durations of one `-I` interval as one line. If `is_first` is set, also writes the heading.
///
/// # Errors
/// Fails if writing to `out` fails.
pub fn write_slice(out: &mut dyn Write, slice: &LatencySlice, is_first: bool) -> io::Result<()> {
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
