//! Events that stay open between measurements: `pmc persist`, `pmc start` and `pmc stop`.
//!
//! ```text
//!   options ──► run: requests over a socket ──► holder: keeps events and rings open, publishes, answers
//!                └─ adopt, background_counters, text
//! ```
//! The protocol, the run directory and its clients are in [`pmc_recording::persistent`], because `stat` and
//! `record` measure held events too.

#![forbid(unsafe_code)]
#![allow(missing_docs, clippy::missing_errors_doc, reason = "only pmc uses this crate")]

mod adopt;
mod answers;
mod background_counters;
pub mod holder;
#[cfg(test)]
#[path = "../../../tests/kit/unit.rs"]
mod kit;
pub mod options;
pub mod run;
mod text;
