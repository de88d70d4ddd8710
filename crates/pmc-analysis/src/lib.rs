//! From recordings and live samples to answers.
//!
//! - [`session`]: processes, threads and mappings over time; resolves each sample against the state of its
//!   time.
//! - [`profile`]: aggregated samples and counts. Pure, without I/O.
//! - [`analysis`]: loads a recording, names its addresses, and answers questions about it or about live data.

pub mod analysis;
pub mod profile;
pub mod session;
