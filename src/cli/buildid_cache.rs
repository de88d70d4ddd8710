//! Options of `pmc buildid-cache`.

use std::path::PathBuf;

use clap::Args;

/// Manage the build-id cache: add, list and remove the files that recordings need.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmc buildid-cache -a ./program          keep it: recordings find it after the next build, too
  pmc buildid-cache -l                    what is kept
  pmc buildid-cache -M perf.data          what a recording needs and is not kept
  pmc buildid-cache -p ./program          remove all that was ever kept of this path
The cache is perf's: --buildid-dir DIR before the command, $PERF_BUILDID_DIR, buildid.dir of perf's settings, or ~/.debug.")]
pub struct BuildidCacheArgs {
    /// Add these files
    #[arg(short, long, value_name = "FILE,…", value_delimiter = ',')]
    pub add: Vec<PathBuf>,

    /// Remove the entries with the build-ids of these files
    #[arg(short, long, value_name = "FILE,…", value_delimiter = ',')]
    pub remove: Vec<PathBuf>,

    /// Remove all builds cached under these paths
    #[arg(short, long, value_name = "FILE,…", value_delimiter = ',')]
    pub purge: Vec<PathBuf>,

    /// Remove everything
    #[arg(short = 'P', long)]
    pub purge_all: bool,

    /// Update the entries of these files
    #[arg(short, long, value_name = "FILE,…", value_delimiter = ',')]
    pub update: Vec<PathBuf>,

    /// List the build-ids of this recording that are not in the cache
    #[arg(short = 'M', long, value_name = "RECORDING")]
    pub missing: Option<PathBuf>,

    /// List the cache
    #[arg(short, long)]
    pub list: bool,

    /// With -a and -u: look up the files in the mount namespace of this process
    #[arg(long, value_name = "PID")]
    pub target_ns: Option<u32>,

    /// With -a and -u: also fetch debug information from DEBUGINFOD_URLS and cache it
    #[arg(long, value_name = "URLS", num_args = 0..=1, require_equals = true)]
    pub debuginfod: Option<Option<String>>,

    /// Print what happens to each file
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,
}
