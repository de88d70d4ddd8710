//! Resolves event text and opens performance counters.
//!
//! - [`event`]: resolves event text, as perf and FreeBSD write it, into `perf_event_attr`.
//! - [`counter`]: opens counters, groups and sampling rings for a target, and explains the kernel's refusals.

#![forbid(unsafe_code)]

pub mod counter;
pub mod event;
#[cfg(test)]
#[path = "../../../tests/kit/unit.rs"]
mod kit;
