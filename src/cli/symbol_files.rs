//! Where names and lines come from: the options that `report`, `script`, `annotate` and `diff` share.

use std::path::PathBuf;

use clap::Args;

/// Files with symbols, and what is kept of them.
#[derive(Debug, Clone, Default, Args)]
pub struct SymbolFiles {
    /// A folder that stands for / of the recorded machine, for programs and sources
    #[arg(long, value_name = "DIR")]
    pub symfs: Option<PathBuf>,

    /// A copy of the recorded machine's /proc/kallsyms
    #[arg(long, value_name = "FILE")]
    pub kallsyms: Option<PathBuf>,

    /// The recorded kernel's file with symbols
    #[arg(short = 'k', long, value_name = "FILE")]
    pub vmlinux: Option<PathBuf>,

    /// Do not keep results for the next time
    #[arg(long)]
    pub no_cache: bool,

    /// Ask the servers in DEBUGINFOD_URLS for missing files
    #[arg(long)]
    pub debuginfod: bool,
}
