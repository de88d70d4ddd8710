//! Analyses recordings and live samples.
//!
//! - [`session`]: processes, threads and mappings over time; resolves each sample at its time.
//! - [`interval`]: pairs events, and measures the time between them. Pure, without I/O.
//! - [`profile`]: aggregated samples and counts. Pure, without I/O.
//! - [`analysis`]: loads a recording, names its addresses, and answers queries about it or about live data.

#![forbid(unsafe_code)]

pub mod analysis;
pub mod interval;
pub mod profile;
pub mod session;
