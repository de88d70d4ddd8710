//! Queries on the live state, which provide the data for `pmc top`.
//!
//! ```text
//! Live ─┬─► names (thread) ─► NameTable ─┐
//!       └────────────────────────────────┴─► snapshot ─► a query's answer │ row history │ listing │ file
//! ```
//! Takes snapshots of a [`LiveState`](crate::session::live::LiveState), to which the sampler adds samples.
//! Snapshots answer queries, provide row histories and annotated code, and can be exported as recordings.
//! Never blocks; `command` decides when to take a snapshot and where to show it.

pub mod export;
pub mod listing;
pub mod names;
pub mod row_history;
pub mod snapshot;
