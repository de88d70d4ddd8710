//! `pmc compare` as text, as a JSON document, and as a page.
//!
//! Receives the counts and the profiles of two commands, A and B, and the answer of `--fail-if`. The table of
//! counts is that of `stat --vs`, and the rows of functions are those of `diff OLD… --vs NEW…`.
//!
//! ```text
//!   counts ─────────────────────> text, JSON, page
//!   profiles ── rows ───────────> text, JSON, page
//!      '─────── merged tree ────> flame graph and call tree in the page
//! ```

mod page_data;

use std::io::{self, Write};

use super::diff::{DiffLayout, groups};
use super::gate::{self, GateJson, VerdictJson};
use super::page;
use super::stat::{StatStyle, versus};
use pmc_analysis::profile::diff::Diff;
use pmc_analysis::profile::diff::groups::{GroupComparison, GroupEvent, GroupVerdict};
use pmc_analysis::profile::gate::ComparisonVerdict;
use pmc_analysis::profile::versus::CommandComparison;
use pmc_text::text::{as_json, clean, xml_escaped};

/// Version of the JSON document; incremented when a field changes its meaning.
const VERSION: u32 = 1;

/// Maximum number of rows of the page's table of functions.
const PAGE_ROWS: usize = 500;

/// Names of the two commands in tables.
const SIDES: [&str; 2] = ["A", "B"];

/// All results.
pub struct CompareAnswer<'a> {
    pub counts: &'a CommandComparison,
    /// The profiles; `None` if the commands were interrupted before both had been profiled.
    pub profiles: Option<(&'a Diff, &'a GroupComparison)>,
    pub verdict: &'a ComparisonVerdict,
    pub style: &'a StatStyle,
    pub layout: &'a DiffLayout,
}

impl CompareAnswer<'_> {
    /// Writes the answer as text.
    pub fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        gate::headline_text(out, self.verdict, self.layout.width)?;
        versus::table(out, self.counts, self.style)?;
        versus::remarks(out, self.counts, self.style)?;
        writeln!(out)?;
        if let Some((diff, compared)) = self.profiles {
            groups::write_changed(out, diff, compared, self.layout)?;
        }
        let Some(report) = &self.verdict.gate else { return Ok(()) };
        writeln!(out)?;
        gate::text(out, report, self.layout.width)
    }

    /// Writes one JSON document, which contains those of `stat --vs` and `diff --vs`.
    pub fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{{\n\"version\": {VERSION},\n\"counts\":")?;
        versus::json(out, self.counts, None)?;
        write!(out, ",\n\"profiles\": ")?;
        match self.profiles {
            Some((diff, compared)) => groups::json(out, diff, compared, None, self.layout)?,
            None => writeln!(out, "null")?,
        }
        writeln!(out, ",\n\"verdicts\": {}", as_json(&VerdictJson::all(self.verdict)))?;
        if let Some(report) = &self.verdict.gate {
            writeln!(out, ",\n\"gate\": {}", as_json(&GateJson::from(report)))?;
        }
        writeln!(out, "}}")
    }

    /// Writes a page, which loads nothing.
    pub fn page(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut result = Vec::new();
        self.result(&mut result)?;
        let data = |out: &mut dyn Write| page_data::data(out, &self.counts.commands, self.profiles);
        page::write(out, "Two commands compared", &String::from_utf8_lossy(&result), data)
    }

    /// Writes the page's first tab: the answer, the counts, and the changed functions.
    fn result(&self, out: &mut dyn Write) -> io::Result<()> {
        for (letter, command) in SIDES.iter().zip(&self.counts.commands) {
            writeln!(out, "<p>{letter} <code>{}</code></p>", html(command))?;
        }
        for line in gate::headlines(self.verdict) {
            writeln!(out, "<p class=\"answer\">{}</p>", html(&line))?;
        }
        if let Some(report) = &self.verdict.gate {
            let mut text = Vec::new();
            gate::text(&mut text, report, None)?;
            let lines: Vec<String> = String::from_utf8_lossy(&text).lines().map(html).collect();
            writeln!(out, "<pre>{}</pre>", lines.join("\n"))?;
        }
        self.counts_table(out)?;
        if let Some((diff, compared)) = self.profiles {
            for event in &compared.events {
                functions_table(out, diff, compared, event)?;
            }
            for remark in groups::remarks(diff, compared) {
                writeln!(out, "<p class=\"dim\">{}</p>", html(&remark))?;
            }
        }
        Ok(())
    }

    fn counts_table(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "<h2>Time and counts per run</h2>\n<div class=\"scroll\"><table>")?;
        let plain = StatStyle { colour: false, ..self.style.clone() };
        for cells in versus::rows(self.counts, &plain) {
            let cells = cells.iter().enumerate().map(|(at, cell)| {
                format!("<td{}>{}</td>", if at == 2 { " class=\"n\"" } else { "" }, html(cell.trim()))
            });
            writeln!(out, "<tr>{}</tr>", cells.collect::<String>())?;
        }
        writeln!(
            out,
            "</table></div>\n<p class=\"dim\">± is half of the 95% confidence interval of the mean.</p>"
        )
    }
}

/// Cleans untrusted text and escapes it for HTML.
fn html(text: &str) -> String {
    xml_escaped(&clean(text))
}

fn functions_table(
    out: &mut dyn Write,
    diff: &Diff,
    compared: &GroupComparison,
    event: &GroupEvent,
) -> io::Result<()> {
    writeln!(
        out,
        "<h2>Functions: {}</h2>\n<div class=\"scroll\"><table class=\"functions\">",
        html(&event.name)
    )?;
    let class = |at: usize| match at {
        0..=2 => " class=\"n\"",
        4 => " class=\"v\"",
        5.. => " class=\"name\"",
        _ => "",
    };
    let line = |tag: &str, cells: Vec<String>| -> String {
        let cells = cells.iter().enumerate();
        cells.map(|(at, cell)| format!("<{tag}{}>{}</{tag}>", class(at), html(cell.trim()))).collect()
    };
    writeln!(out, "<tr>{}</tr>", line("th", groups::titles(event, SIDES)))?;
    for row in event.rows.iter().take(PAGE_ROWS) {
        let kind = match row.change.verdict {
            _ if groups::is_noise(&row.change) => "quiet",
            GroupVerdict::More | GroupVerdict::New => "more",
            _ => "less",
        };
        let cells = line("td", groups::cells(diff, compared, event, row));
        writeln!(out, "<tr class=\"{kind}\">{cells}</tr>")?;
    }
    writeln!(out, "</table></div>")?;
    match event.rows.len().saturating_sub(PAGE_ROWS) {
        0 => Ok(()),
        more => writeln!(out, "<p class=\"dim\">… and {more} more rows with smaller differences</p>"),
    }
}
