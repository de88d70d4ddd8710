//! Prints the events of a recording, and each record with its time, thread and fields.
//!
//! `cargo run -p pmc-perfdata --example dump -- FILE`

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use pmc_perfdata::perfdata::Reader;
use pmc_perfdata::record::{RawRecord, kind};
use pmc_text::text::clean;

fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1) else {
        return fail("usage: dump FILE");
    };
    match dump(path.as_ref(), &mut BufWriter::new(io::stdout().lock())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error.to_string()),
    }
}

fn fail(why: &str) -> ExitCode {
    // Nothing is left to do if standard error is closed.
    let _ = writeln!(io::stderr(), "dump: {why}");
    ExitCode::FAILURE
}

fn dump(path: &std::path::Path, out: &mut impl Write) -> Result<(), Box<dyn std::error::Error>> {
    let reader = Reader::open(path)?;
    for event in reader.events() {
        writeln!(out, "event {}: {} counters", clean(&event.name()), event.ids.len())?;
    }
    let mut written = Ok(());
    let index = reader.scan(|record| {
        if written.is_ok() {
            written = line(&reader, record, out);
        }
    })?;
    written?;
    for note in &index.notes {
        writeln!(out, "note: {note}")?;
    }
    Ok(out.flush()?)
}

fn line(reader: &Reader, record: &RawRecord<'_>, out: &mut impl Write) -> io::Result<()> {
    let name = kind::name(record.kind).map_or_else(|| record.kind.to_string(), str::to_owned);
    if let Some((event, sample)) = reader.layouts().sample(record) {
        let event = reader.events().get(event).map(|event| event.name()).unwrap_or_default();
        let (time, thread, ip) = (sample.time(), sample.thread(), sample.ip());
        return writeln!(out, "{name} {}: {time:?} {thread:?} ip {ip:#x?}", clean(&event));
    }
    let time = reader.layouts().sample_id(record).time;
    match record.parse() {
        // Names in records come from the recorded programs: no control characters may reach the terminal.
        Some(fields) => writeln!(out, "{name}: {time:?} {}", clean(&format!("{fields:?}"))),
        None => writeln!(out, "{name}: {time:?} {} malformed bytes", record.bytes.len()),
    }
}
