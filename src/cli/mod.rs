//! The options of each command, as clap definitions, and the requests that they become: one file per command.
//!
//! The options of tools are next to the tools (`pmc-tools`, `pmc-persist`), and groups of options that
//! several commands have are in `pmc-command`.

pub(crate) mod annotate;
pub(crate) mod archive;
pub(crate) mod buildid_cache;
pub(crate) mod buildid_list;
pub(crate) mod compare;
pub(crate) mod complete;
pub(crate) mod config;
pub(crate) mod data;
pub(crate) mod diff;
pub(crate) mod evlist;
pub(crate) mod export;
pub(crate) mod help;
pub(crate) mod info;
pub(crate) mod inject;
pub(crate) mod kallsyms;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod mcp;
pub mod perf_only;
pub mod perf_options;
pub(crate) mod probe;
pub(crate) mod profile;
pub(crate) mod report;
pub(crate) mod reserve;
pub(crate) mod sched;
pub(crate) mod script;
pub(crate) mod spelling;
pub(crate) mod stat;
pub(crate) mod symbolize;
pub(crate) mod top;
pub(crate) mod version;

use clap::error::ErrorKind;
use clap::{ArgAction, ArgMatches, Args, Error, FromArgMatches, Parser, Subcommand};

/// A profiler for Linux: counts events, samples programs, and explains the results.
#[derive(Debug, Parser)]
#[command(name = "pmc", version, about, infer_long_args = true, args_override_self = true)]
#[command(disable_help_subcommand = true, disable_help_flag = true)]
pub struct Cli {
    /// Build-id cache directory [default: $PERF_BUILDID_DIR, else ~/.debug]
    #[arg(long, value_name = "DIR")]
    pub(crate) buildid_dir: Option<std::path::PathBuf>,

    /// Use a pager for long text, regardless of the setting `pager.COMMAND`
    #[arg(short, long, overrides_with = "no_pager")]
    pub(crate) paginate: bool,

    /// Do not use a pager ($PERF_PAGER, else $PAGER, pager, less)
    #[arg(long, global = true, display_order = 999)]
    pub(crate) no_pager: bool,

    /// Print help
    // clap's own option would say that `-h` and `--help` differ, also in commands where they do not.
    #[arg(short, long, global = true, display_order = 998, action = ArgAction::Help)]
    help: Option<bool>,

    /// The command to run.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands that lists of commands and completions leave out, because only packages and shells use them.
const HIDDEN: [&str; 2] = ["complete", "man"];

/// Defines the enum of commands and its parser.
///
/// The parser is not derived, because a derived parser builds every option of every command before it looks
/// at the first word, which would dominate start-up time and memory. This parser uses `defer`.
macro_rules! commands {
    ($($(#[doc = $about:literal])+ $variant:ident($typed:ty) = $name:literal,)+) => {
        /// The commands.
        #[derive(Debug)]
        pub enum Command {
            $($(#[doc = $about])+ $variant($typed),)+
        }

        impl Command {
            /// The names of the commands.
            pub const NAMES: &[&str] = &[$($name),+];

            /// Returns the command's name.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)+
                }
            }
        }

        impl Subcommand for Command {
            fn augment_subcommands(parser: clap::Command) -> clap::Command {
                parser$(.subcommand(
                    clap::Command::new($name)
                        .about(concat!($($about),+).trim())
                        .hide(HIDDEN.contains(&$name))
                        .defer(filled::<$typed>),
                ))+
            }

            fn augment_subcommands_for_update(parser: clap::Command) -> clap::Command {
                Self::augment_subcommands(parser)
            }

            fn has_subcommand(name: &str) -> bool {
                Self::NAMES.contains(&name)
            }
        }

        impl FromArgMatches for Command {
            fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
                match matches.subcommand() {
                    $(Some(($name, of)) => Ok(Self::$variant(FromArgMatches::from_arg_matches(of)?)),)+
                    _ => Err(Error::new(ErrorKind::MissingSubcommand)),
                }
            }

            fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
                *self = Self::from_arg_matches(matches)?;
                Ok(())
            }
        }
    };
}

/// Adds a command's options, including perf's, when the command is used. Keeps the description from the list
/// of commands.
fn filled<A: Args>(command: clap::Command) -> clap::Command {
    let about = command.get_about().cloned();
    let filled = perf_options::add(A::augment_args(command));
    match about {
        Some(about) => filled.about(about).long_about(None::<&str>),
        None => filled,
    }
}

commands! {
    /// Record a command or running processes, and show where their time went
    Profile(Box<profile::ProfileArgs>) = "profile",
    /// Measure the time between two events: system calls, functions, disk requests, waiting for a CPU
    Latency(Box<pmc_tools::latency::LatencyOptions>) = "latency",
    /// Count events
    Stat(Box<stat::StatArgs>) = "stat",
    /// Write counts to a file (`pmc stat record`)
    StatRecord(Box<stat::StatRecordArgs>) = "stat-record",
    /// Show the counts in a file written by `pmc stat record` (`pmc stat report`)
    StatReport(Box<stat::StatReportArgs>) = "stat-report",
    /// Sample a command, running processes or whole CPUs into a file
    Record(Box<pmc_command::record::args::RecordArgs>) = "record",
    /// Show where the time went in a recording
    Report(Box<report::ReportArgs>) = "report",
    /// Show where time goes right now
    Top(Box<top::TopArgs>) = "top",
    /// Show the system calls of a command, of processes or of the whole machine
    Trace(Box<pmc_tools::trace::TraceOptions>) = "trace",
    /// Show the cost of each instruction and source line of a function
    Annotate(Box<annotate::AnnotateArgs>) = "annotate",
    /// Compare recordings, and tell differences from noise
    Diff(Box<diff::DiffArgs>) = "diff",
    /// Run two commands alternately, and show how their time, counts and functions differ
    Compare(Box<compare::CompareArgs>) = "compare",
    /// Print the samples of a recording one by one
    Script(Box<script::ScriptArgs>) = "script",
    /// Show waits for locks: for kernel locks, and for user-space locks with the threads that hold them
    Lock(pmc_tools::lock::LockOptions) = "lock",
    /// Define probes in functions and lines, with the variables to read there
    Probe(Box<probe::ProbeArgs>) = "probe",
    /// Show which tasks wait for a CPU, for how long, and which run instead (`pmc sched record` records them)
    Sched(Box<sched::SchedArgs>) = "sched",
    /// Export a recording for other tools: as flame graph, HTML, Firefox Profiler profile, pprof and more
    Export(Box<export::ExportArgs>) = "export",
    /// Draw a flame graph of a recording
    Flamegraph(Box<export::FlamegraphArgs>) = "flamegraph",
    /// Add function names to stacks that were exported without them
    Symbolize(symbolize::SymbolizeArgs) = "symbolize",
    /// List the events of a recording
    Evlist(evlist::EvlistArgs) = "evlist",
    /// List the build-ids of the files in a recording
    BuildidList(buildid_list::BuildidListArgs) = "buildid-list",
    /// Rewrite a recording: add build-ids, add JIT code as files, unwind stacks, decompress
    Inject(inject::InjectArgs) = "inject",
    /// Convert a recording to another data format
    Data(data::DataArgs) = "data",
    /// Manage the build-id cache: add, list and remove files
    BuildidCache(buildid_cache::BuildidCacheArgs) = "buildid-cache",
    /// Write a recording with its symbols into one file for other machines
    Archive(archive::ArchiveArgs) = "archive",
    /// Show the addresses of symbols in the running kernel
    Kallsyms(kallsyms::KallsymsArgs) = "kallsyms",
    /// Show and change the perf settings that pmc uses
    Config(config::ConfigArgs) = "config",
    /// List the events that this machine can count; pmc tries each one
    List(list::ListArgs) = "list",
    /// Show what this machine can measure, which processes use its counters, and what you are permitted to do
    Info(info::InfoArgs) = "info",
    /// Answer AI agents' questions about recordings (Model Context Protocol)
    Mcp(mcp::McpArgs) = "mcp",
    /// Keep events running without a recorder, to read them later
    Persist(pmc_persist::options::PersistArgs) = "persist",
    /// Count on all CPUs in the background until `pmc stop`
    Start(pmc_persist::options::StartArgs) = "start",
    /// Show the counts since `pmc start`, and stop counting
    Stop(pmc_persist::options::StopArgs) = "stop",
    /// Reserve the hardware counters
    Reserve(reserve::ReserveArgs) = "reserve",
    /// Show the version
    Version(version::VersionArgs) = "version",
    /// List the commands, or show the options of one command
    Help(help::HelpArgs) = "help",
    /// Print the words that may continue a command line, for shells
    Complete(complete::CompleteArgs) = "complete",
    /// Write the manual: man pages, or Markdown
    Man(man::ManArgs) = "man",
}
