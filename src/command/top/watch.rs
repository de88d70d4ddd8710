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

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use super::code::{self, Wanted};
use super::export;
use super::names::{self, EARLY, Known, Wish};
use super::past::Past;
use super::picture::{Painter, Picture};
use super::plan::{Memory, Plan};
use crate::command::screen;
use crate::error::{Error, Exit, Result};
use crate::profile::sampled::{Answer, Query};
use crate::recording::live::Sampler;
use crate::recording::plan::Scope;
use crate::session::live::LiveState;
use crate::tui::board::serve;
use crate::tui::engine::Split;
use crate::tui::{Board, Engine, EngineHandle, ExportForm, FunctionRef, Inbox, LiveCommand, Status};
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

/// Shows the screen until it ends.
pub(super) fn run(mut plan: Plan, wish: Wish) -> Result<Exit> {
    plan.tell_threads();
    let plan = Arc::new(plan);
    let inbox = Inbox::default();
    screen::catch_signals(inbox.waker())?;
    let (mut names, known) = names::start(wish.clone())?;
    let sampler = Sampler::start(plan.live(), Box::new(move |live, is_last| names.ask(live, is_last)))?;
    let painter = Painter::new(sampler.state.clone(), known.clone(), plan.clone());
    let query = painter.query();
    let first = Query { event: Some(0), limit: BRANCH, ..query };
    let status = Status { title: title(&plan.sample.scope), is_live: true, ..Status::default() };
    let board = Board::new(inbox.waker(), status);
    let (engine, jobs) = EngineHandle::new(board.clone());
    let (wanted, functions) = channel();
    {
        let board = board.clone();
        std::thread::spawn(move || code::run(&functions, wish.options, &board));
    }
    let start = Instant::now();
    let mut work = Work {
        shared: sampler.state.clone(),
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
        start,
        first: FIRST.iter(),
        next: start,
        next_turn: start + plan.delay,
        end: plan.duration.map(|duration| start + duration),
        head: Head::default(),
    };
    work.plan_next();
    let painting = std::thread::spawn(move || serve(&mut work, &jobs, &board));
    let exit = screen::show(&engine, inbox, first);
    drop(engine);
    let stopped = sampler.stop();
    let _ = painting.join();
    exit.and_then(|exit| stopped.map(|()| exit))
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

/// The painter thread.
struct Work {
    shared: Arc<LiveState>,
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
    start: Instant,
    /// The first pictures that are still to come.
    first: std::slice::Iter<'static, Duration>,
    /// When the next picture is due, …
    next: Instant,
    /// … the next interval's last one, …
    next_turn: Instant,
    /// … and when all is over.
    end: Option<Instant>,
    head: Head,
}

impl Engine for Work {
    fn ask(&mut self, query: Query) {
        if query.event != self.query.event {
            self.past = Past::default();
        }
        self.query = query;
    }

    fn answer(&mut self) -> Option<Arc<Answer>> {
        self.hold();
        let answer = self.answered();
        self.let_go();
        answer
    }

    fn history(&mut self, function: &FunctionRef) -> Option<Vec<u64>> {
        Some(self.picture.as_ref().map(|picture| self.past.of(picture, function)).unwrap_or_default())
    }

    fn annotate(&mut self, function: FunctionRef) {
        self.hold();
        let Some(picture) = &self.picture else { return };
        let wanted = code::wanted(picture, &self.shared, &self.known, function);
        let _ = self.code.send(wanted);
        self.let_go();
    }

    fn export(&mut self, form: ExportForm, path: &Path) -> Result<()> {
        self.hold();
        let written = match &self.picture {
            Some(picture) => export::write(&self.painter, picture, &self.query, form, path),
            None => Err(Error::new("there is nothing to write yet")),
        };
        self.let_go();
        written
    }

    fn command(&mut self, command: LiveCommand) -> Option<String> {
        let mut said = None;
        match command {
            LiveCommand::Zero => {
                self.shared.live().zero();
                self.past = Past::default();
                if !self.is_frozen {
                    self.show(false);
                }
            }
            LiveCommand::Freeze => {
                self.is_frozen = !self.is_frozen;
                match self.is_frozen {
                    true => self.hold(),
                    false => self.show(false),
                }
            }
            LiveCommand::Decay => {
                self.memory = if self.memory == Memory::Fading { Memory::Lasting } else { Memory::Fading };
            }
            LiveCommand::Faster(is_faster) => {
                let delay =
                    if is_faster { (self.delay / 2).max(DELAYS.0) } else { (self.delay * 2).min(DELAYS.1) };
                if delay != self.delay {
                    self.delay = delay;
                    self.shared.set_delay(delay);
                    self.next_turn = Instant::now() + delay;
                    self.next = self.next.min(self.next_turn);
                }
                said = Some(format!("a new picture each {:.3} s", self.delay.as_secs_f64()));
            }
        }
        self.tell_status();
        said
    }

    fn deadline(&self) -> Option<Instant> {
        Some(self.end.map_or(self.next, |end| end.min(self.next)))
    }

    fn look(&mut self) {
        let now = Instant::now();
        if self.end.is_some_and(|end| now >= end) {
            self.board.end();
            self.end = None;
        }
        let turns = now >= self.next_turn;
        if !self.is_frozen {
            self.show(turns);
        }
        if turns {
            self.next_turn = Instant::now().max(self.next_turn + self.delay);
        }
        self.plan_next();
        if self.known.waiting() > 0 && self.start.elapsed() < EARLY {
            self.next = self.next.min(now + NAMES);
        }
    }
}

impl Work {
    fn plan_next(&mut self) {
        self.next =
            self.first.next().map_or(self.next_turn, |after| (self.start + *after).min(self.next_turn));
    }

    /// Makes a picture and shows it; with `turns` it is the interval's last.
    fn show(&mut self, turns: bool) {
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
        let answer = self.answered();
        self.board.put(|poll| poll.answer = answer);
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

    fn answered(&self) -> Option<Arc<Answer>> {
        self.picture.as_ref().map(|picture| Arc::new(self.painter.answer(picture, &self.query)))
    }

    fn tell_status(&self) {
        let head = &self.head;
        let mut notes = head.notes.clone();
        if self.shared.is_over() {
            notes.push("nobody is left to be sampled".to_owned());
        }
        self.board.status(|status| {
            *status = Status {
                title: std::mem::take(&mut status.title),
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
        });
    }
}
