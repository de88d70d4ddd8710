//! Prints a log in one of pmcstat's formats.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use super::text::{Format, LogWriter, LoggedEvent, LoggedKind};
use pmc_analysis::analysis::counts;
use pmc_analysis::analysis::script::{NamedRecording, ScriptLine, ScriptRequest};
use pmc_analysis::session::{Session, ThreadCount};
use pmc_command::progress::Bars;
use pmc_formats::import;
use pmc_perfdata::record::kind;
use pmc_sys::error::{Error, Result};

/// A recording, and which of its samples to print.
pub(super) struct Log {
    pub(super) input: PathBuf,
    pub(super) request: ScriptRequest,
}

/// Prints a recording in one of pmcstat's formats.
///
/// # Errors
/// Fails if the recording cannot be read, or the output cannot be written.
pub(super) fn print(log: Log, form: Format, out: &mut dyn Write) -> Result<()> {
    let Log { input, mut request } = log;
    let session = Arc::new(Session::open(import::open(input)?)?);
    if form == Format::Records {
        request.records.extend([kind::MMAP, kind::MMAP2, kind::COMM, kind::FORK, kind::EXIT]);
        request.records.extend([kind::LOST, kind::LOST_SAMPLES]);
    }
    let holds_slices = counts::holds_slices(&session);
    let events = session.reader.events().iter().map(|event| LoggedEvent {
        name: event.name(),
        kind: match event.attr.period() {
            0 => LoggedKind::Counted,
            _ if holds_slices && counts::leads_slices(&event.attr) => LoggedKind::Switches,
            _ => LoggedKind::Sampled,
        },
    });
    let events = events.collect();
    let script = NamedRecording::load(session.clone(), &request, &Bars)?;
    let mut exits: BTreeMap<i32, BTreeMap<usize, u64>> = BTreeMap::new();
    for ThreadCount { thread, read, .. } in session.reads.iter().filter(|_| !holds_slices) {
        let sum = exits.entry(thread.pid).or_default().entry(read.event).or_default();
        *sum = sum.wrapping_add(read.count.value);
    }
    let written = |error| Error::output("the log", error);
    let mut writer = LogWriter::new(form, events, script.places(), exits);
    writer.begin(out).map_err(written)?;
    script.entries(&mut |line| {
        let done = match line {
            ScriptLine::Sample(entry) => writer.sample(out, entry),
            ScriptLine::Record(entry, kind, record) => writer.record(out, entry, kind, record),
            ScriptLine::Dumped(_) | ScriptLine::Torn { .. } => Ok(()),
        };
        done.map_err(written)
    })?;
    writer.finish(out).and_then(|()| out.flush()).map_err(written)?;
    script.warn();
    Ok(())
}
