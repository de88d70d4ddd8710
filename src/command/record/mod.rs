//! `pmc record`: writes samples to a file that pmc and perf can read.
//!
//! ```text
//! plan ── recording: rings ──► one file, or several in turn ──► summary line
//! ```
//! [`plan`] interprets the options, [`recording`](pmc_recording::recording) records, and [`status`] shows
//! progress.

pub(in crate::command) mod plan;
mod status;

use std::io::Write;

use serde_json::Value as Json;

pub(super) use self::plan::RecordPlan;
use self::status::RecordStatusLine;
use pmc_command::warning::CommandWarning;
use pmc_events::counter::request::sampling::CallGraph;
use pmc_perfdata::perfdata::RecordedEvent;
use pmc_recording::recording::attached::HandedOverEntry;
use pmc_recording::recording::control::Control;
use pmc_recording::recording::counting::{CountPlan, Observer};
use pmc_recording::recording::file::features;
use pmc_recording::recording::file::output::{OutputEvents, RecordOutput};
use pmc_recording::recording::file::recorder::PreparedRecording;
use pmc_recording::recording::file::result::{RecordingResult, lost};
use pmc_recording::recording::output_pipe::OutputPipe;
use pmc_recording::recording::plan::BuildIdChoice;
use pmc_recording::recording::reservation::reserve;
use pmc_recording::recording::sources::{self, RecordSources};
use pmc_recording::recording::warning::RecordingWarning;
use pmc_recording::recording::{launch, no_samples, open, targets, trace};
use pmc_sys::abi::attr::LARGEST_STACK_COPY;
use pmc_sys::error::{AdvisedOption, Error, Exit, Result, say};
use pmc_sys::host::Host;
use pmc_sys::sys::process::Streams;
use pmc_sys::sys::signal;
use pmc_sys::sys::standard_output;
use pmc_text::terminal::Stream;
use pmc_text::text::as_json;
use pmc_text::units;

/// Runs the command. `counted` contains the events to count during the recording, and the observer of the
/// counts.
pub(super) fn run(mut plan: RecordPlan, counted: Option<(CountPlan, &mut dyn Observer)>) -> Result<Exit> {
    match measure(&mut plan, counted)? {
        Some((sampled, run)) => report(&plan, &sampled, run),
        None => Ok(Exit::Done),
    }
}

/// Makes a recording, and returns the document of `--json` instead of printing it.
pub(super) fn run_for_summary(mut plan: RecordPlan) -> Result<(Json, Exit)> {
    let Some((sampled, run)) = measure(&mut plan, None)? else { return Ok((Json::Null, Exit::Done)) };
    let exit = run.exit(!plan.sample.run_schedule.command.is_empty());
    let reason = no_samples::reason(&plan.sample, &sampled, &run, lost(&run.totals, &run.readings));
    let own_cpu = pmc_sys::sys::clock::process_cpu_ns();
    let document = status::document(&run, &sampled, reason.as_ref(), own_cpu, exit);
    keep_files(&run);
    Ok((document, exit))
}

/// Checks whether the events of a recording exist.
pub(super) fn check_events(plan: &RecordPlan) -> Result<()> {
    open::groups(&plan.sample, &Host::live()).map(|_| ())
}

/// Makes a recording without printing anything. Returns the exit status.
pub(super) fn run_unseen(mut plan: RecordPlan) -> Result<Exit> {
    let Some((_, run)) = measure(&mut plan, None)? else { return Ok(Exit::Done) };
    let exit = run.exit(!plan.sample.run_schedule.command.is_empty());
    keep_files(&run);
    run.failed.map_or(Ok(exit), Err)
}

/// Stores the program files in the build-id cache. The recording is complete even if this fails.
fn keep_files(run: &RecordingResult) {
    if run.failed.is_none() && !run.identified.is_empty() {
        let kept = features::keep(&run.identified);
        kept.unwrap_or_else(|error| say::warn(RecordingWarning::FilesNotKept { why: error.headline() }));
    }
}

/// Makes a recording. Returns its events and result, or `None` if the plan is a dry run.
fn measure(
    plan: &mut RecordPlan,
    counted: Option<(CountPlan, &mut dyn Observer)>,
) -> Result<Option<(Vec<RecordedEvent>, RecordingResult)>> {
    let host = Host::live();
    if plan.file.is_stream() && Stream::Output.is_terminal() {
        return Err(Error::usage("a recording is binary, and standard output is a terminal").try_option(
            AdvisedOption::Recording,
            "{option} FILE, or {option} - with a pipe: pmc record -o - … | perf script -i -",
        ));
    }
    plan.warnings.drain(..).for_each(say::warn);
    open::check_frequency(&mut plan.sample, &host)?;
    let attached = plan.attached.take();
    let mut attached = attached
        .map(|(directory, entry)| HandedOverEntry::ask(directory, entry, &mut plan.sample, &plan.file))
        .transpose()?;
    let mut groups = if attached.is_some() { Vec::new() } else { open::groups(&plan.sample, &host)? };
    trace::adjust_to_trace(&mut plan.sample, &mut groups, &host)?;
    if plan.sample.trace.is_some() && plan.file.build_ids == BuildIdChoice::Hit {
        // Store the build IDs of all files, because a trace must be decoded to find out which files it passes
        // through.
        plan.file.build_ids = BuildIdChoice::All;
    }
    sources::adjust_to_held_events(&mut plan.sample, &groups, &host)?;
    targets::include_descendants(&mut plan.sample.scope, groups.iter().flat_map(|(group, _)| &group.events))?;
    let mut prepared = reserve(plan.sample.reserve, groups.iter().map(|(group, _)| group), &host)?;
    let signals = launch::signals(&[signal::USR1, signal::USR2])?;
    let mut control = plan.control.as_deref().map(Control::open).transpose()?;
    // If the recording is a stream, only pmc may write to it, because the reader would parse the command's
    // output as records.
    let hidden = plan.hides_output.then(|| OutputPipe::open(None)).transpose();
    let hidden = hidden.map_err(|error| Error::io("making a pipe", error))?;
    let streams = match &hidden {
        Some(pipe) => pipe.streams(),
        None if plan.file.is_stream() => Streams::OutputToError,
        None => Streams::Shared,
    };
    let held = launch::hold_for(&plan.sample.run_schedule, streams)?;
    let (sources, threads) = match &mut attached {
        Some(attached) => attached.take(&plan.sample.scope, &host)?,
        None => RecordSources::open(&plan.sample, &host, groups, held.as_ref())?,
    };
    let triggers = plan.file.rotates_at.as_deref();
    let triggers =
        triggers.map(|text| open::open_triggers(text, &plan.sample, &host, held.as_ref())).transpose()?;
    let sampled = sources.events();
    let events = OutputEvents::new(&plan.sample, sampled.clone());
    if plan.dry_run {
        return Ok(None);
    }
    let features = features::at_the_start(&host, &sources.groups(), &events.written);
    let (max_stack, clock) = (plan.sample.options.max_stack, plan.sample.options.clock);
    let output = RecordOutput::create(&plan.file, max_stack, events, features, sources.owners(), clock)?;
    // The command has already been forked and the unwinding thread has been started, so both keep their
    // normal priority.
    open::run_in_real_time(plan.realtime)?;
    let mut status = RecordStatusLine::new(!plan.quiet && plan.sample.run_schedule.command.is_empty());
    let recording = PreparedRecording {
        attached,
        host: &host,
        plan: &plan.sample,
        file: &plan.file,
        sources,
        triggers,
        threads,
        output,
        held,
        signals: &signals,
        control: control.as_mut(),
        watcher: prepared.watcher.as_mut(),
        status: &mut status,
        // Rebuild the option, because the observer's lifetime is longer than this struct's.
        counted: match counted {
            Some((counted, observer)) => Some((counted, observer)),
            None => None,
        },
    };
    let run = recording.run();
    hidden.into_iter().for_each(OutputPipe::close);
    say::wipe_status();
    drop(signals);
    Ok(Some((sampled, run?)))
}

/// Prints the summary line; returns the exit status.
fn report(plan: &RecordPlan, events: &[RecordedEvent], run: RecordingResult) -> Result<Exit> {
    if run.is_full {
        say::warn(CommandWarning::SizeReached);
    }
    let exit = run.exit(!plan.sample.run_schedule.command.is_empty());
    let lost = lost(&run.totals, &run.readings);
    let reason = no_samples::reason(&plan.sample, events, &run, lost);
    if plan.json {
        let own_cpu = pmc_sys::sys::clock::process_cpu_ns();
        let document = status::document(&run, events, reason.as_ref(), own_cpu, exit);
        writeln!(std::io::stdout(), "{}", as_json(&document))
            .map_err(|error| Error::output("the summary of the recording", error))?;
    } else {
        let to = match plan.file.is_stream() {
            true => standard_output::name(),
            false => plan.file.path.display().to_string(),
        };
        say::note(status::truth(&to, &run.totals, &run.readings));
    }
    if plan.prints_perf_summary && !Stream::Error.is_terminal() {
        status::perf_summary(&run, plan.file.is_stream()).iter().for_each(say::plainly);
    }
    if let Some(reason) = reason {
        say::warn(reason);
    }
    if run.kept.samples > 0 {
        say::warn(CommandWarning::CopiesKept { samples: run.kept.samples, compat: run.kept.compat });
    }
    if run.ends.cut * 100 >= run.ends.walked.max(1) {
        let percent = run.ends.cut as f64 / run.ends.walked as f64 * 100.0;
        let copied = plan.sample.options.call_graph.map_or(0, CallGraph::copied_bytes);
        say::warn(CommandWarning::StacksCut { percent, are_largest: copied == LARGEST_STACK_COPY });
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
