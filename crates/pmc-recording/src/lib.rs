//! Measures: from a plan to a recording, to live batches, or to counts.
//!
//! - [`recording`]: the measurement loop and what it serves.
//! - [`persistent`]: the protocol between the holder of persistent events and its clients.
//! - [`holder`]: the process that keeps events open for others.

pub mod holder;
#[cfg(test)]
#[path = "../../../tests/kit/unit.rs"]
mod kit;
pub mod persistent;
pub mod recording;
