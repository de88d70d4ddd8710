//! `pmc buildid-cache`: manages perf's cache of programs and libraries by build ID.
//!
//! Connects the cache, the reader of recordings and the view. If a step fails for one file, pmc reports the
//! error and continues with the next file, and the exit status indicates failure.

use std::path::{Path, PathBuf};

use crate::cli::buildid_cache::BuildidCacheArgs;
use pmc_analysis::analysis::header;
use pmc_command::options::symbol_files::debuginfod;
use pmc_command::pager::PagedOutput;
use pmc_formats::import;
use pmc_symbols::symbol::{BuildId, BuildIdCache, CacheEntry, Image, SymbolModule, SymbolOptions, elf};
use pmc_sys::error::{Error, Exit, Result, say};

/// An action on one file or on all files.
#[derive(Debug)]
enum CacheStep {
    Add(PathBuf),
    Remove(PathBuf),
    Purge(PathBuf),
    PurgeAll,
    /// List the files that a recording refers to and that are not in the cache.
    Missing(PathBuf),
    Update(PathBuf),
    List,
}

/// What to do with the cache; the steps run in order.
pub(super) struct BuildidCacheRequest {
    steps: Vec<CacheStep>,
    /// Look up files in the mount namespace of this process.
    pid: Option<u32>,
    symbols: SymbolOptions,
    /// Whether to print each step.
    says: bool,
}

impl BuildidCacheArgs {
    /// # Errors
    /// Fails if no action is given, or no debuginfod server is configured.
    pub(super) fn request(self) -> Result<BuildidCacheRequest> {
        let asks_nothing = self.add.is_empty() && self.remove.is_empty() && self.update.is_empty();
        if asks_nothing && self.purge.is_empty() && !(self.purge_all || self.list || self.missing.is_some()) {
            return Err(Error::usage("no action given").try_options("-a FILE adds a file, -l lists all"));
        }
        let all = |files: Vec<PathBuf>, step: fn(PathBuf) -> CacheStep| files.into_iter().map(step);
        let steps = all(self.add, CacheStep::Add)
            .chain(all(self.remove, CacheStep::Remove))
            .chain(all(self.purge, CacheStep::Purge))
            .chain(self.purge_all.then_some(CacheStep::PurgeAll))
            .chain(self.missing.map(CacheStep::Missing))
            .chain(all(self.update, CacheStep::Update))
            .chain(self.list.then_some(CacheStep::List));
        // Contact the debuginfod servers only on request.
        let servers = match &self.debuginfod {
            Some(urls) => debuginfod(Some(urls))?,
            None => None,
        };
        Ok(BuildidCacheRequest {
            steps: steps.collect(),
            pid: self.target_ns,
            symbols: SymbolOptions { debuginfod: servers, ..SymbolOptions::from_environment() },
            says: self.verbose > 0,
        })
    }
}

/// Runs the command.
///
/// # Errors
/// Fails if no cache directory is known, a recording cannot be read, or a write fails.
pub(super) fn run(request: &BuildidCacheRequest) -> Result<Exit> {
    let cache = BuildIdCache::usual().ok_or_else(|| {
        Error::new("no build-id cache directory")
            .why("HOME is not set, or belongs to another user")
            .try_this("pmc --buildid-dir DIR buildid-cache …")
    })?;
    let mut exit = Exit::Done;
    for step in &request.steps {
        match done(step, request, &cache) {
            Ok(said) if request.says => said.iter().for_each(say::note),
            Ok(_) => {}
            Err(error) if error.is_quiet() => return Err(error),
            Err(error) => {
                say::error(&error);
                exit = Exit::Failure;
            }
        }
    }
    Ok(exit)
}

/// Performs one step and returns one line of output per file.
fn done(step: &CacheStep, request: &BuildidCacheRequest, cache: &BuildIdCache) -> Result<Vec<String>> {
    let line = |what: &str, id: BuildId, path: &Path| vec![format!("{what} {id} {}", path.display())];
    match step {
        CacheStep::Add(path) | CacheStep::Update(path) => {
            let (module, id) = module(path, request)?;
            if let (CacheStep::Update(_), Some(entry)) = (step, cache.named(id)) {
                cache.remove(&entry)?;
            }
            let is_new = cache.keep(&module, &request.symbols)?;
            Ok(line(if is_new { "kept" } else { "kept before:" }, id, path))
        }
        CacheStep::Remove(path) => {
            let id = build_id(path)?;
            let entry = cache.named(id).ok_or_else(|| nothing_kept(path))?;
            cache.remove(&entry).map(|()| line("removed", id, path))
        }
        CacheStep::Purge(path) => {
            let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
            let entries =
                cache.entries()?.into_iter().filter(|entry| entry.name == real || entry.name == *path);
            let entries: Vec<_> = entries.collect();
            if entries.is_empty() {
                return Err(nothing_kept(path));
            }
            entries.iter().map(|entry| removed(cache, entry)).collect()
        }
        CacheStep::PurgeAll => cache.entries()?.iter().map(|entry| removed(cache, entry)).collect(),
        CacheStep::Missing(path) => {
            let mut rows = header::read(&import::open_recording(path, "build-ids")?).build_ids;
            rows.retain(|(id, _)| BuildId::parse(id).is_none_or(|id| !cache.holds(id)));
            print(&rows)
        }
        CacheStep::List => {
            let (sound, damaged): (Vec<_>, Vec<_>) =
                cache.entries()?.into_iter().partition(|entry| cache.holds(entry.id));
            let rows: Vec<_> =
                sound.iter().map(|entry| (entry.id.to_string(), entry.name.display().to_string())).collect();
            print(&rows)?;
            let damaged = damaged.iter().map(|entry| line("damaged:", entry.id, &entry.name).remove(0));
            Ok(damaged.collect())
        }
    }
}

fn removed(cache: &BuildIdCache, entry: &CacheEntry) -> Result<String> {
    cache.remove(entry).map(|()| format!("removed {} {}", entry.id, entry.name.display()))
}

fn print(rows: &[(String, String)]) -> Result<Vec<String>> {
    let mut out = PagedOutput::open();
    let written = pmc_view::header::build_ids(&mut out, rows).and_then(|()| out.finish());
    written.map(|()| Vec::new()).map_err(|error| Error::output("the list of build-ids", error))
}

fn nothing_kept(path: &Path) -> Error {
    Error::new(format!("the cache has no entry for {}", path.display())).try_this("pmc buildid-cache -l")
}

/// Opens a file. If a process is selected, the path is relative to the root directory of that process.
fn module(path: &Path, request: &BuildidCacheRequest) -> Result<(SymbolModule, BuildId)> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let root = request.pid.map(|pid| Path::new("/proc").join(pid.to_string()).join("root"));
    let seen = root.map(|root| root.join(absolute.strip_prefix("/").unwrap_or(&absolute)));
    let id = build_id(seen.as_deref().unwrap_or(path))?;
    Ok((SymbolModule { build_id: Some(id), pid: request.pid, ..SymbolModule::file(absolute) }, id))
}

fn build_id(path: &Path) -> Result<BuildId> {
    let image = Image::open(path).map_err(|error| Error::io(format!("reading {}", path.display()), error))?;
    let file = image
        .elf()
        .map_err(|error| Error::new(format!("{} is not a program or library: {error}", path.display())))?;
    elf::build_id(&file).ok_or_else(|| {
        Error::new(format!("{} has no build-id", path.display()))
            .why("the file was linked without --build-id")
            .try_this("gcc -Wl,--build-id")
    })
}
