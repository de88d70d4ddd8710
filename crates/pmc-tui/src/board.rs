//! The connection between the screen and an engine: the board for answers, and the thread that runs the
//! screen's jobs.
//!
//! ```text
//!    screen ── EngineHandle ── Job ──> serve: the engine's job thread
//!      ^                                        |        engine's other threads
//!      '── wake ── Board: updates <────── put ──'────────────────'
//! ```
//! Of the waiting jobs, only the last query, the last function history and the last function code are run.
//! The engine decides how to answer.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::engine::{Engine, EngineStatus, EngineUpdates, LiveCommand, ViewFormat, Waker};
use pmc_analysis::profile::sampled::{FunctionRef, Query};
use pmc_sys::error::Error;

/// A job from the screen for the engine.
#[derive(Debug)]
pub enum Job {
    /// Switch to this query and answer it.
    Answer(Box<Query>),
    /// Answer the last query again, because the engine has more data.
    Refresh,
    /// Get the history of a function's own periods.
    History(FunctionRef),
    /// Get a function's code, with the cost of each line.
    Code(FunctionRef),
    /// Export the view of the last query to this file.
    Export(ViewFormat, PathBuf),
    /// Run a command that only live engines support.
    Command(LiveCommand),
}

/// Holds the engine's updates until the screen takes them.
#[derive(Debug)]
pub struct Board {
    news: Mutex<BoardUpdates>,
    waker: Waker,
}

#[derive(Debug, Default)]
struct BoardUpdates {
    poll: EngineUpdates,
    /// The latest information to show in the header.
    status: EngineStatus,
}

impl Board {
    /// Returns a board with this initial header information.
    pub fn new(waker: Waker, status: EngineStatus) -> Arc<Self> {
        let poll = EngineUpdates { status: Some(status.clone()), ..EngineUpdates::default() };
        Arc::new(Self { news: Mutex::new(BoardUpdates { poll, status }), waker })
    }

    fn lock(&self) -> MutexGuard<'_, BoardUpdates> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an update and wakes the screen.
    pub fn put(&self, put: impl FnOnce(&mut EngineUpdates)) {
        put(&mut self.lock().poll);
        self.waker.wake();
    }

    /// Changes the header information and wakes the screen.
    pub fn status(&self, change: impl FnOnce(&mut EngineStatus)) {
        let mut news = self.lock();
        change(&mut news.status);
        news.poll.status = Some(news.status.clone());
        drop(news);
        self.waker.wake();
    }

    /// Ends the screen because the engine cannot continue.
    pub fn fail(&self, error: Error) {
        self.put(|poll| poll.failed = Some(error));
    }

    /// Ends the screen because the engine's time limit has been reached.
    pub fn end(&self) {
        self.waker.end();
    }

    /// Returns all updates since the last call.
    pub(super) fn take(&self) -> EngineUpdates {
        std::mem::take(&mut self.lock().poll)
    }
}

/// The screen's end of the connection. The engine's job thread exits when the handle and all clones of its
/// sender have been dropped.
#[derive(Debug)]
pub struct EngineHandle {
    pub(super) board: Arc<Board>,
    jobs: Sender<Job>,
}

impl EngineHandle {
    /// Returns a handle, and the job receiver to pass to [`serve`].
    pub fn new(board: Arc<Board>) -> (Self, Receiver<Job>) {
        let (jobs, receiver) = channel();
        (Self { board, jobs }, receiver)
    }

    /// Returns a job sender, for engine threads that submit jobs themselves.
    pub fn sender(&self) -> Sender<Job> {
        self.jobs.clone()
    }

    pub(super) fn send(&self, job: Job) {
        // Ignore the error: an engine that has exited has already reported this on the board.
        let _ = self.jobs.send(job);
    }
}

/// Runs jobs and the engine's scheduled work until all senders are dropped.
pub fn serve(engine: &mut impl Engine, jobs: &Receiver<Job>, board: &Board) {
    loop {
        let first = match engine.deadline() {
            None => jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(deadline) => jobs.recv_timeout(deadline.saturating_duration_since(Instant::now())),
        };
        match first {
            Ok(first) => carry_out(engine, std::iter::once(first).chain(jobs.try_iter()), board),
            Err(RecvTimeoutError::Timeout) => engine.on_deadline(),
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Waits for a value, and returns the most recently sent one; `None` if all senders have been dropped.
pub fn latest<T>(receiver: &Receiver<T>) -> Option<T> {
    let first = receiver.recv().ok()?;
    Some(receiver.try_iter().last().unwrap_or(first))
}

fn carry_out(engine: &mut impl Engine, jobs: impl Iterator<Item = Job>, board: &Board) {
    let (mut query, mut is_new, mut history, mut code, mut others) = (None, false, None, None, Vec::new());
    for job in jobs {
        match job {
            Job::Answer(last) => (query, is_new) = (Some(*last), true),
            Job::Refresh => is_new = true,
            Job::History(last) => history = Some(last),
            Job::Code(last) => code = Some(last),
            other @ (Job::Export(..) | Job::Command(_)) => others.push(other),
        }
    }
    if let Some(query) = query {
        engine.ask(query);
    }
    if is_new && let Some(answer) = engine.answer() {
        board.put(|poll| poll.answer = Some(answer));
    }
    if let Some(function) = history
        && let Some(periods) = engine.history(&function)
    {
        board.put(|poll| poll.history = Some((function, periods)));
    }
    if let Some(function) = code {
        engine.annotate(function);
    }
    for other in others {
        let said = match other {
            Job::Export(form, path) => Some(match engine.export(form, &path) {
                Ok(()) => format!("{} is written", path.display()),
                Err(error) => error.headline(),
            }),
            Job::Command(command) => engine.command(command),
            _ => None,
        };
        if said.is_some() {
            board.put(|poll| poll.said = said);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Inbox;
    use pmc_analysis::profile::sampled::QueryAnswer;
    use pmc_sys::error::Result;
    use std::path::Path;
    use std::time::Duration;

    #[derive(Default)]
    struct ScriptedEngine {
        done: Vec<String>,
        deadline: Option<Instant>,
    }

    impl Engine for ScriptedEngine {
        fn ask(&mut self, query: Query) {
            self.done.push(format!("ask {:?}", query.event));
        }

        fn answer(&mut self) -> Option<Arc<QueryAnswer>> {
            self.done.push("answer".to_owned());
            None
        }

        fn history(&mut self, function: &FunctionRef) -> Option<Vec<u64>> {
            self.done.push(format!("history {}", function.symbol));
            Some(vec![1, 2])
        }

        fn annotate(&mut self, function: FunctionRef) {
            self.done.push(format!("code {}", function.symbol));
        }

        fn export(&mut self, _: ViewFormat, path: &Path) -> Result<()> {
            if path.ends_with("full") { Err(Error::new("no room")) } else { Ok(()) }
        }

        fn command(&mut self, _: LiveCommand) -> Option<String> {
            None
        }

        fn deadline(&self) -> Option<Instant> {
            self.deadline
        }

        fn on_deadline(&mut self) {
            self.done.push("look".to_owned());
            self.deadline = None;
        }
    }

    fn function(symbol: &str) -> FunctionRef {
        FunctionRef { dso: String::new(), symbol: symbol.to_owned() }
    }

    fn query(event: usize) -> Job {
        Job::Answer(Box::new(Query { event: Some(event), ..Query::default() }))
    }

    #[test]
    fn only_the_last_pending_request_runs() {
        let inbox = Inbox::default();
        let board = Board::new(inbox.waker(), EngineStatus::default());
        let (handle, jobs) = EngineHandle::new(board.clone());
        for job in [
            Job::History(function("a")),
            query(0),
            Job::Code(function("c")),
            query(1),
            Job::Refresh,
            Job::History(function("b")),
            Job::Export(ViewFormat::PerfData, PathBuf::from("full")),
        ] {
            handle.send(job);
        }
        drop(handle);
        let mut engine = ScriptedEngine::default();
        serve(&mut engine, &jobs, &board);
        assert_eq!(engine.done, ["ask Some(1)", "answer", "history b", "code c"]);
        let poll = board.take();
        assert_eq!(poll.history, Some((function("b"), vec![1, 2])));
        assert_eq!(poll.said.as_deref(), Some("no room"));
        assert!(poll.status.is_some() && board.take().status.is_none(), "what was taken is not new");
    }

    #[test]
    fn deadline_fires_without_requests() {
        let board = Board::new(Inbox::default().waker(), EngineStatus::default());
        let (handle, jobs) = EngineHandle::new(board.clone());
        let mut engine = ScriptedEngine {
            deadline: Some(Instant::now() + Duration::from_millis(5)),
            ..ScriptedEngine::default()
        };
        let asking = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            drop(handle);
        });
        serve(&mut engine, &jobs, &board);
        asking.join().unwrap();
        assert_eq!(engine.done, ["look"]);
    }

    #[test]
    fn header_update_keeps_other_fields() {
        let board = Board::new(
            Inbox::default().waker(),
            EngineStatus { title: "a".to_owned(), ..EngineStatus::default() },
        );
        board.take();
        board.status(|status| status.lost = 3);
        let status = board.take().status.unwrap();
        assert_eq!((status.title.as_str(), status.lost), ("a", 3));
    }
}
