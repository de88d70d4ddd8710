//! Measures the time between two events, live or in a recording.
//!
//! [`PairRules`] define which events begin and end intervals, and which keys connect them. The [interval
//! engine](crate::interval) pairs the events of all CPUs by these keys, in time order. The result is a
//! [`NamedLatency`].
//!
//! ```text
//!   recording ── order::records_unwound ──┐
//!                                         ├── LatencyMeter ── NamedLatency: report, stacks
//!   rings ── LiveLatency: side-band ──────┘
//! ```

mod filter;
mod live;
mod meter;
mod named;
mod rules;

use std::sync::Arc;

pub use live::LiveLatency;
pub use named::NamedLatency;
pub use rules::{EventRule, KeySource, PairRole, PairRules};

use super::request::SampleSelection;
use super::unwinding::RecordingUnwinder;
use super::{recording_quality, symbols_of};
use crate::session::Session;
use crate::session::order::{self, SampleUnwinding};
use crate::session::samples::ChainCompleter;
use meter::LatencyMeter;
use pmc_perfdata::record::tracepoint::TracingData;
use pmc_perfdata::record::{Record, Sample, kind};
use pmc_symbols::symbol::SymbolOptions;
use pmc_sys::error::{Error, Exit, Result};

/// What to measure.
#[derive(Debug, Clone)]
pub struct LatencyRequest {
    /// The events.
    pub rules: PairRules,
    /// Whether intervals with the same key nest, as calls of a recursive function do.
    pub nests: bool,
    /// Number of slowest intervals to keep.
    pub slowest: usize,
    /// Whether to add up times by the stacks of the begin events.
    pub stacks: bool,
    /// Whether to keep a heat map.
    pub heat: bool,
    /// Maximum length of a stack.
    pub max_stack: usize,
    /// Which samples of a recording to include.
    pub selection: SampleSelection,
    /// Where to look for symbols.
    pub symbols: SymbolOptions,
}

/// Measures the intervals in a recording, and calls `visit` with the result. Warns about problems with the
/// recording, and returns the exit status.
///
/// # Errors
/// Fails if the recording cannot be read, or lacks the events, their times or their fields.
pub fn of_recording(
    session: &Arc<Session>,
    request: &LatencyRequest,
    visit: impl FnOnce(&NamedLatency<'_>) -> Result<()>,
) -> Result<Exit> {
    let reader = &session.reader;
    let file = reader.path().display().to_string();
    let found = request.rules.find(reader.events(), &file)?;
    if !session.has_time {
        return Err(Error::new(format!("{file}: samples have no timestamps"))
            .why("the time between two events is computed from them")
            .try_this("record without -T- or time=0"));
    }
    let tracing = reader.features().tracing_data.as_ref().and_then(|raw| TracingData::parse(&raw.0));
    let rules = request.rules.bind(reader.events(), &found, tracing)?;
    let mut meter = LatencyMeter::new(rules, request);
    let wanted = request.selection.sample_query(session)?;
    let mut symbols = symbols_of(session, &request.symbols)?;
    let mut unwinder = RecordingUnwinder::new(session, &symbols, request.max_stack, true);
    let wants = |sample: &Sample<'_>, timestamp| wanted.takes_of(session, sample, timestamp);
    let unwinder = unwinder.if_needed().filter(|_| meter.wants_stacks());
    let unwinding = unwinder.map(|unwinder| SampleUnwinding { unwinder, wants: &wants });
    let mut completer = ChainCompleter::new(!request.stacks).joining(&session.deferred);
    let layouts = reader.layouts();
    order::records_unwound(
        session,
        true,
        unwinding,
        |kind| matches!(kind, kind::SAMPLE | kind::LOST | kind::LOST_SAMPLES),
        |raw, place, unwound| {
            if let Some((event, sample)) = layouts.sample(raw) {
                let timestamp = session.timestamp(sample.time().map(|time| time.0), place.position);
                if wants(&sample, timestamp) {
                    meter.sample(&session.history, event, &sample, timestamp, || {
                        Some(completer.chain(&sample, unwound).words)
                    });
                }
            } else if let Some(record) = raw.parse() {
                let time = layouts.sample_id(raw).time.map_or(0, |time| time.0);
                match record {
                    // The losses that `LOST` records report, again.
                    Record::LostSamples(_) => meter.lose(time, 0),
                    _ => lose(&mut meter, &record, time),
                }
            }
            Ok::<(), Error>(())
        },
    )?;
    meter.lost_at_least(session.facts.lost_samples.max(session.facts.lost_by_events));
    let named =
        NamedLatency::new(&session.history, meter.finish(None), &request.rules, request.nests, &mut symbols);
    visit(&named)?;
    recording_quality::warn_of_names(symbols.failures());
    Ok(recording_quality::warn(session))
}

/// Counts the losses that a record reports.
fn lose(meter: &mut LatencyMeter, record: &Record<'_>, time: u64) {
    match record {
        Record::Lost(lost) => meter.lose(time, lost.lost),
        Record::LostSamples(lost) => meter.lose(time, *lost),
        _ => {}
    }
}
