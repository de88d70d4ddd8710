//! Metadata of a recording, in the formats of `perf report --header`, `perf evlist` and `perf buildid-list`.

use std::io::{self, Write};

use pmc_analysis::profile::header::{RecordingHeader, RequestedEvent};
use pmc_text::table::{self, left, right};
use pmc_text::text::clean;
use pmc_text::units::thousands;

/// Writes the comment lines that precede the output of `report` or `script`.
pub fn write(out: &mut dyn Write, recording: &RecordingHeader) -> io::Result<()> {
    writeln!(out, "# ========")?;
    for (label, value) in &recording.facts {
        // Like perf, align the colons in lines about the file itself.
        let wide = if ["captured on", "data offset", "data size"].contains(&label.as_str()) { 14 } else { 0 };
        writeln!(out, "# {:wide$} : {}", clean(label), clean(value))?;
    }
    for event in &recording.events {
        let ids: Vec<String> = event.ids.iter().map(u64::to_string).collect();
        let more = if event.omitted.ids > 0 { ", …" } else { "" };
        let ids =
            if ids.is_empty() { String::new() } else { format!(", id = {{ {}{more} }}", ids.join(", ")) };
        writeln!(out, "# event : name = {}{ids}, {}", clean(&event.name), attr(event, " = "))?;
    }
    more(out, "# ", recording.omitted.events)?;
    writeln!(out, "# ========\n#")
}

/// Writes the number of items that `--limit` cut off a list.
fn more(out: &mut dyn Write, indent: &str, omitted: usize) -> io::Result<()> {
    match omitted {
        0 => Ok(()),
        _ => writeln!(out, "{indent}… and {omitted} more (--limit 0 shows all)"),
    }
}

fn attr(event: &RequestedEvent, is: &str) -> String {
    let fields: Vec<String> = event.attr.iter().map(|(name, value)| format!("{name}{is}{value}")).collect();
    fields.join(", ")
}

/// Which details to show for each event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventDetail {
    /// The event's name.
    Names,
    /// The event's name and attr.
    Attrs,
    /// The event's name, and its frequency or period.
    Rate,
    /// The events' names, with braces around the events of a group.
    Groups,
    /// A tracepoint's name and the names of its fields.
    TraceFields,
}

/// Writes the events, one per line, in perf's format.
pub fn events(out: &mut dyn Write, recording: &RecordingHeader, form: EventDetail) -> io::Result<()> {
    if form == EventDetail::Groups {
        return groups(out, recording);
    }
    for event in &recording.events {
        let name = clean(&event.name);
        match form {
            EventDetail::Names | EventDetail::Groups => writeln!(out, "{name}")?,
            EventDetail::Attrs => writeln!(out, "{name}: {}", attr(event, ": "))?,
            EventDetail::Rate => {
                let what = if event.is_freq { "freq" } else { "period" };
                writeln!(out, "{name}: sample_{what}={}", event.period)?;
            }
            EventDetail::TraceFields => match &event.trace_fields {
                Some(fields) => writeln!(out, "{name}: trace_fields: {}", clean(&fields.join(",")))?,
                None => writeln!(out, "{name}: (not a tracepoint)")?,
            },
        }
    }
    Ok(())
}

fn groups(out: &mut dyn Write, recording: &RecordingHeader) -> io::Result<()> {
    let mut rest = &recording.events[..];
    while let Some(first) = rest.first() {
        let (members, behind) = rest.split_at(first.members.clamp(1, rest.len()));
        let names: Vec<String> = members.iter().map(|event| clean(&event.name).into_owned()).collect();
        match members {
            [_] => writeln!(out, "{}", names[0])?,
            // perf gives an unnamed group a name in braces.
            _ if first.group.starts_with('{') => writeln!(out, "{{{}}}", names.join(","))?,
            _ => writeln!(out, "{}{{{}}}", clean(&first.group), names.join(","))?,
        }
        rest = behind;
    }
    Ok(())
}

/// Writes one build-id per line, followed by the file name if there is one.
pub fn build_ids(out: &mut dyn Write, rows: &[(String, String)]) -> io::Result<()> {
    for (id, name) in rows {
        writeln!(out, "{}", format!("{id} {}", clean(name)).trim_end())?;
    }
    Ok(())
}

/// Writes all metadata for a human reader.
pub fn everything(out: &mut dyn Write, recording: &RecordingHeader) -> io::Result<()> {
    let facts = recording.facts.iter();
    let facts = facts.map(|(label, value)| vec![clean(label).into_owned(), clean(value).into_owned()]);
    table::write(out, &[left(0, 0), left(2, 0)], None, facts)?;
    writeln!(out, "\nEvents")?;
    for event in &recording.events {
        writeln!(out, "  {}: {}", clean(&event.name), attr(event, " = "))?;
    }
    more(out, "  ", recording.omitted.events)?;
    if !recording.records.is_empty() {
        writeln!(out, "\nRecords")?;
        let records = recording.records.iter().map(|(kind, count)| vec![thousands(*count), kind.clone()]);
        table::write(out, &[right(2, 14), left(2, 0)], None, records)?;
    }
    if !recording.build_ids.is_empty() {
        writeln!(out, "\nBuild-ids")?;
        for (id, name) in &recording.build_ids {
            writeln!(out, "  {id}  {}", clean(name))?;
        }
        more(out, "  ", recording.omitted.build_ids)?;
    }
    for note in &recording.notes {
        writeln!(out, "\nNote: {}.", clean(note))?;
    }
    Ok(())
}
