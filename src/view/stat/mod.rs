//! The results of counting in all their forms.
//!
//! Receives [`Counts`] and a [`StatStyle`]; writes to any `Write`. Decides columns, order and number forms;
//! what a count means is decided in `profile`. perf's formats ([`text`], [`csv`], [`json`]) follow perf 6.1;
//! where that is broken, `docs/output-formats.md` says what pmc does instead.
//!
//! ```text
//! text      the table for people, with notes        versus    several commands beside each other
//! csv       -x SEP, perf's fields                   runs      what -r N runs say together
//! json      -j, perf's lines                        document  --json=2, one document with numbers
//! ```

pub mod csv;
pub mod document;
pub mod json;
mod metric_table;
mod notes;
mod parts;
mod place;
mod runs;
pub mod text;
mod tree;
pub mod versus;

pub use tree::Tree;

use std::borrow::Cow;

use crate::profile::counts::{Aggregation, Counts, Derived, Event, Value};
use crate::profile::metrics::{Format, Metric};
use crate::profile::statistics::Summary;
use crate::sort;
use crate::terminal::Paint;
use crate::{text as words, units};

/// How results are written; a command fills it from its options.
#[derive(Debug, Clone)]
pub struct StatStyle {
    /// Thousands separators in the table (`--no-big-num` clears it).
    pub big_num: bool,
    /// Only derived metrics, one column each (`--metric-only`).
    pub metric_only: bool,
    /// perf's table of the single runs of `-r N` (`--table`).
    pub table: bool,
    /// These counts sum up what intervals showed (`--summary`); CSV marks such lines.
    pub summary: bool,
    /// The top-down analysis was asked for, and is drawn as a tree.
    pub tree: Option<Tree>,
    /// The looks of the tree.
    pub paint: Paint,
    /// Colours for alarming ratios and missing counts.
    pub colour: bool,
    /// A line of the table has at most so many columns; `None`: perf's widths, whatever they take.
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

/// What was measured, for the headline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A command and its arguments.
    Command(Vec<String>),
    /// Everything on all CPUs.
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

impl Subject {
    /// The options and words that name it on a command line: `-a`, `-- sleep 1`.
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

    /// perf's words for it: `'sleep 1'`, `process id '12'`.
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

/// Row and event of every cell in the order of printing, places that do not have an event left out.
///
/// perf prints all CPUs of an event together, all threads of an event from the busiest on, but all events of
/// a core, die, socket or node.
fn cells(counts: &Counts) -> Vec<(usize, usize)> {
    let (rows, events) = (counts.rows.len(), counts.events.len());
    let of_event = |event| {
        let mut rows: Vec<usize> = (0..rows).collect();
        if counts.aggregation == Aggregation::Thread {
            let number = |row: &usize| counts.value(*row, event).number().unwrap_or(-1.0);
            sort::by(&mut rows, |a, b| number(b).total_cmp(&number(a)));
        }
        rows.into_iter().map(move |row| (row, event))
    };
    let by_event = !place::is_summed(counts.aggregation);
    let mut cells: Vec<(usize, usize)> = if by_event {
        (0..events).flat_map(of_event).collect()
    } else {
        (0..rows).flat_map(|row| (0..events).map(move |event| (row, event))).collect()
    };
    cells.retain(|&(row, event)| !matches!(counts.value(row, event), Value::Absent));
    cells
}

/// Digits behind the point: perf shows two where the scale has a fraction.
fn decimals(event: &Event) -> usize {
    if event.scale.fract() == 0.0 { 0 } else { 2 }
}

/// Digits that show an error of this size with two of its own digits: perf's rule for `+-`.
fn precision(error: f64) -> usize {
    match error {
        e if e > 1.0 => 2,
        e if e > 0.0 => ((-e.log10()).ceil().max(0.0) as usize + 2).min(9),
        _ => 9,
    }
}

/// Digits for the mean of several runs: whole counts get one where it can be seen, others as many as their
/// error leaves certain.
fn mean_digits(summary: &Summary, fractional: bool) -> usize {
    if fractional {
        precision(summary.error_of_mean()).min(6)
    } else {
        usize::from(summary.mean < 1000.0 && summary.mean.fract() != 0.0)
    }
}

/// The unit of time in which the least of these means can be read, and what a value is multiplied with to be
/// in it. `unit`: that of the means; `None` where it is no unit of time.
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

/// Runs that stand out among others, where there are enough to say so: of five runs one nearly always does.
fn noted_outliers(summary: &Summary) -> &[usize] {
    const FEWEST: usize = 10;
    if summary.count < FEWEST { &[] } else { &summary.outliers }
}

/// A number of an event in its unit, without separators; `big_num` puts them in.
fn quantity(value: f64, decimals: usize, big_num: bool) -> String {
    if big_num { units::thousands_f64(value, decimals) } else { format!("{value:.decimals$}") }
}

/// A count as it is shown, or the words for a missing one.
fn number(value: &Value, event: &Event, style: &StatStyle) -> String {
    let counted = || value.number().unwrap_or_default() * event.scale;
    missing(value).map_or_else(|| quantity(counted(), decimals(event), style.big_num), str::to_owned)
}

/// A metric's number as perf's `printf` writes it, padding included.
fn metric_number(metric: &Metric) -> String {
    let value = metric.value;
    match metric.format {
        Format::Fixed => format!("{value:8.3}"),
        Format::Ratio => format!("{value:7.2} "),
        Format::Percent => format!("{value:7.2}%"),
        Format::FinePercent => format!("{value:8.3} %"),
    }
}

/// As perf's CSV has it: digits and point only.
fn metric_digits(metric: &Metric) -> String {
    let text = metric_number(metric);
    let digits = text.trim_start();
    let end = digits.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-'))).unwrap_or(digits.len());
    digits[..end].to_owned()
}

/// Per cent of the enabled time on a counter; perf prints 100 where it never was enabled.
fn share_percent(value: &Value) -> f64 {
    match value {
        Value::Counted { count, .. } => 100.0 * count.share(),
        _ => 100.0,
    }
}

/// The standard error of `-r N` in per cent, where there were runs.
fn variance(counts: &Counts, value: &Value) -> Option<f64> {
    if counts.runs.len() < 2 && value.runs().len() < 2 {
        return None;
    }
    Some(Summary::of(value.runs()).map_or(0.0, |s| s.error_percent()))
}

/// perf's words for a missing count. An event that was enabled but never ran has none either.
fn missing(value: &Value) -> Option<&'static str> {
    match value {
        Value::NotSupported(_) => Some("<not supported>"),
        value if value.number().is_none() => Some("<not counted>"),
        _ => None,
    }
}

/// Columns that a line takes, which may have colours.
fn shown_width(line: &str) -> usize {
    let after_colour = |part: &str| words::width(part.split_once('m').map_or("", |(_, text)| text));
    let mut parts = line.split('\x1b');
    parts.next().map_or(0, words::width) + parts.map(after_colour).sum::<usize>()
}

/// The first text whose lines are no wider than they may be, else the last; there is one.
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

/// perf's words for a metric of a table: `%  tma_retiring`.
fn in_its_unit(metric: &Derived) -> Cow<'_, str> {
    match metric.unit.as_str() {
        "" => Cow::Borrowed(&metric.name),
        unit => Cow::Owned(format!("{unit}  {}", metric.name)),
    }
}

/// perf's words for a value on this side of its threshold, or on the other.
fn threshold(crossed: bool) -> &'static str {
    if crossed { "bad" } else { "good" }
}

/// A name from outside, safe to print.
fn safe(name: &str) -> Cow<'_, str> {
    words::clean(name)
}
