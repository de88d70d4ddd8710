//! The list of events, ready to be shown: one [`Entry`] at a time, since there are thousands.
//!
//! A command fills it; `view` only reads it. Field names are those of the JSON document, which is versioned
//! as that of `pmc info` is. Strings of the system are cleaned of control characters when it is filled.

use serde::Serialize;

pub use super::machine::Why;

/// The version of the JSON document of `pmc list`.
pub const VERSION: u32 = 1;

/// An event, or a form.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// What to type.
    pub name: String,
    /// Other names of the same event.
    pub aliases: Vec<String>,
    /// `hardware`, `cache`, `software`, `tool`, `pmu`, `raw`, `breakpoint`, `probe`, `freebsd`, `tracepoint`.
    pub kind: &'static str,
    /// What it counts; empty where the kernel gives no text.
    pub text: String,
    /// The PMU that counts it, for kinds that are a PMU's.
    pub pmu: Option<String>,
    /// What it stands for: terms of a PMU event, the Linux event of a FreeBSD name.
    pub means: Option<String>,
    /// Unit of the scaled value; empty for plain counts.
    pub unit: String,
    /// Factor from the count to the unit.
    pub scale: f64,
    /// The request to the kernel; `None` for forms, tool events, and where it was not looked up.
    pub encoding: Option<Encoding>,
    /// Whether it opens here.
    pub opens: Opens,
    /// Why it does not, or why in user mode only.
    pub reason: Option<Why>,
    /// The fields of a tracepoint's record; `None` where they were not asked for.
    pub fields: Option<Vec<Field>>,
}

/// Whether an event opens here, and how that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Opens {
    /// Opened.
    Yes,
    /// Opened in user mode, refused with the kernel.
    UserOnly,
    /// Refused.
    No,
    /// Another tracepoint opened and stands for this one.
    AsAnother,
    /// A form: there is nothing to open yet.
    Form,
}

/// The words of `perf_event_attr` that make the event what it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Encoding {
    /// `attr.type`.
    #[serde(rename = "type")]
    pub kind: u32,
    /// `attr.config`.
    pub config: u64,
    /// `attr.config1`.
    pub config1: u64,
    /// `attr.config2`.
    pub config2: u64,
}

/// A field of a tracepoint's record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Field {
    /// Its name, as filters use it.
    pub name: String,
    /// Its C declaration.
    pub declaration: String,
    /// Bytes from the start of the record.
    pub offset: usize,
    /// Bytes.
    pub size: usize,
}

/// The whole list, as JSON has it.
#[derive(Debug, Clone, Serialize)]
pub struct Catalog {
    /// [`VERSION`].
    pub version: u32,
    /// The events.
    pub events: Vec<Entry>,
    /// Kinds that could not be read, and why.
    pub unreadable: Vec<Unreadable>,
}

/// A kind of events that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unreadable {
    /// The kind.
    pub kind: &'static str,
    /// Why.
    pub reason: Why,
}
