//! Options shared by `report`, `script`, `annotate` and `diff`: where to find symbols and source lines.

use std::path::PathBuf;

use clap::Args;

/// Where to find symbols, and whether to cache lookups.
#[derive(Debug, Clone, Default, Args)]
pub struct SymbolFiles {
    /// Root directory of the recorded machine, for programs and sources
    #[arg(long, value_name = "DIR", help_heading = "Names", hide_short_help = true)]
    pub symfs: Option<PathBuf>,

    /// Copy of the recorded machine's /proc/kallsyms
    #[arg(long, value_name = "FILE", help_heading = "Names", hide_short_help = true)]
    pub kallsyms: Option<PathBuf>,

    /// Recorded kernel's image with symbols (vmlinux)
    #[arg(short = 'k', long, value_name = "FILE", help_heading = "Names", hide_short_help = true)]
    pub vmlinux: Option<PathBuf>,

    /// Do not cache symbol lookups for later runs
    #[arg(long, help_heading = "Names", hide_short_help = true)]
    pub no_cache: bool,

    /// debuginfod servers to ask for missing files, instead of those in DEBUGINFOD_URLS
    #[arg(long, value_name = "URLS", num_args = 0..=1, require_equals = true, help_heading = "Names", hide_short_help = true)]
    pub debuginfod: Option<Option<String>>,

    /// Use neither debuginfod servers nor files fetched from them earlier
    #[arg(long, conflicts_with = "debuginfod", help_heading = "Names", hide_short_help = true)]
    pub no_debuginfod: bool,
}
