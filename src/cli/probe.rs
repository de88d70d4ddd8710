//! Options of `pmc probe`.

use std::path::PathBuf;

use clap::{ArgAction, Args};

use pmc_events::event::{LineRange, ProbePoint, ProbeSyntax};
use pmc_view::probe::NameFilter;

/// Define probes in functions and lines of programs and of the kernel, with the variables to read there.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmc probe -x ./server -L handle                     lines of a function that can be probed
  pmc probe -x ./server -V handle:12                  variables that can be read there
  pmc probe -x ./server 'handle request->size'        a probe that reads a variable
  pmc probe -x ./server 'handle%return ret=$retval'   the function's return
  pmc record -e probe_server:handle --filter 'size > 4096' -p 1234
  pmc probe -l; pmc probe -d 'probe_server:*'         list probes, delete probes
Places: FUNCTION, FUNCTION:LINE, FUNCTION+OFFSET, FUNCTION%return, FUNCTION@FILE, FILE:LINE, 0xADDRESS.
Values: NAME, NAME->MEMBER, NAME.MEMBER, NAME[N], *NAME, $params, $vars, $retval, %REGISTER, with :TYPE if needed.
docs/probe.md explains places, values and types.")]
pub struct ProbeArgs {
    /// A place and the values to read there; the same as --add
    #[arg(value_name = "PLACE [VALUE …]")]
    pub(crate) words: Vec<String>,

    /// Program or library to probe; without it, the kernel
    #[arg(short = 'x', long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub(crate) exec: Option<PathBuf>,

    /// Kernel module to probe
    #[arg(short = 'm', long, value_name = "NAME", conflicts_with = "exec")]
    pub(crate) module: Option<String>,

    /// Add a probe: [[GROUP:]EVENT=]PLACE [[NAME=]VALUE[:TYPE] …]
    #[arg(short = 'a', long, value_name = "DEFINITION", action = ArgAction::Append)]
    pub(crate) add: Vec<ProbeSyntax>,

    /// Delete probes: [GROUP:]EVENT, or a pattern
    #[arg(short = 'd', long, value_name = "EVENT", action = ArgAction::Append, conflicts_with_all = ["list", "line", "vars", "funcs"])]
    pub(crate) del: Vec<String>,

    /// List probes: all, or [GROUP:]EVENT, or a pattern
    #[arg(short = 'l', long, value_name = "EVENT", num_args = 0..=1, conflicts_with_all = ["add", "line", "vars", "funcs", "print"])]
    pub(crate) list: Option<Option<String>>,

    /// Show the lines that can be probed: FUNCTION, FILE, or FUNCTION:FIRST-LAST
    #[arg(short = 'L', long, value_name = "LINES", conflicts_with_all = ["add", "vars", "funcs", "print"])]
    pub(crate) line: Option<LineRange>,

    /// Show the variables that can be read at a place
    #[arg(short = 'V', long, value_name = "PLACE", action = ArgAction::Append, conflicts_with_all = ["add", "funcs", "print"])]
    pub(crate) vars: Vec<ProbePoint>,

    /// List the functions that can be probed: those that match a pattern
    #[arg(short = 'F', long, value_name = "PATTERN", num_args = 0..=1, conflicts_with_all = ["add", "print"])]
    pub(crate) funcs: Option<Option<NameFilter>>,

    /// Print the definitions for uprobe_events or kprobe_events instead of writing them
    #[arg(short = 'D', long = "definition", value_name = "DEFINITION", action = ArgAction::Append, conflicts_with = "add")]
    pub(crate) print: Vec<ProbeSyntax>,

    /// Only print what would be added or deleted
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,

    /// If an event with the new name exists, add a suffix to the name
    #[arg(short = 'f', long)]
    pub(crate) force: bool,

    /// With -V, also show global variables
    #[arg(long, requires = "vars")]
    pub(crate) externs: bool,

    /// Do not probe inlined functions
    #[arg(long)]
    pub(crate) no_inlines: bool,

    /// Maximum number of places that one definition may probe
    #[arg(long, value_name = "N", default_value_t = 128)]
    pub(crate) max_probes: usize,

    /// With -F or -V, only names that match: patterns with !, & and |
    #[arg(long, value_name = "FILTER")]
    pub(crate) filter: Option<NameFilter>,

    /// Print errors only
    #[arg(short = 'q', long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,

    /// Also print the definitions that are written
    #[arg(short = 'v', long, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}
