//! A bar on the terminal for whatever takes longer than half a second. Nothing is drawn elsewhere.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::terminal::Stream;

/// Shorter work shows nothing.
const PATIENCE: Duration = Duration::from_millis(500);

/// Progress of one piece of work.
pub(super) struct Progress {
    what: &'static str,
    total: u64,
    began: Instant,
    bar: OnceLock<ProgressBar>,
    on_terminal: bool,
}

impl Progress {
    pub(super) fn new(what: &'static str, total: u64) -> Self {
        Self {
            what,
            total,
            began: Instant::now(),
            bar: OnceLock::new(),
            on_terminal: Stream::Error.is_screen(),
        }
    }

    fn bar(&self) -> Option<&ProgressBar> {
        if !self.on_terminal || self.began.elapsed() < PATIENCE {
            return None;
        }
        Some(self.bar.get_or_init(|| {
            let bar = ProgressBar::with_draw_target(Some(self.total), ProgressDrawTarget::stderr_with_hz(10));
            let style = ProgressStyle::with_template("{msg} [{bar:30}] {percent} %, {eta} left");
            if let Ok(style) = style {
                bar.set_style(style);
            }
            bar.set_message(self.what);
            bar
        }))
    }

    /// So much more is done.
    pub(super) fn more(&self, count: u64) {
        if let Some(bar) = self.bar() {
            bar.inc(count);
        }
    }

    /// So much of so much is done.
    pub(super) fn at(&self, done: u64, total: u64) {
        if let Some(bar) = self.bar() {
            bar.set_length(total);
            bar.set_position(done);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}
