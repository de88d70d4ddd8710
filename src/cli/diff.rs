//! Options of `pmc diff`, and the request that they make.

use std::path::PathBuf;

use clap::Args;

use pmc_analysis::analysis::AnalysisRequest;
use pmc_analysis::analysis::diff::{DiffRequest, WAIT_KEYS};
use pmc_analysis::analysis::request::{SampleSelection, TimeSpan};
use pmc_analysis::profile::diff::groups::GroupRequest;
use pmc_analysis::profile::diff::{Compute, streams};
use pmc_analysis::profile::gate::GateCondition;
use pmc_analysis::profile::sampled::table::RowSelection;
use pmc_analysis::profile::sampled::{Filter, NameStyle, Query, SortKey};
use pmc_analysis::session::thread_time::StateWord;
use pmc_command::options::sample_filter::{PERCENTAGES, ShareBase};
use pmc_command::options::screen_options::ScreenOptions;
use pmc_command::options::stack_options::listed;
use pmc_command::options::symbol_files::SymbolFiles;
use pmc_command::values::{Limit, one_of};
use pmc_sys::error::{Error, Result};
use pmc_sys::host::cpulist::CpuList;
use pmc_text::terminal::{self, Stream};
use pmc_view::diff::{DiffLayout, DiffOutput, ReportFormat};
use pmc_view::gate::CiFormat;
use pmc_view::report::TREE_LINES;

/// Compare recordings: show each function's share in every recording, and whether the difference exceeds
/// sampling noise.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmc diff                                perf.data.old and perf.data
  pmc diff before.data after.data -s sym  functions by name, in any program
  pmc diff a.data b.data c.data           compare b and c with a
  pmc diff --tree a.data b.data           differences in the call tree
  pmc diff old*.data --vs new*.data       differences beyond the noise between runs
  pmc diff old*.data --vs new*.data --fail-if 'worse > 3% and p < 0.01'
                                          in CI: exit with status 1 if the new version is slower
  pmc diff --stream a.data b.data         the hottest call chains, matched
  pmc diff -c ratio -p a.data b.data      ratio of the costs
  pmc diff -s sym old.pb.gz new.pb.gz     profiles of another program: docs/import.md
docs/diff.md explains noise and the fields of --json.")]
#[command(mut_args(|option| option.hide_short_help(false)))]
pub struct DiffArgs {
    /// Recordings to compare, the baseline first [default: perf.data.old perf.data]
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Recordings of a new version, to compare as a group with the recordings before --vs
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["tree", "stream", "baseline_only", "period", "formula", "csv", "field_separator"])]
    pub(crate) vs: Vec<PathBuf>,

    /// Exit with status 1 if this condition holds, such as 'worse > 3% and p < 0.01', and with status 2 if
    /// the recordings cannot tell
    #[arg(long, value_name = "CONDITION", conflicts_with_all = ["tree", "stream", "baseline_only", "period", "formula", "csv", "field_separator"])]
    pub(crate) fail_if: Option<GateCondition>,

    /// With --fail-if, print the result as annotations and a step summary for GitHub Actions, or as a JUnit
    /// report
    #[arg(long, value_name = "CI", value_parser = one_of(CiFormat::WORDS), requires = "fail_if", conflicts_with = "json")]
    pub(crate) format: Option<CiFormat>,

    /// Sort keys: dso, sym, srcline, srcfile, comm, pid, tgid, tid, cpu and the other keys of pmc report
    #[arg(short, long, value_name = "KEY,…", value_delimiter = ',')]
    pub(crate) sort: Vec<SortKey>,

    /// Comparison: delta, delta-abs, time, ratio, or wdiff:W1,W2 [default: delta-abs; in text output, time if
    /// all recordings are of cpu-clock or task-clock]
    #[arg(short, long, value_name = "HOW")]
    pub(crate) compute: Option<Compute>,

    /// Sort by the baseline (0), or by the change in the Nth recording after it
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    pub(crate) order: usize,

    /// Show only rows that exist in the baseline
    #[arg(short, long)]
    pub(crate) baseline_only: bool,

    /// Show the sum of periods
    #[arg(short, long)]
    pub(crate) period: bool,

    /// Show how each value was computed
    #[arg(short = 'F', long)]
    pub(crate) formula: bool,

    /// Compare the call trees
    #[arg(long)]
    pub(crate) tree: bool,

    /// Compare the hottest call chains frame by frame, by function and source line (or by the keys of -s)
    #[arg(long, conflicts_with = "tree")]
    pub(crate) stream: bool,

    /// Hide rows that are below this percentage in every recording
    #[arg(long, value_name = "PERCENT")]
    pub(crate) percent_limit: Option<f64>,

    /// Maximum number of rows; with --json, also of tree nodes; 0 shows all [default: 20; all with -t, --csv
    /// or --json]; with --stream, of call chains per recording [default: 10]
    #[arg(long, visible_alias = "max-rows", alias = "top", value_name = "N")]
    pub(crate) limit: Option<Limit>,

    /// What percentages refer to: all samples (absolute) or those that pass the filters (relative)
    #[arg(long, value_name = "OF", default_value = "absolute", value_parser = one_of(PERCENTAGES))]
    pub(crate) percentage: ShareBase,

    /// Include only threads with these names
    #[arg(short = 'C', long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) comms: Vec<String>,

    /// Include only these programs and libraries
    #[arg(short = 'd', long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) dsos: Vec<String>,

    /// Include only these functions
    #[arg(short = 'S', long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) symbols: Vec<String>,

    /// Include only these processes
    #[arg(long, value_name = "PID,…", value_delimiter = ',')]
    pub(crate) pid: Vec<i32>,

    /// Include only these threads
    #[arg(long, value_name = "TID,…", value_delimiter = ',')]
    pub(crate) tid: Vec<i32>,

    /// Include only samples on these CPUs, such as 0-3,8
    #[arg(long, value_name = "CPUS")]
    pub(crate) cpu: Option<CpuList>,

    /// Include only this part of each recording, such as 10%-20%, or FROM,TO in seconds of its clock
    #[arg(long, value_name = "SPAN")]
    pub(crate) time: Option<TimeSpan>,

    /// Compare only time in these thread states: running, runnable (waiting for a CPU), blocked, or waiting
    /// (both) [default: running and blocked, each in its own table]
    #[arg(long, value_name = "STATE,…", value_delimiter = ',')]
    pub(crate) state: Vec<StateWord>,

    /// Include the waiting time of idle threads, such as the workers of a pool
    #[arg(long)]
    pub(crate) idle: bool,

    /// Print plain text (the default)
    #[arg(long)]
    pub(crate) stdio: bool,

    /// Print one JSON document
    #[arg(short = 'j', long, conflicts_with_all = ["csv", "field_separator"])]
    pub(crate) json: bool,

    /// Print the rows as CSV
    #[arg(long, conflicts_with = "field_separator")]
    pub(crate) csv: bool,

    /// Separate fields with this string
    #[arg(short = 't', long, value_name = "SEP")]
    pub(crate) field_separator: Option<String>,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub(crate) symbol_files: SymbolFiles,

    /// Show mangled symbol names
    #[arg(long)]
    pub(crate) no_demangle: bool,

    /// Print no messages except errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Default number of rows in text output.
const ROWS: usize = 20;
/// Default number of call chains to compare per recording.
const STREAMS: usize = 10;

impl DiffArgs {
    /// Returns what to compare, and how to print it.
    ///
    /// # Errors
    /// Fails if options contradict each other.
    pub(crate) fn request(self) -> Result<(DiffRequest, DiffOutput)> {
        let groups = self.groups()?;
        let has_groups = groups.is_some();
        let selection = SampleSelection {
            comms: self.comms,
            pids: self.pid,
            tids: self.tid,
            cpus: self.cpu.map(|cpus| cpus.iter().collect()),
            time: self.time,
            states: StateWord::states(&self.state),
            ..SampleSelection::default()
        };
        let files = match self.files.as_slice() {
            base if !self.vs.is_empty() => [base, &self.vs].concat(),
            [] => vec!["perf.data.old".into(), "perf.data".into()],
            [one] => vec!["perf.data.old".into(), one.clone()],
            all => all.to_vec(),
        };
        if files.iter().filter(|file| file.as_os_str() == "-").count() > 1 {
            return Err(Error::usage("only one recording can come from standard input"));
        }
        if self.order >= files.len() {
            return Err(Error::usage(format!("-o {}: only {} recordings given", self.order, files.len()))
                .try_this("0 sorts by the baseline, 1 by the first recording after it"));
        }
        let has_usual_keys = self.sort.is_empty();
        let mut keys: Vec<SortKey> = Vec::new();
        for key in self.sort {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        if keys.is_empty() {
            keys = match self.stream {
                true => vec![SortKey::Symbol, SortKey::SrcLine],
                false => vec![SortKey::Dso, SortKey::Symbol],
            };
        }
        if let Some(key) = keys.iter().find(|key| self.stream && !streams::KEYS.contains(key)) {
            let known: Vec<&str> = streams::KEYS.iter().map(|key| key.name()).collect();
            return Err(Error::usage(format!("--stream: call chains have no {}", key.name()))
                .try_options(format!("-s {}", known.join(","))));
        }
        let form = match self.field_separator {
            Some(separator) => ReportFormat::Separated(separator),
            None if self.csv => ReportFormat::Csv,
            None if self.json => ReportFormat::Json,
            None => ReportFormat::Text,
        };
        let only = RowSelection {
            dsos: listed(&self.dsos),
            symbols: listed(&self.symbols),
            ..RowSelection::default()
        };
        let mut request = DiffRequest {
            files,
            labels: Vec::new(),
            analysis: AnalysisRequest {
                selection,
                keys,
                idle: self.idle,
                name_style: NameStyle { raw: self.no_demangle, shared: true, ..NameStyle::default() },
                ..AnalysisRequest::new(self.symbol_files.symbol_options()?)
            },
            wait_keys: (has_usual_keys && !self.stream).then(|| WAIT_KEYS.to_vec()),
            query: Query {
                relative: self.percentage == ShareBase::Filtered,
                filter: Filter { only, ..Filter::default() },
                ..Query::default()
            },
            tree: self.tree,
            streams: self.stream.then(|| Limit::rows(self.limit, true, STREAMS)),
            compute: match (self.compute, &form) {
                // Groups have their own comparison.
                _ if has_groups => Some(Compute::default()),
                (Some(compute), _) => Some(compute),
                // Programs that read the output expect shares, so the default differs only for text output.
                (None, ReportFormat::Text) if !self.stream => None,
                (None, _) => Some(Compute::default()),
            },
            matches_files: true,
            order: self.order,
            groups,
        };
        if self.format.is_some() {
            request.show_lines();
        }
        let is_read = Stream::Output.is_terminal();
        let layout = DiffLayout {
            rows: match self.stream {
                true => usize::MAX,
                false => Limit::rows(self.limit, form == ReportFormat::Text, ROWS),
            },
            form,
            limit: self.percent_limit.unwrap_or(0.0) / 100.0,
            period: self.period,
            formula: self.formula,
            baseline_only: self.baseline_only,
            tree_lines: (is_read && self.percent_limit.is_none()).then_some(TREE_LINES),
            width: is_read.then(|| terminal::columns(Stream::Output)),
            paint: terminal::paint(Stream::Output, None, ScreenOptions::default().background()?),
        };
        Ok((request, DiffOutput { layout, gate: self.fail_if, ci: self.format }))
    }

    /// Returns how to compare groups, if groups were requested.
    fn groups(&self) -> Result<Option<GroupRequest>> {
        if self.vs.is_empty() && self.fail_if.is_none() {
            return Ok(None);
        }
        if !self.vs.is_empty() && self.files.is_empty() {
            return Err(
                Error::usage("--vs requires recordings of the base").try_this("pmc diff OLD… --vs NEW…")
            );
        }
        if self.vs.is_empty() && self.files.len() > 2 {
            return Err(Error::usage("--fail-if with more than two recordings requires --vs")
                .try_this("pmc diff OLD… --vs NEW…"));
        }
        // A recording that is listed twice looks like two runs without noise between them.
        let mut all: Vec<_> = self.files.iter().chain(&self.vs).collect();
        all.sort();
        if let Some(pair) = all.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::usage(format!("{} is listed twice", pair[0].display()))
                .why("each recording counts as one run"));
        }
        let by_share = match self.compute {
            None | Some(Compute::Time | Compute::Ratio) => false,
            Some(Compute::Delta | Compute::DeltaAbs) => true,
            Some(Compute::Weighted(..)) => {
                return Err(
                    Error::usage("-c wdiff cannot compare groups of recordings").try_options("-c delta")
                );
            }
        };
        let base = if self.vs.is_empty() { 1 } else { self.files.len() };
        Ok(Some(GroupRequest { base, by_share, merges_lines: false }))
    }
}
