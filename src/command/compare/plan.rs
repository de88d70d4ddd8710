//! Converts the options of `pmc compare` to options of the commands that do its parts, and describes these
//! commands.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::cli::compare::CompareArgs;
use crate::cli::defaults;
use crate::cli::diff::DiffArgs;
use crate::cli::record::RecordArgs;
use crate::cli::recording_options::RecordingOptions;
use crate::cli::stat::{CountArgs, StatArgs};
use crate::command::destination::is_standard;
use crate::command::plan;
use crate::view::diff::{DiffLayout, ReportFormat};
use crate::view::gate::CiFormat;
use crate::view::stat::StatStyle;
use pmc_analysis::profile::diff::Diff;
use pmc_analysis::profile::diff::groups::GroupComparison;
use pmc_analysis::profile::gate::{GateCondition, UnusableReason};
use pmc_analysis::profile::versus::CommandComparison;
use pmc_sys::error::{Error, Exit, Result};
use pmc_sys::terminal::{self, Stream};

/// The names by which a condition selects what only the profiles measure.
pub(in crate::command) const PROFILED: &[&str] = &["total", "cycles", "cpu-clock"];

/// The counts of both commands, and why they are unusable for a gate.
pub(in crate::command) type ComparedCounts = (CommandComparison, Vec<UnusableReason>);
/// The profiles of both commands, and why they are unusable for a gate.
pub(in crate::command) type ComparedProfiles = (Diff, GroupComparison, Vec<UnusableReason>);
/// A recording that has not started yet.
pub(in crate::command) type ReadyRecording = Box<dyn FnOnce() -> Result<Exit> + Send>;

/// The commands that do the steps.
pub(in crate::command) struct CompareSteps<'a> {
    /// Returns the words of commands, given as texts.
    pub(in crate::command) words: &'a dyn Fn(&[String]) -> Vec<Vec<OsString>>,
    /// Counts commands, given as lists of words.
    pub(in crate::command) count: &'a dyn Fn(StatArgs, Vec<Vec<OsString>>) -> Result<(ComparedCounts, Exit)>,
    /// Checks the options and the events of a recording.
    pub(in crate::command) check: &'a dyn Fn(RecordArgs) -> Result<()>,
    /// Prepares a recording.
    pub(in crate::command) record: &'a dyn Fn(RecordArgs) -> Result<ReadyRecording>,
    /// Compares recordings. The texts are their names in messages.
    pub(in crate::command) diff: &'a dyn Fn(&DiffArgs, Vec<String>) -> Result<ComparedProfiles>,
}

/// Settings of `pmc compare`.
pub(in crate::command) struct ComparePlan {
    /// The two commands as typed.
    pub(super) commands: Vec<String>,
    pub(super) repeat: u32,
    events: Vec<String>,
    warmup: u32,
    /// Sort keys of the rows.
    sort: Vec<String>,
    event: Option<String>,
    freq: Option<String>,
    call_graph: String,
    /// The condition under which the comparison fails, as typed.
    fail_if: Option<String>,
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

impl ComparePlan {
    /// # Errors
    /// Fails if the condition or a sort key is invalid, or two documents would be written to standard output.
    pub(in crate::command) fn new(typed: CompareArgs) -> Result<Self> {
        if (typed.json || typed.format.is_some()) && typed.output.as_deref().is_some_and(is_standard) {
            return Err(Error::usage("-o -: standard output is used for the answer")
                .try_this("write the page to a file: -o compare.html"));
        }
        // Report unknown keys before the commands run.
        typed.sort.iter().try_for_each(|key| plan::sort_key(key).map(|_| ()))?;
        let form = if typed.json { ReportFormat::Json } else { ReportFormat::Text };
        let is_read = Stream::Output.is_terminal();
        let paint = terminal::paint(Stream::Output, None, plan::background(None)?);
        let width = is_read.then(|| terminal::columns(Stream::Output));
        Ok(Self {
            commands: typed.commands,
            repeat: typed.repeat,
            events: typed.events,
            warmup: typed.warmup,
            sort: typed.sort,
            event: typed.sample,
            freq: typed.freq,
            call_graph: typed.call_graph,
            gate: typed.fail_if.as_deref().map(GateCondition::parse).transpose()?,
            fail_if: typed.fail_if,
            ci: typed.format.as_deref().and_then(CiFormat::named),
            page: typed.output,
            layout: DiffLayout {
                rows: plan::rows(typed.limit, !typed.json, ROWS),
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

    /// Returns the options of `stat --vs` to count the commands.
    pub(super) fn stat(&self) -> StatArgs {
        let stat: StatArgs = defaults();
        let counted = CountArgs {
            events: self.events.clone(),
            warmup: self.warmup,
            repeat: Some(self.repeat),
            vs: self.commands.clone(),
            // The names in the condition are checked before the commands run.
            fail_if: self.fail_if.clone(),
            ..stat.counted
        };
        StatArgs { counted, ..stat }
    }

    /// Returns the options to record a run of a command.
    pub(super) fn record(&self, command: Vec<OsString>, output: PathBuf) -> RecordArgs {
        RecordArgs {
            events: self.event.iter().cloned().collect(),
            freq: self.freq.clone(),
            call_graph: Some(self.call_graph.clone()),
            recording: RecordingOptions { output, quiet: true, no_buildid_cache: true, ..defaults() },
            command,
            ..defaults()
        }
    }

    /// Returns the options to compare recordings of both commands.
    pub(super) fn diff(&self, [files, vs]: [Vec<PathBuf>; 2]) -> DiffArgs {
        DiffArgs {
            files,
            vs,
            tree: true,
            sort: self.sort.clone(),
            // Annotations show the line of a function.
            format: self.ci.map(|_| "github".to_owned()),
            ..defaults()
        }
    }
}
