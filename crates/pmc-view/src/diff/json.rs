//! The JSON document: recordings, events, rows with changes, the tree. docs/diff.md explains each field.

use std::io::{self, Write};

use serde_json::{Map, Value as Json, json};

use super::{DiffLayout, selected_rows};
use pmc_analysis::profile::diff::tree::DiffTree;
use pmc_analysis::profile::diff::{
    Compute, CostSource, Diff, DiffChange, DiffEvent, DiffRow, LEVEL, ThreadTimes, VERSION,
};
use pmc_analysis::profile::sampled::{RowCell, SampleValue, SortKey};
use pmc_text::json_document::{list_up_to, list_with, percent, tree_up_to};
use pmc_text::text::as_json;

pub(super) fn write(out: &mut dyn Write, comparison: &Diff, layout: &DiffLayout) -> io::Result<()> {
    let files: Json = comparison
        .files
        .iter()
        .map(|file| json!({"path": file.path, "samples": file.samples, "lost": file.lost, "trust": file.trust}))
        .collect();
    let compute = match comparison.compute {
        Compute::Delta => json!("delta"),
        Compute::DeltaAbs => json!("delta-abs"),
        Compute::Time => json!("time"),
        Compute::Ratio => json!("ratio"),
        Compute::Weighted(w1, w2) => json!(format!("wdiff:{w1},{w2}")),
    };
    writeln!(out, "{{\n\"version\": {VERSION},\n\"files\": {},", as_json(&files))?;
    write!(out, "\"compute\": {compute},\n\"significance\": {LEVEL},\n\"events\": ")?;
    list_with(out, &comparison.events, |out, event| {
        let sums = |total: &SampleValue| json!({"samples": total.samples, "period": total.period});
        let totals: Json = event.totals.iter().map(|total| total.as_ref().map(sums)).collect();
        let states: Json = event.states.iter().map(|state| json!(state.name())).collect();
        let times = |times: &ThreadTimes| json!({"running_ns": times.running, "runnable_ns": times.runnable, "idle_threads": times.idle});
        let times: Json = event.thread_times.iter().map(|of| of.as_ref().map(times)).collect();
        let name = as_json(&event.name);
        writeln!(out, "{{\"name\": {name}, \"states\": {states}, \"totals\": {totals},")?;
        write!(out, "\"thread_times\": {times},\n\"rows\": ")?;
        let row = |line| row(comparison, event, line);
        let rows = list_up_to(out, selected_rows(event, layout), layout.rows, row)?;
        write!(out, ",\n\"tree\": ")?;
        let nodes = match &event.tree {
            None => write!(out, "null").map(|()| 0)?,
            Some(tree) => self::tree(out, comparison, event, tree, layout)?,
        };
        // The analysis keeps only the requested number of call chains.
        let rows = (!comparison.by_stream).then_some(rows);
        write!(out, ",\n\"omitted\": {}}}", json!({"rows": rows, "nodes": nodes}))
    })?;
    writeln!(out, ",\n\"notes\": {}\n}}", as_json(&comparison.notes))
}

fn costs(event: &DiffEvent, values: &[SampleValue]) -> Json {
    let cost = |(file, value): (usize, &SampleValue)| {
        let part = event.part(file, value);
        let (low, high) = part.interval();
        let error = (event.source() == CostSource::Sampled).then(|| percent((high - low) / 2.0));
        json!({
            "percent": percent(part.share), "error": error,
            "samples": value.samples, "period": value.period,
        })
    };
    let recorded = |(file, _): &(usize, &SampleValue)| event.totals[*file].is_some();
    values.iter().enumerate().map(|side| recorded(&side).then(|| cost(side))).collect()
}

fn changes(comparison: &Diff, changes: &[Option<DiffChange>]) -> Json {
    let change = |change: &DiffChange| {
        // A census has no sampling error, and two recordings do not show how much runs vary.
        let known = |number: f64| change.has_error().then_some(number);
        let mut object = json!({
            "delta": percent(change.share.value), "error": known(percent(change.share.error())),
            "low": known(percent(change.share.low)), "high": known(percent(change.share.high)),
            "p": known(change.share.p), "p_adjusted": known(change.adjusted), "verdict": change.verdict.word(),
        });
        if !matches!(comparison.compute, Compute::Delta | Compute::DeltaAbs) {
            let (low, high) = change.interval;
            object["computed"] = json!({"value": change.value, "low": known(low), "high": known(high)});
        }
        object
    };
    changes.iter().map(|of| of.as_ref().map(change)).collect()
}

fn row(comparison: &Diff, event: &DiffEvent, line: &DiffRow) -> Json {
    let mut object = Map::new();
    if comparison.by_stream {
        let frames =
            line.frames(&event.keys).map(|cells| Json::Object(words(comparison, &event.keys, cells)));
        object.insert("frames".into(), frames.collect());
        let cycles = line.values.iter().map(|value| value.weights()[0].checked_div(value.samples));
        object.insert("cycles".into(), cycles.collect());
    } else {
        object = words(comparison, &event.keys, &line.cells);
    }
    object.insert("costs".into(), costs(event, &line.values));
    object.insert("changes".into(), changes(comparison, &line.changes));
    Json::Object(object)
}

/// Returns the sort keys with their values.
pub(super) fn words(comparison: &Diff, keys: &[SortKey], cells: &[RowCell]) -> Map<String, Json> {
    let mut object = Map::new();
    for (key, cell) in keys.iter().zip(cells) {
        let value = match *cell {
            RowCell::Symbol(letter, id) => {
                object.insert("level".into(), json!(letter.to_string()));
                json!(comparison.texts.get(id))
            }
            RowCell::Text(id) => json!(comparison.texts.get(id)),
            RowCell::Line(id, line) => json!(format!("{}:{line}", comparison.texts.get(id))),
            RowCell::Offset(_, id, into) => json!(format!("{}+{into:#x}", comparison.texts.get(id))),
            RowCell::InFunction(id, into) => json!(format!("{}+{into}", comparison.texts.get(id))),
            RowCell::InModule(id, address) => json!(format!("{}[{address:x}]", comparison.texts.get(id))),
            RowCell::Task(number, _) | RowCell::Number(number) => json!(number),
            RowCell::Time(ns) => json!(ns),
            RowCell::Address(address) => json!(format!("{address:#x}")),
            RowCell::Unknown => Json::Null,
        };
        object.insert(key.field_name().into(), value);
    }
    object
}

/// Writes the nodes with the indexes of their parents. Each node follows its parent. Skips nodes whose share
/// is below the layout's limit in all recordings, with their subtrees. Writes at most `layout.rows` nodes,
/// and returns the number of omitted ones.
fn tree(
    out: &mut dyn Write,
    comparison: &Diff,
    event: &DiffEvent,
    tree: &DiffTree,
    layout: &DiffLayout,
) -> io::Result<usize> {
    let children = |number: u32| &tree.nodes[number as usize].children[..];
    let size = |number: u32| {
        let values = tree.nodes[number as usize].values.iter().enumerate();
        let share = values.map(|(file, value)| event.part(file, value).share).fold(0.0, f64::max);
        (share >= layout.limit).then_some((share * 1e15) as u64)
    };
    tree_up_to(out, &tree.roots, children, size, layout.rows, |listed| {
        let node = &tree.nodes[listed.number as usize];
        json!({
            "parent": listed.parent, "depth": node.depth, "symbol": comparison.texts.get(node.symbol),
            "dso": comparison.texts.get(node.dso), "level": node.level.letter().to_string(),
            "inlined": node.inlined, "costs": costs(event, &node.values),
            "changes": changes(comparison, &node.changes),
        })
    })
}
