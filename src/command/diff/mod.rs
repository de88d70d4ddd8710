//! `pmc diff`: reads recordings one after the other, has them compared event by event, and hands the result to a view.

mod plan;
mod side;

use std::io::{BufWriter, Write, stdout};

use crate::cli::diff::Diff;
use crate::error::{Error, Exit, Result, say};
use crate::profile::diff::{self, Comparison, Event};
use crate::profile::sampled::{self, Cell, SortKey, StringTable};
use crate::terminal::Stream;
use crate::text::clean;
use crate::view;
use plan::Plan;
use side::Side;

/// Below this part of the base in rows that another recording has too, names of programs are suspected to differ.
const MATCHED: f64 = 0.5;

/// Runs it.
///
/// # Errors
/// When something typed means nothing, a recording cannot be read, no event is in two of them, or the output cannot be written.
pub(super) fn run(typed: &Diff) -> Result<Exit> {
    say::be_quiet(typed.quiet);
    let mut plan = Plan::new(typed)?;
    plan.layout.colour = Stream::Output.has_colour();
    let mut texts = StringTable::default();
    let sides: Vec<Side> = plan
        .files
        .iter()
        .map(|path| side::read(path, typed, &plan, &mut texts))
        .collect::<Result<_>>()
        .map_err(|error| match typed.files.len() {
            0 | 1 => error.try_this("name both recordings: pmc diff OLD NEW"),
            _ => error,
        })?;
    let comparison = compare(sides, &plan, typed, texts)?;
    let mut out = BufWriter::with_capacity(1 << 16, stdout().lock());
    view::diff::write(&mut out, &comparison, &plan.layout)
        .and_then(|()| out.flush())
        .map_err(|error| Error::output("the comparison", error))?;
    Ok(Exit::Done)
}

fn compare(mut sides: Vec<Side>, plan: &Plan, typed: &Diff, texts: StringTable) -> Result<Comparison> {
    let mut notes: Vec<String> = sides.iter_mut().flat_map(|side| std::mem::take(&mut side.notes)).collect();
    let files: Vec<diff::File> = sides.iter().map(|side| side.file.clone()).collect();
    let in_others =
        |name: &str| sides[1..].iter().any(|side| side.events.iter().any(|event| event.name == name));
    let mut names: Vec<String> = Vec::new();
    for event in sides[0].events.iter().filter(|event| in_others(&event.name)) {
        if !names.contains(&event.name) {
            names.push(event.name.clone());
        }
    }
    if names.is_empty() {
        let list = |side: &Side| {
            let names: Vec<_> = side.events.iter().map(|event| clean(&event.name)).collect();
            names.join(", ")
        };
        let all: Vec<String> =
            sides.iter().map(|side| format!("{}: {}", clean(&side.file.path), list(side))).collect();
        return Err(Error::new("no event of the base is in another recording")
            .detail(all.join("\n"))
            .why("events are matched by name")
            .try_this("record both with the same -e"));
    }
    for side in &sides {
        for event in
            side.events.iter().filter(|event| !names.contains(&event.name) && event.total.samples > 0)
        {
            notes.push(format!("{}: {} has no counterpart and is left out", side.file.path, event.name));
        }
    }
    if typed.tree && sides.iter().any(|side| side.events.iter().all(|event| event.tree.is_none())) {
        notes.push("no tree: not all recordings have call chains (record with -g)".to_owned());
    }
    let mut events = Vec::new();
    for name in names {
        // The first of that name: a recording with two of one name cannot say which is which.
        let mut take = |side: &mut Side| {
            let at = side.events.iter().position(|event| event.name == name)?;
            Some(side.events.remove(at))
        };
        let taken: Vec<Option<sampled::Event>> = sides.iter_mut().map(&mut take).collect();
        let (mut rows, mut trees) = (Vec::new(), Vec::new());
        for event in taken {
            let (row, tree) = event.map_or((None, None), |of| (Some((of.total, of.rows)), of.tree));
            rows.push(row);
            trees.push(tree);
        }
        let mut event = diff::compare(&name, &rows, plan.compute, typed.order);
        if trees.iter().filter(|tree| tree.is_some()).count() > 1 && trees[0].is_some() {
            event.tree = Some(diff::tree::overlay(&trees, &event.totals, plan.compute));
        }
        notes.extend(suspicion(&event, plan, &texts));
        events.push(event);
    }
    Ok(Comparison { texts, keys: plan.keys.clone(), files, compute: plan.compute, events, notes })
}

/// What stands to reason when hardly anything matches: the same functions in programs of other names.
fn suspicion(event: &Event, plan: &Plan, texts: &StringTable) -> Option<String> {
    let dso = plan.keys.iter().position(|key| *key == SortKey::Dso)?;
    let symbol = plan.keys.iter().position(|key| *key == SortKey::Symbol)?;
    let total = event.totals[0]?.period as f64;
    let matched = |line: &&diff::Line| line.values[1..].iter().any(|value| value.samples > 0);
    let sum: f64 = event.lines.iter().filter(matched).map(|line| line.values[0].period as f64).sum();
    if total == 0.0 || sum / total >= MATCHED {
        return None;
    }
    let elsewhere = |line: &diff::Line| {
        event.lines.iter().any(|other| {
            other.cells[symbol] == line.cells[symbol]
                && other.cells[dso] != line.cells[dso]
                && other.values[1..].iter().any(|value| value.samples > 0)
        })
    };
    let costly = event.lines.iter().filter(|line| line.values[0].period as f64 > total / 100.0);
    let Some(Cell::Symbol(_, name)) =
        costly.filter(|line| !matched(line)).find(|line| elsewhere(line)).map(|line| line.cells[symbol])
    else {
        return None;
    };
    Some(format!(
        "the same functions are in programs of different names ({} is one): -s sym compares them by name",
        texts.get(name)
    ))
}
