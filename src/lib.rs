//! pmc: counts, samples and explains the activity of a Linux machine.
//!
//! The library is the whole program; the binary only calls [`command::main`]. It has two halves. The
//! measuring half (`event` → `counter`) turns text into running counters. The reading half (`perfdata` →
//! `session` → `symbol`) turns bytes into named samples. Both use [`sys`] below them and are used by
//! [`command`] above, and never refer to each other.
//!
//! ```text
//!                     main
//!                   command   <- cli      wires the rest
//!            tui     view                 live screen | text, CSV, JSON, OpenMetrics
//!                   analysis              recording -> named, filtered, aggregated answers
//!                   profile               counts -> aggregated; pure, no I/O
//!   counter                               attr + target -> counters, groups
//!   event                                 event text -> perf_event_attr
//!   host                 perfdata         /proc, /sys as values, rooted anywhere | records <-> perf.data
//!           sys    record                 the kernel: all `unsafe`, all libc | bytes <-> typed records
//!           error  units  text  terminal  address  sort   words and numbers
//! ```

pub mod abi;
pub mod address;
pub mod analysis;
pub mod cli;
pub mod command;
pub mod config;
pub mod counter;
pub mod error;
pub mod event;
pub(crate) mod holder;
pub mod host;
#[cfg(test)]
mod need;
pub mod perfdata;
pub mod persistent;
pub mod profile;
pub mod record;
pub mod recording;
pub mod session;
pub(crate) mod sort;
pub mod symbol;
pub mod sys;
pub mod terminal;
pub mod text;
pub mod tui;
pub mod units;
pub mod unwind;
pub mod view;
