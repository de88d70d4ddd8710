//! Sets up the full-screen interface for all commands that have one: checks the terminal, handles signals,
//! and returns the exit status.

use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::path::Path;

use pmc_analysis::profile::sampled::{Profile, Query, StackProfile};
use pmc_formats::export::{ExportContents, ExportFormat, RecordingMetadata};
use pmc_sys::error::{Error, Exit, Result};
use pmc_sys::sys::credentials;
use pmc_sys::sys::signal::{self, Signals};
use pmc_text::terminal::Stream;
use pmc_text::terminal::theme::Background;
use pmc_tui::{EngineHandle, Inbox, ScreenContext, ScreenEnd, Waker};
use pmc_view::report::ReportLayout;

/// Environment variable that makes the screen panic while drawing. Tests use it to check that the terminal is
/// restored.
const PANIC: &str = "PMC_TEST_PANIC";

/// Whether the terminal supports the full-screen interface.
pub fn is_there() -> bool {
    Stream::Input.is_terminal() && Stream::Output.is_screen()
}

/// Catches the signals that the screen handles. Must be called before any thread is started, so that other
/// threads do not receive these signals.
///
/// # Errors
/// Fails if the kernel refuses to catch the signals.
pub fn catch_signals(waker: Waker) -> Result<()> {
    let signals = Signals::catch(&[&signal::ENDING_AND_QUIT[..], &[signal::TSTP, signal::WINCH]].concat())
        .map_err(|error| Error::io("catching signals", error))?;
    std::thread::spawn(move || {
        credentials::keep_for_reading();
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

/// Shows the screen until the user quits.
///
/// # Errors
/// Fails if the terminal or the engine fails.
pub fn show(
    engine: &EngineHandle,
    inbox: Inbox,
    first: Query,
    background: Option<Background>,
) -> Result<Exit> {
    let around = ScreenContext {
        stop: signal::stop,
        background,
        panics: std::env::var_os(PANIC).is_some_and(|value| value == "draw"),
    };
    match pmc_tui::run(engine, inbox, first, around) {
        Ok(ScreenEnd::Quit) => Ok(Exit::Done),
        Ok(ScreenEnd::Signal(signal)) => Ok(Exit::Interrupted(signal)),
        Ok(ScreenEnd::Failed(why)) => Err(why),
        Err(error) => Err(Error::io("drawing on the terminal", error)),
    }
}

/// Exports the screen's contents (the stacks of this event, or the rows of a table) to a new file.
///
/// # Errors
/// Fails if the file already exists or cannot be written.
pub fn export(
    (stacks, event): (&StackProfile<'_>, Option<usize>),
    answer: &Profile,
    (title, layout): (&str, &ReportLayout),
    format: ExportFormat,
    path: &Path,
) -> Result<()> {
    let contents = ExportContents {
        stacks,
        event: event.unwrap_or(0),
        answer,
        layout,
        title,
        recording: &RecordingMetadata::default(),
        listings: &[],
        before: None,
    };
    let doing = || format!("writing {}", path.display());
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let mut out = BufWriter::new(file.map_err(|error| Error::io(doing(), error))?);
    pmc_formats::export::write(&mut out, format, &contents)
        .and_then(|()| out.flush())
        .map_err(|error| Error::io(doing(), error))
}
