//! Samples and records as JSON, one object per line. Fields that were not recorded, or not requested with
//! `-F`, are omitted or null.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::ScriptLayout;
use super::columns::{COLUMNS, ColumnJson, JsonContext};
use pmc_analysis::profile::script::{AddressFunctions, ScriptEntry};
use pmc_perfdata::record::{Record, kind};
use pmc_text::text::as_json;

/// Version of the format; increases when the meaning of a field changes.
pub(super) const VERSION: u32 = 1;

fn line(out: &mut Vec<u8>, object: &Value) -> io::Result<()> {
    writeln!(out, "{}", as_json(object))
}

/// Writes the number of lines that `--limit` cut off.
pub fn omitted(out: &mut dyn Write, lines: u64) -> io::Result<()> {
    writeln!(out, "{}", json!({"version": VERSION, "omitted": {"lines": lines}}))
}

/// Writes a sample.
pub(super) fn sample(
    out: &mut Vec<u8>,
    entry: &ScriptEntry<'_>,
    layout: &ScriptLayout,
    places: &AddressFunctions,
) -> io::Result<()> {
    let context = JsonContext { layout, places };
    let mut object = Map::from_iter([("version".to_owned(), VERSION.into())]);
    for ColumnJson { name, value, is_nullable } in COLUMNS.iter().filter_map(|column| column.json.as_ref()) {
        match value(entry, context) {
            None if !is_nullable => {}
            value => {
                object.insert((*name).to_owned(), value.unwrap_or(Value::Null));
            }
        }
    }
    line(out, &object.into())
}

/// Writes a record other than a sample.
pub(super) fn record(
    out: &mut Vec<u8>,
    entry: &ScriptEntry<'_>,
    layout: &ScriptLayout,
    number: u32,
    record: &Record<'_>,
) -> io::Result<()> {
    let mut text = Vec::new();
    super::records::text(&mut text, number, entry.misc, record);
    let text = String::from_utf8_lossy(&text);
    let name = kind::name(number).unwrap_or("UNKNOWN");
    let words = text.strip_prefix("PERF_RECORD_").and_then(|text| text.strip_prefix(name)).unwrap_or(&text);
    let mut object = json!({
        "version": VERSION, "record": name, "comm": entry.comm, "pid": entry.pid, "tid": entry.tid, "cpu": entry.cpu,
        "time": entry.time, "text": words.trim(),
    });
    if let (Record::Read(_), Some(count)) = (record, entry.period) {
        object["event"] = json!(layout.events[entry.event]);
        object["period"] = json!(count);
    }
    line(out, &object)
}
