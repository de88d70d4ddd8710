//! Options of `pmc symbolize`.

use std::path::PathBuf;

use clap::Args;

/// Add function names and lines to stacks that were exported without them, by build-id.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmc symbolize fleet/*.stacks.parquet           with files of this machine and the build-id cache
  pmc symbolize --debuginfod=http://debug:8002 day.stacks.parquet
  pmc symbolize -o named.stacks.parquet day.stacks.parquet
docs/fleet.md describes the tables.")]
pub struct SymbolizeArgs {
    /// Tables of stacks, of `pmc export --format parquet`, which are replaced
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// File to write instead of replacing the table
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,

    /// Root directory of the recorded machine, for programs
    #[arg(long, value_name = "DIR")]
    pub(crate) symfs: Option<PathBuf>,

    /// Do not cache symbol lookups for later runs
    #[arg(long)]
    pub(crate) no_cache: bool,

    /// debuginfod servers to ask for missing files, instead of those in DEBUGINFOD_URLS
    #[arg(long, value_name = "URLS", num_args = 0..=1, require_equals = true)]
    pub(crate) debuginfod: Option<Option<String>>,

    /// Use neither debuginfod servers nor files fetched from them earlier
    #[arg(long, conflicts_with = "debuginfod")]
    pub(crate) no_debuginfod: bool,

    /// Print no messages except errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
