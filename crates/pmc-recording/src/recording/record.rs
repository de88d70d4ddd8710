//! Makes a recording for a [`RecordRequest`]: opens the events, starts the command, and writes the file.
//!
//! ```text
//! RecordRequest ── open: rings ──► PreparedRecording ──► one file, or several in turn ──► Recorded
//! ```
//! Prints warnings, and passes progress to a [`StatusLine`]. The caller prints the result.

use super::warning::files_not_kept;
use pmc_events::counter::request::sampling::CallGraph;
use pmc_perfdata::perfdata::RecordedEvent;
use pmc_sys::error::{AdvisedOption, Error, Exit, Result, Warning, say};
use pmc_sys::host::Host;
use pmc_sys::sys::process::Streams;
use pmc_sys::sys::signal;
use pmc_text::terminal::Stream;

use super::attached::HandedOverEntry;
use super::control::Control;
use super::counting::{CountPlan, Observer};
use super::file::features;
use super::file::output::{OutputEvents, RecordOutput};
use super::file::recorder::{PreparedRecording, StatusLine};
use super::file::result::{RecordingResult, lost};
use super::output_pipe::OutputPipe;
use super::plan::{BuildIdChoice, RecordRequest};
use super::reservation::reserve;
use super::sources::{self, RecordSources};
use super::{launch, no_samples, open, targets, trace};
use crate::persistent::client::find;

/// A recording that was made.
pub struct Recorded {
    /// The recorded events.
    pub events: Vec<RecordedEvent>,
    /// Totals, files and the way the recording ended.
    pub result: RecordingResult,
    /// The exit status: the command's, if it ended the recording.
    pub exit: Exit,
    /// Number of lost records.
    pub lost: u64,
    /// If nothing was sampled: the reason.
    pub no_samples: Option<Warning>,
    /// Maximum number of bytes in a stack copy.
    pub copied_bytes: u32,
}

/// Makes a recording. `counted` contains the events to count meanwhile, and the observer of the counts.
/// Returns `None` for a dry run.
///
/// # Errors
/// Fails if a request of the kernel fails, or the file cannot be created. A recording that fails later is
/// returned, because its file contains everything recorded so far; see [`RecordingResult::failed`].
pub fn record(
    request: RecordRequest,
    counted: Option<(CountPlan, &mut dyn Observer)>,
    status: &mut dyn StatusLine,
) -> Result<Option<Recorded>> {
    let RecordRequest { mut sample, mut file, control, realtime, attach_to, hides_output, dry_run } = request;
    let host = Host::live();
    if file.is_stream() && Stream::Output.is_terminal() {
        return Err(Error::usage("a recording is binary, and standard output is a terminal").try_option(
            AdvisedOption::Recording,
            "{option} FILE, or {option} - with a pipe: pmc record -o - … | perf script -i -",
        ));
    }
    open::check_frequency(&mut sample, &host)?;
    let entry = attach_to.map(|name| find(&name, &host)).transpose()?;
    let mut attached = entry
        .map(|(directory, entry)| HandedOverEntry::ask(directory, entry, &mut sample, &file))
        .transpose()?;
    let mut groups = if attached.is_some() { Vec::new() } else { open::groups(&sample, &host)? };
    trace::adjust_to_trace(&mut sample, &mut groups, &host)?;
    if sample.trace.is_some() && file.build_ids == BuildIdChoice::Hit {
        // Store the build IDs of all files, because a trace must be decoded to find out which files it passes
        // through.
        file.build_ids = BuildIdChoice::All;
    }
    sources::adjust_to_held_events(&mut sample, &groups, &host)?;
    targets::include_descendants(&mut sample.scope, groups.iter().flat_map(|(group, _)| &group.events))?;
    let mut prepared = reserve(sample.reserve, groups.iter().map(|(group, _)| group), &host)?;
    let signals = launch::signals(&[signal::USR1, signal::USR2])?;
    let mut control = control.as_ref().map(Control::open).transpose()?;
    // If the recording is a stream, only pmc may write to it, because the reader would parse the command's
    // output as records.
    let hidden = hides_output.then(|| OutputPipe::open(None)).transpose();
    let hidden = hidden.map_err(|error| Error::io("making a pipe", error))?;
    let streams = match &hidden {
        Some(pipe) => pipe.streams(),
        None if file.is_stream() => Streams::OutputToError,
        None => Streams::Shared,
    };
    let held = launch::hold_for(&sample.run_schedule, streams)?;
    let (sources, threads) = match &mut attached {
        Some(attached) => attached.take(&sample.scope, &host)?,
        None => RecordSources::open(&sample, &host, groups, held.as_ref())?,
    };
    let triggers = file.rotates_at.as_deref();
    let triggers =
        triggers.map(|text| open::open_triggers(text, &sample, &host, held.as_ref())).transpose()?;
    let events = sources.events();
    let written = OutputEvents::new(&sample, events.clone());
    if dry_run {
        return Ok(None);
    }
    let features = features::at_the_start(&host, &sources.groups(), &written.written);
    let (max_stack, clock) = (sample.options.max_stack, sample.options.clock);
    let output = RecordOutput::create(&file, max_stack, written, features, sources.owners(), clock)?;
    // The command has already been forked and the unwinding thread has been started, so both keep their
    // normal priority.
    open::run_in_real_time(realtime)?;
    let recording = PreparedRecording {
        attached,
        host: &host,
        plan: &sample,
        file: &file,
        sources,
        triggers,
        threads,
        output,
        held,
        signals: &signals,
        control: control.as_mut(),
        watcher: prepared.watcher.as_mut(),
        status,
        // Rebuild the option, because the observer's lifetime is longer than this struct's.
        counted: match counted {
            Some((counted, observer)) => Some((counted, observer)),
            None => None,
        },
    };
    let result = recording.run();
    hidden.into_iter().for_each(OutputPipe::close);
    say::wipe_status();
    drop(signals);
    let result = result?;
    let lost = lost(&result.totals, &result.readings);
    Ok(Some(Recorded {
        exit: result.exit(!sample.run_schedule.command.is_empty()),
        no_samples: no_samples::reason(&sample, &events, &result, lost),
        copied_bytes: sample.options.call_graph.map_or(0, CallGraph::copied_bytes),
        events,
        result,
        lost,
    }))
}

/// Checks whether the events of a recording exist.
///
/// # Errors
/// Fails if one does not.
pub fn check_events(request: &RecordRequest) -> Result<()> {
    open::groups(&request.sample, &Host::live()).map(|_| ())
}

/// Stores the sampled program files in the build-id cache. The recording is complete even if this fails.
pub fn keep_files(result: &RecordingResult) {
    if result.failed.is_none() && !result.identified.is_empty() {
        let kept = features::keep(&result.identified);
        kept.unwrap_or_else(|error| say::warn(files_not_kept(&error)));
    }
}
