//! What `pmc compare` measures: requests to count, record and compare the two commands.

use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use crate::cli::compare::CompareArgs;
use pmc_analysis::analysis::AnalysisRequest;
use pmc_analysis::analysis::diff::DiffRequest;
use pmc_analysis::profile::diff::Compute;
use pmc_analysis::profile::diff::groups::GroupRequest;
use pmc_analysis::profile::gate::{GateCondition, GateGoal};
use pmc_analysis::profile::sampled::SortKey;
use pmc_command::destination::is_standard;
use pmc_command::options::screen_options::ScreenOptions;
use pmc_command::values::Limit;
use pmc_events::counter::request::sampling::{CallGraph, DEFAULT_STACK, Rate};
use pmc_recording::recording::plan::RecordRequest;
use pmc_recording::recording::stat_request::{ComparedCommand, EventSelection, Repeat, StatRequest};
use pmc_sys::error::{Error, Result};
use pmc_text::terminal::{self, Stream};
use pmc_view::diff::{DiffLayout, ReportFormat};
use pmc_view::gate::CiFormat;
use pmc_view::stat::StatStyle;

/// The names by which a condition selects what only the profiles measure.
pub(super) const PROFILED: &[&str] = &["total", "cycles", "cpu-clock"];

/// What to measure.
#[derive(Debug, Clone)]
pub(super) struct CompareRequest {
    /// The two commands.
    pub(super) commands: Vec<ComparedCommand>,
    /// The number of runs of each command; `None` leaves the choice to pmc.
    pub(super) repeat: Option<u32>,
    /// Time after which no more runs are added.
    pub(super) budget: Duration,
    /// The events to count; empty: the default events.
    pub(super) events: Vec<String>,
    /// Number of uncounted runs before the first counted one.
    pub(super) warm_ups: u32,
    /// Sort keys of the rows.
    pub(super) keys: Vec<SortKey>,
    /// How to record a run, except for its command, its file and the sampling rate.
    pub(super) recording: RecordRequest,
    /// The sampling rate; `None` leaves the choice to pmc.
    pub(super) rate: Option<Rate>,
    /// Whether to compare call trees as well.
    pub(super) tree: bool,
    /// Whether to find the source line of each function.
    pub(super) lines: bool,
    /// The condition under which the comparison fails.
    pub(super) gate: Option<GateCondition>,
}

impl Default for CompareRequest {
    fn default() -> Self {
        Self {
            commands: Vec::new(),
            repeat: None,
            budget: Duration::from_secs(60),
            events: Vec::new(),
            warm_ups: 0,
            keys: vec![SortKey::Symbol],
            recording: RecordRequest::default(),
            rate: None,
            tree: false,
            lines: false,
            gate: None,
        }
    }
}

/// Where and how to print the answer.
#[derive(Debug, Clone)]
pub(super) struct CompareOutput {
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

impl CompareArgs {
    /// Returns what to measure, and how to print the answer.
    ///
    /// # Errors
    /// Fails if two documents would be written to standard output.
    pub(super) fn request(self) -> Result<(CompareRequest, CompareOutput)> {
        if (self.json || self.format.is_some()) && self.output.as_deref().is_some_and(is_standard) {
            return Err(Error::usage("-o -: standard output is used for the answer")
                .try_options("write the page to a file: -o compare.html"));
        }
        let form = if self.json { ReportFormat::Json } else { ReportFormat::Text };
        let is_read = Stream::Output.is_terminal();
        let paint = terminal::paint(Stream::Output, None, ScreenOptions::default().background()?);
        let width = is_read.then(|| terminal::columns(Stream::Output));
        // Stacks are only needed for the flame graph, and for keys that are about callers.
        let is_flat = self.output.is_none() && self.sort == [SortKey::Symbol];
        let mut keys: Vec<SortKey> = Vec::new();
        for key in self.sort {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        let mut recording = RecordRequest { hides_output: true, ..RecordRequest::default() };
        recording.sample.events.extend(self.sample);
        recording.sample.options.call_graph =
            self.call_graph.or((!is_flat).then_some(CallGraph::Auto(DEFAULT_STACK)));
        recording.file.keeps_files = false;
        self.settings.apply(&mut recording);
        let request = CompareRequest {
            commands: ComparedCommand::all(Vec::new(), &self.commands),
            repeat: self.repeat,
            budget: self.budget,
            events: self.events,
            warm_ups: self.warmup,
            keys,
            recording,
            rate: self.freq,
            // Only the page shows stacks.
            tree: self.output.is_some(),
            // Annotations show the line of a function.
            lines: self.format.is_some(),
            gate: self.fail_if,
        };
        let layout = DiffLayout {
            rows: Limit::rows(self.limit, !self.json, ROWS),
            form,
            limit: 0.0,
            period: false,
            formula: false,
            baseline_only: false,
            tree_lines: None,
            width,
            paint,
        };
        let style = StatStyle { colour: Stream::Output.has_colour(), paint, width, ..StatStyle::default() };
        Ok((request, CompareOutput { ci: self.format, page: self.output, layout, style }))
    }
}

impl CompareRequest {
    /// Returns the number of counted runs of each command, and of profiled runs before it is known how many
    /// the condition needs.
    pub(super) fn runs(&self) -> u32 {
        self.repeat.unwrap_or(RUNS)
    }

    /// Returns what the profiles must show, if pmc chooses the number of runs.
    pub(super) fn goal(&self) -> Option<GateGoal> {
        let condition = self.gate.as_ref().filter(|_| self.repeat.is_none())?;
        GateGoal::from_condition(
            condition,
            &PROFILED.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(),
        )
    }

    /// Returns the sampling rate: the requested one, or the frequency with which the first runs have enough
    /// samples. perf's default leaves enough time to copy stacks. `seconds` is the CPU time of a run, and
    /// `most` the maximum that the kernel permits.
    pub(super) fn rate(&self, goal: Option<GateGoal>, seconds: Option<f64>, most: Option<u64>) -> Rate {
        let is_flat = self.recording.sample.options.call_graph.is_none();
        let chosen = || {
            let seconds = seconds.filter(|seconds| *seconds > 0.0 && is_flat)?;
            let wanted = goal.unwrap_or(GateGoal::USUAL).samples() / (f64::from(RUNS) * seconds);
            let wanted = (wanted as u64).clamp(*FREQUENCIES.start(), *FREQUENCIES.end());
            Some(Rate::Frequency(most.map_or(wanted, |most| wanted.min(most))))
        };
        self.rate.or_else(chosen).unwrap_or_default()
    }

    /// Returns the request to count the commands.
    pub(super) fn stat(&self) -> StatRequest {
        StatRequest {
            selection: EventSelection { events: self.events.clone(), ..EventSelection::default() },
            repeat: Repeat {
                warm_ups: self.warm_ups,
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
        let mut recording = self.recording.clone();
        recording.sample.options.rate = rate;
        recording.sample.run_schedule.command = command;
        recording.file.path = output;
        recording
    }

    /// Returns how to compare recordings of both commands. `labels` are their names in messages.
    pub(super) fn diff(&self, [base, new]: [Vec<PathBuf>; 2], labels: Vec<String>) -> DiffRequest {
        let usual = DiffRequest::default();
        let mut request = DiffRequest {
            groups: Some(GroupRequest { base: base.len(), by_share: false, merges_lines: false }),
            files: [base, new].concat(),
            labels,
            analysis: AnalysisRequest { keys: self.keys.clone(), ..usual.analysis },
            wait_keys: None,
            tree: self.tree,
            compute: Some(Compute::default()),
            ..usual
        };
        if self.lines {
            request.show_lines();
        }
        request
    }
}
