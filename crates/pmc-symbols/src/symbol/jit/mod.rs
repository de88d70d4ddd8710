//! Names of JIT-compiled code, which the compiler writes to a file.
//!
//! Takes a process or a path; returns names, and bytes and lines if the file has them. Supports two
//! formats: a list of names ([`perf_map`]) and a log of all code with timestamps ([`jitdump`]).

pub mod elf_file;
pub mod jitdump;
pub mod perf_map;
