//! Formats results: as tables for human readers, and as CSV, JSON and OpenMetrics for programs. The data
//! comes from `profile`; the views measure nothing.

pub(crate) mod agent;
pub(crate) mod annotate;
pub(crate) mod compare;
pub(crate) mod diff;
pub mod export;
pub mod gate;
pub(crate) mod header;
pub(crate) mod info;
mod json_document;
pub(crate) mod latency;
pub(crate) mod list;
pub(crate) mod listings;
pub(crate) mod lock;
pub mod openmetrics;
pub(crate) mod persist;
pub(crate) mod pmcstat;
pub(crate) mod probe;
mod remarks;
pub(crate) mod report;
pub(crate) mod sched;
pub(crate) mod script;
pub mod stat;
mod table;
pub(crate) mod top;
pub(crate) mod trace;
