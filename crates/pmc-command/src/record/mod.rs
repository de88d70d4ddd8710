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
use crate::warning::{counters_yielded, records_lost};
use pmc_recording::recording::counting::{CountPlan, Observer};
use pmc_recording::recording::plan::RecordRequest;
use pmc_recording::recording::record::{Recorded, keep_files, record};
use pmc_sys::abi::attr::LARGEST_STACK_COPY;
use pmc_sys::error::{Advice, Error, Exit, Result, Warning, say};
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
        say::note("the recording has reached --max-size and ends here");
    }
    if display.json {
        let document = status::document(&recorded, pmc_sys::sys::clock::process_cpu_ns());
        writeln!(std::io::stdout(), "{}", as_json(&document))
            .map_err(|error| Error::output("the summary of the recording", error))?;
    } else {
        let to = path.as_ref().map_or_else(standard_output::name, |path| path.display().to_string());
        say::note(status::summary_line(&to, &run.totals, &run.readings));
    }
    if display.perf_summary && !Stream::Error.is_terminal() {
        status::perf_summary(run, path.is_none()).iter().for_each(say::line);
    }
    let Recorded { result: run, exit, lost, no_samples, copied_bytes, .. } = recorded;
    if let Some(reason) = no_samples {
        say::warn(reason);
    }
    if run.kept.samples > 0 {
        say::warn(copies_kept(run.kept.samples, run.kept.compat));
    }
    if run.ends.cut * 100 >= run.ends.walked.max(1) {
        let percent = run.ends.cut as f64 / run.ends.walked as f64 * 100.0;
        let what = format!("{percent:.1}% of the stacks are truncated at the end of the stack copy");
        say::warn(Warning::note(what).advise(match copied_bytes == LARGEST_STACK_COPY {
            false => Advice::options("--call-graph dwarf,65528 copies more of each stack"),
            true => "stack copies cannot be larger; the report shows the code where the stacks end".into(),
        }));
    }
    if run.yielded_ns > 0 {
        say::warn(counters_yielded(run.yielded_ns, run.elapsed_ns));
    }
    if lost > 0 {
        say::warn(records_lost(lost));
    }
    if run.totals.truncated > 0 {
        say::warn(
            Warning::loss("trace data was lost: the AUX buffer overflowed").advise(Advice::options(
                "use a larger AUX buffer (-m RING,AREA), a longer period (-c), or -S",
            )),
        );
    }
    keep_files(&run);
    if let Some(commands) = run.commands {
        commands.finish();
    }
    run.failed.map_or(Ok(exit), Err)
}

/// The note that `samples` contain a copy of the stack; those of `compat` are from 32-bit Arm processes.
fn copies_kept(samples: u64, compat: u64) -> Warning {
    let late = samples - compat;
    let why = match (late, compat) {
        (_, 0) => "they will be unwound when the file is read, because pmc fell behind".to_owned(),
        (0, _) => "their process is 32-bit Arm, which pmc does not unwind".to_owned(),
        (..) => format!(
            "{} will be unwound when the file is read, because pmc fell behind; \
             the others are from a 32-bit Arm process, which pmc does not unwind",
            units::thousands(late)
        ),
    };
    let samples = units::counted(samples, "sample");
    let note = Warning::note(format!("{samples} saved with a copy of the stack: {why}"));
    if late > 0 { note.advise(Advice::options("a lower -F avoids this")) } else { note }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stack_copies_are_attributed_to_32_bit_arm_only_if_such_a_process_was_recorded() {
        let said = |samples, compat| copies_kept(samples, compat).to_string();
        let late = said(7, 0);
        assert!(
            late.contains("7 samples saved") && late.contains("fell behind") && !late.contains("Arm"),
            "{late}"
        );
        let compat = said(7, 7);
        assert!(compat.contains("32-bit Arm") && !compat.contains("fell behind"), "{compat}");
        assert!(!compat.contains("lower -F"), "{compat}");
        let both = said(7, 5);
        assert!(both.contains("2 will be unwound") && both.contains("32-bit Arm"), "{both}");
    }
}
