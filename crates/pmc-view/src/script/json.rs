//! Samples and records as JSON, one object per line. Fields that were not recorded, or not requested with
//! `-F`, are omitted or null.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::ScriptLayout;
use pmc_analysis::profile::script::{AddressFunction, AddressFunctions, ScriptBranch, ScriptEntry};
use pmc_perfdata::record::sample::SampledRegisters;
use pmc_perfdata::record::{Record, kind};
use pmc_text::text::{as_json, hex};

/// Version of the format; increases when the meaning of a field changes.
pub(super) const VERSION: u32 = 1;

fn line(out: &mut Vec<u8>, object: &Value) -> io::Result<()> {
    writeln!(out, "{}", as_json(object))
}

fn place(place: &AddressFunction) -> Value {
    json!({
        "ip": place.address, "symbol": place.symbol.as_deref(), "dso": place.dso.as_deref(),
        "offset": (!place.is_imported).then_some(place.into),
        "inlined": place.inlined,
        "file": place.source.as_ref().map(|(file, _)| &**file),
        "line": place.source.as_ref().map(|(_, line)| line),
    })
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
    let stack = entry.places.iter().flat_map(|number| places.at(*number)).map(place);
    let mut object = json!({
        "version": VERSION, "comm": entry.comm, "pid": entry.pid, "tid": entry.tid, "cpu": entry.cpu, "time": entry.time,
        "event": layout.events[entry.event], "period": entry.period, "addr": entry.addr,
        "weight": entry.weight.map(|weight| weight.value()), "phys_addr": entry.phys_addr, "trace": entry.trace,
        "stack": stack.collect::<Vec<_>>(),
    });
    if let Some(object) = object.as_object_mut() {
        more(object, entry, layout, places);
    }
    line(out, &object)
}

/// Adds the fields that only few samples have.
fn more(
    object: &mut Map<String, Value>,
    entry: &ScriptEntry<'_>,
    layout: &ScriptLayout,
    places: &AddressFunctions,
) {
    let mut say = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            object.insert(name.to_owned(), value);
        }
    };
    let registers = |registers: SampledRegisters<'_>| {
        let numbers = (0..64).filter(|number| registers.mask >> number & 1 == 1);
        let pairs = numbers.zip(registers.values.iter());
        let named = pairs
            .map(|(number, value)| (super::parts::register(number, layout.is_aarch64), Value::from(value)));
        Value::Object(named.collect())
    };
    let end = |number: u32| places.at(number).last().and_then(|place| place.symbol.as_deref());
    let branch = |branch: &ScriptBranch| {
        let flags = branch.flags;
        json!({
            "from": branch.from, "to": branch.to, "from_symbol": end(branch.from_at),
            "to_symbol": end(branch.to_at), "mispredicted": flags.is_mispredicted(),
            "predicted": flags.is_predicted(), "in_tx": flags.in_tx(), "abort": flags.is_abort(),
            "cycles": flags.cycles(), "type": flags.kind(),
        })
    };
    say("addr_symbol", entry.addr_at.and_then(end).map(Value::from));
    say("data_src", entry.data_src.map(|source| json!(source.0)));
    say("data_page_size", entry.data_page.map(Value::from));
    say("code_page_size", entry.code_page.map(Value::from));
    say("cgroup", entry.cgroup.map(Value::from));
    say("stream_id", entry.stream_id.map(Value::from));
    say("user_regs", entry.user_regs.map(registers));
    say("intr_regs", entry.intr_regs.map(registers));
    say("insn", entry.instruction.map(|code| Value::from(hex(&code.bytes, " "))));
    say("disasm", entry.instruction.map(|code| Value::from(super::parts::disassembly(code))));
    if !entry.branches.is_empty() {
        say("branches", Some(entry.branches.iter().map(branch).collect()));
    }
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
