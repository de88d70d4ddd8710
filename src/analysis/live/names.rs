//! Names for locations, found by a thread of its own: whoever looks sees what is known by then, and
//! never waits.
//!
//! Receives locations as they appear ([`Names::ask`]); keeps what stands at each ([`NameTable`]). Decides how
//! much of a CPU names may cost (walking through a large symbol table takes milliseconds, and new addresses
//! come all the time), which are found first, and when generated code, whose names come later than the code,
//! is asked about again.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::abi::CpuMode;
use crate::address::IntervalMap;
use crate::analysis::symbols::Symbols;
use crate::error::{Error, Result};
use crate::profile::sampled::{Call, Code, PENDING, StringId, StringTable};
use crate::session::live::Live;
use crate::session::{AddedSymbol, Kind, Location, Module};
use crate::symbol::{Depth, Options};
use crate::sys::clock::process_cpu_ns;

/// Nameless generated code is asked about again so often.
const AGAIN: Duration = Duration::from_secs(2);
/// Locations of nameless generated code that are asked about again.
const MOST_AGAIN: usize = 10_000;

/// At first names are asked for as soon as there is something to name, and shown as they come …
pub const EARLY: Duration = Duration::from_secs(2);
/// … later so often.
const GATHER: Duration = Duration::from_secs(2);

/// What is wanted of names.
#[derive(Debug, Clone)]
pub struct NameOptions {
    /// Where symbols are looked for.
    pub options: Options,
    /// How much of a name.
    pub depth: Depth,
    /// Names as they stand in the files.
    pub raw_names: bool,
}

/// News for the thread.
#[derive(Default)]
struct News {
    modules: Vec<Module>,
    ksymbols: Vec<AddedSymbol>,
    jitdumps: Vec<(u32, std::path::PathBuf)>,
    locations: Vec<Location>,
    /// These are all that are still without a name: of those that were asked for before, nobody needs the
    /// others any more.
    are_all: bool,
}

/// The side that asks; it lives with the sampler.
pub struct NameRequests {
    news: Sender<News>,
    named: Arc<Mutex<NameTable>>,
    waiting: Arc<AtomicUsize>,
    generation: u32,
    locations: usize,
    modules: usize,
    /// Nothing is asked before.
    next: Instant,
    start: Instant,
}

/// What is known by now.
#[derive(Default)]
pub struct NameTable {
    /// All words.
    pub texts: StringTable,
    calls: Vec<Call>,
    /// Where one call stands for all places from one to another, by module. Most names are
    /// found here, those of code too that nobody has asked about yet.
    stretches: FxHashMap<(u32, CpuMode), IntervalMap<u32>>,
    /// Where the calls of other locations lie.
    places: FxHashMap<Location, (u32, u32)>,
    /// Modules by their number: see [`Location::module`].
    modules: Vec<Module>,
    /// How often names that were known became others.
    renamed: u32,
}

/// The side that looks.
#[derive(Clone)]
pub struct NameLookup {
    named: Arc<Mutex<NameTable>>,
    waiting: Arc<AtomicUsize>,
    hurry: Arc<AtomicBool>,
}

impl NameLookup {
    /// The names that are known by now.
    pub fn table(&self) -> MutexGuard<'_, NameTable> {
        lock(&self.named)
    }

    /// From now on names may cost what they cost: this is the last time that somebody looks.
    pub fn hurry(&self) {
        self.hurry.store(true, Ordering::Relaxed);
    }

    /// Locations whose names are being looked for.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}

fn lock(named: &Mutex<NameTable>) -> MutexGuard<'_, NameTable> {
    named.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the thread.
///
/// # Errors
/// When no thread can be started.
pub fn start(options: NameOptions) -> Result<(NameRequests, NameLookup)> {
    let symbols = Symbols::none(options.options.clone())?;
    let (news, come) = channel();
    let named = Arc::new(Mutex::new(NameTable::default()));
    let waiting = Arc::new(AtomicUsize::new(0));
    let hurry = Arc::new(AtomicBool::new(false));
    let finder = Finder {
        hurry: hurry.clone(),
        options,
        symbols,
        named: named.clone(),
        waiting: waiting.clone(),
        modules: Vec::new(),
        pending: FxHashMap::default(),
        start: Instant::now(),
        rests: FxHashMap::default(),
        credit: (CREDIT.as_secs_f64(), Instant::now()),
        nameless: FxHashSet::default(),
    };
    std::thread::Builder::new()
        .name("names".into())
        // Names are untrusted, and taken apart here.
        .stack_size(crate::session::worker_threads::STACK)
        .spawn(move || finder.run(&come))
        .map_err(|error| Error::io("starting the thread for names", error))?;
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
    /// Asks for what has appeared since the last time, unless that was a moment ago: a few names at a time
    /// cost much more each. `at_once`: all the same.
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
        let mut fresh: Vec<Location> = Vec::new();
        let are_all = generation != self.generation;
        if are_all {
            (self.generation, self.locations) = (generation, 0);
            // What is named stays so under whatever number; what nobody has any more is forgotten.
            lock(&self.named).keep(locations);
        }
        if self.locations < locations.len() {
            let named = lock(&self.named);
            let new = locations[self.locations..].iter();
            fresh.extend(new.filter(|location| named.of(location).is_none()));
        }
        self.locations = locations.len();
        let all = live.history().modules();
        let modules = all[self.modules..].to_vec();
        self.modules = all.len();
        if fresh.is_empty() && !are_all && modules.is_empty() && ksymbols.is_empty() && jitdumps.is_empty() {
            return;
        }
        self.waiting.fetch_add(fresh.len(), Ordering::Relaxed);
        // Without the thread there are no names; the addresses remain.
        let _ = self.news.send(News { modules, ksymbols, jitdumps, locations: fresh, are_all });
    }
}

impl NameTable {
    /// Modules by their number.
    pub fn modules(&self) -> &[Module] {
        &self.modules
    }

    /// What stands at a location, innermost first; there is at least one.
    fn of(&self, location: &Location) -> Option<&[Call]> {
        let (start, end) = match self.stretch(location) {
            Some((_, call)) => (call, call + 1),
            None => *self.places.get(location)?,
        };
        Some(&self.calls[start as usize..end as usize])
    }

    /// The stretch that a location lies in, and its call.
    fn stretch(&self, location: &Location) -> Option<(Range<u64>, u32)> {
        let stretches = self.stretches.get(&(location.module()?, location.level))?;
        stretches.find(location.offset).map(|(range, call)| (range, *call))
    }

    /// Writes down what stands at a location. `around`: the places for which one call stands as it does for
    /// this one.
    fn put(&mut self, location: &Location, calls: &[Call], around: Option<Range<u64>>) {
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

    /// Keeps what stands at these locations, where that is much less than what is known.
    fn keep(&mut self, locations: &[Location]) {
        let known = self.places.len() + self.stretches.values().map(|map| map.iter().count()).sum::<usize>();
        if known < 2 * locations.len() {
            return;
        }
        let mut kept = Self::default();
        for location in locations {
            if let Some(calls) = self.of(location) {
                let around = self.stretch(location).map(|(range, _)| range);
                kept.put(location, calls, around);
            }
        }
        (self.calls, self.places, self.stretches) = (kept.calls, kept.places, kept.stretches);
    }

    /// What stands at these locations, as far as it is known. `code` is what it was the last time, and
    /// changes only where something new is known: most locations stay from one look to the next.
    pub fn code(
        &mut self,
        locations: &[Location],
        generation: u32,
        code: &mut Code,
        followed: &mut Followed,
    ) {
        if (followed.generation, followed.renamed) != (generation, self.renamed) {
            code.clear();
            *followed = Followed { generation, renamed: self.renamed, soon: Vec::new() };
        }
        let soon = self.texts.add(PENDING);
        followed.soon.retain(|number| {
            let location = &locations[*number as usize];
            if let Some(calls) = self.of(location) {
                code.replace(*number, calls);
                return false;
            }
            // Of a module that is new, the name comes first.
            let dso = self.dso(location);
            if code.calls()[code.own(*number)].dso == soon && dso != soon {
                code.replace(*number, &[self.unnamed(location, dso)]);
            }
            true
        });
        let done = code.len();
        for (number, location) in (0..).zip(locations).skip(done) {
            if let Some(calls) = self.of(location) {
                code.push(calls, location.module());
                continue;
            }
            followed.soon.push(number);
            let dso = self.dso(location);
            code.push(&[self.unnamed(location, dso)], location.module());
        }
    }

    fn dso(&mut self, location: &Location) -> StringId {
        let module = location.module().and_then(|number| self.modules.get(number as usize));
        self.texts.add(&module.map_or_else(|| PENDING.to_owned(), Module::short_name))
    }

    fn unnamed(&mut self, location: &Location, dso: StringId) -> Call {
        let symbol = self.texts.add(PENDING);
        Call::new(dso, symbol, location.level, false)
    }
}

/// How far somebody's code has followed what is known: see [`NameTable::code`].
#[derive(Default)]
pub struct Followed {
    generation: u32,
    renamed: u32,
    /// Numbers of locations whose names were not known.
    soon: Vec<u32>,
}

/// CPU time that may be used for names: this part of the time that passes …
const SHARE: f64 = 0.005;
/// … and so much at once, as at the start.
const CREDIT: Duration = Duration::from_millis(100);
/// Each reading of a module's files is followed by a rest, of which the reading is this part. It takes as
/// long for one address as for hundreds, so these had better gather. Nobody should have to wait for a name
/// for long, though: the rest is this long at most.
const READING: f64 = 0.001;
const LONGEST_REST: Duration = Duration::from_secs(8);
/// While something waits, the thread looks up so often: hurry may be asked for.
const NAP: Duration = Duration::from_millis(200);

/// The thread's own.
struct Finder {
    hurry: Arc<AtomicBool>,
    options: NameOptions,
    symbols: Symbols,
    named: Arc<Mutex<NameTable>>,
    waiting: Arc<AtomicUsize>,
    modules: Vec<Module>,
    /// Locations for which files must be read, by module, and since when they wait.
    pending: FxHashMap<u32, (Vec<Location>, Instant)>,
    start: Instant,
    /// When files of a module that were read may be read again.
    rests: FxHashMap<u32, Instant>,
    /// Seconds of CPU time that may be used, and when that was reckoned.
    credit: (f64, Instant),
    /// Generated code without a name.
    nameless: FxHashSet<Location>,
}

impl Finder {
    fn run(mut self, come: &Receiver<News>) {
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

    fn take(&mut self, news: News) {
        self.symbols.announce(&news.ksymbols, &news.jitdumps);
        self.symbols.know(&news.modules);
        lock(&self.named).modules.extend(news.modules.iter().cloned());
        self.modules.extend(news.modules);
        if news.are_all {
            // How long a module has been waiting is remembered.
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

    /// How long until a module for which something waits may be read.
    fn rest(&self) -> Duration {
        let now = Instant::now();
        let rest = |module: &u32| {
            self.rests.get(module).map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
        };
        self.pending.keys().map(rest).min().unwrap_or_default()
    }

    /// Reads files as long as there is credit, those first for which most is waiting longest.
    fn read(&mut self, come: &Receiver<News>) {
        loop {
            let now = Instant::now();
            let earned = now.duration_since(self.credit.1).as_secs_f64() * SHARE;
            self.credit = ((self.credit.0 + earned).min(CREDIT.as_secs_f64()), now);
            let hurry = self.hurry.load(Ordering::Relaxed);
            if self.credit.0 < 0.0 && !hurry {
                return;
            }
            let worth = |(locations, since): &(Vec<Location>, Instant)| {
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
            let cost = process_cpu_ns().saturating_sub(before) as f64 / 1e9;
            self.credit.0 -= cost;
            if now.duration_since(self.start) > EARLY {
                let rest = Duration::from_secs_f64(cost / READING).min(LONGEST_REST);
                self.rests.insert(module, Instant::now() + rest);
            }
            // What came meanwhile may be known by now.
            while let Ok(news) = come.try_recv() {
                self.take(news);
            }
        }
    }

    fn find(&mut self, locations: &[Location]) {
        if locations.is_empty() {
            return;
        }
        // The words are shared with those who look: they are not kept waiting while files are read.
        let mut texts = StringTable::default();
        let NameOptions { depth, raw_names, .. } = self.options;
        let code = self.symbols.name(&self.modules, locations, depth, raw_names, &mut texts, &|_| {});
        let named = &mut *lock(&self.named);
        let mut renamed = Vec::new();
        for (number, location) in locations.iter().enumerate() {
            renamed.clear();
            renamed.extend_from_slice(&code.calls()[code.range(number as u32)]);
            for call in &mut renamed {
                let mut word = |id| named.texts.add(texts.get(id));
                (call.dso, call.symbol, call.file) =
                    (word(call.dso), word(call.symbol), call.file.map(&mut word));
            }
            let calls = &renamed[..];
            // Lines differ from one place to the next.
            let around = match depth {
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

    /// A JIT writes names down when it likes.
    fn ask_again(&mut self) {
        let all: Vec<Location> = self.nameless.drain().collect();
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

fn is_generated(modules: &[Module], location: &Location) -> bool {
    let module = location.module().and_then(|number| modules.get(number as usize));
    module.is_some_and(|module| matches!(module.kind, Kind::Anonymous(_)))
}
