//! Options of `pmc buildid-list`.

use clap::Args;

use pmc_command::options::recording_file::RecordingFile;

/// List the build-ids of the files in a recording.
#[derive(Debug, Args)]
#[command(mut_arg("file", |file| file.help(
    "Recording (also -i), program or library; `-` is stdin [default: stdin if it is a pipe or file, else \
     perf.data]"
)))]
pub struct BuildidListArgs {
    #[command(flatten)]
    pub(crate) recording: RecordingFile,

    /// List only files with samples
    #[arg(short = 'H', long)]
    pub(crate) with_hits: bool,

    /// Print the running kernel's build-id
    #[arg(short, long, conflicts_with_all = ["recording", "with_hits"])]
    pub(crate) kernel: bool,

    /// List the running kernel and its modules with build-ids and addresses
    #[arg(short = 'm', long, conflicts_with_all = ["recording", "with_hits", "kernel"])]
    pub(crate) kernel_maps: bool,
}
