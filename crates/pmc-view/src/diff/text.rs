//! A comparison for human readers.
//!
//! ```text
//! cpu-clock
//!   base  598 samples  149.5 ms  perf.data.old
//!   [1]   701 samples  175.2 ms  perf.data  (+17.2%)
//!
//!      Base    Delta             Shared Object  Symbol
//!     46.3%    -15.1 ±5.2  less  shares         [.] fifty
//! ```
//! In a pipe, all lines except rows start with `#`, as in perf. The titles of call chains (`--stream`) are an
//! exception, also as in perf.

mod streams;
mod tree;

use std::io::{self, Write};

use super::{DiffLayout, error, formula, heading, is_noise, part, selected_rows, value};
use crate::remarks::Remarks;
use crate::report::{CellFormat, FittedWidths, StyledWords, omitted_columns, words};
use pmc_analysis::profile::diff::{
    ChangeVerdict, Compute, CostSource, Diff, DiffEvent, DiffRow, LEAST_SAMPLES, LEVEL,
};
use pmc_analysis::profile::sampled::{CodeKind, RowCell, SortKey};
use pmc_text::table::{self, ColumnShape, left, right};
use pmc_text::terminal::theme::TextRole;
use pmc_text::text::{clean, cut, width};
use pmc_text::units::{counted, duration, thousands};

/// Maximum width of each text column except the last, if the line width is unlimited.
const WIDEST: usize = 40;

pub(super) fn write(out: &mut dyn Write, diff: &Diff, layout: &DiffLayout) -> io::Result<()> {
    let is_commented = layout.width.is_none();
    let mut out = Remarks::new(out, layout.width, is_commented);
    for (number, event) in diff.events.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        match is_commented {
            true => writeln!(out, "Event '{}'\n", clean(&event.title()))?,
            false => writeln!(out, "{}", clean(&event.title()))?,
        }
        head(&mut out, diff, event)?;
        match diff.by_stream {
            true => streams::write(&mut out, diff, event, layout)?,
            false => table(&mut out, diff, event, layout)?,
        }
        tree::write(&mut out, diff, event, layout)?;
    }
    writeln!(out)?;
    trust(&mut out, diff)
}

fn amount(event: &DiffEvent, period: u64) -> String {
    match event.is_time() {
        true => duration(period as f64),
        false => format!("about {}", thousands(period)),
    }
}

/// Writes the total of each recording. The running time is exact if context switches were recorded.
fn head(out: &mut Remarks<'_>, diff: &Diff, event: &DiffEvent) -> io::Result<()> {
    let is_census = event.source() == CostSource::Census;
    let sampled = |file: usize| event.totals.get(file).and_then(Option::as_ref).map(|total| total.period);
    let are_exact = (0..diff.files.len()).all(|file| event.exact_running(file).is_some());
    let period = |file| if are_exact { event.exact_running(file) } else { sampled(file) };
    let base = period(0).unwrap_or(0);
    for (number, (file, total)) in diff.files.iter().zip(&event.totals).enumerate() {
        let label = if number == 0 { "base".to_owned() } else { format!("[{number}]") };
        let path = clean(&file.path);
        let Some(total) = total else {
            writeln!(out, "  {label:<5} not recorded  {path}")?;
            continue;
        };
        let own = period(number).unwrap_or(0);
        let change = (number > 0 && base > 0).then(|| (own as f64 / base as f64 - 1.0) * 100.0);
        let change = change.map(|change| format!("  ({change:+.1}%)")).unwrap_or_default();
        let (what, amount) = (if is_census { "waits" } else { "samples" }, amount(event, own));
        let times = event.thread_times.get(number).copied().flatten();
        let more = match times {
            Some(times) if is_census && times.idle > 0 => {
                format!("; {} idle (--idle)", counted(times.idle as u64, "thread"))
            }
            Some(times) if !is_census => format!("; {} waiting for a CPU", duration(times.runnable as f64)),
            _ => String::new(),
        };
        writeln!(out, "  {label:<5} {} {what}, {amount}{change}{more}  {path}", thousands(total.samples))?;
    }
    writeln!(out)
}

fn table(out: &mut Remarks<'_>, diff: &Diff, event: &DiffEvent, layout: &DiffLayout) -> io::Result<()> {
    let all = selected_rows(event, layout);
    let shown = &all[..all.len().min(layout.rows)];
    let keys: Vec<(SortKey, String)> =
        event.keys.iter().map(|key| (*key, key.heading().to_owned())).collect();
    let rows = |is_tight| DiffTable {
        titles: titles(diff, event, layout, is_tight),
        keys: keys.clone(),
        rows: shown
            .iter()
            .map(|line| DiffTableRow {
                is_noise: line.changes.iter().all(is_noise),
                numbers: numbers(diff, event, line, layout, is_tight),
                words: line.cells.iter().map(|cell| word(diff, cell, layout)).collect(),
                cells: &line.cells,
            })
            .collect(),
    };
    let mut table = rows(false);
    let mut fitted = table.fitted(layout.width, true);
    if fitted.is_tight {
        table = rows(true);
        fitted = table.fitted(layout.width, true);
    }
    table.write(out, diff, layout, &fitted.widths)?;
    if shown.len() < all.len() {
        let left = thousands((all.len() - shown.len()) as u64);
        writeln!(out, "  … and {left} more rows (--limit 0 shows all)")?;
    }
    write_findings(out, diff, event, "rows")
}

/// A table whose rows consist of numbers followed by sort keys.
struct DiffTable<'a> {
    /// Title and shape of each numeric column.
    titles: Vec<(String, ColumnShape)>,
    keys: Vec<(SortKey, String)>,
    rows: Vec<DiffTableRow<'a>>,
}

struct DiffTableRow<'a> {
    is_noise: bool,
    numbers: Vec<String>,
    /// The text of each cell.
    words: Vec<String>,
    cells: &'a [RowCell],
}

impl DiffTable<'_> {
    /// Returns the numeric columns, as wide as their contents.
    fn numeric_columns(&self) -> Vec<ColumnShape> {
        let (titles, shapes): (Vec<_>, Vec<_>) = self.titles.iter().cloned().unzip();
        table::fitted(&shapes, self.rows.iter().map(|row| row.numbers.as_slice()).chain([titles.as_slice()]))
    }

    /// Returns widths with which the key columns fit next to the numbers in a line of `most` columns. If
    /// `leaves_out` is set, keys whose values are the same in all rows may be omitted.
    fn fitted(&self, most: Option<usize>, leaves_out: bool) -> FittedWidths {
        let widest = |at: usize| {
            let words = self.rows.iter().map(|row| width(&row.words[at]));
            words.chain([width(&self.keys[at].1)]).max().unwrap_or(0)
        };
        let wished: Vec<usize> = (0..self.keys.len()).map(widest).collect();
        let Some(most) = most else {
            return FittedWidths {
                widths: wished.iter().map(|wish| (*wish).min(WIDEST)).collect(),
                is_tight: false,
            };
        };
        let numbers = table::width(&self.numeric_columns());
        let keys: Vec<SortKey> = self.keys.iter().map(|(key, _)| *key).collect();
        FittedWidths::new(&wished, &keys, (most, numbers), |at| {
            leaves_out && self.rows.is_sorted_by(|a, b| a.words[at] == b.words[at])
        })
    }

    fn write(
        &self,
        out: &mut Remarks<'_>,
        diff: &Diff,
        layout: &DiffLayout,
        widths: &[usize],
    ) -> io::Result<()> {
        if let Some(row) = self.rows.first() {
            let columns = self.keys.iter().zip(&row.words).zip(widths).filter(|(_, width)| **width == 0);
            let omitted = columns.map(|(((_, heading), words), _)| (heading.as_str(), words.trim_start()));
            omitted_columns(omitted).iter().try_for_each(|line| writeln!(out, "{line}"))?;
        }
        let lines = self.lines(diff, layout, widths);
        if let [heading, rows @ ..] = &lines[..] {
            match heading.strip_prefix("  ").filter(|_| layout.width.is_none()) {
                Some(heading) => writeln!(out, "{heading}\n")?,
                None => writeln!(out.out, "{heading}")?,
            }
            rows.iter().try_for_each(|row| writeln!(out.out, "{row}"))?;
        }
        Ok(())
    }

    /// Returns the headings and the rows.
    fn lines(&self, diff: &Diff, layout: &DiffLayout, widths: &[usize]) -> Vec<String> {
        let paint = layout.paint;
        let shown: Vec<usize> = (0..self.keys.len()).filter(|at| widths[*at] > 0).collect();
        let mut shapes = self.numeric_columns();
        shapes.extend(shown.iter().map(|at| left(2, widths[*at])));
        let titles = self.titles.iter().map(|(title, _)| title.clone());
        let titles = titles.chain(shown.iter().map(|at| cut(&self.keys[*at].1, widths[*at])));
        let heading = table::line(&shapes, titles.map(|title| paint.words(TextRole::Heading, &title)));
        let rows = self.rows.iter().map(|row| {
            let role = if row.is_noise { TextRole::Quiet } else { TextRole::Plain };
            let numbers = row.numbers.iter().map(|text| paint.words(role, text));
            let keys = shown.iter().map(|at| {
                let words = self.words(diff, row, *at, layout.width.and(Some(widths[*at])));
                if row.is_noise { words.quiet() } else { words }.painted(paint)
            });
            table::line(&shapes, numbers.chain(keys))
        });
        [heading].into_iter().chain(rows).map(|line| line.trim_end().to_owned()).collect()
    }

    /// Returns one key of a row, truncated to `columns` if set.
    fn words(&self, diff: &Diff, row: &DiffTableRow<'_>, at: usize, columns: Option<usize>) -> StyledWords {
        let is_last = at + 1 == self.keys.len();
        match (&row.cells[at], columns) {
            (RowCell::Symbol(letter, id), Some(columns)) => {
                let dso = self.keys.iter().position(|(key, _)| *key == SortKey::Dso);
                let module = dso.map_or("", |dso| row.words[dso].as_str());
                let kind = CodeKind::of_row(*letter, module);
                StyledWords::of_function(diff.texts.get(*id), (kind, false), "  ", columns)
            }
            (_, Some(columns)) => StyledWords::new(TextRole::Plain, cut(&row.words[at], columns)),
            (_, None) if is_last => StyledWords::new(TextRole::Plain, row.words[at].as_str()),
            (_, None) => StyledWords::new(TextRole::Plain, cut(&row.words[at], WIDEST)),
        }
    }
}

/// Writes the number of rows that differ by more than noise, or why waits are not judged.
fn write_findings(out: &mut Remarks<'_>, diff: &Diff, event: &DiffEvent, what: &str) -> io::Result<()> {
    if event.source() == CostSource::Census {
        return writeln!(
            out,
            "\n  Waits are measured, not sampled. They also depend on other load: only several recordings of \
             each side (--vs) show whether the program changed them."
        );
    }
    let others = diff.files.len() - 1;
    for number in 0..others {
        let verdict = |line: &DiffRow| line.changes[number].map(|change| change.verdict);
        let count = |wanted: fn(ChangeVerdict) -> bool| {
            thousands(event.lines.iter().filter(|line| verdict(line).is_some_and(wanted)).count() as u64)
        };
        let mark = if others > 1 { format!("[{}]: ", number + 1) } else { String::new() };
        let gap = if number == 0 { "\n" } else { "" };
        let few = match &count(|verdict| verdict == ChangeVerdict::Rare)[..] {
            "0" => String::new(),
            few => format!(", {few} have too few samples (below {LEAST_SAMPLES})"),
        };
        let (more, noise) = (count(ChangeVerdict::is_significant), count(|of| of == ChangeVerdict::Noise));
        writeln!(
            out,
            "{gap}  {mark}{more} {what} differ by more than sampling noise, {noise} are within noise{few}."
        )?;
    }
    Ok(())
}

fn word(diff: &Diff, cell: &RowCell, layout: &DiffLayout) -> String {
    words(&diff.texts, cell, CellFormat::read(layout.width.is_some()))
}

/// Whether shares are shown. A narrow layout omits shares that can be computed from the base and the
/// difference.
fn has_shares(diff: &Diff, is_tight: bool) -> bool {
    !is_tight || !matches!(diff.compute, Compute::Delta | Compute::DeltaAbs | Compute::Time)
}

/// Returns the title and shape of each numeric column.
fn titles(diff: &Diff, event: &DiffEvent, layout: &DiffLayout, is_tight: bool) -> Vec<(String, ColumnShape)> {
    let mut titles: Vec<(String, ColumnShape)> = vec![("Base".into(), right(2, 0))];
    let others = diff.files.len() - 1;
    for number in 1..=others {
        let mark = if others > 1 { format!("[{number}]") } else { String::new() };
        if has_shares(diff, is_tight) {
            let what = if diff.compute == Compute::Time { "time" } else { "share" };
            titles.push((if others > 1 { format!("{mark} {what}") } else { "New".into() }, right(2, 0)));
        }
        titles.push((format!("{}{mark}", heading(diff.compute)), right(2, 0)));
        if event.source() == CostSource::Sampled {
            titles.push(("Verdict".into(), left(2, 0)));
        }
        if layout.period {
            titles.push((format!("Period{mark}"), right(2, 0)));
        }
        if layout.formula {
            titles.push((format!("Formula{mark}"), left(2, 0)));
        }
    }
    if layout.period {
        titles.insert(1, ("Base period".into(), right(2, 0)));
    }
    titles
}

/// Returns the numeric columns of a row.
fn numbers(
    diff: &Diff,
    event: &DiffEvent,
    line: &DiffRow,
    layout: &DiffLayout,
    is_tight: bool,
) -> Vec<String> {
    let share = |file: usize| part(diff, event, &line.values, file);
    let mut cells = vec![share(0)];
    if layout.period {
        cells.push(thousands(line.values[0].period));
    }
    for (number, change) in line.changes.iter().enumerate() {
        let file = number + 1;
        if has_shares(diff, is_tight) {
            cells.push(share(file));
        }
        match change {
            None if event.source() == CostSource::Census => cells.push("not recorded".to_owned()),
            None => cells.extend(["-".to_owned(), "not recorded".to_owned()]),
            Some(change) => {
                let error = error(diff.compute, change);
                cells.push(format!("{} {error}", value(diff.compute, change)).trim_end().to_owned());
                cells.extend(match change.verdict {
                    ChangeVerdict::NotJudged => None,
                    ChangeVerdict::Noise if is_tight => Some("noise".to_owned()),
                    ChangeVerdict::Rare if is_tight => Some("few".to_owned()),
                    verdict => Some(verdict.word().to_owned()),
                });
            }
        }
        if layout.period {
            cells.push(thousands(line.values[file].period));
        }
        if layout.formula {
            cells.push(formula(diff.compute, event, line, file));
        }
    }
    cells
}

fn trust(out: &mut Remarks<'_>, diff: &Diff) -> io::Result<()> {
    let said = match diff.compute {
        Compute::Delta | Compute::DeltaAbs => {
            "Shares are relative to each recording's total, so recordings of different lengths are \
             comparable; delta is in percentage points."
        }
        Compute::Time => {
            "Times are compared directly. To compare recordings of different lengths, compare shares (-c \
             delta-abs)."
        }
        Compute::Ratio => {
            "Ratio is the new period divided by the old one: recordings of different lengths are not \
             comparable."
        }
        Compute::Weighted(..) => {
            "Weighted diff compares periods: recordings of different lengths are not comparable."
        }
    };
    writeln!(out, "{said}")?;
    writeln!(
        out,
        "± is the 95% confidence interval of the sampling error.\nWithin noise: sampling alone explains the difference (p is \
         {LEVEL} or more, corrected for the number of rows); this excludes variation between runs, so compare \
         several recordings."
    )?;
    for file in &diff.files {
        writeln!(out, "Trust: {}: {}.", clean(&file.path), clean(&file.trust))?;
    }
    for note in &diff.notes {
        writeln!(out, "{}.", clean(note))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::ReportFormat;
    use pmc_analysis::profile::diff::tree::{DiffNode, DiffTree};
    use pmc_analysis::profile::diff::{DiffChange, DiffFile};
    use pmc_analysis::profile::sampled::SampleValue;
    use pmc_analysis::profile::statistics::proportions::ShareDifference;
    use pmc_sys::abi::CpuMode;

    fn change(percent: f64, verdict: ChangeVerdict) -> Option<DiffChange> {
        let (value, low, high) = (percent / 100.0, percent / 100.0 - 0.01, percent / 100.0 + 0.01);
        let share = ShareDifference { value, low, high, p: 0.0 };
        Some(DiffChange { share, value: Some(value), interval: (low, high), adjusted: 0.0, verdict })
    }

    const NAMES: [&str; 2] = [
        "std::_Rb_tree<std::string, int>::_M_emplace_hint_unique<std::piecewise_construct_t const&>(int)",
        "shop::warehouse::shelves::Basket<shop::warehouse::Article>::price_of_all_of_them(int) const",
    ];

    #[test]
    fn times_are_compared_unscaled() {
        let mut diff = compared(2, &["prog"]);
        diff.compute = Compute::Time;
        for line in &mut diff.events[0].lines {
            line.values = vec![SampleValue { samples: 300, period: 30_000_000, ..SampleValue::default() }; 2];
            let share = line.changes[0].expect("a change").share;
            let (value, interval) = (Some(1_500_000.0), (1_000_000.0, 2_000_000.0));
            line.changes[0] =
                Some(DiffChange { share, value, interval, adjusted: 0.0, verdict: ChangeVerdict::Noise });
        }
        let text = written(&diff, None, None);
        assert!(text.contains("30.0 ms  30.0 ms  +1.50 ms ±500 µs  within noise"), "{text}");
        assert!(
            text.contains("Times are compared directly") && !text.contains("recording's total"),
            "{text}"
        );
    }

    /// Builds a comparison of two or three recordings. It has 60 rows, which alternate between two long
    /// names. Its call tree is one chain of 60 functions, in which every six consecutive functions have equal
    /// numbers.
    fn compared(files: usize, programs: &[&str]) -> Diff {
        let mut diff = Diff::default();
        let value = |samples: u64| SampleValue { samples, period: samples, ..SampleValue::default() };
        for file in 0..files {
            let path = format!("/some/folder/{file}.data");
            diff.files.push(DiffFile { path, samples: 1000, ..DiffFile::default() });
        }
        let mut tree = DiffTree { roots: vec![0], ..DiffTree::default() };
        let keys = vec![SortKey::Dso, SortKey::Symbol];
        let mut event = DiffEvent { name: "cycles".repeat(9), keys, ..DiffEvent::default() };
        event.totals = vec![Some(value(1000)); files];
        for at in 0..60 {
            let (dso, symbol) = (programs[at % programs.len()], NAMES[at % 2]);
            let (dso, symbol) = (diff.texts.add(dso), diff.texts.add(symbol));
            let verdict = if at < 30 { ChangeVerdict::More } else { ChangeVerdict::Noise };
            event.lines.push(DiffRow {
                cells: [RowCell::Text(dso), RowCell::Symbol('.', symbol)].into(),
                values: vec![value(300); files],
                changes: vec![change(30.0 - at as f64, verdict); files - 1],
            });
            tree.nodes.push(DiffNode {
                symbol,
                dso,
                level: CpuMode::User,
                inlined: at % 2 == 1,
                parent: at.checked_sub(1).map(|above| above as u32),
                depth: at as u32,
                values: vec![value(900); files],
                changes: vec![change(70.0 - (at / 6) as f64, ChangeVerdict::More); files - 1],
                children: if at < 59 { vec![at as u32 + 1] } else { Vec::new() },
            });
        }
        event.tree = Some(tree);
        diff.events.push(event);
        diff
    }

    fn written(diff: &Diff, width: Option<usize>, tree_lines: Option<usize>) -> String {
        let layout = DiffLayout {
            form: ReportFormat::Text,
            rows: 40,
            limit: 0.0,
            period: false,
            formula: false,
            baseline_only: false,
            width,
            tree_lines,
            paint: pmc_text::terminal::Paint::default(),
        };
        let mut out = Vec::new();
        write(&mut out, diff, &layout).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn lines_fit_the_terminal() {
        let programs = ["a.out", "libfirst.so.1", "libsecond.so.22"];
        for (files, columns) in [(2, 60), (2, 80), (3, 80), (2, 120), (3, 200)] {
            let text = written(&compared(files, &programs), Some(columns), None);
            let wide: Vec<&str> = text.lines().filter(|line| width(line) > columns).collect();
            assert!(wide.is_empty(), "{files} {columns}: {wide:#?}");
            // At least the beginning of the function's own name must be readable.
            let count = |name: &str| text.matches(name).count();
            let names = [count("_M_emplace_"), count("price_of_")];
            assert!(names.iter().all(|names| *names >= 20) && !text.contains("[.]"), "{columns}: {text}");
            let is_short = text.contains("  noise ");
            assert_eq!(is_short, !text.contains("  within noise "), "{columns}: {text}");
            assert_eq!(is_short, columns <= 80, "{files} {columns}: {text}");
            assert_eq!(text.contains(" New ") || text.contains(" share "), !is_short, "{columns}: {text}");
        }
        // The function's name gets half of an 80-column line, and the names of programs share the other half.
        let text = written(&compared(2, &programs), Some(80), None);
        assert!(text.contains("  libfirs…    …Basket<…>::price_of_all_of_them\n"), "{text}");
    }

    #[test]
    fn values_common_to_all_rows_are_printed_once() {
        let diff = compared(2, &["a program"]);
        let text = written(&diff, Some(80), None);
        assert!(text.contains("  Same in all rows: Shared Object = a program\n"), "{text}");
        assert_eq!(text.matches("a program").count(), 1, "{text}");
        // Output for programs must have full names in every row.
        let text = written(&diff, None, None);
        assert!(text.matches("a program").count() == 40 && !text.contains("in all rows"), "{text}");
        assert!(text.contains(&format!("[.] {}", NAMES[0])) && text.contains(NAMES[1]), "{text}");
    }

    #[test]
    fn tree_is_collapsed_and_bounded() {
        let diff = compared(2, &["a.out"]);
        let branches = |text: &str| {
            let tree = text.split("Call tree").nth(1).unwrap().split("\n\n").next().unwrap().to_owned();
            tree.lines().filter(|line| line.contains("90.0%")).count()
        };
        // Six functions with equal numbers form one branch.
        let text = written(&diff, Some(120), None);
        assert_eq!(branches(&text), 10, "{text}");
        assert!(text.contains("› ↳ shop::warehouse::shelves::Basket<…>::price_of_all_of_them"), "{text}");
        let text = written(&diff, Some(120), Some(4));
        assert_eq!(branches(&text), 4, "{text}");
        assert!(
            text.contains("  … and 36 branches that differ less (--percent-limit 0 shows all)"),
            "{text}"
        );
        // In a pipe, all lines except rows are comments.
        let text = written(&diff, None, None);
        assert_eq!(branches(&text), 60);
        assert!(text.contains("\n#\n# Call tree, branches that differ"), "{text}");
        let is_row = |line: &str| line.contains('%') && line.contains('±');
        let bare = text.lines().filter(|line| !line.starts_with('#') && !is_row(line));
        assert_eq!(bare.collect::<Vec<_>>(), [""; 0], "{text}");
    }
}
