//! Options of `pmc symbolize`.

use std::path::PathBuf;

use clap::Args;

use pmc_command::options::symbol_files::SymbolLookup;

/// Add function names and lines to stacks that were exported without them, by build-id.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  pmc symbolize fleet/*.stacks.parquet           with files of this machine and the build-id cache
  pmc symbolize --debuginfod=http://debug:8002 day.stacks.parquet
  pmc symbolize -o named.stacks.parquet day.stacks.parquet
docs/fleet.md describes the tables.")]
#[command(mut_args(|option| option.hide_short_help(false)))]
pub struct SymbolizeArgs {
    /// Tables of stacks written by `pmc export --format parquet`; pmc replaces them
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// File to write instead of replacing the table
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,

    /// Root directory of the recorded machine, for programs
    #[arg(long, value_name = "DIR")]
    pub(crate) symfs: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) lookup: SymbolLookup,

    /// Print no messages except errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
