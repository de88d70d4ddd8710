//! Matches the begin and end events of system calls, and sums up the calls.
//!
//! Receives the events of all CPUs in time order, from live rings or from a file. [`SyscallDecoder`] decodes
//! a sample's payload, [`SyscallTracer`] matches the events of each thread, and [`CallSummary`] sums up the
//! calls. Lost records are counted, and so are calls for which only the start or only the end was recorded.
//!
//! ```text
//!   sample ─ SyscallDecoder ─► enter or exit ─ SyscallTracer ─► TracedCall ─┬─► CallSummary
//!   COMM, FORK, EXIT, LOST ──────────────────────┘                          └─► a line of text
//! ```

mod decoder;
mod descriptors;
mod feed;
mod json;
mod memory;
mod memory_reader;
mod recorded;
mod selection;
mod summary;
mod tasks;
mod text;
mod tracer;

pub use decoder::{SyscallDecoder, SyscallEvent};
pub use descriptors::{
    CallDescriptors, DescriptorLookup, DescriptorName, DescriptorTable, changes_descriptors,
};
pub use memory::{CallMemory, CapturedMemory, CapturedStructure};
pub use summary::{CallKey, CallStatistics, CallSummary, ThreadCalls};
pub use tasks::TaskLookup;
pub use tracer::{CallResult, EnteredCall, SyscallTracer, TraceCounts, TracedCall};

pub use feed::{CallFilter, SyscallFeed};
pub use json::write_json;
pub use memory_reader::MemoryReader;
pub use recorded::{TASK_RECORDS, check_kernel, recorded, recorded_with_stacks};
pub use selection::{CallSelection, UnknownCall};
pub use text::{
    CallPart, SummaryLayout, TraceTotals, write_call, write_call_json, write_omitted_json, write_threads,
    write_totals,
};
