//! What a recording says of itself: labels and values in the order in which they are shown, its events, its
//! build-ids.

use serde::Serialize;

/// The form of the JSON document; grows when a field changes its meaning.
pub const VERSION: u32 = 1;

/// A recording's own words. All texts are foreign.
#[derive(Debug, Default, Serialize)]
pub struct Recording {
    /// [`VERSION`].
    pub version: u32,
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

/// What other formats say of a recording, by perf's names for them.
#[derive(Debug, Default)]
pub struct Conversion {
    /// When the file was last changed, in seconds since 1970.
    pub captured_on: Option<u64>,
    /// Offsets, sizes, numbers of CPUs.
    pub numbers: Vec<(&'static str, u64)>,
    /// Names; foreign text.
    pub texts: Vec<(&'static str, String)>,
    /// The recorder's command line; foreign text.
    pub cmdline: Option<Vec<String>>,
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
    /// `sample_freq` in hertz, or `sample_period`.
    pub period: u64,
    /// Whether it is the frequency.
    pub is_freq: bool,
    /// Number of events in the group that this one leads; 1 for all others.
    pub members: usize,
    /// The group's own name; mostly empty.
    pub group: String,
    /// Names of the fields of a tracepoint whose format the recording has.
    pub trace_fields: Option<Vec<String>>,
}

/// A thread that was seen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Task {
    /// Its process.
    pub pid: i32,
    /// Itself.
    pub tid: i32,
    /// The process that made it, where that was recorded.
    pub parent: Option<i32>,
    /// Its last name; foreign text.
    pub comm: String,
    /// What its process had mapped in the end, code only.
    pub maps: Vec<Mapping>,
}

/// A mapping.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// First address behind it.
    pub end: u64,
    /// Offset in the file.
    pub offset: u64,
    /// The file; foreign text.
    pub path: String,
}

/// What a thread's counter said when the thread ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Count {
    /// The process.
    pub pid: i32,
    /// The thread.
    pub tid: i32,
    /// The event's name; foreign text.
    pub event: String,
    /// Occurrences.
    pub value: u64,
}
