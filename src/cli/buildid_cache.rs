//! Options of `pmc buildid-cache`.

use std::path::PathBuf;

use clap::Args;

/// Manage the build-id cache: add, list and remove the files that recordings refer to.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmc buildid-cache -a ./program          keep this build, so that recordings find it after a rebuild
  pmc buildid-cache -l                    list the cache
  pmc buildid-cache -M perf.data          files that a recording refers to and the cache lacks
  pmc buildid-cache -p ./program          remove all cached builds of this path
pmc uses perf's cache: --buildid-dir DIR before the command, $PERF_BUILDID_DIR, the setting buildid.dir, or ~/.debug.")]
pub struct BuildidCacheArgs {
    /// Add these files
    #[arg(short, long, value_name = "FILE,…", value_delimiter = ',')]
    pub(crate) add: Vec<PathBuf>,

    /// Remove the entries with the build-ids of these files
    #[arg(short, long, value_name = "FILE,…", value_delimiter = ',')]
    pub(crate) remove: Vec<PathBuf>,

    /// Remove all builds cached under these paths
    #[arg(short, long, value_name = "FILE,…", value_delimiter = ',')]
    pub(crate) purge: Vec<PathBuf>,

    /// Remove everything
    #[arg(short = 'P', long)]
    pub(crate) purge_all: bool,

    /// Update the cached copies of these files
    #[arg(short, long, value_name = "FILE,…", value_delimiter = ',')]
    pub(crate) update: Vec<PathBuf>,

    /// List the build-ids of this recording that are not in the cache
    #[arg(short = 'M', long, value_name = "RECORDING")]
    pub(crate) missing: Option<PathBuf>,

    /// List the cache
    #[arg(short, long)]
    pub(crate) list: bool,

    /// With -a and -u: look up the files in the mount namespace of this process
    #[arg(long, value_name = "PID")]
    pub(crate) target_ns: Option<u32>,

    /// With -a and -u: also fetch debug information from DEBUGINFOD_URLS and cache it
    #[arg(long, value_name = "URLS", num_args = 0..=1, require_equals = true)]
    pub(crate) debuginfod: Option<Option<String>>,

    /// Print the action taken for each file
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}
