//! Persistent events: the code shared by the holder and its clients.
//!
//! ```text
//!   add, rm, …  ──► client ── socket: one JSON message each way ──► holder ──► the kernel's events and rings
//!   stat, record ─► client ◄─ counts; sealed copies of the rings ──┘  │
//!   list, -e persistent/NAME/ ◄── run directory: type, format/, events/, held/ ◄─┘ publishes
//! ```
//! [`directory`] defines the contents of a run directory, [`message`] the protocol on the socket, and
//! [`client`] how to find or start a holder. The holder (`pmc-persist`) opens and serves the events, and
//! `recording` processes their counts and records.

pub mod client;
pub mod directory;
pub mod message;

use serde::{Deserialize, Serialize};

use pmc_sys::sys::clock::local_date_of;

/// The definition of a persistent event, from the arguments of `pmc persist add`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntryDefinition {
    /// The entry's name; see [`directory::check_name`].
    pub name: String,
    /// The text of one event.
    pub event: String,
    /// Number of pages of each ring; `None` for the default of 512 KiB.
    pub pages: Option<usize>,
    /// What to do with records when a ring is full.
    pub mode: RingMode,
    /// A list of CPUs; `None` selects all online CPUs, or the CPUs on which the processes run.
    pub cpus: Option<String>,
    /// Processes to measure, with all threads and their future children. If empty, whole CPUs are measured.
    pub pids: Vec<u32>,
    /// Whether samples include call chains, unwound using frame pointers.
    pub call_graph: bool,
    /// Filter expression for a tracepoint; `None` counts all occurrences.
    #[serde(default)]
    pub filter: Option<String>,
    /// Whether the event only counts and does not sample. Holders set this if the event does not support
    /// sampling.
    #[serde(default)]
    pub counts_only: bool,
    /// Access of other users.
    pub share: SharingLevel,
}

/// What to do with records when a ring is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RingMode {
    /// Keep the newest records (a backward ring). Every snapshot contains all of them.
    Overwrite,
    /// Keep the oldest records, and count those that do not fit. A snapshot removes its records.
    Normal,
}

impl RingMode {
    /// The mode's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Overwrite => "overwrite",
            Self::Normal => "normal",
        }
    }
}

/// What users other than root and the holder's user may do with an entry. Each level includes all previous
/// levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SharingLevel {
    /// Only the entry's existence.
    Nothing,
    /// The entry's counts.
    Counts,
    /// Copies of the entry's records.
    Records,
}

impl SharingLevel {
    /// All levels, in ascending order.
    pub const ALL: [Self; 3] = [Self::Nothing, Self::Counts, Self::Records];

    /// The level's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Counts => "counts",
            Self::Records => "records",
        }
    }
}

/// A held event, as it is published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersistentEntry {
    /// The entry's id. Ids start at 1 and are never reused.
    pub id: u64,
    /// The definition.
    #[serde(flatten)]
    pub definition: EntryDefinition,
    /// Time of opening, in seconds since 1970.
    pub since: i64,
    /// Actual size of each ring in bytes.
    pub ring_bytes: u64,
    /// Number of rings with samples. There are as many additional rings with records of mappings and tasks.
    pub rings: usize,
    /// Whether the event excludes the kernel because of missing privileges.
    pub user_only: bool,
    /// Time at which the last of the entry's processes ended, in seconds since 1970.
    #[serde(default)]
    pub ended: Option<i64>,
    /// Scale and unit of the count, from the `.scale` and `.unit` files in sysfs. `None` for plain numbers of
    /// occurrences.
    #[serde(default)]
    pub unit: Option<(String, String)>,
    /// The `perf_event_attr` that the kernel accepted: its words in hexadecimal, by index.
    pub attr: Vec<String>,
}

impl PersistentEntry {
    /// Returns the event's name for display, with the privilege level that the kernel allowed.
    pub fn event(&self) -> String {
        let EntryDefinition { event, .. } = &self.definition;
        if self.user_only { format!("{event} (user mode only)") } else { event.clone() }
    }

    /// Returns the time at which the last of the entry's processes ended, as a local date.
    pub fn ended_at(&self) -> Option<String> {
        self.ended.map(local_date_of)
    }

    /// Returns the time of opening, as a local date.
    pub fn opened(&self) -> String {
        local_date_of(self.since)
    }
}

/// An entry of a holder that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostEntry {
    /// The entry.
    #[serde(flatten)]
    pub entry: PersistentEntry,
    /// When the loss was detected, in seconds since 1970.
    pub found: i64,
    /// The reason why the holder ended.
    pub why: String,
}

impl LostEntry {
    /// Returns when the loss was detected, formatted as a local date.
    pub fn when(&self) -> String {
        local_date_of(self.found)
    }
}
