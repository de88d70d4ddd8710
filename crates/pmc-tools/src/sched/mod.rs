//! `pmc sched`: records what the scheduler does, and shows it as delays, as a history and as a map.
//!
//! [`SchedRecording::latency`] sums up the delays of each task, [`SchedRecording::timehist`] visits each run
//! of a task, and [`SchedRecording::map`] visits each switch.
//!
//! ```text
//!   options ── request
//!                 │
//!   records in time order ── events ── machine (interval engines per task) ── latency, timehist, map
//!                                                                                 │
//!                                                                             text, json
//! ```

mod chains;
mod events;
mod json;
mod latency;
mod machine;
mod map;
mod options;
mod record;
mod replay;
mod tasks;
mod text;
mod timehist;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

pub use options::{MapOptions, SchedGroupOptions, SchedLatencyOptions, SchedViewOptions, TimehistOptions};
pub use record::record_request;

use events::SchedDecoder;
use latency::SchedLatencyRequest;
use map::MapRequest;
use pmc_analysis::analysis::recording_quality;
use pmc_analysis::session::Session;
use pmc_command::pager::PagedOutput;
use pmc_command::progress::Bars;
use pmc_formats::import;
use pmc_sys::error::{Error, Exit, Result};
use text::timehist::TimehistWriter;
use timehist::TimehistRequest;

/// A recording, and the view of it to show.
#[derive(Debug)]
pub struct SchedRequest {
    input: PathBuf,
    view: SchedView,
}

/// What to show.
#[derive(Debug)]
enum SchedView {
    Latency(SchedLatencyRequest),
    Timehist(Box<TimehistRequest>),
    Map(MapRequest),
}

/// Shows a recording.
///
/// # Errors
/// Fails if the recording cannot be read or has no scheduler events, or the output cannot be written.
pub fn show(request: &SchedRequest) -> Result<Exit> {
    let session = Arc::new(Session::open(import::open_recording(&request.input, "scheduler events")?)?);
    let recording = SchedRecording::new(session.clone())?;
    let mut out = PagedOutput::open();
    match &request.view {
        SchedView::Latency(request) => {
            let latency = recording.latency(request)?;
            let print = if request.json { json::latency } else { text::latency::write };
            print(&mut out, &latency, request.limit).map_err(|error| Error::output("the delays", error))?;
        }
        SchedView::Timehist(request) => recording.print_timehist(request, &mut out)?,
        SchedView::Map(request) => {
            let written = |error| Error::output("the map", error);
            recording.map(request, &mut |tasks, line| {
                text::map::write(&mut out, tasks, line, request).map_err(written)
            })?;
        }
    }
    out.finish().map_err(|error| Error::output("the scheduler's events", error))?;
    Ok(recording_quality::warn(&session))
}

/// A recording with scheduler events.
#[derive(Debug)]
struct SchedRecording {
    session: Arc<Session>,
    decoder: SchedDecoder,
}

impl SchedRecording {
    /// # Errors
    /// Fails if the recording has no scheduler events.
    fn new(session: Arc<Session>) -> Result<Self> {
        let decoder = SchedDecoder::new(&session)?;
        Ok(Self { session, decoder })
    }

    fn print_timehist(&self, request: &TimehistRequest, out: &mut dyn Write) -> Result<()> {
        let written = |error| Error::output("the history", error);
        let has_chains = request.chains.is_some() && self.has_chains();
        let mut writer = TimehistWriter::new(request, has_chains, self.cpus());
        if request.lines && !request.json {
            writer.titles(out).map_err(written)?;
        }
        let mut lines = 0;
        let summary = self.timehist(request, &Bars, &mut |tasks, line| {
            lines += usize::from(request.lines);
            match request.json {
                _ if !request.lines || lines > request.limit => Ok(()),
                true => json::timehist(out, tasks, line).map_err(written),
                false => writer.line(out, tasks, line).map_err(written),
            }
        })?;
        match (lines.saturating_sub(request.limit), request.json) {
            (0, _) => {}
            (more, true) => json::omitted(out, more).map_err(written)?,
            (more, false) => {
                writeln!(out, "… and {more} more lines (--limit 0 shows all)").map_err(written)?
            }
        }
        match (request.summary, request.json) {
            (true, true) => json::summary(out, &summary, request.limit).map_err(written),
            (true, false) => writer.summary(out, &summary).map_err(written),
            (false, _) => Ok(()),
        }
    }
}
