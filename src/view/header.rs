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
        // perf puts the colons of what it knows of the file itself below each other.
        let wide = if ["captured on", "data offset", "data size"].contains(&label.as_str()) { 14 } else { 0 };
        writeln!(out, "# {:wide$} : {}", clean(label), clean(value))?;
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

/// What is shown of each event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventForm {
    /// Its name.
    Names,
    /// Name and attr.
    Attrs,
    /// Name and frequency or period.
    Rate,
    /// Names; those of a group in braces.
    Groups,
    /// Name and the names of a tracepoint's fields.
    TraceFields,
}

/// The events, one a line, in perf's words.
///
/// # Errors
/// Those of `out`.
pub fn events(out: &mut dyn Write, recording: &Recording, form: EventForm) -> io::Result<()> {
    if form == EventForm::Groups {
        return groups(out, recording);
    }
    for event in &recording.events {
        let name = clean(&event.name);
        match form {
            EventForm::Names | EventForm::Groups => writeln!(out, "{name}")?,
            EventForm::Attrs => writeln!(out, "{name}: {}", attr(event, ": "))?,
            EventForm::Rate => {
                let what = if event.is_freq { "freq" } else { "period" };
                writeln!(out, "{name}: sample_{what}={}", event.period)?;
            }
            EventForm::TraceFields => match &event.trace_fields {
                Some(fields) => writeln!(out, "{name}: trace_fields: {}", clean(&fields.join(",")))?,
                None => writeln!(out, "{name}: (not a tracepoint)")?,
            },
        }
    }
    Ok(())
}

fn groups(out: &mut dyn Write, recording: &Recording) -> io::Result<()> {
    let mut rest = &recording.events[..];
    while let Some(first) = rest.first() {
        let (members, behind) = rest.split_at(first.members.clamp(1, rest.len()));
        let names: Vec<String> = members.iter().map(|event| clean(&event.name).into_owned()).collect();
        match members {
            [_] => writeln!(out, "{}", names[0])?,
            // perf's own name for a group that nobody named is in braces.
            _ if first.group.starts_with('{') => writeln!(out, "{{{}}}", names.join(","))?,
            _ => writeln!(out, "{}{{{}}}", clean(&first.group), names.join(","))?,
        }
        rest = behind;
    }
    Ok(())
}

/// Build-id and file, one a line; the build-id alone where the file is known.
///
/// # Errors
/// Those of `out`.
pub fn build_ids(out: &mut dyn Write, rows: &[(String, String)]) -> io::Result<()> {
    for (id, name) in rows {
        writeln!(out, "{}", format!("{id} {}", clean(name)).trim_end())?;
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
