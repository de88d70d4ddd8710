//! Results as text: tables for people; CSV, JSON and OpenMetrics for programs. Reads the data of `profile`
//! and measures nothing.

pub mod annotate;
pub mod diff;
pub mod export;
pub mod header;
pub mod info;
mod json_document;
pub mod list;
pub mod listings;
pub mod openmetrics;
pub mod persist;
pub mod pmcstat;
mod remarks;
pub mod report;
pub mod script;
pub mod stat;
mod table;
pub mod top;
