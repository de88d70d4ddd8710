//! `pmc latency`: measures the time between two events, live or in a recording.
//!
//! [`rules`] define which events begin and end intervals, and which keys connect them. The [interval
//! engine](pmc_analysis::interval) pairs the events of all CPUs by these keys, in time order.
//!
//! ```text
//!   options, presets ── request
//!                          │
//!          recording ── recorded ──┐
//!                                  ├── meter ── named ──┬── text, json
//!          rings ────── live ──────┘                    └── flame graph, folded stacks
//! ```

mod filter;
mod heat;
mod json;
mod live;
mod meter;
mod named;
mod options;
mod presets;
mod ranges;
mod recorded;
mod request;
mod result;
mod rules;
mod text;

use std::io::{self, Write, stdout};
use std::path::Path;
use std::sync::Arc;

use pmc_analysis::profile::sampled::Profile;
use pmc_analysis::session::Session;
use pmc_command::destination::{Destination, is_standard};
use pmc_formats::export::{ExportContents, ExportFormat, RecordingMetadata};
use pmc_formats::import;
use pmc_sys::error::{AdvisedOption, Error, Exit, Result, say};
use pmc_view::report::ReportLayout;

pub use options::LatencyOptions;
pub use request::LatencyRequest;

use named::NamedLatency;
use request::LatencySource;

/// Measures, and shows the result.
///
/// # Errors
/// Fails if an event cannot be opened or is not in the recording, or if the output cannot be written.
pub fn run(request: &LatencyRequest) -> Result<Exit> {
    request.warnings.iter().cloned().for_each(say::warn);
    let mut is_first = true;
    match &request.source {
        LatencySource::Recording(path, selection) => {
            let session = Arc::new(Session::open(import::open(path)?)?);
            recorded::measure(&session, request, selection, |named| show(request, named, &mut is_first))
        }
        LatencySource::Live(sample) => {
            live::measure(sample, request, |named| show(request, named, &mut is_first))
        }
    }
}

/// Prints the result for one kind of interval, and writes the requested files.
fn show(request: &LatencyRequest, named: &NamedLatency<'_>, is_first: &mut bool) -> Result<()> {
    let is_stdout_taken = request.folded.as_deref().is_some_and(is_standard);
    let is_first = std::mem::replace(is_first, false);
    if !is_stdout_taken {
        print(|out| match request.json {
            true => json::write(out, &named.report),
            false if is_first => text::write(out, &named.report, request.width),
            false => writeln!(out).and_then(|()| text::write(out, &named.report, request.width)),
        })?;
    }
    let files = [(&request.flamegraph, ExportFormat::Svg), (&request.folded, ExportFormat::Folded)];
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
            recording: &RecordingMetadata::default(),
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
