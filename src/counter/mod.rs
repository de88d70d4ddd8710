//! Requests to running counters.
//!
//! ```text
//! EventSpec --allocate(mode, flags, cpu)--> Request --open(slot)--> event | Refusal
//!                                             | gives up what the kernel will not have: open::FALLBACKS
//! ```
//! [`allocate`] is the one way to a request, as FreeBSD's `pmc_allocate(3)` is, and [`Request::open`] the one
//! door to the kernel. Through it go counting ([`counter_set`]), sampling ([`rings`]), the trials of `pmc
//! list` ([`open::OpenCache`]) and of `pmc info` ([`capability`], [`core_counters`]), and the search for what
//! fits on the counters at once ([`fit`]). [`target`] says where to count; what is refused is a
//! [`refusal::Refusal`], which `facts` put into words.

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
pub mod schedule;
pub mod target;

pub use request::{Flags, Levels, Mode, Request, allocate};
