//! The screen of a recording. `report` uses it to show tables, and `annotate` to show a function's code.
//!
//! ```text
//!   loader thread     file ─> samples ─> names ─stage─> inlines ─stage─> then the code of functions
//!                                          │               │
//!   job thread        questions ───────────┴───────────────┴──> answers, histories, exports
//!                                                                  │
//!   screen            ask … <──────────── what is new ─────────────'
//! ```
//! The screen opens immediately. Each stage of [`NamedSamples`] can answer any query, with more detail
//! than the previous stage. The job thread answers from the newest stage. `analysis` defines the
//! contents of the stages.
//!
//! [`NamedSamples`]: pmc_analysis::analysis::NamedSamples

mod engine;
mod loader;

use std::path::Path;
use std::sync::mpsc::channel;

use super::screen;
use crate::tui::board::serve;
use crate::tui::{Board, EngineHandle, EngineStatus, Inbox};
use crate::view::report::ReportLayout;
use engine::RecordingEngine;
use loader::{Loader, NewestStage};
use pmc_analysis::analysis::AnalysisRequest;
use pmc_analysis::analysis::annotate::AnnotationRequest;
use pmc_analysis::profile::sampled::{FunctionRef, Query, StackDirection};
use pmc_perfdata::perfdata::Reader;
use pmc_symbols::symbol::Depth;
use pmc_sys::error::{Exit, Result};
use pmc_sys::terminal::theme::Background;

/// Size of the smallest branch in the tree on the screen, as a fraction of the event's total period.
const BRANCH: f64 = 0.0002;

/// Initial state of the screen.
#[derive(Debug)]
pub(super) struct ScreenPlan {
    pub(super) title: String,
    pub(super) request: AnalysisRequest,
    /// The first query. It uses the request's sort keys.
    pub(super) query: Query,
    /// Final level of detail of names.
    pub(super) depth: Depth,
    /// Layout of exported files.
    pub(super) layout: ReportLayout,
    /// The terminal's background, if specified.
    pub(super) background: Option<Background>,
    /// The function whose code is shown first, if any.
    pub(super) opening: Option<AnnotationRequest>,
}

impl ScreenPlan {
    /// Returns the default plan.
    pub(super) fn new(input: &Path, request: AnalysisRequest) -> Self {
        let name = input.file_name().unwrap_or(input.as_os_str());
        Self {
            title: name.to_string_lossy().into_owned(),
            request,
            query: Query {
                totals: true,
                innermost: true,
                tree: Some(StackDirection::Caller),
                ..Query::default()
            },
            depth: Depth::Inlines,
            layout: ReportLayout::default(),
            background: None,
            opening: None,
        }
    }

    /// Returns the first query for a recording, once the request is resolved.
    fn first(&self, reader: &Reader) -> Query {
        let question = self.request.question(&self.query, reader);
        // Keeps the direction of the tree. The screen requests a tree only when it shows one.
        let tree = self.query.tree.filter(|_| !self.request.counts_branches());
        let row_limit = self.layout.row_limit / 100.0;
        Query { event: Some(0), limit: BRANCH, row_limit, tree, ..question }
    }
}

/// Shows a recording on the terminal.
///
/// # Errors
/// The recording cannot be read, lacks the requested branches, or lacks the function to start with.
pub(super) fn run(mut plan: ScreenPlan, reader: Reader) -> Result<Exit> {
    plan.request.facets = true;
    plan.request.resolve(&reader)?;
    let first = plan.first(&reader);
    let inbox = Inbox::default();
    screen::catch_signals(inbox.waker())?;
    let board =
        Board::new(inbox.waker(), EngineStatus { title: plan.title.clone(), ..EngineStatus::default() });
    // The name that the screen shows until the function is found.
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
