//! The thread that reads: samples first, then names, then inlined functions, then what would help where names are missing.
//!
//! Receives a recording; hands each stage to the answers thread as soon as it is whole. Keeps the symbolizer, and therefore
//! also fetches the code of functions.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use super::Opening;
use super::stage::{Ground, Newest, Stage};
use crate::abi::sample_type;
use crate::analysis::annotate::functions::{self, Sampled, choose};
use crate::analysis::annotate::listing::{self, How};
use crate::analysis::names::Names;
use crate::analysis::quality::{add_remedies, modules, trust_of};
use crate::analysis::sources;
use crate::analysis::symbols::Symbols;
use crate::analysis::unwinding::Unwinding;
use crate::cli::report::Report;
use crate::command::report::change_stacks;
use crate::command::report::plan::Plan;
use crate::error::Result;
use crate::perfdata::{Buffer, Reader};
use crate::profile::annotate::Listing;
use crate::profile::sampled::{StringTable, trust};
use crate::record::kind;
use crate::session::samples::{self, SampleAttribute};
use crate::session::{Session, resolver};
use crate::symbol::Depth;
use crate::symbol::disassemble::Syntax;
use crate::tui::board::{Job, latest};
use crate::tui::engine::Progress;
use crate::tui::{Board, FunctionRef};

/// Most slices that the time of a recording is cut into …
const SLICES: u64 = 240;
/// … and how many samples a slice should hold.
const IN_SLICE: u64 = 5;
/// The shortest time between two reports of progress.
const PROGRESS: Duration = Duration::from_millis(100);

/// What the thread needs.
pub(super) struct Loader {
    pub(super) typed: Report,
    pub(super) plan: Plan,
    pub(super) stage: Newest,
    pub(super) answers: Sender<Job>,
    pub(super) board: Arc<Board>,
    /// The function whose code is shown first.
    pub(super) opening: Option<Opening>,
}

/// Tells the board how far work has come, but not too often.
struct Teller<'a> {
    board: &'a Board,
    what: &'static str,
    state: Mutex<(Instant, u64)>,
}

impl<'a> Teller<'a> {
    fn new(board: &'a Board, what: &'static str) -> Self {
        board.status(|status| status.progress = Some(Progress { what, done: 0, total: 0 }));
        Self { board, what, state: Mutex::new((Instant::now(), 0)) }
    }

    /// So much is done, of so much.
    fn at(&self, done: u64, total: u64) {
        self.tell(|_| done, total);
    }

    /// So much more is done, of so much.
    fn more(&self, more: u64, total: u64) {
        self.tell(|done| done + more, total);
    }

    fn tell(&self, done: impl FnOnce(u64) -> u64, total: u64) {
        let Ok(mut state) = self.state.lock() else { return };
        state.1 = done(state.1);
        if state.0.elapsed() >= PROGRESS {
            state.0 = Instant::now();
            let done = state.1;
            self.board.status(|status| status.progress = Some(Progress { what: self.what, done, total }));
        }
    }
}

impl Drop for Teller<'_> {
    fn drop(&mut self) {
        self.board.status(|status| status.progress = None);
    }
}

impl Loader {
    /// Reads everything, then waits for functions whose code is wanted.
    pub(super) fn run(self, reader: Reader, functions: &Receiver<FunctionRef>) {
        if let Err(error) = self.load(reader, functions) {
            self.board.fail(error);
        }
    }

    fn load(&self, reader: Reader, functions: &Receiver<FunctionRef>) -> Result<()> {
        let plan = &self.plan;
        let session = {
            let _teller = Teller::new(&self.board, "reading the recording");
            Arc::new(Session::open(reader)?)
        };
        let facts = session.facts;
        let notes: Vec<String> = session.notes().map(ToString::to_string).collect();
        self.board.status(|status| {
            status.lost = facts.lost_samples.max(facts.lost_records);
            status.notes = notes;
        });
        let mut symbols = Symbols::new(&session.history, plan.symbols.clone())?;
        let has_chains = plan.takes_chains() && has_chains(&session);
        // What typed keys show needs lines and inlined functions at once; else they come when names have.
        let last = plan.depth.unwrap_or(Depth::Inlines);
        let is_one =
            last == Depth::Names || plan.changes_stacks() || plan.keys.iter().any(|key| key.needs_lines());
        let ground = self.ground(&session, &mut symbols, last)?;
        let (mut opening, mut all) = (self.opening.as_ref(), None);
        let depths = if is_one { vec![last] } else { vec![Depth::Names, last] };
        for depth in depths {
            let what = if depth == Depth::Names { "finding names" } else { "finding inlined functions" };
            let stage = {
                let teller = Teller::new(&self.board, what);
                let progress = |p: crate::symbol::Progress| teller.at(p.done as u64, p.total as u64);
                self.stage(&ground, &mut symbols, depth, has_chains, &progress)
            };
            self.stage.set(stage);
            let _ = self.answers.send(Job::Refresh);
            if let Some(opening) = opening.take() {
                all = Some(self.open(&ground, &mut symbols, opening)?);
            }
        }
        self.annotate(&ground, &mut symbols, all, functions);
        Ok(())
    }

    fn ground(&self, session: &Arc<Session>, symbols: &mut Symbols, depth: Depth) -> Result<Arc<Ground>> {
        let mut wanted = self.plan.wanted(&self.typed, session)?;
        wanted.ignore_comms = false;
        let mut add = |attribute: SampleAttribute, is_there: bool| {
            if !is_there {
                wanted.attributes.push(attribute);
            }
        };
        let has = self.plan.wanted(&self.typed, session)?.attributes;
        for attribute in [SampleAttribute::Pid, SampleAttribute::Tid, SampleAttribute::Cpu] {
            add(attribute, has.contains(&attribute));
        }
        let has_slices = has.iter().any(|attribute| matches!(attribute, SampleAttribute::Time(_)));
        if let Some((first, last)) = span(session) {
            let slices = (session.index.count(kind::SAMPLE) / IN_SLICE).clamp(1, SLICES);
            add(SampleAttribute::Time((last.saturating_sub(first) / slices).max(1)), has_slices);
        }
        let (mut samples, ends) = {
            let count = session.index.count(kind::SAMPLE);
            let teller = Teller::new(&self.board, "reading samples");
            let machine = session.reader.features().arch.as_deref().unwrap_or(std::env::consts::ARCH);
            let unwinding = Unwinding::new(&session.history, symbols, machine, self.plan.max_stack);
            let samples =
                samples::collect(session, &wanted, Some(&unwinding), &|more| teller.more(more, count))?;
            (samples, unwinding.ends())
        };
        let _teller = Teller::new(&self.board, "looking up addresses");
        let mut resolved = resolver::resolve(&session.history, &mut samples, self.plan.max_stack);
        if self.plan.changes_stacks() {
            let _teller = Teller::new(&self.board, "finding callers");
            let mut texts = StringTable::default();
            let raw = self.typed.no_demangle;
            let locations = &resolved.locations;
            let code = symbols.name(&session.history, locations, depth, raw, &mut texts, &|_| {});
            change_stacks(&self.plan, &wanted, &mut resolved, &mut samples, &code, &texts);
        }
        let sources = sources(session, &samples);
        let ground = Ground {
            session: session.clone(),
            samples,
            resolved,
            attributes: wanted.attributes,
            ends,
            sources,
        };
        Ok(Arc::new(ground))
    }

    fn stage(
        &self,
        ground: &Arc<Ground>,
        symbols: &mut Symbols,
        depth: Depth,
        has_chains: bool,
        progress: &(dyn Fn(crate::symbol::Progress) + Sync),
    ) -> Stage {
        let session = &ground.session;
        let mut texts = StringTable::default();
        let locations = &ground.resolved.locations;
        let raw = self.typed.no_demangle;
        let code = symbols.name(&session.history, locations, depth, raw, &mut texts, progress);
        let mut stage = Stage {
            ground: ground.clone(),
            code: Arc::new(code),
            texts,
            modules: Vec::new(),
            trust: crate::profile::sampled::Trust::default(),
        };
        let names = Names::new(session);
        let quality = stage.with(&names, |input| trust::quality(input, &stage.texts));
        stage.modules = modules(session, symbols, &quality);
        if depth == Depth::Inlines {
            add_remedies(&mut stage.modules, session, symbols);
        }
        stage.trust = trust_of(session, &ground.samples, &quality, ground.ends.clone(), has_chains);
        stage
    }

    /// Fetches the code of functions until nobody asks any more.
    fn annotate(
        &self,
        ground: &Ground,
        symbols: &mut Symbols,
        mut all: Option<Vec<Sampled>>,
        functions: &Receiver<FunctionRef>,
    ) {
        while let Some(function) = latest(functions) {
            let _teller = Teller::new(&self.board, "reading code");
            let all = all.get_or_insert_with(|| sampled(ground, symbols));
            let listing = self.listing(ground, symbols, all, &function);
            self.board.put(|poll| poll.listing = Some((function, listing)));
        }
    }

    /// Finds the function that the screen begins with; hands on all functions.
    fn open(&self, ground: &Ground, symbols: &mut Symbols, opening: &Opening) -> Result<Vec<Sampled>> {
        let _teller = Teller::new(&self.board, "reading code");
        let all = sampled(ground, symbols);
        let listing = match choose(opening.name.as_deref(), &opening.dsos, &all)?.first() {
            Some(found) => Ok(self.listed(ground, symbols, found)),
            None if all.is_empty() => Err("no sample is in a function whose name is known".to_owned()),
            None => {
                Err(format!("no sample is in a function of {}", crate::text::clean(&opening.dsos.join(", "))))
            }
        };
        self.board.put(|poll| poll.listing = Some((opening.function(), listing)));
        Ok(all)
    }

    fn listing(
        &self,
        ground: &Ground,
        symbols: &mut Symbols,
        all: &[Sampled],
        function: &FunctionRef,
    ) -> std::result::Result<Arc<Listing>, String> {
        let is_it = |of: &&Sampled| of.name == function.symbol || of.raw == function.symbol;
        let in_dso = |of: &&Sampled| of.dso == function.dso || function.dso.is_empty();
        let found = all.iter().find(|of| is_it(of) && in_dso(of)).or_else(|| all.iter().find(is_it));
        let Some(found) = found else {
            return Err(format!(
                "no sample was taken in {} itself: there is nothing to weigh its code by\n(an inlined function's code is in the function that it is inlined into)",
                crate::text::clean(&function.symbol)
            ));
        };
        Ok(self.listed(ground, symbols, found))
    }

    fn listed(&self, ground: &Ground, symbols: &mut Symbols, found: &Sampled) -> Arc<Listing> {
        let events = listing::events(ground.session.reader.events(), &ground.samples.totals);
        let usual = || How {
            syntax: Syntax::Att,
            with_source: true,
            symfs: self.typed.symbol_files.symfs.clone(),
            ..How::default()
        };
        let how = self.opening.as_ref().map_or_else(usual, |opening| opening.how.clone());
        Arc::new(listing::listing(symbols, found, &events, &how))
    }
}

/// The functions that samples hit.
fn sampled(ground: &Ground, symbols: &mut Symbols) -> Vec<Sampled> {
    let events = ground.samples.totals.len();
    functions::functions(ground.session.history.modules(), symbols, &ground.resolved, events, &|_| {})
}

fn has_chains(session: &Session) -> bool {
    session.reader.layouts().iter().any(|layout| layout.sample_type() & sample_type::CALLCHAIN != 0)
}

/// First and last time of samples: what the header says, or else what the first and last chunks hold.
fn span(session: &Session) -> Option<(u64, u64)> {
    if !session.has_time {
        return None;
    }
    if let Some(span) = &session.reader.features().sample_time
        && span.first < span.last
    {
        return Some((span.first, span.last));
    }
    let chunks = session.index.chunks.iter().filter(|chunk| chunk.samples > 0);
    let ends: Vec<_> = chunks.clone().take(1).chain(chunks.clone().next_back()).collect();
    let mut buffer = Buffer::default();
    let mut span: Option<(u64, u64)> = None;
    for chunk in ends {
        for raw in session.reader.load(chunk, &mut buffer).ok()? {
            let sample = (raw.kind == kind::SAMPLE).then(|| session.reader.layouts().sample(&raw)).flatten();
            if let Some(time) = sample.and_then(|(_, sample)| sample.time()) {
                let (first, last) = span.unwrap_or((time.0, time.0));
                span = Some((first.min(time.0), last.max(time.0)));
            }
        }
    }
    span
}
