//! The interface between the screen and an engine that provides samples.
//!
//! An engine (a recording being read, or the live view) works in separate threads, so that the screen never
//! waits. It puts updates on the [`Board`](super::board::Board) and wakes the screen with the [`Waker`], so
//! that no thread polls.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Instant;

use crate::view::export::ExportFormat;
use pmc_analysis::profile::annotate::Listing;
use pmc_analysis::profile::sampled::{FunctionRef, Query, QueryAnswer};
use pmc_sys::error::{Error, Result};

/// Commands for a live engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveCommand {
    /// Clear all counts so far.
    Zero,
    /// Pause or resume updates; the screen keeps its contents.
    Freeze,
    /// Toggle between fading old samples and adding up all samples.
    Decay,
    /// Refresh half as often (`false`) or twice as often (`true`).
    Faster(bool),
    /// Sample the shown event half as often (`false`) or twice as often (`true`).
    SampleMore(bool),
}

/// File format of an exported view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewFormat {
    /// A format of `pmc export`.
    Format(ExportFormat),
    /// A recording.
    PerfData,
}

/// Progress of work.
#[derive(Debug, Clone, PartialEq)]
pub struct JobProgress {
    /// The kind of work: "reading samples".
    pub(crate) what: &'static str,
    /// Amount of work done.
    pub(crate) done: u64,
    /// Total amount of work; 0 if unknown.
    pub(crate) total: u64,
}

/// Shares of all CPUs' time, 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CpuTimeSplit {
    /// Kernel mode.
    pub(crate) kernel: f64,
    /// User mode.
    pub(crate) user: f64,
    pub(crate) idle: f64,
}

/// Facts in the header.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EngineStatus {
    /// The source of samples: the file, "all CPUs", "pid 17". Untrusted text.
    pub title: String,
    /// Whether the engine is sampling and supports live commands.
    pub is_live: bool,
    /// Progress of the current work, if any.
    pub progress: Option<JobProgress>,
    /// Samples per second.
    pub rate: Option<f64>,
    /// Number of lost samples.
    pub lost: u64,
    /// Where the CPUs spent their time.
    pub split: Option<CpuTimeSplit>,
    /// CPU usage of this program; 1 is one whole CPU.
    pub own_cpu: Option<f64>,
    /// Memory of this program in bytes.
    pub own_memory: Option<u64>,
    /// Whether updates are paused.
    pub frozen: bool,
    /// Why no more samples arrive, temporarily or permanently.
    pub halted: Option<&'static str>,
    /// Whether old samples fade.
    pub decays: bool,
    /// Notes on the data, worst first. Untrusted text.
    pub notes: Vec<String>,
}

/// Updates since the last poll.
#[derive(Debug, Default)]
pub struct EngineUpdates {
    /// The answer to the last query, new or updated with newer samples.
    pub answer: Option<Arc<QueryAnswer>>,
    /// New facts for the header.
    pub status: Option<EngineStatus>,
    /// A function's code, or the reason why it is not available.
    pub listing: Option<(FunctionRef, Result<Arc<Listing>, String>)>,
    /// The function whose code the screen shows first. An empty name selects the most expensive function, an
    /// empty module matches any.
    pub opens: Option<FunctionRef>,
    /// A function's periods over time, oldest first.
    pub history: Option<(FunctionRef, Vec<u64>)>,
    /// Result of a command or an export: a sentence for the last line.
    pub said: Option<String>,
    /// The error that ended the engine.
    pub failed: Option<Error>,
}

/// Wakes the screen. Cheap to clone; may be called from any thread.
#[derive(Debug, Clone)]
pub struct Waker(pub(super) Sender<super::ScreenMessage>);

impl Waker {
    /// Tells the screen that an update is available.
    pub(crate) fn wake(&self) {
        // Fails only if the screen has ended.
        let _ = self.0.send(super::ScreenMessage::Woken);
    }

    /// Tells the screen that the engine's time has run out.
    pub(super) fn end(&self) {
        let _ = self.0.send(super::ScreenMessage::Quit);
    }

    /// Tells the screen that a signal ends it.
    pub(crate) fn end_by(&self, signal: i32) {
        let _ = self.0.send(super::ScreenMessage::EndBy(signal));
    }

    /// Tells the screen that the terminal was resized.
    pub(crate) fn resized(&self) {
        let _ = self.0.send(super::ScreenMessage::Resized);
    }

    /// Tells the screen to stop the program (external SIGTSTP).
    pub(crate) fn stop(&self) {
        let _ = self.0.send(super::ScreenMessage::Stop);
    }
}

/// A source of samples. It runs in its job thread ([`board::serve`](super::board::serve)), so its methods may
/// be slow.
pub trait Engine {
    /// Sets the query to answer from now on.
    fn ask(&mut self, query: Query);

    /// Returns the answer to the query; `None` while there is no data.
    fn answer(&mut self) -> Option<Arc<QueryAnswer>>;

    /// Returns a function's own periods over time, oldest first.
    fn history(&mut self, function: &FunctionRef) -> Option<Vec<u64>>;

    /// Gets a function's code with its costs, and puts it on the board when it is ready.
    fn annotate(&mut self, function: FunctionRef);

    /// Writes the view of the last query to a new file.
    ///
    /// # Errors
    /// Fails if writing fails or if the view cannot be exported in this form.
    fn export(&mut self, form: ViewFormat, path: &Path) -> Result<()>;

    /// Runs the command. Returns a message for the last line, if any.
    fn command(&mut self, command: LiveCommand) -> Option<String>;

    /// Time at which the engine needs a call of [`look`](Engine::look).
    fn deadline(&self) -> Option<Instant> {
        None
    }

    /// Called when the deadline is reached.
    fn look(&mut self) {}
}
