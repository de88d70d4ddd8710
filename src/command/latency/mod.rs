//! `pmc latency`: measures the time between two events.
//!
//! ```text
//!   plan ──┬── recording ── latency::of_recording ──┬── view: text, JSON
//!          └── stream: rings ── LiveLatency ────────┴── flame graph, folded stacks
//! ```
//! [`presets`] and [`plan`] interpret the options.

mod plan;
mod presets;

use std::io::{self, Write, stdout};
use std::path::Path;
use std::sync::Arc;

pub(super) use self::plan::LatencyPlan;
use self::plan::LatencySource;
use pmc_analysis::analysis::latency::{self, LiveLatency, NamedLatency, PairRole};
use pmc_analysis::profile::sampled::Profile;
use pmc_analysis::session::Session;
use pmc_command::destination::{Destination, is_standard};
use pmc_command::warning::CommandWarning;
use pmc_formats::export::{ExportContents, ExportFormat, RecordingCircumstances};
use pmc_formats::import;
use pmc_perfdata::record::RawRecord;
use pmc_recording::recording::stream::{self, RecordHandler};
use pmc_sys::error::{AdvisedOption, Error, Exit, Result, say};
use pmc_sys::host::Host;
use pmc_sys::sys::process::{self, Streams};
use pmc_view::report::ReportLayout;

/// Runs the command.
///
/// # Errors
/// Fails if an event cannot be opened or is not in the recording, or if the output cannot be written.
pub(super) fn run(plan: &LatencyPlan) -> Result<Exit> {
    plan.warnings.iter().cloned().for_each(say::warn);
    let sample = match &plan.source {
        LatencySource::Recording(path) => {
            let session = Arc::new(Session::open(import::open(path)?)?);
            let mut is_first = true;
            return latency::of_recording(&session, &plan.request, |named| show(plan, named, &mut is_first));
        }
        LatencySource::Live(sample) => sample,
    };
    let host = Host::live();
    // Keep the command's output out of output that other programs read.
    let streams = match plan.json || plan.folded.as_deref().is_some_and(is_standard) {
        true => Streams::OutputToError,
        false => Streams::Shared,
    };
    let (mut groups, mut text_of) = stream::groups_by_text(sample, &host)?;
    let rules = || plan.request.intervals.iter().flat_map(|interval| &interval.rules.rules);
    let is_begin = |text| rules().any(|rule| rule.role == PairRole::Begin && rule.text == text);
    let events = groups.iter_mut().flat_map(|(group, _)| &mut group.events);
    for (event, text) in events.zip(&text_of) {
        // Only the stacks of begin events are shown, and it takes time to copy the others.
        if !text.is_some_and(is_begin) {
            event.qualifiers.call_graph = Some("no".to_owned());
        }
    }
    let (mut stream, run) = stream::run(sample, &host, groups, streams, |opened| {
        // The events after the sampled ones only track tasks.
        text_of.truncate(opened.sampled);
        text_of.resize(opened.events.len(), None);
        let tracing = stream::tracing_data(&host, &opened.events);
        let request = plan.request.clone();
        let measured =
            LiveLatency::new(request, &opened.events, &text_of, tracing.as_deref(), opened.layouts)?;
        Ok(LatencyStream { plan, measured, next_tick: None, has_heading: false })
    })?;
    let (start, end) = run.span;
    stream.print_slice(end - start)?;
    let mut measured = stream.measured;
    measured.lost_at_least(run.lost);
    let mut is_first = true;
    measured.finish(end, end - start, |named| show(plan, named, &mut is_first))?;
    if run.lost > 0 {
        say::warn(CommandWarning::IntervalsLost { records: run.lost });
    }
    Ok(run.exit())
}

/// Prints the result for one kind of interval, and writes the requested files.
fn show(plan: &LatencyPlan, named: &NamedLatency<'_>, is_first: &mut bool) -> Result<()> {
    let is_stdout_taken = plan.folded.as_deref().is_some_and(is_standard);
    let is_first = std::mem::replace(is_first, false);
    if !is_stdout_taken {
        print(|out| match plan.json {
            true => pmc_view::latency::write_json(out, &named.report),
            false if is_first => pmc_view::latency::write(out, &named.report, plan.layout),
            false => writeln!(out).and_then(|()| pmc_view::latency::write(out, &named.report, plan.layout)),
        })?;
    }
    let files = [(&plan.flamegraph, ExportFormat::Svg), (&plan.folded, ExportFormat::Folded)];
    for (path, format) in files {
        if let Some(path) = path {
            export(path, format, named)?;
        }
    }
    Ok(())
}

fn print(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let mut out = io::BufWriter::new(stdout().lock());
    write(&mut out).and_then(|()| out.flush()).map_err(|error| Error::output("the durations", error))
}

fn export(path: &Path, format: ExportFormat, named: &NamedLatency<'_>) -> Result<()> {
    let to = Destination { path, option: AdvisedOption::ExportFile, keeps: false };
    named.with_stacks(|stacks| {
        let contents = ExportContents {
            stacks,
            event: 0,
            answer: &Profile::default(),
            layout: &ReportLayout::default(),
            title: "pmc latency",
            recording: &RecordingCircumstances::default(),
            listings: &[],
            before: None,
        };
        let written = |error| Error::output(path.display(), error);
        to.write(|out| pmc_formats::export::write(out, format, &contents).map_err(written))
    })?;
    if to.is_file() {
        say::note(format!("{} is written", path.display()));
    }
    Ok(())
}

/// Passes records from the rings to the measurement.
struct LatencyStream<'a> {
    plan: &'a LatencyPlan,
    measured: LiveLatency,
    next_tick: Option<u64>,
    /// Whether the heading of `-I` has been printed.
    has_heading: bool,
}

impl LatencyStream<'_> {
    /// Prints the durations since the previous call (`-I`).
    fn print_slice(&mut self, since: u64) -> Result<()> {
        if self.plan.interval.is_none() {
            return Ok(());
        }
        self.measured.slices(since).iter().try_for_each(|slice| {
            let is_first = !std::mem::replace(&mut self.has_heading, true);
            print(|out| match self.plan.json {
                true => pmc_view::latency::write_slice_json(out, slice),
                false => pmc_view::latency::write_slice(out, slice, is_first),
            })
        })
    }
}

impl RecordHandler for LatencyStream<'_> {
    type Note = ();

    const SYNTHESIZES: bool = true;

    fn started(&mut self, now: u64) {
        self.next_tick = self.plan.interval.map(|interval| now + interval);
    }

    fn take_synthesized(&mut self, bytes: &[u8], is_last: bool) {
        self.measured.take_synthesized(bytes, is_last);
    }

    fn record(&mut self, _: u64, raw: &RawRecord<'_>, owner: Option<usize>, _: Option<()>) -> Result<()> {
        self.measured.take(raw, owner);
        Ok(())
    }

    fn settled(&mut self, horizon: u64, _: &Host) -> Result<bool> {
        self.measured.settle(horizon, process::exists);
        Ok(true)
    }

    fn due(&self) -> Option<u64> {
        self.next_tick
    }

    fn tick(&mut self, now: u64, since: u64) -> Result<()> {
        let Some(interval) = self.plan.interval else { return Ok(()) };
        // If the reader of the output was slow, skip the missed intervals instead of catching up.
        self.next_tick = self.next_tick.map(|at| (at + interval).max(now));
        self.print_slice(since)
    }
}
