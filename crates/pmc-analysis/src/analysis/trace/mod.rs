//! System calls in live rings or in a recording: which of them to trace, and how to read their events.
//!
//! [`SyscallFeed`] receives records in time order and returns finished calls.
//! [`profile::syscalls`](crate::profile::syscalls) pairs the events and computes the tables.

mod feed;
mod memory;
mod recorded;
mod selection;

pub use feed::{CallFilter, SyscallFeed};
pub use memory::MemoryReader;
pub use recorded::{TASK_RECORDS, check_kernel, recorded, recorded_with_stacks};
pub use selection::{CallSelection, UnknownCall};
