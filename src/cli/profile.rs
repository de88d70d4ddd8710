//! `pmc profile`: what can be typed.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::screen_options::ScreenOptions;

/// Sample a command, or what runs, with complete call chains, and show where its time went.
#[derive(Debug, Clone, Args)]
#[command(
    args_override_self = true,
    after_help = "\
Examples:
  pmc profile -- ./program              record it, then look at it on the screen
  pmc profile -p firefox --duration 5s  what runs under that name, for five seconds
  pmc profile -a --duration 10s         the whole machine
  pmc profile -- gzip -c F >F.gz        the report goes to stderr: F.gz is gzip's
  pmc profile -- make 2>&1 | less       the command's output, then the report
  pmc profile --html make.html -- make  a page for a colleague
It is pmc record --call-graph auto,65528 -F 999, then pmc report or pmc export; these have more options."
)]
pub struct Profile {
    /// Profile these running processes, by number or name
    #[arg(short = 'p', long = "pid", value_name = "PID|NAME,…", conflicts_with = "all_cpus")]
    pub pids: Option<String>,

    /// Profile everything on all CPUs
    #[arg(short = 'a', long)]
    pub all_cpus: bool,

    /// End after this time: milliseconds, or with a unit (10s, 2m)
    #[arg(long, visible_alias = "timeout", value_name = "TIME")]
    pub duration: Option<String>,

    /// Samples a second, or `max`
    #[arg(short = 'F', long = "freq", value_name = "HZ", default_value = "999")]
    pub freq: String,

    /// Event to sample; the default is cycles, or time where there are none
    #[arg(short = 'e', long = "event", value_name = "EVENT")]
    pub event: Option<String>,

    /// Where call chains come from: auto, fp, dwarf or lbr; with the bytes of each stack that are copied
    #[arg(long, value_name = "MODE", default_value = "auto,65528")]
    pub call_graph: String,

    /// The recording, which pmc report and perf report read
    #[arg(short = 'o', long, value_name = "FILE", default_value = "perf.data")]
    pub output: PathBuf,

    /// Write the answer into this page for any browser, which can be sent to whoever asks
    #[arg(long, value_name = "FILE", conflicts_with_all = ["format", "stdio"])]
    pub html: Option<PathBuf>,

    /// Write the answer in this format (svg, folded, firefox, speedscope, pprof, callgrind, …: pmc export)
    /// beside the recording
    #[arg(long, value_name = "FORMAT", conflicts_with = "stdio")]
    pub format: Option<String>,

    /// Print plain text, on a terminal too
    #[arg(long)]
    pub stdio: bool,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub screen: ScreenOptions,

    /// Leave the command's environment alone: runtimes (Python, Node.js, the JVM, .NET) are not asked for the
    /// names of the code that they generate
    #[arg(long)]
    pub no_runtime_env: bool,

    /// Say nothing but errors
    #[arg(short = 'q', long)]
    pub quiet: bool,

    /// The command to run, with its arguments
    #[arg(trailing_var_arg = true, value_name = "COMMAND", value_hint = clap::ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}
