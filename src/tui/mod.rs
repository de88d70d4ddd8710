//! The screen: tables, trees, flame graphs and code, to be walked through with keys and the mouse.
//!
//! Receives answers from the [`Board`] of an [`Engine`] and what is typed; decides what is shown and what is
//! asked next. Knows no samples and no files: `report` and `top` bring engines of their own.
//!
//! ```text
//!   keyboard thread ──┐
//!   signal thread  ───┼─> inbox ──> State::update ──> effects ──> engine
//!   engine's threads ─┘                 '── at most every 50 ms ──> panes ──> terminal
//! ```

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

use crate::error::Error;
use crate::profile::sampled::Query;
use crate::terminal::theme::Background;
use crate::terminal::{self as any_terminal, Colours, Stream};
use board::Job;
pub use board::{Board, EngineHandle};
pub use engine::{Engine, ExportForm, LiveCommand, Poll, Status, Waker};
use state::{Effect, Input, State};
use theme::Theme;

/// The shortest time between two frames.
const FRAME: Duration = Duration::from_millis(50);
/// A request to stop that comes so soon after having been continued is our own, read late.
const ECHO: Duration = Duration::from_millis(200);

/// What wakes the screen.
#[derive(Debug)]
pub(crate) enum Message {
    /// The engine has something.
    Woken,
    /// Something was typed.
    Input(Event),
    /// The terminal has said what is behind its text.
    Background(Background),
    /// The terminal has another size.
    Resized,
    /// The terminal has gone, or the engine's time is over.
    Quit,
    /// A deadly signal came.
    EndBy(i32),
    /// The program is to stop until it is continued.
    Stop,
}

/// Where an engine's wakings arrive. Make it first, give the [`Waker`] to the engine's [`Board`], then
/// [`run`].
#[derive(Debug)]
pub struct Inbox {
    waker: Waker,
    messages: Receiver<Message>,
}

impl Default for Inbox {
    fn default() -> Self {
        let (sender, messages) = channel();
        Self { waker: Waker(sender), messages }
    }
}

impl Inbox {
    /// What wakes the screen.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }
}

/// How the surroundings are.
#[derive(Debug, Clone, Copy)]
pub struct ScreenSurroundings {
    /// Stops this program until it is continued.
    pub stop: fn(),
    /// The terminal's background, where somebody said what it is: the terminal is not asked then.
    pub background: Option<Background>,
    /// A test wants to see what a panic while drawing leaves behind.
    pub panics: bool,
}

/// How it ended.
#[derive(Debug)]
pub enum End {
    /// Somebody pressed the key, or the terminal has gone.
    Quit,
    /// By this signal; the terminal is as it was.
    Signal(i32),
    /// The engine could not go on; why.
    Failed(Error),
}

/// Shows the screen until it ends, on the terminal that standard input and output are. `first` is what is
/// asked first.
///
/// # Errors
/// When the terminal cannot be read or written.
pub fn run(engine: &EngineHandle, inbox: Inbox, first: Query, around: ScreenSurroundings) -> io::Result<End> {
    let mut state = State::new(first, terminal::size());
    engine.send(Job::Answer(Box::new(state.query.clone())));
    let _taken = terminal::Taken::take()?;
    let colours = Stream::Output.colours();
    let asks = around.background.is_none() && colours != Colours::None;
    if asks {
        terminal::ask_background()?;
    }
    terminal::read(inbox.waker.0.clone(), asks);
    let background = around.background.unwrap_or_else(any_terminal::background);
    let mut screen = Screen {
        out: terminal::out()?,
        theme: Theme::new(colours, background),
        colours,
        around,
        drawn: None,
        continued: Instant::now(),
    };
    let poll = engine.board.take();
    if let Some(why) = poll.failed {
        return Ok(End::Failed(why));
    }
    let effects = state.update(Input::Poll(Box::new(poll)));
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
                Err(RecvTimeoutError::Disconnected) => return Ok(End::Quit),
            }
        } else {
            let Ok(message) = inbox.messages.recv() else { return Ok(End::Quit) };
            message
        };
        let input = match message {
            Message::EndBy(signal) => return Ok(End::Signal(signal)),
            Message::Quit => return Ok(End::Quit),
            Message::Woken => {
                let mut poll = engine.board.take();
                if let Some(why) = poll.failed.take() {
                    return Ok(End::Failed(why));
                }
                Input::Poll(Box::new(poll))
            }
            Message::Background(background) => {
                screen.theme = Theme::new(screen.colours, background);
                is_dirty = true;
                continue;
            }
            Message::Resized => screen.resized()?,
            Message::Stop => {
                if screen.continued.elapsed() > ECHO {
                    screen.stop(&mut state)?;
                }
                is_dirty = true;
                continue;
            }
            Message::Input(Event::Key(key)) => Input::Key(key),
            // The pointer passing by is no news.
            Message::Input(Event::Mouse(mouse)) if mouse.kind == MouseEventKind::Moved => continue,
            Message::Input(Event::Mouse(mouse)) => Input::Mouse(mouse),
            Message::Input(Event::Paste(text)) => Input::Paste(text),
            Message::Input(Event::Resize(..)) => screen.resized()?,
            Message::Input(_) => continue,
        };
        if terminal::is_lost() {
            return Ok(End::Failed(Error::new("a thread of the screen's engine ended in a panic")));
        }
        let effects = state.update(input);
        is_dirty = true;
        if screen.carry_out(engine, &mut state, effects)? {
            return Ok(End::Quit);
        }
    }
}

/// What is drawn on.
struct Screen {
    out: terminal::Out,
    theme: Theme,
    colours: Colours,
    around: ScreenSurroundings,
    drawn: Option<Instant>,
    continued: Instant,
}

impl Screen {
    #[allow(clippy::panic, reason = "that is what the test asks for")]
    fn draw(&mut self, state: &State) -> io::Result<()> {
        let panics = self.around.panics && self.drawn.is_some();
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

    /// Does it; says whether it is the end.
    fn carry_out(
        &mut self,
        engine: &EngineHandle,
        state: &mut State,
        effects: Vec<Effect>,
    ) -> io::Result<bool> {
        for effect in effects {
            match effect {
                Effect::Ask(query) => engine.send(Job::Answer(query)),
                Effect::Annotate(function) => engine.send(Job::Code(function)),
                Effect::History(function) => engine.send(Job::History(function)),
                Effect::Export(form, path) => engine.send(Job::Export(form, path)),
                Effect::Command(command) => engine.send(Job::Command(command)),
                Effect::Redraw => self.out.clear()?,
                Effect::Suspend => self.stop(state)?,
                Effect::Quit => return Ok(true),
            }
        }
        Ok(false)
    }

    fn resized(&mut self) -> io::Result<Input> {
        self.out.autoresize()?;
        let (width, height) = terminal::size();
        Ok(Input::Resize(width, height))
    }

    /// Gives the terminal back, stops, takes it again.
    fn stop(&mut self, state: &mut State) -> io::Result<()> {
        terminal::give_back();
        (self.around.stop)();
        terminal::take()?;
        self.continued = Instant::now();
        let size = self.resized()?;
        self.out.clear()?;
        state.update(size);
        Ok(())
    }
}
