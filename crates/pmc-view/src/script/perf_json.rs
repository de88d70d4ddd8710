//! Samples as one JSON document in the format of `perf data convert --to-json`.
//!
//! ```text
//! {"linux-perf-json-version": 1,
//!  "headers": {"header-version": 1, "captured-on": …, "hostname": …, "cmdline": […]},
//!  "samples": [
//!   {"timestamp": ns, "pid": …, "tid": …, "cpu": …, "comm": …,
//!    "callchain": [{"ip": "0x…", "symbol": …, "dso": …}, …], a tracepoint's fields: strings}, …]}
//! ```
//! A frame without a `symbol` still has a `dso`; perf omits the `dso` of such frames.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use pmc_analysis::profile::header::ConversionInfo;
use pmc_analysis::profile::script::{AddressFunction, AddressFunctions, ScriptEntry};
use pmc_text::text::as_json;
use pmc_text::units::CalendarTime;

/// Begins the document.
pub fn begin(out: &mut dyn Write, facts: &ConversionInfo) -> io::Result<()> {
    let mut headers = Map::new();
    headers.insert("header-version".to_owned(), json!(1));
    if let Some(captured) = facts.captured_on {
        let date = CalendarTime::new(captured as i64).to_string();
        headers.insert("captured-on".to_owned(), json!(format!("{}Z", date.replace(' ', "T"))));
    }
    let numbers = facts.numbers.iter().map(|(name, number)| ((*name).to_owned(), json!(number)));
    headers.extend(numbers);
    headers.extend(facts.texts.iter().map(|(name, value)| ((*name).to_owned(), json!(value))));
    if let Some(words) = &facts.cmdline {
        headers.insert("cmdline".to_owned(), json!(words));
    }
    writeln!(out, "{{\n\"linux-perf-json-version\": 1,")?;
    write!(out, "\"headers\": {},\n\"samples\": [", as_json(&headers))
}

/// Writes a sample; `shift` is added to its time.
pub fn sample(
    out: &mut dyn Write,
    entry: &ScriptEntry<'_>,
    places: &AddressFunctions,
    shift: i64,
    is_first: bool,
) -> io::Result<()> {
    let time = entry.time.unwrap_or(0).wrapping_add_signed(shift);
    let chain = entry.places.iter().filter_map(|number| places.at(*number).last()).map(call);
    let mut object = json!({
        "timestamp": time, "pid": entry.pid, "tid": entry.tid, "comm": entry.comm,
        "callchain": chain.collect::<Vec<_>>(),
    });
    if let Some(object) = object.as_object_mut() {
        if let Some(cpu) = entry.cpu {
            object.insert("cpu".to_owned(), json!(cpu));
        }
        for (name, value) in entry.trace_fields {
            object.entry(name.clone()).or_insert_with(|| json!(value));
        }
    }
    write!(out, "{}\n{}", if is_first { "" } else { "," }, as_json(&object))
}

fn call(place: &AddressFunction) -> Value {
    let mut call = Map::new();
    call.insert("ip".to_owned(), json!(format!("{:#x}", place.address)));
    if let Some(symbol) = &place.symbol {
        call.insert("symbol".to_owned(), json!(**symbol));
    }
    if let Some(dso) = &place.dso {
        let is_path = dso.starts_with('/');
        let short = if is_path { dso.rsplit('/').next().unwrap_or(dso) } else { dso };
        call.insert("dso".to_owned(), json!(short));
    }
    Value::Object(call)
}

/// Ends the document.
pub fn end(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\n]\n}}")
}
