//! `pmc profile`: turns the options into those of two other commands.
//!
//! Receives the parsed options. Returns the options of `pmc record` and of `pmc report` or `pmc export`. Also
//! selects the language runtimes that are asked to write the names of generated code.

use std::ffi::{OsStr, OsString};

use clap::Args;

use crate::cli;
use crate::cli::export::ExportArgs;
use crate::cli::profile::ProfileArgs;
use crate::cli::record::RecordArgs;
use crate::cli::report::ReportArgs;
use crate::command::{screen, usage};
use pmc_recording::recording::runtime::{self, MissingRuntimeNames, RuntimeDetection};
use pmc_sys::error::{Error, Result, Warning, say};
use pmc_sys::terminal::Stream;

/// The two commands that `pmc profile` runs in turn.
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
    /// No target to profile is given.
    pub(in crate::command) fn new(asked: ProfileArgs) -> Result<Self> {
        if asked.command.is_empty() && asked.pids.is_none() && !asked.all_cpus {
            return Err(Error::usage("nothing to profile: no command, process or CPU given")
                .try_this("pmc profile -- COMMAND, pmc profile -p PID or NAME, or pmc profile -a"));
        }
        let mut record: RecordArgs = typed([
            option("call-graph", Some(asked.call_graph)),
            option("freq", Some(asked.freq)),
            option("event", asked.event),
            option("pid", asked.pids),
            option("timeout", asked.duration),
            option("output", Some(&asked.output)),
            flag("all-cpus", asked.all_cpus),
            flag("quiet", asked.quiet),
        ])?;
        if !asked.no_runtime_env {
            record.environment = environment(&asked.command);
        }
        record.command = asked.command;
        let (format, file) = (asked.format, asked.html);
        if format.is_some() || file.is_some() {
            let export = typed([
                option("input", Some(&asked.output)),
                option("format", if file.is_some() { Some("html") } else { format.as_deref() }),
                option("output", file),
                flag("quiet", asked.quiet),
            ])?;
            return Ok(Self { record, answer: ViewCommand::Export(Box::new(export)) });
        }
        // Text output is a single page of self costs. The screen and `pmc report` also show callers.
        let is_page = asked.stdio || !screen::is_there();
        let mut report: ReportArgs = typed([
            option("input", Some(&asked.output)),
            option("call-graph", is_page.then_some("none")),
            flag("no-children", is_page),
            flag("stdio", asked.stdio),
            option("theme", asked.screen.theme),
            flag("quiet", asked.quiet),
        ])?;
        report.is_page = is_page;
        // In a pipe or a file, the command's own output must stay unchanged.
        report.to_stderr = !record.command.is_empty() && !Stream::Output.is_terminal();
        Ok(Self { record, answer: ViewCommand::Report(Box::new(report)) })
    }
}

/// Returns `--name=value`.
fn option(name: &str, value: Option<impl AsRef<OsStr>>) -> Option<OsString> {
    value.map(|value| [OsStr::new("--"), name.as_ref(), "=".as_ref(), value.as_ref()].into_iter().collect())
}

/// Returns `--name`.
fn flag(name: &str, is_set: bool) -> Option<OsString> {
    is_set.then(|| format!("--{name}").into())
}

/// Parses these words as options of a command.
fn typed<A: Args>(words: impl IntoIterator<Item = Option<OsString>>) -> Result<A> {
    cli::typed(words.into_iter().flatten())
        .map_err(|complaint| usage::error(&complaint, [&[], &[]], |_| false))
}

/// Returns the environment variables that make the command's runtime write names. Prints a note about the
/// variables that are set, and about names that are not available.
fn environment(command: &[OsString]) -> Vec<(OsString, OsString)> {
    match runtime::of(command) {
        Some(RuntimeDetection::Writes(runtime)) => {
            let asked = runtime.asking(|name| std::env::var_os(name));
            if let Some((name, value)) = &asked {
                let setting = format!("{}={}", name.display(), value.display());
                say::note(format!(
                    "asking {} to name its generated code: {setting} (--no-runtime-env prevents this)",
                    runtime.name
                ));
            }
            asked.into_iter().collect()
        }
        Some(RuntimeDetection::Lacks(MissingRuntimeNames { language, why, remedy })) => {
            say::warn(&Warning::RuntimeNameless { language, why, remedy });
            Vec::new()
        }
        None => Vec::new(),
    }
}
