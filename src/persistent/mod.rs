//! Persistent events: what their holder and whoever asks it have in common.
//!
//! ```text
//!   add, rm, …  ──► client ── socket: one JSON message each way ──► holder ──► the kernel's events and rings
//!   stat, record ─► client ◄─ counts; sealed copies of the rings ──┘  │
//!   list, -e persistent/NAME/ ◄── run directory: type, format/, events/, held/ ◄─┘ publishes
//! ```
//! Decides what lies in a run directory ([`directory`]), what is said over the socket ([`message`]), and how
//! a holder is found or started ([`client`]). Leaves opening and serving to `holder`, and what is made of
//! counts and records to `recording`.

pub mod client;
pub mod directory;
pub mod message;

use serde::{Deserialize, Serialize};

use crate::sys::clock::local_date_of;

/// What is to be held: what was typed for `pmc persist add`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// What it is called, see [`directory::check_name`].
    pub name: String,
    /// The text of one event.
    pub event: String,
    /// Pages of each ring; `None`: 512 KiB.
    pub pages: Option<usize>,
    /// What happens to records when a ring is full.
    pub mode: RingMode,
    /// A list of CPUs; `None`: all that are on line, or where the processes run.
    pub cpus: Option<String>,
    /// Processes, all threads, with the children that they start from then on; none: whole CPUs.
    pub pids: Vec<u32>,
    /// Samples carry call chains, by frame pointers.
    pub call_graph: bool,
    /// Which occurrences of a tracepoint are counted and sampled; `None`: all.
    #[serde(default)]
    pub filter: Option<String>,
    /// It counts, and takes no samples. Holders set this where no samples can be had.
    #[serde(default)]
    pub counts_only: bool,
    /// What other users may have.
    pub share: Share,
}

/// What happens to records when a ring is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RingMode {
    /// The newest are kept (a backward ring); every snapshot has them all.
    Overwrite,
    /// The oldest are kept, and what finds no room is counted; a snapshot takes them out.
    Normal,
}

impl RingMode {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Overwrite => "overwrite",
            Self::Normal => "normal",
        }
    }
}

/// What users other than the holder's and root may have of an entry. Each includes what stands before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Share {
    /// That it is there.
    Nothing,
    /// What it has counted.
    Counts,
    /// Copies of its records.
    Records,
}

impl Share {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Counts => "counts",
            Self::Records => "records",
        }
    }
}

/// What is held, as it is published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The holder's number for it: from 1 up, never given twice.
    pub id: u64,
    /// What was asked for.
    #[serde(flatten)]
    pub definition: Definition,
    /// When it was opened, in seconds since 1970.
    pub since: i64,
    /// Bytes of each ring that the kernel let us have.
    pub ring_bytes: u64,
    /// Rings: of samples, and as many of what tells of mappings and tasks.
    pub rings: usize,
    /// The kernel's part had to be left out.
    pub user_only: bool,
    /// When the last of its processes ended, in seconds since 1970.
    #[serde(default)]
    pub ended: Option<i64>,
    /// What a count of 1 stands for, and its unit: sysfs's `.scale` and `.unit`. `None`: occurrences.
    #[serde(default)]
    pub unit: Option<(String, String)>,
    /// The `perf_event_attr` as the kernel took it: its words in hexadecimal, by their index.
    pub attr: Vec<String>,
}

impl Entry {
    /// The event's name for users: with the level that the kernel allowed.
    pub fn event(&self) -> String {
        let Definition { event, .. } = &self.definition;
        if self.user_only { format!("{event} (user mode only)") } else { event.clone() }
    }

    /// When the last of its processes ended, as a local date.
    pub fn ended_at(&self) -> Option<String> {
        self.ended.map(local_date_of)
    }

    /// When it was opened, as a local date.
    pub fn opened(&self) -> String {
        local_date_of(self.since)
    }
}

/// What was held by a holder that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// What it was.
    #[serde(flatten)]
    pub entry: Entry,
    /// When that was found, in seconds since 1970.
    pub found: i64,
    /// What became of the holder.
    pub why: String,
}

impl Lost {
    /// When that was found, as a local date.
    pub fn when(&self) -> String {
        local_date_of(self.found)
    }
}
