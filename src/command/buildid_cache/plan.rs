//! Converts the parsed options of `pmc buildid-cache` into a plan.

use std::path::PathBuf;

use crate::cli::buildid_cache::BuildidCacheArgs;
use pmc_command::options::symbol_files::debuginfod;
use pmc_symbols::symbol::SymbolOptions;
use pmc_sys::error::{Error, Result};

/// An action on one file or on all files.
#[derive(Debug)]
pub(super) enum CacheStep {
    Add(PathBuf),
    Remove(PathBuf),
    Purge(PathBuf),
    PurgeAll,
    /// List the files that a recording refers to and that are not in the cache.
    Missing(PathBuf),
    Update(PathBuf),
    List,
}

/// Settings of `pmc buildid-cache`; the steps run in order.
pub(in crate::command) struct BuildidCachePlan {
    pub(super) steps: Vec<CacheStep>,
    /// Look up files in the mount namespace of this process.
    pub(super) pid: Option<u32>,
    pub(super) symbols: SymbolOptions,
    /// Whether to print each step.
    pub(super) says: bool,
}

impl BuildidCachePlan {
    /// Converts the parsed options.
    ///
    /// # Errors
    /// Fails if pmc does not support one of perf's options.
    pub(in crate::command) fn new(typed: BuildidCacheArgs) -> Result<Self> {
        let asks_nothing = typed.add.is_empty() && typed.remove.is_empty() && typed.update.is_empty();
        if asks_nothing
            && typed.purge.is_empty()
            && !(typed.purge_all || typed.list || typed.missing.is_some())
        {
            return Err(Error::usage("no action given").try_this("-a FILE adds a file, -l lists all"));
        }
        let all = |files: Vec<PathBuf>, step: fn(PathBuf) -> CacheStep| files.into_iter().map(step);
        let steps = all(typed.add, CacheStep::Add)
            .chain(all(typed.remove, CacheStep::Remove))
            .chain(all(typed.purge, CacheStep::Purge))
            .chain(typed.purge_all.then_some(CacheStep::PurgeAll))
            .chain(typed.missing.map(CacheStep::Missing))
            .chain(all(typed.update, CacheStep::Update))
            .chain(typed.list.then_some(CacheStep::List));
        // Contact the debuginfod servers only on request.
        let servers = match &typed.debuginfod {
            Some(urls) => debuginfod(Some(urls))?,
            None => None,
        };
        Ok(Self {
            steps: steps.collect(),
            pid: typed.target_ns,
            symbols: SymbolOptions { debuginfod: servers, ..SymbolOptions::from_environment() },
            says: typed.verbose > 0,
        })
    }
}
