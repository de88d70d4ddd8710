//! The reasons why a measurement ends: the command's end, a signal, a control command, or a timeout.
//!
//! Receives these events as they happen. Decides whether the measurement is over and how the process exits.
//! All commands that measure use this module.

use super::launch;
use pmc_sys::error::Exit;
use pmc_sys::sys::process::{CommandOutcome, Ended, RunningCommand};
use pmc_sys::sys::signal;

/// The end conditions that have been met so far.
#[derive(Debug, Default)]
pub(crate) struct EndConditions {
    pub(crate) outcome: Option<CommandOutcome>,
    pub(crate) stopped: bool,
    pub(crate) timed_out: bool,
    first_signal: Option<i32>,
    /// Whether a second signal has arrived; if so, pmc stops waiting for the command.
    pub(crate) insisted: bool,
    /// Whether a holder has taken over the events. The command continues to run.
    pub(crate) handed_over: bool,
}

impl EndConditions {
    /// Whether the measurement is over.
    pub(crate) fn over(&self) -> bool {
        self.outcome.is_some() || self.stopped || self.timed_out || self.insisted || self.handed_over
    }

    /// Handles a signal. The first signal is forwarded to the command, which can then end gracefully. A
    /// second signal, or the first one without a command, ends the measurement immediately.
    pub(super) fn signal(&mut self, caught: signal::CaughtSignal, command: Option<&RunningCommand>) {
        if caught.signal == signal::CHLD {
            return;
        }
        match command {
            Some(command) if self.first_signal.is_none() => {
                // The terminal sends its signals to the command as well.
                if !caught.from_terminal {
                    command.kill(caught.signal);
                }
            }
            _ => self.insisted = true,
        }
        self.first_signal = self.first_signal.or(Some(caught.signal));
    }

    /// Returns the signal with which pmc should end itself; `None` if the command handled the signal and
    /// exited.
    pub(crate) fn interrupted(&self) -> Option<i32> {
        match self.outcome {
            Some(CommandOutcome { ended: Ended::Exited(_), .. }) => None,
            _ => self.first_signal,
        }
    }
}

/// Returns the exit status of pmc after a measurement that did not fail. `interrupted`: the signal that ended
/// it; `outcome`: how the command ended.
pub(super) fn exit_of_run(
    interrupted: Option<i32>,
    outcome: Option<CommandOutcome>,
    has_command: bool,
) -> Exit {
    match (interrupted, outcome) {
        // SIGINT is the usual way to end the measurement of processes that continue to run.
        (Some(signal::INT), None) if !has_command => Exit::Done,
        (Some(signal), _) => Exit::Interrupted(signal),
        (None, Some(outcome)) => launch::exit_of(outcome.ended),
        (None, None) => Exit::Done,
    }
}
