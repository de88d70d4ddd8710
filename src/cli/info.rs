//! `pmc info`: what can be typed.

use clap::Args;

/// Show what this machine can measure, who holds its counters, and what this user may do.
#[derive(Debug, Args)]
#[command(after_help = "\
Everything is tried, not looked up: counters are counted by opening events, and each
verdict comes from the requests that the command would make. docs/info-and-list.md
explains each line and the fields of --json.")]
pub struct Info {
    /// Print one JSON document (its `version` changes when a field changes its meaning)
    #[arg(short = 'j', long)]
    pub json: bool,
}
