//! The JSON document: totals, rows, tree, modules and trust. docs/report.md explains each field.
//!
//! The tree is a flat list of nodes: stacks can be thousands of calls deep, and JSON parsers reject such deep
//! nesting.

use std::io::{self, Write};
use std::path::PathBuf;

use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use super::{IN_MODES, ReportColumn, ReportLayout, cell};
use pmc_analysis::profile::sampled::idle::IdleGroup;
use pmc_analysis::profile::sampled::waits::ThreadTimeSums;
use pmc_analysis::profile::sampled::{
    CallTree, ModuleQuality, Profile, ProfileEvent, RowCell, SampleValue, ShareOf, TableRow, ThreadState,
};
use pmc_text::json_document::{list_up_to, list_with, percent, tree_up_to};
use pmc_text::text::as_json;

pub(super) fn write(out: &mut dyn Write, profile: &Profile, layout: &ReportLayout) -> io::Result<()> {
    write!(out, "{{\n\"version\": {},\n", pmc_analysis::profile::sampled::VERSION)?;
    if let Some(sums) = profile.events.iter().find_map(|event| event.thread_time.as_ref()) {
        writeln!(out, "\"thread_time\": {},", as_json(&thread_time(sums)))?;
    }
    write!(out, "\"events\": ")?;
    events(out, profile, layout)?;
    write!(out, ",\n\"modules\": ")?;
    let modules = list_up_to(out, &profile.modules, layout.rows, |of| module(profile, of))?;
    let trust = &profile.trust;
    let ends = json!({
        "copied": trust.ends.copied, "cut": trust.ends.cut, "lost": trust.ends.lost, "long": trust.ends.long,
        "compat": trust.ends.compat,
        "no_tables": samples_by_module(trust.ends.no_tables.iter().map(|(name, samples)| (name.as_deref(), *samples))),
    });
    let broken =
        samples_by_module(trust.broken.iter().map(|(name, samples)| (Some(name.as_str()), *samples)));
    let trust = json!({
        "samples": trust.samples, "lost_samples": trust.lost_samples, "lost_records": trust.lost_records,
        "throttled": trust.throttled, "yielded_ns": trust.yielded_ns, "unknown": trust.unknown,
        "stacks": trust.stacks, "rooted": trust.rooted,
        "cut_off": trust.cut_off, "joined": trust.joined,
        "frames": trust.frames, "unnamed": trust.unnamed, "notes": trust.notes,
        "chains_unread": trust.chains_unread,
        "counted": trust.unsampled.map(|of| of.counted), "sampled": trust.unsampled.map(|of| of.sampled),
        "broken": broken, "ends": ends,
    });
    writeln!(out, ",\n\"trust\": {},\n\"omitted\": {{\"modules\": {modules}}}\n}}", as_json(&trust))
}

/// Returns the object with the sums of all threads.
fn thread_time(sums: &ThreadTimeSums) -> Json {
    let group = |group: &IdleGroup| {
        json!({
            "names": group.names, "threads": group.threads, "site": group.site.name(),
            "reason": group.reason.name(), "function": group.function, "waited_ns": group.waited_ns,
        })
    };
    let groups: Vec<Json> = sums.idle_groups.iter().map(group).collect();
    json!({
        "elapsed_ns": sums.elapsed_ns, "threads": sums.threads,
        "running_ns": sums.time_in(ThreadState::Running), "runnable_ns": sums.time_in(ThreadState::Runnable),
        "waiting_ns": sums.time_in(ThreadState::Blocked),
        "idle": {"threads": sums.idle.0, "waited_ns": sums.idle.1, "groups": groups},
    })
}

/// Returns the object for a module: its files, its frames, and which data is missing.
fn module(profile: &Profile, module: &ModuleQuality) -> Json {
    let found = module.data.found();
    let shown = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
    let missing: Vec<String> = module.data.missing.iter().map(ToString::to_string).collect();
    json!({
        "path": module.path.to_string_lossy(), "name": profile.texts.get(module.name),
        "build_id": module.build_id, "binary": shown(&found.binary), "debug": shown(&found.debug),
        "symbols": found.symbols, "lines": found.lines, "frames": module.frames,
        "unnamed": module.unnamed, "missing": missing, "remedy": module.remedy,
    })
}

/// Writes the list of events.
pub(super) fn events(out: &mut dyn Write, profile: &Profile, layout: &ReportLayout) -> io::Result<()> {
    let shown = profile.shown_events();
    list_with(out, &shown, |out, index| {
        let event = &profile.events[*index];
        // A leader's index among the shown events.
        let leader = shown.iter().position(|index| *index == event.leader).unwrap_or(0);
        write!(out, "{{\"name\": {},\n\"leader\": {leader}, ", as_json(&event.name))?;
        let (total, filtered) = (&event.total, &event.filtered);
        write!(out, "\"samples\": {}, \"period\": {}, ", total.samples, total.period)?;
        let filtered = json!({"samples": filtered.samples, "period": filtered.period});
        writeln!(out, "\"filtered\": {filtered},")?;
        if let Some(sums) = event.thread_time.as_ref().filter(|sums| sums.is_live) {
            let (idle, waited) = sums.idle;
            let sums = json!({
                "elapsed_ns": sums.elapsed_ns, "threads": sums.threads, "idle_threads": idle,
                "idle_ns": waited, "ms_per_s": rates(event, &event.total),
            });
            writeln!(out, "\"thread_time\": {sums},")?;
        }
        write!(out, "\"rows\": ")?;
        let rows = rows(out, profile, event, layout)?;
        write!(out, ",\n\"tree\": ")?;
        let nodes = match &event.tree {
            Some(tree) => self::tree(out, profile, event, tree, layout)?,
            None => write!(out, "null").map(|()| 0)?,
        };
        write!(out, ",\n\"omitted\": {}}}", json!({"rows": rows, "nodes": nodes}))
    })
}

fn samples_by_module<'a>(list: impl Iterator<Item = (Option<&'a str>, u64)>) -> Vec<Json> {
    list.map(|(module, samples)| json!({"module": module, "samples": samples})).collect()
}

#[derive(Serialize)]
struct CostJson {
    percent: f64,
    error: f64,
    samples: u64,
    period: u64,
    /// Percentage of wall-clock time.
    #[serde(skip_serializing_if = "Option::is_none")]
    latency: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ms_per_s: Option<RatesJson>,
}

/// Milliseconds per second spent in each state.
#[derive(Serialize)]
struct RatesJson {
    running: f64,
    runnable: f64,
    blocked: f64,
}

fn rates(event: &ProfileEvent, value: &SampleValue) -> Option<RatesJson> {
    let round = |ms: f64| (ms * 1000.0).round() / 1000.0;
    let [running, runnable, blocked] = event.rates(value)?.map(round);
    Some(RatesJson { running, runnable, blocked })
}

fn cost(event: &ProfileEvent, value: &SampleValue) -> CostJson {
    let share = event.share_by(ShareOf::Period, value.period);
    CostJson {
        percent: percent(share),
        error: percent(event.error_by(ShareOf::Period, value)),
        samples: value.samples,
        period: value.period,
        latency: (event.total.latency() > 0)
            .then(|| percent(event.share_by(ShareOf::Latency, value.latency()))),
        ms_per_s: rates(event, value),
    }
}

/// Writes at most `layout.rows` rows. Returns the number of omitted ones.
fn rows(
    out: &mut dyn Write,
    profile: &Profile,
    event: &ProfileEvent,
    layout: &ReportLayout,
) -> io::Result<usize> {
    let limit = layout.row_limit;
    let shown = event.rows.iter().filter(|row| event.share(event.cost(&row.total)) * 100.0 >= limit);
    let columns = layout.columns(profile, profile.keys_of(event));
    let is_shown = |mode: &usize| columns.contains(&ReportColumn::InMode(*mode));
    let modes: Vec<usize> = (0..IN_MODES.len()).filter(is_shown).collect();
    let object = |row: &TableRow| {
        let mut object = Map::new();
        for (key, value) in profile.keys_of(event).iter().zip(&row.cells) {
            let value = match *value {
                RowCell::Text(id) => Json::from(profile.texts.get(id)),
                RowCell::Symbol(letter, id) => {
                    object.insert("level".into(), Json::from(letter.to_string()));
                    Json::from(profile.texts.get(id))
                }
                RowCell::Offset(_, id, into) => Json::from(format!("{}+{into:#x}", profile.texts.get(id))),
                RowCell::InFunction(id, into) => Json::from(format!("{}+{into}", profile.texts.get(id))),
                RowCell::InModule(id, address) => {
                    Json::from(format!("{}[{address:x}]", profile.texts.get(id)))
                }
                RowCell::Task(number, _) | RowCell::Number(number) => Json::from(number),
                RowCell::Time(ns) => Json::from(ns),
                RowCell::Line(id, line) => Json::from(format!("{}:{line}", profile.texts.get(id))),
                RowCell::Unknown => Json::Null,
                RowCell::Address(_) => Json::from(cell(profile, layout, value)),
            };
            object.insert(profile.field_name(*key).into(), value);
        }
        object.insert("self".into(), json!(cost(event, &row.own)));
        if profile.has_totals {
            object.insert("total".into(), json!(cost(event, &row.total)));
        }
        for &mode in &modes {
            let value = SampleValue { period: row.in_mode(mode), ..SampleValue::default() };
            object.insert(IN_MODES[mode].into(), cost(event, &value).percent.into());
        }
        for (name, weight) in ["weight", "weight2", "weight3"].into_iter().zip(row.own.weights()) {
            if weight > 0 {
                object.insert(name.into(), Json::from(weight));
            }
        }
        object
    };
    list_up_to(out, shown, layout.rows, object)
}

/// Writes each node after its parent, with the parent's index. Writes at most `layout.rows` nodes, and
/// returns the number of omitted ones.
fn tree(
    out: &mut dyn Write,
    profile: &Profile,
    event: &ProfileEvent,
    tree: &CallTree,
    layout: &ReportLayout,
) -> io::Result<usize> {
    let order = if layout.callee { "callee" } else { "caller" };
    write!(out, "{{\"order\": \"{order}\", \"limit\": {}, \"nodes\": ", layout.branch_limit)?;
    let children = |number: u32| &tree.nodes[number as usize].children[..];
    let size = |number| Some(tree.cost(number));
    let omitted = tree_up_to(out, &tree.roots, children, size, layout.rows, |listed| {
        let node = &tree.nodes[listed.number as usize];
        let total = cost(event, &node.total);
        let mut object = json!({
            "parent": listed.parent, "depth": listed.depth, "symbol": profile.texts.get(node.symbol),
            "dso": profile.texts.get(node.dso), "level": node.level.letter().to_string(), "inlined": node.inlined,
            "percent": total.percent, "samples": total.samples, "period": total.period,
            "self": {"samples": node.own.samples, "period": node.own.period},
        });
        if let Some(latency) = total.latency {
            object["latency"] = latency.into();
        }
        object
    })?;
    write!(out, "}}")?;
    Ok(omitted)
}
