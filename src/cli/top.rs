//! Options of `pmc top`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};

use pmc_analysis::analysis::request::NamePattern;
use pmc_analysis::profile::sampled::SortKey;
use pmc_command::options::sample_filter::{PERCENTAGES, ShareBase};
use pmc_command::options::screen_options::ScreenOptions;
use pmc_command::sampling_options::{ProcessSelector, TargetOptions};
use pmc_command::values::{self, Limit, SYNTAXES, one_of};
use pmc_compat::LiveView;
use pmc_events::counter::request::sampling::{CallGraph, Rate};
use pmc_events::counter::reservation::Policy;
use pmc_recording::recording::ring_size::RingSize;
use pmc_symbols::symbol::disassemble::Syntax;
use pmc_sys::error::Result;
use pmc_text::units::{MS, S};
use pmc_view::report::row_layout::RowWord;

/// Show where time goes right now, by function, for the whole machine or selected processes.
#[derive(Debug, Default, Args)]
#[command(after_help = "\
Examples:
  pmc top                          the whole machine
  pmc top -g -p 1234               one process, with call chains
  pmc top -g -- ./program          a command, from its start
  pmc top -e page-faults -c 1      code that touches new memory
  pmc top -s comm,dso --stdio      programs and libraries, as text
  pmc top --stdio --duration 10s -d 5 | cat
  pmc top --json -d 1 | jq .rate   one object per second
  pmc top --wall -p 1234           running and waiting time of one process
docs/top.md explains keys, columns and numbers.")]
#[command(mut_args(|option| if option.get_id() == "theme" { option.hide_short_help(true) } else { option }))]
pub struct TopArgs {
    /// Events to sample (repeatable) [default: cycles, as precise as possible]
    #[arg(short = 'e', long = "event", value_name = "EVENTS", action = ArgAction::Append, help_heading = "Events")]
    pub(crate) events: Vec<String>,

    /// Events by libpfm4 name, such as inst_retired:any_p:u (repeatable)
    #[arg(long, value_name = "EVENTS", action = ArgAction::Append, help_heading = "Events", hide_short_help = true)]
    pub(crate) pfm_events: Vec<String>,

    /// Filter expression for the tracepoints of the last -e (repeatable; all must match)
    #[arg(long, value_name = "EXPR", action = ArgAction::Append, allow_hyphen_values = true, help_heading = "Events", hide_short_help = true)]
    pub(crate) filter: Vec<String>,

    /// Sample frequency in Hz, or `max`
    #[arg(short = 'F', long = "freq", value_name = "HZ", conflicts_with = "count", value_parser = Rate::frequency, help_heading = "Events")]
    pub(crate) freq: Option<Rate>,

    /// Sample every N events; `auto` uses the vendor's recommended period
    #[arg(short = 'c', long, value_name = "N", value_parser = Rate::period, help_heading = "Events")]
    pub(crate) count: Option<Rate>,

    /// Sample call chains by frame pointers
    #[arg(short = 'g', help_heading = "Events")]
    pub(crate) stacks: bool,

    /// Sample call chains: fp (frame pointers) or lbr (branch records)
    #[arg(long, value_name = "MODE", help_heading = "Events")]
    pub(crate) call_graph: Option<CallGraph>,

    /// Method that -g selects: top.call-graph or call-graph.record-mode
    #[arg(long, hide = true, value_name = "MODE")]
    pub(crate) default_call_graph: Option<CallGraph>,

    /// Maximum number of frames in a call chain [default: 127]
    #[arg(long, value_name = "N", help_heading = "Events", hide_short_help = true)]
    pub(crate) max_stack: Option<u16>,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub(crate) targets: TargetOptions,

    /// Sample only in this cgroup; a list assigns one cgroup to each event
    #[arg(short = 'G', long = "cgroup", value_name = "NAME,…", value_delimiter = ',', action = ArgAction::Set, help_heading = "Targets")]
    pub(crate) cgroups: Vec<String>,

    /// Do not sample child processes
    #[arg(short = 'i', long, help_heading = "Targets", hide_short_help = true)]
    pub(crate) no_inherit: bool,

    /// Size of each ring buffer: pages, or bytes with B, K, M or G (a power of two)
    #[arg(short = 'm', long, value_name = "SIZE", hide_short_help = true)]
    pub(crate) mmap_pages: Option<RingSize>,

    /// Hide kernel samples
    #[arg(short = 'K', long, alias = "hide_kernel_symbols", help_heading = "Filters")]
    pub(crate) hide_kernel_symbols: bool,

    /// Hide user samples
    #[arg(
        short = 'U',
        long,
        alias = "hide_user_symbols",
        conflicts_with = "hide_kernel_symbols",
        help_heading = "Filters",
        hide_short_help = true
    )]
    pub(crate) hide_user_symbols: bool,

    /// Also measure where threads wait: off-CPU time, with the stack of each wait
    #[arg(long, help_heading = "Waiting time", hide_short_help = true)]
    pub(crate) off_cpu: bool,

    /// Measure all time of each thread, running (cpu-clock) and waiting: --off-cpu -e cpu-clock
    #[arg(long, conflicts_with = "events", help_heading = "Waiting time")]
    pub(crate) wall: bool,

    /// Also show the kernel's idle functions, and threads waiting for work
    #[arg(long, help_heading = "Rows and columns")]
    pub(crate) idle: bool,

    /// Update interval, in seconds or with a unit (500ms) [default: 2]
    #[arg(short = 'd', long, value_name = "TIME", value_parser = update_interval, help_heading = "Output")]
    pub(crate) delay: Option<Duration>,

    /// Reset counts after each update instead of letting older samples decay
    #[arg(short = 'z', long, help_heading = "Rows and columns", hide_short_help = true)]
    pub(crate) zero: bool,

    /// Keep all samples since the start instead of letting older ones decay
    #[arg(long, conflicts_with = "zero", help_heading = "Rows and columns", hide_short_help = true)]
    pub(crate) accumulate: bool,

    /// Sort keys: comm, pid, tgid, tid, dso, sym, srcline, srcfile, cpu, socket, cgroup, weight, addr
    #[arg(short, long, value_name = "KEY,…", value_delimiter = ',', help_heading = "Rows and columns")]
    pub(crate) sort: Vec<RowWord>,

    /// Columns, in order: overhead, overhead_children, sample, period, and sort keys
    #[arg(
        long,
        value_name = "FIELD,…",
        value_delimiter = ',',
        help_heading = "Rows and columns",
        hide_short_help = true
    )]
    pub(crate) fields: Vec<RowWord>,

    /// Group rows by the first sort key, then by the next, as a hierarchy (text only)
    #[arg(short = 'H', long, conflicts_with_all = ["json", "tui", "group"], help_heading = "Rows and columns", hide_short_help = true)]
    pub(crate) hierarchy: bool,

    /// Show events side by side in one table
    #[arg(long, help_heading = "Rows and columns", hide_short_help = true)]
    pub(crate) group: bool,

    /// Sort by the member of the group with this index
    #[arg(long, value_name = "INDEX", help_heading = "Rows and columns", hide_short_help = true)]
    pub(crate) group_sort_idx: Option<usize>,

    /// Column widths of the text
    #[arg(
        short = 'w',
        long,
        value_name = "N,…",
        value_delimiter = ',',
        help_heading = "Rows and columns",
        hide_short_help = true
    )]
    pub(crate) column_widths: Vec<usize>,

    /// Show the number of samples
    #[arg(short = 'n', long, help_heading = "Rows and columns", hide_short_help = true)]
    pub(crate) show_nr_samples: bool,

    /// Show the sum of periods
    #[arg(long, help_heading = "Rows and columns", hide_short_help = true)]
    pub(crate) show_total_period: bool,

    /// Hide rows and tree branches below this percentage
    #[arg(long, value_name = "PERCENT", help_heading = "Rows and columns", hide_short_help = true)]
    pub(crate) percent_limit: Option<f64>,

    /// Hide rows with this many samples or fewer
    #[arg(short = 'f', long, value_name = "N", help_heading = "Rows and columns", hide_short_help = true)]
    pub(crate) count_filter: Option<u64>,

    /// What percentages refer to: all samples (absolute) or those that pass the filters (relative)
    #[arg(long, value_name = "OF", default_value = "absolute", value_parser = one_of(PERCENTAGES), help_heading = "Rows and columns", hide_short_help = true)]
    pub(crate) percentage: ShareBase,

    /// Maximum number of rows per table; 0 shows all [default: 20; all with --json]
    #[arg(
        short = 'E',
        long,
        visible_alias = "limit",
        value_name = "N",
        help_heading = "Rows and columns",
        hide_short_help = true
    )]
    pub(crate) entries: Option<Limit>,

    /// Include callees in the cost of a function (default with call chains)
    #[arg(long, overrides_with = "no_children", help_heading = "Rows and columns", hide_short_help = true)]
    pub(crate) children: bool,

    /// Show only the self cost of functions
    #[arg(long, help_heading = "Rows and columns", hide_short_help = true)]
    pub(crate) no_children: bool,

    /// Attribute the cost of callees to these functions
    #[arg(long, value_name = "REGEX", help_heading = "Filters", hide_short_help = true)]
    pub(crate) ignore_callees: Option<NamePattern>,

    /// Include only threads with these names
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', help_heading = "Filters")]
    pub(crate) comms: Vec<String>,

    /// Include only these programs and libraries
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', help_heading = "Filters")]
    pub(crate) dsos: Vec<String>,

    /// Include only these functions
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', help_heading = "Filters")]
    pub(crate) symbols: Vec<String>,

    /// Show mangled symbol names
    #[arg(long, hide_short_help = true)]
    pub(crate) no_demangle: bool,

    /// x86 assembly syntax: att or intel
    #[arg(short = 'M', long, value_name = "STYLE", default_value = "att", value_parser = one_of(SYNTAXES), hide_short_help = true)]
    pub(crate) disassembler_style: Syntax,

    /// Directory that replaces the start of source paths; --prefix-strip sets how many components
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    pub(crate) prefix: Option<PathBuf>,

    /// Number of leading components to strip from source paths
    #[arg(long, value_name = "N", default_value_t = 0, requires = "prefix", hide_short_help = true)]
    pub(crate) prefix_strip: usize,

    /// Real-time priority (1 to 99) of the thread that reads the ring buffers
    #[arg(short = 'r', long, value_name = "PRIORITY", value_parser = clap::value_parser!(i32).range(1..=99), hide_short_help = true)]
    pub(crate) realtime: Option<i32>,

    /// Print plain tables, as in a pipe
    #[arg(long, conflicts_with = "tui", help_heading = "Output")]
    pub(crate) stdio: bool,

    /// Use the full-screen interface (default on a terminal)
    #[arg(long, help_heading = "Output", hide_short_help = true)]
    pub(crate) tui: bool,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub(crate) screen: ScreenOptions,

    /// Print a JSON object with all rows on a separate line for each interval
    #[arg(long, conflicts_with = "tui", help_heading = "Output", hide_short_help = true)]
    pub(crate) json: bool,

    /// Stop after this time, in milliseconds or with a unit (30s, 5m)
    #[arg(long, visible_alias = "duration", value_name = "TIME", value_parser = values::timeout, help_heading = "Output")]
    pub(crate) timeout: Option<Duration>,

    /// Kernel image with symbols (vmlinux)
    #[arg(short = 'k', long, value_name = "FILE", hide_short_help = true)]
    pub(crate) vmlinux: Option<PathBuf>,

    /// Copy of /proc/kallsyms
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) kallsyms: Option<PathBuf>,

    /// Whether to reserve the hardware counters, or to yield to other reservations: auto, check, require,
    /// yield, off
    #[arg(long, value_name = "POLICY", default_value = "auto", value_parser = one_of(&Policy::NAMED), help_heading = "Events", hide_short_help = true)]
    pub(crate) reserve: Policy,

    /// Print details about the opened events
    #[arg(short = 'v', long, action = ArgAction::Count, help_heading = "Output", hide_short_help = true)]
    pub(crate) verbose: u8,

    /// Print errors only
    #[arg(short = 'q', long, help_heading = "Output", hide_short_help = true)]
    pub(crate) quiet: bool,

    /// Run this command and sample it until it ends; its output is discarded
    #[arg(trailing_var_arg = true, value_name = "COMMAND", value_hint = clap::ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
}

/// Parses `-d`, in seconds or with a unit.
fn update_interval(text: &str) -> Result<Duration> {
    values::duration(text, S, 10 * MS)
}

impl From<LiveView> for TopArgs {
    fn from(view: LiveView) -> Self {
        Self {
            events: view.events,
            targets: TargetOptions {
                pids: view.pids.into_iter().map(ProcessSelector::Id).collect(),
                all_cpus: view.all_cpus,
                ..TargetOptions::default()
            },
            command: view.command,
            delay: view.delay,
            timeout: view.timeout,
            sort: view.keys.into_iter().map(SortKey::into).collect(),
            percent_limit: view.percent_limit,
            accumulate: view.accumulate,
            hide_user_symbols: view.hide_user_symbols,
            show_nr_samples: view.show_samples,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{Command, FromArgMatches};

    use super::*;

    #[test]
    fn options_have_the_defaults_of_their_types() {
        let parser = TopArgs::augment_args(Command::new("top"));
        let parsed = TopArgs::from_arg_matches(&parser.get_matches_from(["top"])).unwrap();
        assert_eq!(format!("{parsed:?}"), format!("{:?}", TopArgs::default()));
    }
}
