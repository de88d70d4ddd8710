//! Options of `pmc compare`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};

use pmc_analysis::profile::gate::GateCondition;
use pmc_analysis::profile::sampled::SortKey;
use pmc_command::options::settings::RecordingSettings;
use pmc_command::values::{self, Limit, one_of};
use pmc_events::counter::request::sampling::{CallGraph, Rate};
use pmc_sys::error::Error;
use pmc_text::units::S;
use pmc_view::gate::CiFormat;

/// Run two commands alternately, and show how their time, counts and functions differ.
#[derive(Debug, Args)]
#[command(
    override_usage = "pmc compare [OPTIONS] 'COMMAND A' 'COMMAND B'",
    after_help = "\
Examples:
  pmc compare ./old ./new                           which is faster, and which functions changed?
  pmc compare -r 20 'gzip -1c F' 'gzip -6c F' -o gzip.html     20 runs of each, and a page
  pmc compare ./old ./new --fail-if 'worse > 3% and p < 0.01'  in CI: exit with 1 if slower
Quote each command as one argument; a shell runs it if it contains shell syntax. pmc first counts both commands,
and then runs both again to profile them. docs/ci.md describes the statistics."
)]
pub struct CompareArgs {
    /// The old and the new command
    #[arg(value_names = ["COMMAND A", "COMMAND B"], num_args = 2, required = true)]
    pub(crate) commands: Vec<String>,

    /// Number of counted runs, and of profiled runs, of each command [default: 10; with --fail-if, as many
    /// profiled runs as the condition needs]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(3..=1000))]
    pub(crate) repeat: Option<u32>,

    /// Time after which pmc adds no more runs for --fail-if
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = budget, requires = "fail_if", conflicts_with = "repeat")]
    pub(crate) budget: Duration,

    /// Run each command N times without counting first
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) warmup: u32,

    /// Events to count: names with qualifiers, PMU terms, groups in braces (repeatable)
    #[arg(short = 'e', long = "event", value_name = "EVENTS", action = ArgAction::Append)]
    pub(crate) events: Vec<String>,

    /// Event to sample [default: cycles, or cpu-clock]
    #[arg(long, value_name = "EVENT")]
    pub(crate) sample: Option<String>,

    /// Sample frequency in Hz, or `max` [default: 4000 to 50000, more for shorter runs; with stacks 4000]
    #[arg(short = 'F', long = "freq", value_name = "HZ", value_parser = Rate::frequency)]
    pub(crate) freq: Option<Rate>,

    /// How to record call stacks: auto, fp, dwarf or lbr [default: auto with -o; otherwise none]
    #[arg(long, value_name = "MODE")]
    pub(crate) call_graph: Option<CallGraph>,

    /// Sort keys: sym, dso, srcline, comm and the other keys of pmc diff
    #[arg(short, long, value_name = "KEY,…", value_delimiter = ',', default_value = "sym")]
    pub(crate) sort: Vec<SortKey>,

    /// Maximum number of changed rows to print; 0 prints all [default: 10; all with --json]
    #[arg(long, visible_alias = "max-rows", alias = "top", value_name = "N")]
    pub(crate) limit: Option<Limit>,

    /// Write an HTML page with all functions and a differential flame graph; `-` writes it to stdout
    /// instead of the text
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Exit with status 1 if this condition holds for the time, a count or a function, such as
    /// 'worse > 3% and p < 0.01', and with status 2 if the runs cannot tell
    #[arg(long, value_name = "CONDITION")]
    pub(crate) fail_if: Option<GateCondition>,

    /// With --fail-if, print the result as annotations and a step summary for GitHub Actions, or as a JUnit
    /// report
    #[arg(long, value_name = "CI", value_parser = one_of(CiFormat::WORDS), requires = "fail_if", conflicts_with = "json")]
    pub(crate) format: Option<CiFormat>,

    /// Print one JSON document
    #[arg(short, long)]
    pub(crate) json: bool,

    /// perf's settings for the recordings.
    #[command(flatten)]
    pub(crate) settings: RecordingSettings,
}

/// Parses a time of at least a second, which is also the default unit.
fn budget(text: &str) -> Result<Duration, Error> {
    values::duration(text, S, S)
}
