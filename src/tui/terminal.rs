//! Takes over and restores the terminal.
//!
//! Raw mode, the alternate screen and the mouse are switched on together. They are switched off together when
//! the screen ends, when the user suspends it, and on a panic. Decides nothing about the contents. Typed keys
//! and the terminal's replies arrive in the same stream; [`AnswerFilter`] separates them.

use std::io::{self, BufWriter, Stdout, Write, stdout};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{
    self, DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
};
use ratatui::crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
    disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{execute, queue};
use rustix::event::{PollFd, PollFlags, poll};

use super::ScreenMessage;
use super::answer::AnswerFilter;
use pmc_sys::terminal::Stream;

/// The output for frames. It is never dropped: ratatui's drop prints to stderr if it cannot show the cursor,
/// and that panics if the terminal has closed. [`give_back`] shows the cursor.
pub(super) type FrameOutput = ManuallyDrop<Terminal<CrosstermBackend<BufWriter<Stdout>>>>;

/// Whether the terminal is currently taken over.
static OURS: AtomicBool = AtomicBool::new(false);

/// Guard of the taken-over terminal; restores it when dropped.
#[derive(Debug)]
pub(super) struct TakenTerminal;

impl TakenTerminal {
    /// Takes the terminal over.
    pub(super) fn take() -> io::Result<Self> {
        give_back_on_panic();
        take()?;
        Ok(Self)
    }
}

impl Drop for TakenTerminal {
    fn drop(&mut self) {
        give_back();
    }
}

/// Takes the terminal over (again).
pub(super) fn take() -> io::Result<()> {
    enable_raw_mode()?;
    OURS.store(true, Ordering::SeqCst);
    let mut out = stdout();
    queue!(out, EnterAlternateScreen, EnableMouseCapture, EnableBracketedPaste, Hide)?;
    out.flush()
}

/// Restores the terminal if it is taken over. A terminal that has closed cannot be restored.
pub(super) fn give_back() {
    if OURS.swap(false, Ordering::SeqCst) {
        let _ = execute!(
            stdout(),
            EndSynchronizedUpdate,
            DisableBracketedPaste,
            DisableMouseCapture,
            LeaveAlternateScreen,
            Show
        );
        let _ = disable_raw_mode();
    }
}

/// Restores the terminal on a panic, so that the message is legible and the shell usable.
fn give_back_on_panic() {
    static SET: AtomicBool = AtomicBool::new(false);
    if SET.swap(true, Ordering::SeqCst) {
        return;
    }
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        give_back();
        before(panic);
    }));
}

/// Tells the terminal to show the following output only when it is complete (DEC mode 2026), to prevent
/// partial frames. Terminals without this mode ignore it.
pub(super) fn begin_frame(out: &mut FrameOutput) -> io::Result<()> {
    queue!(out.backend_mut(), BeginSynchronizedUpdate)
}

/// Ends the frame, which the terminal then shows.
pub(super) fn end_frame(out: &mut FrameOutput) -> io::Result<()> {
    execute!(out.backend_mut(), EndSynchronizedUpdate)
}

/// Whether a panic in another thread restored the terminal, in builds that survive it.
pub(super) fn is_lost() -> bool {
    !OURS.load(Ordering::SeqCst)
}

/// Returns a terminal to draw on.
pub(super) fn out() -> io::Result<FrameOutput> {
    Terminal::new(CrosstermBackend::new(BufWriter::with_capacity(1 << 14, stdout()))).map(ManuallyDrop::new)
}

/// Asks the terminal for its background colour (xterm's OSC 11). Does not wait: a reply arrives among the
/// typed keys.
pub(super) fn ask_background() -> io::Result<()> {
    let mut out = stdout();
    out.write_all(b"\x1b]11;?\x1b\\")?;
    out.flush()
}

/// Reads input in a separate thread until the terminal closes. `asked` says whether the terminal was asked
/// for its background.
pub(super) fn read(sender: Sender<ScreenMessage>, asked: bool) {
    let read = move || {
        let mut filter = AnswerFilter::new(asked);
        let stdin = io::stdin();
        loop {
            let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
            match poll(&mut fds, None) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => break,
            }
            let gone = fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL);
            if gone {
                break;
            }
            // Read all available input together. A single Escape is distinguished from the start of a
            // sequence by the bytes that follow.
            loop {
                match event::poll(Duration::ZERO) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(_) => {
                        let _ = sender.send(ScreenMessage::Quit);
                        return;
                    }
                }
                let Ok(event) = event::read() else { break };
                if filter.take(event).into_iter().any(|message| sender.send(message).is_err()) {
                    return;
                }
            }
        }
        let _ = sender.send(ScreenMessage::Quit);
    };
    std::thread::spawn(read);
}

/// Returns the number of columns and lines of the terminal.
pub(super) fn size() -> (u16, u16) {
    // Use the common size if the terminal does not report one.
    Stream::Output.size().unwrap_or((80, 24))
}
