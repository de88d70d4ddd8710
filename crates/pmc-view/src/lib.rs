//! Formats results: as tables for human readers, and as CSV, JSON and OpenMetrics for programs. The data
//! comes from `profile`; the views measure nothing.

#![forbid(unsafe_code)]
#![allow(missing_docs, clippy::missing_errors_doc, reason = "only pmc uses this crate")]

pub mod agent;
pub mod annotate;
pub mod compare;
pub mod diff;
pub mod gate;
pub mod header;
pub mod info;
pub mod list;
pub mod listings;
pub mod openmetrics;
pub mod page;
pub mod probe;
mod remarks;
pub mod report;
pub mod script;
pub mod stat;
pub mod top;
