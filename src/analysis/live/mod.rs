//! From the live state to answers: what `pmc top` shows.
//!
//! ```text
//! Live ─┬─► names (thread) ─► NameTable ─┐
//!       └────────────────────────────────┴─► snapshot ─► a query's answer │ row history │ listing │ file
//! ```
//! Receives a [`LiveState`](crate::session::live::LiveState) that somebody fills; hands on snapshots that
//! queries are answered from, the history of rows, the code of functions with its weights, and a snapshot as
//! a recording. Waits for nothing; leaves to `command` when somebody looks, and where it is shown.

pub mod export;
pub mod listing;
pub mod names;
pub mod row_history;
pub mod snapshot;
