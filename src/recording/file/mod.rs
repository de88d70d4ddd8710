//! A recording in a file, a row of files, or a stream.
//!
//! ```text
//!   rings ──► recorder (what is done at each wake) ──► output (counts, mends, unwinds) ──► perfdata::Writer
//!                 |                               '─ other_roots: files that only their processes see
//!                 '─ counted: what events counted, beside what was sampled
//!                 '─ rotation: when the next file begins     '─ features: the machine, the events, build-ids
//!   a holder's rings ──► snapshot ──► output
//! ```

mod counted;
pub(crate) mod counts;
pub(crate) mod features;
mod other_roots;
pub(crate) mod output;
mod pace;
pub(crate) mod recorder;
pub(crate) mod rotation;
pub(crate) mod snapshot;
