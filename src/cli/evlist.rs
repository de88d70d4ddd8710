//! Options of `pmc evlist`.

use clap::Args;

use pmc_command::options::recording_file::RecordingFile;

/// List the events of a recording.
#[derive(Debug, Args)]
pub struct EvlistArgs {
    #[command(flatten)]
    pub(crate) recording: RecordingFile,

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
