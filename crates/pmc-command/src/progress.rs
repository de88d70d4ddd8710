//! A progress bar for tasks that take longer than half a second.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use pmc_analysis::analysis::{ProgressMeter, ProgressSink};
use pmc_sys::error::say;
use pmc_text::terminal::Stream;

/// Minimum duration of a task before the bar appears.
const PATIENCE: Duration = Duration::from_millis(500);

/// Shows the progress of each task as a bar.
pub struct Bars;

impl ProgressSink for Bars {
    fn begin(&self, what: &'static str, total: u64) -> Box<dyn ProgressMeter + '_> {
        let on_terminal = Stream::Error.is_screen() && !say::is_held();
        Box::new(Bar { what, total, began: Instant::now(), bar: OnceLock::new(), on_terminal })
    }
}

/// The progress of one task.
struct Bar {
    what: &'static str,
    total: u64,
    began: Instant,
    bar: OnceLock<ProgressBar>,
    on_terminal: bool,
}

impl Bar {
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
}

impl ProgressMeter for Bar {
    fn more(&self, count: u64) {
        if let Some(bar) = self.bar() {
            bar.inc(count);
        }
    }

    fn at(&self, done: u64, total: u64) {
        if let Some(bar) = self.bar() {
            bar.set_length(total);
            bar.set_position(done);
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}
