//! What the screen asks for and what it is given: the contract between the screen and whoever has samples.
//!
//! An engine (a recording that is being read, the live view) does its work in threads of its own: none of these calls
//! waits. Its answers lie ready when it is polled; whenever something new lies there it says so through the [`Waker`], so
//! that nobody looks at a clock meanwhile.
//!
//! ```text
//!    screen ── ask, annotate, history, export, command ──> engine ── its threads
//!      ^                                                      |
//!      '── wake ── poll: answer, status, listing, … <─────────'
//! ```

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use crate::profile::annotate::Listing;
use crate::profile::sampled::{Answer, Query};

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
}

/// In which form a view is written to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportForm {
    /// One line a stack, as flame graph programs read it.
    Folded,
    /// The JSON document of `pmc report --json`.
    Json,
    /// A recording.
    PerfData,
}

/// What a function is called while its name is still being looked for.
pub const PENDING: &str = "…";

/// A function, by its names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Spot {
    /// Its module's short name.
    pub dso: String,
    /// Its name.
    pub symbol: String,
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
    /// Nothing is counted at the moment.
    pub frozen: bool,
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
    pub listing: Option<(Spot, Result<Arc<Listing>, String>)>,
    /// The screen begins with the code of this function; no name stands for the costliest, no module for any.
    pub opens: Option<Spot>,
    /// A function's periods by time, oldest first.
    pub history: Option<(Spot, Vec<u64>)>,
    /// What became of a command or an export: a sentence for the last line.
    pub said: Option<String>,
    /// The engine cannot go on; why.
    pub failed: Option<String>,
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

/// Whoever has samples.
pub trait Engine {
    /// What is new. Called when woken.
    fn poll(&mut self) -> Poll;

    /// Answer this from now on; a query that came before needs no answer any more.
    fn ask(&mut self, query: &Query);

    /// Bring a function's code with its weights.
    fn annotate(&mut self, spot: &Spot);

    /// Bring a function's own periods by time.
    fn history(&mut self, spot: &Spot);

    /// Write what the last query shows. What became of it comes with a poll.
    fn export(&mut self, form: ExportForm, path: PathBuf);

    /// Do this.
    ///
    /// # Errors
    /// When the engine cannot: why, for the last line.
    fn command(&mut self, command: LiveCommand) -> Result<(), String>;
}
