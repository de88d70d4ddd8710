//! `pmc trace`: shows the system calls of a command, of running processes or in a recording.
//!
//! ```text
//!   options ─► TraceRequest ─┬─ live ───────┬─► SyscallFeed ─► TracedCall ─► TraceOutput: lines, then tables
//!                            └─ recorded ───┘
//!
//!   SyscallFeed:  sample ─ SyscallDecoder ─► enter or exit ─ SyscallTracer ─► TracedCall
//!                 COMM, FORK, EXIT, LOST ──────────────────────┘
//!   TraceOutput:  TracedCall ─┬─ CallSummary ─► text, json: tables
//!                             └─ DescriptorTable ─► text, json: a line for each call
//! ```
//! Events arrive in time order, from live rings or from a file. Lost records are counted, and so are calls
//! for which only the start or only the end was recorded. A trace with stacks reads a temporary recording,
//! which [`run`] makes first.

mod decoder;
mod descriptors;
mod feed;
mod json;
mod live;
mod memory;
mod memory_reader;
mod options;
mod output;
mod recorded;
mod request;
mod selection;
mod summary;
mod tasks;
mod text;
mod tracer;

use pmc_command::record;
use pmc_sys::error::{Exit, Result, say};
use pmc_sys::sys::signal;

pub use options::TraceOptions;
pub use request::TraceRequest;
use request::TraceSource;

/// Traces, or reads the recording, and shows the calls.
///
/// # Errors
/// Fails if an event cannot be opened, if a recording cannot be made or read, or if the output cannot be
/// written.
pub fn run(mut request: TraceRequest) -> Result<Exit> {
    // The file exists until the calls have been shown.
    let Some((recording, _file)) = request.recording.take().map(|both| *both) else { return show(&request) };
    say::be_quiet(true);
    let recorded = record::run_unseen(recording);
    say::be_quiet(request.quiet);
    signal::release();
    recorded.and_then(|exit| show(&request).map(|_| exit))
}

fn show(request: &TraceRequest) -> Result<Exit> {
    match &request.source {
        TraceSource::Live(sample) => live::run(request, sample),
        TraceSource::File(path) => recorded::run(request, path),
    }
}
