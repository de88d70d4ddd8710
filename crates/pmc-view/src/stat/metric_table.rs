//! `--metric-only`: one line per place, one column per metric, no counts.
//!
//! perf omits rates and "CPUs utilized" from its columns. CSV and JSON omit them too, but the human-readable
//! table keeps "CPUs utilized". A metric has a column if any row has a value for it, or would have a value if
//! the event had been counted.

use std::io::{self, Write};

use super::{metric_digits, metric_number, place, safe};
use pmc_analysis::profile::counts::StatCounts;
use pmc_analysis::profile::metrics::shadow::{MetricColumnRule, ShadowMetric, expected, shadow};
use pmc_text::table::{self, right};
use pmc_text::text;
use pmc_text::units::PerfTime;

/// A column: its title and the cell of each row.
pub(super) struct MetricColumn {
    pub(super) title: String,
    pub(super) cells: Vec<Option<MetricCell>>,
}

pub(super) struct MetricCell {
    padded: String,
    pub(super) digits: String,
    pub(super) value: f64,
    inexact: bool,
}

pub(super) fn columns(counts: &StatCounts, keep: impl Fn(&ShadowMetric) -> bool) -> Vec<MetricColumn> {
    let mut columns: Vec<MetricColumn> = Vec::new();
    let rows = counts.rows.len();
    let mut put = |title: String, row: usize, cell: Option<MetricCell>| {
        let at = columns.iter().position(|c| c.title == title).unwrap_or_else(|| {
            columns.push(MetricColumn { title, cells: (0..rows).map(|_| None).collect() });
            columns.len() - 1
        });
        if cell.is_some() {
            columns[at].cells[row] = cell;
        }
    };
    for (at, event) in counts.events.iter().enumerate() {
        let name = safe(&event.name);
        let title = |unit: &str| {
            let title = if unit.starts_with("of all") { format!("{name} {unit}") } else { unit.to_owned() };
            match &event.cgroup {
                Some(cgroup) => format!("{title} {}", safe(cgroup)),
                None => title,
            }
        };
        for row in 0..rows {
            let metrics = shadow(counts, row, at);
            for metric in metrics.iter().filter(|one| keep(one.metric)) {
                let cell = MetricCell {
                    padded: metric_number(metric),
                    digits: metric_digits(metric),
                    value: metric.value,
                    inexact: metric.inexact,
                };
                put(title(&metric.unit), row, Some(cell));
            }
            if metrics.is_empty()
                && let Some(metric) = event.role.and_then(expected).filter(|metric| keep(metric))
            {
                put(title(metric.perf_unit), row, None);
            }
        }
    }
    for (row, derived) in counts.derived.iter().enumerate().take(rows) {
        for metric in derived {
            let cell = metric.value.as_ref().ok().map(|v| MetricCell {
                padded: format!("{v:8.3}"),
                digits: format!("{v:.3}"),
                value: *v,
                inexact: metric.inexact,
            });
            // perf's title has two spaces between the unit and the name.
            let title = format!("{}  {}", safe(&metric.unit), safe(&metric.name));
            put(title.trim_start().to_owned(), row, cell);
        }
    }
    columns
}

/// Whether CSV and JSON have a column for the metric.
pub(super) fn for_programs(metric: &ShadowMetric) -> bool {
    !matches!(metric.column, MetricColumnRule::Never | MetricColumnRule::OnlyInText)
}

/// Writes the human-readable table, with titles if `headline` is set.
pub(super) fn text(out: &mut dyn Write, counts: &StatCounts, headline: bool) -> io::Result<()> {
    let columns = columns(counts, |metric| metric.column != MetricColumnRule::Never);
    let time = counts.timestamp_ns.map(|t| format!("{:16.9} ", PerfTime(t)));
    let shapes: Vec<_> = columns.iter().map(|column| right(1, text::width(&column.title).max(20))).collect();
    if headline {
        let place = counts.rows.first().map_or(0, |row| text::width(&place::columns(counts, row, None)));
        let lead = match &time {
            Some(_) => format!("#           time{}", place::headline(counts.aggregation)),
            None => String::new(),
        };
        let lead_width = time.as_ref().map_or(0, String::len) + place;
        let titles = table::line(&shapes, columns.iter().map(|column| &column.title));
        writeln!(out, "{lead:lead_width$}{titles}")?;
    }
    for (at, row) in counts.rows.iter().enumerate() {
        let cells = columns.iter().map(|column| match &column.cells[at] {
            Some(cell) => format!("{}{}", if cell.inexact { "~" } else { "" }, cell.padded.trim()),
            None => "-".to_owned(),
        });
        let (time, place) = (time.as_deref().unwrap_or_default(), place::columns(counts, row, None));
        writeln!(out, "{}", format!("{time}{place}{}", table::line(&shapes, cells)).trim_end())?;
    }
    Ok(())
}
