//! Dumps every record as stored, with the thread to which it belongs, for `-D`.
//!
//! Visits [`DumpedRecord`]s in time order or file order, then the places where data is damaged. The view
//! prints bytes and fields.

use std::borrow::Cow;
use std::path::Path;

use super::ScriptLine;
use crate::analysis::header;
use crate::analysis::names::RecordingNames;
use crate::profile::script::{DumpedRecord, SampleOwner};
use crate::session::location::{self, SampledAddress};
use crate::session::order::{self, RecordPosition};
use crate::session::{CommId, Session};
use pmc_perfdata::perfdata::{FeatureNumber, RecordingNote};
use pmc_perfdata::record::{RawRecord, Record, Sample, SampleLayout, kind};
use pmc_sys::abi::sample_type;
use pmc_sys::error::Result;

/// Order of the dumped records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DumpOrder {
    /// By time.
    Time,
    /// As stored in the file.
    File,
}

/// Visits all records.
///
/// # Errors
/// Fails if the file cannot be read, or if `visit` fails.
pub fn dump(
    session: &Session,
    by: DumpOrder,
    visit: &mut dyn FnMut(ScriptLine<'_>) -> Result<()>,
) -> Result<()> {
    let dumper = Dumper::new(session);
    order::records(session, by == DumpOrder::Time, |_| true, |raw, place| dumper.show(raw, place, visit))?;
    dumper.visit_damage(visit)
}

/// Finds the thread to which each record belongs.
pub(super) struct Dumper<'a> {
    session: &'a Session,
    names: RecordingNames<'a>,
    events: Vec<String>,
    is_aarch64: bool,
    /// Whether the kernel's records contain a CPU and a time. If they do, the dump also shows a CPU and a
    /// time for perf's own records, which contain neither.
    stamps: [bool; 2],
    has_trailers: bool,
}

impl<'a> Dumper<'a> {
    pub(super) fn new(session: &'a Session) -> Self {
        let reader = &session.reader;
        let has = |fields| reader.layouts().have(fields);
        Self {
            session,
            names: RecordingNames::new(session),
            events: reader.events().iter().map(|event| event.name()).collect(),
            is_aarch64: reader.features().arch.as_deref() == Some("aarch64"),
            stamps: [has(sample_type::CPU), has(sample_type::TIME)],
            has_trailers: reader.layouts().iter().next().is_some_and(|layout| layout.trailer_size() > 0),
        }
    }

    pub(super) fn show(
        &self,
        raw: &RawRecord<'_>,
        place: RecordPosition,
        visit: &mut dyn FnMut(ScriptLine<'_>) -> Result<()>,
    ) -> Result<()> {
        let Self { session, .. } = self;
        let layouts = session.reader.layouts();
        let (file, start) = session.reader.file(place.file);
        let found = layouts.sample(raw);
        let sample = found.map(|(_, sample)| sample);
        let id = layouts.sample_id(raw);
        let [cpu, time] = self.stamps;
        let is_stamped = raw.kind == kind::SAMPLE || self.has_trailers;
        let stamp = |has: bool, value: Option<u64>| has.then(|| is_stamped.then(|| value.unwrap_or(0)));
        let own_cpu = sample.map_or(id.cpu, |sample| sample.cpu()).map(u64::from);
        let own_time = sample.map_or(id.time, |sample| sample.time()).map(|time| time.0);
        let record = raw.parse();
        let values = layouts.read(raw).filter(|_| raw.kind == kind::READ);
        let event = found.map(|(event, _)| event).or(values.map(|(event, _)| event));
        let asked = found.map(|(event, _)| session.reader.events()[event].attr.period());
        let words = record.as_ref().and_then(in_words);
        visit(ScriptLine::Dumped(&DumpedRecord {
            raw: *raw,
            file: &file.to_string_lossy(),
            offset: place.offset.saturating_sub(start),
            // In a stream, CPU and time are missing until the first event is known; in a file, they are
            // always present.
            cpu: stamp(cpu, own_cpu),
            time: stamp(time, own_time),
            record,
            words,
            event: event.and_then(|event| self.events.get(event)).map(String::as_str),
            values: values.map(|(_, values)| values),
            sample,
            period: sample.and_then(|sample| sample.period()).or(asked).unwrap_or(0),
            calls_are_branches: sample.is_some_and(|sample| has_calls(sample.layout())),
            owner: sample.as_ref().map(|sample| self.owner(sample, place)),
            is_aarch64: self.is_aarch64,
        }))
    }

    fn owner(&self, sample: &Sample<'_>, place: RecordPosition) -> SampleOwner {
        let history = &self.session.history;
        let timestamp = self.session.timestamp(sample.time().map(|time| time.0), place.position);
        let who = sample.thread().unwrap_or_default();
        let comm = history.comm(who.pid, who.tid, timestamp);
        let comm = comm.and_then(|CommId(number)| self.names.named(number)).map(Cow::into_owned);
        let epoch = history.epoch(who.pid, timestamp);
        let at = sample.ip().map(|ip| SampledAddress::code(epoch, sample.cpu_mode(), ip));
        let module = at.and_then(|at| location::locate(history, at).module());
        SampleOwner {
            comm: comm.unwrap_or_else(|| format!(":{}", who.tid)),
            dso: module.map(|module| history.modules()[module as usize].name_in_script()),
        }
    }

    /// Visits the places where the file is damaged.
    pub(super) fn visit_damage(&self, visit: &mut dyn FnMut(ScriptLine<'_>) -> Result<()>) -> Result<()> {
        let path: &Path = self.session.reader.path();
        for note in self.session.notes() {
            if let RecordingNote::Torn { at, .. } | RecordingNote::BadCompression { at } = note {
                let file = path.to_string_lossy();
                visit(ScriptLine::Torn { offset: *at, file: &file, words: &note.to_string() })?;
            }
        }
        Ok(())
    }
}

/// Whether the branch stacks of samples are call stacks.
fn has_calls(layout: &SampleLayout) -> bool {
    layout.branch_sample_type() & pmc_sys::abi::branch_sample_type::CALL_STACK != 0
}

/// Describes a header record of a stream: the attributes of an event, or the name of a section.
fn in_words(record: &Record<'_>) -> Option<String> {
    match record {
        Record::HeaderAttr(event) => Some(header::attr_words(&event.attr)),
        Record::HeaderFeature(section) => {
            FeatureNumber::from_number(section.feature).map(|f| f.name().to_owned())
        }
        _ => None,
    }
}
