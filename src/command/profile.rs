//! `pmc profile`: makes a recording and shows it, in one step.
//!
//! The options become a request to record, and a request of `pmc report` or `pmc export`. Also determines
//! which language runtime to ask for the names of generated code.

use std::ffi::OsString;

use super::{export, report};
use crate::cli::profile::ProfileArgs;
use pmc_analysis::profile::sampled::trust::TrustDetail;
use pmc_command::record::{self, RecordDisplay};
use pmc_command::sampling_options::{self, TargetOptions};
use pmc_command::screen;
use pmc_formats::export::ExportFormat;
use pmc_formats::export::request::ExportRequest;
use pmc_recording::recording::plan::{FilePlan, OffCpuPlan, RecordRequest, RunSchedule};
use pmc_recording::recording::runtime::{self, MissingRuntimeNames, RuntimeDetection};
use pmc_sys::error::{Error, Exit, Result, Warning, say};
use pmc_sys::host::Host;
use pmc_sys::sys::signal;
use pmc_text::terminal::Stream;
use pmc_view::report::chain_words::ChainOrder;
use pmc_view::report::request::ReportRequest;

/// Runs the command. Returns the exit status of the profiled command.
///
/// # Errors
/// Fails if an option is invalid, the recording fails, or its result cannot be shown.
pub(super) fn run(asked: ProfileArgs) -> Result<Exit> {
    let plan = ProfilePlan::new(asked, &Host::live())?;
    // Report invalid display options before the recording starts.
    if let ViewCommand::Export(request) = &plan.answer {
        export::check(request)?;
    }
    let exit = record::run(plan.record, plan.display, None)?;
    signal::release();
    let shown = match plan.answer {
        ViewCommand::Report(request) => report::run(&request),
        ViewCommand::Export(request) => export::run(&request),
    };
    match shown {
        // If the reader closes the output early, pmc still exits with the command's status.
        Err(error) if !error.is_quiet() => Err(error),
        _ => Ok(exit),
    }
}

/// The two commands that `pmc profile` runs one after the other.
#[derive(Debug)]
struct ProfilePlan {
    record: RecordRequest,
    display: RecordDisplay,
    answer: ViewCommand,
}

/// The command that shows the recording.
#[derive(Debug)]
enum ViewCommand {
    Report(Box<ReportRequest>),
    Export(Box<ExportRequest>),
}

impl ProfilePlan {
    /// # Errors
    /// Fails if no target to profile is given.
    fn new(asked: ProfileArgs, host: &Host) -> Result<Self> {
        if asked.command.is_empty() && asked.pids.is_empty() && !asked.all_cpus {
            return Err(Error::usage("nothing to profile: no command, process or CPU given")
                .try_this("pmc profile -- COMMAND, pmc profile -p PID or NAME, or pmc profile -a"));
        }
        let environment = if asked.no_runtime_env { Vec::new() } else { environment(&asked.command) };
        let has_command = !asked.command.is_empty();
        // On a whole machine, the waiting time of all threads would dwarf the time for which the CPUs are
        // busy.
        let is_wall = asked.wall || !asked.on_cpu && asked.event.is_none() && !asked.all_cpus;
        let targets =
            TargetOptions { pids: asked.pids, all_cpus: asked.all_cpus, ..TargetOptions::default() };
        let mut record = RecordRequest::default();
        let sample = &mut record.sample;
        sample.scope = sampling_options::scope(&targets, host)?;
        sample.events.extend(asked.event);
        sample.options.rate = asked.freq;
        sample.options.call_graph = Some(asked.call_graph);
        if is_wall {
            sample.events.push("cpu-clock".to_owned());
            sample.measure_waits(OffCpuPlan { has_wakers: asked.wakers, ..OffCpuPlan::default() });
        } else if asked.wakers {
            return Err(Error::usage("--wakers requires --wall"));
        }
        sample.run_schedule = RunSchedule {
            command: asked.command,
            environment,
            timeout: asked.duration,
            ..RunSchedule::default()
        };
        record.file = FilePlan { path: asked.output.clone(), ..record.file };
        asked.recording_settings.apply(&mut record);
        let display = RecordDisplay { quiet: asked.quiet, ..RecordDisplay::default() };
        let format = asked.html.as_ref().map(|_| ExportFormat::Html).or(asked.format);
        if let Some(format) = format {
            let output = asked.html.unwrap_or_else(|| ExportRequest::usual_output(&asked.output, format));
            let export =
                ExportRequest { is_quiet: asked.quiet, ..ExportRequest::new(asked.output, output, format) };
            return Ok(Self { record, display, answer: ViewCommand::Export(Box::new(export)) });
        }
        // The text output is a single page of self costs. The full-screen interface and `pmc report` also
        // show callers.
        let is_page = asked.stdio || !screen::is_there();
        let mut report = ReportRequest {
            input: Some(asked.output),
            is_page,
            browses: !asked.stdio,
            background: asked.screen.background()?,
            // If standard output is a pipe or a file, leave it to the command.
            stream: match has_command && !Stream::Output.is_terminal() {
                true => Stream::Error,
                false => Stream::Output,
            },
            ..asked.report_settings.request()?
        };
        if is_page {
            report.chains.order = ChainOrder::NoChains;
            report.children = false;
        }
        report.style.is_quiet = asked.quiet;
        report.style.trust = if asked.verbose > 0 { TrustDetail::Full } else { TrustDetail::Brief };
        Ok(Self { record, display, answer: ViewCommand::Report(Box::new(report)) })
    }
}

/// Returns the environment variables that make the command's language runtime report the names of generated
/// code. Prints a note about the variables, or about names that will not be available.
fn environment(command: &[OsString]) -> Vec<(OsString, OsString)> {
    match runtime::detect(command) {
        Some(RuntimeDetection::Writes(runtime)) => {
            let asked = runtime.asking(|name| std::env::var_os(name));
            if let Some((name, value)) = &asked {
                let setting = format!("{}={}", name.display(), value.display());
                say::note(format!(
                    "asking {} to name its generated code: {setting} (--no-runtime-env disables this)",
                    runtime.name
                ));
            }
            asked.into_iter().collect()
        }
        Some(RuntimeDetection::Lacks(MissingRuntimeNames { language, why, remedy })) => {
            say::warn(
                Warning::note(format!("{language} functions will have no names: {why}")).advise(remedy),
            );
            Vec::new()
        }
        None => Vec::new(),
    }
}
