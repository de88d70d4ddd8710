//! `pmc buildid-cache`: what can be typed.

use std::path::PathBuf;

use clap::Args;

/// Keep the files of recordings by build-id, list and remove what is kept.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmc buildid-cache -a ./program          keep it: recordings find it after the next build, too
  pmc buildid-cache -l                    what is kept
  pmc buildid-cache -M perf.data          what a recording needs and is not kept
  pmc buildid-cache -p ./program          remove all that was ever kept of this path
The cache is perf's: --buildid-dir DIR before the command, $PERF_BUILDID_DIR, buildid.dir of perf's settings, or ~/.debug.")]
pub struct BuildidCache {
    /// Keep these files
    #[arg(short, long, value_name = "FILE,…", value_delimiter = ',')]
    pub add: Vec<PathBuf>,

    /// Remove what has the build-ids of these files
    #[arg(short, long, value_name = "FILE,…", value_delimiter = ',')]
    pub remove: Vec<PathBuf>,

    /// Remove all that was kept under these paths, older builds too
    #[arg(short, long, value_name = "FILE,…", value_delimiter = ',')]
    pub purge: Vec<PathBuf>,

    /// Remove everything
    #[arg(short = 'P', long)]
    pub purge_all: bool,

    /// Keep these files anew
    #[arg(short, long, value_name = "FILE,…", value_delimiter = ',')]
    pub update: Vec<PathBuf>,

    /// List the build-ids of a recording that are not kept
    #[arg(short = 'M', long, value_name = "RECORDING")]
    pub missing: Option<PathBuf>,

    /// List what is kept
    #[arg(short, long)]
    pub list: bool,

    /// With -a and -u: the files as this process sees them, in its mount namespace
    #[arg(long, value_name = "PID")]
    pub target_ns: Option<u32>,

    /// With -a and -u: ask the servers in DEBUGINFOD_URLS for debug information, and keep it too
    #[arg(long, value_name = "URLS", num_args = 0..=1, require_equals = true)]
    pub debuginfod: Option<Option<String>>,

    /// Say what is done with each file
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,
}
