//! What a recording says of itself, as `perf report --header`, `perf evlist` and `perf buildid-list` show it.

use std::io::{self, Write};

use crate::profile::header::{EventAsked, Recording};
use crate::text::clean;
use crate::units::thousands;

/// Comment lines before a report or script.
///
/// # Errors
/// Those of `out`.
pub fn write(out: &mut dyn Write, recording: &Recording) -> io::Result<()> {
    writeln!(out, "# ========")?;
    for (label, value) in &recording.facts {
        writeln!(out, "# {} : {}", clean(label), clean(value))?;
    }
    for event in &recording.events {
        let ids: Vec<String> = event.ids.iter().map(u64::to_string).collect();
        let ids = if ids.is_empty() { String::new() } else { format!(", id = {{ {} }}", ids.join(", ")) };
        writeln!(out, "# event : name = {}{ids}, {}", clean(&event.name), attr(event, " = "))?;
    }
    writeln!(out, "# ========\n#")
}

fn attr(event: &EventAsked, is: &str) -> String {
    let fields: Vec<String> = event.attr.iter().map(|(name, value)| format!("{name}{is}{value}")).collect();
    fields.join(", ")
}

/// The names of the events, one a line; with their attrs when `verbose`.
///
/// # Errors
/// Those of `out`.
pub fn events(out: &mut dyn Write, recording: &Recording, verbose: bool) -> io::Result<()> {
    for event in &recording.events {
        match verbose {
            true => writeln!(out, "{}: {}", clean(&event.name), attr(event, ": "))?,
            false => writeln!(out, "{}", clean(&event.name))?,
        }
    }
    Ok(())
}

/// Build-id and file, one a line.
///
/// # Errors
/// Those of `out`.
pub fn build_ids(out: &mut dyn Write, recording: &Recording) -> io::Result<()> {
    for (id, name) in &recording.build_ids {
        writeln!(out, "{id} {}", clean(name))?;
    }
    Ok(())
}

/// All of it, for a person.
///
/// # Errors
/// Those of `out`.
pub fn everything(out: &mut dyn Write, recording: &Recording) -> io::Result<()> {
    let wide = recording.facts.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
    for (label, value) in &recording.facts {
        writeln!(out, "{:wide$}  {}", clean(label), clean(value))?;
    }
    writeln!(out, "\nEvents")?;
    for event in &recording.events {
        writeln!(out, "  {}: {}", clean(&event.name), attr(event, " = "))?;
    }
    if !recording.records.is_empty() {
        writeln!(out, "\nRecords")?;
        for (kind, count) in &recording.records {
            writeln!(out, "  {:>14}  {kind}", thousands(*count))?;
        }
    }
    if !recording.build_ids.is_empty() {
        writeln!(out, "\nBuild-ids")?;
        for (id, name) in &recording.build_ids {
            writeln!(out, "  {id}  {}", clean(name))?;
        }
    }
    for note in &recording.notes {
        writeln!(out, "\nNote: {}.", clean(note))?;
    }
    Ok(())
}
