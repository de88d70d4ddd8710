//! Results as text: tables for human readers; CSV, JSON and OpenMetrics for programs. Formats data from
//! `profile` and measures nothing.

pub(crate) mod annotate;
pub(crate) mod diff;
pub mod export;
pub(crate) mod header;
pub(crate) mod info;
mod json_document;
pub(crate) mod list;
pub(crate) mod listings;
pub mod openmetrics;
pub(crate) mod persist;
pub(crate) mod pmcstat;
mod remarks;
pub(crate) mod report;
pub(crate) mod script;
pub mod stat;
mod table;
pub(crate) mod top;
