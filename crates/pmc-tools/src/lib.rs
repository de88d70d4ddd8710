//! The tools that replay events, one folder each, with its options, engine, text and JSON.

#![forbid(unsafe_code)]
#![allow(missing_docs, clippy::missing_errors_doc, reason = "only pmc uses this crate")]

pub mod latency;
pub mod lock;
pub mod sched;
pub mod trace;
