//! `pmc top`: what can be typed.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Args};

use super::screen_options::ScreenOptions;

/// Show where time goes now, function by function: the whole machine, or some processes of it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmc top                          the whole machine
  pmc top -g -p 1234               one process, with call chains
  pmc top -g -- ./program          a command, from its first moment
  pmc top -e page-faults -c 1      who touches new memory
  pmc top -s comm,dso --stdio      programs and libraries, as text
  pmc top --stdio --duration 10s -d 5 | cat
  pmc top --json -d 1 | jq .rate   an object a second, for programs
Keys, columns and what the numbers mean: docs/top.md.")]
pub struct Top {
    /// Events to sample (repeatable); the default is cycles, as precise as the machine can
    #[arg(short = 'e', long = "event", value_name = "EVENTS", action = ArgAction::Append)]
    pub events: Vec<String>,

    /// Events by libpfm4's names, such as inst_retired:any_p:u (repeatable)
    #[arg(long, value_name = "EVENTS", action = ArgAction::Append)]
    pub pfm_events: Vec<String>,

    /// Keep only the tracepoint's samples for which this expression holds; the filters belong to the last -e,
    /// in order
    #[arg(long, value_name = "EXPR", action = ArgAction::Append, allow_hyphen_values = true)]
    pub filter: Vec<String>,

    /// Samples a second, or `max`
    #[arg(short = 'F', long = "freq", value_name = "HZ", conflicts_with = "count")]
    pub freq: Option<String>,

    /// Take a sample after so many occurrences; `auto`: as many as the event's maker recommends
    #[arg(short = 'c', long, value_name = "N")]
    pub count: Option<String>,

    /// Sample call chains (by frame pointers)
    #[arg(short = 'g')]
    pub stacks: bool,

    /// Sample call chains: fp (frame pointers) or lbr (branch records)
    #[arg(long, value_name = "MODE")]
    pub call_graph: Option<String>,

    /// Greatest number of frames in a call chain
    #[arg(long, value_name = "N", default_value_t = 127)]
    pub max_stack: u16,

    /// Sample everything on all CPUs (the default)
    #[arg(short = 'a', long)]
    pub all_cpus: bool,

    /// Sample everything on these CPUs, such as 0-3,8
    #[arg(short = 'C', long = "cpu", value_name = "CPUS")]
    pub cpus: Option<String>,

    /// Sample these running processes, by number or name, with all their threads
    #[arg(short = 'p', long = "pid", value_name = "PID|NAME,…", value_delimiter = ',', conflicts_with_all = ["tids", "uid"])]
    pub pids: Vec<String>,

    /// Sample these running threads
    #[arg(short = 't', long = "tid", value_name = "TID,…", value_delimiter = ',', conflicts_with = "uid")]
    pub tids: Vec<String>,

    /// Sample all processes of this user (name or number)
    #[arg(short = 'u', long = "uid", value_name = "USER")]
    pub uid: Option<String>,

    /// Sample only in this cgroup; a list goes with the events in order
    #[arg(short = 'G', long = "cgroup", value_name = "NAME,…")]
    pub cgroups: Option<String>,

    /// Do not sample children that the processes start
    #[arg(short = 'i', long)]
    pub no_inherit: bool,

    /// Size of a ring: pages, or bytes with B, K, M or G (a power of two)
    #[arg(short = 'm', long, value_name = "SIZE")]
    pub mmap_pages: Option<String>,

    /// Hide what runs in the kernel
    #[arg(short = 'K', long, alias = "hide_kernel_symbols")]
    pub hide_kernel_symbols: bool,

    /// Hide what runs in programs
    #[arg(short = 'U', long, alias = "hide_user_symbols", conflicts_with = "hide_kernel_symbols")]
    pub hide_user_symbols: bool,

    /// Show idle functions of the kernel too
    #[arg(long)]
    pub idle: bool,

    /// Time from one table to the next: seconds, as perf has it, or with a unit (500ms)
    #[arg(short = 'd', long, value_name = "TIME", default_value = "2")]
    pub delay: String,

    /// Start from zero after each table, instead of letting older samples fade
    #[arg(short = 'z', long)]
    pub zero: bool,

    /// Let no sample fade: all since the start count alike
    #[arg(long, conflicts_with = "zero")]
    pub accumulate: bool,

    /// Tell rows apart by these: comm, pid, tid, dso, sym, srcline, srcfile, cpu, socket, cgroup, weight,
    /// addr
    #[arg(short, long, value_name = "KEY,…", value_delimiter = ',')]
    pub sort: Vec<String>,

    /// Columns in this order: overhead, overhead_children, sample, period, and sort keys
    #[arg(long, value_name = "FIELD,…", value_delimiter = ',')]
    pub fields: Vec<String>,

    /// Rows below rows: what is the same in the first sort key is added up first (as text)
    #[arg(short = 'H', long, conflicts_with_all = ["json", "tui", "group"])]
    pub hierarchy: bool,

    /// Events side by side in one table
    #[arg(long)]
    pub group: bool,

    /// Sort by the member of the group with this index
    #[arg(long, value_name = "INDEX")]
    pub group_sort_idx: Option<usize>,

    /// Widths of the columns of the text
    #[arg(short = 'w', long, value_name = "N,…", value_delimiter = ',')]
    pub column_widths: Vec<usize>,

    /// Show the number of samples
    #[arg(short = 'n', long)]
    pub show_nr_samples: bool,

    /// Show the sum of periods
    #[arg(long)]
    pub show_total_period: bool,

    /// Leave out rows, and branches of the tree, below this percentage
    #[arg(long, value_name = "PERCENT")]
    pub percent_limit: Option<f64>,

    /// Leave out rows with so many samples or fewer
    #[arg(short = 'f', long, value_name = "N")]
    pub count_filter: Option<u64>,

    /// Percentages of all samples (absolute) or of those that the filters left (relative)
    #[arg(long, value_name = "OF", default_value = "absolute", value_parser = ["absolute", "relative"])]
    pub percentage: String,

    /// Rows of a table in the text [default: 20]
    #[arg(short = 'E', long, value_name = "N")]
    pub entries: Option<usize>,

    /// Count what functions called as theirs too (default with call chains)
    #[arg(long, overrides_with = "no_children")]
    pub children: bool,

    /// Only what functions cost themselves
    #[arg(long)]
    pub no_children: bool,

    /// What these functions called counts as their own
    #[arg(long, value_name = "REGEX")]
    pub ignore_callees: Option<String>,

    /// Only threads with these names
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub comms: Vec<String>,

    /// Only these programs and libraries
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub dsos: Vec<String>,

    /// Only these functions
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub symbols: Vec<String>,

    /// Names as the compiler wrote them
    #[arg(long)]
    pub no_demangle: bool,

    /// How x86 instructions are written: att or intel
    #[arg(short = 'M', long, value_name = "STYLE", default_value = "att", value_parser = ["att", "intel"])]
    pub disassembler_style: String,

    /// A folder that stands for the first folders of sources' paths; --prefix-strip says for how many
    #[arg(long, value_name = "DIR")]
    pub prefix: Option<PathBuf>,

    /// Leave out so many folders from the beginning of sources' paths
    #[arg(long, value_name = "N", default_value_t = 0, requires = "prefix")]
    pub prefix_strip: usize,

    /// Empty the rings at this real-time priority (1 to 99): before all other work
    #[arg(short = 'r', long, value_name = "PRIORITY", value_parser = clap::value_parser!(i32).range(1..=99))]
    pub realtime: Option<i32>,

    /// Print plain tables, as when the output is no terminal
    #[arg(long, conflicts_with = "tui")]
    pub stdio: bool,

    /// Take the whole screen (the default on a terminal)
    #[arg(long)]
    pub tui: bool,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub screen: ScreenOptions,

    /// Print a JSON object a line, one each interval, with all rows
    #[arg(long, conflicts_with = "tui")]
    pub json: bool,

    /// End after this time: milliseconds, or with a unit (30s, 5m)
    #[arg(long, visible_alias = "duration", value_name = "TIME")]
    pub timeout: Option<String>,

    /// The kernel's file with symbols
    #[arg(short = 'k', long, value_name = "FILE")]
    pub vmlinux: Option<PathBuf>,

    /// A copy of /proc/kallsyms
    #[arg(long, value_name = "FILE")]
    pub kallsyms: Option<PathBuf>,

    /// What to do about a hardware reservation: auto, check, require, yield, off
    #[arg(long, value_name = "POLICY", default_value = "auto", value_parser = ["auto", "check", "require", "yield", "off"])]
    pub reserve: String,

    /// Say more: what was opened, and how
    #[arg(short = 'v', long, action = ArgAction::Count)]
    pub verbose: u8,

    /// Say nothing but errors
    #[arg(short = 'q', long)]
    pub quiet: bool,

    /// Start this command, with its arguments, and sample it until it ends; what it would write on the screen
    /// is thrown away
    #[arg(trailing_var_arg = true, value_name = "COMMAND", value_hint = clap::ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}
