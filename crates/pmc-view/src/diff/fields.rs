//! Rows for other programs, as separated fields or as CSV. Both formats have the same fields.

use std::io::{self, Write};

use super::{DiffLayout, formula, heading, selected_rows};
use crate::report::{CellFormat, words};
use pmc_analysis::profile::diff::{Compute, Diff, DiffEvent, DiffRow};
use pmc_analysis::profile::sampled::{RowCell, SortKey};
use pmc_text::text::{clean, csv_cell};

fn titles(comparison: &Diff, layout: &DiffLayout) -> Vec<String> {
    let mut titles = vec!["Event".to_owned(), "Baseline".to_owned()];
    if layout.period {
        titles.push("Baseline period".to_owned());
    }
    let others = comparison.files.len() - 1;
    for number in 1..=others {
        let mark = if others > 1 { format!(" {number}") } else { String::new() };
        for title in ["New", heading(comparison.compute), "Low", "High", "p", "Verdict"] {
            titles.push(format!("{title}{mark}"));
        }
        if layout.period {
            titles.push(format!("Period{mark}"));
        }
        if layout.formula {
            titles.push(format!("Formula{mark}"));
        }
    }
    if comparison.by_stream {
        titles.push("Stream".to_owned());
    } else {
        titles.extend(keys(comparison).into_iter().map(|key| key.heading().to_owned()));
    }
    titles
}

/// Returns the keys of all events. Rows have an empty field for a key that their event lacks.
fn keys(comparison: &Diff) -> Vec<SortKey> {
    let mut keys: Vec<SortKey> = Vec::new();
    // The keys of waits begin with the wait site, and continue with those of the other events.
    for key in comparison.events.iter().rev().flat_map(|event| &event.keys) {
        if !keys.contains(key) {
            keys.push(*key);
        }
    }
    keys
}

fn fields(comparison: &Diff, event: &DiffEvent, line: &DiffRow, layout: &DiffLayout) -> Vec<String> {
    let share = |file: usize| format!("{:.2}%", event.part(file, &line.values[file]).share * 100.0);
    let mut fields = vec![clean(&event.name).into_owned(), share(0)];
    if layout.period {
        fields.push(line.values[0].period.to_string());
    }
    let number = |value: f64| match comparison.compute {
        _ if !value.is_finite() => String::new(),
        Compute::Delta | Compute::DeltaAbs => format!("{:+.2}", value * 100.0),
        Compute::Ratio => format!("{value:.6}"),
        Compute::Time | Compute::Weighted(..) => format!("{value:.0}"),
    };
    for (at, change) in line.changes.iter().enumerate() {
        match change {
            Some(change) => {
                fields.push(share(at + 1));
                fields.push(change.value.map(number).unwrap_or_default());
                match change.has_error() {
                    true => {
                        fields.extend([number(change.interval.0), number(change.interval.1)]);
                        fields.push(format!("{:.3e}", change.adjusted));
                    }
                    false => fields.extend(std::iter::repeat_n(String::new(), 3)),
                }
                fields.push(change.verdict.word().to_owned());
            }
            None => fields.extend(std::iter::repeat_n(String::new(), 6)),
        }
        if layout.period {
            fields.push(line.values[at + 1].period.to_string());
        }
        if layout.formula {
            fields.push(formula(comparison.compute, event, line, at + 1));
        }
    }
    let word = |cell: &RowCell| words(&comparison.texts, cell, CellFormat::default());
    if comparison.by_stream {
        let frame = |cells: &[RowCell]| cells.iter().map(word).collect::<Vec<_>>().join(" ");
        fields.push(line.frames(&event.keys).map(frame).collect::<Vec<_>>().join(";"));
    } else {
        let cell = |key: SortKey| {
            let at = event.keys.iter().position(|of_event| *of_event == key);
            at.and_then(|at| line.cells.get(at)).map(word).unwrap_or_default()
        };
        fields.extend(keys(comparison).into_iter().map(cell));
    }
    fields
}

/// Writes a comment line with the titles, then the rows. A dot replaces the separator inside fields.
pub(super) fn separated(
    out: &mut dyn Write,
    comparison: &Diff,
    layout: &DiffLayout,
    separator: &str,
) -> io::Result<()> {
    writeln!(out, "# {}", titles(comparison, layout).join(separator))?;
    for event in &comparison.events {
        for line in selected_rows(event, layout).into_iter().take(layout.rows) {
            let fields = fields(comparison, event, line, layout);
            let fields: Vec<String> = fields.into_iter().map(|field| field.replace(separator, ".")).collect();
            writeln!(out, "{}", fields.join(separator))?;
        }
    }
    Ok(())
}

pub(super) fn csv(out: &mut dyn Write, comparison: &Diff, layout: &DiffLayout) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(titles(comparison, layout))?;
    for event in &comparison.events {
        for line in selected_rows(event, layout).into_iter().take(layout.rows) {
            writer.write_record(fields(comparison, event, line, layout).into_iter().map(csv_cell))?;
        }
    }
    writer.flush()
}
