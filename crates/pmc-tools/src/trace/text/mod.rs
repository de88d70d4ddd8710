//! The output of `pmc trace` as text: one line per system call, and tables of all calls.

mod arguments;
mod calls;
mod structures;
mod tables;

pub(super) use arguments::{arguments, result};
pub(super) use calls::{CallPart, stack, write_call};
pub(super) use tables::{SummaryLayout, write_threads, write_totals};

use crate::trace::summary::CallKey;
use crate::trace::tracer::TraceCounts;

/// Facts about a whole trace.
#[derive(Debug, Clone, Copy)]
pub(super) struct TraceTotals {
    /// Nanoseconds from the first to the last record.
    pub(super) elapsed_ns: u64,
    pub(super) counts: TraceCounts,
    /// Number of calls that returned and passed the filter.
    pub(super) shown: u64,
}

/// Returns the name of a call. A 32-bit call on a 64-bit kernel is marked.
fn call_name(key: CallKey) -> String {
    let name = key.name().map_or_else(|| format!("syscall_{:#x}", key.number), str::to_owned);
    if key.abi.is_32_bit() { format!("{name}[32]") } else { name }
}
