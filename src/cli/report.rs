//! Options of `pmc report`.

use std::path::PathBuf;

use clap::{ArgAction, Args};

use pmc_command::options::sample_filter::SampleFilter;
use pmc_command::options::screen_options::ScreenOptions;
use pmc_command::options::stack_options::StackOptions;
use pmc_command::options::symbol_files::SymbolFiles;

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
    pub(crate) sort: Vec<String>,

    /// Columns, in order: overhead, overhead_children, latency, latency_children, sample, period, and sort
    /// keys; +FIELD adds a column to the default
    #[arg(
        short = 'F',
        long,
        value_name = "FIELD,…",
        value_delimiter = ',',
        help_heading = "Rows and columns"
    )]
    pub(crate) fields: Vec<String>,

    /// Print call chains under each row: order (caller, callee, none), style (graph, fractal, flat, folded),
    /// value (percent, period, count), minimum percentage
    #[arg(short = 'g', long, value_name = "HOW,…", num_args = 0..=1, default_missing_value = "caller", value_delimiter = ',', help_heading = "Call stacks")]
    pub(crate) call_graph: Option<Vec<String>>,

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

    /// What percentages refer to: all samples (absolute) or those that pass the filters (relative)
    #[arg(long, value_name = "OF", default_value = "absolute", value_parser = ["absolute", "relative"], help_heading = "Rows and columns", hide_short_help = true)]
    pub(crate) percentage: String,

    /// Maximum number of rows; with --json, also of tree nodes and modules; 0 shows all [default: 20; all in
    /// a pipe, and with -t, --csv or --json]
    #[arg(
        long,
        visible_alias = "max-rows",
        alias = "top",
        value_name = "N",
        help_heading = "Rows and columns"
    )]
    pub(crate) limit: Option<usize>,

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
    pub(crate) parallelism: Option<String>,

    /// Length of a time slice for the sort key time, in milliseconds or with a unit (s, ms, us, ns)
    #[arg(
        long,
        value_name = "TIME",
        default_value = "100ms",
        help_heading = "Rows and columns",
        hide_short_help = true
    )]
    pub(crate) time_quantum: String,

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

    /// Whether to print the terminal's text format even in a pipe; set by `pmc profile`.
    #[arg(skip)]
    pub(crate) is_page: bool,

    /// Whether to write text to standard error, because the profiled command uses standard output.
    #[arg(skip)]
    pub(crate) to_stderr: bool,

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
    #[arg(long, visible_alias = "color", value_name = "WHEN", default_value = "auto", value_parser = ["always", "never", "auto"], help_heading = "Output", hide_short_help = true)]
    pub(crate) stdio_color: String,

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
}
