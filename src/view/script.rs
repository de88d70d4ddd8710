//! Samples one by one as text, as perf script prints them, or as JSON lines.
//!
//! Receives [`Entry`]s in order; decides columns and widths, which are perf's. A place's line is made once and copied
//! for every sample that passes there: most of the output is such lines.

use std::io::{self, Write};

use serde_json::json;

use crate::profile::script::{Entry, Field, Fields, Place};
use crate::text::clean;

/// How samples are printed.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    /// The fields of each event.
    pub fields: Vec<Fields>,
    /// Names of the events; foreign text.
    pub events: Vec<String>,
    /// Nanoseconds instead of microseconds.
    pub nanoseconds: bool,
    /// One JSON object a line.
    pub json: bool,
}

/// Prints samples.
#[derive(Debug)]
pub struct Writer<'a> {
    layout: &'a Layout,
    places: &'a [Place],
    /// The line of each place in a chain, for each event's choice of fields.
    lines: Vec<Option<Box<[u8]>>>,
    events: Vec<String>,
    width: usize,
    line: Vec<u8>,
}

impl<'a> Writer<'a> {
    /// A writer for samples that pass these places.
    pub fn new(layout: &'a Layout, places: &'a [Place]) -> Self {
        let events: Vec<String> = layout.events.iter().map(|name| clean(name).into_owned()).collect();
        let width = events.iter().map(String::len).max().unwrap_or(0);
        let lines = vec![None; places.len() * layout.fields.len()];
        Self { layout, places, lines, events, width, line: Vec::new() }
    }

    /// Prints one sample.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&mut self, out: &mut dyn Write, entry: &Entry<'_>) -> io::Result<()> {
        if self.layout.json {
            return self.json(out, entry);
        }
        self.line.clear();
        self.text(entry)?;
        out.write_all(&self.line)
    }

    fn text(&mut self, entry: &Entry<'_>) -> io::Result<()> {
        let fields = self.layout.fields[entry.event];
        let has = |field| fields.has(field);
        let out = &mut self.line;
        if has(Field::Comm) {
            let comm = clean(entry.comm);
            if has(Field::Ip) && entry.has_chain {
                write!(out, "{comm} ")?;
            } else {
                write!(out, "{comm:>16} ")?;
            }
        }
        match (entry.pid.filter(|_| has(Field::Pid)), entry.tid.filter(|_| has(Field::Tid))) {
            (Some(pid), Some(tid)) => write!(out, "{pid:5}/{tid:<5} ")?,
            (Some(id), None) | (None, Some(id)) => write!(out, "{id:5} ")?,
            (None, None) => {}
        }
        if let Some(cpu) = entry.cpu.filter(|_| has(Field::Cpu)) {
            write!(out, "[{cpu:03}] ")?;
        }
        if let Some(time) = entry.time.filter(|_| has(Field::Time)) {
            let (seconds, ns) = (time / 1_000_000_000, time % 1_000_000_000);
            if self.layout.nanoseconds {
                write!(out, "{seconds:5}.{ns:09}: ")?;
            } else {
                // perf pads the whole to twelve.
                write!(out, "{seconds:5}.{:06}: ", ns / 1000)?;
            }
        }
        if let Some(period) = entry.period.filter(|_| has(Field::Period)) {
            write!(out, "{period:10} ")?;
        }
        if has(Field::Event) {
            write!(out, "{:>1$}: ", self.events[entry.event], self.width)?;
        }
        if let Some(trace) = entry.trace.filter(|_| has(Field::Trace)) {
            out.extend(clean(trace).bytes());
        }
        if let Some(addr) = entry.addr.filter(|_| has(Field::Addr)) {
            write!(out, "{addr:16x}")?;
        }
        if let Some(weight) = entry.weight.filter(|_| has(Field::Weight)) {
            write!(out, "{weight:16}")?;
        }
        if has(Field::Ip) || has(Field::Sym) {
            self.places(entry, fields)?;
        }
        if let Some(addr) = entry.phys_addr.filter(|_| fields.has(Field::PhysAddr)) {
            write!(self.line, "{addr:16x}")?;
        }
        self.line.push(b'\n');
        Ok(())
    }

    fn places(&mut self, entry: &Entry<'_>, fields: Fields) -> io::Result<()> {
        if !entry.has_chain {
            self.line.push(b' ');
            if let Some(&number) = entry.places.last() {
                let place = &self.places[number as usize];
                if fields.has(Field::Ip) {
                    write!(self.line, "{:16x}", place.address)?;
                }
                words(&mut self.line, place, fields)?;
            }
            return Ok(());
        }
        self.line.push(b'\n');
        for &number in entry.places {
            let at = number as usize * self.layout.fields.len() + entry.event;
            if self.lines[at].is_none() {
                let mut line = Vec::new();
                let place = &self.places[number as usize];
                if fields.has(Field::Ip) {
                    let shown = if place.in_kernel { place.address } else { place.offset };
                    write!(line, "\t{shown:16x}")?;
                }
                words(&mut line, place, fields)?;
                line.push(b'\n');
                self.lines[at] = Some(line.into());
            }
            self.line.extend_from_slice(self.lines[at].as_deref().unwrap_or_default());
        }
        Ok(())
    }

    fn json(&mut self, out: &mut dyn Write, entry: &Entry<'_>) -> io::Result<()> {
        let places = entry.places.iter().map(|number| {
            let place = &self.places[*number as usize];
            json!({
                "ip": place.address, "symbol": place.symbol, "offset": place.into, "dso": place.dso,
                "inlined": place.inlined,
                "file": place.source.as_ref().map(|(file, _)| file),
                "line": place.source.as_ref().map(|(_, line)| line),
            })
        });
        let object = json!({
            "comm": entry.comm, "pid": entry.pid, "tid": entry.tid, "cpu": entry.cpu, "time": entry.time,
            "event": self.layout.events[entry.event], "period": entry.period, "addr": entry.addr,
            "weight": entry.weight, "phys_addr": entry.phys_addr, "trace": entry.trace,
            "stack": places.collect::<Vec<_>>(),
        });
        serde_json::to_writer(&mut *out, &object)?;
        out.write_all(b"\n")
    }
}

/// What follows the address: function, module, line.
fn words(line: &mut Vec<u8>, place: &Place, fields: Fields) -> io::Result<()> {
    if fields.has(Field::Sym) {
        match &place.symbol {
            Some(symbol) if fields.has(Field::SymOff) => {
                write!(line, " {}+{:#x}", clean(symbol), place.into)?
            }
            Some(symbol) => write!(line, " {}", clean(symbol))?,
            None => line.extend(b" [unknown]"),
        }
    }
    if fields.has(Field::Dso) && !place.inlined {
        write!(line, " ({})", clean(place.dso.as_deref().unwrap_or("[unknown]")))?;
    }
    if let Some((file, number)) = place.source.as_ref().filter(|_| fields.has(Field::SrcLine)) {
        let name = file.rsplit('/').next().unwrap_or(file);
        write!(line, "\n  {}:{number}", clean(name))?;
    }
    if place.inlined {
        line.extend(b" (inlined)");
    }
    Ok(())
}
