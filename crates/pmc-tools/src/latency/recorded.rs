//! Measures the intervals in a recording.

use std::sync::Arc;

use pmc_analysis::analysis::request::SampleSelection;
use pmc_analysis::analysis::unwinding::RecordingUnwinder;
use pmc_analysis::analysis::{recording_quality, symbols_of};
use pmc_analysis::session::Session;
use pmc_analysis::session::order::{self, SampleUnwinding};
use pmc_analysis::session::samples::ChainCompleter;
use pmc_perfdata::record::tracepoint::TracingData;
use pmc_perfdata::record::{Record, Sample, kind};
use pmc_sys::error::{Error, Exit, Result};

use super::meter::LatencyMeters;
use super::named::NamedLatency;
use super::request::LatencyRequest;
use super::rules::IntervalRules;

/// Measures the intervals in a recording, and calls `visit` with the result of each kind. Warns about
/// problems with the recording, and returns the exit status.
///
/// # Errors
/// Fails if the recording cannot be read, or lacks the events, their times or their fields.
pub(super) fn measure(
    session: &Arc<Session>,
    request: &LatencyRequest,
    selection: &SampleSelection,
    visit: impl FnMut(&NamedLatency<'_>) -> Result<()>,
) -> Result<Exit> {
    let reader = &session.reader;
    let file = reader.path().display().to_string();
    let find = |rules: &IntervalRules| rules.find(&request.texts, reader.events(), &file);
    let found = request.intervals.iter().map(find).collect::<Result<Vec<_>>>()?;
    if !session.has_time {
        return Err(Error::new(format!("{file}: samples have no timestamps"))
            .why("the time between two events is computed from them")
            .try_options("record without -T- or time=0"));
    }
    let tracing = || reader.features().tracing_data.as_ref().and_then(|raw| TracingData::parse(&raw.0));
    let found = request.intervals.iter().zip(&found);
    let bound = found.map(|(rules, text_of)| rules.bind(reader.events(), text_of, tracing()));
    let mut meters = LatencyMeters::new(bound.collect::<Result<_>>()?, request);
    let query = selection.sample_query(session)?;
    let mut symbols = symbols_of(session, &request.symbols)?;
    let mut unwinder = RecordingUnwinder::new(session, &symbols, request.max_stack, true);
    let selects = |sample: &Sample<'_>, timestamp| query.accepts_sample_of(session, sample, timestamp);
    let unwinder = unwinder.if_needed().filter(|_| request.stacks);
    let unwinding = unwinder.map(|unwinder| SampleUnwinding { unwinder, wants: &selects });
    let mut completer = ChainCompleter::new(!request.stacks).joining(&session.deferred);
    let layouts = reader.layouts();
    order::records_unwound(
        session,
        true,
        unwinding,
        |kind| matches!(kind, kind::SAMPLE | kind::LOST | kind::LOST_SAMPLES),
        |raw, at, unwound| {
            if let Some((event, sample)) = layouts.sample(raw) {
                let timestamp = session.timestamp(sample.time().map(|time| time.0), at.position);
                if selects(&sample, timestamp) {
                    meters.sample(&session.history, event, &sample, timestamp, || {
                        Some(completer.chain(&sample, unwound).words)
                    });
                }
            } else if let Some(record) = raw.parse() {
                let time = layouts.sample_id(raw).time.map_or(0, |time| time.0);
                match record {
                    // The losses that `LOST` records report, again.
                    Record::LostSamples(_) => meters.lose(time, 0),
                    _ => lose(&mut meters, &record, time),
                }
            }
            Ok::<(), Error>(())
        },
    )?;
    meters.lost_at_least(recording_quality::lost(session));
    let named = NamedLatency::all(&session.history, meters.finish(None), request, &mut symbols);
    named.iter().try_for_each(visit)?;
    recording_quality::warn_of_names(symbols.failures());
    Ok(recording_quality::warn(session))
}

/// Counts the losses that a record reports.
pub(super) fn lose(meters: &mut LatencyMeters, record: &Record<'_>, time: u64) {
    match record {
        Record::Lost(lost) => meters.lose(time, lost.lost),
        Record::LostSamples(lost) => meters.lose(time, *lost),
        _ => {}
    }
}
