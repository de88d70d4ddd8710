//! Measures intervals as their records arrive, for an unlimited time.

use std::sync::Arc;

use pmc_analysis::analysis::symbols::RecordingSymbols;
use pmc_analysis::session::History;
use pmc_analysis::session::live::LiveHistory;
use pmc_analysis::session::samples::ChainCompleter;
use pmc_command::destination::is_standard;
use pmc_command::warning::lost;
use pmc_perfdata::record::tracepoint::TracingData;
use pmc_perfdata::record::{Layouts, RawRecord, Record, Records, kind, unwound};
use pmc_recording::recording::plan::SamplePlan;
use pmc_recording::recording::stream::{self, RecordHandler};
use pmc_symbols::symbol::SymbolOptions;
use pmc_sys::error::{Advice, Exit, Result, Warning, say};
use pmc_sys::host::Host;
use pmc_sys::sys::process::{self, Streams};

use super::meter::LatencyMeters;
use super::named::NamedLatency;
use super::recorded::lose;
use super::request::LatencyRequest;
use super::rules::{EventRole, IntervalRules};
use super::{json, print, text};

/// Measures until the schedule ends. Then calls `visit` with the result of each kind of
/// interval. Returns the exit status.
///
/// # Errors
/// Fails if an event cannot be opened, lacks a field, or `visit` fails.
pub(super) fn measure(
    sample: &SamplePlan,
    request: &LatencyRequest,
    mut visit: impl FnMut(&NamedLatency<'_>) -> Result<()>,
) -> Result<Exit> {
    let host = Host::live();
    // Keep the command's output out of output that other programs read.
    let streams = match request.json || request.folded.as_deref().is_some_and(is_standard) {
        true => Streams::OutputToError,
        false => Streams::Shared,
    };
    let (mut groups, mut text_of) = stream::groups_by_text(sample, &host)?;
    let rules = || request.intervals.iter().flat_map(|interval| &interval.rules);
    let is_begin = |text| rules().any(|rule| rule.role == EventRole::Begin && rule.text == text);
    let events = groups.iter_mut().flat_map(|(group, _)| &mut group.events);
    for (event, text) in events.zip(&text_of) {
        // Only the stacks of begin events are shown, and it takes time to copy the others.
        if !text.is_some_and(is_begin) {
            event.qualifiers.call_graph = Some("no".to_owned());
        }
    }
    let (mut live, run) = stream::run(sample, &host, groups, streams, |opened| {
        // The events after the sampled ones only track tasks.
        text_of.truncate(opened.sampled);
        text_of.resize(opened.events.len(), None);
        let tracing = stream::tracing_data(&host, &opened.events);
        let bind = |interval: &IntervalRules| {
            let tracing = tracing.as_deref().and_then(TracingData::parse);
            interval.bind(&opened.events, &text_of, tracing)
        };
        let bound = request.intervals.iter().map(bind).collect::<Result<_>>()?;
        Ok(LiveLatency {
            request,
            meters: LatencyMeters::new(bound, request),
            completer: ChainCompleter::new(!request.stacks),
            history: LiveHistory::default(),
            layouts: opened.layouts,
            last_time: 0,
            next_tick: None,
            has_heading: false,
        })
    })?;
    let (start, end) = run.span;
    live.print_slice(end - start)?;
    live.meters.lost_at_least(run.lost);
    let LiveLatency { history, meters, .. } = live;
    let history: &History = history.get();
    let options = SymbolOptions { live: true, ..request.symbols.clone() };
    let mut symbols = RecordingSymbols::new(history, options)?;
    for mut named in NamedLatency::all(history, meters.finish(Some(end)), request, &mut symbols) {
        named.report.elapsed = end - start;
        visit(&named)?;
    }
    if run.lost > 0 {
        say::warn(
            Warning::loss(format!("{}: intervals are missing", lost(run.lost)))
                .advise(Advice::options("measure fewer events, or use larger ring buffers (-m)")),
        );
    }
    Ok(run.exit())
}

/// A measurement in progress.
struct LiveLatency<'a> {
    request: &'a LatencyRequest,
    layouts: Arc<Layouts>,
    history: LiveHistory,
    meters: LatencyMeters,
    completer: ChainCompleter<'static>,
    /// Time of the last sample, used for samples without a time.
    last_time: u64,
    /// When to print the next line (`-I`).
    next_tick: Option<u64>,
    /// Whether the heading of these lines has been printed.
    has_heading: bool,
}

impl LiveLatency<'_> {
    /// Adds a sample. Samples with an unknown id belong to the event `owner`.
    fn sample(&mut self, raw: &RawRecord<'_>, owner: Option<usize>) {
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

    /// Prints the durations since the previous call (`-I`). `until` is the time since the start, in
    /// nanoseconds.
    fn print_slice(&mut self, until: u64) -> Result<()> {
        if self.request.period.is_none() {
            return Ok(());
        }
        self.meters.slices(until).iter().try_for_each(|slice| {
            let is_first = !std::mem::replace(&mut self.has_heading, true);
            print(|out| match self.request.json {
                true => json::write_slice(out, slice),
                false => text::write_slice(out, slice, is_first),
            })
        })
    }
}

impl RecordHandler for LiveLatency<'_> {
    type Note = ();

    const SYNTHESIZES: bool = true;

    fn started(&mut self, now: u64) {
        self.next_tick = self.request.period.map(|period| now + period);
    }

    fn take_synthesized(&mut self, bytes: &[u8], is_last: bool) {
        for raw in Records::new(bytes) {
            if let Some(record) = raw.parse() {
                self.history.take(0, &raw, &record);
            }
        }
        if is_last {
            self.history.complete();
        }
    }

    fn record(&mut self, _: u64, raw: &RawRecord<'_>, owner: Option<usize>, _: Option<()>) -> Result<()> {
        if raw.kind == kind::SAMPLE {
            self.sample(raw, owner);
        } else if let Some(record) = raw.parse() {
            let time = self.layouts.sample_id(raw).time.map_or(0, |time| time.0);
            if matches!(record, Record::Lost(_) | Record::LostSamples(_)) {
                lose(&mut self.meters, &record, time);
            } else {
                self.history.take(time, raw, &record);
            }
        }
        Ok(())
    }

    fn settled(&mut self, horizon: u64, _: &Host) -> Result<bool> {
        if self.history.needs_cleanup() {
            self.meters.follow(&self.history.forget(horizon, process::exists));
        }
        Ok(true)
    }

    fn due(&self) -> Option<u64> {
        self.next_tick
    }

    fn tick(&mut self, now: u64, since: u64) -> Result<()> {
        let Some(period) = self.request.period else { return Ok(()) };
        // If the reader of the output was slow, skip the missed intervals instead of catching up.
        self.next_tick = self.next_tick.map(|at| (at + period).max(now));
        self.print_slice(since)
    }
}
