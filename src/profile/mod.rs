//! Aggregation: readings become tables, tables become derived metrics and statistics. Pure: no I/O, no kernel, no
//! formatting.
//!
//! Receives plain readings from a command; hands read-only [`counts::Counts`] to `view`.

pub mod counts;
pub mod tally;
pub mod machine;
