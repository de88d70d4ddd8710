//! Machine-readable rows: separated fields, as in `perf report -t`, and CSV.

use std::io::{self, Write};

use super::{
    ReportLayout, fields, heading, keys_of, lines, names, number, side_by_side, spread,
    under_rows::ChainWriter,
};
use pmc_analysis::profile::sampled::{Profile, ProfileEvent};
use pmc_text::text::{clean, csv_cell};

/// Writes the lines about lost samples that perf prints before all tables.
pub(super) fn lost(out: &mut dyn Write, profile: &Profile) -> io::Result<()> {
    writeln!(out, "#\n# Total Lost Samples: {}\n#", profile.trust.lost_samples)
}

/// Writes perf's lines about columns with a single value, before all tables. The rows omit these columns.
pub(super) fn single_values(out: &mut dyn Write, profile: &Profile, layout: &ReportLayout) -> io::Result<()> {
    for (key, value) in layout.elided(profile) {
        writeln!(out, "# {}: {}", key.name(), clean(value))?;
    }
    Ok(())
}

/// Writes the lines that perf prints before each table.
pub(super) fn headline(out: &mut dyn Write, events: &[&ProfileEvent]) -> io::Result<()> {
    let Some(leader) = events.first() else { return Ok(()) };
    writeln!(out, "# Samples: {} of event '{}'", leader.total.samples, names(events))?;
    writeln!(out, "# Event count (approx.): {}", leader.total.period)
}

/// Writes a comment line with the headings, then the rows. A dot replaces the separator inside fields.
pub(super) fn separated(
    out: &mut dyn Write,
    profile: &Profile,
    layout: &ReportLayout,
    separator: &str,
) -> io::Result<()> {
    if !layout.is_quiet {
        lost(out, profile)?;
        single_values(out, profile, layout)?;
    }
    for index in profile.shown_events() {
        let events = side_by_side(profile, layout, index);
        if events.is_empty() {
            continue;
        }
        let columns = layout.columns(profile, keys_of(profile, &events));
        if !layout.is_quiet {
            headline(out, &events)?;
            let headings = spread(&columns, events.len());
            let headings: Vec<&str> = headings.iter().map(|column| heading(*column, profile)).collect();
            writeln!(out, "# {}", headings.join(separator))?;
        }
        let chains = events.first().and_then(|event| ChainWriter::new(profile, event, layout));
        for line in lines(profile, &events, layout).0 {
            let fields = fields(profile, layout, &events, &line, &columns, |event, row, column| {
                number(event, row, column, layout)
            });
            let fields: Vec<String> = fields.into_iter().map(|field| field.replace(separator, ".")).collect();
            writeln!(out, "{}", fields.join(separator))?;
            if let (Some(chains), Some(row)) = (&chains, line.rows[0]) {
                chains.write(out, row)?;
            }
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Writes one table for all events, with the event in the first column. The events of a group are not shown
/// side by side, because all lines must have the same fields.
pub(super) fn csv(out: &mut dyn Write, profile: &Profile, layout: &ReportLayout) -> io::Result<()> {
    let mut keys = Vec::new();
    for key in
        profile.events.iter().filter_map(|event| event.keys.as_deref()).chain([&profile.keys[..]]).flatten()
    {
        if !keys.contains(key) {
            keys.push(*key);
        }
    }
    let columns = layout.columns(profile, &keys);
    let mut writer = csv::Writer::from_writer(out);
    let headings = columns.iter().map(|column| heading(*column, profile));
    writer.write_record(std::iter::once("Event").chain(headings))?;
    for event in profile.shown_events().into_iter().map(|index| &profile.events[index]) {
        let name = names(&[event]);
        for line in lines(profile, &[event], layout).0 {
            let fields = fields(profile, layout, &[event], &line, &columns, |event, row, column| {
                number(event, row, column, layout)
            });
            let cells = std::iter::once(name.clone()).chain(fields);
            writer.write_record(cells.map(csv_cell))?;
        }
    }
    writer.flush()
}
