//! Options of `pmc info`.

use clap::Args;

use pmc_command::options::recording_file::RecordingFile;

/// Show what this machine can measure, which processes use its counters, and what you are permitted to do; or
/// describe a recording.
#[derive(Debug, Args)]
#[command(after_help = "\
pmc tests what it shows: it opens events to find out how many counters exist, and
tries the requests of each command. docs/info-and-list.md explains each line and
the fields of --json.")]
#[command(mut_arg("file", |file| file.help(
    "Show the header, events, records and build-ids of this recording instead (also -i)"
)))]
pub struct InfoArgs {
    #[command(flatten)]
    pub(crate) recording: RecordingFile,

    /// Show only the recording's header, like perf report --header-only
    #[arg(long, requires = "recording")]
    pub(crate) header: bool,

    /// Show only the counters: their number, class and width, how many are free, and which processes use them
    #[arg(long, conflicts_with = "recording")]
    pub(crate) counters: bool,

    /// Print one JSON document (`version` changes when the meaning of a field changes)
    #[arg(short = 'j', long)]
    pub(crate) json: bool,

    /// Maximum number of the recording's events, of IDs per event, and of build-ids; 0 shows all
    #[arg(long, requires = "recording", value_name = "N", default_value_t = 0)]
    pub(crate) limit: usize,
}
