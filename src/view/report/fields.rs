//! Rows for programs: fields with a separator, as `perf report -t` has them, and CSV.

use std::io::{self, Write};

use super::{Column, Layout, cell, heading};
use crate::profile::sampled::{Event, Profile, Row};

fn field(profile: &Profile, event: &Event, row: &Row, column: Column) -> String {
    match column {
        Column::Own => format!("{:.2}%", event.share(row.own.period) * 100.0),
        Column::Total => format!("{:.2}%", event.share(row.total.period) * 100.0),
        Column::Samples => row.own.samples.to_string(),
        Column::Period => row.own.period.to_string(),
        Column::Key(key) => {
            let at = profile.keys.iter().position(|other| *other == key);
            at.and_then(|at| row.cells.get(at)).map(|value| cell(profile, value)).unwrap_or_default()
        }
    }
}

fn rows<'a>(event: &'a Event, layout: &Layout) -> impl Iterator<Item = &'a Row> + use<'a> {
    let limit = layout.row_limit;
    let shown = move |row: &&Row| event.share(row.total.period) * 100.0 >= limit;
    event.rows.iter().filter(shown).take(layout.rows)
}

/// A comment line with the headings, then the rows; a dot stands for a separator inside a field.
pub(super) fn separated(out: &mut dyn Write, profile: &Profile, layout: &Layout, separator: &str) -> io::Result<()> {
    let columns = layout.columns(profile);
    for event in &profile.events {
        writeln!(out, "# Samples: {} of event '{}'", event.total.samples, crate::text::clean(&event.name))?;
        writeln!(out, "# Event count (approx.): {}", event.total.period)?;
        let headings: Vec<&str> = columns.iter().map(|column| heading(*column, profile)).collect();
        writeln!(out, "# {}", headings.join(separator))?;
        for row in rows(event, layout) {
            let fields = columns.iter().map(|column| field(profile, event, row, *column));
            let fields: Vec<String> = fields.map(|field| field.replace(separator, ".")).collect();
            writeln!(out, "{}", fields.join(separator))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// One table for all events, the first column being the event.
pub(super) fn csv(out: &mut dyn Write, profile: &Profile, layout: &Layout) -> io::Result<()> {
    let columns = layout.columns(profile);
    let mut writer = csv::Writer::from_writer(out);
    let headings = columns.iter().map(|column| heading(*column, profile));
    writer.write_record(std::iter::once("Event").chain(headings))?;
    for event in &profile.events {
        let name = crate::text::clean(&event.name).into_owned();
        for row in rows(event, layout) {
            let fields = columns.iter().map(|column| field(profile, event, row, *column));
            writer.write_record(std::iter::once(name.clone()).chain(fields))?;
        }
    }
    writer.flush()
}
