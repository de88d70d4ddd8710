//! The thread that loads the recording: first samples, then names, then inlined functions, and finally the
//! code of functions.
//!
//! Publishes each stage as soon as it is complete, and reports progress to the board. This thread owns the
//! symbolizer (in the [`Analysis`]), so it also fetches the code of functions.

use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{ScreenPlan, function_of};
use pmc_analysis::analysis::annotate::AnnotationRequest;
use pmc_analysis::analysis::annotate::listing::ListingOptions;
use pmc_analysis::analysis::{Analysis, NamedSamples, ProgressMeter, ProgressSink, recording_quality};
use pmc_analysis::profile::annotate::Listing;
use pmc_analysis::profile::sampled::{FunctionRef, StringTable};
use pmc_analysis::session::Session;
use pmc_perfdata::perfdata::Reader;
use pmc_symbols::symbol::Depth;
use pmc_symbols::symbol::source_text::SourceFolders;
use pmc_sys::error::Result;
use pmc_text::text::clean;
use pmc_tui::Board;
use pmc_tui::board::{Job, latest};
use pmc_tui::engine::JobProgress;

/// Minimum interval between progress reports.
const PROGRESS: Duration = Duration::from_millis(100);

/// The newest stage, shared with the thread that answers queries.
#[derive(Debug, Clone, Default)]
pub(super) struct NewestStage(Arc<Mutex<Option<Arc<NamedSamples>>>>);

impl NewestStage {
    pub(super) fn get(&self) -> Option<Arc<NamedSamples>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, stage: NamedSamples) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(stage));
    }
}

/// Inputs of the loader thread.
pub(super) struct Loader {
    pub plan: ScreenPlan,
    pub newest: NewestStage,
    pub jobs: Sender<Job>,
    pub board: Arc<Board>,
}

impl Loader {
    /// Loads everything, then fetches the code of requested functions.
    pub(super) fn run(self, reader: Reader, functions: &Receiver<FunctionRef>) {
        if let Err(error) = self.load(reader, functions) {
            self.board.fail(error);
        }
    }

    fn load(&self, reader: Reader, functions: &Receiver<FunctionRef>) -> Result<()> {
        let ScreenPlan { request, depth, opening, .. } = &self.plan;
        let progress = BoardProgress(&self.board);
        let session = {
            let _meter = progress.begin("reading the recording", 0);
            Arc::new(Session::open(reader)?)
        };
        self.board.status(|status| {
            status.lost = recording_quality::lost(&session);
            status.notes = recording_quality::notes(&session);
        });
        // Contact the debuginfod servers only after the first results are on the screen, because downloads
        // take time.
        let mut request = request.clone();
        let servers = request.symbols.debuginfod.take();
        let mut analysis = Analysis::load(session, &request, &progress)?;
        // Some sort keys require lines and inlined functions from the start. Otherwise, these are resolved
        // after the names.
        let first = if request.needs_deep_names() { *depth } else { Depth::Names };
        self.stage(&mut analysis, first);
        let open = |analysis: &mut Analysis| -> Result<()> {
            let Some(opening) = opening else { return Ok(()) };
            let _meter = progress.begin("reading code", 0);
            let listing = first_listing(analysis, opening)?;
            self.board.put(|poll| poll.listing = Some((function_of(opening), listing)));
            Ok(())
        };
        open(&mut analysis)?;
        if first != *depth {
            self.stage(&mut analysis, *depth);
        }
        if let Some(servers) = servers
            && analysis.ask_servers(servers, &progress)
        {
            self.stage(&mut analysis, *depth);
            open(&mut analysis)?;
        }
        let usual = ListingOptions {
            with_source: true,
            folders: SourceFolders { symfs: request.symbols.symfs.clone(), ..SourceFolders::default() },
            raw_names: request.name_style.raw,
            ..ListingOptions::default()
        };
        let options = opening.as_ref().map_or(usual, |opening| opening.options.clone());
        while let Some(function) = latest(functions) {
            let _meter = progress.begin("reading code", 0);
            let listing = analysis.listing((&function.dso, &function.symbol), &options, &());
            self.board.put(|poll| poll.listing = Some((function, listing.map(Arc::new))));
        }
        Ok(())
    }

    /// Resolves names at this level of detail, then has the current query answered again.
    fn stage(&self, analysis: &mut Analysis, depth: Depth) {
        let mut named = analysis.name(depth, StringTable::default(), &BoardProgress(&self.board));
        analysis.assess(&mut named, depth == Depth::Inlines);
        self.newest.set(named);
        let _ = self.jobs.send(Job::Refresh);
    }
}

/// Returns the code that the screen shows first, or the reason why it is not available.
fn first_listing(
    analysis: &mut Analysis,
    opening: &AnnotationRequest,
) -> Result<std::result::Result<Arc<Listing>, String>> {
    let mut code = analysis.annotate(opening, &())?;
    Ok(match code.listings.pop() {
        Some(listing) => Ok(Arc::new(listing)),
        None if code.functions == 0 => Err("no samples in functions with a known name".to_owned()),
        None => Err(format!("no samples in functions of {}", clean(&opening.dsos.join(", ")))),
    })
}

/// Reports progress to the board, at most once per [`PROGRESS`].
struct BoardProgress<'a>(&'a Board);

struct BoardMeter<'a> {
    board: &'a Board,
    what: &'static str,
    total: u64,
    state: Mutex<(Instant, u64)>,
}

impl ProgressSink for BoardProgress<'_> {
    fn begin(&self, what: &'static str, total: u64) -> Box<dyn ProgressMeter + '_> {
        let board = self.0;
        board.status(|status| status.progress = Some(JobProgress { what, done: 0, total: 0 }));
        Box::new(BoardMeter { board, what, total, state: Mutex::new((Instant::now(), 0)) })
    }
}

impl BoardMeter<'_> {
    fn show(&self, done: impl FnOnce(u64) -> u64, total: u64) {
        let Ok(mut state) = self.state.lock() else { return };
        state.1 = done(state.1);
        if state.0.elapsed() >= PROGRESS {
            state.0 = Instant::now();
            let done = state.1;
            self.board.status(|status| status.progress = Some(JobProgress { what: self.what, done, total }));
        }
    }
}

impl ProgressMeter for BoardMeter<'_> {
    fn more(&self, count: u64) {
        self.show(|done| done + count, self.total);
    }

    fn at(&self, done: u64, total: u64) {
        self.show(|_| done, total);
    }
}

impl Drop for BoardMeter<'_> {
    fn drop(&mut self) {
        self.board.status(|status| status.progress = None);
    }
}
