//! The ground of pmc: the Linux kernel's interfaces, and words and numbers.
//!
//! - [`sys`]: system calls, ring memory, signals. All `unsafe` code and all uses of libc are here.
//! - [`abi`]: the numbers and layouts of `perf_event_open(2)`.
//! - [`host`]: `/proc` and `/sys` as values, read from any root directory.
//! - [`error`], [`terminal`], [`text`], [`units`], [`mod@sort`]: messages, terminal capabilities, text for
//!   people, quantities, and sorting.

pub mod abi;
pub mod error;
pub mod host;
#[cfg(test)]
#[path = "../../../tests/kit/unit.rs"]
mod kit;
pub mod sort;
pub mod sys;
pub mod terminal;
pub mod text;
pub mod units;
