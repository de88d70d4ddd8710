//! `-x SEP`: the same fields in the same order as in perf 6.1, one line per event and place.
//!
//! ```text
//! [time,][place,[cpus,]]value,unit,event[,cgroup][,variance%],running ns,share %,metric,metric unit
//! ```
//! A field that contains the separator, a quote or a newline is quoted as in RFC 4180. perf does not quote
//! such fields, so its lines with such fields cannot be parsed.

use std::borrow::Cow;
use std::io::{self, Write};

use super::{
    StatStyle, cells, decimals, in_its_unit, metric_digits, metric_table, missing, place, quantity, safe,
    share_percent, threshold, variance,
};
use pmc_analysis::profile::counts::StatCounts;
use pmc_analysis::profile::metrics::shadow::shadow;
use pmc_text::units::PerfTime;

/// Writes the counts of a run, an interval or a summary.
pub fn write(out: &mut dyn Write, counts: &StatCounts, style: &StatStyle) -> io::Result<()> {
    if style.metric_only {
        return metrics_only(out, counts, style);
    }
    for (row, event) in cells(counts) {
        line(out, counts, row, event, style)?;
    }
    derived(out, counts, style)
}

/// Writes the column titles for `--metric-only`. They appear once, before the run or the first interval.
/// Other modes have no titles.
pub fn titles(out: &mut dyn Write, counts: &StatCounts, style: &StatStyle) -> io::Result<()> {
    if style.metric_only { metric_titles(out, counts, style) } else { Ok(()) }
}

/// Returns the fields before the value, each followed by a separator.
pub(super) fn prefix(counts: &StatCounts, row: usize, event: Option<usize>, style: &StatStyle) -> String {
    let separator = &style.separator;
    let mut out = String::new();
    if let Some(time) = counts.timestamp_ns {
        out += &format!("{:16.9}{separator}", PerfTime(time));
    } else if style.summary {
        out += &format!("{:>16}{separator}", "summary");
    }
    let row = &counts.rows[row];
    let place = place::word(&row.place, counts.aggregation);
    if !place.is_empty() {
        out += &quoted(&place, separator);
        out += separator;
    }
    if place::is_summed(counts.aggregation) {
        out += &format!("{}{separator}", place::summed(counts, row, event));
    }
    out
}

fn line(
    out: &mut dyn Write,
    counts: &StatCounts,
    row: usize,
    at: usize,
    style: &StatStyle,
) -> io::Result<()> {
    let separator = &style.separator;
    let (value, event) = (counts.value(row, at), &counts.events[at]);
    let number = match missing(value) {
        Some(words) => words.to_owned(),
        None => quantity(value.number().unwrap_or_default() * event.scale, decimals(event), false),
    };
    let prefix = prefix(counts, row, Some(at), style);
    let (unit, name) = (safe(&event.unit), safe(&event.name));
    write!(
        out,
        "{prefix}{number}{separator}{}{separator}{}",
        quoted(&unit, separator),
        quoted(&name, separator)
    )?;
    if counts.has_cgroups() {
        let cgroup = safe(event.cgroup.as_deref().unwrap_or_default());
        write!(out, "{separator}{}", quoted(&cgroup, separator))?;
    }
    let variance = variance(counts, value);
    if let Some(variance) = variance {
        write!(out, "{separator}{variance:.2}%")?;
    }
    write!(out, "{separator}{}{separator}{:.2}", value.running_ns(), share_percent(value))?;
    let metrics = shadow(counts, row, at);
    let Some((first, rest)) = metrics.split_first() else {
        return writeln!(out, "{separator}{separator}");
    };
    writeln!(out, "{separator}{}{separator}{}", metric_digits(first), first.unit)?;
    for metric in rest {
        let empty = separator.repeat(fields(counts, variance.is_some()));
        writeln!(out, "{prefix}{empty}{}{separator}{}", metric_digits(metric), metric.unit)?;
    }
    Ok(())
}

/// Returns the number of fields between the place and the metric: value, unit, event, running time, share,
/// and optional fields.
fn fields(counts: &StatCounts, variance: bool) -> usize {
    5 + usize::from(counts.has_cgroups()) + usize::from(variance)
}

/// Writes named and user-defined metrics, on lines with empty event fields.
fn derived(out: &mut dyn Write, counts: &StatCounts, style: &StatStyle) -> io::Result<()> {
    let separator = &style.separator;
    for (row, derived) in counts.derived.iter().enumerate().take(counts.rows.len()) {
        for metric in derived {
            let mut fields: Vec<Cow<'_, str>> = vec!["".into(); fields(counts, counts.runs.len() > 1)];
            if let (true, Some(cgroup)) = (counts.has_cgroups(), &metric.cgroup) {
                fields[3] = safe(cgroup);
            }
            let fields: Vec<_> = fields.iter().map(|f| quoted(f, separator)).collect();
            let value = metric.value.as_ref().map(|v| format!("{v:.3}")).unwrap_or_default();
            let name = in_its_unit(metric);
            let name = safe(&name);
            let prefix = prefix(counts, row, None, style);
            let threshold = metric.crossed.map(|crossed| format!("{separator}{}", threshold(crossed)));
            writeln!(
                out,
                "{prefix}{}{separator}{value}{separator}{}{}",
                fields.join(separator),
                quoted(&name, separator),
                threshold.unwrap_or_default()
            )?;
        }
    }
    Ok(())
}

/// Returns the field, quoted if it contains the separator, a quote or a line break.
pub(super) fn quoted<'a>(field: &'a str, separator: &str) -> Cow<'a, str> {
    let splits = !separator.is_empty() && field.contains(separator);
    if splits || field.contains(['"', '\n', '\r']) {
        Cow::Owned(format!("\"{}\"", field.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(field)
    }
}

/// Writes one line with the titles of the CSV columns, before the run or the first interval.
fn metric_titles(out: &mut dyn Write, counts: &StatCounts, style: &StatStyle) -> io::Result<()> {
    use pmc_analysis::profile::counts::Aggregation as A;
    let separator = &style.separator;
    let mut titles: Vec<String> = Vec::new();
    titles.extend(counts.timestamp_ns.map(|_| "time".to_owned()));
    let place: &[&str] = match counts.aggregation {
        A::Global => &[],
        A::Cpu => &["cpu"],
        A::Core => &["core", "cpus"],
        A::Cluster => &["cluster", "cpus"],
        A::Cache(_) => &["cache", "cpus"],
        A::Die => &["die", "cpus"],
        A::Socket => &["socket", "cpus"],
        A::Node => &["node", "cpus"],
        A::Thread => &["comm-pid"],
        A::Children | A::Levels => &["part"],
    };
    titles.extend(place.iter().map(|&p| p.to_owned()));
    titles.extend(metric_table::columns(counts, metric_table::for_programs).into_iter().map(|c| c.title));
    let line: Vec<_> = titles.iter().map(|t| format!("{}{separator}", quoted(t, separator))).collect();
    writeln!(out, "{}", line.concat())
}

/// Writes the CSV lines without titles. As in perf, every field ends with the separator.
fn metrics_only(out: &mut dyn Write, counts: &StatCounts, style: &StatStyle) -> io::Result<()> {
    let columns = metric_table::columns(counts, metric_table::for_programs);
    for row in 0..counts.rows.len() {
        write!(out, "{}", prefix(counts, row, None, style))?;
        for column in &columns {
            let digits = column.cells[row].as_ref().map_or("", |cell| &cell.digits);
            write!(out, "{digits}{}", style.separator)?;
        }
        writeln!(out)?;
    }
    Ok(())
}
