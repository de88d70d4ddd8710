//! `pmc compare` as text, as a JSON document, and as a page.
//!
//! Receives the counts and the profiles of two commands, A and B, and the answer of `--fail-if`. The table of
//! counts is that of `stat --vs`, and the rows of functions are those of `diff OLD… --vs NEW…`.
//!
//! ```text
//!   counts ─────────────────────> text, JSON, page
//!   profiles ── rows ───────────> text, JSON, page
//!      '─────── merged tree ────> flame graph in the page
//! ```

use std::collections::BTreeMap;
use std::io::{self, Write};

use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use rustc_hash::FxHashMap;

use super::diff::{DiffLayout, groups};
use super::export::{escaped, svg};
use super::gate::{self, GateJson, VerdictJson};
use super::stat::{StatStyle, versus};
use pmc_analysis::profile::diff::groups::{GroupComparison, GroupEvent, GroupRow, GroupVerdict};
use pmc_analysis::profile::diff::{Diff, DiffEvent};
use pmc_analysis::profile::gate::ComparisonVerdict;
use pmc_analysis::profile::sampled::code::UNKNOWN;
use pmc_analysis::profile::sampled::{RowCell, StringId, is_clock};
use pmc_analysis::profile::versus::CommandComparison;
use pmc_sys::text::{as_json, clean};

const PAGE: &str = include_str!("page.html");

/// Version of the JSON document; incremented when a field changes its meaning.
const VERSION: u32 = 1;

/// Maximum number of rows of the page's table of functions.
const PAGE_ROWS: usize = 500;

/// Names of the two commands in tables.
const SIDES: [&str; 2] = ["A", "B"];

/// All results.
pub(crate) struct CompareAnswer<'a> {
    pub(crate) counts: &'a CommandComparison,
    /// The profiles; `None` if the commands were interrupted before both had been profiled.
    pub(crate) profiles: Option<(&'a Diff, &'a GroupComparison)>,
    pub(crate) verdict: &'a ComparisonVerdict,
    pub(crate) style: &'a StatStyle,
    pub(crate) layout: &'a DiffLayout,
}

impl CompareAnswer<'_> {
    /// Writes the answer as text.
    ///
    /// # Errors
    /// Fails if writing to `out` fails.
    pub(crate) fn text(&self, out: &mut dyn Write) -> io::Result<()> {
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
    ///
    /// # Errors
    /// Fails if writing to `out` fails.
    pub(crate) fn json(&self, out: &mut dyn Write) -> io::Result<()> {
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
    ///
    /// # Errors
    /// Fails if writing to `out` fails.
    pub(crate) fn page(&self, out: &mut dyn Write) -> io::Result<()> {
        let (before, after) = PAGE.split_once("⟦body⟧").unwrap_or((PAGE, ""));
        out.write_all(before.as_bytes())?;
        writeln!(out, "<h1>Two commands compared</h1>")?;
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
                flame_graph(out, diff, compared, event)?;
            }
            for remark in groups::remarks(diff, compared) {
                writeln!(out, "<p class=\"dim\">{}</p>", html(&remark))?;
            }
        }
        out.write_all(after.as_bytes())
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
    escaped(&clean(text))
}

fn functions_table(
    out: &mut dyn Write,
    diff: &Diff,
    compared: &GroupComparison,
    event: &GroupEvent,
) -> io::Result<()> {
    writeln!(out, "<h2>Functions: {}</h2>\n<div class=\"scroll\"><table>", html(&event.name))?;
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
    writeln!(out, "<tr>{}</tr>", line("th", groups::titles(diff, event, SIDES)))?;
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

/// Writes the differential flame graph in a sandboxed frame, in which its script cannot access the page.
fn flame_graph(
    out: &mut dyn Write,
    diff: &Diff,
    compared: &GroupComparison,
    event: &GroupEvent,
) -> io::Result<()> {
    let merged = diff.events.iter().find(|of| of.name == event.name);
    let lines = merged.map(|of| folded(diff, compared.runs, of, &changed(event))).unwrap_or_default();
    if lines.iter().all(|(.., new)| *new == 0) {
        return writeln!(out, "<p class=\"dim\">No flame graph: there are no call stacks of B.</p>");
    }
    let mut image = Vec::new();
    let unit = if is_clock(&event.name) { "ns" } else { "occurrences" };
    svg::difference(&mut image, &format!("{}, mean run of B", clean(&event.name)), unit, &lines)?;
    let height = svg::height(&image);
    writeln!(
        out,
        "<h2>Flame graph of B</h2>\n<p class=\"dim\">Red: the function itself costs more in B than in A. Blue: \
         less. Only differences beyond the noise between runs are coloured.</p>"
    )?;
    write!(
        out,
        "<iframe sandbox=\"allow-scripts\" title=\"Differential flame graph\" height=\"{height}\" \
         src=\"data:image/svg+xml;base64,"
    )?;
    let mut encoded = EncoderWriter::new(&mut *out, &STANDARD);
    encoded.write_all(&image)?;
    encoded.finish()?;
    drop(encoded);
    writeln!(out, "\"></iframe>")
}

/// Returns whether each function changed by more than the noise between runs.
fn changed(event: &GroupEvent) -> FxHashMap<StringId, bool> {
    let mut changed = FxHashMap::default();
    let symbol = |row: &GroupRow| {
        row.cells.iter().find_map(|cell| match cell {
            RowCell::Symbol(_, name) => Some(*name),
            _ => None,
        })
    };
    for row in &event.rows {
        if let Some(name) = symbol(row) {
            *changed.entry(name).or_default() |= !groups::is_noise(&row.change);
        }
    }
    changed
}

/// Returns the paths of the merged tree with the mean cost per run of A and of B, sorted by path. Both costs
/// are equal if the change of the last function's row is within noise.
fn folded(
    diff: &Diff,
    runs: [usize; 2],
    event: &DiffEvent,
    changed: &FxHashMap<StringId, bool>,
) -> Vec<(String, u64, u64)> {
    let Some(tree) = &event.tree else { return Vec::new() };
    let cost = |node: usize, side: usize| -> u64 {
        let values = &tree.nodes[node].values;
        let range = if side == 0 { 0..runs[0] } else { runs[0]..values.len() };
        values[range].iter().map(|value| value.period).fold(0, u64::saturating_add)
    };
    let mut sums: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    let mut paths: Vec<String> = Vec::with_capacity(tree.nodes.len());
    // Rows are functions with all code that is inlined into them.
    let mut rows: Vec<StringId> = Vec::with_capacity(tree.nodes.len());
    for (at, node) in tree.nodes.iter().enumerate() {
        let name = clean(diff.texts.get(node.symbol));
        let module = || format!("[{}]", clean(diff.texts.get(node.dso)).trim_matches(['[', ']']));
        let name = if name == UNKNOWN { module() } else { name.replace(';', ":") };
        // Parents come before their children.
        rows.push(node.parent.filter(|_| node.inlined).map_or(node.symbol, |parent| rows[parent as usize]));
        let path = match node.parent {
            Some(parent) => format!("{};{name}", paths[parent as usize]),
            None => name,
        };
        let own = |side: usize| {
            let below =
                node.children.iter().map(|child| cost(*child as usize, side)).fold(0, u64::saturating_add);
            cost(at, side).saturating_sub(below) / runs[side].max(1) as u64
        };
        let mut costs = [own(0), own(1)];
        if changed.get(&rows[at]) == Some(&false) {
            costs[0] = costs[1];
        }
        if costs != [0, 0] {
            let sum = sums.entry(path.clone()).or_default();
            sum.iter_mut().zip(costs).for_each(|(sum, cost)| *sum = sum.saturating_add(cost));
        }
        paths.push(path);
    }
    sums.into_iter().map(|(path, [old, new])| (path, old, new)).collect()
}
