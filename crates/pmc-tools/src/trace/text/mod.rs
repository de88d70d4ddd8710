//! The output of `pmc trace`: one line per system call, and tables of all calls.

mod arguments;
mod calls;
mod structures;
mod tables;

pub use calls::{CallPart, write_call, write_call_json, write_omitted_json};
pub use tables::{SummaryLayout, write_threads, write_totals};

use crate::trace::{CallKey, TraceCounts};

/// Facts about a whole trace.
#[derive(Debug, Clone, Copy)]
pub struct TraceTotals {
    /// Nanoseconds from the first to the last record.
    pub elapsed_ns: u64,
    pub counts: TraceCounts,
    /// Number of calls that returned and passed the filter.
    pub shown: u64,
}

/// Returns the name of a call. A 32-bit call on a 64-bit kernel is marked.
fn call_name(key: CallKey) -> String {
    let name = key.name().map_or_else(|| format!("syscall_{:#x}", key.number), str::to_owned);
    if key.abi.is_32_bit() { format!("{name}[32]") } else { name }
}
