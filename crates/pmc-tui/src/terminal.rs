//! Takes over and restores the terminal.
//!
//! Raw mode, the alternate screen and mouse input are switched on together. They are switched off together
//! when the screen ends, when the user suspends it, and on a panic. Typed keys and the terminal's replies
//! arrive in the same stream; [`AnswerFilter`] separates them.

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
use rustix::event::{PollFd, PollFlags};

use super::ScreenMessage;
use super::answer::AnswerFilter;
use pmc_sys::sys::wait;
use pmc_text::terminal::Stream;

/// The output for frames. It is never dropped, because ratatui's `Drop` prints to stderr if it cannot show
/// the cursor, and that panics if the terminal has closed. [`give_back`] shows the cursor instead.
pub(super) type FrameOutput = ManuallyDrop<Terminal<CrosstermBackend<BufWriter<Stdout>>>>;

/// Whether the screen currently controls the terminal.
static OURS: AtomicBool = AtomicBool::new(false);

/// Guard that holds the terminal while the screen uses it, and restores it when dropped.
#[derive(Debug)]
pub(super) struct TakenTerminal;

impl TakenTerminal {
    /// Takes over the terminal.
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

/// Takes over the terminal, for the first time or after a suspension.
pub(super) fn take() -> io::Result<()> {
    enable_raw_mode()?;
    OURS.store(true, Ordering::SeqCst);
    let mut out = stdout();
    queue!(out, EnterAlternateScreen, EnableMouseCapture, EnableBracketedPaste, Hide)?;
    out.flush()
}

/// Restores the terminal if the screen controls it. Ignores errors, because a closed terminal cannot be
/// restored.
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

/// Installs a panic hook that restores the terminal, so that the message is legible and the shell is usable.
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

/// Starts a synchronized update (DEC mode 2026): the terminal shows the following output only when it is
/// complete, so there are no partial frames. Terminals without this mode ignore the request.
pub(super) fn begin_frame(out: &mut FrameOutput) -> io::Result<()> {
    queue!(out.backend_mut(), BeginSynchronizedUpdate)
}

/// Ends the synchronized update, so that the terminal shows the frame.
pub(super) fn end_frame(out: &mut FrameOutput) -> io::Result<()> {
    execute!(out.backend_mut(), EndSynchronizedUpdate)
}

/// Whether a panic in another thread has restored the terminal. This can happen only in builds that survive
/// such a panic.
pub(super) fn is_lost() -> bool {
    !OURS.load(Ordering::SeqCst)
}

/// Returns the output on which frames are drawn.
pub(super) fn out() -> io::Result<FrameOutput> {
    Terminal::new(CrosstermBackend::new(BufWriter::with_capacity(1 << 14, stdout()))).map(ManuallyDrop::new)
}

/// Asks the terminal for its background colour (xterm's OSC 11). Does not wait, because the reply arrives in
/// the same stream as typed keys.
pub(super) fn ask_background() -> io::Result<()> {
    let mut out = stdout();
    out.write_all(b"\x1b]11;?\x1b\\")?;
    out.flush()
}

/// Reads input in a separate thread until the terminal closes. `asked` is true if the terminal was asked for
/// its background colour.
pub(super) fn read(sender: Sender<ScreenMessage>, asked: bool) {
    let read = move || {
        let mut filter = AnswerFilter::new(asked);
        let stdin = io::stdin();
        loop {
            let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
            if wait::poll(&mut fds, None).is_err() {
                break;
            }
            let gone = fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL);
            if gone {
                break;
            }
            // Read all available input in one go, because only the bytes after an Escape show whether it
            // starts a sequence.
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
