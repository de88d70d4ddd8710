//! Options of `pmc report`, and the request that they make.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};

use pmc_analysis::analysis::AnalysisRequest;
use pmc_analysis::analysis::request::CostMeasure;
use pmc_analysis::profile::sampled::SortKey;
use pmc_analysis::profile::sampled::table::RowSelection;
use pmc_analysis::profile::sampled::trust::TrustDetail;
use pmc_command::options::sample_filter::{PERCENTAGES, SampleFilter, ShareBase};
use pmc_command::options::screen_options::{ColourChoice, ScreenOptions};
use pmc_command::options::settings::ReportSettings;
use pmc_command::options::stack_options::StackOptions;
use pmc_command::options::symbol_files::SymbolFiles;
use pmc_command::values::{self, Limit, ThreadNumbers, Typed, one_of};
use pmc_symbols::symbol::Depth;
use pmc_sys::error::Result;
use pmc_text::units::MS;
use pmc_view::report::chain_words::ChainWord;
use pmc_view::report::request::{HeaderChoice, ListKind, ReportRequest};
use pmc_view::report::row_layout::{RowLayout, RowWord};
use pmc_view::report::{EventGrouping, ReportColumn, ReportFormat, ReportLayout};

/// Show where the time went: functions by cost, the call tree, and how reliable both are.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  pmc report                              full-screen: functions, call tree, flame graph, code
  pmc report --stdio                      the top functions, then the call tree, as text
  pmc report -s dso                       by library
  pmc report --comms make -g callee       one program, with the callers of hot functions
  pmc report -F overhead,sample,sym -t,   all rows, machine-readable
  pmc report --json                       everything, as one JSON document
  pmc report -i cpu.pb.gz                 a profile of another program, such as a Go program's
docs/report.md explains the sort keys and the fields of --json, docs/import.md the formats of other
programs.")]
#[command(mut_args(|option| match option.get_id().as_str() {
    "tid" | "theme" => option.hide_short_help(true),
    _ => option,
}))]
pub struct ReportArgs {
    /// Recording to read (also -i); `-` is stdin [default: stdin if it is a pipe or file, else perf.data]. A
    /// word that is not a file name selects functions that contain it
    #[arg(value_name = "FILE|SYMBOL")]
    pub(crate) file: Option<PathBuf>,

    /// The recording
    #[arg(short, long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,

    /// Sort keys: comm, pid, tgid, tid, dso, sym, srcline, srcfile, cpu, socket, time, cgroup, trace, parent,
    /// parallelism, …; +KEY adds a key to the default
    #[arg(short, long, value_name = "KEY,…", value_delimiter = ',', help_heading = "Rows and columns")]
    pub(crate) sort: Vec<RowWord>,

    /// Columns, in order: overhead, overhead_children, latency, latency_children, sample, period, and sort
    /// keys; +FIELD adds a column to the default
    #[arg(
        short = 'F',
        long,
        value_name = "FIELD,…",
        value_delimiter = ',',
        help_heading = "Rows and columns"
    )]
    pub(crate) fields: Vec<RowWord>,

    /// Print call chains under each row: order (caller, callee, none), style (graph, fractal, flat, folded),
    /// value (percent, period, count), minimum percentage
    #[arg(short = 'g', long, value_name = "HOW,…", num_args = 0..=1, default_missing_value = "caller", value_delimiter = ',', help_heading = "Call stacks")]
    pub(crate) call_graph: Option<Vec<ChainWord>>,

    /// Print call chains from the caller down
    #[arg(short = 'G', long, help_heading = "Call stacks", hide_short_help = true)]
    pub(crate) inverted: bool,

    /// Print one call tree below the table instead of call chains under each row (default on a terminal
    /// without -g)
    #[arg(long, help_heading = "Rows and columns", hide_short_help = true)]
    pub(crate) tree: bool,

    /// Include callees in the cost of a function (default with call chains)
    #[arg(long, overrides_with = "no_children", help_heading = "Call stacks", hide_short_help = true)]
    pub(crate) children: bool,

    /// Show only the self cost of functions
    #[arg(long, help_heading = "Call stacks")]
    pub(crate) no_children: bool,

    /// Show the number of samples
    #[arg(short = 'n', long, help_heading = "Rows and columns")]
    pub(crate) show_nr_samples: bool,

    /// Show the sum of periods
    #[arg(long, help_heading = "Rows and columns")]
    pub(crate) show_total_period: bool,

    /// Show the kernel and user share of each row
    #[arg(long, alias = "showcpuutilization", help_heading = "Rows and columns", hide_short_help = true)]
    pub(crate) show_cpu_utilization: bool,

    /// Hide rows and tree branches below this percentage
    #[arg(long, value_name = "PERCENT", help_heading = "Rows and columns")]
    pub(crate) percent_limit: Option<f64>,

    /// What percentages refer to: all samples (absolute) or those that pass the filters (relative) [default:
    /// absolute]
    #[arg(long, value_name = "OF", value_parser = one_of(PERCENTAGES), help_heading = "Rows and columns", hide_short_help = true)]
    pub(crate) percentage: Option<ShareBase>,

    /// Maximum number of rows; with --json, also of tree nodes and modules; 0 shows all [default: 20; all in
    /// a pipe, and with -t, --csv or --json]
    #[arg(
        long,
        visible_alias = "max-rows",
        alias = "top",
        value_name = "N",
        help_heading = "Rows and columns"
    )]
    pub(crate) limit: Option<Limit>,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub(crate) filter: SampleFilter,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub(crate) stacks: StackOptions,

    /// Count each branch of the recorded branch stacks (default if there are any)
    #[arg(
        short = 'b',
        long,
        overrides_with = "no_branch_stack",
        help_heading = "Rows and columns",
        hide_short_help = true
    )]
    pub(crate) branch_stack: bool,

    /// Count samples instead of branches
    #[arg(long, help_heading = "Rows and columns", hide_short_help = true)]
    pub(crate) no_branch_stack: bool,

    /// Show memory accesses by cost; by default, with all sort keys for data and caches
    #[arg(long, conflicts_with = "branch_stack", help_heading = "Rows and columns", hide_short_help = true)]
    pub(crate) mem_mode: bool,

    /// Sort by wall-clock time instead of CPU time (requires pmc record --latency)
    #[arg(long, help_heading = "Rows and columns", hide_short_help = true)]
    pub(crate) latency: bool,

    /// Include only samples taken while this many threads ran, such as 1 or 1-2,8 (requires pmc record
    /// --latency)
    #[arg(long, value_name = "LIST", help_heading = "Rows and columns", hide_short_help = true)]
    pub(crate) parallelism: Option<Typed<ThreadNumbers>>,

    /// Length of a time slice for the sort key time, in milliseconds or with a unit (s, ms, us, ns)
    #[arg(
        long,
        value_name = "TIME",
        default_value = "100ms",
        value_parser = quantum,
        help_heading = "Rows and columns",
        hide_short_help = true
    )]
    pub(crate) time_quantum: Duration,

    /// Show times in nanoseconds
    #[arg(long, help_heading = "Output", hide_short_help = true)]
    pub(crate) ns: bool,

    /// Print the recording's header first
    #[arg(short = 'I', long, alias = "show-info", help_heading = "Instead of a profile")]
    pub(crate) header: bool,

    /// Print only the recording's header
    #[arg(long, help_heading = "Instead of a profile", hide_short_help = true)]
    pub(crate) header_only: bool,

    /// Print only the number of records of each kind
    #[arg(long, help_heading = "Instead of a profile", hide_short_help = true)]
    pub(crate) stats: bool,

    /// Dump all records (raw bytes and decoded fields) and the number of records of each kind
    #[arg(short = 'D', long, help_heading = "Instead of a profile", hide_short_help = true)]
    pub(crate) dump_raw_trace: bool,

    /// Print only the processes and threads
    #[arg(long, help_heading = "Instead of a profile", hide_short_help = true)]
    pub(crate) tasks: bool,

    /// Print only the processes and threads with their mappings
    #[arg(long, help_heading = "Instead of a profile", hide_short_help = true)]
    pub(crate) mmaps: bool,

    /// Also show each thread's counts when it exits (requires pmc record -s)
    #[arg(short = 'T', long, help_heading = "Instead of a profile", hide_short_help = true)]
    pub(crate) threads: bool,

    /// Print full function names; by default text on a terminal omits template arguments, return types and
    /// compiler suffixes
    #[arg(long, help_heading = "Names", hide_short_help = true)]
    pub(crate) full_names: bool,

    /// Show full paths of source files
    #[arg(long, help_heading = "Names", hide_short_help = true)]
    pub(crate) full_source_path: bool,

    /// Show tracepoint fields one by one instead of the formatted text
    #[arg(long, help_heading = "Output", hide_short_help = true)]
    pub(crate) raw_trace: bool,

    /// Group rows by the first sort key, then by the next, as a hierarchy
    #[arg(short = 'H', long, conflicts_with_all = ["json", "csv", "field_separator", "group"], help_heading = "Rows and columns", hide_short_help = true)]
    pub(crate) hierarchy: bool,

    /// Fold direct recursion into one branch of the tree
    #[arg(long, help_heading = "Call stacks", hide_short_help = true)]
    pub(crate) collapse_recursion: bool,

    /// Separate fields with this string and print nothing else
    #[arg(short = 't', long, value_name = "SEP", help_heading = "Output")]
    pub(crate) field_separator: Option<String>,

    /// Print all events side by side, not only those recorded as a group
    #[arg(long, help_heading = "Rows and columns", hide_short_help = true)]
    pub(crate) group: bool,

    /// Print a separate table for each event, even in a group
    #[arg(long, conflicts_with_all = ["group"], help_heading = "Rows and columns", hide_short_help = true)]
    pub(crate) no_group: bool,

    /// Sort by the member of the group with this index
    #[arg(
        long,
        value_name = "INDEX",
        conflicts_with = "no_group",
        help_heading = "Rows and columns",
        hide_short_help = true
    )]
    pub(crate) group_sort_idx: Option<usize>,

    /// Print plain text even on a terminal
    #[arg(long, help_heading = "Output")]
    pub(crate) stdio: bool,

    /// When to colour the output: always (also selects the terminal's text format in a pipe), never, or auto
    /// (on a terminal)
    #[arg(long, visible_alias = "color", value_name = "WHEN", default_value = "auto", value_parser = one_of(ColourChoice::WORDS), help_heading = "Output", hide_short_help = true)]
    pub(crate) stdio_color: ColourChoice,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub(crate) screen: ScreenOptions,

    /// Print one JSON document
    #[arg(short = 'j', long, conflicts_with_all = ["csv", "field_separator"], help_heading = "Output")]
    pub(crate) json: bool,

    /// Print the table as CSV
    #[arg(long, conflicts_with = "field_separator", help_heading = "Output", hide_short_help = true)]
    pub(crate) csv: bool,

    /// Column widths
    #[arg(
        short = 'w',
        long,
        value_name = "N,…",
        value_delimiter = ',',
        help_heading = "Output",
        hide_short_help = true
    )]
    pub(crate) column_widths: Vec<usize>,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub(crate) symbol_files: SymbolFiles,

    /// Print all remarks about data quality, each module without symbols, and its remedy
    #[arg(short = 'v', long, action = ArgAction::Count, help_heading = "Output", hide_short_help = true)]
    pub(crate) verbose: u8,

    /// Print rows without headings, and no messages except errors
    #[arg(short, long, help_heading = "Output", hide_short_help = true)]
    pub(crate) quiet: bool,

    /// perf's settings.
    #[command(flatten)]
    pub(crate) settings: ReportSettings,
}

impl ReportArgs {
    /// Returns what to report.
    ///
    /// # Errors
    /// Fails if options contradict each other, or an environment variable is invalid.
    pub(crate) fn request(self) -> Result<ReportRequest> {
        let (input, part) = self.input_and_symbol();
        let filters = self.filters(part.as_deref());
        let settings = &self.settings;
        let is_usual = self.sort.is_empty() && self.fields.is_empty();
        let mut rows =
            RowLayout::new(if is_usual { &settings.default_sort } else { &self.sort }, &self.fields)?;
        if self.show_cpu_utilization {
            rows.added.splice(0..0, [ReportColumn::InMode(0), ReportColumn::InMode(1)]);
        }
        if self.stacks.parent.is_some() && !rows.keys.contains(&SortKey::Parent) {
            rows.keys.push(SortKey::Parent);
        }
        let form = self.form();
        let listing = self.listing();
        let mut selection = self.stacks.selection(&self.filter);
        selection.parallelism = self.parallelism.as_ref().map(|list| list.value.0.iter().collect());
        Ok(ReportRequest {
            input,
            samples: AnalysisRequest {
                selection,
                slice: self.time_quantum.as_nanos() as u64,
                measure: match (self.branch_stack, self.mem_mode, self.no_branch_stack) {
                    (true, ..) => CostMeasure::Branches,
                    (_, true, _) => CostMeasure::Weight,
                    (_, _, true) => CostMeasure::Period,
                    _ => CostMeasure::BranchesIfRecorded,
                },
                raw_traces: self.raw_trace,
                ..self.stacks.samples(&self.filter, &self.symbol_files)?
            },
            only: RowSelection { part, ..self.stacks.only() },
            rows,
            chains: settings.chains(self.call_graph.as_deref(), self.inverted),
            tree: self.tree,
            children: self.children || !(self.no_children || settings.default_no_children),
            collapse_recursion: self.collapse_recursion,
            latency: self.latency,
            relative: self.percentage.or(settings.default_percentage) == Some(ShareBase::Filtered),
            limit: self.limit.map(Limit::get),
            percent_limit: self.percent_limit.or(settings.default_percent_limit),
            depth: self.stacks.no_inline.then_some(Depth::Names),
            header: match (self.header_only, self.header) {
                (true, _) => HeaderChoice::Only,
                (_, true) => HeaderChoice::First,
                _ => HeaderChoice::No,
            },
            listing,
            thread_counts: self.threads && form == ReportFormat::Text,
            browses: self.browses(listing, &form),
            colour: self.stdio_color.forced(),
            background: self.screen.background()?,
            style: ReportLayout {
                form,
                show_samples: self.show_nr_samples,
                show_period: self.show_total_period,
                grouping: match (self.group, self.no_group) {
                    (_, true) => EventGrouping::Apart,
                    (true, _) => EventGrouping::All,
                    _ => EventGrouping::Recorded,
                },
                widths: self.column_widths,
                hierarchy: self.hierarchy,
                full_paths: self.full_source_path,
                full_names: self.full_names,
                nanoseconds: self.ns,
                sort_member: self.group_sort_idx.unwrap_or(0),
                trust: if self.verbose > 0 { TrustDetail::Full } else { TrustDetail::Brief },
                is_quiet: self.quiet,
                filters,
                ..ReportLayout::default()
            },
            ..ReportRequest::default()
        })
    }

    fn form(&self) -> ReportFormat {
        match &self.field_separator {
            Some(separator) => ReportFormat::Separated(separator.clone()),
            None if self.csv => ReportFormat::Csv,
            None if self.json => ReportFormat::Json,
            None => ReportFormat::Text,
        }
    }

    /// Returns the list that replaces the profile, if one is requested.
    fn listing(&self) -> Option<ListKind> {
        match (self.dump_raw_trace, self.stats, self.tasks || self.mmaps) {
            (true, ..) => Some(ListKind::Dump),
            (_, true, _) => Some(ListKind::Records),
            (.., true) => Some(ListKind::Tasks { maps: self.mmaps }),
            _ => None,
        }
    }

    /// Whether to open the full-screen interface, because no option requests text output.
    fn browses(&self, listing: Option<ListKind>, form: &ReportFormat) -> bool {
        let is_for_text =
            listing.is_some() || self.header || self.header_only || self.threads || self.hierarchy;
        let has_groups = self.group || self.no_group;
        let has_layout = self.limit.is_some() || !self.fields.is_empty() || !self.column_widths.is_empty();
        !(self.stdio || *form != ReportFormat::Text || is_for_text || has_groups || has_layout)
    }

    /// Returns the recording, and a part of function names. As in perf, the positional argument is a part of
    /// a name unless it can be a recording.
    fn input_and_symbol(&self) -> (Option<PathBuf>, Option<String>) {
        let part = self.stacks.symbol_filter.clone();
        let Some(word) = &self.file else { return (self.input.clone(), part) };
        let is_file = word.as_os_str() == "-" || word.components().count() > 1 || word.exists();
        match word.to_str() {
            Some(symbol) if self.input.is_some() || !is_file && !symbol.ends_with(".data") => {
                (self.input.clone(), Some(symbol.to_owned()))
            }
            _ => (Some(word.clone()), part),
        }
    }

    /// Returns the options that select samples, as typed.
    fn filters(&self, part: Option<&str>) -> Vec<String> {
        let numbers = |all: &[i32]| all.iter().map(i32::to_string).collect::<Vec<_>>().join(",");
        let (filter, stacks) = (&self.filter, &self.stacks);
        let states: Vec<&str> = stacks.state.iter().map(|state| state.word).collect();
        let options = [
            ("--comms", filter.comms.join(",")),
            ("--pid", numbers(&filter.pid)),
            ("--tid", numbers(&filter.tid)),
            ("--cpu", filter.cpu.as_ref().map_or_else(String::new, |cpus| cpus.text.clone())),
            ("--time", filter.time.as_ref().map_or_else(String::new, |span| span.text.clone())),
            ("--dsos", stacks.dsos.join(",")),
            ("--symbols", stacks.symbols.join(",")),
            ("--symbol-filter", part.unwrap_or_default().to_owned()),
            ("--state", states.join(",")),
            ("--parallelism", self.parallelism.as_ref().map_or_else(String::new, |list| list.text.clone())),
        ];
        let given = options.into_iter().filter(|(_, value)| !value.is_empty());
        given.map(|(option, value)| format!("{option} {value}")).collect()
    }
}

/// Parses `--time-quantum`, by default in milliseconds.
fn quantum(text: &str) -> Result<Duration> {
    values::duration(text, MS, 1)
}
