//! The base crate of pmc: Linux kernel interfaces, and the display of text and numbers.
//!
//! - [`sys`]: system calls, ring buffers, signals. All `unsafe` code and all uses of libc are here.
//! - [`abi`]: the numbers and layouts of `perf_event_open(2)`.
//! - [`host`]: the contents of `/proc` and `/sys`, read below any root directory.
//! - [`error`], [`terminal`], [`text`], [`units`]: error messages, terminal capabilities, text utilities, and
//!   the formatting of quantities.

pub mod abi;
pub mod error;
pub mod host;
#[cfg(test)]
#[path = "../../../tests/kit/unit.rs"]
mod kit;
pub mod sys;
pub mod terminal;
pub mod text;
pub mod units;
