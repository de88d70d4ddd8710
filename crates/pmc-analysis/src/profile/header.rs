//! The metadata that a recording contains: labels and values in display order, events, and build IDs.

use serde::Serialize;

use pmc_perfdata::record::MappingAccess;

/// Version of the JSON document; incremented when a field changes its meaning.
pub(crate) const VERSION: u32 = 1;

/// The metadata that a recording contains. All strings are untrusted.
#[derive(Debug, Default, Serialize)]
pub struct RecordingHeader {
    /// [`VERSION`].
    pub(crate) version: u32,
    /// perf's labels, such as `hostname`, and their values.
    pub facts: Vec<(String, String)>,
    /// The events.
    pub events: Vec<RequestedEvent>,
    /// Build IDs in hexadecimal, each with the path of its file.
    pub build_ids: Vec<(String, String)>,
    /// Number of records of each kind; empty if they were not counted.
    pub records: Vec<(String, u64)>,
    /// Notes about the file.
    pub notes: Vec<String>,
    /// Numbers of items that [`RecordingHeader::cut`] removed.
    pub omitted: OmittedHeaderItems,
}

/// Numbers of items that were cut off the lists of a [`RecordingHeader`].
#[derive(Debug, Default, Serialize)]
pub struct OmittedHeaderItems {
    /// Number of removed [`RecordingHeader::events`].
    pub events: usize,
    /// Number of removed [`RecordingHeader::build_ids`].
    pub build_ids: usize,
}

impl RecordingHeader {
    /// Cuts the lists that grow with the recording to `most` items: events, their IDs, and build IDs.
    pub fn cut(&mut self, most: usize) {
        self.omitted.events += cut(&mut self.events, most);
        self.omitted.build_ids += cut(&mut self.build_ids, most);
        for event in &mut self.events {
            event.omitted.ids += cut(&mut event.ids, most);
        }
    }
}

/// Cuts a list to `most` items. Returns the number of removed items.
fn cut<T>(list: &mut Vec<T>, most: usize) -> usize {
    let removed = list.len().saturating_sub(most);
    list.truncate(most);
    removed
}

/// The metadata of a recording that was converted from another format, under perf's names.
#[derive(Debug, Default)]
pub struct ConversionInfo {
    /// Modification time of the file, in seconds since 1970.
    pub captured_on: Option<u64>,
    /// Numeric metadata: offsets, sizes, numbers of CPUs.
    pub numbers: Vec<(&'static str, u64)>,
    /// Textual metadata, such as the host name; untrusted text.
    pub texts: Vec<(&'static str, String)>,
    /// The recorder's command line; untrusted text.
    pub cmdline: Option<Vec<String>>,
}

/// An event as requested from the kernel.
#[derive(Debug, Default, Serialize)]
pub struct RequestedEvent {
    /// The event's name.
    pub name: String,
    /// IDs of the event's instances.
    pub ids: Vec<u64>,
    /// The attr's nonzero fields.
    pub attr: Vec<(String, String)>,
    /// `sample_freq` in hertz, or `sample_period`.
    pub period: u64,
    /// Whether `period` is the frequency.
    pub is_freq: bool,
    /// Number of events in the group, if this event leads one; otherwise 1.
    pub members: usize,
    /// The group's own name; usually empty.
    pub group: String,
    /// Names of a tracepoint's fields, if the recording contains its format.
    pub trace_fields: Option<Vec<String>>,
    /// Number of IDs that [`RecordingHeader::cut`] removed.
    pub omitted: OmittedIds,
}

/// Number of IDs that were cut off an event.
#[derive(Debug, Default, Serialize)]
pub struct OmittedIds {
    /// Number of removed [`RequestedEvent::ids`].
    pub ids: usize,
}

/// A thread in the recording.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordedTask {
    /// The process id.
    pub pid: i32,
    /// The thread id.
    pub tid: i32,
    /// The parent process, if it was recorded.
    pub parent: Option<i32>,
    /// The thread's last name; untrusted text.
    pub comm: String,
    /// The process's mappings at the end of the recording.
    pub maps: Vec<RecordedMapping>,
}

/// A mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedMapping {
    /// First address.
    pub start: u64,
    /// End address (exclusive).
    pub end: u64,
    /// Offset in the file.
    pub offset: u64,
    /// The mapping's access permissions.
    pub access: MappingAccess,
    /// The inode number or the build ID; 0 if neither was recorded.
    pub file_id: String,
    /// Path of the mapped file; untrusted text.
    pub path: String,
}

/// Final value of a thread's counter, read when the thread ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FinalCount {
    /// The process id.
    pub pid: i32,
    /// The thread id.
    pub tid: i32,
    /// The event's name; untrusted text.
    pub event: String,
    /// Number of events counted.
    pub value: u64,
}
