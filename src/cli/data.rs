//! Options of `pmc data`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use pmc_analysis::analysis::request::TimeSpan;

/// Convert a recording to another format.
#[derive(Debug, Args)]
pub struct DataArgs {
    /// The action to perform.
    #[command(subcommand)]
    pub(crate) command: DataCommand,
}

/// Actions of `pmc data`.
#[derive(Debug, Subcommand)]
pub(crate) enum DataCommand {
    /// Convert the samples to another format
    Convert(ConvertArgs),
}

/// Convert the samples of a recording to another format.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmc data convert --to-json samples.json               one document in perf's format, with callers and names
  pmc data convert --to-json - | jq '.samples[0]'
pmc script --json prints one object per line, with all recorded fields.")]
pub(crate) struct ConvertArgs {
    /// Recording to read; `-` is stdin [default: stdin if it is a pipe or file, else perf.data]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,

    /// Write one JSON document; `-` is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) to_json: Option<PathBuf>,

    /// Not supported: pmc does not write CTF
    #[arg(long, value_name = "FOLDER")]
    pub(crate) to_ctf: Option<PathBuf>,

    /// Write wall-clock times, in nanoseconds since 1970 (not for recordings of perf without -k)
    #[arg(long)]
    pub(crate) tod: bool,

    /// Include only samples from FROM to TO, in seconds or percent of the recording
    #[arg(long, value_name = "FROM,TO", allow_hyphen_values = true)]
    pub(crate) time: Option<TimeSpan>,

    /// Not supported: the document contains only samples
    #[arg(long)]
    pub(crate) all: bool,

    /// Overwrite an existing file
    #[arg(short, long)]
    pub(crate) force: bool,

    /// No effect: damage in a recording is always reported
    #[arg(short, long)]
    pub(crate) verbose: bool,
}
