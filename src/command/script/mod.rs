//! `pmc script`: opens a recording, symbolizes and sorts its records, and prints each record.

mod dump;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use pmc_analysis::analysis::counts::{self, CounterTotal, CountsEvent, RecordedCounts, ThreadCounts};
use pmc_analysis::analysis::script::{NamedRecording, ScriptLine, ScriptRequest};
use pmc_analysis::analysis::{has_chains, header, recording_quality};
use pmc_analysis::session::Session;
use pmc_command::pager::PagedOutput;
use pmc_command::progress::Bars;
use pmc_formats::import;
use pmc_perfdata::perfdata::Reader;
use pmc_perfdata::perfdata::feature::ClockData;
use pmc_sys::error::{Error, Exit, Result, say};
use pmc_text::units::thousands;
use pmc_view::script::counts::CountLine;
use pmc_view::script::{ScriptLayout, ScriptOutput, ScriptWriter};

/// Runs the command.
///
/// # Errors
/// Fails if the recording cannot be read, or the output cannot be written.
pub(super) fn run(input: &Path, request: &ScriptRequest, output: &ScriptOutput) -> Result<Exit> {
    let reader = import::open(input)?;
    let mut out = PagedOutput::open();
    let written = |error| Error::output("the samples and records", error);
    if output.header {
        pmc_view::header::write(&mut out, &header::read(&reader)).map_err(written)?;
    }
    if output.header_only {
        return out.finish().map(|()| Exit::Done).map_err(written);
    }
    let session = Arc::new(Session::open(reader)?);
    if counts::holds_counts(&session) {
        print_counts(&session, output, &mut out)?;
        out.finish().map_err(written)?;
        return Ok(recording_quality::warn(&session));
    }
    let script = NamedRecording::load(session.clone(), request, &Bars)?;
    let layout = layout_of(request, output, &script, &session.reader);
    if output.per_event {
        dump::write(&script, &layout, input)?;
        return Ok(script.warn());
    }
    let read_source = Box::new(|module, path: &str| script.source(module, path));
    let mut writer = ScriptWriter::new(&layout, script.places(), read_source);
    let mut lines = 0;
    script.entries(&mut |line| {
        lines += 1;
        match line {
            _ if lines > output.limit => Ok(()),
            ScriptLine::Sample(entry) => writer.write(&mut out, entry),
            ScriptLine::Record(entry, kind, record) => writer.write_record(&mut out, entry, kind, record),
            ScriptLine::Dumped(record) => writer.write_dumped(&mut out, record),
            ScriptLine::Torn { offset, file, words } => writer.write_torn(&mut out, offset, file, words),
        }
        .map_err(written)
    })?;
    writer.finish(&mut out).map_err(written)?;
    report_omitted(output, lines, &mut out)?;
    out.finish().map_err(written)?;
    Ok(script.warn())
}

/// Returns the layout, with the parts that depend on the recording.
fn layout_of(
    request: &ScriptRequest,
    output: &ScriptOutput,
    script: &NamedRecording<'_>,
    reader: &Reader,
) -> ScriptLayout {
    let clock = reader.features().clock_data.as_ref();
    ScriptLayout {
        fields: script.fields().to_vec(),
        events: reader.events().iter().map(|event| event.name()).collect(),
        wall: clock.map(ClockData::to_wall_ns),
        has_chains: request.callers && has_chains(reader),
        is_aarch64: reader.features().arch.as_deref() == Some("aarch64"),
        ..output.layout.clone()
    }
}

/// Tells how many of `lines` samples and records were not printed. Programs that parse perf's text do not
/// expect such a line on standard output.
fn report_omitted(output: &ScriptOutput, lines: u64, out: &mut dyn Write) -> Result<()> {
    match (lines.saturating_sub(output.limit), output.layout.json) {
        (0, _) => {}
        (more, true) => pmc_view::script::omitted_json(out, more)
            .map_err(|error| Error::output("the number of omitted samples", error))?,
        (more, false) => {
            say::note(format!("{} more samples and records (--limit 0 shows all)", thousands(more)))
        }
    }
    Ok(())
}

/// Prints the counts in a recording that `stat record` made, round by round.
fn print_counts(session: &Session, output: &ScriptOutput, out: &mut dyn Write) -> Result<()> {
    counts::check_rounds(session)?;
    let recorded = RecordedCounts::load(session, false)?;
    let written = |error| Error::output("the counts", error);
    if !output.layout.json {
        pmc_view::script::counts::titles(out).map_err(written)?;
    }
    let print =
        if output.layout.json { pmc_view::script::counts::json } else { pmc_view::script::counts::line };
    let mut lines = 0;
    let mut line = |tid, at_ns, event: usize, cpu, count| {
        // A recording may also contain events that only provide records about tasks. `recorded.events` does
        // not include these.
        let Some(CountsEvent { name: event, .. }) = recorded.events.get(event) else { return Ok(()) };
        lines += 1;
        if lines > output.limit {
            return Ok(());
        }
        print(out, &CountLine { cpu, tid, count, at_ns, event }).map_err(written)
    };
    for ThreadCounts { thread, at_ns, counts } in &recorded.exits {
        for (&event, &count) in counts {
            line(Some(thread.tid as u32), *at_ns, event, None, count)?;
        }
    }
    recorded.rounds(session, &mut |round| {
        for &CounterTotal { event, tid, cpu, count } in round.totals {
            line(tid, round.at_ns, event, cpu, count)?;
        }
        Ok(())
    })?;
    report_omitted(output, lines, out)
}
