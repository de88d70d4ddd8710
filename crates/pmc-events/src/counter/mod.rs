//! Performance counters: requesting, opening, counting and sampling.
//!
//! ```text
//! EventSpec --allocate(mode, flags, cpu)--> Request --open(slot)--> event | Refusal
//!                                             | drops the refused parts: open::FALLBACKS
//! ```
//! Every request comes from [`allocate`], like FreeBSD's `pmc_allocate(3)`, and is opened by
//! [`OpenRequest::open`]. These modules use them:
//!
//! - [`counter_set`] counts, and [`rings`] samples.
//! - [`open::OpenCache`] checks for `pmc list` which events can be opened.
//! - [`capability`] and [`core_counters`] open trial events for `pmc info`.
//! - [`fit`] determines which groups fit on the counters at the same time.
//!
//! [`target`] determines where to count. If an event cannot be opened, the result is a [`refusal::Refusal`],
//! which uses [`facts`] about the machine to explain the reason.

pub mod capability;
pub mod change;
pub mod core_counters;
pub mod counter_set;
pub mod facts;
pub mod filters;
pub mod fit;
pub mod inherited_probes;
pub mod metric_events;
pub mod open;
pub mod refusal;
pub mod request;
pub mod reservation;
pub mod rings;
pub(crate) mod schedule;
pub mod target;

pub use request::{CounterFlags, Levels, Mode, OpenRequest, allocate};
