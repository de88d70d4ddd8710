//! What `-r N` runs say together: perf's last line and table, and a block with the spread of each measure.
//!
//! Receives [`Counts`] with runs; the statistics are `profile`'s. Shown for a single row only: a block for
//! each of many places helps nobody.

use std::io::{self, Write};

use super::{StatStyle, decimals, mean_digits, precision, quantity, safe};
use crate::profile::counts::Counts;
use crate::profile::statistics::Summary;
use crate::text;

/// Longest bar of a run in the table: a run of almost no time would have perf print millions of `#`.
const LONGEST_BAR: usize = 60;

/// Elapsed seconds of the runs.
fn elapsed(counts: &Counts) -> Vec<f64> {
    counts.runs.iter().map(|run| run.elapsed_ns as f64 / 1e9).collect()
}

/// `0.0011339 +- 0.0000572 seconds time elapsed  ( +-  5.04% )`, with the table of the single runs where it
/// was asked for.
pub(super) fn footer(out: &mut dyn Write, counts: &Counts, style: &StatStyle) -> io::Result<()> {
    let times = elapsed(counts);
    let Some(summary) = Summary::of(&times) else { return Ok(()) };
    let (mean, error) = (summary.mean, summary.error_of_mean());
    let digits = precision(error);
    if style.table {
        let mean_text = format!(" {mean:17.digits$}");
        let indent = " ".repeat(mean_text.len() - mean_text.trim_start().len());
        writeln!(out, "{indent}# Table of individual measurements:")?;
        for run in &times {
            // As perf: a bar of one, and one more for each 5 % away from the mean.
            let away = if *run > 0.0 { (100.0 * (run - mean) / run).abs() as usize / 5 } else { LONGEST_BAR };
            let bar = "#".repeat((1 + away).min(LONGEST_BAR));
            writeln!(out, " {run:17.digits$} ({:+.digits$}) {bar}", run - mean)?;
        }
        writeln!(out, "\n{indent}# Final result:")?;
    }
    write!(out, " {mean:17.digits$} +- {error:.digits$} seconds time elapsed")?;
    match summary.error_percent() {
        0.0 => writeln!(out, "\n"),
        percent => writeln!(out, "  ( +-{percent:6.2}% )\n"),
    }
}

/// Mean, median, least, greatest and the 95 % interval of every measure; then the runs that stand out.
pub(super) fn block(out: &mut dyn Write, counts: &Counts, style: &StatStyle) -> io::Result<()> {
    if counts.runs.len() < 2 || counts.rows.len() > 1 {
        return Ok(());
    }
    let cpu = |pick: fn(&crate::profile::counts::CpuTime) -> u64| {
        let times: Option<Vec<f64>> =
            counts.runs.iter().map(|r| r.cpu_time.as_ref().map(|c| pick(c) as f64 / 1e9)).collect();
        times.unwrap_or_default()
    };
    let mut measures = vec![
        ("elapsed s".to_owned(), true, elapsed(counts)),
        ("user s".to_owned(), true, cpu(|c| c.user_ns)),
        ("sys s".to_owned(), true, cpu(|c| c.system_ns)),
    ];
    for (at, event) in counts.events.iter().enumerate() {
        let values = counts.value(0, at).runs().iter().map(|v| v * event.scale).collect();
        let name = format!("{} {}", safe(&event.name), safe(&event.unit));
        measures.push((name.trim_end().to_owned(), decimals(event) > 0, values));
    }
    let measures: Vec<_> = measures
        .into_iter()
        .filter_map(|(name, fractional, v)| Some((name, fractional, Summary::of(&v)?, v)))
        .collect();
    let width = measures.iter().map(|(name, ..)| text::width(name)).max().unwrap_or(0).max(20);
    let title = format!("Over {} runs:", counts.runs.len());
    writeln!(
        out,
        " {title:width$}  {:>14} {:>14} {:>14} {:>14}   95% interval of the mean",
        "mean", "median", "min", "max"
    )?;
    let mut outliers = Vec::new();
    for (name, fractional, s, values) in &measures {
        // Counts are whole, their means are not.
        let mean_digits = mean_digits(s, *fractional);
        let digits = if *fractional { mean_digits } else { 0 };
        let number = |v: f64, digits: usize| quantity(v, digits, style.big_num);
        let interval = s
            .interval
            .map(|(low, high)| format!("   {} .. {}", number(low, mean_digits), number(high, mean_digits)));
        let pad = " ".repeat(width - text::width(name).min(width));
        writeln!(
            out,
            " {name}{pad}  {:>14} {:>14} {:>14} {:>14}{}",
            number(s.mean, mean_digits),
            number(s.median, mean_digits),
            number(s.min, digits),
            number(s.max, digits),
            interval.unwrap_or_default()
        )?;
        for &run in &s.outliers {
            outliers.push(format!("{name} in run {} ({})", run + 1, number(values[run], digits)));
        }
    }
    writeln!(out)?;
    if !outliers.is_empty() {
        let more = match outliers.len().saturating_sub(6) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        outliers.truncate(6);
        writeln!(out, " Outliers: {}{more}.", outliers.join(", "))?;
        writeln!(
            out,
            "   Something disturbed these runs: close other programs, or repeat more often; the median is safer than the mean.\n"
        )?;
    }
    Ok(())
}
