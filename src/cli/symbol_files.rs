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

    /// Servers that are asked for missing files, instead of those in DEBUGINFOD_URLS
    #[arg(long, value_name = "URLS", num_args = 0..=1, require_equals = true)]
    pub debuginfod: Option<Option<String>>,

    /// Ask no debuginfod server, and use nothing that one gave earlier
    #[arg(long, conflicts_with = "debuginfod")]
    pub no_debuginfod: bool,
}
