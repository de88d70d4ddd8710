//! The full-screen interface for a recording. `report` opens it with a table, `annotate` with a function's
//! code.
//!
//! ```text
//!   loader thread     file ─> samples ─> names ─stage─> inlines ─stage─> then the code of functions
//!                                          │               │
//!   job thread        questions ───────────┴───────────────┴──> answers, histories, exports
//!                                                                  │
//!   screen            ask … <──────────── the changes ─────────────'
//! ```
//! The screen opens immediately. Each stage of [`NamedSamples`] can answer any query, in more detail than the
//! previous stage. The job thread uses the newest stage. `analysis` defines the contents of each stage.
//!
//! [`NamedSamples`]: pmc_analysis::analysis::NamedSamples

mod engine;
mod loader;

use std::path::Path;
use std::sync::mpsc::channel;

use super::screen;
use engine::RecordingEngine;
use loader::{Loader, NewestStage};
use pmc_analysis::analysis::AnalysisRequest;
use pmc_analysis::analysis::annotate::AnnotationRequest;
use pmc_analysis::profile::sampled::{FunctionRef, Query, StackDirection};
use pmc_perfdata::perfdata::Reader;
use pmc_symbols::symbol::Depth;
use pmc_sys::error::{Exit, Result};
use pmc_text::terminal::theme::Background;
use pmc_tui::board::serve;
use pmc_tui::{Board, EngineHandle, EngineStatus, Inbox};
use pmc_view::report::ReportLayout;

/// Minimum size of a branch in the tree on the screen, as a fraction of the event's total period.
const BRANCH: f64 = 0.0002;

/// Initial state of the screen.
#[derive(Debug)]
pub struct ScreenPlan {
    pub title: String,
    pub request: AnalysisRequest,
    /// The first query, with the sort keys of the request.
    pub query: Query,
    /// Final level of detail for names.
    pub depth: Depth,
    /// Layout of exported files.
    pub layout: ReportLayout,
    /// The terminal's background, if specified.
    pub background: Option<Background>,
    /// The function whose code is shown first, if any.
    pub opening: Option<AnnotationRequest>,
}

impl ScreenPlan {
    /// Returns the default plan.
    pub fn new(input: &Path, request: AnalysisRequest) -> Self {
        let name = input.file_name().unwrap_or(input.as_os_str());
        Self {
            title: name.to_string_lossy().into_owned(),
            request,
            query: Query {
                totals: true,
                innermost: true,
                states_apart: true,
                tree: Some(StackDirection::Caller),
                ..Query::default()
            },
            depth: Depth::Inlines,
            layout: ReportLayout::default(),
            background: None,
            opening: None,
        }
    }

    /// Returns the first query for a recording. The request must be resolved first.
    fn first(&self, reader: &Reader) -> Query {
        let question = self.request.full_query(&self.query, reader);
        // Keep only the direction of the tree, because the screen requests a tree when it shows one.
        let tree = self.query.tree.filter(|_| !self.request.counts_branches());
        let row_limit = self.layout.row_limit / 100.0;
        Query { event: Some(0), limit: BRANCH, row_limit, tree, ..question }
    }
}

/// Shows a recording on the terminal.
///
/// # Errors
/// Fails if the recording cannot be read, lacks the requested branches, or has no samples in the function to
/// show first.
pub fn run(mut plan: ScreenPlan, reader: Reader) -> Result<Exit> {
    plan.request.facets = true;
    // The waits of idle threads must remain available, so hide them in the query instead of the request.
    plan.query.idle = std::mem::take(&mut plan.request.idle);
    plan.request.resolve(&reader)?;
    let first = plan.first(&reader);
    let inbox = Inbox::default();
    screen::catch_signals(inbox.waker())?;
    let board =
        Board::new(inbox.waker(), EngineStatus { title: plan.title.clone(), ..EngineStatus::default() });
    // The screen shows the function's name until the function is found.
    board.put(|poll| poll.opens = plan.opening.as_ref().map(function_of));
    let (handle, jobs) = EngineHandle::new(board.clone());
    let newest = NewestStage::default();
    let (code, functions) = channel();
    let mut engine = RecordingEngine::new(newest.clone(), code, plan.layout.clone(), plan.title.clone());
    {
        let board = board.clone();
        std::thread::spawn(move || serve(&mut engine, &jobs, &board));
    }
    let background = plan.background;
    let loader = Loader { plan, newest, jobs: handle.sender(), board };
    std::thread::spawn(move || loader.run(reader, &functions));
    screen::show(&handle, inbox, first, background)
}

fn function_of(opening: &AnnotationRequest) -> FunctionRef {
    FunctionRef { dso: String::new(), symbol: opening.function.clone().unwrap_or_default() }
}
