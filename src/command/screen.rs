//! The screen and its surroundings: whether there is a terminal for it, the signals that end or stop it, and
//! how a command ends with it. Used by every command that has a screen.

use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::path::Path;

use crate::error::{Error, Exit, Result};
use crate::profile::sampled::{Profile, Query, StackProfile};
use crate::sys::signal::{self, Signals};
use crate::terminal::Stream;
use crate::terminal::theme::Background;
use crate::tui::{self, End, EngineHandle, Inbox, ScreenSurroundings, Waker};
use crate::view;
use crate::view::export::{Circumstances, Contents, Format};
use crate::view::report::Layout;

/// Makes the screen panic while it draws: for the tests of what that leaves behind.
const PANIC: &str = "PMC_TEST_PANIC";

/// Whether there is a terminal that can show more than lines.
pub(in crate::command) fn is_there() -> bool {
    Stream::Input.is_terminal() && Stream::Output.is_screen()
}

/// Catches the signals that the screen must know of. To be called before any thread is started, so that none
/// of them gets these signals.
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
pub(in crate::command) fn show(
    engine: &EngineHandle,
    inbox: Inbox,
    first: Query,
    background: Option<Background>,
) -> Result<Exit> {
    let around = ScreenSurroundings {
        stop: signal::stop,
        background,
        panics: std::env::var_os(PANIC).is_some_and(|value| value == "draw"),
    };
    match tui::run(engine, inbox, first, around) {
        Ok(End::Quit) => Ok(Exit::Done),
        Ok(End::Signal(signal)) => Ok(Exit::Interrupted(signal)),
        Ok(End::Failed(why)) => Err(why),
        Err(error) => Err(Error::io("drawing on the terminal", error)),
    }
}

/// Writes what the screen shows (stacks of this event, or the answer of a table) to a new file.
///
/// # Errors
/// When the file is there already or cannot be written.
pub(in crate::command) fn export(
    (stacks, event): (&StackProfile<'_>, Option<usize>),
    answer: &Profile,
    (title, layout): (&str, &Layout),
    format: Format,
    path: &Path,
) -> Result<()> {
    let contents = Contents {
        stacks,
        event: event.unwrap_or(0),
        answer,
        layout,
        title,
        recording: &Circumstances::default(),
        listings: &[],
        before: None,
    };
    let doing = || format!("writing {}", path.display());
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let mut out = BufWriter::new(file.map_err(|error| Error::io(doing(), error))?);
    view::export::write(&mut out, format, &contents)
        .and_then(|()| out.flush())
        .map_err(|error| Error::io(doing(), error))
}
