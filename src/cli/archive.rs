//! Options of `pmc archive`.

use std::path::PathBuf;

use clap::Args;

/// Pack the files that provide a recording's symbols, so that it can be analysed on another machine.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmc archive                             perf.data.tar.bz2: unpack it with tar xvf … -C ~/.debug
  pmc archive --all                       the recording and its files in one archive
  pmc archive --unpack perf.all-….tar.bz2 extract the recording here and its files to the build-id cache
Requires tar and bzip2.")]
pub struct ArchiveArgs {
    /// Recording [default: perf.data]; with --unpack, the archive [default: the only perf*.tar.bz2 here]
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Include the recording in the archive
    #[arg(long)]
    pub(crate) all: bool,

    /// Unpack into the build-id cache
    #[arg(long, conflicts_with = "all")]
    pub(crate) unpack: bool,

    /// Exclude the build-ids listed in this file, one per line
    #[arg(long, value_name = "FILE", conflicts_with = "unpack")]
    pub(crate) exclude_buildids: Option<PathBuf>,
}
