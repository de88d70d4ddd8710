//! What to report about a recording. A command line, a personality or another command makes a
//! [`ReportRequest`]. It passes on which samples to load ([`AnalysisRequest`]), which rows to make of them
//! ([`Query`]), and how to print them ([`ReportLayout`]).

use std::path::PathBuf;

use super::chain_words::{ChainOptions, ChainOrder};
use super::row_layout::RowLayout;
use super::{BRANCH_IN_JSON, ChainPosition, ReportFormat, ReportLayout, TREE_LINES};
use pmc_analysis::analysis::AnalysisRequest;
use pmc_analysis::analysis::request::{CostMeasure, LatencyMode, WaitRows};
use pmc_analysis::profile::sampled::chains::ChainRequest;
use pmc_analysis::profile::sampled::table::RowSelection;
use pmc_analysis::profile::sampled::{Filter, Query, ShareOf, SortKey, StackDirection};
use pmc_symbols::symbol::Depth;
use pmc_text::terminal::theme::Background;
use pmc_text::terminal::{self, Paint, Stream};

/// What to report about a recording.
#[derive(Debug, Clone)]
pub struct ReportRequest {
    /// The recording; `None` for standard input if it has data, else `perf.data`.
    pub input: Option<PathBuf>,
    /// Which samples to load, and how to name them. [`Self::analysis`] adds what follows from the rest of the
    /// request.
    pub samples: AnalysisRequest,
    /// The functions and modules to include.
    pub only: RowSelection,
    /// The sort keys, the columns, and the order of rows.
    pub rows: RowLayout,
    pub chains: ChainOptions,
    /// Whether to print one call tree below the table instead of call chains under each row.
    pub tree: bool,
    /// Whether the cost of a function includes its callees.
    pub children: bool,
    /// Whether to fold direct recursion into one branch of the tree.
    pub collapse_recursion: bool,
    /// Whether to sort by wall-clock time.
    pub latency: bool,
    /// Whether percentages refer to the samples that pass the filters instead of to all samples.
    pub relative: bool,
    /// Maximum number of rows; `None` for the default.
    pub limit: Option<usize>,
    /// Minimum size of rows and branches, in percent.
    pub percent_limit: Option<f64>,
    /// Whether to look for inlined functions; `None` for the default.
    pub depth: Option<Depth>,
    /// How to print rows. [`Self::layout`] adds what depends on the output and on the rest of the request.
    pub style: ReportLayout,
    pub header: HeaderChoice,
    /// The list to show instead of a profile.
    pub listing: Option<ListKind>,
    /// Whether to also show each thread's final counts.
    pub thread_counts: bool,
    /// The output stream for text.
    pub stream: Stream,
    /// Whether to print the terminal's text format, without callers, even in a pipe.
    pub is_page: bool,
    /// Whether to open the full-screen interface if the output is a terminal.
    pub browses: bool,
    /// Whether to use colours; `None` if this depends on the terminal.
    pub colour: Option<bool>,
    /// The terminal's background, if specified.
    pub background: Option<Background>,
}

/// Whether to show the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HeaderChoice {
    #[default]
    No,
    First,
    Only,
}

/// A list to show instead of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListKind {
    /// The number of records of each type.
    Records,
    /// A hex dump of the records, then the number of records.
    Dump,
    /// Tasks, with or without their mappings.
    Tasks { maps: bool },
}

/// What `pmc report` shows without options: the full-screen interface, or text if there is no terminal.
impl Default for ReportRequest {
    fn default() -> Self {
        Self {
            input: None,
            samples: AnalysisRequest {
                measure: CostMeasure::BranchesIfRecorded,
                ..AnalysisRequest::default()
            },
            only: RowSelection::default(),
            rows: RowLayout::default(),
            chains: ChainOptions::default(),
            tree: false,
            children: true,
            collapse_recursion: false,
            latency: false,
            relative: false,
            limit: None,
            percent_limit: None,
            depth: None,
            style: ReportLayout::default(),
            header: HeaderChoice::No,
            listing: None,
            thread_counts: false,
            stream: Stream::Output,
            is_page: false,
            browses: true,
            colour: None,
            background: None,
        }
    }
}

impl ReportRequest {
    /// Returns which samples to load, and the properties by which rows are distinguished.
    pub fn analysis(&self) -> AnalysisRequest {
        let rows = &self.rows;
        let wants_latency = self.latency
            || self.samples.selection.parallelism.is_some()
            || rows.keys.contains(&SortKey::Parallelism)
            || rows.columns.iter().flatten().chain(&rows.added).any(|column| column.is_latency());
        let has_stacks = self.order().is_some() || self.children;
        AnalysisRequest {
            keys: rows.keys.clone(),
            trace_fields: rows.trace_fields.clone(),
            usual_keys: rows.are_usual,
            measure: match rows.keys.iter().any(|key| key.is_of_branch()) {
                true => CostMeasure::Branches,
                false => self.samples.measure,
            },
            latency: if wants_latency { LatencyMode::Wanted } else { LatencyMode::IfRecorded },
            // A page does not show callers, but it shows how many stacks are complete.
            callers: has_stacks || self.samples.stack_changes.changes_any() || self.is_page,
            by_process: self.style.form == ReportFormat::Text && !self.is_piped(),
            // perf's rows, for programs that read perf's columns and for chains below rows.
            wait_rows: match self.style.form {
                ReportFormat::Json => WaitRows::Functions,
                ReportFormat::Text if !self.is_piped() && !self.has_chains_under_rows() => {
                    WaitRows::Functions
                }
                _ => WaitRows::KernelFunctions,
            },
            ..self.samples.clone()
        }
    }

    /// Returns which rows to make of the samples.
    pub fn query(&self) -> Query {
        let layout = self.layout();
        let is_for_reader = layout.form == ReportFormat::Text && !layout.is_piped;
        let order = self.order();
        let (below, under_rows) = match self.has_chains_under_rows() {
            true => (None, order),
            false => (order, None),
        };
        Query {
            totals: self.children,
            by_mode: layout.needs_cpu_modes(),
            innermost: is_for_reader,
            share_of: if self.latency { ShareOf::Latency } else { ShareOf::Period },
            ranks: self.rows.ranks.clone(),
            tree: below,
            chains: under_rows.map(|order| ChainRequest {
                order,
                collapse: self.collapse_recursion,
                limit: layout.branch_limit / 100.0,
                relative: layout.shape == super::ChainShape::Fractal,
                row_limit: layout.row_limit / 100.0,
            }),
            collapse: self.collapse_recursion,
            limit: layout.branch_limit / 100.0,
            // Show them only on terminals, because rows in a pipe must match perf's.
            language_functions: is_for_reader && !layout.is_quiet && self.analysis().callers,
            states_apart: true,
            // As in perf, percentages exclude samples without names if only known names are shown.
            relative: self.relative || self.only.named,
            filter: Filter { only: self.only.clone(), ..Filter::default() },
            ..Query::default()
        }
    }

    /// Returns how to print the rows.
    pub fn layout(&self) -> ReportLayout {
        let style = self.style.clone();
        let is_piped = self.is_piped();
        let is_for_reader = style.form == ReportFormat::Text && !is_piped;
        let branch_limit = self.percent_limit.or(self.chains.limit);
        let usual_limit = match style.form {
            ReportFormat::Json => BRANCH_IN_JSON,
            _ => style.branch_limit,
        };
        let has_perfs_form =
            matches!(style.form, ReportFormat::Separated(_)) || style.form == ReportFormat::Text && is_piped;
        ReportLayout {
            columns: self.rows.columns.clone(),
            added: self.rows.added.clone(),
            rows: self.limit.unwrap_or(if is_for_reader { style.rows } else { usize::MAX }),
            height: (self.limit.is_none() && is_for_reader)
                .then(|| self.stream.size().map_or(usize::MAX, |(_, lines)| lines.into())),
            row_limit: self.percent_limit.unwrap_or(0.0),
            branch_limit: branch_limit.unwrap_or(usual_limit),
            callee: self.order() == Some(StackDirection::Callee),
            shape: self.chains.shape,
            unit: self.chains.unit,
            chains: match self.has_chains_under_rows() {
                true => ChainPosition::UnderRows { omits_first: self.rows.start_with_functions },
                false => ChainPosition::Below,
            },
            branches: self.chains.lines,
            width: (!is_piped).then(|| terminal::columns(self.stream)),
            paint: match is_piped {
                true => Paint::default(),
                false => terminal::paint(self.stream, self.colour, self.background),
            },
            tree_lines: (!is_piped && branch_limit.is_none()).then_some(TREE_LINES),
            is_piped,
            single_values: if has_perfs_form { self.single_values() } else { Vec::new() },
            ..style
        }
    }

    /// Whether a program reads the text.
    fn is_piped(&self) -> bool {
        !self.stream.is_terminal() && !self.is_page && self.colour != Some(true)
    }

    /// Whether to print call chains under their rows, as in perf, instead of in one tree.
    fn has_chains_under_rows(&self) -> bool {
        let is_fitting = match self.style.form {
            ReportFormat::Text => self.is_piped() || self.chains.are_typed,
            ReportFormat::Separated(_) => self.chains.are_typed,
            ReportFormat::Csv | ReportFormat::Json => false,
        };
        is_fitting && !self.tree && !self.style.hierarchy && !self.is_page
    }

    /// Returns the order of call chains: perf's default, except that trees have the caller at the root.
    fn order(&self) -> Option<StackDirection> {
        match self.chains.order {
            ChainOrder::Typed(order) => Some(order),
            ChainOrder::Usual if self.has_chains_under_rows() && !self.children => {
                Some(StackDirection::Callee)
            }
            ChainOrder::Usual => Some(StackDirection::Caller),
            ChainOrder::NoChains => None,
        }
    }

    /// Returns the sort keys that a filter restricts to a single value.
    fn single_values(&self) -> Vec<(SortKey, String)> {
        let listed = |names: &Option<Vec<String>>| names.clone().unwrap_or_default();
        let filters = [
            (SortKey::Comm, self.samples.selection.comms.clone()),
            (SortKey::Dso, listed(&self.only.dsos)),
            (SortKey::Symbol, listed(&self.only.symbols)),
        ];
        let single = |(key, values): (SortKey, Vec<String>)| match <[String; 1]>::try_from(values) {
            Ok([value]) => Some((key, value)),
            Err(_) => None,
        };
        filters.into_iter().filter_map(single).collect()
    }
}
