//! The Linux kernel's interfaces.
//!
//! - [`sys`]: system calls, ring buffers, signals. All `unsafe` code and all uses of libc are here.
//! - [`abi`]: the numbers and layouts of `perf_event_open(2)`.
//! - [`host`]: the contents of `/proc` and `/sys`, read below any root directory.
//! - [`error`]: error messages.

pub mod abi;
pub mod error;
pub mod host;
#[cfg(test)]
#[path = "../../../tests/kit/unit.rs"]
mod kit;
pub mod sys;
