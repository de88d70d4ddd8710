//! Resolves event text and opens performance counters.
//!
//! - [`event`]: resolves event text, as perf and FreeBSD write it, into `perf_event_attr`.
//! - [`hint`]: what may help if an event cannot be used.
//! - [`counter`]: opens counters, groups and sampling rings for a target, and explains the kernel's refusals.

#![forbid(unsafe_code)]

pub mod counter;
pub mod event;
pub mod hint;
#[cfg(test)]
#[path = "../../../tests/kit/unit.rs"]
mod kit;
