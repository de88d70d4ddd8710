//! The screen: tables, trees, flame graphs and code, to be walked through with keys and the mouse.
//!
//! Receives answers of an [`Engine`] and what is typed; decides what is shown and what is asked next. Knows no samples and
//! no files: `report` and `top` bring engines of their own.

pub mod engine;
pub mod listing;

use std::io;

use crate::profile::sampled::Query;
pub use engine::{Engine, ExportForm, LiveCommand, Poll, Spot, Status, Waker};

/// What wakes the screen.
#[derive(Debug)]
pub(crate) enum Message {
    /// The engine has something.
    Woken,
    /// A deadly signal came.
    EndBy(i32),
    /// The program is to stop until it is continued.
    Stop,
}

/// Where an [`Engine`]'s wakings arrive. Make it first, give the [`Waker`] to the engine's threads, then [`run`].
#[derive(Debug)]
pub struct Inbox {
    waker: Waker,
    messages: std::sync::mpsc::Receiver<Message>,
}

impl Default for Inbox {
    fn default() -> Self {
        let (sender, messages) = std::sync::mpsc::channel();
        Self { waker: Waker(sender), messages }
    }
}

impl Inbox {
    /// What wakes the screen.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }
}

/// How it ended.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// Somebody pressed the key.
    Quit,
    /// By this signal; the terminal is as it was.
    Signal(i32),
    /// The engine could not go on; why.
    Failed(String),
}

/// Shows the screen until it ends, on the terminal that standard input and output are. `first` is what is asked first.
///
/// # Errors
/// When the terminal cannot be read or written.
pub fn run(engine: &mut dyn Engine, inbox: Inbox, first: Query) -> io::Result<End> {
    engine.ask(&first);
    while let Ok(message) = inbox.messages.recv() {
        match message {
            Message::EndBy(signal) => return Ok(End::Signal(signal)),
            Message::Woken => {
                if let Some(why) = engine.poll().failed {
                    return Ok(End::Failed(why));
                }
            }
            Message::Stop => {}
        }
    }
    Ok(End::Quit)
}
