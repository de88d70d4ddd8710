//! The scheduler's events: delays, histories and maps.
//!
//! [`SchedRecording::latency`] sums up the delays of each task, [`SchedRecording::timehist`] visits each run
//! of a task, and [`SchedRecording::map`] visits each switch.
//!
//! ```text
//!   records in time order ── events ── machine (interval engines per task) ── latency, timehist, map
//! ```

mod chains;
mod events;
mod latency;
mod machine;
mod map;
mod replay;
mod timehist;

use std::sync::Arc;

pub use latency::SchedLatencyRequest;
pub use map::MapRequest;
pub use timehist::TimehistRequest;

use crate::session::Session;
use events::SchedDecoder;
use pmc_sys::error::Result;

/// A recording with scheduler events.
#[derive(Debug)]
pub struct SchedRecording {
    session: Arc<Session>,
    decoder: SchedDecoder,
}

impl SchedRecording {
    /// # Errors
    /// Fails if the recording has no scheduler events.
    pub fn new(session: Arc<Session>) -> Result<Self> {
        let decoder = SchedDecoder::new(&session)?;
        Ok(Self { session, decoder })
    }
}
