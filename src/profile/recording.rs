//! What a recording says of itself: labels and values in the order in which they are shown, its events, its build-ids.

use serde::Serialize;

/// A recording's own words. All texts are foreign.
#[derive(Debug, Default, Serialize)]
pub struct Recording {
    /// perf's labels, such as `hostname`, and what stands there.
    pub facts: Vec<(String, String)>,
    /// The events.
    pub events: Vec<EventAsked>,
    /// Build-id in hexadecimal, and the file.
    pub build_ids: Vec<(String, String)>,
    /// Number of records of each kind; empty where they were not counted.
    pub records: Vec<(String, u64)>,
    /// What is worth knowing about the file.
    pub notes: Vec<String>,
}

/// An event as it was asked for.
#[derive(Debug, Default, Serialize)]
pub struct EventAsked {
    /// Its name.
    pub name: String,
    /// Ids of its instances.
    pub ids: Vec<u64>,
    /// The attr's fields that are not zero.
    pub attr: Vec<(String, String)>,
}
