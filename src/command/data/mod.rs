//! `pmc data convert`: opens a recording, symbolizes and sorts its samples, and writes one JSON document.

mod plan;

use std::sync::Arc;

pub(super) use plan::DataPlan;

use pmc_analysis::analysis::header;
use pmc_analysis::analysis::script::{NamedRecording, ScriptLine};
use pmc_analysis::session::Session;
use pmc_command::progress::Bars;
use pmc_formats::import;
use pmc_sys::error::{Error, Exit, Result};
use pmc_view::script::perf_json;

/// Runs the command.
///
/// # Errors
/// Fails if the recording cannot be read, or the document cannot be written.
pub(super) fn run(plan: &DataPlan) -> Result<Exit> {
    let session = Arc::new(Session::open(import::open(&plan.input)?)?);
    let shift = if plan.time_of_day { plan::time_of_day(&session.reader)? } else { 0 };
    let script = NamedRecording::load(session.clone(), &plan.request, &Bars)?;
    let facts = header::for_conversion(&session.reader);
    let written = |error| Error::output(plan.output.display(), error);
    plan.destination().write(|out| {
        perf_json::begin(out, &facts).map_err(written)?;
        let mut is_first = true;
        script.entries(&mut |line| match line {
            ScriptLine::Sample(entry) => {
                let first = std::mem::take(&mut is_first);
                perf_json::sample(out, entry, script.places(), shift, first).map_err(written)
            }
            _ => Ok(()),
        })?;
        perf_json::end(out).map_err(written)
    })?;
    Ok(script.warn())
}
