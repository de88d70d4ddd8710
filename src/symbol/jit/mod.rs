//! Code that a JIT compiler made: its names, as the compiler left them in a file.
//!
//! Receives a process or a path; hands on names, and bytes and lines where the file has them. Two forms are
//! known: a list of names ([`perf_map`]) and a record of all code with its times ([`jitdump`]).

pub mod elf_file;
pub mod jitdump;
pub mod perf_map;
