//! Resolves addresses to functions, source lines and inlined frames, and unwinds call stacks.
//!
//! - [`symbol`]: names of code in programs, libraries, the kernel and generated code.
//! - [`unwind`]: call stacks from copied stack memory.
//! - `go_table`: functions, lines and frame sizes of Go programs.
//! - [`hint`]: what may help if names, lines or code are missing.
//! - [`build_id`]: identifiers of builds, which all others may name.
//! - [`address`]: types for addresses that must not be mixed up.
//! - [`worker_threads`]: threads for parallel work.

#![forbid(unsafe_code)]

pub mod address;
pub mod build_id;
mod go_table;
pub mod hint;
#[cfg(test)]
#[path = "../../../tests/kit/unit.rs"]
mod kit;
pub mod symbol;
pub mod unwind;
pub mod worker_threads;
