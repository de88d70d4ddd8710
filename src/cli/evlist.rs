//! Options of `pmc evlist`.

use std::path::PathBuf;

use clap::Args;

/// List the events of a recording.
#[derive(Debug, Args)]
pub struct EvlistArgs {
    /// Recording to read (also -i); `-` is stdin [default: stdin if it is a pipe or file, else perf.data]
    #[arg(value_name = "FILE", conflicts_with = "input")]
    pub(crate) file: Option<PathBuf>,

    /// The recording
    #[arg(short, long, value_name = "FILE", hide = true)]
    pub(crate) input: Option<PathBuf>,

    /// Show every field of each event's perf_event_attr
    #[arg(short, long, group = "shown")]
    pub(crate) verbose: bool,

    /// Show the sample frequency or period
    #[arg(short = 'F', long, group = "shown")]
    pub(crate) freq: bool,

    /// Show groups in braces
    #[arg(short, long, group = "shown")]
    pub(crate) group: bool,

    /// Show tracepoint fields
    #[arg(long, group = "shown")]
    pub(crate) trace_fields: bool,
}
