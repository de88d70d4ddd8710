//! `pmc report` on a terminal: a recording as the screen's engine.
//!
//! ```text
//!   loader thread     file ─> samples ─> names ─stage─> inlines ─stage─> remedies ─stage─> then the code of functions
//!                                          │               │
//!   answers thread    queries ─────────────┴───────────────┴──> answers, histories, exports
//!                                                                  │
//!   screen            ask … <──────────── what is new ─────────────'
//! ```
//! The screen opens at once. The loader makes each [`Stage`](stage::Stage) a whole profile can be made of, each knowing more
//! than the one before; the answers thread answers from the newest.

mod answers;
mod loader;
mod stage;

use std::sync::mpsc::channel;

use super::plan::Plan;
use crate::abi::sample_type;
use crate::analysis::annotate::listing::How;
use crate::cli::report::Report;
use crate::command::screen;
use crate::error::{Exit, Result};
use crate::perfdata::Reader;
use crate::profile::sampled::Query;
use crate::tui::board::serve;
use crate::tui::{Board, EngineHandle, FunctionRef, Inbox, Status};
use answers::Answers;
use loader::Loader;
use stage::Newest;

/// The smallest branch of the tree on the screen: a part of the event's periods.
const BRANCH: f64 = 0.0002;

/// The function whose code the screen begins with, and how code is shown.
#[derive(Debug, Clone)]
pub(in crate::command) struct Opening {
    /// Its name as it was typed; `None`: the costliest.
    pub(in crate::command) name: Option<String>,
    /// Only functions of these modules; empty: of all.
    pub(in crate::command) dsos: Vec<String>,
    /// How code is shown.
    pub(in crate::command) how: How,
}

impl Opening {
    /// What the screen calls the function until it is found.
    fn function(&self) -> FunctionRef {
        FunctionRef { dso: String::new(), symbol: self.name.clone().unwrap_or_default() }
    }
}

/// Opens a recording with what `pmc report` would take, and shows the code of a function of it first.
///
/// # Errors
/// When something typed means nothing, the recording cannot be read, or it has no such function.
pub(in crate::command) fn code(typed: &Report, reader: Reader, opening: Opening) -> Result<Exit> {
    let mut plan = Plan::new(typed)?;
    plan.symbols.live = crate::analysis::is_from_here(&reader);
    plan.settle(reader.events())?;
    run(typed, plan, reader, Some(opening))
}

/// Shows a recording on the terminal.
///
/// # Errors
/// When the recording cannot be read.
pub(super) fn run(typed: &Report, plan: Plan, reader: Reader, opening: Option<Opening>) -> Result<Exit> {
    let has_chains = plan.takes_chains()
        && reader.layouts().iter().any(|layout| layout.sample_type() & sample_type::CALLCHAIN != 0);
    let first = Query {
        event: Some(0),
        limit: BRANCH,
        // Its order; the screen asks for a tree when it shows one.
        tree: plan.query(true).tree,
        ..plan.query(has_chains)
    };
    let inbox = Inbox::default();
    screen::catch_signals(inbox.waker())?;
    let name = plan.input.file_name().unwrap_or(plan.input.as_os_str());
    let status = Status { title: name.to_string_lossy().into_owned(), ..Status::default() };
    let board = Board::new(inbox.waker(), status);
    board.put(|poll| poll.opens = opening.as_ref().map(Opening::function));
    let (engine, jobs) = EngineHandle::new(board.clone());
    let stage = Newest::default();
    let (code, functions) = channel();
    let mut answers = Answers::new(stage.clone(), code, plan.layout.clone());
    {
        let board = board.clone();
        std::thread::spawn(move || serve(&mut answers, &jobs, &board));
    }
    let loader = Loader { typed: typed.clone(), plan, stage, answers: engine.sender(), board, opening };
    std::thread::spawn(move || loader.run(reader, &functions));
    screen::show(&engine, inbox, first)
}
