//! Aggregation: turns readings into tables, and tables into derived metrics and statistics. Pure: no I/O, no
//! kernel calls, no formatting.
//!
//! Receives plain readings from a command and returns read-only [`counts::StatCounts`] for `view`.

pub mod annotate;
pub mod catalog;
pub mod counts;
pub mod diff;
pub mod gate;
pub mod header;
pub mod machine;
pub mod metrics;
pub mod parts;
pub mod repeats;
pub mod sampled;
pub mod script;
pub mod sharing;
pub mod statistics;
pub mod tally;
pub mod versus;
