//! The screen and its surroundings: whether there is a terminal for it, the signals that end or stop it, and how a command
//! ends with it. Used by every command that has a screen.

use std::io::{IsTerminal, stdin, stdout};

use crate::error::{Error, Exit, Result};
use crate::profile::sampled::Query;
use crate::sys::signal::{self, Signals};
use crate::tui::{self, End, Engine, Inbox, Surroundings, Waker};

/// Makes the screen panic while it draws: for the tests of what that leaves behind.
const PANIC: &str = "PMC_TEST_PANIC";

/// Whether there is a terminal that can show more than lines.
pub(in crate::command) fn is_there() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    stdin().is_terminal() && stdout().is_terminal() && !is_dumb
}

/// Catches the signals that the screen must know of. To be called before any thread is started, so that none of them gets
/// these signals.
///
/// # Errors
/// When the kernel refuses.
pub(in crate::command) fn catch_signals(waker: Waker) -> Result<()> {
    let deadly = [signal::INT, signal::TERM, signal::HUP, signal::QUIT];
    let signals = Signals::catch(&[&deadly[..], &[signal::TSTP, signal::WINCH]].concat())
        .map_err(|error| Error::io("catching signals", error))?;
    std::thread::spawn(move || {
        while let Ok(caught) = signals.wait() {
            match caught.signal {
                signal::TSTP => waker.stop(),
                signal::WINCH => waker.resized(),
                deadly => waker.end_by(deadly),
            }
        }
    });
    Ok(())
}

/// Shows the screen until it ends.
///
/// # Errors
/// When the terminal or the engine fails.
pub(in crate::command) fn show(engine: &mut dyn Engine, inbox: Inbox, first: Query) -> Result<Exit> {
    let around = Surroundings {
        has_colour: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        stop: signal::stop,
        panics: std::env::var_os(PANIC).is_some_and(|value| value == "draw"),
    };
    match tui::run(engine, inbox, first, around) {
        Ok(End::Quit) => Ok(Exit::Done),
        Ok(End::Signal(signal)) => Ok(Exit::Interrupted(signal)),
        Ok(End::Failed(why)) => Err(Error::new(why)),
        Err(error) => Err(Error::io("drawing on the terminal", error)),
    }
}
