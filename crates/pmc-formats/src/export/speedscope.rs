//! speedscope's native format. It contains the stacks of each thread in time order, for speedscope's "Time
//! Order" view.
//!
//! ```text
//!   shared.frames  each function once: name, source file or module
//!   profiles       one per event and thread: lists of frames, outermost first, with their weights
//! ```
//!
//! Schema: <https://www.speedscope.app/file-format-schema.json>.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::{Value as Json, json};

use super::{ExportContents, function_name, thread_name};
use pmc_analysis::profile::sampled::stacks::StackRow;
use pmc_text::json_document::{Streamed, list_with};
use pmc_text::text::{as_json, clean, write_json};

pub(super) fn write(out: &mut dyn Write, contents: &ExportContents<'_>) -> io::Result<()> {
    let stacks = contents.stacks;
    let paths = stacks.paths();
    let frame = |function: u32| -> Json {
        let call = paths.call(function, stacks.code());
        let file = call.file.unwrap_or(call.dso);
        json!({"name": function_name(call, stacks.texts), "file": clean(stacks.texts.get(file))})
    };
    let frames = Streamed((0..paths.functions.len() as u32).map(frame));
    write!(
        out,
        "{{\"$schema\": \"https://www.speedscope.app/file-format-schema.json\",\n\"exporter\": \"pmc {}\",\n\
         \"name\": {},\n\"shared\": {{\"frames\": {}}},\n\"profiles\": ",
        env!("CARGO_PKG_VERSION"),
        as_json(&clean(contents.title)),
        as_json(&frames)
    )?;
    let mut profiles: BTreeMap<(u32, u32), Vec<&StackRow>> = BTreeMap::new();
    for row in &stacks.rows {
        profiles.entry((row.event, row.thread)).or_default().push(row);
    }
    let weight = |rows: &[&StackRow]| rows.iter().map(|row| row.value.period).fold(0, u64::saturating_add);
    let costliest = profiles.values().enumerate().max_by_key(|(at, rows)| (weight(rows), usize::MAX - at));
    let active = costliest.map_or(0, |(at, _)| at);
    list_with(out, profiles, |out, ((event, thread), mut rows)| {
        // If times are unknown, the order is arbitrary.
        rows.sort_by_key(|row| row.time);
        let event = &stacks.events[event as usize];
        let name = format!("{} {}", thread_name(&stacks.threads[thread as usize]), clean(&event.name));
        // speedscope knows no others.
        let unit = match event.unit() {
            unit @ ("nanoseconds" | "bytes") => unit,
            _ => "none",
        };
        let functions = |row: &&StackRow| {
            let mut functions: Vec<u32> =
                paths.end(row.stack).into_iter().flat_map(|node| paths.outward(node)).collect();
            functions.reverse();
            functions
        };
        write!(
            out,
            "{{\"type\": \"sampled\", \"name\": {}, \"unit\": \"{unit}\", \"startValue\": 0, \"endValue\": {},\n\
             \"samples\": ",
            as_json(&name),
            weight(&rows),
        )?;
        write_json(out, &Streamed(rows.iter().map(functions)))?;
        write!(out, ",\n\"weights\": ")?;
        write_json(out, &Streamed(rows.iter().map(|row| row.value.period)))?;
        write!(out, "}}")
    })?;
    writeln!(out, ",\n\"activeProfileIndex\": {active}\n}}")
}
