//! `pmc buildid-list`: what can be typed.

use std::path::PathBuf;

use clap::Args;

/// List the build-ids of the files in a recording.
#[derive(Debug, Args)]
pub struct BuildidList {
    /// The recording, or a program or library (also as -i); `-` is standard input [default: what comes on it,
    /// else perf.data]
    #[arg(value_name = "FILE", conflicts_with = "input")]
    pub file: Option<PathBuf>,

    /// The same
    #[arg(short, long, value_name = "FILE", hide = true)]
    pub input: Option<PathBuf>,

    /// Only files that samples lie in
    #[arg(short = 'H', long)]
    pub with_hits: bool,

    /// The running kernel's build-id
    #[arg(short, long, conflicts_with_all = ["file", "input", "with_hits"])]
    pub kernel: bool,
}
