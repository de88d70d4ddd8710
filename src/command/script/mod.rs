//! `pmc script`: names all addresses first, then goes through the samples in the order of time and has each printed.

mod places;

use std::io::{BufWriter, Write, stdout};

use rustc_hash::FxHashSet;

use super::report::progress::Progress;
use super::report::symbols::Symbols;
use super::report::unwinding::Unwinding;
use super::report::words::Names;
use super::report::{is_from_here, open, plan};
use crate::cli::script::Script;
use crate::error::{Error, Exit, Result};
use crate::perfdata::Event;
use crate::profile::script::{Entry, FIELDS, Field, Fields};
use crate::record::layout::bits;
use crate::record::{RawRecord, kind};
use crate::session::samples::{self, Readings, Stacker, Wanted};
use crate::session::{Moment, Session, order};
use crate::symbol::{Depth, Options};
use crate::sys::attr::kind::TRACEPOINT;
use crate::text;
use crate::view::{self, script::Layout};
use places::{Calls, Places};

/// Runs it.
///
/// # Errors
/// When something typed means nothing, the recording cannot be read, or the output not be written.
pub(super) fn run(typed: &Script) -> Result<Exit> {
    let path = typed.input.clone().or(typed.file.clone()).unwrap_or_else(|| "perf.data".into());
    let reader = open(&path)?;
    let mut out = BufWriter::with_capacity(1 << 18, stdout().lock());
    let written = |error| Error::output("the samples", error);
    if typed.header && !typed.json {
        view::header::write(&mut out, &super::header::of(&reader)).map_err(written)?;
    }
    let environment = Options::from_environment();
    let options = Options {
        symfs: typed.symfs.clone(),
        kallsyms: typed.kallsyms.clone(),
        vmlinux: typed.vmlinux.clone(),
        cache: environment.cache.clone().filter(|_| !typed.no_cache),
        live: is_from_here(&reader),
        ..environment
    };
    let session = Session::open(reader)?;
    let layout = Layout {
        fields: fields(typed, session.reader.events())?,
        events: session.reader.events().iter().map(Event::name).collect(),
        nanoseconds: typed.ns,
        json: typed.json,
    };
    let wanted = wanted(typed, &session)?;
    let mut symbols = Symbols::new(&session.history, options)?;
    let has_copies = session.reader.layouts().iter().any(|l| l.sample_type() & bits::STACK_USER != 0);
    let lines = layout.fields.iter().any(|fields| fields.has(Field::SrcLine));
    let inlines = !typed.no_inline && (typed.inline || has_copies || lines);
    let needs_places = layout.fields.iter().any(|fields| fields.has(Field::Ip) || fields.has(Field::Sym));
    let machine = session.reader.features().arch.clone().unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let places = if needs_places {
        let found = {
            let bar = Progress::new("reading samples", session.index.count(kind::SAMPLE));
            let unwinding = Unwinding::new(&session.history, &symbols, &machine, typed.max_stack).like_perf();
            let wanted = Wanted { ignore_comms: true, ..wanted.clone() };
            samples::collect(&session, &wanted, Some(&unwinding), &|more| bar.more(more))?
        };
        let bar = Progress::new("finding names", 0);
        let depth = if inlines { Depth::Inlines } else { Depth::Names };
        let calls = if inlines && !has_copies { Calls::AsCalled } else { Calls::AsReturned };
        let progress = |p: crate::symbol::Progress| bar.at(p.done as u64, p.total as u64);
        Places::new(&session.history, &found, &mut symbols, depth, calls, &progress)
    } else {
        Places::default()
    };
    let unwinding = Unwinding::new(&session.history, &symbols, &machine, typed.max_stack).like_perf();
    let mut printing = Printing {
        typed,
        session: &session,
        wanted: &wanted,
        names: Names::new(&session),
        stacker: Stacker::new(&wanted, has_copies.then_some(&unwinding as _)),
        readings: Readings::default(),
        places: &places,
        writer: view::script::Writer::new(&layout, &places.all),
        numbers: Vec::new(),
    };
    order::samples(&session, |raw, position| printing.sample(raw, position, &mut out))?;
    out.flush().map_err(written)?;
    Ok(Exit::Done)
}

struct Printing<'a> {
    typed: &'a Script,
    session: &'a Session,
    wanted: &'a Wanted,
    names: Names<'a>,
    stacker: Stacker<'a>,
    readings: Readings,
    places: &'a Places,
    writer: view::script::Writer<'a>,
    numbers: Vec<u32>,
}

impl Printing<'_> {
    fn sample(&mut self, raw: &RawRecord<'_>, position: Moment, out: &mut dyn Write) -> Result<()> {
        let Some((event, sample)) = self.session.reader.layouts().sample(raw) else { return Ok(()) };
        let time = sample.time().map(|time| time.0);
        if !self.wanted.takes(&sample, time) {
            return Ok(());
        }
        let moment = if self.session.has_time { time.unwrap_or(0) } else { position };
        let thread = sample.thread();
        let who = thread.unwrap_or_default();
        let history = &self.session.history;
        let comm = history.comm(who.pid, who.tid, moment);
        if !self.wanted.takes_thread(who, comm) {
            return Ok(());
        }
        let asked = &self.session.reader.events()[event].attr;
        let unnamed;
        let comm = match comm.and_then(|comm| self.names.named(comm.0)) {
            Some(comm) => comm,
            None => {
                unnamed = format!(":{}", who.tid);
                &unnamed
            }
        };
        let sample_type = sample.layout().sample_type();
        let has_chain = sample_type & bits::CALLCHAIN != 0 && !self.typed.hide_call_graph;
        self.numbers.clear();
        let layer = history.layer(who.pid, moment);
        let words = self.stacker.chain(&sample, layer);
        self.places.of(layer, words, self.typed.max_stack, &mut self.numbers);
        let late = bits::RAW | bits::WEIGHT | bits::WEIGHT_STRUCT | bits::PHYS_ADDR;
        let parts = if sample_type & late != 0 { sample.parts() } else { None }.unwrap_or_default();
        let payload = parts.raw.filter(|_| asked.kind() == TRACEPOINT);
        let trace = payload.and_then(|bytes| self.names.trace(event, bytes));
        let asked_period = sample.period().unwrap_or_else(|| asked.period());
        let members = if sample_type & bits::READ != 0 {
            self.readings.of(self.session.reader.layouts(), event, &sample).unwrap_or_default()
        } else {
            vec![(event, asked_period)]
        };
        let entry = Entry {
            comm,
            pid: thread.map(|thread| thread.pid),
            tid: thread.map(|thread| thread.tid),
            cpu: sample.cpu(),
            time,
            period: Some(asked_period),
            event,
            addr: sample.addr(),
            weight: parts.weight.map(|weight| weight.value()),
            phys_addr: parts.phys_addr,
            trace: trace.as_deref(),
            places: &self.numbers,
            has_chain,
        };
        for (event, period) in members {
            let entry = Entry { event, period: Some(period), ..entry };
            self.writer.write(out, &entry).map_err(|error| Error::output("the samples", error))?;
        }
        Ok(())
    }
}

/// The fields of each event: perf's usual ones, as far as they were recorded, then what was typed.
fn fields(typed: &Script, events: &[Event]) -> Result<Vec<Fields>> {
    let mut changes: Vec<(char, Field)> = Vec::new();
    for word in &typed.fields {
        let word = word.trim();
        let (sign, name) = match word.chars().next() {
            Some(sign @ ('+' | '-')) => (sign, &word[1..]),
            _ => ('=', word),
        };
        let Some((_, field)) = FIELDS.iter().find(|(known, _)| *known == name) else {
            let names = || FIELDS.iter().map(|(name, _)| *name);
            let error = Error::usage(format!("{name:?} is no field of a sample"));
            let near = text::nearest(name, names(), 3);
            return Err(match near.is_empty() {
                false => error.try_this(format!("did you mean {}?", near.join(" or "))),
                true => error.try_this(format!("one of {}", names().collect::<Vec<_>>().join(", "))),
            });
        };
        changes.push((sign, *field));
    }
    Ok(events.iter().map(|event| of_event(typed, event, &changes)).collect())
}

fn of_event(typed: &Script, event: &Event, changes: &[(char, Field)]) -> Fields {
    let sample_type = event.attr.sample_type();
    let has = |bit: u64| sample_type & bit != 0;
    let is_tracepoint = event.attr.kind() == TRACEPOINT;
    let mut usual = vec![Field::Comm, Field::Tid, Field::Cpu, Field::Time, Field::Event];
    if is_tracepoint {
        usual.push(Field::Trace);
    } else {
        usual.push(Field::Period);
    }
    if !is_tracepoint || has(bits::CALLCHAIN) && !typed.hide_call_graph {
        usual.extend([Field::Ip, Field::Sym, Field::SymOff, Field::Dso]);
    }
    let mut fields = Fields::of(&usual);
    if changes.iter().any(|(sign, _)| *sign == '=') {
        fields = Fields::default();
    }
    for (sign, field) in changes {
        fields.set(*field, *sign != '-');
    }
    for (field, bit) in [(Field::Cpu, bits::CPU), (Field::Time, bits::TIME), (Field::Addr, bits::ADDR)] {
        if !has(bit) {
            fields.set(field, false);
        }
    }
    fields
}

fn wanted(typed: &Script, session: &Session) -> Result<Wanted> {
    let set = |list: &[i32]| (!list.is_empty()).then(|| list.iter().copied().collect::<FxHashSet<i32>>());
    Ok(Wanted {
        ignore_stacks: typed.hide_call_graph,
        times: typed
            .time
            .as_deref()
            .map(|text| plan::times(text, session))
            .transpose()?
            .into_iter()
            .collect(),
        cpus: plan::cpus(typed.cpu.as_deref())?,
        pids: set(&typed.pid),
        tids: set(&typed.tid),
        comms: plan::comms(&typed.comms, session),
        ..Wanted::default()
    })
}
