//! The data of the page: the merged call tree of all profiled runs, with the mean cost per run of A and of B.
//!
//! It is the data of the page of `pmc export`, with a second cost for each node. The page's script draws it
//! as a differential flame graph.

use std::io::{self, Write};

use rustc_hash::FxHashMap;
use serde_json::json;

use crate::diff::groups;
use crate::page::{brief, list};
use pmc_analysis::profile::diff::groups::{GroupComparison, GroupEvent, GroupRow};
use pmc_analysis::profile::diff::tree::DiffNode;
use pmc_analysis::profile::diff::{Diff, DiffEvent};
use pmc_analysis::profile::sampled::code::UNKNOWN;
use pmc_analysis::profile::sampled::{CodeKind, RowCell, StringId, is_clock};
use pmc_sys::abi::CpuMode;
use pmc_text::text::{as_json, clean, without_version};

/// The nodes of all events. Parents come before their children.
#[derive(Default)]
struct NodeLists {
    /// Distance to the parent; 0 for a root.
    back: Vec<u32>,
    function: Vec<u32>,
    event: Vec<usize>,
    /// Own cost per run, of A and of B.
    costs: [Vec<u64>; 2],
    /// Whether the function of the node changed by more than the noise between runs: 0 or 1.
    changed: Vec<u8>,
}

/// Symbol, module, CPU mode, and whether the function is inlined.
type FunctionKey = (StringId, StringId, CpuMode, bool);

/// Functions in the order of their numbers.
#[derive(Default)]
struct FunctionList {
    numbers: FxHashMap<FunctionKey, u32>,
    keys: Vec<FunctionKey>,
}

impl FunctionList {
    fn number(&mut self, node: &DiffNode) -> u32 {
        let key = (node.symbol, node.dso, node.level, node.inlined);
        *self.numbers.entry(key).or_insert_with(|| {
            self.keys.push(key);
            self.keys.len() as u32 - 1
        })
    }
}

/// Writes the JSON document. Without profiles, the page has no flame graph.
pub(super) fn data(
    out: &mut dyn Write,
    commands: &[String],
    profiles: Option<(&Diff, &GroupComparison)>,
) -> io::Result<()> {
    let (mut nodes, mut functions) = (NodeLists::default(), FunctionList::default());
    let mut events = Vec::new();
    if let Some((diff, compared)) = profiles {
        for event in &compared.events {
            let number = events.len();
            if let Some(of) = diff.events.iter().find(|of| of.name == event.name) {
                nodes.add(of, number, compared.runs, &changed(event), &mut functions);
            }
            let period = nodes.whole(number);
            events.push(json!({
                "name": clean(&event.name), "clock": is_clock(&event.name), "period": period,
                "samples": u8::from(period > 0),
            }));
        }
    }
    let runs = profiles.map_or([0, 0], |(_, compared)| compared.runs);
    let head = json!({
        "title": "Two commands compared", "version": env!("CARGO_PKG_VERSION"), "started": null, "span": null,
        "facts": [], "trust": "", "event": 0, "events": events,
        "threads": [{"pid": null, "tid": null, "comms": [""], "process": null}],
        "compared": {
            "commands": commands.iter().map(|command| clean(command)).collect::<Vec<_>>(), "runs": runs,
        },
    });
    write!(out, "{{\"head\":{},\"code\":[]", as_json(&head))?;
    let text = |id: StringId| profiles.map_or("", |(diff, _)| diff.texts.get(id));
    let names: Vec<String> =
        functions.keys.iter().map(|(symbol, dso, ..)| name(text(*symbol), text(*dso))).collect();
    list(out, "names", names.iter())?;
    list(out, "brief", names.iter().map(|name| brief(name)))?;
    let mut modules: FxHashMap<StringId, u32> = FxHashMap::default();
    let mut module_names = Vec::new();
    let module = functions.keys.iter().map(|(_, dso, ..)| {
        *modules.entry(*dso).or_insert_with(|| {
            module_names.push(clean(text(*dso)));
            module_names.len() as u32 - 1
        })
    });
    let module: Vec<u32> = module.collect();
    list(out, "modules", module_names.iter())?;
    list(out, "module", module.iter())?;
    let kind = |(_, dso, level, _): &FunctionKey| CodeKind::from_mode(*level, text(*dso)) as u8;
    list(out, "kind", functions.keys.iter().map(kind))?;
    list(out, "inlined", functions.keys.iter().map(|(.., inlined)| u8::from(*inlined)))?;
    nodes.write(out)?;
    write!(out, "}}")
}

/// Returns a function's name. A function without a name gets its module's name in brackets.
fn name(symbol: &str, dso: &str) -> String {
    match clean(symbol) {
        name if name == UNKNOWN => format!("[{}]", clean(dso).trim_matches(['[', ']'])),
        name => without_version(&name).to_owned(),
    }
}

impl NodeLists {
    fn add(
        &mut self,
        event: &DiffEvent,
        number: usize,
        runs: [usize; 2],
        changed: &FxHashMap<StringId, bool>,
        functions: &mut FunctionList,
    ) {
        let Some(tree) = &event.tree else { return };
        let cost = |node: usize, side: usize| -> u64 {
            let values = &tree.nodes[node].values;
            let range = if side == 0 { 0..runs[0] } else { runs[0]..values.len() };
            values[range].iter().map(|value| value.period).fold(0, u64::saturating_add)
        };
        // Rows are functions with all code that is inlined into them.
        let mut rows: Vec<StringId> = Vec::with_capacity(tree.nodes.len());
        for (at, node) in tree.nodes.iter().enumerate() {
            let row =
                node.parent.filter(|_| node.inlined).map_or(node.symbol, |parent| rows[parent as usize]);
            rows.push(row);
            self.back.push(node.parent.map_or(0, |parent| at as u32 - parent));
            self.function.push(functions.number(node));
            self.event.push(number);
            for (side, costs) in self.costs.iter_mut().enumerate() {
                let children = node.children.iter().map(|child| cost(*child as usize, side));
                let below = children.fold(0, u64::saturating_add);
                costs.push(cost(at, side).saturating_sub(below) / runs[side].max(1) as u64);
            }
            self.changed.push(u8::from(changed.get(&row) != Some(&false)));
        }
    }

    /// Returns the cost of a run of B.
    fn whole(&self, event: usize) -> u64 {
        let of_event = self.event.iter().zip(&self.costs[1]).filter(|(of, _)| **of == event);
        of_event.map(|(_, cost)| cost).fold(0, |sum, cost| sum.saturating_add(*cost))
    }

    /// Writes the nodes, and one cell for each, because all costs are of one thread and have no time.
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        list(out, "back", self.back.iter())?;
        list(out, "fn", self.function.iter())?;
        write!(out, ",\"slice\":1,\"slices\":0")?;
        let nodes = self.back.len();
        // The distance to the node of the previous cell.
        list(out, "cellNode", (0..nodes).map(|at| u8::from(at > 0)))?;
        list(out, "cellEvent", self.event.iter())?;
        for name in ["cellThread", "cellSlice", "cellSamples"] {
            list(out, name, std::iter::repeat_n(0, nodes))?;
        }
        list(out, "cellBefore", self.costs[0].iter())?;
        list(out, "cellPeriod", self.costs[1].iter())?;
        list(out, "cellChanged", self.changed.iter())
    }
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
