//! Decides when the measurement of running tasks begins.
//!
//! Opening and starting the events of many threads takes a while, during which some threads are measured and
//! others are not. The waits of threads whose events are still off would have no reason. Therefore the window
//! begins when all events are on, and the worker knows what each thread waits for.
//!
//! ```text
//!   events:  open │ start one by one │ read the stacks of waiting threads │ samples, switches, waits ···
//!   rings:                           │ drain, drain, ···                  ▲ begin_window returns this time
//! ```

use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use super::Recorder;
use crate::recording::unwinding::gone;
use pmc_sys::error::Result;
use pmc_sys::sys::clock::monotonic_ns;

/// Interval at which to drain the rings until the window begins.
const PACE: Duration = Duration::from_millis(5);

impl Recorder<'_> {
    /// Waits until the window begins, and returns this time. A command does not run yet, so its window begins
    /// immediately.
    pub(super) fn wait_for_window(&mut self) -> Result<u64> {
        if self.failed.is_some() || self.roots.is_empty() {
            return Ok(monotonic_ns());
        }
        let Some(begun) = self.output.begin_window() else { return Ok(monotonic_ns()) };
        loop {
            // Many switches while the events are started say nothing about the measurement.
            self.drain_with(|_, _, _| Ok(()))?;
            match begun.recv_timeout(PACE) {
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(gone()),
                Ok(start) => {
                    self.output.restart_thinning(true);
                    self.output.losses.begin(&self.sources.read());
                    return Ok(start);
                }
            }
        }
    }
}
