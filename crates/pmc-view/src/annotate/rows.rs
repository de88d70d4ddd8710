//! Listings in perf's format, for `grep` and `awk`: one row per instruction, one table per event or group of
//! events. pmc's own remarks are comment lines.
//!
//! ```text
//!  Percent |\tSource code & Disassembly of prog for cpu-clock (1234 samples, percent: local period)
//! ---------------------------------------------------------------------------------------------------
//!          : 12   for (int i = 0; i < n; i++)
//!    12.34 :   1150:   add    %eax,0x8(%rsp)
//! ```

use std::io::{self, Write};

use super::text::{ListingPage, PLAIN, is_code, notes, place, trust};
use super::{AnnotateFacts, AnnotateLayout, source_line};
use pmc_analysis::profile::annotate::{Listing, ListingRow, PercentBasis, RowContent, SampleValue};
use pmc_symbols::symbol::code::disassemble::{Instruction, InstructionTarget};
use pmc_text::text::{clean, hex};

pub(super) fn write(
    out: &mut dyn Write,
    listings: &[Listing],
    facts: &AnnotateFacts,
    layout: &AnnotateLayout,
) -> io::Result<()> {
    for listing in listings {
        let mut page = ListingPage::new(listing, layout);
        let sampled = std::mem::take(&mut page.events);
        for events in tables(listing, layout, &sampled) {
            page.events = events;
            table(out, &page)?;
        }
        page.events = sampled;
        let mut said = Vec::new();
        notes(&mut said, &page)?;
        comments(out, &said)?;
    }
    let mut said = Vec::new();
    if listings.is_empty() {
        writeln!(said, "No function with samples.")?;
    }
    trust(&mut said, facts)?;
    comments(out, &said)
}

/// Writes each line of `said` as a comment line.
fn comments(out: &mut dyn Write, said: &[u8]) -> io::Result<()> {
    let said = String::from_utf8_lossy(said);
    said.lines().filter(|line| !line.is_empty()).try_for_each(|line| writeln!(out, "# {}", line.trim_start()))
}

/// Returns the groups of events that share a table.
fn tables(listing: &Listing, layout: &AnnotateLayout, events: &[usize]) -> Vec<Vec<usize>> {
    if layout.group {
        return vec![events.to_vec()];
    }
    let leader = |event: usize| listing.events.get(event).map_or(event, |event| event.leader);
    events.chunk_by(|a, b| leader(*a) == leader(*b)).map(<[usize]>::to_vec).collect()
}

fn table(out: &mut dyn Write, page: &ListingPage<'_>) -> io::Result<()> {
    let ListingPage { listing, layout, .. } = page;
    let named: Vec<_> = page.events.iter().filter_map(|at| listing.events.get(*at)).collect();
    let names: Vec<_> = named.iter().map(|event| clean(&event.name)).collect();
    let module = if layout.full_paths { &listing.path } else { &listing.dso };
    let heading = match (layout.show_period, layout.show_samples) {
        (true, _) => "Period",
        (_, true) => "Samples",
        _ => "Percent",
    };
    let basis = match layout.basis {
        PercentBasis::LocalPeriod => "local period",
        PercentBasis::LocalHits => "local hits",
        PercentBasis::GlobalPeriod => "global period",
        PercentBasis::GlobalHits => "global hits",
    };
    let title = format!(
        "Source code & Disassembly of {} for {} ({} samples, percent: {basis})",
        clean(module),
        names.join(", "),
        named.first().map_or(0, |event| event.own.samples)
    );
    let wide = column(layout) * named.len();
    writeln!(out, " {heading:<rest$} |\t{title}", rest = wide - 1)?;
    writeln!(out, "{}", "-".repeat(wide + 10 + title.len()))?;
    writeln!(out, "{:wide$} :      {:016x} <{}>:", "", listing.start, clean(&listing.symbol))?;
    if !layout.instructions {
        return lines(out, page, wide);
    }
    let rows = &listing.rows;
    let window = page.window(rows.len(), |at| if is_code(&rows[at]) { &rows[at].values } else { &[] });
    rows[window].iter().try_for_each(|row| self::row(out, page, row, wide))
}

/// Returns the width of a numeric column.
fn column(layout: &AnnotateLayout) -> usize {
    if layout.show_period { 12 } else { 8 }
}

fn row(out: &mut dyn Write, page: &ListingPage<'_>, row: &ListingRow, wide: usize) -> io::Result<()> {
    let ListingPage { listing, layout, .. } = page;
    match &row.kind {
        RowContent::Function { .. } | RowContent::Source { .. } if !layout.source => Ok(()),
        RowContent::Function { name, .. } => writeln!(out, "{:wide$} :      {}():", "", clean(name)),
        RowContent::Source { file, line, .. } => {
            let text = listing.text(*file, *line).map(source_line).unwrap_or_default();
            let place = place(listing, layout, *file, *line);
            writeln!(out, "{:wide$} : {}", "", format!("{place:<4} {text}").trim_end())
        }
        RowContent::Instruction(instruction) => {
            let bytes = match page.bytes {
                0 => String::new(),
                wide => format!("{:<wide$} ", hex(&instruction.bytes, " ")),
            };
            let code = format!("{:<6} {}", instruction.mnemonic, operands(instruction));
            let costs = costs(page, |event| row.value(event));
            writeln!(out, "{costs} :   {:x}:   {bytes}{}", instruction.address, code.trim_end())
        }
        RowContent::Address(address) => {
            writeln!(out, "{} :   {address:x}:   ?", costs(page, |event| row.value(event)))
        }
    }
}

/// Returns operands with the names of their addresses, as in objdump: `jle 1200 <inner+0x60>`.
fn operands(instruction: &Instruction) -> String {
    let place = |target: &InstructionTarget| match &target.name {
        Some((name, 0)) => format!("{:x} <{}>", target.address, clean(name)),
        Some((name, into)) => format!("{:x} <{}+{into:#x}>", target.address, clean(name)),
        None => format!("{:x}", target.address),
    };
    let mut text = instruction.operands.to_string();
    if let Some(target) = &instruction.target {
        let start = text.rfind(", ").map_or(0, |at| at + 2);
        text.replace_range(start.., &place(target));
    }
    if let Some(refers) = &instruction.refers {
        text.push_str(&format!("        # {}", place(refers)));
    }
    text
}

/// Writes only the source code, one source line per row.
fn lines(out: &mut dyn Write, page: &ListingPage<'_>, wide: usize) -> io::Result<()> {
    let ListingPage { listing, layout, .. } = page;
    let lines = &listing.lines;
    let mut file = None;
    for line in &lines[page.window(lines.len(), |at| &lines[at].values)] {
        if file != Some(line.file) {
            let path = listing.files.get(line.file).map_or("", |file| &file.path);
            writeln!(out, "{:wide$} :      {}", "", clean(path))?;
            file = Some(line.file);
        }
        let place = place(listing, layout, line.file, line.line);
        let text = listing.text(line.file, line.line).map(source_line).unwrap_or_default();
        let row = format!("{} : {place:<4} {text}", costs(page, |event| line.value(event)));
        writeln!(out, "{}", row.trim_end())?;
    }
    Ok(())
}

/// Returns the numeric columns of a row, one per event.
fn costs(page: &ListingPage<'_>, value: impl Fn(usize) -> SampleValue) -> String {
    let (layout, wide) = (page.layout, column(page.layout));
    let mut text = String::new();
    for at in &page.events {
        let of = value(*at);
        let (share, _) = page.listing.share(*at, &of, layout.basis);
        let number = match (layout.show_period, layout.show_samples) {
            (true, _) => of.period.to_string(),
            (_, true) => of.samples.to_string(),
            _ => format!("{:.2}", share * 100.0),
        };
        let colour = page.colour(share);
        let plain = if colour.is_empty() { "" } else { PLAIN };
        text += &format!("{colour}{number:>wide$}{plain}");
    }
    text
}
