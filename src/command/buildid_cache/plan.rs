//! What was typed for `pmc buildid-cache`, and what it means.

use std::path::PathBuf;

use crate::cli::buildid_cache::BuildidCache;
use crate::command::plan;
use crate::error::{Error, Result};
use crate::symbol::Options;

/// What is done with one file, or with all.
#[derive(Debug)]
pub(super) enum Step {
    Add(PathBuf),
    Remove(PathBuf),
    Purge(PathBuf),
    PurgeAll,
    /// List what a recording needs and is not kept.
    Missing(PathBuf),
    Update(PathBuf),
    List,
}

/// What `pmc buildid-cache` does, in this order.
pub(in crate::command) struct Plan {
    pub(super) steps: Vec<Step>,
    /// Whose eyes files are seen with.
    pub(super) pid: Option<u32>,
    pub(super) symbols: Options,
    /// Each step is said.
    pub(super) says: bool,
}

impl Plan {
    /// What was typed, as what it means.
    ///
    /// # Errors
    /// Options of perf's that pmc has not.
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
        // Only who says so asks them.
        let servers = match &typed.debuginfod {
            Some(urls) => plan::debuginfod(Some(urls))?,
            None => None,
        };
        Ok(Self {
            steps: steps.collect(),
            pid: typed.target_ns,
            symbols: Options { debuginfod: servers, ..Options::from_environment() },
            says: typed.verbose > 0,
        })
    }
}
