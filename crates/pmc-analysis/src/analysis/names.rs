//! Converts numeric ids in rows to text: names of threads, cgroups and sockets, and tracepoint payloads.

use std::borrow::Cow;
use std::num::NonZeroU64;

use rustc_hash::FxHashMap;

use super::request::TraceField;
use super::symbols::RecordingSymbols;
use crate::profile::sampled::table_input::RowStrings;
use crate::session::intern::Interner;
use crate::session::location::{self, SampledAddress};
use crate::session::samples::unnamed_thread;
use crate::session::{CommId, Epoch, Session};
use pmc_perfdata::record::tracepoint::{KernelNames, Payload, TracepointFormat, TracingData};
use pmc_sys::abi::CpuMode;

/// Resolves the numeric ids in a recording to text.
pub(crate) struct RecordingNames<'a> {
    session: &'a Session,
    tracing: Option<TracingData>,
    payloads: Option<&'a Interner>,
    /// Symbols for addresses in payloads.
    symbols: Option<&'a RecordingSymbols>,
    /// Whether to print each field instead of using the format string.
    raw_traces: bool,
    /// The fields used as sort keys.
    trace_fields: &'a [TraceField],
}

/// A tracepoint's payload, its format, and the kernel's constant strings.
struct TracepointPayload<'a, 'p> {
    format: &'a TracepointFormat,
    payload: Payload<'p>,
    texts: &'a FxHashMap<u64, String>,
}

impl<'a> RecordingNames<'a> {
    /// Creates a resolver for a recording, without tracepoint payloads or kernel symbols.
    pub(crate) fn new(session: &'a Session) -> Self {
        let tracing = session.reader.features().tracing_data.as_ref();
        let tracing = tracing.and_then(|raw| TracingData::parse(&raw.0));
        Self { session, tracing, payloads: None, symbols: None, raw_traces: false, trace_fields: &[] }
    }

    /// Adds the payloads kept by pass 2. With `raw`, they are printed field by field instead of with the
    /// format string.
    pub(crate) fn with_payloads(self, payloads: &'a Interner, raw: bool) -> Self {
        Self { payloads: Some(payloads), raw_traces: raw, ..self }
    }

    /// Adds the payload fields used as sort keys.
    pub(crate) fn with_trace_fields(self, trace_fields: &'a [TraceField]) -> Self {
        Self { trace_fields, ..self }
    }

    /// Adds the names of kernel functions.
    pub(crate) fn with_symbols(self, symbols: &'a RecordingSymbols) -> Self {
        Self { symbols: Some(symbols), ..self }
    }

    /// Returns the kernel function at an address, and the offset into it.
    fn code(&self, address: u64) -> Option<(String, u64)> {
        let symbols = self.symbols?;
        let location = location::locate(
            &self.session.history,
            SampledAddress::code(Epoch::KERNEL, CpuMode::Kernel, address),
        );
        let (module, query) = symbols.query(&location)?;
        symbols.symbolizer.find(module, query).map(|(name, into)| (name.to_owned(), into))
    }

    /// Appends a tracepoint's payload, formatted according to its format file. Returns whether the format is
    /// known.
    pub(crate) fn trace(&self, event: usize, bytes: &[u8], out: &mut String) -> bool {
        let Some(TracepointPayload { format, payload, texts }) = self.traced(event, bytes) else {
            return false;
        };
        if self.raw_traces {
            format.print_fields(payload, out);
        } else {
            let names = KernelNames { texts: Some(texts), code: &|address| self.code(address) };
            format.print(payload, names, out);
        }
        true
    }

    /// Returns a tracepoint's payload with its format.
    fn traced<'p>(&self, event: usize, bytes: &'p [u8]) -> Option<TracepointPayload<'_, 'p>> {
        let tracing = self.tracing.as_ref()?;
        let format = tracing.format(self.session.reader.events().get(event)?.attr.config())?;
        let payload = Payload { bytes, is_byte_swapped: tracing.is_byte_swapped };
        Some(TracepointPayload { format, payload, texts: &tracing.texts })
    }

    /// Returns the names and values of a payload's fields.
    pub(crate) fn trace_fields(&self, event: usize, bytes: &[u8]) -> Option<Vec<(String, String)>> {
        let TracepointPayload { format, payload, .. } = self.traced(event, bytes)?;
        Some(format.fields_of(payload).map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// Returns the thread name with this number in the history.
    pub(crate) fn named(&self, comm: u32) -> Option<Cow<'a, str>> {
        self.session.history.comm_name(CommId(comm)).map(String::from_utf8_lossy)
    }
}

impl RowStrings for RecordingNames<'_> {
    fn comm(&self, comm: u32) -> String {
        match self.named(comm) {
            Some(name) => name.into_owned(),
            None => unnamed_thread(comm),
        }
    }

    fn task_name(&self, tid: i32) -> Option<String> {
        let name = self.session.history.task_name(tid)?;
        Some(String::from_utf8_lossy(name).into_owned())
    }

    fn cgroup(&self, id: u64) -> String {
        match self.session.cgroups.get(&id) {
            Some(path) => String::from_utf8_lossy(path).into_owned(),
            None => id.to_string(),
        }
    }

    fn socket(&self, cpu: u64) -> Option<i64> {
        let topology = self.session.reader.features().cpu_topology.as_ref()?;
        topology.cpus.get(usize::try_from(cpu).ok()?).map(|(_, socket)| i64::from(*socket))
    }

    fn mapped(&self, module: u32) -> Option<u64> {
        self.session.history.modules().get(module as usize)?.mapped.map(NonZeroU64::get)
    }

    fn payload(&self, number: u64) -> String {
        let Ok(number) = u32::try_from(number) else { return String::new() };
        let Some((event, bytes)) = self.payloads.map(|payloads| payloads.get(number)) else {
            return String::new();
        };
        let mut line = String::new();
        self.trace(event as usize, bytes, &mut line);
        line
    }

    fn payload_field(&self, number: u64, field: usize) -> Option<String> {
        let (event, bytes) = self.payloads?.get(u32::try_from(number).ok()?);
        let wanted = self.trace_fields.get(field)?;
        let traced = self.traced(event as usize, bytes).filter(|traced| wanted.is_of(traced.format))?;
        let TracepointPayload { format, payload, texts } = traced;
        let about = format.field(&wanted.field)?;
        if let Some(text) = payload.text_in(about) {
            return Some(String::from_utf8_lossy(text).into_owned());
        }
        if wanted.is_raw {
            let mut raw = String::new();
            payload.print_field(about, &mut raw);
            return Some(raw);
        }
        let names = KernelNames { texts: Some(texts), code: &|address| self.code(address) };
        format.print_field(&wanted.field, payload, names)
    }
}
