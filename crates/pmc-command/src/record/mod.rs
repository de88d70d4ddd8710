//! `pmc record`, and the recordings of other commands: prints warnings, progress and a summary.
//!
//! [`args`] are the options, which become a [`RecordRequest`]. [`pmc_recording::recording::record`] carries
//! it out. [`status`] shows progress, and describes the result.

pub mod args;
mod status;

use std::io::Write;
use std::path::PathBuf;

use serde_json::Value as Json;

use self::status::RecordStatusLine;
pub use crate::options::recording_options::RecordDisplay;
use crate::warning::CommandWarning;
use pmc_recording::recording::counting::{CountPlan, Observer};
use pmc_recording::recording::plan::RecordRequest;
use pmc_recording::recording::record::{Recorded, keep_files, record};
use pmc_sys::abi::attr::LARGEST_STACK_COPY;
use pmc_sys::error::{Error, Exit, Result, say};
use pmc_sys::sys::standard_output;
use pmc_text::terminal::Stream;
use pmc_text::text::as_json;
use pmc_text::units;

/// Makes a recording, and prints its summary. `counted` contains the events to count during the recording,
/// and the observer of the counts. Returns the exit status.
pub fn run(
    request: RecordRequest,
    display: RecordDisplay,
    counted: Option<(CountPlan, &mut dyn Observer)>,
) -> Result<Exit> {
    let mut status = RecordStatusLine::new(!display.quiet && request.sample.run_schedule.command.is_empty());
    let stream = request.file.is_stream();
    let path = request.file.path.clone();
    match record(request, counted, &mut status)? {
        Some(recorded) => report(recorded, display, (!stream).then_some(path)),
        None => Ok(Exit::Done),
    }
}

/// Makes a recording, and returns the document of `--json` instead of printing it.
pub fn run_for_summary(request: RecordRequest) -> Result<(Json, Exit)> {
    let Some(recorded) = record(request, None, &mut ())? else { return Ok((Json::Null, Exit::Done)) };
    let document = status::document(&recorded, pmc_sys::sys::clock::process_cpu_ns());
    keep_files(&recorded.result);
    Ok((document, recorded.exit))
}

/// Makes a recording without printing anything. Returns the exit status.
pub fn run_unseen(request: RecordRequest) -> Result<Exit> {
    let Some(recorded) = record(request, None, &mut ())? else { return Ok(Exit::Done) };
    keep_files(&recorded.result);
    recorded.result.failed.map_or(Ok(recorded.exit), Err)
}

/// Prints the summary line; returns the exit status. `path` is the file; `None`: stdout.
fn report(recorded: Recorded, display: RecordDisplay, path: Option<PathBuf>) -> Result<Exit> {
    let run = &recorded.result;
    if run.is_full {
        say::warn(CommandWarning::SizeReached);
    }
    if display.json {
        let document = status::document(&recorded, pmc_sys::sys::clock::process_cpu_ns());
        writeln!(std::io::stdout(), "{}", as_json(&document))
            .map_err(|error| Error::output("the summary of the recording", error))?;
    } else {
        let to = path.as_ref().map_or_else(standard_output::name, |path| path.display().to_string());
        say::note(status::truth(&to, &run.totals, &run.readings));
    }
    if display.perf_summary && !Stream::Error.is_terminal() {
        status::perf_summary(run, path.is_none()).iter().for_each(say::line);
    }
    let Recorded { result: run, exit, lost, no_samples, copied_bytes, .. } = recorded;
    if let Some(reason) = no_samples {
        say::warn(reason);
    }
    if run.kept.samples > 0 {
        say::warn(CommandWarning::CopiesKept { samples: run.kept.samples, compat: run.kept.compat });
    }
    if run.ends.cut * 100 >= run.ends.walked.max(1) {
        let percent = run.ends.cut as f64 / run.ends.walked as f64 * 100.0;
        say::warn(CommandWarning::StacksCut { percent, are_largest: copied_bytes == LARGEST_STACK_COPY });
    }
    if run.yielded_ns > 0 {
        let [off, of] = [run.yielded_ns, run.elapsed_ns].map(|ns| units::duration(ns as f64));
        say::warn(CommandWarning::CountersYielded { off, of });
    }
    if lost > 0 {
        say::warn(CommandWarning::RecordsLost { records: lost });
    }
    if run.totals.truncated > 0 {
        say::warn(CommandWarning::TraceCutOff);
    }
    keep_files(&run);
    if let Some(commands) = run.commands {
        commands.finish();
    }
    run.failed.map_or(Ok(exit), Err)
}
