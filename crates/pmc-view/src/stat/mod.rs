//! Output of `pmc stat` in all formats.
//!
//! Receives [`StatCounts`] and a [`StatStyle`], and writes to any `Write`. Chooses columns, order and number
//! formats; `profile` defines the meaning of counts. perf's formats ([`text`], [`csv`], [`json`]) follow perf
//! 6.1. Where perf's output is broken, `docs/output-formats.md` describes what pmc writes instead.
//!
//! ```text
//! text      human-readable table with notes         versus    several commands side by side
//! csv       -x SEP, perf's fields                   runs      statistics of -r N runs
//! json      -j, perf's lines                        document  --json=2, one document with numbers
//! ```

pub mod csv;
pub mod document;
pub mod json;
mod layout;
mod metric_table;
mod notes;
mod parts;
mod place;
mod runs;
pub mod text;
mod tree;
pub mod versus;

pub use layout::{StatDestination, StatFormat, StatLayout};
pub use tree::TopdownTree;

use std::borrow::Cow;

use pmc_analysis::profile::counts::{Aggregation, DerivedResult, StatCounts, StatEvent, StatValue};
use pmc_analysis::profile::metrics::shadow::{ComputedMetric, MetricFormat};
use pmc_analysis::profile::statistics::MeasurementSummary;
use pmc_text::table::shown_width;
use pmc_text::terminal::Paint;
use pmc_text::{text as words, units};

/// Output options, which each command sets from its command line.
#[derive(Debug, Clone)]
pub struct StatStyle {
    /// Whether the table has thousands separators (`--no-big-num` disables them).
    pub big_num: bool,
    /// Whether to show only derived metrics, one column each (`--metric-only`).
    pub metric_only: bool,
    /// Whether to show perf's table of the individual runs of `-r N` (`--table`).
    pub table: bool,
    /// Whether the counts are the summary after the intervals (`--summary`). CSV marks summary lines.
    pub summary: bool,
    /// The tree of the top-down analysis, if that was requested.
    pub tree: Option<TopdownTree>,
    /// Text styles of the tree.
    pub paint: Paint,
    /// Whether to highlight suspicious ratios and missing counts in colour.
    pub colour: bool,
    /// Maximum line width of the table in columns. If `None`, the columns have the same widths as in perf.
    pub width: Option<usize>,
    /// Separator of CSV fields (`-x`).
    pub separator: String,
}

impl Default for StatStyle {
    fn default() -> Self {
        Self {
            big_num: true,
            metric_only: false,
            table: false,
            summary: false,
            tree: None,
            paint: Paint::default(),
            colour: false,
            width: None,
            separator: ",".into(),
        }
    }
}

/// The measured target, for the headline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StatSubject {
    /// A command and its arguments.
    Command(Vec<String>),
    /// All processes on all CPUs.
    SystemWide,
    /// These CPUs, as typed.
    Cpus(String),
    /// These processes, as typed.
    Processes(String),
    /// These threads, as typed.
    Threads(String),
    /// The processes of this user, as typed.
    User(String),
}

impl StatSubject {
    /// Returns the target as command-line arguments: `-a`, `-- sleep 1`.
    pub fn as_typed(&self) -> String {
        let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%^".contains(c);
        let word = |word: &String| match word.chars().all(plain) && !word.is_empty() {
            true => word.clone(),
            false => format!("'{}'", word.replace('\'', "'\\''")),
        };
        let text = match self {
            Self::Command(words) => format!("-- {}", words.iter().map(word).collect::<Vec<_>>().join(" ")),
            Self::SystemWide => "-a".to_owned(),
            Self::Cpus(list) => format!("-C {list}"),
            Self::Processes(list) => format!("-p {list}"),
            Self::Threads(list) => format!("-t {list}"),
            Self::User(user) => format!("-u {}", word(user)),
        };
        words::clean(&text).into_owned()
    }

    /// Returns the target in perf's words: `'sleep 1'`, `process id '12'`.
    pub fn words(&self) -> String {
        let (kind, what) = match self {
            Self::Command(words) => ("", words.join(" ")),
            Self::SystemWide => ("", "system wide".to_owned()),
            Self::Cpus(list) => ("", format!("CPU(s) {list}")),
            Self::Processes(list) => ("process id ", list.clone()),
            Self::Threads(list) => ("thread id ", list.clone()),
            Self::User(user) => ("user ", user.clone()),
        };
        format!("{kind}'{}'", words::clean(&what))
    }
}

/// Returns the row and event of every cell, in the order in which cells are printed. Omits cells whose event
/// was not opened in that place.
///
/// The order is the same as in perf. CPUs and threads are grouped by event, with the busiest thread first. If
/// counts are summed by core, die, socket or node, they are grouped by place instead.
fn cells(counts: &StatCounts) -> Vec<(usize, usize)> {
    let (rows, events) = (counts.rows.len(), counts.events.len());
    let of_event = |event| {
        let mut rows: Vec<usize> = (0..rows).collect();
        if counts.aggregation == Aggregation::Thread {
            let number = |row: &usize| counts.value(*row, event).number().unwrap_or(-1.0);
            rows.sort_by(|a, b| number(b).total_cmp(&number(a)));
        }
        rows.into_iter().map(move |row| (row, event))
    };
    let by_event = !place::is_summed(counts.aggregation);
    let mut cells: Vec<(usize, usize)> = if by_event {
        (0..events).flat_map(of_event).collect()
    } else {
        (0..rows).flat_map(|row| (0..events).map(move |event| (row, event))).collect()
    };
    cells.retain(|&(row, event)| !matches!(counts.value(row, event), StatValue::Absent));
    cells
}

/// Returns the number of decimals for an event's value. As in perf, this is 2 if the event's scale has a
/// fraction.
fn decimals(event: &StatEvent) -> usize {
    if event.scale.fract() == 0.0 { 0 } else { 2 }
}

/// Returns the number of decimals needed to show an error to two significant digits, as perf does after `+-`.
fn precision(error: f64) -> usize {
    match error {
        e if e > 1.0 => 2,
        e if e > 0.0 => ((-e.log10()).ceil().max(0.0) as usize + 2).min(9),
        _ => 9,
    }
}

/// Returns the number of decimals for the mean of several runs. Small means of whole counts get one decimal;
/// other measures get as many as their error justifies.
fn mean_digits(summary: &MeasurementSummary, fractional: bool) -> usize {
    if fractional {
        precision(summary.error_of_mean()).min(6)
    } else {
        usize::from(summary.mean < 1000.0 && summary.mean.fract() != 0.0)
    }
}

/// Returns the time unit that best suits the smallest of `means`, and the factor that converts the means to
/// that unit. `unit` is the current unit of the means. Returns `None` if `unit` is not a unit of time.
fn fitting_unit(unit: &str, means: impl Iterator<Item = f64>) -> Option<(f64, &'static str)> {
    let seconds = match unit {
        "s" => 1.0,
        "msec" => 1e-3,
        _ => return None,
    };
    let least = means.filter(|mean| *mean > 0.0).fold(f64::INFINITY, f64::min) * seconds;
    let (size, name) = match least {
        least if least >= 1.0 => (1.0, "s"),
        least if least >= 1e-3 => (1e-3, "ms"),
        _ => (1e-6, "µs"),
    };
    Some((seconds / size, name))
}

/// Returns the outliers if there are enough runs. With as few as five runs, one of them nearly always looks
/// like an outlier.
fn noted_outliers(summary: &MeasurementSummary) -> &[usize] {
    const FEWEST: usize = 10;
    if summary.count < FEWEST { &[] } else { &summary.outliers }
}

/// Formats an event's number in its unit; `big_num` adds thousands separators.
fn quantity(value: f64, decimals: usize, big_num: bool) -> String {
    if big_num { units::thousands_f64(value, decimals) } else { format!("{value:.decimals$}") }
}

/// Formats a count, or returns perf's words for a missing count.
fn number(value: &StatValue, event: &StatEvent, style: &StatStyle) -> String {
    let counted = || value.number().unwrap_or_default() * event.scale;
    missing(value).map_or_else(|| quantity(counted(), decimals(event), style.big_num), str::to_owned)
}

/// Formats a metric's number like perf's `printf`, including padding.
fn metric_number(metric: &ComputedMetric) -> String {
    let value = metric.value;
    match metric.metric.format {
        MetricFormat::Fixed => format!("{value:8.3}"),
        MetricFormat::Ratio => format!("{value:7.2} "),
        MetricFormat::Percent => format!("{value:7.2}%"),
        MetricFormat::FinePercent => format!("{value:8.3} %"),
    }
}

/// Formats a metric's number as in perf's CSV: only digits and the decimal point.
fn metric_digits(metric: &ComputedMetric) -> String {
    let text = metric_number(metric);
    let digits = text.trim_start();
    let end = digits.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-'))).unwrap_or(digits.len());
    digits[..end].to_owned()
}

/// Returns the percentage of an event's enabled time during which it was counted. Like perf, returns 100 if
/// the event was never enabled.
fn share_percent(value: &StatValue) -> f64 {
    match value {
        StatValue::Counted { count, .. } => 100.0 * count.share(),
        _ => 100.0,
    }
}

/// Returns the standard error of the mean over the runs of `-r N`, in percent; `None` for a single run.
fn variance(counts: &StatCounts, value: &StatValue) -> Option<f64> {
    if counts.runs.len() < 2 && value.runs().len() < 2 {
        return None;
    }
    Some(MeasurementSummary::from_values(value.runs()).map_or(0.0, |s| s.error_percent()))
}

/// Returns perf's words for a missing count. An event that was enabled but never ran counts as missing.
fn missing(value: &StatValue) -> Option<&'static str> {
    match value {
        StatValue::NotSupported(_) => Some("<not supported>"),
        value if value.number().is_none() => Some("<not counted>"),
        _ => None,
    }
}

/// Returns the first text whose lines all fit into `width`, or the last text if none fits.
fn first_fitting<T: AsRef<str>>(texts: impl IntoIterator<Item = Vec<T>>, width: Option<usize>) -> Vec<T> {
    let fits =
        |lines: &[T]| lines.iter().all(|line| width.is_none_or(|most| shown_width(line.as_ref()) <= most));
    let mut last = Vec::new();
    for lines in texts {
        last = lines;
        if fits(&last) {
            break;
        }
    }
    last
}

/// Returns a metric's unit and name as in perf's tables: `%  tma_retiring`.
fn in_its_unit(metric: &DerivedResult) -> Cow<'_, str> {
    match metric.unit.as_str() {
        "" => Cow::Borrowed(&metric.name),
        unit => Cow::Owned(format!("{unit}  {}", metric.name)),
    }
}

/// Returns perf's word for a value that has (`crossed`) or has not crossed its threshold.
fn threshold(crossed: bool) -> &'static str {
    if crossed { "bad" } else { "good" }
}

/// Makes an untrusted name safe to print.
fn safe(name: &str) -> Cow<'_, str> {
    words::clean(name)
}
