//! Listings for human readers.
//!
//! ```text
//! weigh  in prog
//!   41.2% ±1.3 of cpu-clock (1,234 of 2,995 samples)
//!
//!   Costliest lines
//!    24.1% ±2.0  prog.c:12  sum += i * 3;
//!
//!                │         12  for (int i = 0; i < n; i++)
//!    12.3% ±1.8  │ ╭─▸  1150:  add    %eax, sum
//!     1.0% ±0.5  │ ╰──  1157:  jne    1150
//! ```

use std::io::{self, Write};
use std::ops::Range;

use super::{AnnotateFacts, AnnotateLayout, all_arrows, file_name, operands, source_line};
use pmc_analysis::profile::annotate::{
    Listing, ListingEvent, ListingRow, RowContent, SampleValue, Skid, SourceLine,
};
use pmc_analysis::profile::sampled::trust::losses;
use pmc_text::text::{clean, hex, width};
use pmc_text::units::thousands;

/// Maximum number of lines in the summary above the listing.
const COSTLIEST: usize = 10;
/// Minimum share for a line to appear in the summary above the listing.
const LEAST: f64 = 0.005;
/// Share at or above which a row counts as hot (perf's threshold).
const HOT: f64 = 0.05;
const RED: &str = "\x1b[31m";
const GREEN: &str = "\x1b[32m";
const DIM: &str = "\x1b[2m";
const BOLD: &str = "\x1b[1m";
pub(super) const PLAIN: &str = "\x1b[0m";

pub(super) fn write(
    out: &mut dyn Write,
    listings: &[Listing],
    facts: &AnnotateFacts,
    layout: &AnnotateLayout,
) -> io::Result<()> {
    for listing in listings {
        let page = ListingPage::new(listing, layout);
        page.head(out)?;
        page.costliest(out)?;
        if layout.instructions {
            page.code(out)?;
        } else {
            page.lines(out)?;
        }
        writeln!(out)?;
        notes(out, &page)?;
        writeln!(out)?;
    }
    if listings.is_empty() {
        writeln!(out, "No function with samples.\n")?;
    }
    trust(out, facts)
}

/// A listing that is being written.
pub(super) struct ListingPage<'a> {
    pub(super) listing: &'a Listing,
    pub(super) layout: &'a AnnotateLayout,
    /// Indexes of the events to show, which are those with samples in the function.
    pub(super) events: Vec<usize>,
    /// Width of addresses in columns.
    address: usize,
    /// Width of line numbers in columns.
    number: usize,
    /// Width of the instruction bytes, in terminal columns.
    pub(super) bytes: usize,
}

impl<'a> ListingPage<'a> {
    pub(super) fn new(listing: &'a Listing, layout: &'a AnnotateLayout) -> Self {
        let events = listing.events.iter().enumerate().filter(|(_, event)| event.own.samples > 0);
        let events: Vec<usize> = events.map(|(at, _)| at).collect();
        let (mut address, mut number, mut bytes) = (4, 3, 0);
        for row in &listing.rows {
            match &row.kind {
                RowContent::Instruction(instruction) => {
                    address = address.max(format!("{:x}", instruction.address).len());
                    bytes = bytes.max(instruction.bytes.len() * 3);
                }
                RowContent::Address(at) => address = address.max(format!("{at:x}").len()),
                RowContent::Source { file, line, .. } => {
                    number = number.max(place(listing, layout, *file, *line).len());
                }
                RowContent::Function { .. } => {}
            }
        }
        for line in &listing.lines {
            number = number.max(place(listing, layout, line.file, line.line).len());
        }
        let bytes = if layout.raw_bytes { bytes.min(33) } else { 0 };
        Self { listing, layout, events, address, number, bytes }
    }

    fn paint<'s>(&self, code: &'s str) -> &'s str {
        if self.layout.colour { code } else { "" }
    }

    fn head(&self, out: &mut dyn Write) -> io::Result<()> {
        let of = self.listing;
        let (bold, plain) = (self.paint(BOLD), self.paint(PLAIN));
        writeln!(out, "{bold}{}{plain}  in {}", clean(&of.symbol), clean(&of.dso))?;
        for event in self.events.iter().map(|at| &of.events[*at]) {
            let (share, error) = event.of_all();
            writeln!(
                out,
                "  {} of {} ({} of {} samples)",
                percent(share, error),
                clean(&event.name),
                thousands(event.own.samples),
                thousands(event.total.samples)
            )?;
        }
        writeln!(out)
    }

    /// Returns the colour of a share, with perf's thresholds.
    pub(super) fn colour(&self, share: f64) -> &'static str {
        match share {
            _ if !self.layout.colour => "",
            _ if share >= HOT => RED,
            _ if share >= LEAST => GREEN,
            _ => "",
        }
    }

    /// Returns the cost columns of a row.
    fn costs(&self, value: impl Fn(usize) -> SampleValue) -> String {
        let mut text = String::new();
        for at in &self.events {
            let of = value(*at);
            let (share, error) = self.listing.share(*at, &of, self.layout.basis);
            if of.samples == 0 {
                text.push_str(&" ".repeat(12));
            } else {
                let colour = self.colour(share);
                let plain = if colour.is_empty() { "" } else { PLAIN };
                text.push_str(&format!("{colour}{:>12}{plain}", percent(share, error)));
            }
            if self.layout.show_period {
                let period = if of.samples == 0 { String::new() } else { thousands(of.period) };
                text.push_str(&format!(" {period:>15}"));
            }
            if self.layout.show_samples {
                let samples = if of.samples == 0 { String::new() } else { thousands(of.samples) };
                text.push_str(&format!(" {samples:>9}"));
            }
            text.push_str("  ");
        }
        text
    }

    /// Returns blank cost columns.
    fn no_costs(&self) -> String {
        " ".repeat((self.column() + 2) * self.events.len())
    }

    /// Returns the width in columns of one event's costs.
    fn column(&self) -> usize {
        12 + if self.layout.show_period { 16 } else { 0 } + if self.layout.show_samples { 10 } else { 0 }
    }

    fn headings(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.events.len() < 2 {
            return Ok(());
        }
        let mut line = String::new();
        for event in self.events.iter().map(|at| &self.listing.events[*at]) {
            let most = self.column();
            let name: String = clean(&event.name).chars().take(most).collect();
            line.push_str(&format!("{name:>most$}  "));
        }
        writeln!(out, "{}", line.trim_end())
    }

    fn costliest(&self, out: &mut dyn Write) -> io::Result<()> {
        let Some(&first) = self.events.first().filter(|_| self.layout.source) else { return Ok(()) };
        let cost = |line: &SourceLine| self.listing.share(first, &line.value(first), self.layout.basis).0;
        let mut lines: Vec<&SourceLine> =
            self.listing.lines.iter().filter(|line| cost(line) >= LEAST).collect();
        lines.sort_by(|a, b| cost(b).total_cmp(&cost(a)));
        if lines.is_empty() {
            return Ok(());
        }
        writeln!(out, "  Costliest lines")?;
        self.headings(out)?;
        for line in lines.iter().take(COSTLIEST) {
            let path = self.listing.files.get(line.file).map_or("", |file| &file.path);
            let text = self.listing.text(line.file, line.line).map(|text| source_line(text.trim()));
            writeln!(
                out,
                "{}{}:{}  {}",
                self.costs(|event| line.value(event)),
                file_name(path, self.layout.full_paths),
                line.line,
                text.unwrap_or_default()
            )?;
        }
        if lines.len() > COSTLIEST {
            writeln!(out, "{}… and {} more lines", self.no_costs(), lines.len() - COSTLIEST)?;
        }
        writeln!(out)
    }

    /// Summarizes the rows above or below the displayed window.
    fn left_out(&self, out: &mut dyn Write, rows: &[ListingRow], where_: &str) -> io::Result<()> {
        let Some(&first) = self.events.first().filter(|_| !rows.is_empty()) else { return Ok(()) };
        let mut sum = SampleValue::default();
        for row in rows.iter().filter(|row| is_code(row)) {
            sum += row.value(first);
        }
        let (share, _) = self.listing.share(first, &sum, self.layout.basis);
        writeln!(out, "{}… {} rows {where_} with {:.1}%", self.no_costs(), rows.len(), share * 100.0)
    }

    fn code(&self, out: &mut dyn Write) -> io::Result<()> {
        self.headings(out)?;
        let rows = &self.listing.rows;
        let window = self.window(rows.len(), |at| if is_code(&rows[at]) { &rows[at].values } else { &[] });
        self.left_out(out, &rows[..window.start], "above")?;
        let arrows = all_arrows(self.listing);
        for at in window.clone() {
            self.row(out, arrows.get(at).map_or("", String::as_str), &rows[at])?;
        }
        self.left_out(out, &rows[window.end..], "below")
    }

    /// Returns the `layout.rows` consecutive rows whose total cost is highest.
    pub(super) fn window<'v>(
        &self,
        count: usize,
        values: impl Fn(usize) -> &'v [SampleValue],
    ) -> Range<usize> {
        let Some(&event) = self.events.first() else { return 0..count };
        super::window(self.layout.rows, count, |at| values(at).get(event).map_or(0, |value| value.period))
    }

    fn row(&self, out: &mut dyn Write, lanes: &str, row: &ListingRow) -> io::Result<()> {
        let (dim, plain) = (self.paint(DIM), self.paint(PLAIN));
        match &row.kind {
            RowContent::Function { .. } | RowContent::Source { .. } if !self.layout.source => Ok(()),
            RowContent::Function { name, depth } => {
                let inlined = if *depth > 0 { " (inlined)" } else { "" };
                writeln!(out, "{}│ {lanes} {dim}{}{inlined}:{plain}", self.no_costs(), clean(name))
            }
            RowContent::Source { file, line, depth, .. } => {
                let text = self.listing.text(*file, *line).map(source_line).unwrap_or_default();
                let place = place(self.listing, self.layout, *file, *line);
                let inset = "  ".repeat((*depth).min(8));
                let text = format!("{place:>number$}  {inset}{text}", number = self.number);
                writeln!(out, "{}│ {lanes} {dim}{}{plain}", self.no_costs(), text.trim_end())
            }
            RowContent::Instruction(instruction) => {
                let mut bytes = String::new();
                if self.bytes > 0 {
                    let hex = hex(&instruction.bytes, " ") + " ";
                    bytes = format!("{hex:<wide$} ", wide = self.bytes);
                }
                let code = format!("{:<7} {}", instruction.mnemonic, operands(self.listing, instruction));
                writeln!(
                    out,
                    "{}│ {lanes} {:>wide$x}:  {bytes}{}",
                    self.costs(|event| row.value(event)),
                    instruction.address,
                    code.trim_end(),
                    wide = self.address
                )
            }
            RowContent::Address(address) => {
                let costs = self.costs(|event| row.value(event));
                writeln!(out, "{costs}│ {lanes} {address:>wide$x}:  ?", wide = self.address)
            }
        }
    }

    /// Writes only source lines.
    fn lines(&self, out: &mut dyn Write) -> io::Result<()> {
        self.headings(out)?;
        let lines = &self.listing.lines;
        let window = self.window(lines.len(), |at| &lines[at].values);
        let (mut file, mut before) = (None, 0);
        for line in &lines[window] {
            if file != Some(line.file) {
                let path = self.listing.files.get(line.file).map_or("", |file| &file.path);
                writeln!(out, "{}│ {}", self.no_costs(), clean(path))?;
                (file, before) = (Some(line.file), line.line.saturating_sub(1));
            }
            if line.line > before + 1 {
                writeln!(out, "{}│ {:>number$}", self.no_costs(), "⋮", number = self.number)?;
            }
            before = line.line;
            let text = self.listing.text(line.file, line.line).map(source_line).unwrap_or_default();
            let place = place(self.listing, self.layout, line.file, line.line);
            let text = format!("{place:>number$}  {text}", number = self.number);
            writeln!(out, "{}│ {}", self.costs(|event| line.value(event)), text.trim_end())?;
        }
        if lines.is_empty() {
            writeln!(out, "{}│ no source lines", self.no_costs())?;
        }
        Ok(())
    }
}

pub(super) fn notes(out: &mut dyn Write, page: &ListingPage<'_>) -> io::Result<()> {
    if let Some(from) = &page.listing.bytes_from {
        writeln!(out, "  Instructions from {}.", clean(from))?;
    }
    for event in page.events.iter().map(|at| &page.listing.events[*at]) {
        if let Some(words) = skid(event) {
            writeln!(out, "  {}: {words}", clean(&event.name))?;
        }
    }
    for note in &page.listing.notes {
        writeln!(out, "  {}", clean(&note.text))?;
        if let Some(remedy) = &note.remedy {
            writeln!(out, "    try: {}", clean(remedy))?;
        }
    }
    Ok(())
}

pub(super) fn is_code(row: &ListingRow) -> bool {
    matches!(row.kind, RowContent::Instruction(_) | RowContent::Address(_))
}

/// Returns a line number, prefixed with the file name if the layout requests it.
pub(super) fn place(listing: &Listing, layout: &AnnotateLayout, file: usize, line: u32) -> String {
    match listing.files.get(file).filter(|_| layout.file_names) {
        Some(file) => format!("{}:{line}", file_name(&file.path, layout.full_paths)),
        None => line.to_string(),
    }
}

fn percent(share: f64, error: f64) -> String {
    // No digit after the point of 100, so that the column holds every pair.
    let digits = usize::from(error < 0.9995);
    let text = format!("{:.1}% ±{:.digits$}", share * 100.0, error * 100.0);
    debug_assert!(width(&text) <= 12, "{text}");
    text
}

/// Explains the event's skid: how far the recorded address is from the instruction that caused the cost.
fn skid(event: &ListingEvent) -> Option<&'static str> {
    match event.skid {
        Skid::Any => Some(
            "precise level 0: costs appear a few instructions after their cause. Record with :p or :pp for \
             more precision, if the hardware supports it.",
        ),
        Skid::Interrupt => Some(
            "a timer or software event (precise level 0): the cost of a slow instruction is attributed to the next one.",
        ),
        Skid::Constant => {
            Some("precise level 1: costs appear a constant distance after the instruction that caused them.")
        }
        Skid::None => None,
    }
}

pub(super) fn trust(out: &mut dyn Write, facts: &AnnotateFacts) -> io::Result<()> {
    if facts.left_out > 0 {
        writeln!(
            out,
            "{} more functions have samples (--functions 0 shows all; or name a function).",
            thousands(facts.left_out as u64)
        )?;
    }
    let lost = losses(facts.samples, facts.lost, facts.is_damaged);
    writeln!(
        out,
        "Trust: {} samples, {lost}. ± is the 95% confidence interval of the sampling error.",
        thousands(facts.samples)
    )?;
    for note in &facts.notes {
        writeln!(out, "       {}.", clean(note))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_fit_into_their_column() {
        assert_eq!(percent(0.5, 0.012), "50.0% ±1.2");
        assert_eq!(percent(1.0, 1.0), "100.0% ±100");
        assert_eq!(percent(1.0, 0.9996), "100.0% ±100");
    }
}
