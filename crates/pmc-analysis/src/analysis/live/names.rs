//! Names for locations, looked up by a background thread. Readers never wait: they see the names that are
//! known so far.
//!
//! Accepts locations as they appear ([`NameRequests::ask`]), and stores the function calls at each location
//! ([`NameTable`]).

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::symbols::RecordingSymbols;
use crate::profile::sampled::{LocationCall, LocationCalls, NameStyle, PENDING, StringId, StringTable};
use crate::session::live::Live;
use crate::session::{AddedSymbol, CodeLocation, Module, ModuleKind};
use pmc_symbols::address::IntervalMap;
use pmc_symbols::symbol::{Depth, SymbolOptions};
use pmc_sys::abi::CpuMode;
use pmc_sys::error::{Error, Result};
use pmc_sys::sys::clock::process_cpu_ns;
use pmc_sys::sys::credentials;
use pmc_text::units::seconds;

/// Interval between retries for unnamed generated code.
const AGAIN: Duration = Duration::from_secs(2);
/// Maximum number of locations in unnamed generated code to retry.
const MOST_AGAIN: usize = 10_000;

/// Time after the start during which names are requested immediately, and shown as soon as they are found.
pub const EARLY: Duration = Duration::from_secs(2);
/// Interval between requests after [`EARLY`].
const GATHER: Duration = Duration::from_secs(2);

/// Options for finding names.
#[derive(Debug, Clone)]
pub struct NameOptions {
    /// Where to look for symbols.
    pub options: SymbolOptions,
    /// Level of detail for names.
    pub depth: Depth,
    /// Whether to show names as they are written in the files.
    pub raw_names: bool,
}

/// A message to the naming thread.
#[derive(Default)]
struct NameMessage {
    modules: Vec<Module>,
    ksymbols: Vec<AddedSymbol>,
    jitdumps: Vec<(u32, std::path::PathBuf)>,
    locations: Vec<CodeLocation>,
    /// Whether the message lists all unnamed locations, which makes earlier requests obsolete.
    are_all: bool,
}

/// Requests names from the naming thread, on behalf of the sampler.
pub struct NameRequests {
    news: Sender<NameMessage>,
    named: Arc<Mutex<NameTable>>,
    waiting: Arc<AtomicUsize>,
    generation: u32,
    locations: usize,
    modules: usize,
    /// Earliest time of the next request.
    next: Instant,
    start: Instant,
}

/// The names known so far.
#[derive(Default)]
pub(crate) struct NameTable {
    /// The strings of all names.
    pub(crate) texts: StringTable,
    calls: Vec<LocationCall>,
    /// For each module, address ranges in which all addresses resolve to the same single call. They supply
    /// most names, even for addresses that were never requested.
    stretches: FxHashMap<(u32, CpuMode), IntervalMap<u32>>,
    /// For all other locations, their index ranges in `calls`.
    places: FxHashMap<CodeLocation, (u32, u32)>,
    /// Modules, indexed by [`CodeLocation::module`].
    modules: Vec<Module>,
    /// Number of times that an already known name changed.
    renamed: u32,
}

/// Read access to the known names, for views.
///
/// Limits the CPU time spent on names, since searching a large symbol table takes milliseconds and new
/// addresses keep appearing. Also decides which names to look up first, and when to retry generated code,
/// whose names are published after the code.
#[derive(Clone)]
pub struct NameLookup {
    named: Arc<Mutex<NameTable>>,
    waiting: Arc<AtomicUsize>,
    hurry: Arc<AtomicBool>,
}

impl NameLookup {
    /// Returns the names known so far.
    pub(crate) fn table(&self) -> MutexGuard<'_, NameTable> {
        lock(&self.named)
    }

    /// Lifts the limit on CPU time, before the final lookup.
    pub fn lift_time_limit(&self) {
        self.hurry.store(true, Ordering::Relaxed);
    }

    /// Returns the number of locations whose names are still being looked up.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}

fn lock(named: &Mutex<NameTable>) -> MutexGuard<'_, NameTable> {
    named.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the naming thread.
///
/// # Errors
/// Fails if the thread cannot be started.
pub fn start(options: NameOptions) -> Result<(NameRequests, NameLookup)> {
    let finder = NameFinder::new(options)?;
    let (news, come) = channel();
    let (named, waiting, hurry) = (finder.named.clone(), finder.waiting.clone(), finder.hurry.clone());
    std::thread::Builder::new()
        .name("names".into())
        // Parsing untrusted names may recurse deeply.
        .stack_size(pmc_symbols::worker_threads::STACK)
        .spawn(move || {
            credentials::keep_for_reading();
            finder.run(&come);
        })
        .map_err(|error| Error::io("starting the symbolization thread", error))?;
    let names = NameRequests {
        news,
        named: named.clone(),
        waiting: waiting.clone(),
        generation: 0,
        locations: 0,
        modules: 0,
        next: Instant::now(),
        start: Instant::now(),
    };
    Ok((names, NameLookup { named, waiting, hurry }))
}

impl NameRequests {
    /// Requests names for new locations, unless the previous request was too recent, because small batches
    /// cost much more per name. `at_once` ignores this limit.
    pub fn ask(&mut self, live: &mut Live, at_once: bool) {
        let now = Instant::now();
        if now < self.next && !at_once {
            return;
        }
        if now.duration_since(self.start) > EARLY {
            self.next = now + GATHER;
        }
        let (ksymbols, jitdumps) = live.announced();
        let (locations, generation) = live.locations();
        let mut fresh: Vec<CodeLocation> = Vec::new();
        let are_all = generation != self.generation;
        if are_all {
            (self.generation, self.locations) = (generation, 0);
            // The locations have been renumbered. Names stay valid, because they are stored by location;
            // unused names are dropped.
            lock(&self.named).keep(locations);
        }
        if self.locations < locations.len() {
            let named = lock(&self.named);
            let new = locations[self.locations..].iter();
            fresh.extend(new.filter(|location| named.calls_at(location).is_none()));
        }
        self.locations = locations.len();
        let all = live.history().modules();
        let modules = all[self.modules..].to_vec();
        self.modules = all.len();
        if fresh.is_empty() && !are_all && modules.is_empty() && ksymbols.is_empty() && jitdumps.is_empty() {
            return;
        }
        self.waiting.fetch_add(fresh.len(), Ordering::Relaxed);
        // If the thread has ended, new locations are shown as addresses.
        let _ = self.news.send(NameMessage { modules, ksymbols, jitdumps, locations: fresh, are_all });
    }
}

impl NameTable {
    /// Returns the modules, indexed by number.
    pub(crate) fn modules(&self) -> &[Module] {
        &self.modules
    }

    /// Returns the function calls at a location, innermost first. There is always at least one.
    fn calls_at(&self, location: &CodeLocation) -> Option<&[LocationCall]> {
        let (start, end) = match self.stretch(location) {
            Some((_, call)) => (call, call + 1),
            None => *self.places.get(location)?,
        };
        Some(&self.calls[start as usize..end as usize])
    }

    /// Returns the address range that contains a location, and the function call there.
    fn stretch(&self, location: &CodeLocation) -> Option<(Range<u64>, u32)> {
        let stretches = self.stretches.get(&(location.module()?, location.level))?;
        stretches.find(location.offset).map(|(range, call)| (range, *call))
    }

    /// Stores the function at a location, with its inlined calls. All addresses in `around` resolve to this
    /// function.
    fn put(&mut self, location: &CodeLocation, calls: &[LocationCall], around: Option<Range<u64>>) {
        let start = self.calls.len() as u32;
        match (around, location.module(), calls) {
            (Some(around), Some(module), [call]) => {
                let stretches = self.stretches.entry((module, location.level)).or_default();
                let known = stretches.find(around.start).filter(|(range, _)| *range == around);
                if known.is_some_and(|(_, known)| self.calls[*known as usize] == *call) {
                    return;
                }
                self.calls.push(*call);
                stretches.replace(around, start);
            }
            _ => {
                self.calls.extend_from_slice(calls);
                self.places.insert(*location, (start, self.calls.len() as u32));
            }
        }
    }

    /// Drops all locations except these, and their strings, if these are at most half of the known ones.
    fn keep(&mut self, locations: &[CodeLocation]) {
        let known = self.places.len() + self.stretches.values().map(|map| map.iter().count()).sum::<usize>();
        if known < 2 * locations.len() {
            return;
        }
        let mut kept = Self::default();
        for location in locations {
            if let Some(calls) = self.calls_at(location) {
                let calls = kept.translated(calls, &self.texts);
                let around = self.stretch(location).map(|(range, _)| range);
                kept.put(location, &calls, around);
            }
        }
        (kept.modules, kept.renamed) = (std::mem::take(&mut self.modules), self.renamed + 1);
        *self = kept;
    }

    /// Returns calls whose strings are in `texts`, with the numbers of these strings in this table.
    fn translated(&mut self, calls: &[LocationCall], texts: &StringTable) -> Vec<LocationCall> {
        let mut word = |id| self.texts.add(texts.get(id));
        let translate = |call: &LocationCall| LocationCall {
            dso: word(call.dso),
            symbol: word(call.symbol),
            short: word(call.short),
            file: call.file.map(&mut word),
            ..*call
        };
        calls.iter().map(translate).collect()
    }

    /// Updates `code` with the known calls at these locations. Changes only entries that are new or newly
    /// named, because most locations stay the same between two snapshots.
    pub(crate) fn code(
        &mut self,
        locations: &[CodeLocation],
        generation: u32,
        code: &mut LocationCalls,
        followed: &mut CopiedNames,
    ) {
        if (followed.generation, followed.renamed) != (generation, self.renamed) {
            code.clear();
            *followed = CopiedNames { generation, renamed: self.renamed, soon: Vec::new() };
        }
        let soon = self.texts.add(PENDING);
        followed.soon.retain(|number| {
            let location = &locations[*number as usize];
            if let Some(calls) = self.calls_at(location) {
                code.replace(*number, calls);
                return false;
            }
            // The name of a new module is known before the names of its symbols.
            let dso = self.dso(location);
            if code.calls()[code.own(*number)].dso == soon && dso != soon {
                code.replace(*number, &[self.unnamed(location, dso)]);
            }
            true
        });
        let done = code.len();
        for (number, location) in (0..).zip(locations).skip(done) {
            if let Some(calls) = self.calls_at(location) {
                code.push(calls, location.module());
                continue;
            }
            followed.soon.push(number);
            let dso = self.dso(location);
            code.push(&[self.unnamed(location, dso)], location.module());
        }
    }

    fn dso(&mut self, location: &CodeLocation) -> StringId {
        let module = location.module().and_then(|number| self.modules.get(number as usize));
        self.texts.add(&module.map_or_else(|| PENDING.to_owned(), Module::short_name))
    }

    fn unnamed(&mut self, location: &CodeLocation, dso: StringId) -> LocationCall {
        let symbol = self.texts.add(PENDING);
        LocationCall::new(dso, symbol, location.level, false)
    }
}

/// Records how much of the name table a reader has already copied; see [`NameTable::code`].
#[derive(Default)]
pub(crate) struct CopiedNames {
    generation: u32,
    renamed: u32,
    /// Numbers of locations that have no name yet.
    soon: Vec<u32>,
}

/// Maximum CPU time for finding names, as a fraction of elapsed time.
const SHARE: f64 = 0.005;
/// Maximum CPU time to spend without a pause, for example at the start.
const CREDIT: Duration = Duration::from_millis(100);
/// Time spent reading a module's files, as a fraction of the pause that follows. Reading takes as long for
/// one address as for hundreds, so addresses are collected during the pause. [`LONGEST_REST`] limits how long
/// a name may take.
const READING: f64 = 0.001;
const LONGEST_REST: Duration = Duration::from_secs(8);
/// Interval at which to check whether the CPU limit has been lifted, while requests are pending.
const NAP: Duration = Duration::from_millis(200);

/// State of the naming thread.
struct NameFinder {
    hurry: Arc<AtomicBool>,
    options: NameOptions,
    symbols: RecordingSymbols,
    named: Arc<Mutex<NameTable>>,
    waiting: Arc<AtomicUsize>,
    modules: Vec<Module>,
    /// For each module, the locations for which files must be read, and the time at which they started to
    /// wait.
    pending: FxHashMap<u32, (Vec<CodeLocation>, Instant)>,
    start: Instant,
    /// Earliest time at which a module's files may be read again.
    rests: FxHashMap<u32, Instant>,
    /// Remaining CPU time in seconds, and the time of its last update.
    credit: (f64, Instant),
    /// Unnamed locations in generated code.
    nameless: FxHashSet<CodeLocation>,
    /// The modules whose files are open, with the time of the last lookup in each.
    open: FxHashMap<u32, Instant>,
}

/// Maximum number of modules whose files stay open. An open file keeps its symbols in memory, and its blocks
/// on disk if it was deleted, so builds would take more of both with every program that they start.
const MOST_OPEN: usize = 64;

impl NameFinder {
    fn new(options: NameOptions) -> Result<Self> {
        Ok(Self {
            hurry: Arc::default(),
            symbols: RecordingSymbols::none(options.options.clone())?,
            options,
            named: Arc::default(),
            waiting: Arc::default(),
            modules: Vec::new(),
            pending: FxHashMap::default(),
            start: Instant::now(),
            rests: FxHashMap::default(),
            credit: (CREDIT.as_secs_f64(), Instant::now()),
            nameless: FxHashSet::default(),
            open: FxHashMap::default(),
        })
    }

    fn run(mut self, come: &Receiver<NameMessage>) {
        let mut asked_again = Instant::now();
        loop {
            let patience = match (self.pending.is_empty(), self.nameless.is_empty()) {
                (false, _) => {
                    self.rest().max(Duration::from_secs_f64((-self.credit.0 / SHARE).max(0.0))).min(NAP)
                }
                (_, false) => AGAIN,
                _ => Duration::from_secs(3600),
            };
            match come.recv_timeout(patience) {
                Ok(news) => self.take(news),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.read(come);
            if !self.nameless.is_empty() && asked_again.elapsed() >= AGAIN {
                asked_again = Instant::now();
                self.ask_again();
            }
        }
    }

    fn take(&mut self, news: NameMessage) {
        self.symbols.announce(&news.ksymbols, &news.jitdumps);
        self.symbols.add_modules(&news.modules);
        lock(&self.named).modules.extend(news.modules.iter().cloned());
        self.modules.extend(news.modules);
        if news.are_all {
            // Remove the locations, but keep the time at which each module started to wait.
            let given_up: usize = self.pending.values_mut().map(|(waiting, _)| waiting.drain(..).len()).sum();
            self.waiting.fetch_sub(given_up, Ordering::Relaxed);
        }
        let mut known = Vec::new();
        for location in news.locations {
            match self.symbols.query(&location) {
                Some((id, query)) if !self.symbols.symbolizer.knows(id, query) => {
                    let module = location.module().unwrap_or(u32::MAX);
                    let pending = self.pending.entry(module).or_insert_with(|| (Vec::new(), Instant::now()));
                    pending.0.push(location);
                }
                _ => known.push(location),
            }
        }
        if news.are_all {
            self.pending.retain(|_, (waiting, _)| !waiting.is_empty());
        }
        self.find(&known);
        self.waiting.fetch_sub(known.len(), Ordering::Relaxed);
    }

    /// Returns how long to wait until the files of some module with pending locations may be read.
    fn rest(&self) -> Duration {
        let now = Instant::now();
        let rest = |module: &u32| {
            self.rests.get(module).map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
        };
        self.pending.keys().map(rest).min().unwrap_or_default()
    }

    /// Reads files while the CPU credit lasts, starting with the modules that have the most locations and
    /// have waited longest.
    fn read(&mut self, come: &Receiver<NameMessage>) {
        loop {
            let now = Instant::now();
            let earned = now.duration_since(self.credit.1).as_secs_f64() * SHARE;
            self.credit = ((self.credit.0 + earned).min(CREDIT.as_secs_f64()), now);
            let hurry = self.hurry.load(Ordering::Relaxed);
            if self.credit.0 < 0.0 && !hurry {
                return;
            }
            let worth = |(locations, since): &(Vec<CodeLocation>, Instant)| {
                locations.len() as f64 * (1.0 + since.elapsed().as_secs_f64())
            };
            let rested = |module: &u32| hurry || self.rests.get(module).is_none_or(|until| now >= *until);
            let ready = self.pending.iter().filter(|(module, _)| rested(module));
            let best = ready.max_by(|a, b| worth(a.1).total_cmp(&worth(b.1)));
            let Some(module) = best.map(|(module, _)| *module) else { return };
            let Some((locations, _)) = self.pending.remove(&module) else { return };
            let before = process_cpu_ns();
            self.find(&locations);
            self.waiting.fetch_sub(locations.len(), Ordering::Relaxed);
            let cost = seconds(process_cpu_ns().saturating_sub(before));
            self.credit.0 -= cost;
            if now.duration_since(self.start) > EARLY {
                let rest = Duration::from_secs_f64(cost / READING).min(LONGEST_REST);
                self.rests.insert(module, Instant::now() + rest);
            }
            // More locations may have arrived in the meantime, and their names may already be known.
            while let Ok(news) = come.try_recv() {
                self.take(news);
            }
        }
    }

    fn find(&mut self, locations: &[CodeLocation]) {
        if locations.is_empty() {
            return;
        }
        // Use a separate string table, so that readers do not wait while files are read.
        let mut texts = StringTable::default();
        let NameOptions { depth, raw_names: raw, .. } = self.options;
        let style = NameStyle { raw, ..NameStyle::default() };
        let code = self.symbols.name(&self.modules, locations, depth, style, &mut texts, &|_| {});
        self.store(locations, &code, &texts);
        self.symbols.symbolizer.forget_names();
        let now = Instant::now();
        self.open.extend(locations.iter().filter_map(|location| Some((location.module()?, now))));
        self.close_unused();
    }

    /// Stores the calls at these locations.
    fn store(&mut self, locations: &[CodeLocation], code: &LocationCalls, texts: &StringTable) {
        let named = &mut *lock(&self.named);
        for (number, location) in locations.iter().enumerate() {
            let calls = &named.translated(&code.calls()[code.range(number as u32)], texts);
            // With line numbers, the calls differ between neighbouring addresses.
            let around = match self.options.depth {
                Depth::Names => self.symbols.around(location).map(|(from, end)| from..end),
                _ => None,
            };
            named.put(location, calls, around);
            let is_named = calls.iter().any(|call| call.named);
            if is_named {
                self.nameless.remove(location);
            } else if self.nameless.len() < MOST_AGAIN && is_generated(&self.modules, location) {
                self.nameless.insert(*location);
            }
        }
    }

    /// Closes the files of the modules that have been used least recently, if too many are open. Their names
    /// stay known.
    fn close_unused(&mut self) {
        if self.open.len() <= MOST_OPEN {
            return;
        }
        let mut by_use: Vec<(Instant, u32)> =
            self.open.iter().map(|(module, used)| (*used, *module)).collect();
        by_use.sort_unstable();
        for (_, module) in &by_use[..by_use.len() - MOST_OPEN / 2] {
            self.open.remove(module);
            self.symbols.forget(*module);
        }
    }

    /// Retries unnamed generated code, since a JIT may write names at any time.
    fn ask_again(&mut self) {
        let all: Vec<CodeLocation> = self.nameless.drain().collect();
        let modules: FxHashSet<u32> = all.iter().filter_map(|location| location.module()).collect();
        let changed: FxHashSet<u32> =
            modules.into_iter().filter(|module| self.symbols.refresh(*module)).collect();
        let (again, rest): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|location| location.module().is_some_and(|m| changed.contains(&m)));
        self.nameless.extend(rest);
        if !again.is_empty() {
            self.find(&again);
            lock(&self.named).renamed += 1;
        }
    }
}

fn is_generated(modules: &[Module], location: &CodeLocation) -> bool {
    let module = location.module().and_then(|number| modules.get(number as usize));
    module.is_some_and(|module| matches!(module.kind, ModuleKind::Anonymous(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_of_dropped_names_are_dropped() {
        let mut named = NameTable::default();
        let location = |number: u32| CodeLocation::in_module(number, 0x10);
        for number in 0..100 {
            let (dso, symbol) = (named.texts.add("program"), named.texts.add(&format!("function {number}")));
            let call = LocationCall::new(dso, symbol, CpuMode::User, true);
            let around = (number % 2 == 0).then_some(0..0x20);
            named.put(&location(number), &[call], around);
        }
        let kept = [98, 7].map(location);
        named.keep(&kept);
        assert_eq!(named.renamed, 1);
        for (location, name) in kept.iter().zip(["function 98", "function 7"]) {
            let call = named.calls_at(location).expect("it was kept")[0];
            assert_eq!((named.texts.get(call.dso), named.texts.get(call.symbol)), ("program", name));
        }
        assert!(named.calls_at(&location(6)).is_none() && named.texts.find("function 6").is_none());
        // More than half of the names are used.
        named.keep(&kept);
        assert_eq!(named.renamed, 1);
    }

    #[test]
    fn files_of_many_programs_do_not_stay_open() {
        let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/elf_symbols/o2-dwarf5");
        let folder = tempfile::tempdir().unwrap();
        let options = SymbolOptions { cache: None, ..SymbolOptions::from_environment() };
        let mut finder =
            NameFinder::new(NameOptions { options, depth: Depth::Names, raw_names: false }).unwrap();
        let count = 2 * MOST_OPEN as u32;
        let modules = (0..count).map(|number| {
            let path = folder.path().join(number.to_string());
            std::fs::copy(program, &path).unwrap();
            Module::of_file(&path)
        });
        finder.take(NameMessage { modules: modules.collect(), ..NameMessage::default() });
        for number in 0..count {
            let location = CodeLocation::in_module(number, 0x300);
            finder.find(&[location]);
            let named = lock(&finder.named);
            let call = named.calls_at(&location).expect("it was looked up")[0];
            assert_eq!(named.texts.get(call.symbol), "sum");
        }
        assert!(finder.symbols.symbolizer.names().functions().is_empty(), "they are in the table of names");
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mapped = maps.lines().filter(|line| line.contains(folder.path().to_str().unwrap())).count();
        assert!((1..=MOST_OPEN).contains(&mapped), "{mapped} of {count} files are mapped");
    }
}
