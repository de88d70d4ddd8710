//! `pmc evlist`: what can be typed.

use std::path::PathBuf;

use clap::Args;

/// List the events of a recording.
#[derive(Debug, Args)]
pub struct Evlist {
    /// The recording (also as -i); `-` is standard input [default: what comes on it, else perf.data]
    #[arg(value_name = "FILE", conflicts_with = "input")]
    pub file: Option<PathBuf>,

    /// The same
    #[arg(short, long, value_name = "FILE", hide = true)]
    pub input: Option<PathBuf>,

    /// Show what the kernel was asked for: every field of each event's attr
    #[arg(short, long, group = "shown")]
    pub verbose: bool,

    /// Show frequency or period
    #[arg(short = 'F', long, group = "shown")]
    pub freq: bool,

    /// Show groups in braces
    #[arg(short, long, group = "shown")]
    pub group: bool,

    /// Show the fields of tracepoints
    #[arg(long, group = "shown")]
    pub trace_fields: bool,
}
