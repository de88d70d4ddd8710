//! `pmc top` on a terminal: the screen's live engine.
//!
//! ```text
//!   sampler, names (threads)      LiveState, NameTable
//!   job thread                    at each refresh, and at each question: snapshot ─► answer, history ─┐
//!   code thread                   a function's samples ─► its listing ───────────────────────────────┤
//!   screen                        ask … <─────────────────────────────── the changes ────────────────'
//! ```
//! While the screen is frozen, sampling continues, but the job thread answers all queries from the same
//! snapshot. Otherwise, it takes a new snapshot for each query.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use super::export;
use super::request::TopRequest;
use pmc_analysis::analysis::annotate::listing::ListingOptions;
use pmc_analysis::analysis::live::listing::{FunctionSamples, ListingBuilder};
use pmc_analysis::analysis::live::names::{self, EARLY, NameLookup};
use pmc_analysis::analysis::live::row_history::RowHistory;
use pmc_analysis::analysis::live::snapshot::{LiveSnapshot, Retention, SnapshotMaker};
use pmc_analysis::profile::sampled::{FunctionRef, LiveHeader, Query, QueryAnswer};
use pmc_analysis::session::live::LiveState;
use pmc_command::screen;
use pmc_recording::recording::launch;
use pmc_recording::recording::live::Sampler;
use pmc_recording::recording::live_rate::RateOrders;
use pmc_recording::recording::plan::{MeasurementScope, SamplePlan};
use pmc_symbols::symbol::SymbolOptions;
use pmc_sys::error::{Error, Exit, Result};
use pmc_sys::sys::credentials;
use pmc_sys::sys::process::Streams;
use pmc_tui::board::{latest, serve};
use pmc_tui::engine::CpuTimeSplit;
use pmc_tui::{Board, Engine, EngineHandle, EngineStatus, Inbox, LiveCommand, ViewFormat};
use pmc_view::report::ReportLayout;

/// The intervals between the first few snapshots, which are shorter than later ones.
const FIRST: [Duration; 3] =
    [Duration::from_millis(80), Duration::from_millis(170), Duration::from_millis(400)];
/// Refresh interval while the first names are being resolved.
const NAMES: Duration = Duration::from_millis(400);
/// Minimum and maximum interval between snapshots.
const DELAYS: (Duration, Duration) = (Duration::from_millis(125), Duration::from_secs(64));
/// Minimum size of a branch in the tree on the screen, as a fraction of the event's total period.
const BRANCH: f64 = 0.001;

/// Shows the screen until the user quits.
pub(super) fn run(mut request: TopRequest) -> Result<Exit> {
    request.distinguish_threads();
    let background = request.background;
    let inbox = Inbox::default();
    screen::catch_signals(inbox.waker())?;
    let (mut requests, names) = names::start(request.names.clone())?;
    // Keep the command's output off the screen.
    request.live.streams = Streams::OffTerminal;
    let sampler =
        Sampler::start(request.live.clone(), Box::new(move |live, is_last| requests.ask(live, is_last)))?;
    credentials::keep_for_reading();
    let maker = SnapshotMaker::new(sampler.state.clone(), names.clone(), request.snapshots);
    let row_limit = request.layout.row_limit / 100.0;
    let first = Query { event: Some(0), limit: BRANCH, row_limit, ..request.query };
    let status =
        EngineStatus { title: title(&request.live.sample), is_live: true, ..EngineStatus::default() };
    let board = Board::new(inbox.waker(), status);
    let (engine, jobs) = EngineHandle::new(board.clone());
    let (wanted, functions) = channel();
    {
        let board = board.clone();
        let (options, how) = (request.names.options, request.code);
        std::thread::spawn(move || list(&functions, options, how, &board));
    }
    let start = Instant::now();
    let mut work = WatchState {
        shared: sampler.state.clone(),
        rates: sampler.rates.clone(),
        names,
        retention: request.retention,
        fading: match request.retention {
            Retention::Lasts => Retention::Decays,
            fading => fading,
        },
        layout: request.layout,
        delay: request.live.delay,
        maker,
        board: board.clone(),
        code: wanted,
        query: first.clone(),
        snapshot: None,
        is_frozen: false,
        row_history: RowHistory::default(),
        over: match request.live.sample.scope {
            _ if !request.live.sample.run_schedule.command.is_empty() => "ENDED: the command has ended",
            MeasurementScope::Cpus(_) => "ENDED: press q for the reason",
            _ => "ENDED: all sampled processes have ended",
        },
        start,
        first: FIRST.iter(),
        next: start,
        next_turn: start + request.live.delay,
        end: request.timeout.map(|timeout| start + timeout),
        head: LiveHeader::default(),
    };
    work.plan_next();
    let painting = std::thread::spawn(move || serve(&mut work, &jobs, &board));
    let exit = screen::show(&engine, inbox, first, background);
    drop(engine);
    let stopped = sampler.stop();
    let _ = painting.join();
    exit.and_then(|exit| stopped.map(|ended| super::exit_of(exit, ended)))
}

/// Lists the code of the received functions until the channel closes.
fn list(functions: &Receiver<FunctionSamples>, options: SymbolOptions, how: ListingOptions, board: &Board) {
    let Ok(mut lister) = ListingBuilder::new(options, how) else { return };
    while let Some(one) = latest(functions) {
        let listing = lister.listing(&one);
        board.put(|poll| poll.listing = Some((one.function, listing)));
    }
}

fn title(plan: &SamplePlan) -> String {
    let list = |ids: &[u32]| ids.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    match &plan.scope {
        MeasurementScope::Cpus(cpus) => format!("CPUs {cpus}"),
        MeasurementScope::Processes(pids) | MeasurementScope::Families(pids) => format!("pid {}", list(pids)),
        MeasurementScope::Threads(tids) => format!("tid {}", list(tids)),
        MeasurementScope::User(user) => format!("user {user}"),
        MeasurementScope::Command => launch::name(&plan.run_schedule.command),
        MeasurementScope::AllThreads => String::new(),
    }
}

/// State of the job thread.
struct WatchState {
    shared: Arc<LiveState>,
    rates: Arc<RateOrders>,
    names: NameLookup,
    maker: SnapshotMaker,
    board: Arc<Board>,
    code: Sender<FunctionSamples>,
    query: Query,
    snapshot: Option<LiveSnapshot>,
    layout: ReportLayout,
    retention: Retention,
    /// The retention that is restored when the user turns off adding up.
    fading: Retention,
    delay: Duration,
    is_frozen: bool,
    /// The message to show when sampling has ended.
    over: &'static str,
    row_history: RowHistory,
    start: Instant,
    /// The remaining intervals of [`FIRST`].
    first: std::slice::Iter<'static, Duration>,
    /// Time of the next snapshot.
    next: Instant,
    /// End of the current interval.
    next_turn: Instant,
    /// Time at which sampling ends, if there is a time limit.
    end: Option<Instant>,
    head: LiveHeader,
}

impl Engine for WatchState {
    fn ask(&mut self, query: Query) {
        if query.event != self.query.event {
            self.row_history = RowHistory::default();
        }
        self.query = query;
    }

    fn answer(&mut self) -> Option<Arc<QueryAnswer>> {
        self.hold();
        let answer = self.answered();
        self.release();
        answer
    }

    fn history(&mut self, function: &FunctionRef) -> Option<Vec<u64>> {
        Some(self.row_history.costs(function))
    }

    fn annotate(&mut self, function: FunctionRef) {
        self.hold();
        let Some(snapshot) = &self.snapshot else { return };
        let wanted = FunctionSamples::new(snapshot, &self.shared, &self.names, function);
        let _ = self.code.send(wanted);
        self.release();
    }

    fn export(&mut self, form: ViewFormat, path: &Path) -> Result<()> {
        self.hold();
        let written = match &self.snapshot {
            Some(snapshot) => export::write(&self.maker, snapshot, &self.layout, &self.query, form, path),
            None => Err(Error::new("nothing to write yet")),
        };
        self.release();
        written
    }

    fn command(&mut self, command: LiveCommand) -> Option<String> {
        let mut said = None;
        match command {
            LiveCommand::Zero => {
                self.shared.live().clear();
                self.row_history = RowHistory::default();
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
                self.retention =
                    if self.retention == Retention::Lasts { self.fading } else { Retention::Lasts };
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
                said = Some(format!("update every {:.3} s", self.delay.as_secs_f64()));
            }
            LiveCommand::SampleMore(twice) => {
                let answer = self.rates.order(self.query.event.unwrap_or(0), twice);
                said = Some(answer.unwrap_or_else(|why| why));
            }
        }
        self.show_status();
        said
    }

    fn deadline(&self) -> Option<Instant> {
        Some(self.end.map_or(self.next, |end| end.min(self.next)))
    }

    fn on_deadline(&mut self) {
        let now = Instant::now();
        if self.end.is_some_and(|end| now >= end) {
            self.board.end();
            self.end = None;
        }
        let turns = now >= self.next_turn;
        match self.is_frozen {
            true => self.show_status(),
            false => self.show(turns),
        }
        if turns {
            self.next_turn = Instant::now().max(self.next_turn + self.delay);
        }
        self.plan_next();
        if self.names.waiting() > 0 && self.start.elapsed() < EARLY {
            self.next = self.next.min(now + NAMES);
        }
    }
}

impl WatchState {
    fn plan_next(&mut self) {
        self.next =
            self.first.next().map_or(self.next_turn, |after| (self.start + *after).min(self.next_turn));
    }

    /// Takes a snapshot and shows it. `turns` is true if the snapshot ends an interval.
    fn show(&mut self, turns: bool) {
        let is_over = self.shared.is_over();
        let last = self.snapshot.take();
        let is_first = last.is_none();
        let snapshot = self.maker.take(last);
        if turns || is_first {
            self.head = self.maker.head(&snapshot, self.query.event.unwrap_or(0));
        }
        if turns {
            let keep = self.retention.keep();
            self.row_history.note(&snapshot, self.query.event.unwrap_or(0), keep);
        }
        self.snapshot = Some(snapshot);
        let answer = self.answered();
        self.board.put(|poll| poll.answer = answer);
        self.release();
        // When sampling has ended, keep the last interval so that the user can inspect it.
        if turns && !is_over {
            self.maker.end_interval(self.retention);
        }
        self.show_status();
    }

    /// From now on, answers all queries from the last snapshot. Does nothing before the first snapshot.
    fn hold(&mut self) {
        if self.snapshot.as_ref().is_some_and(LiveSnapshot::is_released) {
            let last = self.snapshot.take();
            self.snapshot = Some(self.maker.take(last));
        }
    }

    fn release(&mut self) {
        if let Some(snapshot) = self.snapshot.as_mut().filter(|_| !self.is_frozen) {
            snapshot.release();
        }
    }

    fn answered(&self) -> Option<Arc<QueryAnswer>> {
        self.snapshot.as_ref().map(|snapshot| Arc::new(self.maker.answer(snapshot, &self.query)))
    }

    fn show_status(&self) {
        let head = &self.head;
        let halted = match (self.shared.is_over(), self.shared.is_yielding()) {
            (true, _) => Some(self.over),
            (_, true) => Some("PAUSED: the counters are reserved"),
            _ => None,
        };
        self.board.status(|status| {
            *status = EngineStatus {
                title: std::mem::take(&mut status.title),
                is_live: true,
                progress: None,
                rate: Some(head.rate),
                lost: head.lost,
                warnings: head.warnings,
                split: head.split.map(|(kernel, user, idle)| CpuTimeSplit { kernel, user, idle }),
                own_cpu: Some(head.own_cpu),
                own_memory: Some(head.own_memory),
                frozen: self.is_frozen,
                retention: match self.retention {
                    Retention::Decays => "decaying",
                    Retention::Lasts => "adding up",
                    Retention::None => "each interval",
                },
                halted,
                notes: head.notes.clone(),
            };
        });
    }
}
