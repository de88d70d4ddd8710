//! Measures intervals as their records arrive, for an unlimited time.

use std::sync::Arc;

use super::meter::LatencyMeters;
use super::named::NamedLatency;
use super::{IntervalRequest, LatencyRequest, lose};
use crate::analysis::symbols::RecordingSymbols;
use crate::profile::latency::LatencySlice;
use crate::session::History;
use crate::session::live::LiveHistory;
use crate::session::samples::ChainCompleter;
use pmc_perfdata::perfdata::RecordedEvent;
use pmc_perfdata::record::tracepoint::TracingData;
use pmc_perfdata::record::{Layouts, RawRecord, Record, Records, kind, unwound};
use pmc_symbols::symbol::SymbolOptions;
use pmc_sys::error::Result;

/// A measurement in progress.
pub struct LiveLatency {
    request: LatencyRequest,
    layouts: Arc<Layouts>,
    history: LiveHistory,
    meters: LatencyMeters,
    completer: ChainCompleter<'static>,
    /// Time of the last sample, used for samples without a time.
    last_time: u64,
}

impl LiveLatency {
    /// Starts a measurement. `text_of` is the index of each event's text in the rules; `tracing` describes
    /// the tracepoints.
    ///
    /// # Errors
    /// Fails if an event lacks a field, or a filter is invalid.
    pub fn new(
        request: LatencyRequest,
        events: &[RecordedEvent],
        text_of: &[Option<usize>],
        tracing: Option<&[u8]>,
        layouts: Arc<Layouts>,
    ) -> Result<Self> {
        let bind = |interval: &IntervalRequest| {
            interval.rules.bind(events, text_of, tracing.and_then(TracingData::parse))
        };
        let bound = request.intervals.iter().map(bind).collect::<Result<_>>()?;
        Ok(Self {
            meters: LatencyMeters::new(bound, &request),
            completer: ChainCompleter::new(!request.stacks),
            history: LiveHistory::default(),
            layouts,
            last_time: 0,
            request,
        })
    }

    /// Applies synthesized records, which describe the initial state. `is_last` is set for the last batch.
    pub fn take_synthesized(&mut self, bytes: &[u8], is_last: bool) {
        for raw in Records::new(bytes) {
            if let Some(record) = raw.parse() {
                self.history.take(0, &raw, &record);
            }
        }
        if is_last {
            self.history.complete();
        }
    }

    /// Adds a record. Records must be added in time order. Samples with an unknown id belong to the event
    /// `owner`.
    pub fn take(&mut self, raw: &RawRecord<'_>, owner: Option<usize>) {
        if raw.kind != kind::SAMPLE {
            let time = self.layouts.sample_id(raw).time.map_or(0, |time| time.0);
            let Some(record) = raw.parse() else { return };
            if matches!(record, Record::Lost(_) | Record::LostSamples(_)) {
                lose(&mut self.meters, &record, time);
            } else {
                self.history.take(time, raw, &record);
            }
            return;
        }
        let Self { layouts, meters, history, completer, last_time, .. } = self;
        let Some((event, sample)) = layouts.sample_of(raw, owner) else { return };
        let time = sample.time().map_or(*last_time, |time| time.0);
        *last_time = time;
        // A sample that still has its stack copy was not unwound, because samples arrived too fast.
        let is_unwound = !unwound::has_copy(sample.layout().sample_type());
        meters.sample(history.get(), event, &sample, time, || {
            is_unwound.then(|| completer.chain(&sample, &[]).words)
        });
    }

    /// Frees data that is no longer needed, to bound memory. All records before this time must have been
    /// added. `lives` returns whether a process or thread still exists.
    pub fn settle(&mut self, before: u64, lives: impl Fn(i32) -> bool) {
        if self.history.is_burdened() {
            self.meters.follow(&self.history.forget(before, lives));
        }
    }

    /// Raises the number of lost records to at least `count`, for losses that no record reports.
    pub fn lost_at_least(&mut self, count: u64) {
        self.meters.lost_at_least(count);
    }

    /// Returns the durations of each kind of interval since the previous call. `until` is the time since the
    /// start, in nanoseconds.
    pub fn slices(&mut self, until: u64) -> Vec<LatencySlice> {
        self.meters.slices(until)
    }

    /// Ends the measurement at this time, after `elapsed` nanoseconds, and calls `visit` with the result of
    /// each kind of interval.
    ///
    /// # Errors
    /// Fails if the symbolizer cannot be started, or `visit` fails.
    pub fn finish(
        self,
        end: u64,
        elapsed: u64,
        mut visit: impl FnMut(&NamedLatency<'_>) -> Result<()>,
    ) -> Result<()> {
        let Self { request, history, meters, .. } = self;
        let history: &History = history.get();
        let options = SymbolOptions { live: true, ..request.symbols };
        let mut symbols = RecordingSymbols::new(history, options)?;
        meters.finish(Some(end)).into_iter().zip(&request.intervals).try_for_each(|(metered, interval)| {
            let mut named = NamedLatency::new(history, metered, interval, &mut symbols);
            named.report.elapsed = elapsed;
            visit(&named)
        })
    }
}
