//! `pmc info`: what can be typed.

use std::path::PathBuf;

use clap::Args;

/// Show what this machine can measure, who holds its counters, and what this user may do; or what a recording
/// says of itself.
#[derive(Debug, Args)]
#[command(after_help = "\
Everything is tried, not looked up: counters are counted by opening events, and each
verdict comes from the requests that the command would make. docs/info-and-list.md
explains each line and the fields of --json.")]
pub struct Info {
    /// A recording: show its header, events, records and build-ids instead
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// Only the recording's header, as perf report --header-only
    #[arg(long, requires = "file")]
    pub header: bool,

    /// Only the counters: how many, of which class, how wide, how many are free, and who holds them
    #[arg(long, conflicts_with = "file")]
    pub counters: bool,

    /// Print one JSON document (its `version` changes when a field changes its meaning)
    #[arg(short = 'j', long)]
    pub json: bool,
}
