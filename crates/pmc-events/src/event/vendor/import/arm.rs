//! Arm's data: `pmu/*.json`, one file per core.

use std::path::Path;

use serde_json::Value;

use super::fields::{number, text, word};
use super::tables::{ImportedEvent, TableOwner};
use super::{TableImporter, json_files};

/// Reads the files in a directory; returns `false` if none of them has this format.
pub(super) fn read(folder: &Path, reader: &mut TableImporter) -> bool {
    let mut found = false;
    for path in json_files(folder) {
        let document = match reader.parse(&path) {
            Ok(Value::Object(document)) => document,
            Ok(_) => continue,
            Err(why) => {
                reader.unread.push((path, why));
                continue;
            }
        };
        let Some(Value::Array(events)) = document.get("events") else { continue };
        let Some(core) = path.file_stem().and_then(|stem| stem.to_str()).map(str::to_lowercase) else {
            continue;
        };
        found = true;
        // Implementer and part number, such as 0x41d0c. Files that describe a whole architecture have
        // neither.
        let Some(id) = number(&document, "cpuid").filter(|id| *id >> 20 == 0) else { continue };
        let midr = (id >> 12) << 24 | 0xf << 16 | (id & 0xfff) << 4;
        let table = format!("{core}.events.tsv");
        let owner = TableOwner { cpuid: format!("{midr:#018x}"), model: core, pmu: String::new() };
        reader.tables.own(owner, &table);
        let counters = match number(&document, "counters") {
            Some(number @ 1..=64) => format!("0-{}", number - 1),
            _ => String::new(),
        };
        for event in events.iter().filter_map(Value::as_object) {
            let event = number(event, "code").filter(|code| *code <= 0xffff).map(|code| ImportedEvent {
                name: word(event, "name").into_owned(),
                terms: format!("event={code:#x}"),
                counters: counters.clone(),
                text: text(event, &["description"]),
                ..ImportedEvent::default()
            });
            reader.tables.event(&table, event);
        }
    }
    found
}
