//! Options shared by the commands that read recordings: where to find symbols and source lines.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use pmc_symbols::symbol::{Debuginfod, SymbolOptions};
use pmc_sys::error::{Error, Result};

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

    #[command(flatten)]
    #[allow(missing_docs, reason = "explained there")]
    pub lookup: SymbolLookup,
}

/// Caches and servers of symbols.
#[derive(Debug, Clone, Default, Args)]
pub struct SymbolLookup {
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

impl SymbolFiles {
    /// Combines these options with the environment variables.
    ///
    /// # Errors
    /// Fails if debuginfod is requested, but no server is configured.
    pub fn symbol_options(&self) -> Result<SymbolOptions> {
        Ok(SymbolOptions {
            symfs: self.symfs.clone(),
            kallsyms: self.kallsyms.clone(),
            vmlinux: self.vmlinux.clone(),
            ..self.lookup.symbol_options()?
        })
    }
}

impl SymbolLookup {
    /// Combines these options with the environment variables.
    ///
    /// # Errors
    /// Fails if debuginfod is requested, but no server is configured.
    pub fn symbol_options(&self) -> Result<SymbolOptions> {
        let environment = SymbolOptions::from_environment();
        let servers = if self.no_debuginfod { None } else { debuginfod(self.debuginfod.as_ref())? };
        Ok(SymbolOptions {
            debuginfod: servers,
            debuginfod_cache: environment.debuginfod_cache.clone().filter(|_| !self.no_debuginfod),
            cache: environment.cache.clone().filter(|_| !self.no_cache),
            ..environment
        })
    }
}

/// Returns the debuginfod servers from `--debuginfod`, or else from the environment.
///
/// # Errors
/// Fails if debuginfod is requested, but no server is configured.
pub fn debuginfod(typed: Option<&Option<String>>) -> Result<Option<Arc<Debuginfod>>> {
    let servers = match typed {
        Some(Some(urls)) => Debuginfod::at(urls),
        Some(None) | None => Debuginfod::from_environment(),
    };
    if typed.is_some() && servers.is_none() {
        return Err(Error::usage("--debuginfod: no server given")
            .why("DEBUGINFOD_URLS is not set")
            .try_options("--debuginfod=https://debuginfod.elfutils.org"));
    }
    Ok(servers.map(Arc::new))
}
