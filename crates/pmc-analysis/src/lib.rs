//! Analyses recordings and live samples.
//!
//! - [`session`]: processes, threads and mappings over time; resolves each sample against the state at the
//!   time of the sample.
//! - [`interval`]: pairs events, and measures the time between them. Pure, without I/O.
//! - [`profile`]: aggregated samples and counts. Pure, without I/O.
//! - [`analysis`]: loads a recording, symbolizes its addresses, and answers queries about it or about live
//!   data.

#![forbid(unsafe_code)]

pub mod analysis;
pub mod interval;
pub mod profile;
pub mod session;
