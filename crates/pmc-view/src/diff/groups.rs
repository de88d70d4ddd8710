//! Groups of recordings (`pmc diff OLD… --vs NEW…`) as text and JSON, with the answer of `--fail-if`.
//!
//! ```text
//! cpu-clock
//!   base  10 recordings, 1.203 s each
//!   new   10 recordings, 1.236 s each  (+2.7% ±0.6, p < 0.001)
//!
//!        Base         New      Change  p        Verdict       Shared Object  Symbol
//!   244.12 ms   277.90 ms  +13.8% ±1.2  < 0.001  more          prog           [.] hot_loop
//! ```

use std::io::{self, Write};

use serde_json::{Map, Value as Json, json};

use super::{DiffLayout, json::words as key_words};
use crate::gate::{self, GateJson, VerdictJson};
use crate::remarks::Remarks;
use crate::report::{CellFormat, ReportFormat, words};
use pmc_analysis::profile::diff::groups::{GroupChange, GroupComparison, GroupEvent, GroupRow, GroupVerdict};
use pmc_analysis::profile::diff::{Diff, VERSION};
use pmc_analysis::profile::gate::{ComparisonVerdict, GateReport, GateSubject};
use pmc_analysis::profile::sampled::RowCell;
use pmc_text::json_document::{list_up_to, list_with, percent};
use pmc_text::table::{self, left, right};
use pmc_text::terminal::theme::TextRole;
use pmc_text::text::{as_json, clean};
use pmc_text::units::{duration, thousands_f64};

/// Writes the comparison as text, or as JSON if the layout requests it.
pub fn write(
    out: &mut dyn Write,
    diff: &Diff,
    groups: &GroupComparison,
    verdict: &ComparisonVerdict,
    layout: &DiffLayout,
) -> io::Result<()> {
    if layout.form == ReportFormat::Json {
        return json(out, diff, groups, Some(verdict), layout);
    }
    gate::headline_text(out, verdict, layout.width)?;
    writeln!(out)?;
    for (number, event) in groups.events.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        head(&mut Remarks::new(out, layout.width, false), groups, event, ["base", "new"])?;
        table(out, diff, groups, event, &selected_rows(event, layout), ["Base", "New"], layout)?;
    }
    let remarks = &mut Remarks::new(out, layout.width, false);
    writeln!(remarks)?;
    for remark in self::remarks(diff, groups) {
        writeln!(remarks, "{remark}")?;
    }
    let Some(report) = &verdict.gate else { return Ok(()) };
    writeln!(out)?;
    gate::text(out, report, layout.width)
}

/// Writes the rows that differ between two commands, A and B.
pub fn write_changed(
    out: &mut dyn Write,
    diff: &Diff,
    groups: &GroupComparison,
    layout: &DiffLayout,
) -> io::Result<()> {
    for event in &groups.events {
        head(&mut Remarks::new(out, layout.width, false), groups, event, ["A", "B"])?;
        let all = selected_rows(event, layout);
        let changed: Vec<&GroupRow> = all.iter().copied().filter(|row| !is_noise(&row.change)).collect();
        match changed.is_empty() {
            true if event.total.verdict == GroupVerdict::FewRuns => {
                writeln!(out, "  Too few runs were profiled to compare functions.")?;
            }
            true => {
                writeln!(
                    out,
                    "  None of {} functions changed by more than the noise between runs.",
                    all.len()
                )?;
            }
            false => table(out, diff, groups, event, &changed, ["A", "B"], layout)?,
        }
        writeln!(out)?;
    }
    let out = &mut Remarks::new(out, layout.width, false);
    remarks(diff, groups).iter().try_for_each(|remark| writeln!(out, "{remark}"))
}

/// Returns what a reader must know about the rows.
pub fn remarks(diff: &Diff, groups: &GroupComparison) -> Vec<String> {
    let unit = if groups.by_share { "percentage of the recording" } else { "cost per recording" };
    let legend = format!(
        "Values are means ({unit}). ± is the 95% confidence interval of the change; p is corrected for the number of rows. \
         Within noise: the variation between recordings explains the change."
    );
    let lossy = diff.files.iter().filter(|file| file.lost > 0);
    let trust = lossy.map(|file| format!("Trust: {}: {}.", clean(&file.path), clean(&file.trust)));
    let notes = diff.notes.iter().chain(&groups.notes).map(|note| format!("{}.", clean(note)));
    [legend].into_iter().chain(trust).chain(notes).collect()
}

/// Returns the verdict on the new recordings.
pub fn verdict(diff: &Diff, groups: &GroupComparison, gate: Option<GateReport>) -> ComparisonVerdict {
    let names = ["the base", "the new version"].map(str::to_owned);
    ComparisonVerdict::new(&names, &[], &gate_subjects(diff, groups), gate)
}

/// Returns the measures of a gate.
pub fn gate_subjects(diff: &Diff, groups: &GroupComparison) -> Vec<GateSubject> {
    groups.gate_subjects(|row| row_name(diff, row), |text| diff.texts.get(text).to_owned())
}

/// Returns the name of a row for a gate: its function and program, or the values of other sort keys.
fn row_name(diff: &Diff, row: &GroupRow) -> String {
    let text = |cell: &RowCell| match cell {
        RowCell::Symbol(_, id) | RowCell::Text(id) => diff.texts.get(*id).to_owned(),
        cell => words(&diff.texts, cell, CellFormat::read(false)).trim().to_owned(),
    };
    let is_symbol = |cell: &&RowCell| matches!(cell, RowCell::Symbol(..));
    let (symbols, others): (Vec<&RowCell>, Vec<&RowCell>) = row.cells.iter().partition(is_symbol);
    let join = |cells: Vec<&RowCell>| cells.into_iter().map(text).collect::<Vec<_>>().join(", ");
    match (join(symbols), join(others)) {
        (symbol, others) if others.is_empty() => symbol,
        (symbol, others) if symbol.is_empty() => others,
        (symbol, others) => format!("{symbol} in {others}"),
    }
}

fn head(
    out: &mut Remarks<'_>,
    groups: &GroupComparison,
    event: &GroupEvent,
    sides: [&str; 2],
) -> io::Result<()> {
    writeln!(out, "{}", clean(&event.title))?;
    let change = match (event.total.change, groups.by_share) {
        (Some(change), false) => {
            format!("  ({}, p {})", gate::change(&change), gate::probability(event.total.adjusted))
        }
        _ => String::new(),
    };
    for (side, label) in sides.into_iter().enumerate() {
        let amount = match groups.by_share {
            true => String::new(),
            false => format!(", {} each", cost(groups, event, &event.total, side)),
        };
        let runnable = event
            .runnable
            .filter(|_| !event.is_census)
            .map_or_else(String::new, |mean| format!(", {} waiting for a CPU", duration(mean[side])));
        let change = if side == 1 { &change[..] } else { "" };
        let (runs, plural) = (groups.runs[side], if groups.runs[side] == 1 { "" } else { "s" });
        writeln!(out, "  {label:<4}  {runs} recording{plural}{amount}{change}{runnable}")?;
    }
    writeln!(out)
}

fn table(
    out: &mut dyn Write,
    diff: &Diff,
    groups: &GroupComparison,
    event: &GroupEvent,
    all: &[&GroupRow],
    sides: [&str; 2],
    layout: &DiffLayout,
) -> io::Result<()> {
    let keys = event.keys.len();
    let mut shapes = vec![right(2, 0), right(2, 0), right(2, 0), left(2, 0), left(2, 0)];
    shapes.extend((0..keys).map(|_| left(2, 0)));
    let rows = all.iter().take(layout.rows).map(|row| cells(diff, groups, event, row));
    let lines = table::lines(&shapes, [titles(event, sides)].into_iter().chain(rows));
    let is_quiet = all.iter().map(|row| is_noise(&row.change));
    let roles = is_quiet.map(|is_quiet| if is_quiet { TextRole::Quiet } else { TextRole::Plain });
    for (line, role) in lines.iter().zip([TextRole::Heading].into_iter().chain(roles)) {
        writeln!(out, "{}", layout.paint.words(role, line))?;
    }
    if all.len() > layout.rows {
        writeln!(out, "  … and {} more rows (--limit 0 shows all)", all.len() - layout.rows)?;
    }
    Ok(())
}

/// Returns the headings of the columns that [`cells`] fills.
pub fn titles(event: &GroupEvent, [old, new]: [&str; 2]) -> Vec<String> {
    let numbers = [old, new, "Change", "p", "Verdict"].map(str::to_owned);
    let keys = event.keys.iter().map(|key| key.heading().to_owned());
    numbers.into_iter().chain(keys).collect()
}

/// Returns the cells of a row: both costs, the change, p, the verdict, and the values of the sort keys.
pub fn cells(diff: &Diff, groups: &GroupComparison, event: &GroupEvent, row: &GroupRow) -> Vec<String> {
    let mut cells = numbers(groups, event, &row.change);
    cells.extend(row.cells.iter().map(|cell| words(&diff.texts, cell, CellFormat::read(false))));
    cells
}

/// Returns the rows that are not below the layout's limit.
fn selected_rows<'a>(event: &'a GroupEvent, layout: &DiffLayout) -> Vec<&'a GroupRow> {
    let is_wanted = |row: &&GroupRow| row.change.shares.iter().any(|share| *share >= layout.limit);
    event.rows.iter().filter(is_wanted).collect()
}

/// Whether a change is explained by noise, or cannot be tested.
pub fn is_noise(change: &GroupChange) -> bool {
    matches!(change.verdict, GroupVerdict::Noise | GroupVerdict::Rare | GroupVerdict::FewRuns)
}

fn numbers(groups: &GroupComparison, event: &GroupEvent, change: &GroupChange) -> Vec<String> {
    let cost = |side| cost(groups, event, change, side);
    let (percent, p) = match change.change {
        Some(mean) => (gate::change(&mean), gate::probability(change.adjusted)),
        None => ("-".to_owned(), "-".to_owned()),
    };
    vec![cost(0), cost(1), percent, p, change.verdict.words().to_owned()]
}

fn cost(groups: &GroupComparison, event: &GroupEvent, change: &GroupChange, side: usize) -> String {
    let mean = change.sides[side].mean;
    match (groups.by_share, event.is_time) {
        (true, _) => format!("{:.2}%", mean * 100.0),
        (false, true) => duration(mean),
        (false, false) => thousands_f64(mean, 0),
    }
}

/// Writes the comparison as one JSON document, with the verdict if it is not part of another document.
pub fn json(
    out: &mut dyn Write,
    diff: &Diff,
    groups: &GroupComparison,
    verdict: Option<&ComparisonVerdict>,
    layout: &DiffLayout,
) -> io::Result<()> {
    let file = |(at, file): (usize, &pmc_analysis::profile::diff::DiffFile)| {
        let group = if at < groups.runs[0] { "base" } else { "new" };
        json!({"path": file.path, "group": group, "samples": file.samples, "lost": file.lost, "trust": file.trust})
    };
    let files: Json = diff.files.iter().enumerate().map(file).collect();
    let compute = if groups.by_share { "share" } else { "cost" };
    writeln!(out, "{{\n\"version\": {VERSION},\n\"files\": {},", as_json(&files))?;
    write!(out, "\"compute\": \"{compute}\",\n\"events\": ")?;
    list_with(out, &groups.events, |out, event| {
        write!(
            out,
            "{{\"name\": {}, \"total\": {},\n\"rows\": ",
            as_json(&event.name),
            change(&event.total)
        )?;
        let omitted = list_up_to(out, selected_rows(event, layout), layout.rows, |row| {
            let mut object: Map<String, Json> = key_words(diff, &event.keys, &row.cells);
            object.insert("group_change".into(), change(&row.change));
            object
        })?;
        write!(out, ",\n\"omitted\": {{\"rows\": {omitted}}}}}")
    })?;
    let notes: Vec<&String> = diff.notes.iter().chain(&groups.notes).collect();
    write!(out, ",\n\"notes\": {}", as_json(&notes))?;
    if let Some(verdict) = verdict {
        write!(out, ",\n\"verdicts\": {}", as_json(&VerdictJson::all(verdict)))?;
    }
    if let Some(report) = verdict.and_then(|verdict| verdict.gate.as_ref()) {
        write!(out, ",\n\"gate\": {}", as_json(&GateJson::from(report)))?;
    }
    writeln!(out, "\n}}")
}

fn change(of: &GroupChange) -> Json {
    let side = |side: usize| {
        let summary = &of.sides[side];
        json!({"mean": summary.mean, "stdev": summary.stdev, "percent": percent(of.shares[side])})
    };
    json!({
        "base": side(0), "new": side(1),
        "change_percent": of.change.map(|change| change.percent),
        "error": of.change.map(|change| change.half_width()),
        "p_adjusted": of.change.map(|_| of.adjusted),
        "verdict": of.verdict.words(),
    })
}
