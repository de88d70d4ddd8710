//! Counters, from requests to readings.
//!
//! ```text
//! EventSpec --allocate(mode, flags, cpu)--> Request --open(slot)--> event | Refusal
//!                                             | gives up what the kernel will not have: open::FALLBACKS
//! ```
//! Every request comes from [`allocate`], like FreeBSD's `pmc_allocate(3)`, and [`Request::open`] makes
//! every call to the kernel. Its users are counting ([`counter_set`]), sampling ([`rings`]), the trials of
//! `pmc list` ([`open::OpenCache`]) and of `pmc info` ([`capability`], [`core_counters`]), and the search
//! for groups that fit on the counters together ([`fit`]). [`target`] determines where to count. An event
//! that cannot be opened yields a [`refusal::Refusal`], which `facts` help to explain.

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
