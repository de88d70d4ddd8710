//! The tools that run commands: `record` and `stat_compare`. They require `--allow-record` and respect the
//! server's limits.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value as Json;

use super::McpRequest;
use super::capture::{CommandTimeLimit, OutputCapture};
use crate::command::stat;
use pmc_command::record;
use pmc_events::counter::request::sampling::{CallGraph, DEFAULT_STACK, Rate};
use pmc_recording::recording::plan::{FilePlan, MeasurementScope, OffCpuPlan, RecordRequest};
use pmc_recording::recording::stat_request::{
    ComparedCommand, EventSelection, Repeat, StatRequest, StatTiming,
};
use pmc_sys::error::{Error, Exit, Result};
use pmc_sys::host::Host;
use pmc_tools::lock;
use pmc_view::agent::{self, AgentAnswer, AnswerLimit};

/// Default duration of a recording of a running process, in seconds.
const SECONDS: f64 = 10.0;
/// Time between SIGTERM and SIGKILL for a command whose time is over.
const GRACE: Duration = Duration::from_secs(2);

/// Arguments of the tool `record`.
#[derive(Debug, Deserialize)]
pub(super) struct RecordArguments {
    /// The program and its arguments.
    #[serde(default)]
    command: Vec<String>,
    pid: Option<u32>,
    seconds: Option<f64>,
    #[serde(default = "usual_output")]
    output: PathBuf,
    event: Option<String>,
    frequency: Option<u64>,
    #[serde(default)]
    stacks: Stacks,
    #[serde(default)]
    wall: bool,
    #[serde(default)]
    wakers: bool,
    #[serde(default)]
    locks: bool,
}

fn usual_output() -> PathBuf {
    "perf.data".into()
}

/// How to record callers.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Stacks {
    #[default]
    Auto,
    Fp,
    Dwarf,
    None,
}

/// Arguments of the tool `stat_compare`.
#[derive(Debug, Deserialize)]
pub(super) struct StatCompareArguments {
    commands: Vec<Vec<String>>,
    #[serde(default = "usual_runs")]
    runs: u32,
    /// Events to count; empty: the default events.
    #[serde(default)]
    events: Vec<String>,
}

fn usual_runs() -> u32 {
    5
}

/// What the tools that run commands need besides their arguments.
pub(super) struct RunContext<'a> {
    pub(super) server: &'a McpRequest,
    pub(super) limit: AnswerLimit,
}

impl RunContext<'_> {
    /// Runs the tool `record`. Also returns the exit status of the recording.
    ///
    /// # Errors
    /// Fails if the target is not permitted, or the recording fails.
    pub(super) fn record(&self, arguments: RecordArguments) -> Result<(AgentAnswer, Exit)> {
        let RecordArguments { pid, output, .. } = arguments;
        let command: Vec<OsString> = arguments.command.into_iter().map(OsString::from).collect();
        match (command.is_empty(), pid) {
            (true, None) => return Err(Error::usage("one of the arguments command and pid is required")),
            (false, Some(_)) => return Err(Error::usage("command and pid cannot be combined")),
            (_, Some(pid)) => check_owner(pid)?,
            _ => {}
        }
        let most = self.server.max_seconds as f64;
        let usual = if pid.is_some() { SECONDS.min(most) } else { most };
        let seconds = arguments.seconds.unwrap_or(usual);
        if seconds > most {
            return Err(Error::usage(format!("seconds: the limit of this server is {most}"))
                .try_options("ask the user to start the server with a larger --max-seconds"));
        }
        if output.as_os_str() == "-" {
            return Err(
                Error::usage("output: standard output carries the protocol").try_this("the name of a file")
            );
        }
        let mut request = RecordRequest::default();
        let sample = &mut request.sample;
        sample.events.extend(arguments.event);
        sample.scope = match pid {
            Some(pid) => MeasurementScope::Processes(vec![pid]),
            None => MeasurementScope::Command,
        };
        sample.options.rate = arguments.frequency.map_or(Rate::Default, Rate::Frequency);
        sample.options.call_graph = match arguments.stacks {
            Stacks::Auto => Some(CallGraph::Auto(DEFAULT_STACK)),
            Stacks::Fp => Some(CallGraph::Fp),
            Stacks::Dwarf => Some(CallGraph::Dwarf(DEFAULT_STACK)),
            Stacks::None => None,
        };
        if arguments.wall {
            sample.events.push("cpu-clock".to_owned());
            sample.measure_waits(OffCpuPlan { has_wakers: arguments.wakers, ..OffCpuPlan::default() });
        } else if arguments.wakers {
            return Err(Error::usage("wakers: requires wall").try_this("set wall to true, too"));
        }
        if arguments.locks {
            if sample.events.is_empty() {
                sample.events.push("cpu-clock".to_owned());
            }
            sample.events.extend(lock::futex_events(&Host::live())?);
        }
        sample.run_schedule.command = command;
        sample.run_schedule.timeout = Some(whole_milliseconds(seconds));
        request.file = FilePlan { path: output, max_size: Some(self.server.max_size), ..request.file };
        self.server.settings.apply(&mut request);
        let (ran, captured) =
            captured(Duration::from_secs_f64(seconds), || record::run_for_summary(request))?;
        let (summary, exit) = ran?;
        Ok((agent::recorded(&summary, captured, self.limit), exit))
    }

    /// Runs the tool `stat_compare`. Also returns the exit status of the commands.
    ///
    /// # Errors
    /// Fails if the runs do not end in time.
    pub(super) fn compare(&self, arguments: StatCompareArguments) -> Result<(AgentAnswer, Exit)> {
        let StatCompareArguments { commands, runs, events } = arguments;
        let command =
            |words: Vec<String>| ComparedCommand::of_words(words.into_iter().map(OsString::from).collect());
        let commands: Vec<ComparedCommand> = commands.into_iter().map(command).collect();
        let sides = commands.len();
        let seconds = self.server.max_seconds as f64;
        let each = seconds / (f64::from(runs) * sides as f64);
        let request = StatRequest {
            selection: EventSelection { events, ..EventSelection::default() },
            timing: StatTiming { timeout: Some(whole_milliseconds(each)), ..StatTiming::default() },
            repeat: Repeat { versus: commands, runs: Some(runs), ..Repeat::default() },
            ..StatRequest::default()
        };
        let (ran, captured) =
            captured(Duration::from_secs_f64(seconds), || stat::compare_commands(request, &[]))?;
        let ((comparison, _), exit) = ran?;
        let are_done = comparison.lines.first().is_some_and(|line| {
            line.sides.iter().all(|side| side.summary.as_ref().is_some_and(|of| of.count == runs as usize))
                && line.sides.len() == sides
        });
        if !are_done && !matches!(exit, Exit::Interrupted(_)) {
            return Err(Error::new(format!("a run did not end within {each:.3} s"))
                .why(format!("all runs together may take {seconds} s on this server"))
                .try_options(
                    "fewer runs or smaller inputs; the user can start the server with a larger --max-seconds",
                ));
        }
        let mut answer = agent::comparison(&comparison, runs, self.limit);
        answer.head.insert("status".into(), exit.code().into());
        if exit.code() != 0 {
            // The times of a command that fails early say nothing about its work.
            answer.head.insert("failure".into(), "a command failed, so the runs are not comparable".into());
        }
        if !captured.is_null() {
            answer.head.insert("output".into(), captured);
        }
        Ok((answer, exit))
    }
}

/// Returns a time rounded up to milliseconds, of which there is at least one.
fn whole_milliseconds(seconds: f64) -> Duration {
    Duration::from_millis((seconds * 1000.0).ceil().max(1.0) as u64)
}

/// Refuses a process of another user.
fn check_owner(pid: u32) -> Result<()> {
    let about = fs::metadata(format!("/proc/{pid}"));
    let about = about.map_err(|error| Error::io(format!("looking for process {pid}"), error))?;
    match about.uid() == rustix::process::geteuid().as_raw() {
        true => Ok(()),
        false => Err(Error::new(format!("process {pid} belongs to another user"))
            .why("this tool records only processes of the user who runs the server")),
    }
}

/// Calls `run`, which runs commands. Also returns the end of their output. Kills commands that still run
/// after this time.
fn captured<T: Send>(time: Duration, run: impl FnOnce() -> Result<T> + Send) -> Result<(Result<T>, Json)> {
    let failed = |error| Error::io("capturing the output of commands", error);
    let capture = OutputCapture::start().map_err(failed)?;
    let clock = CommandTimeLimit::start(time + GRACE);
    let ran = match clock {
        Ok(clock) => {
            // A recorder gives up capabilities of its thread, which the next call needs again.
            let ran = std::thread::scope(|scope| scope.spawn(run).join());
            clock.finish();
            ran.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        }
        Err(error) => Err(failed(error)),
    };
    let output = capture.finish().map_err(failed);
    Ok((ran, output?))
}
