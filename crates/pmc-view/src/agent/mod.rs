//! Answers for AI agents (`pmc mcp`), which can read only a limited amount of text: short rows with
//! percentages and errors, and the quality of the data.
//!
//! Receives profiles, listings and comparisons, and returns an [`AgentAnswer`] for each; [`limited`] limits
//! its size. All names are untrusted and appear only as values of their own fields, never in sentences.

mod limit;

use rustc_hash::FxHashMap;
use serde_json::{Map, Value as Json, json};

pub use limit::{AgentAnswer, AnswerLimit, LEAST_BYTES, cleaned, limited};

use super::annotate::operands;
use super::gate;
use super::report::cell_words;
use super::report::thread_time::{WaitLine, wait_lines};
use pmc_analysis::profile::annotate::{Listing, ListingRow, PercentBasis, RowContent};
use pmc_analysis::profile::diff::{Diff, DiffChange, LEVEL};
use pmc_analysis::profile::machine::{MachineReport, MissingReason};
use pmc_analysis::profile::sampled::call_sites::CallSite;
use pmc_analysis::profile::sampled::{
    ModuleQuality, Profile, ProfileEvent, ProfileQuality, RowCell, SampleValue, ShareOf, SortKey,
    StackDirection, TableRow, ThreadState,
    trust::{self, TrustDetail},
};
use pmc_analysis::profile::statistics::SIGNIFICANCE;
use pmc_analysis::profile::versus::{CommandComparison, ComparedSide};
use pmc_text::json_document::percent;

/// Maximum number of modules without symbols to name.
const MOST_NAMELESS: usize = 3;
/// Maximum number of events to name.
const MOST_EVENTS: usize = 10;
/// Nanoseconds per millisecond.
const MS: f64 = 1e6;

/// Collects the fields of a document, and omits those that are null.
macro_rules! fields {
    ($($name:literal: $value:expr),+ $(,)?) => {{
        let mut fields = Map::new();
        $(let value = json!($value);
        if !value.is_null() {
            fields.insert($name.to_owned(), value);
        })+
        fields
    }};
}

/// Returns a share as a percentage with two decimals, which is more precise than any sampling error.
pub fn rounded(share: f64) -> f64 {
    (percent(share) * 100.0).round() / 100.0
}

/// Returns the quality of a recording's data.
fn quality(quality: &ProfileQuality, modules: &[ModuleQuality], event: Option<&ProfileEvent>) -> Json {
    let of = |part: u64, all: u64| (all > 0).then(|| rounded(part as f64 / all as f64));
    let mut nameless: Vec<&ModuleQuality> = modules.iter().filter(|module| module.unnamed > 0).collect();
    nameless.sort_by_key(|module| std::cmp::Reverse(module.unnamed));
    let nameless: Vec<Json> = nameless
        .iter()
        .take(MOST_NAMELESS)
        .map(|module| {
            let percent = of(module.unnamed, quality.frames);
            json!({"module": module.path.to_string_lossy(), "unknown_percent": percent})
        })
        .collect();
    // A share of one half has the largest error.
    let error = event.map(|event| {
        let half = SampleValue { period: event.total.period / 2, ..event.total.clone() };
        rounded(event.error_by(ShareOf::Period, &half))
    });
    Json::Object(fields! {
        "samples": quality.samples,
        "lost": quality.lost_samples.max(quality.lost_records),
        "damaged": quality.is_damaged,
        "throttled": (quality.throttled > 0).then_some(quality.throttled),
        "unknown_percent": of(quality.unnamed, quality.frames),
        "complete_stacks_percent": of(quality.rooted, quality.stacks),
        "largest_error_percent": error,
        "modules_without_symbols": (!nameless.is_empty()).then_some(nameless),
        "summary": trust::statement(quality, &[], TrustDetail::Brief).summary,
    })
}

/// Returns the names of events, for the caller to choose from.
fn event_names<'a>(names: impl Iterator<Item = &'a str>) -> Json {
    names.take(MOST_EVENTS).collect()
}

/// Returns the fields that the answers about one event of a recording have in common.
fn event_head(recording: &str, profile: &Profile, event: &ProfileEvent) -> Map<String, Json> {
    let others = (profile.events.len() > 1)
        .then(|| event_names(profile.events.iter().map(|event| event.name.as_str())));
    fields! {
        "recording": recording,
        "event": event.name,
        "event_samples": event.total.samples,
        "event_period": event.total.period,
        "events": others,
    }
}

/// Returns the row's sort keys with their values.
fn keys(profile: &Profile, event: &ProfileEvent, row: &TableRow) -> Map<String, Json> {
    let mut fields = Map::new();
    for (key, cell) in profile.keys_of(event).iter().zip(&row.cells) {
        let value = match cell {
            RowCell::Text(id) | RowCell::Symbol(_, id) => json!(profile.texts.get(*id)),
            RowCell::Task(number, _) | RowCell::Number(number) => json!(number),
            RowCell::Unknown => continue,
            other => json!(cell_words(profile, other)),
        };
        let name = own_name(*key).unwrap_or_else(|| profile.field_name(*key));
        fields.insert(name.to_owned(), value);
    }
    fields
}

/// Returns the name of a sort key in the tools' arguments and answers; `None` if it is pmc's.
fn own_name(key: SortKey) -> Option<&'static str> {
    match key {
        SortKey::Comm => Some("command"),
        SortKey::Dso => Some("module"),
        SortKey::Symbol => Some("function"),
        SortKey::SrcLine => Some("line"),
        _ => None,
    }
}

/// Returns how the threads of a recording spent their time; null if the recording has no waits.
fn thread_time(event: &ProfileEvent) -> Json {
    let Some(sums) = &event.thread_time else { return Json::Null };
    let time = |state| milliseconds(sums.time_in(state));
    Json::Object(fields! {
        "elapsed_ms": milliseconds(sums.elapsed_ns),
        "threads": sums.threads,
        "running_ms": time(ThreadState::Running),
        "runnable_ms": time(ThreadState::Runnable),
        "waiting_ms": time(ThreadState::Blocked),
        "idle_threads": (sums.idle.0 > 0).then_some(sums.idle.0),
    })
}

/// Converts nanoseconds to milliseconds, rounded to microseconds.
pub fn milliseconds(ns: u64) -> f64 {
    (ns as f64 / MS * 1000.0).round() / 1000.0
}

/// Returns what threads waited for: one row for each wait site and function of the program that waits there,
/// longest first, with the threads that ended most of the time. Waits are measured, so they have no error.
pub fn waits(recording: &str, profile: &Profile, event: usize, limit: AnswerLimit) -> AgentAnswer {
    /// Maximum number of wakers to name for a row.
    const MOST_WAKERS: usize = 3;
    let Some(event) = profile.events.get(event) else { return AgentAnswer::default() };
    let share = |part: u64, of: u64| rounded(part as f64 / of.max(1) as f64);
    let all = wait_lines(profile, event);
    let row = |line: &WaitLine<'_>| {
        let cost = event.cost(&line.value);
        let mut wakers: Vec<&(String, u64)> = line.wakers.iter().collect();
        wakers.sort_by(|(a, x), (b, y)| y.cmp(x).then_with(|| a.cmp(b)));
        let waker = |(thread, time): &&(String, u64)| json!({"waker": thread, "waiting_ms": milliseconds(*time), "percent_of_row": share(*time, cost)});
        Json::Object(fields! {
            "waits_for": line.site,
            "function": (!line.function.is_empty()).then_some(line.function),
            "line": (!line.line.is_empty()).then_some(&line.line),
            "waiting_ms": milliseconds(cost),
            "percent": rounded(event.share(cost)),
            "waits": line.value.samples,
            "woken_by":
                (!wakers.is_empty()).then(|| wakers.iter().take(MOST_WAKERS).map(waker).collect::<Json>()),
        })
    };
    AgentAnswer {
        head: fields! {"recording": recording, "event": event.name, "thread_time": thread_time(event)},
        rows: limit.select(all.iter()).map(row).collect(),
        all_rows: all.len(),
        trust: quality(&profile.trust, &profile.modules, Some(event)),
    }
}

/// Returns the table of an event: the costliest functions, or other rows.
pub fn hot(recording: &str, profile: &Profile, event: usize, limit: AnswerLimit) -> AgentAnswer {
    let Some(event) = profile.events.get(event) else { return AgentAnswer::default() };
    let share = |value: &SampleValue| rounded(event.share_by(ShareOf::Period, value.period));
    let row = |row: &TableRow| {
        let mut object = keys(profile, event, row);
        object.extend(fields! {
            "percent": share(&row.own),
            "error": rounded(event.error_by(ShareOf::Period, &row.own)),
            "samples": row.own.samples,
            "total_percent": profile.has_totals.then(|| share(&row.total)),
        });
        Json::Object(object)
    };
    let mut head = event_head(recording, profile, event);
    head.extend(fields! {"thread_time": thread_time(event)});
    AgentAnswer {
        head,
        rows: limit.select(event.rows.iter()).map(row).collect(),
        all_rows: event.rows.len(),
        trust: quality(&profile.trust, &profile.modules, Some(event)),
    }
}

/// Returns the call tree of an event, each node after its parent.
pub fn tree(
    recording: &str,
    profile: &Profile,
    (event, direction): (usize, StackDirection),
    limit: AnswerLimit,
) -> AgentAnswer {
    let Some(event) = profile.events.get(event) else { return AgentAnswer::default() };
    let mut rows = Vec::new();
    let mut all_rows = 0;
    if let Some(tree) = &event.tree {
        let mut open: Vec<(u32, usize)> = tree.roots.iter().rev().map(|root| (*root, 0)).collect();
        while let Some((number, depth)) = open.pop() {
            let node = &tree.nodes[number as usize];
            open.extend(node.children.iter().rev().map(|child| (*child, depth + 1)));
            if all_rows >= limit.offset && rows.len() < limit.most_rows() {
                rows.push(Json::Object(fields! {
                    "depth": depth,
                    "function": profile.texts.get(node.symbol),
                    "module": profile.texts.get(node.dso),
                    "inlined": node.inlined.then_some(true),
                    "percent": rounded(event.share_by(ShareOf::Period, node.total.period)),
                    "error": rounded(event.error_by(ShareOf::Period, &node.total)),
                    "samples": node.total.samples,
                    // With callers below a function, own costs are those of other functions.
                    "self_percent": (direction == StackDirection::Caller)
                        .then(|| rounded(event.share_by(ShareOf::Period, node.own.period))),
                }));
            }
            all_rows += 1;
        }
    }
    let trust = quality(&profile.trust, &profile.modules, Some(event));
    AgentAnswer { head: event_head(recording, profile, event), rows, all_rows, trust }
}

/// The parts of a function's code that [`source`] returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeRows {
    /// Source lines.
    Lines,
    /// Instructions.
    Instructions,
}

/// Returns the sampled lines or instructions of a function, costliest first. `callers` are the lines that
/// call it, and the sum of all samples in it and its callees.
pub fn source(
    recording: &str,
    listing: &Listing,
    quality_of: &Profile,
    (event, rows): (usize, CodeRows),
    (callers, all_calls): &(Vec<CallSite>, SampleValue),
    limit: AnswerLimit,
) -> AgentAnswer {
    /// Maximum number of calling lines to list.
    const MOST_CALLERS: usize = 5;
    let caller = |site: &CallSite| {
        let share = site.value.period as f64 / all_calls.period.max(1) as f64;
        Json::Object(fields! {
            "function": site.function,
            "module": site.module,
            "file": site.source.as_ref().map(|(file, _)| file),
            "line": site.source.as_ref().map(|(_, line)| line).filter(|line| **line > 0),
            "percent_of_calls": rounded(share),
            "samples": site.value.samples,
        })
    };
    let called_from: Vec<Json> = callers.iter().take(MOST_CALLERS).map(caller).collect();
    let head = listing.events.get(event).map(|event| {
        let (share, error) = event.of_all();
        fields! {
            "recording": recording,
            "event": event.name,
            "function": listing.symbol,
            "module": listing.dso,
            "percent": rounded(share),
            "error": rounded(error),
            "samples": event.own.samples,
            "called_from": (!called_from.is_empty()).then_some(called_from),
            "callers": (callers.len() > MOST_CALLERS).then_some(callers.len()),
        }
    });
    let costs = |value: &SampleValue| {
        let (share, error) = listing.share(event, value, PercentBasis::LocalPeriod);
        fields! {"percent_of_function": rounded(share), "error": rounded(error), "samples": value.samples}
    };
    let mut all: Vec<(SampleValue, Map<String, Json>)> = match rows {
        CodeRows::Lines => listing
            .lines
            .iter()
            .map(|line| (line.value(event), line))
            .filter(|(value, _)| value.samples > 0)
            .map(|(value, line)| {
                let fields = fields! {
                    "file": listing.files.get(line.file).map(|file| &*file.path),
                    "line": line.line,
                    "text": listing.text(line.file, line.line).map(str::trim),
                };
                (value, fields)
            })
            .collect(),
        CodeRows::Instructions => instructions(listing, event),
    };
    all.sort_by_key(|(value, _)| std::cmp::Reverse(value.period));
    let row = |(value, fields): &(SampleValue, Map<String, Json>)| {
        Json::Object(fields.clone().into_iter().chain(costs(value)).collect())
    };
    AgentAnswer {
        head: head.unwrap_or_default(),
        rows: limit.select(all.iter()).map(row).collect(),
        all_rows: all.len(),
        trust: quality(&quality_of.trust, &quality_of.modules, quality_of.events.get(event)),
    }
}

/// Returns the sampled instructions, each with its source line.
fn instructions(listing: &Listing, event: usize) -> Vec<(SampleValue, Map<String, Json>)> {
    let mut line = None;
    let mut all = Vec::new();
    let mut add = |row: &ListingRow, line: Option<u32>| {
        let value = row.value(event);
        let (address, text) = match &row.kind {
            RowContent::Instruction(of) => {
                (of.address, Some(format!("{} {}", of.mnemonic, operands(listing, of)).trim_end().to_owned()))
            }
            RowContent::Address(address) => (*address, None),
            _ => return,
        };
        if value.samples > 0 {
            let address = format!("{address:#x}");
            all.push((value, fields! {"address": address, "instruction": text, "line": line}));
        }
    };
    for row in &listing.rows {
        match row.kind {
            RowContent::Function { .. } => line = None,
            RowContent::Source { line: number, has_code: true, .. } => line = Some(number),
            _ => add(row, line),
        }
    }
    all
}

/// Returns the rows of an event whose shares differ between two recordings.
pub fn diff(comparison: &Diff, event: usize, limit: AnswerLimit) -> AgentAnswer {
    let Some(event) = comparison.events.get(event) else { return AgentAnswer::default() };
    let names = (comparison.events.len() > 1)
        .then(|| event_names(comparison.events.iter().map(|event| event.name.as_str())));
    let scope = (!comparison.scope.is_empty()).then_some(&comparison.scope);
    let notes = (!comparison.notes.is_empty()).then_some(&comparison.notes);
    let total = |file: usize| event.totals.get(file).and_then(Option::as_ref).map(|total| total.period);
    let files: Vec<Json> = comparison
        .files
        .iter()
        .enumerate()
        .map(|(index, file)| {
            json!({"recording": file.path, "samples": file.samples, "lost": file.lost, "period": total(index),
                   "summary": file.trust})
        })
        .collect();
    let row = |line: &pmc_analysis::profile::diff::DiffRow| {
        let mut object = Map::new();
        for (key, cell) in event.keys.iter().zip(&line.cells) {
            if let RowCell::Text(id) | RowCell::Symbol(_, id) = cell {
                let name = own_name(*key).unwrap_or_else(|| key.field_name());
                object.insert(name.to_owned(), comparison.texts.get(*id).into());
            }
        }
        let share = |file: usize| line.values.get(file).map(|value| rounded(event.part(file, value).share));
        let change = line.changes.first().and_then(Option::as_ref);
        // Waits are measured, not sampled.
        let error = |change: &DiffChange| change.has_error().then(|| rounded(change.share.error()));
        let p = |change: &DiffChange| change.has_error().then(|| (change.adjusted * 1e4).round() / 1e4);
        object.extend(fields! {
            "before_percent": share(0),
            "after_percent": share(1),
            "delta": change.map(|change| rounded(change.share.value)),
            "error": change.and_then(error),
            "p_adjusted": change.and_then(p),
            "verdict": change.map(|change| change.verdict.word()),
        });
        Json::Object(object)
    };
    AgentAnswer {
        head: fields! {"event": event.name, "events": names, "scope": scope, "notes": notes},
        rows: limit.select(event.lines.iter()).map(row).collect(),
        all_rows: event.lines.len(),
        trust: json!({"recordings": files, "significance": LEVEL}),
    }
}

/// Returns the samples of an event over time, in time order. `slices` has one row per slice, and `functions`
/// one row per function and slice, costliest first. `begin` is the time of the first sample, `length` the
/// length of a slice, both in nanoseconds.
pub fn timeline(
    recording: &str,
    (slices, functions): (&Profile, &Profile),
    event: usize,
    (begin, length): (u64, u64),
    limit: AnswerLimit,
) -> AgentAnswer {
    let Some(of) = slices.events.get(event) else { return AgentAnswer::default() };
    let time = |row: &TableRow| match row.cells.first() {
        Some(RowCell::Time(ns)) => Some(*ns),
        _ => None,
    };
    let mut rows: Vec<(u64, &TableRow)> = of.rows.iter().filter_map(|row| Some((time(row)?, row))).collect();
    rows.sort_by_key(|(time, _)| *time);
    let ms = milliseconds;
    // The costliest function of each slice.
    let mut costliest: FxHashMap<u64, &TableRow> = FxHashMap::default();
    for row in functions.events.get(event).into_iter().flat_map(|event| &event.rows) {
        let Some(at) = time(row) else { continue };
        let top = costliest.entry(at).or_insert(row);
        if row.own.period >= top.own.period {
            *top = row;
        }
    }
    let row = |(at, row): &(u64, &TableRow)| {
        let top = costliest.get(at);
        let name = top.and_then(|top| match top.cells.last() {
            Some(RowCell::Symbol(_, id) | RowCell::Text(id)) => Some(functions.texts.get(*id)),
            _ => None,
        });
        let waits = of.has_waits();
        let [runnable, blocked] = row.own.off_cpu();
        Json::Object(fields! {
            "start_ms": ms(at.saturating_sub(begin)),
            "end_ms": ms(at.saturating_add(length).saturating_sub(begin)),
            "percent": rounded(of.share_by(ShareOf::Period, row.own.period)),
            "error": rounded(of.error_by(ShareOf::Period, &row.own)),
            "samples": row.own.samples,
            "running_ms": waits.then(|| ms(row.own.ran())),
            "runnable_ms": waits.then(|| ms(runnable)),
            "blocked_ms": waits.then(|| ms(blocked)),
            "top_function": name,
            "top_percent_of_slice":
                top.map(|top| rounded(top.own.period as f64 / row.own.period.max(1) as f64)),
        })
    };
    let mut head = event_head(recording, slices, of);
    head.extend(fields! {"slice_ms": length as f64 / MS});
    AgentAnswer {
        head,
        rows: limit.select(rows.iter()).map(row).collect(),
        all_rows: rows.len(),
        trust: quality(&functions.trust, &functions.modules, Some(of)),
    }
}

/// Returns the measures of compared commands, one row per measure and command.
pub fn comparison(comparison: &CommandComparison, runs: u32, limit: AnswerLimit) -> AgentAnswer {
    let sides = comparison.lines.iter().flat_map(|line| {
        line.sides.iter().enumerate().map(move |(command, side): (usize, &ComparedSide)| {
            let summary = side.summary.as_ref();
            let half = summary.and_then(|of| of.interval.map(|(_, high)| high - of.mean));
            Json::Object(fields! {
                "measure": line.name,
                "unit": (!line.unit.is_empty()).then_some(line.unit.as_str()),
                "command": command,
                "mean": summary.map(|of| of.mean),
                "error": half,
                "runs": summary.map(|of| of.count),
                "difference_percent": side.difference.map(|percent| (percent * 100.0).round() / 100.0),
                "p": side.test.map(|_| side.adjusted),
                "verdict": side.verdict.word(),
                "outliers": summary.map(|of| of.outliers.len()).filter(|count| *count > 0),
            })
        })
    });
    let all: Vec<Json> = sides.collect();
    let uncounted =
        comparison.lines.iter().filter(|line| line.sides.iter().any(|side| side.summary.is_none()));
    AgentAnswer {
        head: fields! {
            "commands": comparison.commands,
            "headlines": gate::headlines(&comparison.verdict(None)),
        },
        all_rows: all.len(),
        rows: limit.select(all.into_iter()).collect(),
        trust: Json::Object(fields! {
            "runs": runs,
            "confidence_percent": 95,
            "significance": SIGNIFICANCE,
            "not_counted": uncounted.count(),
        }),
    }
}

/// Returns the answer of the tool `record`. `summary` is the document of `pmc record --json`.
pub fn recorded(summary: &Json, captured: Json, limit: AnswerLimit) -> AgentAnswer {
    let file = &summary["files"][0];
    let events = summary["events"].as_array().map(Vec::as_slice).unwrap_or_default();
    AgentAnswer {
        head: fields! {
            "recording": file,
            "bytes": summary["bytes"],
            "elapsed_ms": summary["elapsed_ns"].as_u64().map(|ns| ns as f64 / MS),
            "ended_by": summary["ended_by"],
            "status": summary["status"],
            "output": captured,
            "next": json!({"tool": "hot", "arguments": {"recording": file}}),
        },
        rows: limit.select(events.iter()).cloned().collect(),
        all_rows: events.len(),
        trust: Json::Object(fields! {
            "samples": summary["samples"],
            "lost": summary["lost"],
            "throttled": summary["throttled"],
            "unwritten": summary["unwritten"],
            "no_samples": summary["no_samples"],
            "error": summary["error"],
        }),
    }
}

/// Returns what this machine can measure: one row per use, with reasons and remedies.
pub fn doctor(machine: &MachineReport, server: Json, limit: AnswerLimit) -> AgentAnswer {
    let reason = |reason: &MissingReason| {
        Json::Object(fields! {
            "missing": reason.missing, "errno": reason.errno, "cause": reason.cause, "remedy": reason.remedy,
        })
    };
    let row = |verdict: &pmc_analysis::profile::machine::UseCaseReport| {
        let reasons: Vec<Json> = verdict.reasons.iter().map(reason).collect();
        Json::Object(fields! {
            "command": verdict.command,
            "purpose": verdict.purpose,
            "state": verdict.state,
            "reasons": (!reasons.is_empty()).then_some(reasons),
        })
    };
    let count = |state: &str| machine.verdicts.iter().filter(|verdict| verdict.state == state).count();
    let hardware: Vec<&str> = machine
        .hardware_events
        .iter()
        .filter(|event| !matches!(event.state, "refused" | "waiting"))
        .map(|event| event.event)
        .collect();
    AgentAnswer {
        head: fields! {
            "pmc": env!("CARGO_PKG_VERSION"),
            "kernel": machine.kernel,
            "architecture": machine.architecture,
            "cpu": machine.cpu.model,
            "cpus": machine.cpu.cpus,
            "virtual_machine": machine.cpu.virtual_machine,
            "perf_event_paranoid": machine.settings.perf_event_paranoid,
            "hardware_events": hardware,
            "uid": machine.user.uid,
            "server": server,
        },
        rows: limit.select(machine.verdicts.iter()).map(row).collect(),
        all_rows: machine.verdicts.len(),
        trust: json!({
            "works": count("works"), "limited": count("limited"), "not": count("not"),
            "holders_hidden": machine.holders.hidden,
        }),
    }
}
