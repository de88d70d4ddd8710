//! The human-readable table: perf's layout, with reasons for missing counts.
//!
//! ```text
//!  Performance counter stats for 'make':
//!
//!           1,234.56 msec task-clock               #    0.981 CPUs utilized
//!      2,345,678,901      cycles                   #    1.900 GHz                       (66.7% ±1.1%)
//!    <not supported>      stalled-cycles-backend   # [1]
//!
//!        1.258000000 seconds time elapsed
//!
//!  [1] stalled-cycles-backend: not supported (ENOENT), because …
//!      try: …
//!  ^ 18 columns, unit, event [cgroup], # metric, variance, share
//! ```
//! Receives [`StatCounts`], and chooses column widths and notes. Cleans names, and aligns columns by their
//! width on a terminal.

use std::io::{self, Write};

use super::notes::TableNotes;
use super::{
    StatStyle, StatSubject, cells, first_fitting, metric_number, metric_table, missing, number, parts, place,
    runs, safe, tree, variance,
};
use crate::remarks::Remarks;
use pmc_analysis::profile::counts::{CpuTime, EventRole, StatCounts, StatEvent, StatValue};
use pmc_analysis::profile::metrics::shadow::{ComputedMetric, RatioSeverity, shadow};
use pmc_analysis::profile::sharing::relative_error;
use pmc_text::table::{self, ColumnShape, left, right, shown_width};
use pmc_text::text;
use pmc_text::units::{PerfTime, duration, seconds};

/// Number of intervals between two headlines, as in perf.
const HEADLINE_EVERY: usize = 25;
const VALUE: usize = 18;
const METRIC: usize = 35;

/// Writes the result of a whole run, or the summary after intervals.
pub fn run(
    out: &mut dyn Write,
    counts: &StatCounts,
    subject: &StatSubject,
    style: &StatStyle,
) -> io::Result<()> {
    let out = &mut Remarks::new(out, style.width, false);
    let runs = counts.runs.len();
    let repeated = if runs > 1 { format!(" ({runs} runs)") } else { String::new() };
    writeln!(out, "\n Performance counter stats for {}{repeated}:\n", subject.words())?;
    if style.metric_only {
        metric_table::text(out, counts, true)?;
        writeln!(out)?;
        return footer(out, counts, style);
    }
    if let Some(tree) = style.tree.as_ref().filter(|_| counts.derived.len() == 1) {
        tree::write(out, &counts.derived[0], tree, subject, style)?;
        return if tree.is_all {
            footer(out, counts, style)
        } else {
            table(out, &without_branches(counts), style)
        };
    }
    table(out, counts, style)
}

fn table(out: &mut Remarks<'_>, counts: &StatCounts, style: &StatStyle) -> io::Result<()> {
    let mut table = CountTable::new(counts, None, true, style);
    let lines = table.body(|_| None);
    lines.iter().try_for_each(|line| writeln!(out, "{line}"))?;
    if !counts.events.is_empty() {
        writeln!(out)?;
    }
    footer(out, counts, style)?;
    runs::block(out, counts, style)?;
    table.notes.write(out)
}

/// Returns the counts without the metrics of the top-down tree.
fn without_branches(counts: &StatCounts) -> StatCounts {
    let mut rest = counts.clone();
    rest.derived.iter_mut().for_each(|row| row.retain(|derived| derived.branch.is_none()));
    rest
}

/// Writes one interval. `number` counts intervals from 0 and determines whether a headline is written.
pub fn interval(
    out: &mut dyn Write,
    counts: &StatCounts,
    number: usize,
    style: &StatStyle,
) -> io::Result<()> {
    let headline = number.is_multiple_of(HEADLINE_EVERY);
    if style.metric_only {
        return metric_table::text(out, counts, headline);
    }
    let time = counts.timestamp_ns.unwrap_or(counts.elapsed_ns);
    let mut table = CountTable::new(counts, Some(time), headline, style);
    // Explain unsupported events only in the first interval. Explain uncounted events in every interval,
    // because they may change.
    let lines = table.body(|value| match value {
        StatValue::NotSupported(reason) if number == 0 => Some(reason.cause.as_str()),
        StatValue::NotCounted(reason) => Some(reason.cause.as_str()),
        _ => Some(""),
    });
    if headline && !counts.aggregation.is_parted() {
        let place = place::headline(counts.aggregation);
        let [value, unit, ..] = table.widths.columns.map(|column| column.least);
        let shapes = [right(0, table.time().len() - 2), left(0, 0), right(1, value), optional(right, unit)];
        let titles = ["time", place, "counts", if unit > 0 { "unit" } else { "" }];
        writeln!(out, "#{} events", table::line(&shapes, titles))?;
    }
    lines.iter().try_for_each(|line| writeln!(out, "{line}"))?;
    if counts.yielded_ns > 0 {
        let [off, of] = [counts.yielded_ns, counts.elapsed_ns].map(|ns| duration(ns as f64));
        let time = table.time();
        writeln!(
            out,
            "#{} hardware events were disabled for {off} of {of}: another program had reserved the counters",
            time.get(1..).unwrap_or_default().trim_end()
        )?;
    }
    Ok(())
}

/// Ways to make lines fit into the width. Each one includes all previous ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CompactionLevel {
    /// Columns with perf's widths.
    Perf,
    /// Columns as wide as their contents.
    Narrow,
    /// A short form of the error of the mean.
    Short,
    /// Metrics on separate lines.
    Broken,
}

/// Width of each table column on the terminal.
#[derive(Debug, Clone, Copy)]
struct ColumnWidths {
    /// Value, unit, name and cgroup.
    columns: [ColumnShape; 4],
    /// Width of a metric's number.
    number: usize,
    /// Width of a whole metric.
    metric: usize,
}

/// A table of counts, with its column widths and notes.
struct CountTable<'a> {
    counts: &'a StatCounts,
    style: &'a StatStyle,
    /// End of the interval in nanoseconds; `None` for a whole run.
    time: Option<u64>,
    /// Whether to write a headline with the names of the parts.
    headline: bool,
    fit: CompactionLevel,
    widths: ColumnWidths,
    notes: TableNotes,
}

impl<'a> CountTable<'a> {
    fn new(counts: &'a StatCounts, time: Option<u64>, headline: bool, style: &'a StatStyle) -> Self {
        let fit = CompactionLevel::Perf;
        let widths = widths(counts, style, fit);
        Self { counts, style, time, headline, fit, widths, notes: TableNotes::default() }
    }

    /// Returns all lines. `why` returns the text for a missing count, or `None` to use a note.
    fn body<'v>(&mut self, why: impl Fn(&'v StatValue) -> Option<&'v str>) -> Vec<String>
    where
        'a: 'v,
    {
        let (counts, style) = (self.counts, self.style);
        if counts.aggregation.is_parted() {
            let (time, headline) = (self.time(), self.headline);
            return parts::lines(counts, style, &time, headline, &mut self.notes, &why);
        }
        // The columns of consecutive intervals must align, even if their counts differ in width.
        let ColumnWidths { columns, metric, .. } = self.widths;
        let usual = self.time().len() + table::width(&columns) + metric;
        let is_narrow = self.time.is_some() && style.width.is_some_and(|most| most < usual);
        let fits =
            [CompactionLevel::Perf, CompactionLevel::Narrow, CompactionLevel::Short, CompactionLevel::Broken];
        let texts = fits.into_iter().skip(is_narrow.into()).map(|fit| {
            self.fit = fit;
            self.widths = widths(counts, style, fit);
            self.lines(&why)
        });
        first_fitting(texts, style.width)
    }

    /// Returns all lines with the current widths.
    fn lines<'v>(&mut self, why: &impl Fn(&'v StatValue) -> Option<&'v str>) -> Vec<String>
    where
        'a: 'v,
    {
        let (counts, style) = (self.counts, self.style);
        let mut lines = Vec::new();
        let cells = cells(counts);
        let mut last = vec![usize::MAX; counts.rows.len()];
        for (at, (row, _)) in cells.iter().enumerate() {
            last[*row] = at;
        }
        for (at, &(row, event)) in cells.iter().enumerate() {
            let metrics = shadow(counts, row, event);
            let (line, spread) = self.line(row, event, &metrics, why(counts.value(row, event)));
            let width = shown_width(&line) + text::width(&spread);
            let fits = self.fit < CompactionLevel::Broken || style.width.is_none_or(|most| width <= most);
            lines.push(if fits { line + &spread } else { line });
            let in_its_line =
                usize::from(self.fit < CompactionLevel::Broken || is_tool(&counts.events[event]));
            for metric in metrics.iter().skip(in_its_line) {
                lines.push(format!("{}{}", self.blank(row), self.metric(metric)));
            }
            if !fits {
                lines.push(format!("{} {}", self.blank(row), spread.trim_start()));
            }
            if last[row] == at {
                self.derived(&mut lines, row);
            }
        }
        lines.iter_mut().for_each(|line| line.truncate(line.trim_end().len()));
        lines
    }

    /// Returns the end of the interval and a blank; empty for a whole run.
    fn time(&self) -> String {
        let Some(time) = self.time else { return String::new() };
        match self.fit {
            CompactionLevel::Perf => format!("{:16.9} ", PerfTime(time)),
            _ => format!("{:11.6} ", PerfTime(time)),
        }
    }

    /// Returns one line of the table, and the accuracy of the count, which the caller appends to the line. If
    /// the count is missing, the line shows `why`, or else refers to a note below the table.
    fn line(
        &mut self,
        row: usize,
        at: usize,
        metrics: &[ComputedMetric],
        why: Option<&str>,
    ) -> (String, String) {
        let (counts, style, widths) = (self.counts, self.style, self.widths);
        let (value, event) = (counts.value(row, at), &counts.events[at]);
        let number = number(value, event, style);
        let number = if missing(value).is_some() { self.colour(&number, "\x1b[33m") } else { number };
        let cgroup = event.cgroup.as_deref().unwrap_or_default();
        let cells = [number.into(), safe(&event.unit), safe(&event.name), safe(cgroup)];
        let mut line = self.time() + &place::columns(counts, &counts.rows[row], Some(at));
        line += &table::line(&widths.columns, cells);
        if let Some(words) = missing(value) {
            let why = match (why, value.reason()) {
                (Some(""), _) | (None, None) => return (line, String::new()),
                (Some(why), _) => safe(why).into_owned(),
                (None, Some(reason)) => format!("[{}]", self.notes.number(words, reason, &event.name)),
            };
            let room = style.width.map(|most| most.saturating_sub(shown_width(&line) + 3));
            let why = text::cut(&why, room.unwrap_or(usize::MAX));
            return (format!("{line} # {why}"), String::new());
        }
        let metric = metrics.first().filter(|_| !is_tool(event) && self.fit < CompactionLevel::Broken);
        line += &metric.map_or_else(|| " ".repeat(widths.metric), |metric| self.metric(metric));
        let mut spread = String::new();
        if let Some(percent) = variance(counts, value).filter(|p| *p != 0.0) {
            spread += &match self.fit {
                CompactionLevel::Perf | CompactionLevel::Narrow => format!("  ( +-{percent:6.2}% )"),
                CompactionLevel::Short | CompactionLevel::Broken => {
                    format!("  {:>6}%", format!("±{percent:.1}"))
                }
            };
        }
        if let StatValue::Counted { count, .. } = value
            && count.running_ns < count.enabled_ns
        {
            let error = relative_error(*count).map(|e| format!(" ±{:.1}%", 100.0 * e)).unwrap_or_default();
            spread += &format!("  ({:.1}%{error})", 100.0 * count.share());
            self.notes.shared = true;
        }
        (line, spread)
    }

    /// Returns the time and place, followed by blanks up to the metric column.
    fn blank(&self, row: usize) -> String {
        let columns = &self.widths.columns;
        let before = self.time() + &place::columns(self.counts, &self.counts.rows[row], None);
        match self.fit {
            CompactionLevel::Broken => {
                let most = self.style.width.map_or(usize::MAX, |most| most / 3);
                " ".repeat((text::width(&before) + table::width(&columns[..2]) + 1).min(most))
            }
            _ => before + &table::line(columns, [""; 4]),
        }
    }

    /// Formats a metric in perf's width: ` # 0.486 CPUs utilized`. `~` marks a ratio between two events that
    /// were counted at different times.
    fn metric(&mut self, metric: &ComputedMetric) -> String {
        self.notes.inexact |= metric.inexact;
        let mark = if metric.inexact { " #~" } else { " # " };
        let number = metric_number(metric);
        let number = match self.fit {
            CompactionLevel::Perf => number,
            _ => format!("{:>1$}", number.trim(), self.widths.number),
        };
        let rest = self.widths.metric.saturating_sub(3 + text::width(&number) + 1);
        let number = match metric.severity {
            RatioSeverity::None => number,
            RatioSeverity::Low => self.colour(&number, "\x1b[33m"),
            RatioSeverity::Middle => self.colour(&number, "\x1b[35m"),
            RatioSeverity::High => self.colour(&number, "\x1b[31m"),
        };
        format!("{mark}{number} {}", text::padded(&metric.unit, rest))
    }

    /// Adds the named and user-defined metrics of a row to the metric column, one per line.
    fn derived(&mut self, lines: &mut Vec<String>, row: usize) {
        for metric in self.counts.derived.get(row).into_iter().flatten() {
            let name = match &metric.cgroup {
                Some(cgroup) => format!("{} {}", safe(&metric.name), safe(cgroup)),
                None => safe(&metric.name).into_owned(),
            };
            let mark = if metric.inexact { " #~" } else { " # " };
            self.notes.inexact |= metric.inexact;
            let blank = self.blank(row);
            let (line, help) = match &metric.value {
                Ok(value) => {
                    let unit =
                        if metric.unit.is_empty() { String::new() } else { format!("{} ", metric.unit) };
                    let error = metric.error.filter(|error| *error >= 0.0005);
                    let error = error.map(|error| format!("±{error:.3} ")).unwrap_or_default();
                    let number = format!("{value:8.3}");
                    let number = match metric.crossed {
                        Some(true) => self.colour(&number, "\x1b[31m"),
                        _ => number,
                    };
                    (format!("{blank}{mark}{number} {error}{unit}{name}"), safe(&metric.help))
                }
                Err(reason) => (format!("{blank}{mark}no value for {name}"), safe(&reason.cause)),
            };
            let help = match &metric.value {
                _ if help.is_empty() => String::new(),
                Ok(_) => format!("  ({help})"),
                Err(_) => format!(": {help}"),
            };
            let room = self.style.width.map_or(usize::MAX, |most| most.saturating_sub(shown_width(&line)));
            lines.push(line + &text::cut(&help, room));
        }
    }

    fn colour(&self, text: &str, code: &str) -> String {
        if self.style.colour { format!("{code}{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Whether the event is a time that pmc itself measures. If so, its line has no metrics.
fn is_tool(event: &StatEvent) -> bool {
    matches!(event.role, Some(EventRole::DurationTime | EventRole::UserTime | EventRole::SystemTime))
}

/// Returns a column that takes no space if its width is 0.
fn optional(column: fn(usize, usize) -> ColumnShape, width: usize) -> ColumnShape {
    column(usize::from(width > 0), width)
}

fn widths(counts: &StatCounts, style: &StatStyle, fit: CompactionLevel) -> ColumnWidths {
    let widest = |texts: &mut dyn Iterator<Item = &str>, least| {
        texts.map(|t| text::width(&safe(t))).max().unwrap_or(0).max(least)
    };
    let least = |width| if fit == CompactionLevel::Perf { width } else { 0 };
    let cgroups = &mut counts.events.iter().filter_map(|e| e.cgroup.as_deref());
    let unit = widest(&mut counts.events.iter().map(|e| e.unit.as_str()), least(4));
    let name = widest(&mut counts.events.iter().map(|e| e.name.as_str()), least(24));
    let cgroup = if counts.has_cgroups() { widest(cgroups, least(16)) } else { 0 };
    let mut widths = ColumnWidths {
        columns: [right(0, VALUE), optional(left, unit), left(1, name), optional(left, cgroup)],
        number: 0,
        metric: METRIC,
    };
    if fit == CompactionLevel::Perf {
        return widths;
    }
    let cells = cells(counts);
    let all = cells.iter().map(|&(row, at)| number(counts.value(row, at), &counts.events[at], style).len());
    let (value, metric) = if counts.timestamp_ns.is_some() { (13, 8) } else { (7, 0) };
    widths.columns[0].least = 1 + all.max().unwrap_or(0).max(value);
    let metrics: Vec<ComputedMetric> = cells.iter().flat_map(|&(row, at)| shadow(counts, row, at)).collect();
    let number = |metric: &ComputedMetric| metric_number(metric).trim().len() + usize::from(metric.inexact);
    widths.number = metrics.iter().map(number).max().unwrap_or(0).max(metric);
    widths.metric = match fit {
        CompactionLevel::Broken => 0,
        _ => metrics.iter().map(|metric| 4 + widths.number + text::width(&metric.unit)).max().unwrap_or(0),
    };
    widths
}

/// Writes elapsed, user and system time in perf's format.
fn footer(out: &mut dyn Write, counts: &StatCounts, style: &StatStyle) -> io::Result<()> {
    if counts.runs.len() > 1 {
        return runs::footer(out, counts, style);
    }
    writeln!(out, " {:17.9} seconds time elapsed\n", counts.elapsed_seconds())?;
    if let Some(CpuTime { user_ns, system_ns }) = counts.cpu_time {
        writeln!(out, " {:17.9} seconds user", seconds(user_ns))?;
        writeln!(out, " {:17.9} seconds sys\n", seconds(system_ns))?;
    }
    Ok(())
}
