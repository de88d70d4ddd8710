//! The measuring engine: from a plan to a file, to live batches, or to counts.
//!
//! ```text
//!   SamplePlan ──► open: Rings ──┬─► file: a recording ── FilePlan: where, how large, when the next begins
//!                                └─► live: batches, settled into what is known of now ──► top
//!   Setup ───────► CounterSet ─────► counting: readings, shown at each interval ───────► stat
//!                                         all three driven by drive: the one loop
//! ```
//! Receives plans ([`plan`]) that commands have made of what was typed; opens events ([`open`]), starts the
//! command ([`launch`]), and decides when rings are drained, when it is over ([`ending`]) and what is said of
//! what could not be had. The two wings meet here: what is measured is turned into records that the reading
//! wing understands. Leaves what is shown of it to the observers that commands hand in, and reading of
//! recordings to `analysis`.

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
