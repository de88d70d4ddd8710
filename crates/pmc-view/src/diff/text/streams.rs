//! The hottest call chains of the recordings (`--stream`).
//!
//! Receives a diff in which each row is a whole call chain. Writes the chains with perf's titles.

use std::io::{self, Write};

use super::{DiffTable, DiffTableRow, numbers, titles, word, write_findings};
use crate::diff::{DiffLayout, is_noise, selected_rows};
use crate::remarks::Remarks;
use pmc_analysis::profile::diff::{Diff, DiffEvent, DiffRow};
use pmc_analysis::profile::sampled::{RowCell, SampleValue};
use pmc_text::units::thousands;

/// Writes the hottest call chains in three groups: chains in the base and a new recording, chains only in the
/// base, and chains only in new recordings.
pub(super) fn write(
    out: &mut Remarks<'_>,
    diff: &Diff,
    event: &DiffEvent,
    layout: &DiffLayout,
) -> io::Result<()> {
    let all = selected_rows(event, layout);
    let rows = all.iter().map(|line| DiffTableRow {
        is_noise: line.changes.iter().all(is_noise),
        numbers: numbers(diff, event, line, layout, false),
        words: Vec::new(),
        cells: &[],
    });
    let table =
        DiffTable { titles: titles(diff, event, layout, false), keys: Vec::new(), rows: rows.collect() };
    let mut texts = table.lines(diff, layout, &[]).into_iter();
    let heading = texts.next().unwrap_or_default();
    let with_numbers: Vec<(&DiffRow, String)> = all.into_iter().zip(texts).collect();
    let section = |line: &DiffRow| match line.values.split_first() {
        Some((_, new)) if new.iter().all(|value| value.samples == 0) => 1,
        Some((old, _)) if old.samples == 0 => 2,
        _ => 0,
    };
    let sections = [
        ("Matched hot streams", "hot chain pair"),
        ("Hot streams in old perf data only", "hot chain"),
        ("Hot streams in new perf data only", "hot chain"),
    ];
    for (number, (title, what)) in sections.into_iter().enumerate() {
        writeln!(out.out, "{}[ {title} ]", if number == 0 { "" } else { "\n" })?;
        for (at, (line, text)) in with_numbers.iter().filter(|(line, _)| section(line) == number).enumerate()
        {
            writeln!(out.out, "\n{what} {}:\n{heading}\n{text}", at + 1)?;
            frames(out.out, diff, event, line, layout)?;
        }
    }
    write_findings(out, diff, event, "streams")
}

/// Writes a call chain, one frame per line, innermost first.
fn frames(
    out: &mut dyn Write,
    diff: &Diff,
    event: &DiffEvent,
    line: &DiffRow,
    layout: &DiffLayout,
) -> io::Result<()> {
    let cycles = |value: &SampleValue| value.weights()[0].checked_div(value.samples);
    if line.values.iter().any(|value| value.weights()[0] > 0) {
        let all = line.values.iter().map(|value| cycles(value).map_or("-".to_owned(), thousands));
        writeln!(out, "    cycles: {}", all.collect::<Vec<_>>().join(", "))?;
    }
    let frame = |cells: &'_ [RowCell]| cells.iter().map(|cell| word(diff, cell, layout)).collect();
    let rows = line.frames(&event.keys).map(|cells| DiffTableRow {
        is_noise: false,
        numbers: Vec::new(),
        words: frame(cells),
        cells,
    });
    let keys = event.keys.iter().map(|key| (*key, String::new())).collect();
    let table = DiffTable { titles: Vec::new(), keys, rows: rows.collect() };
    let fitted = table.fitted(layout.width.map(|columns| columns.saturating_sub(4)), false);
    for text in table.lines(diff, layout, &fitted.widths).iter().skip(1) {
        writeln!(out, "    {text}")?;
    }
    Ok(())
}
