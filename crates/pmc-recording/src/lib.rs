//! Runs measurements: turns a plan into a recording, live batches, or counts.
//!
//! - [`recording`]: the measurement loop, and the measurements that it runs.
//! - [`persistent`]: the protocol between the holder of persistent events and its clients.

#![forbid(unsafe_code)]

#[cfg(test)]
#[path = "../../../tests/kit/unit.rs"]
mod kit;
pub mod persistent;
pub mod recording;
