//! The measuring engine: turns a plan into a file, live batches, or counts.
//!
//! Opens the events ([`open`]), starts the command ([`launch`]), decides when rings are drained and when the
//! measurement ends ([`ending`]). Its output consists of records that the reading code understands; observers
//! from the commands display the results.
//!
//! ```text
//!   SamplePlan ──► open: Rings ──┬─► file: a recording ── FilePlan: path, maximum size, rotation ─► record
//!                                ├─► live: batches, merged into the live state ─────────► top
//!                                └─► stream: records in time order ─────────────────────► trace
//!   CountPlan ───► CounterSet ─────► counting: readings, shown at each interval ────────► stat
//!                                        drive runs all of them in one loop
//! ```

pub mod attached;
mod combined;
pub mod control;
pub mod counting;
mod drive;
pub mod ended_at_exec;
mod ended_threads;
mod ending;
pub mod file;
pub mod filters;
pub mod handover;
mod held_counts;
pub mod launch;
pub mod live;
pub mod live_rate;
mod misattributed_samples;
mod new_threads;
pub mod no_samples;
pub mod off_cpu;
pub mod open;
pub mod output_pipe;
pub mod plan;
pub mod record;
mod relay;
pub mod reservation;
mod ring_limit;
pub mod ring_size;
pub mod runtime;
pub mod sources;
pub mod stat_request;
pub mod stream;
pub mod synthesize;
pub mod targets;
pub mod time_slices;
pub mod trace;
mod unwinding;
pub mod warning;
