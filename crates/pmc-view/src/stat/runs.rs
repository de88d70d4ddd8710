//! Statistics of the runs of `-r N`: perf's last line and table, and a block with the spread of each measure.
//!
//! Receives [`StatCounts`] with runs, for which `profile` has computed the statistics. The block is shown
//! only if there is a single row, because a block for each row would be unreadable.

use std::io::{self, Write};

use super::{
    StatStyle, decimals, first_fitting, fitting_unit, mean_digits, noted_outliers, precision, quantity, safe,
};
use pmc_analysis::profile::counts::StatCounts;
use pmc_analysis::profile::statistics::MeasurementSummary;
use pmc_text::table::{self, left, right};
use pmc_text::units::seconds;

/// Maximum length of a run's bar in the table. For a very short run, perf prints millions of `#`.
const LONGEST_BAR: usize = 60;

/// Returns the elapsed time of each run in seconds.
fn elapsed(counts: &StatCounts) -> Vec<f64> {
    counts.runs.iter().map(|run| seconds(run.elapsed_ns)).collect()
}

/// Writes `0.0011339 +- 0.0000572 seconds time elapsed  ( +-  5.04% )`, and the table of individual runs if
/// it was requested.
pub(super) fn footer(out: &mut dyn Write, counts: &StatCounts, style: &StatStyle) -> io::Result<()> {
    let times = elapsed(counts);
    let Some(summary) = MeasurementSummary::from_values(&times) else { return Ok(()) };
    let (mean, error) = (summary.mean, summary.error_of_mean());
    let digits = precision(error);
    if style.table {
        let mean_text = format!(" {mean:17.digits$}");
        let indent = " ".repeat(mean_text.len() - mean_text.trim_start().len());
        writeln!(out, "{indent}# Table of individual measurements:")?;
        for run in &times {
            // As in perf, the bar has one `#`, plus another `#` for each 5 % of difference from the mean.
            let away = if *run > 0.0 { (100.0 * (run - mean) / run).abs() as usize / 5 } else { LONGEST_BAR };
            let bar = "#".repeat((1 + away).min(LONGEST_BAR));
            writeln!(out, " {run:17.digits$} ({:+.digits$}) {bar}", run - mean)?;
        }
        writeln!(out, "\n{indent}# Final result:")?;
    }
    let percent = match summary.error_percent() {
        0.0 => String::new(),
        percent => format!("  ( +-{percent:6.2}% )"),
    };
    let line = format!(" {mean:17.digits$} +- {error:.digits$} seconds time elapsed{percent}");
    let narrow = format!("  {}", line.trim_start());
    writeln!(out, "{}\n", first_fitting([vec![line], vec![narrow]], style.width).concat())
}

/// Writes the mean, median, minimum, maximum and 95 % confidence interval of every measure, then the
/// outliers.
pub(super) fn block(out: &mut dyn Write, counts: &StatCounts, style: &StatStyle) -> io::Result<()> {
    if counts.runs.len() < 2 || counts.rows.len() > 1 {
        return Ok(());
    }
    let cpu = |pick: fn(&pmc_analysis::profile::counts::CpuTime) -> u64| {
        let times: Option<Vec<f64>> =
            counts.runs.iter().map(|r| r.cpu_time.as_ref().map(|c| seconds(pick(c)))).collect();
        times.unwrap_or_default()
    };
    let mut measures = vec![
        ("elapsed".to_owned(), "s", true, elapsed(counts)),
        ("user".to_owned(), "s", true, cpu(|c| c.user_ns)),
        ("sys".to_owned(), "s", true, cpu(|c| c.system_ns)),
    ];
    for (at, event) in counts.events.iter().enumerate() {
        let values = counts.value(0, at).runs().iter().map(|v| v * event.scale).collect();
        measures.push((safe(&event.name).into_owned(), &event.unit, decimals(event) > 0, values));
    }
    let measures: Vec<_> = measures
        .into_iter()
        .filter_map(|(name, unit, fractional, mut values): (_, &str, _, Vec<f64>)| {
            let mean = MeasurementSummary::from_values(&values)?.mean;
            let (factor, unit) = fitting_unit(unit, [mean].into_iter()).unwrap_or((1.0, unit));
            values.iter_mut().for_each(|value| *value *= factor);
            let name = format!("{name} {}", safe(unit)).trim_end().to_owned();
            Some((name, fractional, MeasurementSummary::from_values(&values)?, values))
        })
        .collect();
    let mut outliers = Vec::new();
    let title = format!("Over {} runs:", counts.runs.len());
    let interval = ["95% interval of the mean", "95% interval"];
    let mut rows = vec![[&title, "mean", "median", "min", "max", interval[0]].map(str::to_owned)];
    for (name, fractional, s, values) in &measures {
        // Counts are whole numbers, but their means are not.
        let mean_digits = mean_digits(s, *fractional);
        let digits = if *fractional { mean_digits } else { 0 };
        let number = |v: f64, digits: usize| quantity(v, digits, style.big_num);
        let ends = |(low, high)| format!("{} .. {}", number(low, mean_digits), number(high, mean_digits));
        rows.push([
            name.clone(),
            number(s.mean, mean_digits),
            number(s.median, mean_digits),
            number(s.min, digits),
            number(s.max, digits),
            s.interval.map(ends).unwrap_or_default(),
        ]);
        for &run in noted_outliers(s) {
            outliers.push(format!("{name} in run {} ({})", run + 1, number(values[run], digits)));
        }
    }
    // The table above already shows the mean and its error. Omit both here if space is short.
    let texts = (0..4).map(|fit| {
        let usual = [left(1, 20), right(2, 14), right(1, 14), right(1, 14), right(1, 14), left(3, 0)];
        let narrow = [left(1, 0), right(2, 0), right(2, 0), right(2, 0), right(2, 0), left(2, 0)];
        let kept = [0..6, 0..6, 0..5, 2..5][fit].clone();
        let is_kept = |at: &usize| *at == 0 || kept.contains(at);
        let shapes: Vec<_> = if fit == 0 { usual } else { narrow }
            .into_iter()
            .enumerate()
            .filter(|(at, _)| is_kept(at))
            .map(|(_, shape)| shape)
            .collect();
        rows[0][5] = interval[fit.min(1)].to_owned();
        let cells = |row: &[String; 6]| (0..6).filter(is_kept).map(|at| row[at].clone()).collect();
        table::lines(&shapes, rows.iter().map(cells))
    });
    for line in first_fitting(texts, style.width) {
        writeln!(out, "{line}")?;
    }
    writeln!(out)?;
    writeln!(out, " The percentages after ± and +- above are standard errors of the mean.\n")?;
    if !outliers.is_empty() {
        let more = match outliers.len().saturating_sub(6) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        outliers.truncate(6);
        writeln!(out, " Outliers: {}{more}.", outliers.join(", "))?;
        writeln!(
            out,
            "   Something disturbed these runs: close other programs, or use more runs; the median is more reliable than the mean.\n"
        )?;
    }
    Ok(())
}
