//! Options of `pmc diff`.

use std::path::PathBuf;

use clap::Args;

use pmc_command::options::symbol_files::SymbolFiles;

/// Compare recordings: show each function's share in every recording, and whether the difference exceeds
/// sampling noise.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmc diff                                perf.data.old and perf.data
  pmc diff before.data after.data -s sym  functions by name, in any program
  pmc diff a.data b.data c.data           compare b and c with a
  pmc diff --tree a.data b.data           differences in the call tree
  pmc diff old*.data --vs new*.data       differences beyond the noise between runs
  pmc diff old*.data --vs new*.data --fail-if 'worse > 3% and p < 0.01'
                                          in CI: exit with status 1 if the new version is slower
  pmc diff --stream a.data b.data         the hottest call chains, matched
  pmc diff -c ratio -p a.data b.data      ratio of the costs
  pmc diff -s sym old.pb.gz new.pb.gz     profiles of another program: docs/import.md
docs/diff.md explains noise and the fields of --json.")]
pub struct DiffArgs {
    /// Recordings to compare, the baseline first [default: perf.data.old perf.data]
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Recordings of a new version, to compare as a group with the recordings before --vs
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["tree", "stream", "baseline_only", "period", "formula", "csv", "field_separator"])]
    pub(crate) vs: Vec<PathBuf>,

    /// Exit with status 1 if this condition holds, such as 'worse > 3% and p < 0.01', and with status 2 if
    /// the recordings cannot tell
    #[arg(long, value_name = "CONDITION", conflicts_with_all = ["tree", "stream", "baseline_only", "period", "formula", "csv", "field_separator"])]
    pub(crate) fail_if: Option<String>,

    /// With --fail-if, print the answer as annotations and a step summary for GitHub Actions, or as a JUnit
    /// report
    #[arg(long, value_name = "CI", value_parser = ["github", "junit"], requires = "fail_if", conflicts_with = "json")]
    pub(crate) format: Option<String>,

    /// Sort keys: dso, sym, srcline, srcfile, comm, pid, tgid, tid, cpu and the other keys of pmc report
    #[arg(short, long, value_name = "KEY,…", value_delimiter = ',')]
    pub(crate) sort: Vec<String>,

    /// Comparison: delta, delta-abs, time, ratio, or wdiff:W1,W2 [default: delta-abs; in text output, time if
    /// all recordings are of cpu-clock or task-clock]
    #[arg(short, long, value_name = "HOW")]
    pub(crate) compute: Option<String>,

    /// Sort by the baseline (0), or by the change in the Nth recording after it
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    pub(crate) order: usize,

    /// Show only rows that exist in the baseline
    #[arg(short, long)]
    pub(crate) baseline_only: bool,

    /// Show the sum of periods
    #[arg(short, long)]
    pub(crate) period: bool,

    /// Show how each value was computed
    #[arg(short = 'F', long)]
    pub(crate) formula: bool,

    /// Compare the call trees
    #[arg(long)]
    pub(crate) tree: bool,

    /// Compare the hottest call chains frame by frame, by function and source line (or by the keys of -s)
    #[arg(long, conflicts_with = "tree")]
    pub(crate) stream: bool,

    /// Hide rows that are below this percentage in every recording
    #[arg(long, value_name = "PERCENT")]
    pub(crate) percent_limit: Option<f64>,

    /// Maximum number of rows; with --json, also of tree nodes; 0 shows all [default: 20; all with -t, --csv
    /// or --json]; with --stream, of call chains per recording [default: 10]
    #[arg(long, visible_alias = "max-rows", alias = "top", value_name = "N")]
    pub(crate) limit: Option<usize>,

    /// What percentages refer to: all samples (absolute) or those that pass the filters (relative)
    #[arg(long, value_name = "OF", default_value = "absolute", value_parser = ["absolute", "relative"])]
    pub(crate) percentage: String,

    /// Include only threads with these names
    #[arg(short = 'C', long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) comms: Vec<String>,

    /// Include only these programs and libraries
    #[arg(short = 'd', long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) dsos: Vec<String>,

    /// Include only these functions
    #[arg(short = 'S', long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) symbols: Vec<String>,

    /// Include only these processes
    #[arg(long, value_name = "PID,…", value_delimiter = ',')]
    pub(crate) pid: Vec<i32>,

    /// Include only these threads
    #[arg(long, value_name = "TID,…", value_delimiter = ',')]
    pub(crate) tid: Vec<i32>,

    /// Include only samples on these CPUs, such as 0-3,8
    #[arg(long, value_name = "CPUS")]
    pub(crate) cpu: Option<String>,

    /// Include only this part of each recording, such as 10%-20%, or FROM,TO in seconds of its clock
    #[arg(long, value_name = "SPAN")]
    pub(crate) time: Option<String>,

    /// Compare only time in these thread states: running, runnable (waiting for a CPU), blocked, or waiting
    /// (both) [default: running and blocked, each in its own table]
    #[arg(long, value_name = "STATE,…", value_delimiter = ',')]
    pub(crate) state: Vec<String>,

    /// Include the waiting time of idle threads, such as the workers of a pool
    #[arg(long)]
    pub(crate) idle: bool,

    /// Print plain text (the default)
    #[arg(long)]
    pub(crate) stdio: bool,

    /// Print one JSON document
    #[arg(short = 'j', long, conflicts_with_all = ["csv", "field_separator"])]
    pub(crate) json: bool,

    /// Print the rows as CSV
    #[arg(long, conflicts_with = "field_separator")]
    pub(crate) csv: bool,

    /// Separate fields with this string
    #[arg(short = 't', long, value_name = "SEP")]
    pub(crate) field_separator: Option<String>,

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub(crate) symbol_files: SymbolFiles,

    /// Show mangled symbol names
    #[arg(long)]
    pub(crate) no_demangle: bool,

    /// Print no messages except errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
