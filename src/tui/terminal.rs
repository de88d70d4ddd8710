//! The terminal: taken over and given back.
//!
//! Raw mode, the alternate screen and the mouse are switched on together and off together: when the screen
//! ends, when it is stopped with the stop key, and when anything panics. Decides nothing about what is drawn.
//! What is typed and what the terminal answers come the same way: [`AnswerFilter`] tells them apart.

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

use super::Message;
use super::answer::AnswerFilter;
use crate::terminal::Stream;

/// Where frames go. Never dropped: ratatui prints to stderr where it cannot show the cursor again, which
/// panics where the terminal has gone. [`give_back`] shows the cursor.
pub(super) type Out = ManuallyDrop<Terminal<CrosstermBackend<BufWriter<Stdout>>>>;

/// Whether the terminal is ours at the moment.
static OURS: AtomicBool = AtomicBool::new(false);

/// The terminal while it is ours; given back when this is dropped.
#[derive(Debug)]
pub(super) struct Taken;

impl Taken {
    /// Takes it over.
    pub(super) fn take() -> io::Result<Self> {
        give_back_on_panic();
        take()?;
        Ok(Self)
    }
}

impl Drop for Taken {
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

/// Gives it back as it was; does nothing where that was done. A terminal that has gone cannot be given back.
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

/// A panic's message must be legible, and the shell usable after it.
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

/// Asks the terminal to show what follows at once when it is whole (DEC's mode 2026): never half a picture.
/// One that does not know the mode does as before.
pub(super) fn begin_frame(out: &mut Out) -> io::Result<()> {
    queue!(out.backend_mut(), BeginSynchronizedUpdate)
}

/// Now it is whole.
pub(super) fn end_frame(out: &mut Out) -> io::Result<()> {
    execute!(out.backend_mut(), EndSynchronizedUpdate)
}

/// Whether a panic gave the terminal back behind our back: another thread's, in builds that survive it.
pub(super) fn is_lost() -> bool {
    !OURS.load(Ordering::SeqCst)
}

/// A terminal to draw on.
pub(super) fn out() -> io::Result<Out> {
    Terminal::new(CrosstermBackend::new(BufWriter::with_capacity(1 << 14, stdout()))).map(ManuallyDrop::new)
}

/// Asks the terminal for the colour of its background (xterm's OSC 11). Nobody waits: the answer, if there is
/// one, comes among what is typed.
pub(super) fn ask_background() -> io::Result<()> {
    let mut out = stdout();
    out.write_all(b"\x1b]11;?\x1b\\")?;
    out.flush()
}

/// Reads what is typed, in a thread of its own, until the terminal has gone; `asked` says that it was asked
/// for its background.
pub(super) fn read(sender: Sender<Message>, asked: bool) {
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
            // What is there is read whole; a lone escape is told from the beginning of a sequence by what
            // follows.
            loop {
                match event::poll(Duration::ZERO) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(_) => {
                        let _ = sender.send(Message::Quit);
                        return;
                    }
                }
                let Ok(event) = event::read() else { break };
                if filter.take(event).into_iter().any(|message| sender.send(message).is_err()) {
                    return;
                }
            }
        }
        let _ = sender.send(Message::Quit);
    };
    std::thread::spawn(read);
}

/// Columns and lines of the terminal.
pub(super) fn size() -> (u16, u16) {
    // A terminal that does not know its size is taken for the usual one.
    Stream::Output.size().unwrap_or((80, 24))
}
