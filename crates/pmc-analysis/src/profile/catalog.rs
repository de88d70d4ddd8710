//! The list of events that `pmc list` prints. It can contain thousands of events, so pmc processes one
//! [`CatalogEntry`] at a time.
//!
//! A command fills in the entries; `view` only reads them. Fields have the same names as in the JSON
//! document, which is versioned in the same way as the document of `pmc info`. The command also removes
//! control characters from strings that it gets from the system.

use serde::Serialize;

pub use super::machine::MissingReason;

/// Version of the JSON document that `pmc list` prints.
pub const VERSION: u32 = 1;

/// An event, or a form of event names, such as `rNNN`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CatalogEntry {
    /// The name that the user types.
    pub name: String,
    /// Other names of the same event.
    pub aliases: Vec<String>,
    /// `hardware`, `cache`, `software`, `tool`, `pmu`, `vendor`, `raw`, `breakpoint`, `probe`, `freebsd`,
    /// `tracepoint`, `metric`, `metricgroup`.
    pub kind: &'static str,
    /// Description of the event; empty if the kernel does not provide one.
    pub text: String,
    /// The PMU that counts the event, for kinds that belong to a PMU.
    pub pmu: Option<String>,
    /// The meaning of the name: the terms of a PMU event, or the Linux event for a FreeBSD name.
    pub means: Option<String>,
    /// Unit of the scaled value; empty for plain counts.
    pub unit: String,
    /// Factor that converts the count to the unit.
    pub scale: f64,
    /// How the event is requested from the kernel; `None` for forms, tool events, and events that were not
    /// looked up.
    pub encoding: Option<Encoding>,
    /// Whether the event can be opened on this machine.
    pub opens: EventAvailability,
    /// Why the event cannot be opened, or can only be opened in user mode.
    pub reason: Option<MissingReason>,
    /// The fields of a tracepoint's record; `None` if they were not requested.
    pub fields: Option<Vec<CatalogField>>,
    /// Information from the vendor's event tables, for events and metrics in these tables.
    #[serde(flatten)]
    pub manual: Option<VendorInfo>,
}

/// Information from the vendors' tables about an event or a metric. Fields that perf also prints have perf's
/// JSON names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct VendorInfo {
    /// Name of the table that contains the event, such as `skylakex`.
    pub table: String,
    /// Whether the user imported the table (`pmc list --import`).
    pub imported: bool,
    /// The counters that support the event: `0-3`, `F1`; empty if the table does not list them.
    pub counters: String,
    /// `can` if samples of the event can be precise, `only` if they must be.
    pub precise: Option<&'static str>,
    /// The vendor's recommended sample period.
    pub period: Option<u64>,
    /// The fields that `perf list` prints.
    #[serde(flatten)]
    pub perf: PerfListEntry,
}

/// An event or a metric, with the names of `perf list --json`. Missing fields are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct PerfListEntry {
    /// The PMU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The event's name in lower case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_name: Option<String>,
    /// The event as `PMU/TERMS/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// `1` if the vendor has replaced the event with another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<&'static str>,
    /// The metric's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric_name: Option<String>,
    /// The metric's groups, separated by `;`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric_group: Option<String>,
    /// The metric's expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric_expr: Option<String>,
    /// The metric's threshold expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric_threshold: Option<String>,
    /// Factor and unit for the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_unit: Option<String>,
    /// Description of the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub brief_description: Option<String>,
}

/// Whether an event can be opened on this machine, and how pmc determined this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventAvailability {
    /// The event opened.
    Yes,
    /// The event can be opened in user mode only.
    UserOnly,
    /// The event cannot be opened.
    No,
    /// The event was not tried, but another tracepoint or another event of the same PMU could be opened.
    AsAnother,
    /// The entry is a form of event names, which cannot be opened.
    Form,
}

/// The fields of `perf_event_attr` that define the event.
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
pub struct CatalogField {
    /// The field's name, as used in filters.
    pub name: String,
    /// The field's C declaration.
    pub declaration: String,
    /// Offset in the record, in bytes.
    pub offset: usize,
    /// Size in bytes.
    pub size: usize,
}

/// The whole list, as in the JSON document.
#[derive(Debug, Clone, Serialize)]
pub struct Catalog {
    /// [`VERSION`].
    pub version: u32,
    /// The events.
    pub events: Vec<CatalogEntry>,
    /// The kinds of events that could not be read, and the reasons.
    pub unreadable: Vec<UnreadableKind>,
    /// What a limit cut off.
    pub omitted: OmittedEntries,
}

/// What a limit cut off from a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct OmittedEntries {
    /// Number of events.
    pub events: usize,
}

/// A kind of events that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnreadableKind {
    /// The kind.
    pub kind: &'static str,
    /// The reason.
    pub reason: MissingReason,
}

/// Result of importing event tables (`pmc list --import`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportSummary {
    /// Origin of the tables, such as `Intel's perfmon`.
    pub form: &'static str,
    /// Number of events.
    pub events: usize,
    /// Number of metrics.
    pub metrics: usize,
    /// Number of CPU models.
    pub models: usize,
    /// Number of entries that were skipped.
    pub left_out: usize,
    /// Files that could not be read, and why.
    pub unread: Vec<(String, String)>,
    /// The folder that contains the tables.
    pub folder: String,
    /// Identifier of this machine's CPU, as used in the tables.
    pub cpu: Option<String>,
    /// Name of this machine's CPU model, if the tables contain it.
    pub model: Option<String>,
}
