//! Options of `pmc buildid-cache`, as a plan.

use std::path::PathBuf;

use crate::cli::buildid_cache::BuildidCache;
use crate::command::plan;
use crate::error::{Error, Result};
use crate::symbol::SymbolOptions;

/// An action on one file or on all files.
#[derive(Debug)]
pub(super) enum Step {
    Add(PathBuf),
    Remove(PathBuf),
    Purge(PathBuf),
    PurgeAll,
    /// List the files that a recording needs and the cache lacks.
    Missing(PathBuf),
    Update(PathBuf),
    List,
}

/// Settings of `pmc buildid-cache`; the steps run in order.
pub(in crate::command) struct Plan {
    pub(super) steps: Vec<Step>,
    /// The process whose view of the file system is used.
    pub(super) pid: Option<u32>,
    pub(super) symbols: SymbolOptions,
    /// Whether to print each step.
    pub(super) says: bool,
}

impl Plan {
    /// Converts the parsed options.
    ///
    /// # Errors
    /// An option of perf that pmc does not support.
    pub(in crate::command) fn new(typed: BuildidCache) -> Result<Self> {
        let asks_nothing = typed.add.is_empty() && typed.remove.is_empty() && typed.update.is_empty();
        if asks_nothing
            && typed.purge.is_empty()
            && !(typed.purge_all || typed.list || typed.missing.is_some())
        {
            return Err(Error::usage("no action given").try_this("-a FILE adds a file, -l lists all"));
        }
        let all = |files: Vec<PathBuf>, step: fn(PathBuf) -> Step| files.into_iter().map(step);
        let steps = all(typed.add, Step::Add)
            .chain(all(typed.remove, Step::Remove))
            .chain(all(typed.purge, Step::Purge))
            .chain(typed.purge_all.then_some(Step::PurgeAll))
            .chain(typed.missing.map(Step::Missing))
            .chain(all(typed.update, Step::Update))
            .chain(typed.list.then_some(Step::List));
        // Servers are asked only on request.
        let servers = match &typed.debuginfod {
            Some(urls) => plan::debuginfod(Some(urls))?,
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
