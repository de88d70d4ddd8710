//! `pmc top` on a terminal: the live engine of the screen.
//!
//! ```text
//!   sampler, names (threads)      Live, Named
//!   painter thread                at each refresh, and at each question: picture ─► answer, history ─┐
//!   code thread                   a function's samples ─► its listing ───────────────────────────────┤
//!   screen                        ask … <─────────────────────────────── what is new ────────────────'
//! ```
//! While the screen stands still (frozen) the picture is kept, and questions are answered from it; sampling goes on. Else
//! each question has a picture of its own.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::code::{self, Wanted};
use super::export;
use super::names::{self, EARLY, Known, Wish};
use super::past::Past;
use super::picture::{Painter, Picture};
use super::plan::{Memory, Plan};
use crate::command::screen;
use crate::error::{Error, Exit, Result};
use crate::profile::sampled::Query;
use crate::recording::live::{Sampler, Shared};
use crate::recording::plan::Scope;
use crate::tui::engine::Split;
use crate::tui::{Engine, ExportForm, Inbox, LiveCommand, Poll, Spot, Status, Waker};
use crate::view::top::Head;

/// The first pictures come sooner than the others.
const FIRST: [Duration; 3] =
    [Duration::from_millis(80), Duration::from_millis(170), Duration::from_millis(400)];
/// While the first names are being looked for, they are shown so often.
const NAMES: Duration = Duration::from_millis(400);
/// The shortest and the longest time from one picture to the next.
const DELAYS: (Duration, Duration) = (Duration::from_millis(125), Duration::from_secs(64));
/// The smallest branch of the tree on the screen: a part of the event's periods.
const BRANCH: f64 = 0.001;

/// What the painter thread is to do.
enum Job {
    Answer(Box<Query>),
    History(Spot),
    Code(Spot),
    Export(ExportForm, PathBuf),
    Command(LiveCommand),
    End,
}

/// Shows the screen until it ends.
pub(super) fn run(mut plan: Plan, wish: Wish) -> Result<Exit> {
    plan.tell_threads();
    let plan = Arc::new(plan);
    let inbox = Inbox::default();
    screen::catch_signals(inbox.waker())?;
    let (mut names, known) = names::start(wish.clone())?;
    let sampler = Sampler::start(plan.live(), Box::new(move |live, is_last| names.ask(live, is_last)))?;
    let painter = Painter::new(sampler.shared.clone(), known.clone(), plan.clone());
    let query = painter.query();
    let first = Query { event: Some(0), limit: BRANCH, ..query };
    let board = Arc::new(Board { poll: Mutex::default(), waker: inbox.waker() });
    let (jobs, come) = channel();
    let (wanted, spots) = channel();
    {
        let board = board.clone();
        std::thread::spawn(move || code::run(&spots, wish.options, &board));
    }
    let work = Work {
        shared: sampler.shared.clone(),
        known,
        memory: plan.shown.memory,
        delay: plan.delay,
        painter,
        board: board.clone(),
        code: wanted,
        query: first.clone(),
        picture: None,
        is_frozen: false,
        past: Past::default(),
        title: title(&plan.sample.scope),
        end: plan.duration.map(|duration| Instant::now() + duration),
        head: Head::default(),
    };
    let painting = std::thread::spawn(move || work.run(&come));
    let mut engine = Watching { board, jobs: jobs.clone() };
    let exit = screen::show(&mut engine, inbox, first);
    let _ = jobs.send(Job::End);
    let stopped = sampler.stop();
    let _ = painting.join();
    match exit? {
        // The time was over: see `Work::run`.
        Exit::Interrupted(0) => stopped.map(|()| Exit::Done),
        exit => stopped.map(|()| exit),
    }
}

fn title(scope: &Scope) -> String {
    let list = |ids: &[u32]| ids.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    match scope {
        Scope::Cpus(cpus) => format!("CPUs {cpus}"),
        Scope::Processes(pids) => format!("pid {}", list(pids)),
        Scope::Threads(tids) => format!("tid {}", list(tids)),
        Scope::User(user) => format!("user {user}"),
        Scope::Command | Scope::AllThreads => String::new(),
    }
}

/// Where the threads put what is new, for the screen to take.
pub(super) struct Board {
    poll: Mutex<Poll>,
    waker: Waker,
}

impl Board {
    fn lock(&self) -> MutexGuard<'_, Poll> {
        self.poll.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts something there and wakes the screen.
    pub(super) fn put(&self, put: impl FnOnce(&mut Poll)) {
        put(&mut self.lock());
        self.waker.wake();
    }
}

/// The engine: hands questions to the painter.
struct Watching {
    board: Arc<Board>,
    jobs: Sender<Job>,
}

impl Engine for Watching {
    fn poll(&mut self) -> Poll {
        std::mem::take(&mut self.board.lock())
    }

    fn ask(&mut self, query: &Query) {
        let _ = self.jobs.send(Job::Answer(Box::new(query.clone())));
    }

    fn annotate(&mut self, spot: &Spot) {
        let _ = self.jobs.send(Job::Code(spot.clone()));
    }

    fn history(&mut self, spot: &Spot) {
        let _ = self.jobs.send(Job::History(spot.clone()));
    }

    fn export(&mut self, form: ExportForm, path: PathBuf) {
        let _ = self.jobs.send(Job::Export(form, path));
    }

    fn command(&mut self, command: LiveCommand) -> std::result::Result<(), String> {
        let _ = self.jobs.send(Job::Command(command));
        Ok(())
    }
}

/// The painter thread.
struct Work {
    shared: Arc<Shared>,
    known: Known,
    painter: Painter,
    board: Arc<Board>,
    code: Sender<Wanted>,
    query: Query,
    picture: Option<Picture>,
    memory: Memory,
    delay: Duration,
    is_frozen: bool,
    past: Past,
    title: String,
    end: Option<Instant>,
    head: Head,
}

impl Work {
    fn run(mut self, jobs: &Receiver<Job>) {
        let start = Instant::now();
        let mut first = FIRST.iter().map(|after| start + *after);
        let mut next_turn = start + self.delay;
        let mut next = first.next().unwrap_or(next_turn).min(next_turn);
        loop {
            let until = self.end.map_or(next, |end| end.min(next));
            match jobs.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(job) => {
                    let delay = self.delay;
                    for job in std::iter::once(job).chain(jobs.try_iter()) {
                        if matches!(job, Job::End) {
                            return;
                        }
                        self.take(job);
                    }
                    if self.delay != delay {
                        next_turn = Instant::now() + self.delay;
                        next = next.min(next_turn);
                    }
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let now = Instant::now();
            if self.end.is_some_and(|end| now >= end) {
                // No signal has this number: it stands for the end of our own time.
                self.board.waker.end_by(0);
                self.end = None;
            }
            let turns = now >= next_turn;
            if !self.is_frozen {
                self.look(turns);
            }
            if turns {
                next_turn = Instant::now().max(next_turn + self.delay);
            }
            next = first.next().unwrap_or(next_turn).min(next_turn);
            if self.known.waiting() > 0 && start.elapsed() < EARLY {
                next = next.min(now + NAMES);
            }
        }
    }

    /// Makes a picture and shows it; with `turns` it is the interval's last.
    fn look(&mut self, turns: bool) {
        let last = self.picture.take();
        let is_first = last.is_none();
        let picture = self.painter.picture(last);
        if turns || is_first {
            self.head = self.painter.head(&picture, self.query.event.unwrap_or(0));
        }
        if turns {
            let keep = match self.memory {
                Memory::Fading => super::picture::KEEP,
                Memory::Lasting => 1.0,
                Memory::None => 0.0,
            };
            self.past.note(&picture, self.query.event.unwrap_or(0), keep);
        }
        self.picture = Some(picture);
        self.answer();
        self.let_go();
        if turns {
            self.painter.turn(self.memory);
        }
        self.tell_status();
    }

    /// Has a picture that questions can be answered from, unless it is too early for any.
    fn hold(&mut self) {
        if self.picture.as_ref().is_some_and(Picture::is_let_go) {
            let last = self.picture.take();
            self.picture = Some(self.painter.picture(last));
        }
    }

    fn let_go(&mut self) {
        if let Some(picture) = self.picture.as_mut().filter(|_| !self.is_frozen) {
            picture.let_go();
        }
    }

    fn answer(&mut self) {
        let Some(picture) = &self.picture else { return };
        let answer = Arc::new(self.painter.answer(picture, &self.query));
        self.board.put(|poll| poll.answer = Some(answer));
    }

    fn tell_status(&self) {
        let head = &self.head;
        let mut notes = head.notes.clone();
        if self.shared.is_over() {
            notes.push("nobody is left to be sampled".to_owned());
        }
        let status = Status {
            title: self.title.clone(),
            is_live: true,
            progress: None,
            rate: Some(head.rate),
            lost: head.lost,
            split: head.split.map(|(kernel, user, idle)| Split { kernel, user, idle }),
            own_cpu: Some(head.own_cpu),
            own_memory: Some(head.own_memory),
            frozen: self.is_frozen,
            decays: self.memory == Memory::Fading,
            notes,
        };
        self.board.put(|poll| poll.status = Some(status));
    }

    fn take(&mut self, job: Job) {
        match job {
            Job::Answer(query) => {
                if query.event != self.query.event {
                    self.past = Past::default();
                }
                self.query = *query;
                self.hold();
                self.answer();
                self.let_go();
            }
            Job::History(spot) => {
                let sums =
                    self.picture.as_ref().map(|picture| self.past.of(picture, &spot)).unwrap_or_default();
                self.board.put(|poll| poll.history = Some((spot, sums)));
            }
            Job::Code(spot) => {
                self.hold();
                let Some(picture) = &self.picture else { return };
                let wanted = code::wanted(picture, &self.shared, &self.known, spot);
                let _ = self.code.send(wanted);
                self.let_go();
            }
            Job::Export(form, path) => {
                self.hold();
                let said = match self.export(form, &path) {
                    Ok(()) => format!("{} is written", path.display()),
                    Err(error) => error.headline(),
                };
                self.board.put(|poll| poll.said = Some(said));
                self.let_go();
            }
            Job::Command(command) => self.obey(command),
            Job::End => {}
        }
    }

    fn export(&self, form: ExportForm, path: &std::path::Path) -> Result<()> {
        let picture = self.picture.as_ref().ok_or_else(|| Error::new("there is nothing to write yet"))?;
        export::write(&self.painter, picture, &self.query, form, path)
    }

    fn obey(&mut self, command: LiveCommand) {
        match command {
            LiveCommand::Zero => {
                self.shared.live().zero();
                self.past = Past::default();
                if !self.is_frozen {
                    self.look(false);
                }
            }
            LiveCommand::Freeze => {
                self.is_frozen = !self.is_frozen;
                match self.is_frozen {
                    true => self.hold(),
                    false => self.look(false),
                }
            }
            LiveCommand::Decay => {
                self.memory = if self.memory == Memory::Fading { Memory::Lasting } else { Memory::Fading };
            }
            LiveCommand::Faster(true) => self.delay = (self.delay / 2).max(DELAYS.0),
            LiveCommand::Faster(false) => self.delay = (self.delay * 2).min(DELAYS.1),
        }
        if matches!(command, LiveCommand::Faster(_)) {
            self.shared.set_delay(self.delay);
            let said = format!("a new picture each {:.3} s", self.delay.as_secs_f64());
            self.board.put(|poll| poll.said = Some(said));
        }
        self.tell_status();
    }
}
