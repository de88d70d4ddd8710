//! A recording in a file, a series of files, or a stream.
//!
//! ```text
//!   rings ──► recorder (work at each wake-up) ──► output (counts, repairs, unwinds) ──► perfdata::Writer
//!                 |                               '─ other_roots: files visible only to their processes
//!                 '─ counted: total counts of the events, in addition to the samples
//!                 '─ losses: records about losses, at the end of each file
//!                 '─ rotation: when the next file begins     '─ features: the machine, the events, build-ids
//!                                                            '─ finished_files: a command for each file
//!   a holder's rings ──► snapshot ──► output
//! ```

mod counted;
pub mod counts;
pub mod features;
pub mod finished_files;
mod losses;
mod other_roots;
pub mod output;
mod pace;
pub mod recorder;
pub mod result;
pub(crate) mod rotation;
pub mod snapshot;
