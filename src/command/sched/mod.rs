//! `pmc sched`: records the scheduler's events, and shows delays, histories and maps.
//!
//! `sched record` runs `pmc record` with the scheduler's events, and `sched script` runs `pmc script`. The
//! other subcommands connect a recording, [`SchedRecording`] and the views.

mod plan;

use std::io::Write;
use std::sync::Arc;

pub(super) use plan::{SchedPlan, ShownPlan};
use plan::{SchedView, TimehistPlan};
use pmc_analysis::analysis::recording_quality;
use pmc_analysis::analysis::sched::{SchedRecording, TimehistRequest};
use pmc_analysis::session::Session;
use pmc_command::pager::PagedOutput;
use pmc_command::progress::Bars;
use pmc_formats::import;
use pmc_sys::error::{Error, Exit, Result};
use pmc_view::sched::{self as view, TimehistColumns, TimehistWriter};

/// Shows a recording.
///
/// # Errors
/// Fails if the recording cannot be read or has no scheduler events, or the output cannot be written.
pub(super) fn show(plan: &ShownPlan) -> Result<Exit> {
    let session = Arc::new(Session::open(import::open_recording(&plan.input, "scheduler events")?)?);
    let recording = SchedRecording::new(session.clone())?;
    let mut out = PagedOutput::open();
    match &plan.view {
        SchedView::Latency { request, limit, json } => {
            let latency = recording.latency(request)?;
            let print = if *json { view::latency_json } else { view::latency };
            print(&mut out, &latency, *limit).map_err(|error| Error::output("the delays", error))?;
        }
        SchedView::Timehist(plan) => timehist(&recording, plan, &mut out)?,
        SchedView::Map { request, layout } => {
            let written = |error| Error::output("the map", error);
            recording.map(request, &mut |tasks, line| {
                view::map_line(&mut out, tasks, line, layout).map_err(written)
            })?;
        }
    }
    out.finish().map_err(|error| Error::output("the scheduler's events", error))?;
    Ok(recording_quality::warn(&session))
}

fn timehist(recording: &SchedRecording, plan: &TimehistPlan, out: &mut dyn Write) -> Result<()> {
    let written = |error| Error::output("the history", error);
    let has_chains = plan.request.chains.is_some() && recording.has_chains();
    let request = TimehistRequest {
        chains: plan.request.chains.clone().filter(|_| has_chains),
        ..plan.request.clone()
    };
    let columns = TimehistColumns { cpus: recording.cpus(), chains: has_chains, ..plan.columns.clone() };
    let mut writer = TimehistWriter::new(&columns);
    if plan.lines && !plan.json {
        writer.titles(out).map_err(written)?;
    }
    let mut lines = 0;
    let summary = recording.timehist(&request, &Bars, &mut |tasks, line| {
        lines += usize::from(plan.lines);
        match plan.json {
            _ if !plan.lines || lines > plan.limit => Ok(()),
            true => view::timehist_json(out, tasks, line).map_err(written),
            false => writer.line(out, tasks, line).map_err(written),
        }
    })?;
    match (lines.saturating_sub(plan.limit), plan.json) {
        (0, _) => {}
        (more, true) => view::omitted_json(out, more).map_err(written)?,
        (more, false) => writeln!(out, "… and {more} more lines (--limit 0 shows all)").map_err(written)?,
    }
    match (plan.summary, plan.json) {
        (true, true) => view::summary_json(out, &summary, plan.limit).map_err(written),
        (true, false) => writer.summary(out, &summary).map_err(written),
        (false, _) => Ok(()),
    }
}
