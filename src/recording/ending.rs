//! What has come to end a measuring: the command's end, a signal, an order, a timeout.
//!
//! Receives what happens, one thing after the other; says whether it is over, and how the process is to end.
//! Shared by every command that runs one.

use crate::sys::process::{Ended, Outcome, Running};
use crate::sys::signal;

/// What has happened so far.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    pub(crate) outcome: Option<Outcome>,
    pub(crate) stopped: bool,
    pub(crate) timed_out: bool,
    first_signal: Option<i32>,
    /// A second signal: do not wait for the command any longer.
    pub(crate) insisted: bool,
    /// The events are somebody else's from now on; the command goes on under them.
    pub(crate) handed_over: bool,
}

impl Ending {
    /// Whether it is over.
    pub(crate) fn over(&self) -> bool {
        self.outcome.is_some() || self.stopped || self.timed_out || self.insisted || self.handed_over
    }

    /// The first signal is passed on to the command, which then may end in its own way; a second one, or the
    /// first when there is no command, ends the measuring at once.
    pub(crate) fn signal(&mut self, caught: signal::Caught, command: Option<&Running>) {
        if caught.signal == signal::CHLD {
            return;
        }
        match command {
            Some(command) if self.first_signal.is_none() => {
                // What came from the keyboard, the command has got as well.
                if !caught.from_terminal {
                    command.kill(caught.signal);
                }
            }
            _ => self.insisted = true,
        }
        self.first_signal = self.first_signal.or(Some(caught.signal));
    }

    /// The signal to die by: none if the command took it and ended in its own way.
    pub(crate) fn interrupted(&self) -> Option<i32> {
        match self.outcome {
            Some(Outcome { ended: Ended::Exited(_), .. }) => None,
            _ => self.first_signal,
        }
    }
}
