//! Parts of a count side by side (`--children`, `--user-kernel`): one line per event, one column per part.
//!
//! ```text
//!          self   children        sum
//!             1        241        242       page-faults
//!          0.48       6.02       6.50 msec  task-clock
//!         0.301      0.611      0.570       # CPUs utilized
//! ```
//! Receives [`StatCounts`] whose rows are the parts. Columns are as wide as their contents. Names are
//! truncated if they do not fit into the line.

use super::notes::TableNotes;
use super::{StatStyle, metric_number, missing, number, safe, variance};
use pmc_analysis::profile::counts::{StatCounts, StatRow, StatValue};
use pmc_analysis::profile::metrics::shadow::{ComputedMetric, MetricColumnRule, shadow};
use pmc_text::table::{self, left, right};
use pmc_text::text;

/// Minimum width of a part's column.
const LEAST: usize = 12;

struct LineContents {
    /// One cell per part, followed by the unit.
    cells: Vec<String>,
    name: String,
}

/// Returns all lines, with a headline first if `headline` is set. Each line starts with `time`. `why` returns
/// the text for a missing count, or `None` to use a note.
pub(super) fn lines<'v>(
    counts: &'v StatCounts,
    style: &StatStyle,
    time: &str,
    headline: bool,
    notes: &mut TableNotes,
    why: &impl Fn(&'v StatValue) -> Option<&'v str>,
) -> Vec<String> {
    let mut body: Vec<LineContents> = Vec::new();
    for (at, event) in counts.events.iter().enumerate() {
        let mut name = safe(&event.name).into_owned();
        let mut said = Vec::new();
        let mut lowest = None;
        let is_counted = (0..counts.rows.len()).any(|row| missing(counts.value(row, at)).is_none());
        for (row, StatRow { place, .. }) in counts.rows.iter().enumerate() {
            let value = counts.value(row, at);
            if let (Some(words), Some(reason)) = (missing(value), value.reason()) {
                let part = place.part.filter(|_| is_counted).map(|part| format!(" ({})", part.name()));
                let missing = event.name.clone() + &part.unwrap_or_default();
                let words = match why(value) {
                    None => format!("[{}]", notes.number(words, reason, &missing)),
                    Some(why) => safe(why).into_owned(),
                };
                if !words.is_empty() && !said.contains(&words) {
                    said.push(words);
                }
            }
            if let StatValue::Counted { count, .. } = value
                && count.running_ns < count.enabled_ns
            {
                let share = 100.0 * count.share();
                lowest = Some(lowest.map_or(share, |lowest: f64| lowest.min(share)));
                notes.shared = true;
            }
        }
        if !said.is_empty() {
            name += &format!(" # {}", said.join(" "));
        }
        name += &lowest.map(|share| format!("  ({share:.1}%)")).unwrap_or_default();
        let cell = |row| match counts.value(row, at) {
            StatValue::Absent => String::new(),
            value => {
                let error = variance(counts, value).filter(|percent| *percent != 0.0);
                let error = error.map(|percent| format!(" ±{percent:.1}%")).unwrap_or_default();
                number(value, event, style) + &error
            }
        };
        let cells = (0..counts.rows.len()).map(cell).chain([safe(&event.unit).into_owned()]);
        body.push(LineContents { cells: cells.collect(), name });
        metrics(counts, at, &mut body, notes);
    }
    derived(counts, &mut body, notes);
    let parts = counts.rows.iter().map(|row| row.place.part.map_or("", |part| part.name()).to_owned());
    let head = LineContents { cells: parts.chain([String::new()]).collect(), name: String::new() };
    let shapes = [vec![right(2, LEAST); counts.rows.len()], vec![left(1, 0)]].concat();
    let shapes = table::fitted(&shapes, body.iter().chain([&head]).map(|line| line.cells.as_slice()));
    let gap = if shapes.last().is_some_and(|unit| unit.least > 0) { "  " } else { " " };
    let shown = |line: &LineContents| {
        let time = if line.name.is_empty() { &" ".repeat(time.len()) } else { time };
        let mut out = format!("{time}{}{gap}", table::line(&shapes, &line.cells));
        let room = style.width.map_or(usize::MAX, |most| most.saturating_sub(text::width(&out)));
        out += &text::cut(&line.name, room);
        out.truncate(out.trim_end().len());
        out
    };
    headline.then_some(&head).into_iter().chain(&body).map(shown).collect()
}

/// Adds the metrics of an event, one per line. Rates are omitted because their units differ between parts.
fn metrics(counts: &StatCounts, at: usize, body: &mut Vec<LineContents>, notes: &mut TableNotes) {
    let of_rows: Vec<_> = (0..counts.rows.len()).map(|row| shadow(counts, row, at)).collect();
    let mut units: Vec<&str> = Vec::new();
    for metric in of_rows.iter().flatten() {
        if metric.metric.column != MetricColumnRule::Never && !units.contains(&&*metric.unit) {
            units.push(&metric.unit);
        }
    }
    for unit in units {
        let cell = |metrics: &Vec<ComputedMetric>| {
            let own = metrics.iter().find(|metric| metric.unit == unit);
            notes.inexact |= own.is_some_and(|metric| metric.inexact);
            own.map(|metric| {
                format!("{}{}", if metric.inexact { "~" } else { "" }, metric_number(metric).trim())
            })
        };
        let cells = of_rows.iter().map(cell).chain([None]).map(Option::unwrap_or_default).collect();
        body.push(LineContents { cells, name: format!("# {unit}") });
    }
}

/// Adds named and user-defined metrics, one per line.
fn derived(counts: &StatCounts, body: &mut Vec<LineContents>, notes: &mut TableNotes) {
    for at in 0..counts.derived.first().map_or(0, Vec::len) {
        let of_rows = || counts.derived.iter().filter_map(|row| row.get(at));
        let Some(first) = of_rows().next() else { continue };
        notes.inexact |= of_rows().any(|metric| metric.inexact);
        let cell = |metric: &pmc_analysis::profile::counts::DerivedResult| {
            let mark = if metric.inexact { "~" } else { "" };
            metric.value.as_ref().map_or_else(|_| "-".to_owned(), |value| format!("{mark}{value:.3}"))
        };
        let cgroup = first.cgroup.as_deref().map(|name| format!(" {}", safe(name))).unwrap_or_default();
        let name = format!("# {}{cgroup}", safe(&first.name));
        let cells = of_rows().map(cell).chain([safe(&first.unit).into_owned()]).collect();
        body.push(LineContents { cells, name });
    }
}
