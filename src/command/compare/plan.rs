//! Converts the options of `pmc compare` to options of the commands that do its parts, and describes these
//! commands.

use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use crate::cli::compare::CompareArgs;
use pmc_analysis::analysis::AnalysisRequest;
use pmc_analysis::analysis::diff::DiffRequest;
use pmc_analysis::profile::diff::groups::{GroupComparison, GroupRequest};
use pmc_analysis::profile::diff::{Compute, Diff};
use pmc_analysis::profile::gate::{GateCondition, GateGoal, UnusableReason};
use pmc_analysis::profile::sampled::SortKey;
use pmc_command::destination::is_standard;
use pmc_command::options::screen_options::ScreenOptions;
use pmc_command::plan;
use pmc_command::values::Limit;
use pmc_events::counter::request::sampling::{CallGraph, DEFAULT_STACK, Rate};
use pmc_recording::recording::plan::{FilePlan, RecordRequest};
use pmc_recording::recording::stat_request::{ComparedCommand, EventSelection, Repeat, StatRequest};
use pmc_sys::error::{Error, Exit, Result};
use pmc_text::terminal::{self, Stream};
use pmc_text::units::S;
use pmc_view::diff::{DiffLayout, ReportFormat};
use pmc_view::gate::CiFormat;
use pmc_view::stat::StatStyle;

/// The names by which a condition selects what only the profiles measure.
pub(super) const PROFILED: &[&str] = &["total", "cycles", "cpu-clock"];

/// The profiles of both commands, and why they are unusable for a gate.
pub(in crate::command) type ComparedProfiles = (Diff, GroupComparison, Vec<UnusableReason>);
/// A recording that has not started yet.
pub(in crate::command) type ReadyRecording = Box<dyn FnOnce() -> Result<Exit> + Send>;

/// The commands that do the steps.
pub(in crate::command) struct CompareSteps<'a> {
    /// Checks the options and the events of a recording.
    pub(in crate::command) check: &'a dyn Fn(RecordRequest) -> Result<()>,
    /// Prepares a recording.
    pub(in crate::command) record: &'a dyn Fn(RecordRequest) -> Result<ReadyRecording>,
}

/// Settings of `pmc compare`.
pub(in crate::command) struct ComparePlan {
    /// The two commands.
    pub(super) commands: Vec<ComparedCommand>,
    /// The number of runs of each command, as typed.
    repeat: Option<u32>,
    /// Time after which no more runs are added.
    pub(super) budget: Duration,
    events: Vec<String>,
    warmup: u32,
    /// Sort keys of the rows.
    sort: Vec<SortKey>,
    event: Option<String>,
    freq: Option<Rate>,
    call_graph: Option<CallGraph>,
    /// The condition under which the comparison fails.
    pub(super) gate: Option<GateCondition>,
    /// The CI system for which to print the answer of `--fail-if`.
    pub(super) ci: Option<CiFormat>,
    /// The page to write.
    pub(super) page: Option<PathBuf>,
    pub(super) layout: DiffLayout,
    pub(super) style: StatStyle,
}

/// Default number of rows in text output.
const ROWS: usize = 10;

/// Default number of runs of each command, after which pmc determines how many more a condition needs.
const RUNS: u32 = 10;

/// Limits of the sampling frequency that pmc chooses. Samples slow all functions down alike. On a virtual
/// machine, a run of 0.2 s took 0.29 s at 25 kHz and 0.55 s at the upper limit, but with almost four times as
/// many samples, so that fewer runs and less time were needed in all.
const FREQUENCIES: RangeInclusive<u64> = 4000..=50_000;

impl ComparePlan {
    /// # Errors
    /// Fails if the condition or a sort key is invalid, or two documents would be written to standard output.
    pub(in crate::command) fn new(typed: CompareArgs) -> Result<Self> {
        if (typed.json || typed.format.is_some()) && typed.output.as_deref().is_some_and(is_standard) {
            return Err(Error::usage("-o -: standard output is used for the answer")
                .try_this("write the page to a file: -o compare.html"));
        }
        let form = if typed.json { ReportFormat::Json } else { ReportFormat::Text };
        let is_read = Stream::Output.is_terminal();
        let paint = terminal::paint(Stream::Output, None, ScreenOptions::default().background()?);
        let width = is_read.then(|| terminal::columns(Stream::Output));
        let budget = Duration::from_nanos(plan::duration("--budget", &typed.budget, S, S)?);
        // Stacks are only needed for the flame graph, and for keys that are about callers.
        let is_flat = typed.output.is_none() && typed.sort == [SortKey::Symbol];
        Ok(Self {
            commands: ComparedCommand::all(Vec::new(), &typed.commands),
            repeat: typed.repeat,
            budget,
            events: typed.events,
            warmup: typed.warmup,
            sort: typed.sort,
            event: typed.sample,
            freq: typed.freq,
            call_graph: typed.call_graph.or((!is_flat).then_some(CallGraph::Auto(DEFAULT_STACK))),
            gate: typed.fail_if.as_deref().map(str::parse::<GateCondition>).transpose()?,
            ci: typed.format.as_deref().and_then(CiFormat::named),
            page: typed.output,
            layout: DiffLayout {
                rows: Limit::rows(typed.limit, !typed.json, ROWS),
                form,
                limit: 0.0,
                period: false,
                formula: false,
                baseline_only: false,
                tree_lines: None,
                width,
                paint,
            },
            style: StatStyle { colour: Stream::Output.has_colour(), paint, width, ..StatStyle::default() },
        })
    }

    /// Returns the number of counted runs of each command, and of profiled runs before it is known how many
    /// the condition needs.
    pub(super) fn runs(&self) -> u32 {
        self.repeat.unwrap_or(RUNS)
    }

    /// Returns what the profiles must show, if pmc chooses the number of runs.
    pub(super) fn goal(&self) -> Option<GateGoal> {
        let condition = self.gate.as_ref().filter(|_| self.repeat.is_none())?;
        GateGoal::of(condition, &PROFILED.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
    }

    /// Returns the sampling frequency: the typed one, or the one with which the first runs have enough
    /// samples. perf's default leaves enough time to copy stacks. `seconds` is the CPU
    /// time of a run, and `most` the maximum that the kernel permits.
    pub(super) fn frequency(&self, goal: Option<GateGoal>, seconds: Option<f64>, most: Option<u64>) -> Rate {
        let chosen = || {
            let seconds = seconds.filter(|seconds| *seconds > 0.0 && self.call_graph.is_none())?;
            let wanted = goal.unwrap_or(GateGoal::USUAL).samples() / (f64::from(RUNS) * seconds);
            let wanted = (wanted as u64).clamp(*FREQUENCIES.start(), *FREQUENCIES.end());
            Some(Rate::Frequency(most.map_or(wanted, |most| wanted.min(most))))
        };
        self.freq.or_else(chosen).unwrap_or_default()
    }

    /// Returns the request to count the commands.
    pub(super) fn stat(&self) -> StatRequest {
        StatRequest {
            selection: EventSelection { events: self.events.clone(), ..EventSelection::default() },
            repeat: Repeat {
                warm_ups: self.warmup,
                runs: Some(self.runs()),
                versus: self.commands.clone(),
                // The names in the condition are checked before the commands run.
                gate: self.gate.clone(),
                ..Repeat::default()
            },
            ..StatRequest::default()
        }
    }

    /// Returns the request to record a run of a command.
    pub(super) fn record(&self, command: Vec<OsString>, output: PathBuf, rate: Rate) -> RecordRequest {
        let mut request = RecordRequest { hides_output: true, ..RecordRequest::default() };
        request.sample.events.extend(self.event.clone());
        request.sample.options.rate = rate;
        request.sample.options.call_graph = self.call_graph;
        request.sample.run_schedule.command = command;
        request.file = FilePlan { path: output, keeps_files: false, ..request.file };
        request
    }

    /// Returns how to compare recordings of both commands. `labels` are their names in messages.
    pub(super) fn diff(&self, [base, new]: [Vec<PathBuf>; 2], labels: Vec<String>) -> DiffRequest {
        let usual = DiffRequest::default();
        let mut keys: Vec<SortKey> = Vec::new();
        for key in &self.sort {
            if !keys.contains(key) {
                keys.push(*key);
            }
        }
        let mut request = DiffRequest {
            groups: Some(GroupRequest { base: base.len(), by_share: false, merges_lines: false }),
            files: [base, new].concat(),
            labels,
            analysis: AnalysisRequest { keys, ..usual.analysis },
            wait_keys: None,
            // Only the page shows stacks.
            tree: self.page.is_some(),
            compute: Some(Compute::default()),
            ..usual
        };
        if self.ci.is_some() {
            request.show_lines();
        }
        request
    }
}
