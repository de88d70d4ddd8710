//! Events at a place: breakpoints on an address, probes in functions, markers of
//! programs, tracepoints of the kernel.
//!
//! Receives words and the [`Host`](crate::host::Host); hands on specs. A function's name is turned into its
//! offset in the file here, since the kernel knows only files and offsets; nothing is written to tracefs.

mod breakpoint;
mod elf;
mod function;
mod marker;
mod subject;
mod tracepoint;

pub(super) use breakpoint::breakpoint;
pub(super) use elf::Sources;
pub(super) use function::{kprobe, returning, uprobe};
pub(super) use marker::markers;
pub use subject::{FindProgram, Subject, with_libraries};
pub(super) use tracepoint::tracepoints;
