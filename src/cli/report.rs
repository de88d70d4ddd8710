//! `pmc report`: what can be typed.

use std::path::PathBuf;

use clap::Args;

use super::sample_filter::SampleFilter;
use super::screen_options::ScreenOptions;
use super::stack_options::StackOptions;
use super::symbol_files::SymbolFiles;

/// Show where the time went: functions by cost, the call tree, and how far both can be trusted.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  pmc report                              perf.data on the screen: functions, call tree, flame graph, code
  pmc report --stdio                      the top functions, then the call tree, as text
  pmc report -s dso                       by library
  pmc report --comms make -g callee       one program, who calls the costly functions
  pmc report -F overhead,sample,sym -t,   all rows, for a program to read
  pmc report --json                       everything, as one document
Sort keys and the fields of --json: docs/report.md.")]
pub struct Report {
    /// The recording (also as -i), `-` for standard input [default: what comes on it, else perf.data]; a
    /// word that names no file: only functions with it in their names
    #[arg(value_name = "FILE|SYMBOL")]
    pub file: Option<PathBuf>,

    /// The recording
    #[arg(short, long, value_name = "FILE")]
    pub input: Option<PathBuf>,

    /// Tell rows apart by these: comm, pid, tid, dso, sym, srcline, srcfile, cpu, socket, time, cgroup,
    /// trace, parent, parallelism, …; +KEY adds one to the usual
    #[arg(short, long, value_name = "KEY,…", value_delimiter = ',')]
    pub sort: Vec<String>,

    /// Columns in this order: overhead, overhead_children, latency, latency_children, sample, period, and
    /// sort keys; +FIELD adds one to the usual
    #[arg(short = 'F', long, value_name = "FIELD,…", value_delimiter = ',')]
    pub fields: Vec<String>,

    /// Call chains under each row: caller, callee or none; graph, fractal, flat or folded; percent, period or
    /// count; the smallest percentage in them
    #[arg(short = 'g', long, value_name = "HOW,…", num_args = 0..=1, default_missing_value = "caller", value_delimiter = ',')]
    pub call_graph: Option<Vec<String>>,

    /// Call chains from the caller down
    #[arg(short = 'G', long)]
    pub inverted: bool,

    /// Print all call chains as one tree below the table, not those of each row under it (default on a
    /// terminal without -g)
    #[arg(long)]
    pub tree: bool,

    /// Count what functions called as theirs too (default with call chains)
    #[arg(long, overrides_with = "no_children")]
    pub children: bool,

    /// Only what functions cost themselves
    #[arg(long)]
    pub no_children: bool,

    /// Show the number of samples
    #[arg(short = 'n', long)]
    pub show_nr_samples: bool,

    /// Show the sum of periods
    #[arg(long)]
    pub show_total_period: bool,

    /// Show what part of each row was in the kernel, and what part in processes
    #[arg(long, alias = "showcpuutilization")]
    pub show_cpu_utilization: bool,

    /// Leave out rows, and branches of the tree, below this percentage
    #[arg(long, value_name = "PERCENT")]
    pub percent_limit: Option<f64>,

    /// Percentages of all samples (absolute) or of those that the filters left (relative)
    #[arg(long, value_name = "OF", default_value = "absolute", value_parser = ["absolute", "relative"])]
    pub percentage: String,

    /// Rows in the text; 0 shows all [default: 20; all in a pipe, with -t, --csv and --json]
    #[arg(long, visible_alias = "top", value_name = "N")]
    pub max_rows: Option<usize>,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub filter: SampleFilter,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub stacks: StackOptions,

    /// Each branch of the recorded branch stacks counts once (default where there are some)
    #[arg(short = 'b', long, overrides_with = "no_branch_stack")]
    pub branch_stack: bool,

    /// Count samples, not their branches
    #[arg(long)]
    pub no_branch_stack: bool,

    /// Memory accesses by what they cost: data, its place in the caches, and by default all their sort keys
    #[arg(long, conflicts_with = "branch_stack")]
    pub mem_mode: bool,

    /// Sort by shares of time by the clock, not of CPU time (pmc record --latency)
    #[arg(long)]
    pub latency: bool,

    /// Only samples taken while so many threads ran, such as 1 or 1-2,8 (pmc record --latency)
    #[arg(long, value_name = "LIST")]
    pub parallelism: Option<String>,

    /// Length of a slice for the sort key time: milliseconds, or with a unit (s, ms, us, ns)
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    pub time_quantum: String,

    /// Times to the nanosecond
    #[arg(long)]
    pub ns: bool,

    /// Show what the recording says of itself first
    #[arg(short = 'I', long, alias = "show-info")]
    pub header: bool,

    /// Show only what the recording says of itself
    #[arg(long)]
    pub header_only: bool,

    /// Show how many records of each kind there are, and nothing else
    #[arg(long)]
    pub stats: bool,

    /// Print all records, byte by byte and field by field, and how many there are of each kind
    #[arg(short = 'D', long)]
    pub dump_raw_trace: bool,

    /// Show the processes and threads, and nothing else
    #[arg(long)]
    pub tasks: bool,

    /// Show the processes and threads with what they had mapped, and nothing else
    #[arg(long)]
    pub mmaps: bool,

    /// Show what each thread's counters said at its end, too (pmc record -s)
    #[arg(short = 'T', long)]
    pub threads: bool,

    /// Names of functions as they are: else text on a terminal has them as one reads them, without template
    /// arguments, what a function returns, and what compilers added
    #[arg(long)]
    pub full_names: bool,

    /// Text is for a person, wherever it goes: what `pmc profile` asks for.
    #[arg(skip)]
    pub is_page: bool,

    /// Text goes to standard error: standard output is the profiled command's.
    #[arg(skip)]
    pub to_stderr: bool,

    /// Paths of source files in full
    #[arg(long)]
    pub full_source_path: bool,

    /// Tracepoints' fields one by one, not as their format prints them
    #[arg(long)]
    pub raw_trace: bool,

    /// Rows below rows: what is the same in the first sort key is added up first
    #[arg(short = 'H', long, conflicts_with_all = ["json", "csv", "field_separator", "group"])]
    pub hierarchy: bool,

    /// Join direct recursion into one branch of the tree
    #[arg(long)]
    pub collapse_recursion: bool,

    /// Print fields with this between them and nothing else
    #[arg(short = 't', long, value_name = "SEP")]
    pub field_separator: Option<String>,

    /// Print all events side by side, not only those that were recorded as a group
    #[arg(long)]
    pub group: bool,

    /// Print a table for each event, groups or not
    #[arg(long, conflicts_with_all = ["group"])]
    pub no_group: bool,

    /// Sort by the member of the group with this index
    #[arg(long, value_name = "INDEX", conflicts_with = "no_group")]
    pub group_sort_idx: Option<usize>,

    /// Print plain text, on a terminal too
    #[arg(long)]
    pub stdio: bool,

    /// Whether text has colours: always (a pipe then gets text for a person, too), never, or auto, on a
    /// terminal
    #[arg(long, visible_alias = "color", value_name = "WHEN", default_value = "auto", value_parser = ["always", "never", "auto"])]
    pub stdio_color: String,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub screen: ScreenOptions,

    /// Print one JSON document
    #[arg(short = 'j', long, conflicts_with_all = ["csv", "field_separator"])]
    pub json: bool,

    /// Print the table as CSV
    #[arg(long, conflicts_with = "field_separator")]
    pub csv: bool,

    /// Widths of the columns
    #[arg(short = 'w', long, value_name = "N,…", value_delimiter = ',')]
    pub column_widths: Vec<usize>,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub symbol_files: SymbolFiles,

    /// Print rows without headings, and no messages but errors
    #[arg(short, long)]
    pub quiet: bool,
}
