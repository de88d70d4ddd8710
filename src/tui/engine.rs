//! What the screen asks for and what it is given: the contract between the screen and whoever has samples.
//!
//! An engine (a recording that is being read, the live view) does its work in threads of its own, so that the
//! screen never waits. What is new lies on the [`Board`](super::board::Board); the [`Waker`] says so, so that
//! nobody looks at a clock.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Instant;

use crate::error::{Error, Result};
use crate::profile::annotate::Listing;
use crate::profile::sampled::{Answer, FunctionRef, Query};
use crate::view::export::Format;

/// What an engine is told to do besides answering.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveCommand {
    /// Forget everything counted so far.
    Zero,
    /// Stop looking, or go on: what is on the screen stays.
    Freeze,
    /// Let old samples fade, or add up everything.
    Decay,
    /// Refresh half as often (`false`) or twice as often (`true`).
    Faster(bool),
    /// Sample the event that is shown half as often (`false`) or twice as often (`true`).
    SampleMore(bool),
}

/// In which form a view is written to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportForm {
    /// As `pmc export` writes it.
    Format(Format),
    /// A recording.
    PerfData,
}

/// How far work has come.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// What is being done: "reading samples".
    pub what: &'static str,
    /// So much is done …
    pub done: u64,
    /// … of so much; 0 when nobody knows.
    pub total: u64,
}

/// Parts of all CPUs' time, 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Split {
    /// In the kernel.
    pub kernel: f64,
    /// In programs.
    pub user: f64,
    /// Idle.
    pub idle: f64,
}

/// What stands in the header.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Status {
    /// What is looked at: the file, "all CPUs", "pid 17". Foreign text.
    pub title: String,
    /// The engine samples now: live commands make sense.
    pub is_live: bool,
    /// What is being done, while something is.
    pub progress: Option<Progress>,
    /// Samples per second.
    pub rate: Option<f64>,
    /// Samples that were lost.
    pub lost: u64,
    /// Where the CPUs were.
    pub split: Option<Split>,
    /// CPU of this program, 1 being one whole CPU.
    pub own_cpu: Option<f64>,
    /// Memory of this program in bytes.
    pub own_memory: Option<u64>,
    /// The screen stands still.
    pub frozen: bool,
    /// Why no more samples come, for now or at all.
    pub halted: Option<&'static str>,
    /// Old samples fade.
    pub decays: bool,
    /// What is worth knowing, worst first. Foreign text.
    pub notes: Vec<String>,
}

/// What is new since the last poll.
#[derive(Debug, Default)]
pub struct Poll {
    /// The answer to the last query, or the same again with newer samples.
    pub answer: Option<Arc<Answer>>,
    /// The header's facts.
    pub status: Option<Status>,
    /// A function's code, or why there is none.
    pub listing: Option<(FunctionRef, Result<Arc<Listing>, String>)>,
    /// The screen begins with the code of this function; no name stands for the costliest, no module for any.
    pub opens: Option<FunctionRef>,
    /// A function's periods by time, oldest first.
    pub history: Option<(FunctionRef, Vec<u64>)>,
    /// What became of a command or an export: a sentence for the last line.
    pub said: Option<String>,
    /// The engine cannot go on; why.
    pub failed: Option<Error>,
}

/// Wakes the screen. Cheap to clone; may be called from any thread.
#[derive(Debug, Clone)]
pub struct Waker(pub(super) Sender<super::Message>);

impl Waker {
    /// Something new lies ready.
    pub fn wake(&self) {
        // A screen that has gone needs no waking.
        let _ = self.0.send(super::Message::Woken);
    }

    /// The engine's time is over.
    pub(super) fn end(&self) {
        let _ = self.0.send(super::Message::Quit);
    }

    /// A signal came that ends the screen.
    pub fn end_by(&self, signal: i32) {
        let _ = self.0.send(super::Message::EndBy(signal));
    }

    /// The terminal has another size.
    pub fn resized(&self) {
        let _ = self.0.send(super::Message::Resized);
    }

    /// Somebody wants the program stopped (SIGTSTP from outside).
    pub fn stop(&self) {
        let _ = self.0.send(super::Message::Stop);
    }
}

/// Whoever has samples. Lives in its job thread ([`board::serve`](super::board::serve)), so its work may take
/// its time.
pub trait Engine {
    /// Another question from now on.
    fn ask(&mut self, query: Query);

    /// The answer to the question; `None` while nothing is known.
    fn answer(&mut self) -> Option<Arc<Answer>>;

    /// A function's own periods by time, oldest first.
    fn history(&mut self, function: &FunctionRef) -> Option<Vec<u64>>;

    /// Bring a function's code with its weights; it is put on the board when it is there.
    fn annotate(&mut self, function: FunctionRef);

    /// Write what the last query shows to a new file.
    ///
    /// # Errors
    /// When it cannot be written, or not in this form.
    fn export(&mut self, form: ExportForm, path: &Path) -> Result<()>;

    /// Do this; hands back a sentence for the last line, if there is something to say.
    fn command(&mut self, command: LiveCommand) -> Option<String>;

    /// When the engine wants to [`look`](Engine::look) unasked.
    fn deadline(&self) -> Option<Instant> {
        None
    }

    /// The deadline is reached.
    fn look(&mut self) {}
}
