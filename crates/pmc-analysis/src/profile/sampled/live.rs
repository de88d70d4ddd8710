//! Data of the live view other than its rows: the header, functions identified by name, and a placeholder for
//! pending names.
//!
//! Contains only plain data. `analysis` fills it in; the views and the full-screen view display it.

/// Placeholder for a function's name until it is resolved.
pub const PENDING: &str = "[looking up]";

/// A function, identified by its names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct FunctionRef {
    /// The module's short name.
    pub dso: String,
    /// The function's name.
    pub symbol: String,
}

/// The header above the tables.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LiveHeader {
    /// Nanoseconds since the start.
    pub since_ns: u64,
    /// Samples per second since the previous table.
    pub rate: f64,
    /// The sampled events; untrusted text.
    pub events: Vec<String>,
    /// Records lost since the start.
    pub lost: u64,
    /// Total number of samples since the start.
    pub samples: u64,
    /// Number of times that an event was throttled.
    pub throttled: u64,
    /// Number of samples of unknown events.
    pub unknown: u64,
    /// Shares of samples (0 to 1) that are in the kernel, in programs, and in the idle task.
    pub split: Option<(f64, f64, f64)>,
    /// pmc's own CPU usage since the previous table; 1 is one full CPU.
    pub own_cpu: f64,
    /// pmc's own memory usage in bytes.
    pub own_memory: u64,
    /// Number of warnings at the beginning of `notes`.
    pub warnings: usize,
    /// Warnings about the sampling, and further notes. Untrusted text.
    pub notes: Vec<String>,
}
