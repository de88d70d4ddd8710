//! Options of `pmc buildid-list`.

use std::path::PathBuf;

use clap::Args;

/// List the build-ids of the files in a recording.
#[derive(Debug, Args)]
pub struct BuildidListArgs {
    /// Recording, program or library (also -i); `-` is stdin [default: stdin if it is a pipe or file, else
    /// perf.data]
    #[arg(value_name = "FILE", conflicts_with = "input")]
    pub(crate) file: Option<PathBuf>,

    /// The recording
    #[arg(short, long, value_name = "FILE", hide = true)]
    pub(crate) input: Option<PathBuf>,

    /// List only files with samples
    #[arg(short = 'H', long)]
    pub(crate) with_hits: bool,

    /// Print the running kernel's build-id
    #[arg(short, long, conflicts_with_all = ["file", "input", "with_hits"])]
    pub(crate) kernel: bool,

    /// List the running kernel and its modules with build-ids and addresses
    #[arg(short = 'm', long, conflicts_with_all = ["file", "input", "with_hits", "kernel"])]
    pub(crate) kernel_maps: bool,
}
