//! Counters, from requests to readings.
//!
//! ```text
//! EventSpec --allocate(mode, flags, cpu)--> Request --open(slot)--> event | Refusal
//!                                             | gives up the refused parts: open::FALLBACKS
//! ```
//! Every request comes from [`allocate`], like FreeBSD's `pmc_allocate(3)`, and is opened by
//! [`OpenRequest::open`]. These modules use them:
//!
//! - [`counter_set`] counts, and [`rings`] samples.
//! - [`open::OpenCache`] opens events for trial in `pmc list`.
//! - [`capability`] and [`core_counters`] open events for trial in `pmc info`.
//! - [`fit`] finds the groups that fit on the counters together.
//!
//! [`target`] determines where to count. An event that cannot be opened yields a [`refusal::Refusal`],
//! which `facts` help to explain.

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
