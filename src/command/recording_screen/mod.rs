//! The screen of a recording, for whichever command shows one: `report` its tables, `annotate` the code of a
//! function.
//!
//! ```text
//!   loader thread     file ─> samples ─> names ─stage─> inlines ─stage─> then the code of functions
//!                                          │               │
//!   job thread        questions ───────────┴───────────────┴──> answers, histories, exports
//!                                                                  │
//!   screen            ask … <──────────── what is new ─────────────'
//! ```
//! The screen opens at once. With each stage of [`NamedSamples`] whole questions can be answered, each stage
//! knowing more than the one before; the job thread answers from the newest. What a stage is made of is left
//! to `analysis`.
//!
//! [`NamedSamples`]: crate::analysis::NamedSamples

mod engine;
mod loader;

use std::path::Path;
use std::sync::mpsc::channel;

use super::screen;
use crate::analysis::AnalysisRequest;
use crate::analysis::annotate::AnnotationRequest;
use crate::error::{Exit, Result};
use crate::perfdata::Reader;
use crate::profile::sampled::{FunctionRef, Order, Query};
use crate::symbol::Depth;
use crate::terminal::theme::Background;
use crate::tui::board::serve;
use crate::tui::{Board, EngineHandle, Inbox, Status};
use crate::view::report::Layout;
use engine::RecordingEngine;
use loader::{Loader, Newest};

/// The smallest branch of the tree on the screen: a part of the event's periods.
const BRANCH: f64 = 0.0002;

/// What the screen begins with.
#[derive(Debug)]
pub(super) struct ScreenPlan {
    pub(super) title: String,
    pub(super) request: AnalysisRequest,
    /// The first question, whose keys are the request's.
    pub(super) query: Query,
    /// How deep names go in the end.
    pub(super) depth: Depth,
    /// How what is written to a file is shown.
    pub(super) layout: Layout,
    /// The terminal's background, where somebody said what it is.
    pub(super) background: Option<Background>,
    /// The code of a function comes first.
    pub(super) opening: Option<AnnotationRequest>,
}

impl ScreenPlan {
    /// As the screen is by default.
    pub(super) fn new(input: &Path, request: AnalysisRequest) -> Self {
        let name = input.file_name().unwrap_or(input.as_os_str());
        Self {
            title: name.to_string_lossy().into_owned(),
            request,
            query: Query { totals: true, innermost: true, tree: Some(Order::Caller), ..Query::default() },
            depth: Depth::Inlines,
            layout: Layout::default(),
            background: None,
            opening: None,
        }
    }

    /// The question that the screen asks first, of a recording that the request was settled with.
    fn first(&self, reader: &Reader) -> Query {
        let question = self.request.question(&self.query, reader);
        // Its order; the screen asks for a tree when it shows one.
        let tree = self.query.tree.filter(|_| !self.request.counts_branches());
        let row_limit = self.layout.row_limit / 100.0;
        Query { event: Some(0), limit: BRANCH, row_limit, tree, ..question }
    }
}

/// Shows a recording on the terminal.
///
/// # Errors
/// When the recording cannot be read, has no branches though they were asked for, or no function to begin
/// with.
pub(super) fn run(mut plan: ScreenPlan, reader: Reader) -> Result<Exit> {
    plan.request.facets = true;
    plan.request.settle(&reader)?;
    let first = plan.first(&reader);
    let inbox = Inbox::default();
    screen::catch_signals(inbox.waker())?;
    let board = Board::new(inbox.waker(), Status { title: plan.title.clone(), ..Status::default() });
    // What the screen calls the function until it is found.
    board.put(|poll| poll.opens = plan.opening.as_ref().map(function_of));
    let (handle, jobs) = EngineHandle::new(board.clone());
    let newest = Newest::default();
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
