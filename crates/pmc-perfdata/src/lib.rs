//! Reads and writes Linux perf's recordings (`perf.data`).
//!
//! - [`record`]: the kernel's and perf's records: bytes to typed records and back, in both byte orders.
//! - [`perfdata`]: the file around them: header, feature sections, pipes, directories, compressed data.
//!
//! The input is untrusted: damaged recordings are read up to the damage, which is reported with its offset.

#![cfg_attr(doctest, doc = include_str!("../README.md"))]

pub mod perfdata;
pub mod record;
