//! Queries on the live state. They provide the data that `pmc top` shows.
//!
//! ```text
//! Live ─┬─► names (thread) ─► NameTable ─┐
//!       └────────────────────────────────┴─► snapshot ─► a query's answer │ row history │ listing │ file
//! ```
//! Receives a [`LiveState`](crate::session::live::LiveState) that the sampler fills. Returns snapshots that
//! answer queries, the history of rows, annotated code, and snapshots as recordings. Never blocks; `command`
//! decides when to take a snapshot and where to show the result.

pub mod export;
pub mod listing;
pub mod names;
pub mod row_history;
pub mod snapshot;
