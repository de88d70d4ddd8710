//! A comparison for a person.
//!
//! ```text
//! cpu-clock
//!   base  598 samples  149.5 ms  perf.data.old
//!   [1]   701 samples  175.2 ms  perf.data  (+17.2%)
//!
//!      Base    Delta             Shared Object  Symbol
//!     46.3%    -15.1 ±5.2  less  shares         [.] fifty
//! ```

use std::io::{self, Write};

use super::{Layout, error, formula, heading, is_noise, value, wanted};
use crate::profile::diff::{Change, Comparison, Compute, Event, Line, tree::Node};
use crate::profile::sampled::{Cell, Value};
use crate::text::{DisplayName, clean, width};
use crate::units::{duration, thousands};
use crate::view::report::{Spelling, words};

const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";
/// Text columns are cut at this width, except the last.
const WIDEST: usize = 40;
/// Deeper branches of the tree would stand outside of every screen.
const DEEPEST: u32 = 60;

pub(super) fn write(out: &mut dyn Write, comparison: &Comparison, layout: &Layout) -> io::Result<()> {
    for (number, event) in comparison.events.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        head(out, comparison, event)?;
        match comparison.by_stream {
            true => streams(out, comparison, event, layout)?,
            false => table(out, comparison, event, layout)?,
        }
        tree(out, comparison, event, layout)?;
    }
    writeln!(out)?;
    trust(out, comparison)
}

fn amount(event: &Event, value: &Value) -> String {
    if event.name.contains("cpu-clock") || event.name.contains("task-clock") {
        duration(value.period as f64)
    } else {
        format!("about {}", thousands(value.period))
    }
}

fn head(out: &mut dyn Write, comparison: &Comparison, event: &Event) -> io::Result<()> {
    writeln!(out, "{}", clean(&event.name))?;
    let base = event.totals.first().and_then(Option::as_ref).map_or(0, |base| base.period);
    for (number, (file, total)) in comparison.files.iter().zip(&event.totals).enumerate() {
        let label = if number == 0 { "base".to_owned() } else { format!("[{number}]") };
        let path = clean(&file.path);
        match total {
            None => writeln!(out, "  {label:<5} not recorded  {path}")?,
            Some(total) => {
                let change =
                    (number > 0 && base > 0).then(|| (total.period as f64 / base as f64 - 1.0) * 100.0);
                let change = change.map(|change| format!("  ({change:+.1}%)")).unwrap_or_default();
                let samples = thousands(total.samples);
                writeln!(out, "  {label:<5} {samples} samples, {}{change}  {path}", amount(event, total))?;
            }
        }
    }
    writeln!(out)
}

fn table(out: &mut dyn Write, comparison: &Comparison, event: &Event, layout: &Layout) -> io::Result<()> {
    let all = wanted(event, layout);
    let shown = &all[..all.len().min(layout.rows)];
    let mut titles = titles(comparison, layout);
    titles.extend(comparison.keys.iter().map(|key| (key.heading().to_owned(), false)));
    let mut lines: Vec<(bool, Vec<String>)> =
        vec![(false, titles.iter().map(|(title, _)| title.clone()).collect())];
    lines.extend(shown.iter().map(|line| {
        let mut cells = cells(comparison, event, line, layout);
        cells.extend(line.cells.iter().map(|cell| word(comparison, cell, layout)));
        (line.changes.iter().all(is_noise), cells)
    }));
    let keys = titles.len() - comparison.keys.len();
    for line in aligned(&titles, &lines, keys, layout) {
        writeln!(out, "{line}")?;
    }
    if shown.len() < all.len() {
        let left = thousands((all.len() - shown.len()) as u64);
        writeln!(out, "  … and {left} more rows (--max-rows 0 shows all)")?;
    }
    claims(out, comparison, event, "rows")
}

/// How many lines differ by more than noise.
fn claims(out: &mut dyn Write, comparison: &Comparison, event: &Event, what: &str) -> io::Result<()> {
    let others = comparison.files.len() - 1;
    for number in 0..others {
        let claimed = event.lines.iter().filter(|line| !is_noise(&line.changes[number])).count();
        let mark = if others > 1 { format!("[{}]: ", number + 1) } else { String::new() };
        let (more, rest) = (thousands(claimed as u64), thousands((event.lines.len() - claimed) as u64));
        writeln!(
            out,
            "\n  {mark}{more} {what} differ by more than sampling noise, {rest} are within noise."
        )?;
    }
    Ok(())
}

/// The hottest call chains: those that recordings have in common, then those that they have not.
fn streams(out: &mut dyn Write, comparison: &Comparison, event: &Event, layout: &Layout) -> io::Result<()> {
    let titles = titles(comparison, layout);
    let numbers = |line: &&Line| (line.changes.iter().all(is_noise), cells(comparison, event, line, layout));
    let all = wanted(event, layout);
    let mut lines = vec![(false, titles.iter().map(|(title, _)| title.clone()).collect())];
    lines.extend(all.iter().map(numbers));
    let mut texts = aligned(&titles, &lines, titles.len(), layout).into_iter();
    let heading = texts.next().unwrap_or_default();
    let with_numbers: Vec<(&Line, String)> = all.into_iter().zip(texts).collect();
    let section = |line: &Line| match line.values.split_first() {
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
        writeln!(out, "{}[ {title} ]", if number == 0 { "" } else { "\n" })?;
        for (at, (line, text)) in with_numbers.iter().filter(|(line, _)| section(line) == number).enumerate()
        {
            writeln!(out, "\n{what} {}:\n{heading}\n{text}", at + 1)?;
            frames(out, comparison, line, layout)?;
        }
    }
    claims(out, comparison, event, "streams")
}

/// A call chain, a frame a line, innermost first.
fn frames(out: &mut dyn Write, comparison: &Comparison, line: &Line, layout: &Layout) -> io::Result<()> {
    let cycles = |value: &Value| value.weights()[0].checked_div(value.samples);
    if line.values.iter().any(|value| value.weights()[0] > 0) {
        let all = line.values.iter().map(|value| cycles(value).map_or("-".to_owned(), thousands));
        writeln!(out, "    cycles: {}", all.collect::<Vec<_>>().join(", "))?;
    }
    let frame = |cells: &[Cell]| cells.iter().map(|cell| word(comparison, cell, layout)).collect();
    let all: Vec<(bool, Vec<String>)> =
        line.frames(&comparison.keys).map(|cells| (false, frame(cells))).collect();
    let titles: Vec<_> = comparison.keys.iter().map(|_| (String::new(), false)).collect();
    for text in aligned(&titles, &all, 0, layout) {
        writeln!(out, "    {text}")?;
    }
    Ok(())
}

fn word(comparison: &Comparison, cell: &Cell, layout: &Layout) -> String {
    words(&comparison.texts, cell, Spelling::read(layout.reads_names))
}

/// What stands over the numbers, and whether it stands to the right.
fn titles(comparison: &Comparison, layout: &Layout) -> Vec<(String, bool)> {
    let mut titles: Vec<(String, bool)> = vec![("Base".into(), true)];
    let others = comparison.files.len() - 1;
    for number in 1..=others {
        let mark = if others > 1 { format!("[{number}]") } else { String::new() };
        titles.push((if others > 1 { format!("{mark} share") } else { "New".into() }, true));
        titles.push((format!("{}{mark}", heading(comparison.compute)), true));
        titles.push(("Verdict".into(), false));
        if layout.period {
            titles.push((format!("Period{mark}"), true));
        }
        if layout.formula {
            titles.push((format!("Formula{mark}"), false));
        }
    }
    if layout.period {
        titles.insert(1, ("Base period".into(), true));
    }
    titles
}

/// Lines of cells, whether each is noise, in columns; those from `keys` on are cut where they are too wide.
fn aligned(
    titles: &[(String, bool)],
    lines: &[(bool, Vec<String>)],
    keys: usize,
    layout: &Layout,
) -> Vec<String> {
    let widths: Vec<usize> = (0..titles.len())
        .map(|at| {
            let widest = lines.iter().map(|(_, line)| width(&line[at])).max().unwrap_or(0);
            if at >= keys { widest.min(WIDEST) } else { widest }
        })
        .collect();
    let shown = |(noise, line): &(bool, Vec<String>)| {
        let (dim, plain) = if *noise && layout.colour { (DIM, PLAIN) } else { ("", "") };
        let mut text = String::new();
        for (at, cell) in line.iter().enumerate() {
            let is_last = at + 1 == line.len();
            let cell = if is_last { cell.clone() } else { crate::text::cut(cell, widths[at]) };
            let pad = " ".repeat(widths[at].saturating_sub(width(&cell)));
            text.push_str("  ");
            text.push_str(&if titles[at].1 { format!("{pad}{cell}") } else { format!("{cell}{pad}") });
        }
        format!("{dim}{}{plain}", text.trim_end())
    };
    lines.iter().map(shown).collect()
}

/// The numbers of a line.
fn cells(comparison: &Comparison, event: &Event, line: &Line, layout: &Layout) -> Vec<String> {
    let share = |file: usize| match line.values[file].samples {
        0 => "-".to_owned(),
        _ => format!("{:.1}%", event.part(file, &line.values[file]).share * 100.0),
    };
    let mut cells = vec![share(0)];
    if layout.period {
        cells.push(thousands(line.values[0].period));
    }
    for (number, change) in line.changes.iter().enumerate() {
        let file = number + 1;
        cells.push(share(file));
        match change {
            None => cells.extend(["-".to_owned(), "not recorded".to_owned()]),
            Some(change) => {
                let error = error(comparison.compute, change);
                cells.push(format!("{} {error}", value(comparison.compute, change)).trim_end().to_owned());
                cells.push(change.verdict.word().to_owned());
            }
        }
        if layout.period {
            cells.push(thousands(line.values[file].period));
        }
        if layout.formula {
            cells.push(formula(comparison.compute, event, line, file));
        }
    }
    cells
}

/// The branches that differ by more than noise, or lead to one that does.
fn tree(out: &mut dyn Write, comparison: &Comparison, event: &Event, layout: &Layout) -> io::Result<()> {
    let Some(tree) = &event.tree else { return Ok(()) };
    let mut leads = vec![false; tree.nodes.len()];
    for (at, node) in tree.nodes.iter().enumerate().rev() {
        leads[at] |= node.changes.iter().any(|change| !is_noise(change)) && is_large(event, node, layout);
        if let (true, Some(parent)) = (leads[at], node.parent) {
            leads[parent as usize] = true;
        }
    }
    writeln!(out, "\nCall tree, branches that differ by more than noise")?;
    let mut open: Vec<u32> = tree.roots.iter().rev().copied().filter(|root| leads[*root as usize]).collect();
    if open.is_empty() {
        return writeln!(out, "  none");
    }
    let others = comparison.files.len() - 1;
    let mut title = format!("  {:>6}", "Base");
    for number in 1..=others {
        title.push_str(&format!("  {:>6}  {:>12}", format!("[{number}]"), "Delta"));
    }
    writeln!(out, "{title}")?;
    let mut hidden = 0usize;
    while let Some(number) = open.pop() {
        let node = &tree.nodes[number as usize];
        if node.depth > DEEPEST {
            hidden += 1;
            continue;
        }
        let mut text = format!("  {:>6}", share(event, node, 0));
        for (number, change) in node.changes.iter().enumerate() {
            text.push_str(&format!(
                "  {:>6}  {:>12}",
                share(event, node, number + 1),
                delta(change.as_ref())
            ));
        }
        let noise = node.changes.iter().all(is_noise);
        let (dim, plain) = if noise && layout.colour { (DIM, PLAIN) } else { ("", "") };
        let inset = "  ".repeat(node.depth as usize);
        let name = comparison.texts.get(node.symbol);
        let name = match layout.reads_names {
            true => DisplayName::new(name).text().into(),
            false => clean(name),
        };
        let word = if noise { "  (within noise)" } else { "" };
        writeln!(out, "{dim}{text}  {inset}{name}{word}{plain}")?;
        open.extend(node.children.iter().rev().copied().filter(|child| leads[*child as usize]));
    }
    if hidden > 0 {
        writeln!(out, "  … and {} deeper branches (--json has them)", thousands(hidden as u64))?;
    }
    Ok(())
}

fn is_large(event: &Event, node: &Node, layout: &Layout) -> bool {
    let shares = node.values.iter().enumerate().map(|(file, value)| event.part(file, value).share);
    shares.fold(0.0, f64::max) >= layout.limit
}

fn share(event: &Event, node: &Node, file: usize) -> String {
    match node.values[file].samples {
        0 => "-".to_owned(),
        _ => format!("{:.1}%", event.part(file, &node.values[file]).share * 100.0),
    }
}

/// In the tree it is always the shares that are compared.
fn delta(change: Option<&Change>) -> String {
    change.map_or_else(
        || "-".to_owned(),
        |change| format!("{:+.1} ±{:.1}", change.share.value * 100.0, change.share.error() * 100.0),
    )
}

fn trust(out: &mut dyn Write, comparison: &Comparison) -> io::Result<()> {
    let said = match comparison.compute {
        Compute::Delta | Compute::DeltaAbs => {
            "Shares are parts of each recording's own total, so recordings of different length compare; delta is in points."
        }
        Compute::Ratio => "Ratio is new period by old period: recordings of different length do not compare.",
        Compute::Weighted(..) => {
            "Weighted diff is of periods: recordings of different length do not compare."
        }
    };
    writeln!(out, "{said}")?;
    writeln!(
        out,
        "± is the 95% confidence interval of sampling. Within noise: sampling alone explains the difference (corrected for the \
         number of rows);\nwhat changes from run to run is not in it: compare several recordings for that."
    )?;
    for file in comparison.files.iter().filter(|file| file.lost > 0) {
        writeln!(out, "{}: {} samples or records were lost.", clean(&file.path), thousands(file.lost))?;
    }
    for note in &comparison.notes {
        writeln!(out, "{}.", clean(note))?;
    }
    Ok(())
}
