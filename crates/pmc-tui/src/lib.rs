//! The interactive screen: tables, trees, flame graphs and code, controlled with keys and the mouse.
//!
//! Receives answers from the [`Board`] of an [`Engine`] and the user's input. Decides what to show and which
//! query to send next. It does not access samples or files; `report` and `top` provide the engines.
//!
//! ```text
//!   keyboard thread ──┐
//!   signal thread  ───┼─> inbox ──> State::update ──> effects ──> engine
//!   engine's threads ─┘                 '── at most every 50 ms ──> panes ──> terminal
//! ```

#![forbid(unsafe_code)]
#![allow(missing_docs, clippy::missing_errors_doc, reason = "only pmc uses this crate")]

mod answer;
pub mod board;
pub mod engine;
pub mod keys;
pub mod layout;
pub mod numbers;
pub mod panes;
pub mod state;
mod terminal;
pub mod theme;

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{Event, MouseEventKind};

use board::Job;
pub use board::{Board, EngineHandle};
pub use engine::{Engine, EngineStatus, EngineUpdates, LiveCommand, ViewFormat, Waker};
use pmc_analysis::profile::sampled::Query;
use pmc_sys::error::Error;
use pmc_text::terminal::theme::Background;
use pmc_text::terminal::{self as any_terminal, Colours, Stream};
use state::{ScreenEffect, ScreenInput, ScreenState};
use theme::ScreenTheme;

/// Minimum time between two frames.
const FRAME: Duration = Duration::from_millis(50);
/// A stop request that arrives within this time after pmc resumes is treated as an echo of the stop signal
/// that pmc sent to itself.
const ECHO: Duration = Duration::from_millis(200);

/// Events that wake the screen.
#[derive(Debug)]
pub enum ScreenMessage {
    /// The engine has an update.
    Woken,
    /// The user pressed a key or used the mouse.
    Input(Event),
    /// The terminal reported its background colour.
    Background(Background),
    /// The terminal was resized.
    Resized,
    /// The terminal has closed, or the engine's time limit has been reached.
    Quit,
    /// A fatal signal arrived.
    EndBy(i32),
    /// The program must suspend itself until it is resumed.
    Stop,
}

/// Receives the engine's wake-ups. Create the inbox first, pass its [`Waker`] to the engine's [`Board`], then
/// call [`run`].
#[derive(Debug)]
pub struct Inbox {
    waker: Waker,
    messages: Receiver<ScreenMessage>,
}

impl Default for Inbox {
    fn default() -> Self {
        let (sender, messages) = channel();
        Self { waker: Waker(sender), messages }
    }
}

impl Inbox {
    /// Returns the waker of the screen.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }
}

/// Settings that the caller passes to the screen.
#[derive(Debug, Clone, Copy)]
pub struct ScreenContext {
    /// Suspends this program until it is resumed.
    pub stop: fn(),
    /// The terminal's background, if the user specified it. Otherwise, the screen queries the terminal.
    pub background: Option<Background>,
    /// Whether to panic while drawing, to test that the terminal is restored.
    pub panics: bool,
}

/// How the screen ended.
#[derive(Debug)]
pub enum ScreenEnd {
    /// The user quit, or the terminal has closed.
    Quit,
    /// This signal ended the screen. The terminal has been restored.
    Signal(i32),
    /// The engine failed with this error.
    Failed(Error),
}

/// Runs the screen on standard input and output until it ends. `first` is the first query.
///
/// # Errors
/// Fails if the terminal cannot be read or written.
pub fn run(
    engine: &EngineHandle,
    inbox: Inbox,
    first: Query,
    context: ScreenContext,
) -> io::Result<ScreenEnd> {
    let mut state = ScreenState::new(first, terminal::size());
    engine.send(Job::Answer(Box::new(state.query.clone())));
    let _taken = terminal::TakenTerminal::take()?;
    let colours = Stream::Output.colours();
    let asks = context.background.is_none() && colours != Colours::None;
    if asks {
        terminal::ask_background()?;
    }
    terminal::read(inbox.waker.0.clone(), asks);
    let background = context.background.unwrap_or_else(any_terminal::background);
    let mut screen = Screen {
        out: terminal::out()?,
        theme: ScreenTheme::new(colours, background),
        colours,
        context,
        drawn: None,
        continued: Instant::now(),
    };
    let poll = engine.board.take();
    if let Some(why) = poll.failed {
        return Ok(ScreenEnd::Failed(why));
    }
    let effects = state.update(ScreenInput::Poll(Box::new(poll)));
    screen.carry_out(engine, &mut state, effects)?;
    screen.draw(&state)?;
    let mut is_dirty = false;
    loop {
        let message = if is_dirty {
            let rest = FRAME.saturating_sub(screen.drawn.map_or(FRAME, |drawn| drawn.elapsed()));
            match inbox.messages.recv_timeout(rest) {
                Ok(message) => message,
                Err(RecvTimeoutError::Timeout) => {
                    screen.draw(&state)?;
                    is_dirty = false;
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(ScreenEnd::Quit),
            }
        } else {
            let Ok(message) = inbox.messages.recv() else { return Ok(ScreenEnd::Quit) };
            message
        };
        let input = match message {
            ScreenMessage::EndBy(signal) => return Ok(ScreenEnd::Signal(signal)),
            ScreenMessage::Quit => return Ok(ScreenEnd::Quit),
            ScreenMessage::Woken => {
                let mut poll = engine.board.take();
                if let Some(why) = poll.failed.take() {
                    return Ok(ScreenEnd::Failed(why));
                }
                ScreenInput::Poll(Box::new(poll))
            }
            ScreenMessage::Background(background) => {
                screen.theme = ScreenTheme::new(screen.colours, background);
                is_dirty = true;
                continue;
            }
            ScreenMessage::Resized => screen.resized()?,
            ScreenMessage::Stop => {
                if screen.continued.elapsed() > ECHO {
                    screen.stop(&mut state)?;
                }
                is_dirty = true;
                continue;
            }
            ScreenMessage::Input(Event::Key(key)) => ScreenInput::Key(key),
            // Ignore pointer movement.
            ScreenMessage::Input(Event::Mouse(mouse)) if mouse.kind == MouseEventKind::Moved => continue,
            ScreenMessage::Input(Event::Mouse(mouse)) => ScreenInput::Mouse(mouse),
            ScreenMessage::Input(Event::Paste(text)) => ScreenInput::Paste(text),
            ScreenMessage::Input(Event::Resize(..)) => screen.resized()?,
            ScreenMessage::Input(_) => continue,
        };
        if terminal::is_lost() {
            return Ok(ScreenEnd::Failed(Error::new("a thread of the screen engine panicked")));
        }
        let effects = state.update(input);
        is_dirty = true;
        if screen.carry_out(engine, &mut state, effects)? {
            return Ok(ScreenEnd::Quit);
        }
    }
}

/// The screen and its terminal.
struct Screen {
    out: terminal::FrameOutput,
    theme: ScreenTheme,
    colours: Colours,
    context: ScreenContext,
    drawn: Option<Instant>,
    continued: Instant,
}

impl Screen {
    #[allow(clippy::panic, reason = "this is what the test requires")]
    fn draw(&mut self, state: &ScreenState) -> io::Result<()> {
        let panics = self.context.panics && self.drawn.is_some();
        let theme = self.theme;
        terminal::begin_frame(&mut self.out)?;
        self.out.draw(|frame| {
            panes::draw(frame, state, theme);
            if panics {
                panic!("PMC_TEST_PANIC asked for this");
            }
        })?;
        terminal::end_frame(&mut self.out)?;
        self.drawn = Some(Instant::now());
        Ok(())
    }

    /// Carries out the effects. Returns whether the screen ends.
    fn carry_out(
        &mut self,
        engine: &EngineHandle,
        state: &mut ScreenState,
        effects: Vec<ScreenEffect>,
    ) -> io::Result<bool> {
        for effect in effects {
            match effect {
                ScreenEffect::Ask(query) => engine.send(Job::Answer(query)),
                ScreenEffect::Annotate(function) => engine.send(Job::Code(function)),
                ScreenEffect::History(function) => engine.send(Job::History(function)),
                ScreenEffect::Export(form, path) => engine.send(Job::Export(form, path)),
                ScreenEffect::Command(command) => engine.send(Job::Command(command)),
                ScreenEffect::Redraw => self.clear()?,
                ScreenEffect::Suspend => self.stop(state)?,
                ScreenEffect::Quit => return Ok(true),
            }
        }
        Ok(false)
    }

    fn resized(&mut self) -> io::Result<ScreenInput> {
        self.out.autoresize()?;
        let (width, height) = terminal::size();
        Ok(ScreenInput::Resize(width, height))
    }

    /// Restores the terminal, suspends the program, and takes over the terminal again when the program
    /// resumes.
    fn stop(&mut self, state: &mut ScreenState) -> io::Result<()> {
        terminal::give_back();
        (self.context.stop)();
        terminal::take()?;
        self.continued = Instant::now();
        let size = self.resized()?;
        self.clear()?;
        state.update(size);
        Ok(())
    }

    /// Clears the terminal, so that the next frame draws all cells. `Terminal::clear` would also query the
    /// cursor position, and fail if the reply takes longer than two seconds.
    fn clear(&mut self) -> io::Result<()> {
        let area = self.out.get_frame().area();
        self.out.resize(area)
    }
}
