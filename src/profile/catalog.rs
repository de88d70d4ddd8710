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
    /// `hardware`, `cache`, `software`, `tool`, `pmu`, `vendor`, `raw`, `breakpoint`, `probe`, `freebsd`,
    /// `tracepoint`, `metric`, `metricgroup`.
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
    /// What its maker's manual says, for events and metrics of manuals.
    #[serde(flatten)]
    pub manual: Option<Manual>,
}

/// What the tables of the makers say of an event or a metric. What perf lists too has its names in JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Manual {
    /// The table that it stands in: `skylakex`.
    pub table: String,
    /// Whether the user imported the table (`pmc list --import`).
    pub imported: bool,
    /// The counters that the event can use: `0-3`, `F1`; empty where the table does not say.
    pub counters: String,
    /// `can` where samples of the event can be precise, `only` where they must be.
    pub precise: Option<&'static str>,
    /// The period at which the maker samples the event.
    pub period: Option<u64>,
    /// The names of perf's own list.
    #[serde(flatten)]
    pub perf: AsPerf,
}

/// An event or a metric under the names of `perf list --json`; what it does not have is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct AsPerf {
    /// The PMU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// In lower case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_name: Option<String>,
    /// `PMU/TERMS/`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// `1` where the maker has given the event up for another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<&'static str>,
    /// A metric's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric_name: Option<String>,
    /// The groups that it is in, with `;` between them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric_group: Option<String>,
    /// What it is computed by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric_expr: Option<String>,
    /// When it is worth a look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric_threshold: Option<String>,
    /// Factor and unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_unit: Option<String>,
    /// What it counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub brief_description: Option<String>,
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
    /// Another tracepoint, or another event of the PMU, opened and stands for this one.
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

/// What came of an import of tables (`pmc list --import`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// Whose tables they are: `Intel's perfmon`.
    pub form: &'static str,
    /// How many events there are.
    pub events: usize,
    /// How many metrics.
    pub metrics: usize,
    /// Of how many models of CPUs.
    pub models: usize,
    /// Entries that are left out.
    pub left_out: usize,
    /// Files that could not be read, and why.
    pub unread: Vec<(String, String)>,
    /// Where they are kept.
    pub folder: String,
    /// This machine's CPU, by the id that tables go by.
    pub cpu: Option<String>,
    /// Its model, if it is among them.
    pub model: Option<String>,
}
