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

use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::plan::Plan;
use crate::abi::sample_type;
use crate::analysis::annotate::listing::How;
use crate::cli::report::Report;
use crate::command::screen;
use crate::error::{Error, Exit, Result};
use crate::perfdata::Reader;
use crate::profile::sampled::Query;
use crate::tui::{Engine, ExportForm, Inbox, LiveCommand, Poll, Spot, Status, Waker};
use answers::Job;
use loader::Loader;

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
    fn spot(&self) -> Spot {
        Spot { dso: String::new(), symbol: self.name.clone().unwrap_or_default() }
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
    let board = Arc::new(Board::new(&plan, opening.as_ref(), inbox.waker()));
    let (answers, jobs) = channel();
    let (code, spots) = channel();
    let layout = plan.layout.clone();
    {
        let board = board.clone();
        std::thread::spawn(move || answers::run(&jobs, &board, &layout));
    }
    let (typed, answers_too) = (typed.clone(), answers.clone());
    let loader = Loader { typed, plan, answers: answers_too, board: board.clone(), opening };
    std::thread::spawn(move || loader.run(reader, &spots));
    let mut engine = Recording { board: board.clone(), answers, code };
    let exit = screen::show(&mut engine, inbox, first);
    match board.lock().error.take() {
        Some(error) => Err(error),
        None => exit,
    }
}

/// Where the threads put what is new, for the screen to take.
pub(super) struct Board {
    news: Mutex<News>,
    waker: Waker,
}

#[derive(Default)]
struct News {
    poll: Poll,
    status: Status,
    /// Why the recording cannot be read, in full.
    error: Option<Error>,
}

impl Board {
    fn new(plan: &Plan, opening: Option<&Opening>, waker: Waker) -> Self {
        let name = plan.input.file_name().unwrap_or(plan.input.as_os_str());
        let status = Status { title: name.to_string_lossy().into_owned(), ..Status::default() };
        let opens = opening.map(Opening::spot);
        let poll = Poll { status: Some(status.clone()), opens, ..Poll::default() };
        let news = News { poll, status, error: None };
        Self { news: Mutex::new(news), waker }
    }

    fn lock(&self) -> MutexGuard<'_, News> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts something there and wakes the screen.
    fn put(&self, put: impl FnOnce(&mut Poll)) {
        put(&mut self.lock().poll);
        self.waker.wake();
    }

    /// Changes the header's facts.
    fn status(&self, change: impl FnOnce(&mut Status)) {
        let mut news = self.lock();
        change(&mut news.status);
        news.poll.status = Some(news.status.clone());
        drop(news);
        self.waker.wake();
    }

    /// Ends the screen.
    fn fail(&self, error: Error) {
        let mut news = self.lock();
        news.poll.failed = Some(error.to_string());
        news.error = Some(error);
        drop(news);
        self.waker.wake();
    }
}

/// The engine: hands questions to the threads.
struct Recording {
    board: Arc<Board>,
    answers: Sender<Job>,
    code: Sender<Spot>,
}

impl Engine for Recording {
    fn poll(&mut self) -> Poll {
        std::mem::take(&mut self.board.lock().poll)
    }

    fn ask(&mut self, query: &Query) {
        let _ = self.answers.send(Job::Answer(Box::new(query.clone())));
    }

    fn annotate(&mut self, spot: &Spot) {
        let _ = self.code.send(spot.clone());
    }

    fn history(&mut self, spot: &Spot) {
        let _ = self.answers.send(Job::History(spot.clone()));
    }

    fn export(&mut self, form: ExportForm, path: PathBuf) {
        let _ = self.answers.send(Job::Export(form, path));
    }

    fn command(&mut self, _: LiveCommand) -> std::result::Result<(), String> {
        Err("this is a recording: nothing comes in that could be stopped or forgotten".to_owned())
    }
}
