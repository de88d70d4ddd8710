//! `pmc data`: what can be typed.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Turn a recording into another format.
#[derive(Debug, Args)]
pub struct Data {
    /// What to do.
    #[command(subcommand)]
    pub command: DataCommand,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub enum DataCommand {
    /// Write the samples in another format
    Convert(Convert),
}

/// Write the samples of a recording in another format.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmc data convert --to-json samples.json               one document in perf's shape, with callers and names
  pmc data convert --to-json - | jq '.samples[0]'
pmc script --json prints an object a line, with everything that was recorded.")]
pub struct Convert {
    /// The recording; `-` is standard input [default: what comes on it, else perf.data]
    #[arg(short, long, value_name = "FILE")]
    pub input: Option<PathBuf>,

    /// Write one JSON document; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub to_json: Option<PathBuf>,

    /// Refused: pmc writes no CTF
    #[arg(long, value_name = "FOLDER")]
    pub to_ctf: Option<PathBuf>,

    /// Times of day, in nanoseconds since 1970 (recordings made with -k)
    #[arg(long)]
    pub tod: bool,

    /// Only samples from FROM to TO, in seconds, or percentages of the recording
    #[arg(long, value_name = "FROM,TO", allow_hyphen_values = true)]
    pub time: Option<String>,

    /// Refused: the document has room for samples alone
    #[arg(long)]
    pub all: bool,

    /// Write over a file that is there
    #[arg(short, long)]
    pub force: bool,

    /// Changes nothing: what is wrong with a recording is always said
    #[arg(short, long)]
    pub verbose: bool,
}
