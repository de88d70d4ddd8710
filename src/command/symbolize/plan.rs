//! Converts the parsed options of `pmc symbolize` into a plan.

use std::path::PathBuf;

use crate::cli::symbolize::SymbolizeArgs;
use pmc_command::destination::is_standard;
use pmc_symbols::symbol::SymbolOptions;
use pmc_sys::error::{Error, Result};

/// Settings of `pmc symbolize`.
#[derive(Debug)]
pub(in crate::command) struct SymbolizePlan {
    /// Each table, and the file to write.
    pub(super) tables: Vec<(PathBuf, PathBuf)>,
    pub(super) symbols: SymbolOptions,
    pub(super) is_quiet: bool,
}

impl SymbolizePlan {
    /// Converts the parsed options.
    ///
    /// # Errors
    /// Fails if several tables have one output, or an option is invalid.
    pub(in crate::command) fn new(typed: SymbolizeArgs) -> Result<Self> {
        let SymbolizeArgs { files, output, symfs, lookup, quiet } = typed;
        if output.is_some() && files.len() > 1 {
            return Err(Error::usage("-o requires a single table"));
        }
        if files.iter().chain(&output).any(|path| is_standard(path)) {
            return Err(Error::usage("pmc symbolize requires files, not standard input or output"));
        }
        let target = |file: PathBuf| {
            let to = output.clone().unwrap_or_else(|| file.clone());
            (file, to)
        };
        Ok(Self {
            tables: files.into_iter().map(target).collect(),
            symbols: SymbolOptions { symfs, ..lookup.symbol_options()? },
            is_quiet: quiet,
        })
    }
}
