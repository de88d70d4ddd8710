//! The interface between the screen and an engine that provides samples.
//!
//! An engine (the recording loader, or the live view) works in its own threads, so the screen never waits. It
//! puts updates on the [`Board`](super::board::Board) and wakes the screen with the [`Waker`], so no thread
//! has to poll.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Instant;

use pmc_analysis::profile::annotate::Listing;
use pmc_analysis::profile::sampled::{FunctionRef, Query, QueryAnswer};
use pmc_formats::export::ExportFormat;
use pmc_sys::error::{Error, Result};

/// Commands for a live engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveCommand {
    /// Reset all counts.
    Zero,
    /// Pause or resume updates. While paused, the screen keeps its contents.
    Freeze,
    /// Toggle between giving old samples less weight and adding up all samples.
    Decay,
    /// Halve (`false`) or double (`true`) the refresh rate.
    Faster(bool),
    /// Halve (`false`) or double (`true`) the sampling rate of the shown event.
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

/// Progress of a long task.
#[derive(Debug, Clone, PartialEq)]
pub struct JobProgress {
    /// Description of the task, such as "reading samples".
    pub what: &'static str,
    /// Amount of work done.
    pub done: u64,
    /// Total amount of work; 0 if unknown.
    pub total: u64,
}

/// Shares of the time of all CPUs, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CpuTimeSplit {
    /// Kernel mode.
    pub kernel: f64,
    /// User mode.
    pub user: f64,
    pub idle: f64,
}

/// Information in the header.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EngineStatus {
    /// The source of samples: a file name, "all CPUs" or "pid 17". Untrusted text.
    pub title: String,
    /// Whether the engine is sampling and supports live commands.
    pub is_live: bool,
    /// Progress of the current task, if any.
    pub progress: Option<JobProgress>,
    /// Samples per second.
    pub rate: Option<f64>,
    /// Number of lost samples.
    pub lost: u64,
    /// Number of warnings at the beginning of `notes`.
    pub warnings: usize,
    /// Where the CPUs spent their time.
    pub split: Option<CpuTimeSplit>,
    /// CPU usage of pmc itself; 1 means one full CPU.
    pub own_cpu: Option<f64>,
    /// Memory usage of pmc itself, in bytes.
    pub own_memory: Option<u64>,
    /// Whether updates are paused.
    pub frozen: bool,
    /// Why no samples arrive, either temporarily or permanently.
    pub halted: Option<&'static str>,
    /// How long older samples count, as text for the user.
    pub retention: &'static str,
    /// Notes about the data, most serious first. Untrusted text.
    pub notes: Vec<String>,
}

/// Updates since the screen last polled.
#[derive(Debug, Default)]
pub struct EngineUpdates {
    /// The answer to the last query, either its first one or one that includes newer samples.
    pub answer: Option<Arc<QueryAnswer>>,
    /// New information for the header.
    pub status: Option<EngineStatus>,
    /// A function's code, or the reason why it is not available.
    pub listing: Option<(FunctionRef, Result<Arc<Listing>, String>)>,
    /// The function whose code the screen shows first. An empty name selects the most expensive function; an
    /// empty module matches any module.
    pub opens: Option<FunctionRef>,
    /// A function's periods over time, oldest first.
    pub history: Option<(FunctionRef, Vec<u64>)>,
    /// Result of a command or an export: a sentence to show in the last line.
    pub said: Option<String>,
    /// The error that stopped the engine.
    pub failed: Option<Error>,
}

/// Wakes the screen. Cheap to clone; may be called from any thread.
#[derive(Debug, Clone)]
pub struct Waker(pub(super) Sender<super::ScreenMessage>);

impl Waker {
    /// Tells the screen that an update is available.
    pub fn wake(&self) {
        // Fails only if the screen has ended.
        let _ = self.0.send(super::ScreenMessage::Woken);
    }

    /// Tells the screen that the engine's time limit has been reached.
    pub(super) fn end(&self) {
        let _ = self.0.send(super::ScreenMessage::Quit);
    }

    /// Tells the screen that a fatal signal has arrived.
    pub fn end_by(&self, signal: i32) {
        let _ = self.0.send(super::ScreenMessage::EndBy(signal));
    }

    /// Tells the screen that the terminal was resized.
    pub fn resized(&self) {
        let _ = self.0.send(super::ScreenMessage::Resized);
    }

    /// Tells the screen to suspend the program, after a SIGTSTP from outside.
    pub fn stop(&self) {
        let _ = self.0.send(super::ScreenMessage::Stop);
    }
}

/// A source of samples. Its methods run in the job thread ([`board::serve`](super::board::serve)), so they
/// may be slow.
pub trait Engine {
    /// Sets the query that subsequent calls answer.
    fn ask(&mut self, query: Query);

    /// Returns the answer to the query; `None` while there is no data.
    fn answer(&mut self) -> Option<Arc<QueryAnswer>>;

    /// Returns a function's own periods over time, oldest first.
    fn history(&mut self, function: &FunctionRef) -> Option<Vec<u64>>;

    /// Starts to get a function's code with its costs; the code is put on the board when it is ready.
    fn annotate(&mut self, function: FunctionRef);

    /// Writes the view of the last query to a new file.
    ///
    /// # Errors
    /// Fails if writing fails, or if the view cannot be exported in this format.
    fn export(&mut self, form: ViewFormat, path: &Path) -> Result<()>;

    /// Runs the command. Returns a message to show in the last line, if any.
    fn command(&mut self, command: LiveCommand) -> Option<String>;

    /// The time at which [`on_deadline`](Engine::on_deadline) must be called.
    fn deadline(&self) -> Option<Instant> {
        None
    }

    /// Called when the deadline is reached.
    fn on_deadline(&mut self) {}
}
