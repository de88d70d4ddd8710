//! The measuring engine: turns a plan into a file, live batches, or counts.
//!
//! ```text
//!   SamplePlan ──► open: Rings ──┬─► file: a recording ── FilePlan: path, maximum size, rotation
//!                                └─► live: batches, settled into the current state ─────► top
//!   Setup ───────► CounterSet ─────► counting: readings, shown at each interval ────────► stat
//!                                         all three driven by drive: the one loop
//! ```
//! Commands turn their arguments into plans ([`plan`]) and pass them in. This module opens the events
//! ([`open`]) and starts the command ([`launch`]). It decides when rings are drained and when the measurement
//! ends ([`ending`]), and warns about features that are not available. This module connects measuring and
//! reading: it turns measurements into records that the code for reading understands. Commands pass in
//! observers that display the results, and `analysis` reads recordings.

pub(crate) mod attached;
mod beside;
pub(crate) mod control;
pub(crate) mod counting;
mod drive;
mod ended_threads;
mod ending;
pub(crate) mod file;
pub(crate) mod filters;
pub(crate) mod handover;
mod held_counts;
pub(crate) mod launch;
pub(crate) mod live;
pub(crate) mod live_rate;
mod misattributed_samples;
mod new_threads;
pub(crate) mod no_samples;
pub(crate) mod open;
pub(crate) mod output_pipe;
pub(crate) mod plan;
mod relay;
pub(crate) mod reservation;
pub(crate) mod runtime;
pub(crate) mod sources;
pub(crate) mod synthesize;
pub(crate) mod targets;
pub(crate) mod time_slices;
pub(crate) mod trace;
mod unwinding;
