//! Events at an address: breakpoints, function probes, program markers, and kernel tracepoints; the syntax
//! and the names of probes in tracefs.
//!
//! Takes words and the [`Host`](pmc_sys::host::Host); returns specs. Function names are resolved to file
//! offsets here, because the kernel accepts only files and offsets. Does not write to tracefs.

mod breakpoint;
mod definition;
mod elf;
mod function;
mod kernel_function;
mod marker;
mod naming;
mod subject;
mod tracepoint;

pub(super) use breakpoint::breakpoint;
pub use definition::{LineRange, ProbeArgument, ProbePoint, ProbeSyntax};
pub(super) use elf::ProbeSources;
pub(super) use function::{kprobe, returning, uprobe};
pub use kernel_function::{KernelFunction, kernel_functions};
pub(super) use marker::markers;
pub use naming::{ProbeNames, probe_event_name, probe_group};
pub use subject::{EventTarget, FindProgram, with_libraries};
pub(super) use tracepoint::tracepoints;
