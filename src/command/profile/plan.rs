//! Converts the options of `pmc profile` to options of two other commands.
//!
//! Receives the parsed options. Returns the options of `pmc record`, and of `pmc report` or `pmc export`.
//! Also determines which language runtime to ask for the names of generated code.

use std::ffi::OsString;

use crate::cli::defaults;
use crate::cli::export::{ExportArgs, ExportSource, ParquetTables, PushOptions};
use crate::cli::profile::ProfileArgs;
use crate::cli::record::RecordArgs;
use crate::cli::report::ReportArgs;
use pmc_command::options::recording_options::RecordingOptions;
use pmc_command::screen;
use pmc_command::warning::CommandWarning;
use pmc_recording::recording::runtime::{self, MissingRuntimeNames, RuntimeDetection};
use pmc_sys::error::{Error, Result, say};
use pmc_text::terminal::Stream;

/// The two commands that `pmc profile` runs one after the other.
#[derive(Debug)]
pub(in crate::command) struct ProfilePlan {
    pub(in crate::command) record: RecordArgs,
    pub(in crate::command) answer: ViewCommand,
}

/// The command that shows the recording.
#[derive(Debug)]
pub(in crate::command) enum ViewCommand {
    Report(Box<ReportArgs>),
    Export(Box<ExportArgs>),
}

impl ProfilePlan {
    /// # Errors
    /// Fails if no target to profile is given.
    pub(in crate::command) fn new(asked: ProfileArgs) -> Result<Self> {
        if asked.command.is_empty() && asked.pids.is_none() && !asked.all_cpus {
            return Err(Error::usage("nothing to profile: no command, process or CPU given")
                .try_this("pmc profile -- COMMAND, pmc profile -p PID or NAME, or pmc profile -a"));
        }
        let environment = if asked.no_runtime_env { Vec::new() } else { environment(&asked.command) };
        let has_command = !asked.command.is_empty();
        // On a whole machine, the waiting time of all threads would dwarf the time for which the CPUs are
        // busy.
        let is_wall = asked.wall || !asked.on_cpu && asked.event.is_none() && !asked.all_cpus;
        let record = RecordArgs {
            call_graph: Some(asked.call_graph),
            freq: Some(asked.freq),
            events: asked.event.into_iter().collect(),
            wall: is_wall,
            wakers: asked.wakers,
            pids: asked.pids.iter().flat_map(|list| list.split(',')).map(str::to_owned).collect(),
            all_cpus: asked.all_cpus,
            recording: RecordingOptions {
                timeout: asked.duration,
                output: asked.output.clone(),
                quiet: asked.quiet,
                ..defaults()
            },
            environment,
            command: asked.command,
            ..defaults()
        };
        let input = Some(asked.output);
        if asked.format.is_some() || asked.html.is_some() {
            let format = if asked.html.is_some() { Some("html".to_owned()) } else { asked.format };
            let source = ExportSource { input, output: asked.html, quiet: asked.quiet, ..defaults() };
            let export =
                ExportArgs { format, source, tables: ParquetTables::default(), push: PushOptions::default() };
            return Ok(Self { record, answer: ViewCommand::Export(Box::new(export)) });
        }
        // The text output is a single page of self costs. The full-screen interface and `pmc report` also
        // show callers.
        let is_page = asked.stdio || !screen::is_there();
        let report = ReportArgs {
            input,
            call_graph: is_page.then(|| vec!["none".to_owned()]),
            no_children: is_page,
            stdio: asked.stdio,
            screen: asked.screen,
            quiet: asked.quiet,
            verbose: asked.verbose,
            is_page,
            // If standard output is a pipe or a file, leave it to the command.
            to_stderr: has_command && !Stream::Output.is_terminal(),
            ..defaults()
        };
        Ok(Self { record, answer: ViewCommand::Report(Box::new(report)) })
    }
}

/// Returns the environment variables that make the command's language runtime report the names of generated
/// code. Prints a note about the variables, or about names that will not be available.
fn environment(command: &[OsString]) -> Vec<(OsString, OsString)> {
    match runtime::of(command) {
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
            say::warn(CommandWarning::RuntimeNameless { language, why, remedy });
            Vec::new()
        }
        None => Vec::new(),
    }
}
