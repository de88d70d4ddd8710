//! Events at an address: breakpoints, function probes, program markers, and kernel tracepoints.
//!
//! Takes words and the [`Host`](pmc_sys::host::Host); returns specs. Function names are resolved to file
//! offsets here, since the kernel only accepts files and offsets. Writes nothing to tracefs.

mod breakpoint;
mod elf;
mod function;
mod marker;
mod subject;
mod tracepoint;

pub(super) use breakpoint::breakpoint;
pub(super) use elf::ProbeSources;
pub(super) use function::{kprobe, returning, uprobe};
pub(super) use marker::markers;
pub use subject::{EventTarget, FindProgram, with_libraries};
pub(super) use tracepoint::tracepoints;
