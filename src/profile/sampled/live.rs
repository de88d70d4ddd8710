//! What live answers have beside rows: facts of the whole, functions by name, and a word for names that are
//! yet to come.
//!
//! Plain data: `analysis` fills it in, views and the screen show it.

/// What a function is called while its name is still being looked for.
pub const PENDING: &str = "…";

/// A function, by its names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct FunctionRef {
    /// Its module's short name.
    pub dso: String,
    /// Its name.
    pub symbol: String,
}

/// What stands above the tables.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LiveHeader {
    /// Nanoseconds since the start.
    pub since_ns: u64,
    /// Samples a second, since the table before.
    pub rate: f64,
    /// The sampled events; untrusted.
    pub events: Vec<String>,
    /// Records lost since the start.
    pub lost: u64,
    /// All samples since the start.
    pub samples: u64,
    /// How often an event was stopped because it came too fast.
    pub throttled: u64,
    /// Samples of no known event.
    pub unknown: u64,
    /// Parts of the samples, 0 to 1: in the kernel, in programs, idle.
    pub split: Option<(f64, f64, f64)>,
    /// CPU of this program since the table before, 1 being one whole CPU.
    pub own_cpu: f64,
    /// Memory of this program in bytes.
    pub own_memory: u64,
    /// What else is worth knowing.
    pub notes: Vec<String>,
}
