//! The table for people: perf's layout, with the reasons for what is missing.
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
//! Receives [`Counts`]; decides widths and what is worth a note. Names are cleaned; columns are aligned by
//! the width they take on a terminal.

use std::io::{self, Write};

use super::{
    StatStyle, Subject, cells, decimals, metric_number, metric_table, missing, place, quantity, runs, safe,
    variance,
};
use crate::profile::counts::{Counts, CpuTime, Reason, Role, Value};
use crate::profile::metrics::{Concern, Metric, shadow};
use crate::profile::sharing::relative_error;
use crate::text;

/// Intervals between two headlines, as perf has it.
const HEADLINE_EVERY: usize = 25;
const VALUE: usize = 18;
const METRIC: usize = 35;
/// Names of one note before "and N more".
const MOST_NAMES: usize = 8;

/// Writes the result of a whole run, or the summary after intervals.
///
/// # Errors
/// What `out` says.
pub fn run(out: &mut dyn Write, counts: &Counts, subject: &Subject, style: &StatStyle) -> io::Result<()> {
    let runs = counts.runs.len();
    let repeated = if runs > 1 { format!(" ({runs} runs)") } else { String::new() };
    writeln!(out, "\n Performance counter stats for {}{repeated}:\n", subject.words())?;
    if style.metric_only {
        metric_table::text(out, counts, true)?;
        writeln!(out)?;
        return footer(out, counts, style);
    }
    let mut table = CountTable::new(counts, style);
    table.body(out, "", |_| None)?;
    if !counts.events.is_empty() {
        writeln!(out)?;
    }
    footer(out, counts, style)?;
    runs::block(out, counts, style)?;
    table.notes.write(out)
}

/// Writes one interval; `number` counts them from 0 and decides when the headline is due.
///
/// # Errors
/// What `out` says.
pub fn interval(out: &mut dyn Write, counts: &Counts, number: usize, style: &StatStyle) -> io::Result<()> {
    let headline = number.is_multiple_of(HEADLINE_EVERY);
    if style.metric_only {
        return metric_table::text(out, counts, headline);
    }
    let mut table = CountTable::new(counts, style);
    if headline {
        let place = place::headline(counts.aggregation);
        writeln!(out, "#           time{place}             counts {:>1$} events", "unit", table.unit)?;
    }
    let time = counts.timestamp_ns.unwrap_or(counts.elapsed_ns);
    let prefix = format!("{:6}.{:09} ", time / 1_000_000_000, time % 1_000_000_000);
    // What the machine cannot count is explained once; what was not counted may change with each interval.
    table.body(out, &prefix, |value| match value {
        Value::NotSupported(reason) if number == 0 => Some(reason.cause.as_str()),
        Value::NotCounted(reason) => Some(reason.cause.as_str()),
        _ => Some(""),
    })
}

/// Widths of the columns, and the notes that rows gave rise to.
struct CountTable<'a> {
    counts: &'a Counts,
    style: &'a StatStyle,
    unit: usize,
    name: usize,
    cgroup: usize,
    notes: Notes,
}

impl<'a> CountTable<'a> {
    fn new(counts: &'a Counts, style: &'a StatStyle) -> Self {
        let widest = |texts: &mut dyn Iterator<Item = &str>, least| {
            texts.map(|t| text::width(&safe(t))).max().unwrap_or(0).max(least)
        };
        let cgroups = &mut counts.events.iter().filter_map(|e| e.cgroup.as_deref());
        Self {
            unit: widest(&mut counts.events.iter().map(|e| e.unit.as_str()), 4),
            name: widest(&mut counts.events.iter().map(|e| e.name.as_str()), 24),
            cgroup: if counts.has_cgroups() { widest(cgroups, 16) } else { 0 },
            counts,
            style,
            notes: Notes::default(),
        }
    }

    /// All lines. `why` gives the words for a missing count, or leaves them to a note.
    fn body<'v>(
        &mut self,
        out: &mut dyn Write,
        prefix: &str,
        why: impl Fn(&'v Value) -> Option<&'v str>,
    ) -> io::Result<()>
    where
        'a: 'v,
    {
        let counts = self.counts;
        let cells = cells(counts);
        let mut last = vec![usize::MAX; counts.rows.len()];
        for (at, (row, _)) in cells.iter().enumerate() {
            last[*row] = at;
        }
        for (at, &(row, event)) in cells.iter().enumerate() {
            let metrics = shadow(counts, row, event);
            let line = self.line(row, event, &metrics, why(counts.value(row, event)));
            writeln!(out, "{prefix}{line}")?;
            for metric in metrics.iter().skip(1) {
                let line = format!("{}{}", self.blank(row), self.metric(metric));
                writeln!(out, "{prefix}{}", line.trim_end())?;
            }
            if last[row] == at {
                self.derived(out, row, prefix)?;
            }
        }
        Ok(())
    }

    /// One line of the table. `why` is shown in the line itself; without it a note below the table explains.
    fn line(&mut self, row: usize, at: usize, metrics: &[Metric], why: Option<&str>) -> String {
        let (counts, style) = (self.counts, self.style);
        let (value, event) = (counts.value(row, at), &counts.events[at]);
        let mut line = place::columns(counts, &counts.rows[row], Some(at));
        match missing(value) {
            Some(words) => {
                line += &" ".repeat(VALUE - words.len());
                line += &self.colour(words, "\x1b[33m");
            }
            None => {
                let number = quantity(
                    value.number().unwrap_or_default() * event.scale,
                    decimals(event),
                    style.big_num,
                );
                line += &format!("{number:>VALUE$}");
            }
        }
        line.push(' ');
        line += &text::padded(&safe(&event.unit), self.unit);
        line.push(' ');
        line += &text::padded(&safe(&event.name), self.name);
        if self.cgroup > 0 {
            line.push(' ');
            line += &text::padded(&safe(event.cgroup.as_deref().unwrap_or_default()), self.cgroup);
        }
        if let Some(words) = missing(value) {
            line += &match (why, value.reason()) {
                (Some(""), _) | (None, None) => String::new(),
                (Some(why), _) => format!(" # {}", safe(why)),
                (None, Some(reason)) => format!(" # [{}]", self.notes.number(words, reason, &event.name)),
            };
            return line.trim_end().to_owned();
        }
        let tool = matches!(event.role, Some(Role::DurationTime | Role::UserTime | Role::SystemTime));
        let metric = metrics.first().filter(|_| !tool);
        line += &metric.map_or_else(|| " ".repeat(METRIC), |metric| self.metric(metric));
        if let Some(percent) = variance(counts, value).filter(|p| *p != 0.0) {
            line += &format!("  ( +-{percent:6.2}% )");
        }
        if let Value::Counted { count, .. } = value
            && count.running_ns < count.enabled_ns
        {
            let error = relative_error(*count).map(|e| format!(" ±{:.1}%", 100.0 * e)).unwrap_or_default();
            line += &format!("  ({:.1}%{error})", 100.0 * count.share());
            self.notes.shared = true;
        }
        line.trim_end().to_owned()
    }

    /// The place, and blanks as far as the metric column.
    fn blank(&self, row: usize) -> String {
        let cgroup = if self.cgroup > 0 { self.cgroup + 1 } else { 0 };
        let width = VALUE + 1 + self.unit + 1 + self.name + cgroup;
        format!("{}{:width$}", place::columns(self.counts, &self.counts.rows[row], None), "")
    }

    /// ` #    0.486 CPUs utilized`, as wide as perf has it; `~` marks a ratio whose parts were counted at
    /// different times.
    fn metric(&mut self, metric: &Metric) -> String {
        self.notes.inexact |= metric.inexact;
        let mark = if metric.inexact { " #~" } else { " # " };
        let number = metric_number(metric);
        let rest = METRIC.saturating_sub(3 + text::width(&number) + 1);
        let number = match metric.concern {
            Concern::None => number,
            Concern::Low => self.colour(&number, "\x1b[33m"),
            Concern::Middle => self.colour(&number, "\x1b[35m"),
            Concern::High => self.colour(&number, "\x1b[31m"),
        };
        format!("{mark}{number} {}", text::padded(&metric.unit, rest))
    }

    /// Named and user-defined metrics of a row, a line each in the metric column.
    fn derived(&mut self, out: &mut dyn Write, row: usize, prefix: &str) -> io::Result<()> {
        for metric in self.counts.derived.get(row).into_iter().flatten() {
            let name = match &metric.cgroup {
                Some(cgroup) => format!("{} {}", safe(&metric.name), safe(cgroup)),
                None => safe(&metric.name).into_owned(),
            };
            let mark = if metric.inexact { " #~" } else { " # " };
            self.notes.inexact |= metric.inexact;
            let blank = self.blank(row);
            match &metric.value {
                Ok(value) => {
                    let unit =
                        if metric.unit.is_empty() { String::new() } else { format!("{} ", metric.unit) };
                    let help = if metric.help.is_empty() {
                        String::new()
                    } else {
                        format!("  ({})", safe(&metric.help))
                    };
                    writeln!(out, "{prefix}{blank}{mark}{value:8.3} {unit}{name}{help}")?;
                }
                Err(reason) => {
                    writeln!(out, "{prefix}{blank}{mark}no value for {name}: {}", safe(&reason.cause))?;
                }
            }
        }
        Ok(())
    }

    fn colour(&self, text: &str, code: &str) -> String {
        if self.style.colour { format!("{code}{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// What has to be said below the table, each reason once.
#[derive(Default)]
struct Notes {
    reasons: Vec<(&'static str, Reason, Vec<String>)>,
    shared: bool,
    inexact: bool,
}

impl Notes {
    /// The number of the note for this reason, counted from 1.
    fn number(&mut self, words: &'static str, reason: &Reason, event: &str) -> usize {
        let known = self.reasons.iter().position(|(w, r, _)| *w == words && r == reason);
        let at = known.unwrap_or_else(|| {
            self.reasons.push((words, reason.clone(), Vec::new()));
            self.reasons.len() - 1
        });
        let names = &mut self.reasons[at].2;
        if !names.iter().any(|name| name == event) {
            names.push(event.to_owned());
        }
        at + 1
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        for (number, (words, reason, names)) in self.reasons.iter().enumerate() {
            let shown: Vec<_> = names.iter().take(MOST_NAMES).map(|n| safe(n)).collect();
            let more = match names.len().saturating_sub(MOST_NAMES) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let words = words.trim_matches(['<', '>']);
            let errno = reason.errno.map(|e| format!(" ({e})")).unwrap_or_default();
            writeln!(out, " [{}] {}{more}: {words}{errno}", number + 1, shown.join(", "))?;
            writeln!(out, "     why: {}", safe(&reason.cause))?;
            if !reason.remedy.is_empty() {
                writeln!(out, "     try: {}", safe(&reason.remedy))?;
            }
        }
        if self.shared {
            writeln!(
                out,
                " (n% ±m%): counted n% of the time and scaled up; the estimate is likely (95%) within m% of the truth."
            )?;
        }
        if self.inexact {
            writeln!(
                out,
                " ~: the parts of this ratio were counted at different times; --exact counts them in separate runs."
            )?;
        }
        Ok(())
    }
}

/// Elapsed, user and system time, as perf writes them.
fn footer(out: &mut dyn Write, counts: &Counts, style: &StatStyle) -> io::Result<()> {
    if counts.runs.len() > 1 {
        return runs::footer(out, counts, style);
    }
    writeln!(out, " {:17.9} seconds time elapsed\n", counts.elapsed_seconds())?;
    if let Some(CpuTime { user_ns, system_ns }) = counts.cpu_time {
        writeln!(out, " {:17.9} seconds user", user_ns as f64 / 1e9)?;
        writeln!(out, " {:17.9} seconds sys\n", system_ns as f64 / 1e9)?;
    }
    Ok(())
}
