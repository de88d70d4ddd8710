//! Reads and writes Linux perf's recordings (`perf.data`).
//!
//! - [`record`]: converts the kernel's and perf's records from bytes to typed values and back, in both byte
//!   orders.
//! - [`perfdata`]: the file around them: header, feature sections, pipes, directories, compressed data.
//!
//! The input is untrusted: damaged recordings are read up to the damage, which is reported with its offset.

#![forbid(unsafe_code)]
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

pub mod perfdata;
pub mod record;
