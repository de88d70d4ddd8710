//! The report for a person: the table, the tree, and the trust line at the end.
//!
//! ```text
//! 326 samples of cpu-clock (65.2 ms)
//!
//!   Children            Self             Command  Shared Object  Symbol
//!    99.1 % ±1.2       0.3 % ±0.8        deep     deep           [.] main
//! ```

use std::io::{self, Write};

use super::{
    Column, Layout, Shape, average_weight, chains, fields, heading, hierarchy, lines, percent, share_of,
    side_by_side, spread, tree,
};
use crate::profile::sampled::{Event, ModuleQuality, Profile, Row};
use crate::text::{clean, cut, width};
use crate::units::{duration, thousands};

/// Text columns are cut at this width, except the last.
const WIDEST: usize = 40;

pub(super) fn write(out: &mut dyn Write, profile: &Profile, layout: &Layout) -> io::Result<()> {
    tables(out, profile, layout)?;
    let mut out = Remarks::new(out, layout);
    writeln!(out)?;
    trust(&mut out, profile, layout)
}

/// What is no row: as it is for a person, in comments for a program.
struct Remarks<'a> {
    out: &'a mut dyn Write,
    is_commented: bool,
    /// The next byte begins a line.
    at_start: bool,
}

impl<'a> Remarks<'a> {
    fn new(out: &'a mut dyn Write, layout: &Layout) -> Self {
        Self { out, is_commented: layout.is_piped, at_start: true }
    }
}

impl Write for Remarks<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_commented {
            return self.out.write(bytes);
        }
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.at_start {
                self.out.write_all(if line == b"\n" { b"#" } else { b"# " })?;
            }
            self.out.write_all(line)?;
            self.at_start = line.ends_with(b"\n");
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Headline, table and tree of each event.
pub(super) fn tables(out: &mut dyn Write, profile: &Profile, layout: &Layout) -> io::Result<()> {
    let mut first = true;
    for index in 0..profile.events.len() {
        let events = side_by_side(profile, layout, index);
        let samples: u64 = events.iter().map(|event| event.total.samples).sum();
        let is_dummy = events.iter().all(|event| event.name.starts_with("dummy"));
        // perf opens a dummy event for side-band only.
        if events.is_empty() || samples == 0 && (is_dummy || profile.events.len() > 1) {
            continue;
        }
        let mut remarks = Remarks::new(out, layout);
        if !std::mem::take(&mut first) {
            writeln!(remarks)?;
        }
        if layout.is_piped {
            fields::headline(remarks.out, &events)?;
        } else {
            for event in &events {
                headline(&mut remarks, event)?;
            }
        }
        writeln!(remarks)?;
        if layout.hierarchy {
            hierarchy::write(out, profile, &events, layout)?;
        } else {
            table(out, profile, &events, layout)?;
        }
        for event in events {
            if let Some(of_event) = &event.tree {
                let mut remarks = Remarks::new(out, layout);
                writeln!(remarks)?;
                match layout.shape {
                    Shape::Tree | Shape::Fractal => {
                        tree::write(&mut remarks, profile, event, of_event, layout)?
                    }
                    Shape::Flat | Shape::Folded => chains::write(out, profile, event, of_event, layout)?,
                }
            }
        }
    }
    if first {
        writeln!(Remarks::new(out, layout), "No samples.")?;
    }
    Ok(())
}

fn headline(out: &mut dyn Write, event: &Event) -> io::Result<()> {
    let name = clean(&event.name);
    let is_clock = name.contains("cpu-clock") || name.contains("task-clock");
    let amount = if is_clock {
        duration(event.total.period as f64)
    } else {
        format!("about {} occurrences", thousands(event.total.period))
    };
    write!(out, "{} samples of {name} ({amount})", thousands(event.total.samples))?;
    if event.filtered.samples > 0 {
        write!(out, ", {} left out by filters", thousands(event.filtered.samples))?;
    }
    writeln!(out)
}

fn number(event: &Event, row: &Row, column: Column, layout: &Layout) -> String {
    if let Some(share) = share_of(column, row) {
        return percent(event, share, layout);
    }
    match column {
        Column::Weight(which) => average_weight(row, which),
        Column::Samples if layout.is_piped => row.own.samples.to_string(),
        _ if layout.is_piped => row.own.period.to_string(),
        Column::Samples => thousands(row.own.samples),
        _ => thousands(row.own.period),
    }
}

fn is_number(column: Column) -> bool {
    !matches!(column, Column::Key(_))
}

fn table(out: &mut dyn Write, profile: &Profile, events: &[&Event], layout: &Layout) -> io::Result<()> {
    let typed = layout.columns(profile);
    let columns = spread(&typed, events.len());
    let (shown, all) = lines(events, layout);
    let mut lines: Vec<Vec<String>> = vec![columns.iter().map(|c| heading(*c, profile).to_owned()).collect()];
    lines.extend(shown.iter().map(|line| {
        super::fields(profile, layout, events, line, &typed, |event, row, column| {
            number(event, row, column, layout)
        })
    }));
    let last = columns.len() - 1;
    let widths: Vec<usize> = (0..columns.len())
        .map(|at| {
            let widest = lines.iter().map(|line| width(&line[at])).max().unwrap_or(0);
            let is_whole = layout.is_piped || is_number(columns[at]);
            let most = if is_whole { usize::MAX } else { WIDEST };
            layout.widths.get(at).copied().filter(|given| *given > 0).unwrap_or(widest.min(most))
        })
        .collect();
    let rule = layout.is_piped.then(|| widths.iter().map(|width| ".".repeat(*width)).collect());
    if let Some(rule) = rule {
        lines.insert(1, rule);
    }
    let headings = if layout.is_piped { 2 } else { 0 };
    for (number, line) in lines.iter().enumerate() {
        write!(out, "{}", if number < headings { '#' } else { ' ' })?;
        for (at, text) in line.iter().enumerate() {
            let given = layout.widths.get(at).is_some_and(|given| *given > 0);
            let text = if at == last && !given { text.clone() } else { cut(text, widths[at]) };
            let pad = widths[at].saturating_sub(width(&text));
            if is_number(columns[at]) {
                write!(out, " {:pad$}{text} ", "")?;
            } else if at == last {
                write!(out, " {text}")?;
            } else {
                write!(out, " {text}{:pad$} ", "")?;
            }
        }
        writeln!(out)?;
    }
    if shown.len() < all {
        let left: f64 = match events {
            [event] => event.share(event.rows.iter().skip(shown.len()).map(|row| event.cost(&row.own)).sum()),
            _ => 0.0,
        };
        let own = if left > 0.0 { format!(" with {:.1}% of their own", left * 100.0) } else { String::new() };
        let more = thousands((all - shown.len()) as u64);
        let start = if layout.is_piped { '#' } else { ' ' };
        writeln!(out, "{start} … and {more} more rows{own} (--max-rows 0 shows all)")?;
    }
    Ok(())
}

pub(super) fn trust(out: &mut dyn Write, profile: &Profile, layout: &Layout) -> io::Result<()> {
    let trust = &profile.trust;
    let lost = trust.lost_samples.max(trust.lost_records);
    let mut parts = vec![format!("{} samples", thousands(trust.samples))];
    parts.push(match lost {
        0 => "none lost".to_owned(),
        _ => {
            let share = lost as f64 / (lost + trust.samples).max(1) as f64 * 100.0;
            format!("{} lost ({share:.1}%)", thousands(lost))
        }
    });
    match trust.throttled {
        0 => {}
        times => parts.push(format!("throttled {} times", thousands(times))),
    }
    if trust.unknown > 0 {
        parts.push(format!("{} of no known event", thousands(trust.unknown)));
    }
    let share = |part: u64, all: u64| part as f64 / all.max(1) as f64 * 100.0;
    if trust.stacks > 0 {
        parts.push(format!("{:.1}% of the stacks reach a root", share(trust.rooted, trust.stacks)));
    }
    parts.push(match trust.unnamed {
        0 => "all frames have symbols".to_owned(),
        unnamed => format!("{:.1}% of the frames have no symbol", share(unnamed, trust.frames)),
    });
    writeln!(out, "Trust: {}.", parts.join(", "))?;
    if trust.samples > 0 && !layout.is_piped {
        writeln!(out, "       ± is the 95% confidence interval of sampling.")?;
    }
    super::ends::write(out, trust)?;
    for note in &trust.notes {
        writeln!(out, "       {}.", clean(note))?;
    }
    let mut unnamed: Vec<&ModuleQuality> =
        profile.modules.iter().filter(|module| module.unnamed > 0).collect();
    unnamed.sort_by_key(|module| std::cmp::Reverse(module.unnamed));
    for module in unnamed.iter().take(5) {
        let why = module.missing.first().map_or("its symbol tables do not cover them", String::as_str);
        let name = clean(&module.path);
        writeln!(
            out,
            "       {name}: {:.1}% of all frames without a symbol; {}",
            share(module.unnamed, trust.frames),
            clean(why)
        )?;
        if let Some(remedy) = &module.remedy {
            writeln!(out, "         try: {}", clean(remedy))?;
        }
    }
    if unnamed.len() > 5 {
        writeln!(out, "       … and {} more modules", unnamed.len() - 5)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::sampled::{Cell, DataQuality, SortKey, Value};

    /// A name with a separator in it, so wide that a person's table cuts it.
    fn written(is_piped: bool) -> String {
        let mut profile = Profile { keys: vec![SortKey::Dso, SortKey::Symbol], ..Profile::default() };
        let dso = profile.texts.add(&"d".repeat(WIDEST + 9));
        let symbol = profile.texts.add("main");
        let value =
            |samples: u64| Value { samples, period: samples, squares: samples as f64, ..Value::default() };
        let row = Row {
            cells: vec![Cell::Text(dso), Cell::Symbol('.', symbol)],
            own: value(1234),
            total: value(1234),
            by_mode: [0; 4],
        };
        let event =
            Event { name: "cpu-clock".to_owned(), total: value(4936), rows: vec![row], ..Event::default() };
        profile.events.push(event);
        profile.trust = DataQuality { samples: 4936, ..DataQuality::default() };
        let layout = Layout { is_piped, show_samples: true, ..Layout::default() };
        let mut out = Vec::new();
        write(&mut out, &profile, &layout).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_program_gets_rows_and_comments() {
        let text = written(true);
        let rows: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let wide = "d".repeat(WIDEST + 9);
        let words: Vec<&str> = rows[0].split_whitespace().collect();
        assert_eq!((rows.len(), &words[..]), (1, &["25.00%", "1234", &wide, "[.]", "main"][..]), "{text}");
        let comments = ["# Samples: 4936 of event 'cpu-clock'\n", "# Overhead", "\n# ....", "\n#\n# Trust: "];
        assert!(comments.iter().all(|comment| text.contains(comment)) && !text.contains('±'), "{text}");
    }

    #[test]
    fn a_person_gets_errors_and_no_comments() {
        let text = written(false);
        assert!(text.contains("25.0% ±1.2") && text.contains("1,234") && text.contains('…'), "{text}");
        assert!(text.starts_with("4,936 samples of cpu-clock") && !text.contains('#'), "{text}");
    }
}
